//! Who stays with one agent through a run, on a thread of its own, and says what was heard of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::super::Clock;
use super::super::link::{Link, Lost, Message, SILENCE_MAX};
use crate::clock::now_ns;
use crate::part::Part;
use crate::{Fault, Plan, Progress};

/// How often an agent is asked for the time.
const PINGS: usize = 9;
/// How soon it is noticed that an agent's words are not wanted any more.
const LOOK: Duration = Duration::from_millis(100);

/// What was heard of an agent.
pub(super) enum Heard {
    Ready(Clock),
    Progress(Progress),
    Done(Box<Part>),
    Failed(Fault),
    Lost(Lost),
}

/// What all companions are told.
#[derive(Default)]
pub(super) struct Calls {
    is_cut: AtomicBool,
    is_over: AtomicBool,
    /// When load ends, by the controller's clock; 0 where nobody has said.
    ends_ns: AtomicU64,
}

impl Calls {
    /// Load ends then, and what is under way is waited for.
    pub(super) fn end_at(&self, at_ns: u64) {
        self.ends_ns.store(at_ns, Ordering::Relaxed);
    }

    /// Load ends now, and what there is by now is wanted.
    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Nothing more is wanted.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Stays with one agent from the plan to what came of it.
pub(super) fn accompany(
    link: &mut Link,
    (errand, plan): (&Message, &Plan),
    started: &Receiver<u64>,
    calls: &Calls,
    tell: &dyn Fn(Heard),
) -> Result<(), Lost> {
    let unexpected = || Err(Lost::out_of_turn());
    link.send(errand)?;
    link.listen();
    match next(link, calls, ready_max(plan))? {
        Some(Message::Ready) => {}
        Some(Message::Failed(fault)) => {
            tell(Heard::Failed(fault));
            return Ok(());
        }
        Some(_) => return unexpected(),
        None => return Ok(()),
    }
    let clock = tell_time(link)?;
    tell(Heard::Ready(clock));
    let begin_ns = loop {
        match started.recv_timeout(LOOK) {
            Ok(begin_ns) => break begin_ns,
            Err(RecvTimeoutError::Timeout) if link.attend(Duration::ZERO)?.is_none() => {}
            Err(RecvTimeoutError::Timeout) => return unexpected(),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    };
    link.send(&Message::Start { begin_ns: begin_ns.saturating_add_signed(clock.ahead_ns) })?;
    // Once a second, and a few because clocks differ.
    let mut progress_left = (plan.warm_up + plan.time).as_secs() + 5;
    let (mut is_told, mut is_told_end) = (false, false);
    loop {
        let ends_ns = calls.ends_ns.load(Ordering::Relaxed);
        if !is_told_end && ends_ns > 0 {
            link.send(&Message::End { at_ns: ends_ns.saturating_add_signed(clock.ahead_ns) })?;
            is_told_end = true;
        }
        if !is_told && calls.is_cut.load(Ordering::Relaxed) {
            link.send(&Message::Cut)?;
            is_told = true;
        }
        if calls.is_over.load(Ordering::Relaxed) {
            return Ok(());
        }
        match link.attend(LOOK)? {
            None => {}
            Some(Message::Progress(progress)) if progress_left > 0 => {
                progress_left -= 1;
                tell(Heard::Progress(progress));
            }
            Some(Message::Done(part)) => {
                tell(Heard::Done(part));
                return Ok(());
            }
            Some(Message::Failed(fault)) => {
                tell(Heard::Failed(fault));
                return Ok(());
            }
            Some(_) => return unexpected(),
        }
    }
}

/// What an agent reaches before servers that do nothing.
pub(super) fn ceiling(
    link: &mut Link,
    (errand, plan): (&Message, &Plan),
) -> Result<Result<f64, Fault>, Lost> {
    link.send(errand)?;
    link.listen();
    // As long as to get ready, and a few seconds of load.
    match next(link, &Calls::default(), ready_max(plan).saturating_add(plan.timeout + 2 * SILENCE_MAX))? {
        Some(Message::Ceiling(per_s)) => Ok(Ok(per_s)),
        Some(Message::Failed(fault)) => Ok(Err(fault)),
        _ => Err(Lost::out_of_turn()),
    }
}

/// How long an agent may take to get ready: it asks for each thing once, with each thread at the most, and opens connections.
fn ready_max(plan: &Plan) -> Duration {
    let asked = u32::try_from(plan.targets.len() * plan.threads).unwrap_or(u32::MAX);
    plan.timeout.saturating_mul(asked.saturating_add(1)).saturating_add(SILENCE_MAX)
}

/// What an agent says next, within that time. Nothing: it is over before that.
fn next(link: &mut Link, calls: &Calls, within: Duration) -> Result<Option<Message>, Lost> {
    let since = Instant::now();
    while !calls.is_over.load(Ordering::Relaxed) {
        if let Some(message) = link.attend(LOOK)? {
            return Ok(Some(message));
        }
        if since.elapsed() > within {
            return Err(Lost::Broken(format!("it was not ready within {} s", within.as_secs())));
        }
    }
    Ok(None)
}

/// The round trip that took the shortest time says most about the agent's clock: it is what we have in the middle of it.
fn tell_time(link: &mut Link) -> Result<Clock, Lost> {
    let mut best: Option<Clock> = None;
    for _ in 0..PINGS {
        let sent_ns = now_ns();
        link.send(&Message::Ping)?;
        let theirs_ns = pong(link)?;
        let round_trip_ns = now_ns() - sent_ns;
        let ahead_ns = theirs_ns.wrapping_sub(sent_ns + round_trip_ns / 2) as i64;
        if best.is_none_or(|best| round_trip_ns < best.round_trip_ns) {
            best = Some(Clock { ahead_ns, round_trip_ns });
        }
    }
    best.ok_or(Lost::Closed)
}

/// An agent's time, which comes soon, however much else it says.
fn pong(link: &mut Link) -> Result<u64, Lost> {
    let until = Instant::now() + SILENCE_MAX;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Lost::Broken("it does not say what time it is".to_owned()));
        }
        match link.receive(left)? {
            Some(Message::Pong { now_ns }) => return Ok(now_ns),
            Some(Message::Beat) | None => {}
            Some(_) => return Err(Lost::Broken("it does not say what time it is".to_owned())),
        }
    }
}
