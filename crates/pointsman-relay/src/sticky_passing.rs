//! Sticky clients pass to the process that takes the place of this one: all of them while it starts, and who has changed since
//! for as long as this one serves connections.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use pointsman_balance::{PASSED_ENTRY_BYTES, StickyEntry, StickyTable};
use pointsman_net::{Clock, Line, PARCEL_BYTES_MAX};

use crate::live::Live;
use crate::shared::Shared;
use crate::sticky_clients::{Homes, seconds};
use crate::switch::Switch;

/// How long a process that begins waits for all that the other one remembers. What comes later is taken, too.
const WAIT_MS_MAX: u64 = 500;

/// How often the table is looked through for what has changed, until the other process serves.
const SOON_MS: u64 = 200;
/// And from then on.
const LATE_MS: u64 = 1000;

/// How long who takes waits at a time. It ends with the line.
const SILENT_MS_MAX: u32 = 60_000;

// What parcels begin with. Those of others are passed over.
const PLAN: &[u8] = b"plan\n";
const CLIENTS: &[u8] = b"clients\n";
const TARGETS: &[u8] = b"targets\n";
const WHOLE: &[u8] = b"whole\n";

/// What the two processes must have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PlanMark {
    /// Tells the key of stickiness: under another one nobody is known.
    key: u64,
    /// Tells where clients are at home: where that is otherwise, each is looked at.
    homes: u64,
}

impl PlanMark {
    fn of(live: &Live) -> PlanMark {
        PlanMark { key: live.sticky.hash(b"\0key", b""), homes: Homes::of(live).digest(&live.sticky) }
    }

    fn to_parcel(self) -> Vec<u8> {
        [PLAN, &self.key.to_le_bytes(), &self.homes.to_le_bytes()].concat()
    }

    fn of_parcel(rest: &[u8]) -> Option<PlanMark> {
        let (key, homes) = rest.split_first_chunk()?;
        let homes = homes.first_chunk()?;
        Some(PlanMark { key: u64::from_le_bytes(*key), homes: u64::from_le_bytes(*homes) })
    }
}

impl Switch {
    /// Whether clients are remembered.
    pub fn remembers_clients(&self) -> bool {
        self.shared.sticky_clients.get().is_some() || self.shared.sticky_targets.get().is_some()
    }

    /// Gives the clients that are remembered to the process at the other end, and who changes from then on, until that has
    /// closed its end. A thread of its own does so, which holds up nobody.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn give_sticky_clients(&self, to: Line) -> io::Result<Giving> {
        let mark = PlanMark::of(&self.live);
        let giver = Giver { shared: self.shared.clone(), clock: self.clock(), to, mark };
        let (goes_on, ends) = mpsc::channel();
        // Nobody takes any more where it fails.
        let body = move || drop(giver.give(&ends));
        let thread = std::thread::Builder::new().name("sticky-giver".to_owned()).spawn(body)?;
        Ok(Giving { goes_on: Some(goes_on), thread })
    }
}

/// Sticky clients that are on their way to another process.
#[derive(Debug)]
pub struct Giving {
    goes_on: Option<mpsc::Sender<()>>,
    thread: JoinHandle<()>,
}

impl Giving {
    /// Says that nobody changes any more. Tells whether all have been given by now, or nobody takes them.
    pub fn finishes(&mut self) -> bool {
        self.goes_on = None;
        self.thread.is_finished()
    }
}

struct Giver {
    shared: Arc<Shared>,
    clock: Clock,
    to: Line,
    mark: PlanMark,
}

