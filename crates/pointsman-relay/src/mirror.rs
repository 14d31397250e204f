//! Copies of requests: `mirror(pool)`.
//!
//! A copy is sent when the whole request is there, by a task and a connection of its own. The request does not wait for it,
//! and nothing that befalls it is seen there. What its answer says is read and thrown away.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use pointsman_net::{PooledBuffer, Presence, Tcp, spawn};
use pointsman_rules::Effect;
use pointsman_telemetry::{Event, Mirrored};
use tokio::io::AsyncWrite;

use crate::ahead::Ahead;
use crate::choice::Choice;
use crate::exchange::Exchange;
use crate::facts::Text;
use crate::fault::Fault;
use crate::session::{After, Session};
use crate::shard::Shard;
use crate::transport::Transport;
use crate::verdict::{Forward, Place, Verdict};

/// What tells a server that a request is a copy.
const MARK: &[u8] = b"X-Mirrored: 1\r\n";

/// A copy in the making.
pub(crate) struct Mirror {
    choice: Choice,
    /// What has come of the request.
    message: PooledBuffer,
    bytes_max: usize,
}

impl std::fmt::Debug for Mirror {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Mirror({})", self.choice.pool_name())
    }
}

impl Mirror {
    /// Whether there was room for it.
    fn add(&mut self, bytes: &[u8]) -> bool {
        let fits = self.message.len() + bytes.len() <= self.bytes_max && self.message.reserve(bytes.len());
        if fits {
            self.message.extend_from_slice(bytes);
        }
        fits
    }

    /// The head as the server of the request gets it, marked, and what there is of the body.
    fn begin(&mut self, forward: &Forward) -> bool {
        let message = &*forward.message;
        let line = memchr::memchr(b'\n', message).map_or(0, |at| at + 1);
        let ahead = forward.ahead.as_deref();
        self.add(&message[..line])
            && self.add(MARK)
            && self.add(&message[line..])
            && ahead.is_none_or(|ahead| {
                ahead.hold.borrow().pieces().all(|piece| self.add(piece)) && self.add(&ahead.tail)
            })
    }
}

impl Place<'_> {
    /// The copy that effects ask for: of several, the last.
    pub(crate) fn mirror_of(&self, effects: &[&Effect]) -> Option<Box<Mirror>> {
        let name = effects.iter().rev().find_map(|effect| match effect {
            Effect::Mirror(pool) => Some(pool),
            _ => None,
        })?;
        let (_, pool) = self.listener.mirrors.iter().find(|(known, _)| known == name)?;
        Some(Box::new(Mirror {
            choice: Choice::in_turn(self.local, *pool),
            message: self.shard.buffers.waiting(),
            bytes_max: self.local.live.plan.mirror_bytes_max as usize,
        }))
    }
}

impl<C: Transport> Session<C> {
    /// Begins with a copy that was asked for. It is sent where all of the request is there, and otherwise waits beside what was
    /// read ahead of the body.
    pub(crate) fn begin_mirror(
        &self,
        mut mirror: Box<Mirror>,
        verdict: &mut Verdict,
        exchange: &mut Exchange,
    ) {
        let Verdict::Forward(forward) = verdict else { return };
        // What becomes a tunnel has no end that could be waited for.
        if exchange.upgrade.is_some() || !mirror.begin(forward) {
            return self.drop_mirror();
        }
        if forward.body.is_done() {
            return self.send_mirror(*mirror, exchange);
        }
        forward.ahead.get_or_insert_with(|| Box::new(Ahead::of_mirror())).mirror = Some(mirror);
    }

    /// Adds what was read of the body, so many bytes; lets the copy go where there is no room for them.
    pub(crate) fn add_to_mirror(&self, mirror: &mut Option<Box<Mirror>>, bytes: &[u8]) {
        if mirror.as_mut().is_some_and(|mirror| !mirror.add(bytes)) {
            *mirror = None;
            self.drop_mirror();
        }
    }

