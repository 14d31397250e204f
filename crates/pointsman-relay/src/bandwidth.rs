//! Classes of `bandwidth`: what goes out of a body or a tunnel waits until its class has room for it.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use pointsman_config::{BandwidthClass, Direction};
use pointsman_rules::Effect;
use pointsman_shape::{ClassRates, ClassState, Grant, PIECE_BYTES, Tree};
use pointsman_telemetry::{BandwidthMetrics, Event, Metrics, Recorder};

use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::local::Local;
use crate::presence::Ahead;
use crate::session::Session;
use crate::shard::Shard;
use crate::transport::Transport;
use crate::verdict::Verdict;

/// Who waits looks at the rates again after so long: a reload may have changed them.
const LOOK_MS_MAX: u32 = 200;

/// Whom bytes are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toward {
    Client,
    Server,
}

impl Toward {
    const BOTH: [Toward; 2] = [Toward::Client, Toward::Server];

    fn counts_for(self, direction: Direction) -> bool {
        match direction {
            Direction::Both => true,
            Direction::ToClient => self == Toward::Client,
            Direction::ToServer => self == Toward::Server,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Toward::Client => "to-client",
            Toward::Server => "to-server",
        }
    }
}

/// A class's number, given once by name and kept over reloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClassId(NonZeroU32);

/// The classes of a plan.
pub(crate) struct LiveBandwidth {
    by_name: HashMap<Arc<str>, ClassId>,
    places: HashMap<ClassId, [Option<Place>; 2]>,
    /// One for each direction: what goes one way takes nothing of the other.
    trees: [Tree; 2],
}

/// Where a class takes from: itself, or the nearest one above it that counts bytes of this direction.
struct Place {
    at: usize,
    metrics: Arc<BandwidthMetrics>,
}

/// What was taken of each class, kept over reloads.
#[derive(Default)]
pub(crate) struct BandwidthStates {
    taken: HashMap<(Arc<str>, usize), Arc<ClassState>>,
    numbers: HashMap<Arc<str>, ClassId>,
    /// How many numbers were given: none is given twice.
    numbered: u32,
}

impl BandwidthStates {
    /// Joins the classes of a plan with what was taken of them.
    pub(crate) fn attach(
        &mut self,
        plan: &[BandwidthClass],
        metrics: &Metrics,
        now_us: u64,
    ) -> LiveBandwidth {
        let by_name = plan.iter().map(|class| (class.name.clone(), self.number(&class.name)));
        let by_name: HashMap<Arc<str>, ClassId> = by_name.collect();
        let mut places_by_id: HashMap<ClassId, [Option<Place>; 2]> = HashMap::new();
        let trees = Toward::BOTH.map(|toward| {
            let mut rates = Vec::new();
            let mut states = Vec::new();
            // Where each class takes from.
            let mut places: Vec<Option<usize>> = Vec::with_capacity(plan.len());
            for class in plan {
                let above = class.parent.and_then(|parent| places[parent]);
                if !toward.counts_for(class.direction) {
                    places.push(above);
                } else {
                    places.push(Some(rates.len()));
                    rates.push(ClassRates {
                        parent: above,
                        guaranteed_bytes_per_second: class.guaranteed_bytes_per_second,
                        ceiling_bytes_per_second: class.ceiling_bytes_per_second,
                        burst_bytes: class.burst_bytes,
                    });
                    let key = (class.name.clone(), toward as usize);
                    states.push(self.taken.entry(key).or_default().clone());
                }
                let place = places
                    .last()
                    .copied()
                    .flatten()
                    .map(|at| Place { at, metrics: metrics.bandwidth(&class.name, toward.name()) });
                places_by_id.entry(by_name[&class.name]).or_default()[toward as usize] = place;
            }
            Tree::new(&rates, &states, now_us.saturating_mul(1000))
        });
        LiveBandwidth { by_name, places: places_by_id, trees }
    }

    fn number(&mut self, name: &Arc<str>) -> ClassId {
        let BandwidthStates { numbers, numbered, .. } = self;
        *numbers.entry(name.clone()).or_insert_with(|| {
            *numbered = numbered.saturating_add(1);
            ClassId(NonZeroU32::MIN.saturating_add(*numbered))
        })
    }

    /// Forgets what was taken of classes that no generation names any more. A tree holds its states.
    pub(crate) fn forget_unused(&mut self) {
        let BandwidthStates { taken, numbers, .. } = self;
        taken.retain(|_, state| Arc::strong_count(state) > 1);
        // A plan holds the names of its classes.
        numbers.retain(|name, _| Arc::strong_count(name) > 1);
    }
}

impl LiveBandwidth {
    /// The class that effects give, if any does: the last one has it.
    pub(crate) fn of_effects(&self, effects: &[&Effect]) -> Option<ClassId> {
        let class = effects.iter().rev().find_map(|effect| match effect {
            Effect::Bandwidth(class) => Some(&**class),
            _ => None,
        })?;
        self.by_name.get(class).copied()
    }
}

/// What shapes the bytes of an exchange in one direction. Without a class it does nothing, and costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Shaping(Option<Box<Shaped>>);

#[derive(Debug)]
struct Shaped {
    class: ClassId,
    toward: Toward,
    /// Nothing where nothing was asked for in vain.
    waiting: Option<Waiting>,
}

/// That bytes wait for their class; that they do no more is told when this goes.
struct Waiting {
    /// Until when nothing is to be had.
    until_us: u64,
    metrics: Arc<BandwidthMetrics>,
    recorder: Rc<Recorder>,
}