impl Giver {
    fn give(&self, ends: &mpsc::Receiver<()>) -> io::Result<()> {
        self.to.send_in_turn(&self.mark.to_parcel())?;
        let mut looked_s = self.now_s();
        self.give_since(0)?;
        self.to.send_in_turn(WHOLE)?;
        loop {
            let ms = if self.shared.draining.load(Relaxed) { LATE_MS } else { SOON_MS };
            let is_last = ends.recv_timeout(Duration::from_millis(ms)) != Err(RecvTimeoutError::Timeout);
            if self.to.closes_within(0)? {
                return Ok(());
            }
            let now_s = self.now_s();
            self.give_since(looked_s)?;
            looked_s = now_s;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Whoever was put in since that second, and in it.
    fn give_since(&self, since_s: u32) -> io::Result<()> {
        let Shared { sticky_clients, sticky_targets, .. } = &*self.shared;
        for (kind, table) in [(CLIENTS, sticky_clients), (TARGETS, sticky_targets)] {
            table.get().map_or(Ok(()), |table| self.give_of(kind, table, since_s))?;
        }
        Ok(())
    }

    fn give_of(&self, kind: &[u8], table: &StickyTable, since_s: u32) -> io::Result<()> {
        let now_s = self.now_s();
        let mut parcel = Vec::with_capacity(PARCEL_BYTES_MAX);
        for entry in table.entries(now_s).filter(|entry| entry.used_s >= since_s) {
            if parcel.len() + PASSED_ENTRY_BYTES > PARCEL_BYTES_MAX {
                self.to.send_in_turn(&parcel)?;
                parcel.clear();
            }
            if parcel.is_empty() {
                parcel.extend_from_slice(kind);
            }
            parcel.extend_from_slice(&entry.to_bytes(now_s));
        }
        if parcel.is_empty() { Ok(()) } else { self.to.send_in_turn(&parcel) }
    }

    fn now_s(&self) -> u32 {
        seconds(self.clock.now_us())
    }
}

/// Takes what the process at the other end gives, on a thread of its own, and waits until all of that is there that it
/// remembers now, within [`WAIT_MS_MAX`].
///
/// # Errors
/// When there is no thread for it.
pub(crate) fn take_sticky_clients(from: Line, shared: &Arc<Shared>, clock: Clock) -> io::Result<()> {
    let (whole, is_whole) = mpsc::channel();
    let taker =
        Taker { shared: shared.clone(), clock, from, mark: PlanMark::of(&shared.live()), is_alike: false };
    // It ends when nobody gives any more.
    let body = move || drop(taker.take(&whole));
    std::thread::Builder::new().name("sticky-taker".to_owned()).spawn(body)?;
    // Where they do not come, or not in time, clients go by their hashes until they do.
    let (Ok(()) | Err(_)) = is_whole.recv_timeout(Duration::from_millis(WAIT_MS_MAX));
    Ok(())
}

struct Taker {
    shared: Arc<Shared>,
    clock: Clock,
    from: Line,
    mark: PlanMark,
    /// Whether clients are at home there where they are here.
    is_alike: bool,
}

impl Taker {
    fn take(mut self, whole: &mpsc::Sender<()>) -> io::Result<()> {
        loop {
            let text = match self.from.receive_within(SILENT_MS_MAX) {
                Ok(parcel) => parcel.text,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => continue,
                Err(error) => return Err(error),
            };
            if let Some(rest) = text.strip_prefix(PLAN) {
                let theirs = PlanMark::of_parcel(rest).filter(|mark| mark.key == self.mark.key);
                let Some(theirs) = theirs else { return Ok(()) };
                self.is_alike = theirs.homes == self.mark.homes;
            } else if let Some(rest) = text.strip_prefix(CLIENTS) {
                self.take_clients(rest);
            } else if let Some(rest) = text.strip_prefix(TARGETS) {
                self.take_targets(rest);
            } else if text == WHOLE {
                // Who began this may wait no more.
                let (Ok(()) | Err(_)) = whole.send(());
            }
        }
    }

    fn take_clients(&self, bytes: &[u8]) {
        let Some(table) = self.shared.sticky_clients.get() else { return };
        let live = (!self.is_alike).then(|| self.shared.live());
        let homes = live.as_deref().map(Homes::of);
        let now_s = seconds(self.clock.now_us());
        for mut entry in entries(bytes, now_s) {
            if let Some(homes) = &homes {
                let Some(whereabouts) = homes.whereabouts(&entry) else { continue };
                entry.whereabouts = whereabouts;
            }
            table.adopt(&entry, now_s);
        }
    }

    /// A target that is not in the plan any more is not found by its number.
    fn take_targets(&self, bytes: &[u8]) {
        let Some(table) = self.shared.sticky_targets.get() else { return };
        let now_s = seconds(self.clock.now_us());
        entries(bytes, now_s).for_each(|entry| table.adopt(&entry, now_s));
    }
}

fn entries(bytes: &[u8], now_s: u32) -> impl Iterator<Item = StickyEntry> {
    let (whole, _) = bytes.as_chunks();
    whole.iter().map(move |bytes| StickyEntry::of_bytes(bytes, now_s))
}