    /// Counts one that is not sent.
    pub(crate) fn drop_mirror(&self) {
        self.shard.recorder.hear(&Event::Mirrored(&self.listener.metrics, Mirrored::Dropped));
    }

    /// Sends the copy on its way, if there is room for one more.
    pub(crate) fn send_mirror(&self, mirror: Mirror, exchange: &mut Exchange) {
        let Some(turn) = MirrorTurn::take(&self.shard) else { return self.drop_mirror() };
        let Some(booked) = self.shard.buffers.exchange(mirror.message.len(), false) else {
            return self.drop_mirror();
        };
        if let Some(facts) = exchange.facts_mut() {
            facts.note(Text::Mirror, mirror.choice.pool_name().as_bytes());
        }
        let Mirror { choice, message, .. } = mirror;
        let forward = Forward::whole(message, choice);
        let copied = exchange.of_copy(self.shard.clock.round_us(), Some(booked));
        let mut session = self.beside(Nobody);
        session.owner = self.shard.next_owner();
        let ms = self.shard.local().live.plan.mirror_ms_max;
        spawn(async move {
            session.mirror(forward, copied, ms).await;
            drop((session, turn));
        });
    }
}

impl Session<Nobody> {
    /// The way of a copy, within a time.
    async fn mirror(&mut self, mut forward: Forward, mut exchange: Exchange, ms: u32) {
        let shard = self.shard.clone();
        let what = {
            let mut whole = pin!(async {
                let mut reached = self.reach(&mut forward, &mut exchange).await?;
                let after = self.relay_answer(None, &mut reached, &mut exchange).await;
                let after = after.inspect_err(|fault| reached.hear_of(*fault))?;
                reached.settle(&self.shard, &exchange, self.owner);
                Ok::<_, Fault>(after)
            });
            let mut deadline = shard.timers.deadline();
            let unless_over = poll_fn(|context| match shard.ends_copies() {
                true => Poll::Ready(None),
                false => shard.poll_unless_stopping(whole.as_mut(), context),
            });
            match deadline.within(ms, unless_over).await {
                Ok(Some(Ok(After::Next | After::Close))) => Some(Mirrored::Answered),
                _ => None,
            }
        };
        // Where no server could take it, it was not even sent.
        let failed = if exchange.tries == 0 { Mirrored::Dropped } else { Mirrored::Failed };
        let what = what.unwrap_or(failed);
        shard.recorder.hear(&Event::Mirrored(&self.listener.metrics, what));
        // Nobody takes what is left of the answer for all of it.
        self.is_amid_answer = false;
    }
}

/// Counts a copy on its way.
struct MirrorTurn(Rc<Shard>);

impl MirrorTurn {
    /// Nothing where there are as many as a thread may have.
    fn take(shard: &Rc<Shard>) -> Option<MirrorTurn> {
        let threads = u32::try_from(shard.shared.threads()).unwrap_or(u32::MAX).max(1);
        let max = shard.local().live.plan.mirrors_max.div_ceil(threads);
        (shard.mirrors.get() < max).then(|| {
            shard.mirrors.set(shard.mirrors.get() + 1);
            MirrorTurn(shard.clone())
        })
    }
}

impl Drop for MirrorTurn {
    fn drop(&mut self) {
        self.0.mirrors.set(self.0.mirrors.get() - 1);
    }
}

/// Who takes the answer to a copy: all of it, and at once.
pub(crate) struct Nobody;

impl Transport for Nobody {
    fn plain(&self) -> Option<&Tcp> {
        None
    }

    fn presence(&mut self, _: &mut Context<'_>) -> Presence {
        Presence::Open
    }

    fn taken_bytes(&self) -> Option<u64> {
        None
    }

    fn break_off(&mut self) {}

    fn has_news(&mut self) -> bool {
        false
    }

    /// It was given the whole request.
    fn poll_read_into(&mut self, _: &mut Context<'_>, _: &mut PooledBuffer) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(0))
    }
}

impl AsyncWrite for Nobody {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