/// Leave to move bytes, which is to be settled.
#[must_use = "what is not used is to be given back"]
pub(crate) struct Leave {
    /// How many may be moved.
    pub(crate) bytes: u64,
    /// What was taken, and of what: a reload may have changed that since.
    grant: Option<(Grant, Rc<Local>)>,
}

impl Shaping {
    pub(crate) fn new(class: Option<ClassId>, toward: Toward) -> Shaping {
        Shaping(class.map(|class| Box::new(Shaped { class, toward, waiting: None })))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// How long it waits for its class; nothing where it does not.
    pub(crate) fn waits_ms(&self, shard: &Shard) -> Option<u32> {
        let waiting = self.0.as_ref()?.waiting.as_ref()?;
        Some(shard.ms_until(waiting.until_us).clamp(1, LOOK_MS_MAX))
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.0.as_ref().is_some_and(|shaped| shaped.waiting.is_some())
    }

    /// Asks for a piece. Where nothing is to be had, it is the caller's deadline that wakes it.
    pub(crate) fn poll_leave(&mut self, shard: &Shard, bytes_max: u64) -> Poll<Leave> {
        let free = Leave { bytes: bytes_max, grant: None };
        let Some(shaped) = self.0.as_deref_mut() else { return Poll::Ready(free) };
        let local = shard.local();
        // A class that a reload took away bounds nothing.
        let Some(place) = local.live.bandwidth.place(shaped) else {
            shaped.waiting = None;
            return Poll::Ready(free);
        };
        let now_us = shard.clock.round_us();
        let bytes = u32::try_from(bytes_max).map_or(PIECE_BYTES, |bytes| bytes.min(PIECE_BYTES));
        let tree = &local.live.bandwidth.trees[shaped.toward as usize];
        match tree.take(place.at, bytes, now_us.saturating_mul(1000)) {
            Ok(grant) => {
                shaped.waiting = None;
                Poll::Ready(Leave { bytes: grant.bytes.into(), grant: Some((grant, local.clone())) })
            }
            Err(wait_ns) => {
                let waiting = shaped.waiting.get_or_insert_with(|| Waiting::new(&place.metrics, shard));
                waiting.until_us = now_us.saturating_add((wait_ns / 1000).max(1));
                Poll::Pending
            }
        }
    }

    /// Says how many bytes moved by a leave.
    pub(crate) fn settle(&self, shard: &Shard, leave: Leave, moved: u64) {
        let (Some(shaped), Some((grant, local))) = (self.0.as_deref(), leave.grant) else { return };
        let Some(place) = local.live.bandwidth.place(shaped) else { return };
        let moved = u32::try_from(moved).unwrap_or(u32::MAX);
        let now_ns = shard.clock.round_us().saturating_mul(1000);
        local.live.bandwidth.trees[shaped.toward as usize].settle(grant, moved, now_ns);
        if moved > 0 {
            shard.recorder.hear(&Event::Shaped(&place.metrics, moved));
        }
    }
}

impl Waiting {
    fn new(metrics: &Arc<BandwidthMetrics>, shard: &Shard) -> Waiting {
        shard.recorder.hear(&Event::ShapedWait(metrics));
        Waiting { until_us: 0, metrics: metrics.clone(), recorder: shard.recorder.clone() }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.recorder.hear(&Event::ShapedWaitEnded(&self.metrics));
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("until_us", &self.until_us).finish_non_exhaustive()
    }
}

impl LiveBandwidth {
    fn place(&self, shaped: &Shaped) -> Option<&Place> {
        self.places.get(&shaped.class)?[shaped.toward as usize].as_ref()
    }
}

impl<C: Transport> Session<C> {
    /// Waits until what is decided may begin to go out.
    ///
    /// # Errors
    /// The client has left.
    pub(crate) async fn wait_for_class_of(
        &mut self,
        verdict: &Verdict,
        exchange: &Exchange,
    ) -> Result<(), Fault> {
        let (toward, bytes) = match verdict {
            Verdict::Forward(forward) => (Toward::Server, forward.message.len()),
            Verdict::Answer(answer) => (Toward::Client, answer.lines.len() + answer.body.len()),
            Verdict::Http2 | Verdict::Discard | Verdict::Reset | Verdict::Waits(_) => return Ok(()),
        };
        self.wait_for_bandwidth(toward, bytes, exchange).await
    }

    /// Waits until so many bytes, which are there already, may go out.
    ///
    /// # Errors
    /// The client has left.
    pub(crate) async fn wait_for_bandwidth(
        &mut self,
        toward: Toward,
        bytes: usize,
        exchange: &Exchange,
    ) -> Result<(), Fault> {
        let mut shaping = Shaping::new(exchange.bandwidth, toward);
        let ahead = if exchange.has_whole_request { Ahead::Request } else { Ahead::Body };
        let mut left = bytes as u64;
        while left > 0 && shaping.is_on() {
            let shard = self.shard.clone();
            let ms = shaping.waits_ms(&shard).unwrap_or(0);
            let leave = self.while_present(ms, ahead, |_, _| shaping.poll_leave(&shard, left)).await?;
            // Its time is over: it is asked again.
            let Ok(leave) = leave else { continue };
            let bytes = leave.bytes;
            shaping.settle(&shard, leave, bytes);
            left -= bytes.min(left);
        }
        Ok(())
    }
}
