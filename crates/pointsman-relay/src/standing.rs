//! How a server stands: what probes say of it, what was set by hand, and whether it is ejected for a while.
//!
//! Every request of every thread reads it, without a lock. It is written when something changes, which is seldom: by
//! the control thread, and by whichever thread sees a server fail.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use pointsman_balance::Breaker;
use pointsman_telemetry::OwnLines;

use crate::history::{History, Kept, ServerState};

/// Why nothing is known of a server any more.
pub(crate) const NOT_PROBED: &str = "it is not probed any more";

/// What probes say of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Nobody probes it, or has yet: it is taken to be up.
    #[default]
    Unknown,
    /// It gets nothing until the first probe has said that it is up.
    Starting,
    /// It answers as it should.
    Up,
    /// It does not.
    Down,
}

/// What was set by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// It takes whom it gets.
    #[default]
    Enabled,
    /// Only clients that stay with it; those that are new go elsewhere.
    Draining,
    /// Nobody. What is open goes on.
    Disabled,
}

impl Health {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Health::Unknown => "unknown",
            Health::Starting => "starting",
            Health::Up => "up",
            Health::Down => "down",
        }
    }
}

impl Admission {
    /// All of them.
    pub const ALL: [Admission; 3] = [Admission::Enabled, Admission::Draining, Admission::Disabled];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Admission::Enabled => "enabled",
            Admission::Draining => "draining",
            Admission::Disabled => "disabled",
        }
    }
}

/// Who asks for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newcomer {
    /// Somebody whom any server of the pool may serve.
    New,
    /// A client that is with this one already, and stays.
    Sticky,
}

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// The server answered as it should.
    Passed,
    /// There was no connection.
    Connect,
    /// The TLS handshake failed, or agreed on another protocol.
    Tls,
    /// It took too long.
    Timeout,
    /// The answer was torn, or is none.
    Protocol,
    /// It has another status.
    Status,
    /// A field or the body is not as it should be.
    Content,
    /// There was no descriptor or no memory for it: nothing was learned.
    Shortage,
}

/// Probes of a server by what became of them.
#[derive(Debug, Default)]
pub struct ProbeCounts([AtomicU64; ProbeOutcome::ALL.len()]);

impl ProbeOutcome {
    /// All of them, with what they are called in metrics.
    pub const ALL: [(ProbeOutcome, &str); 8] = [
        (ProbeOutcome::Passed, "passed"),
        (ProbeOutcome::Connect, "connect"),
        (ProbeOutcome::Tls, "tls"),
        (ProbeOutcome::Timeout, "timeout"),
        (ProbeOutcome::Protocol, "protocol"),
        (ProbeOutcome::Status, "status"),
        (ProbeOutcome::Content, "content"),
        (ProbeOutcome::Shortage, "shortage"),
    ];
}

impl ProbeCounts {
    pub(crate) fn add(&self, outcome: ProbeOutcome) {
        self.0[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were, by what they are called; of those that have never been none is told.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = ProbeOutcome::ALL.iter().zip(&self.0);
        counts
            .map(|((_, name), count)| (*name, count.load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
    }
}

/// One server's standing. It outlives reloads, as long as the server stays what it is.
#[derive(Debug, Default)]
pub struct Standing {
    record: OwnLines<Record>,
    probes: ProbeCounts,
    ejections: AtomicU64,
    ejections_told: AtomicU64,
    history: History,
}

/// What is read together lies together.
#[derive(Debug, Default)]
struct Record {
    health: AtomicU8,
    admission: AtomicU8,
    /// Bits of a [`Breaker`].
    breaker: AtomicU64,
    up_since_us: AtomicU64,
}

impl Standing {
    /// Of a server that is new. `up_since_us`: 0 for one that was there when the switch began.
    pub(crate) fn new(up_since_us: u64) -> Standing {
        let standing = Standing { history: History::since(up_since_us), ..Standing::default() };
        standing.record.up_since_us.store(up_since_us, Ordering::Relaxed);
        standing
    }

    /// Whether a client may get to it. All times are on the switch's clock.
    #[inline]
    pub fn admits(&self, who: Newcomer, now_us: u64) -> bool {
        match self.admission() {
            Admission::Enabled => self.is_healthy(now_us),
            Admission::Draining => who == Newcomer::Sticky && self.is_healthy(now_us),
            Admission::Disabled => false,
        }
    }

    /// Whether it may get a client that is new to it.
    #[inline]
    pub fn is_usable(&self, now_us: u64) -> bool {
        self.admits(Newcomer::New, now_us)
    }

    /// Whether nothing speaks against it but what was set by hand.
    #[inline]
    pub fn is_healthy(&self, now_us: u64) -> bool {
        matches!(self.health(), Health::Unknown | Health::Up) && !self.is_ejected(now_us)
    }

    /// What probes say.
    #[inline]
    pub fn health(&self) -> Health {
        match self.record.health.load(Ordering::Relaxed) {
            1 => Health::Starting,
            2 => Health::Up,
            3 => Health::Down,
            _ => Health::Unknown,
        }
    }

    /// Notes what probes say, and why.
    pub fn set_health(&self, health: Health, why: &str, now_us: u64) {
        let was_healthy = self.is_healthy(now_us);
        let before = self.record.health.swap(health as u8, Ordering::Relaxed);
        self.came_up(was_healthy, now_us);
        if before != health as u8 {
            self.note(why, now_us);
        }
    }

    /// What was set by hand.
    #[inline]
    pub fn admission(&self) -> Admission {
        match self.record.admission.load(Ordering::Relaxed) {
            1 => Admission::Draining,
            2 => Admission::Disabled,
            _ => Admission::Enabled,
        }
    }

    /// Whether it was set by hand so that it takes nobody who is new.
    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.admission() == Admission::Draining
    }

    /// Sets it by hand, and notes why.
    pub fn set_admission(&self, admission: Admission, why: &str, now_us: u64) {
        let before = self.record.admission.swap(admission as u8, Ordering::Relaxed);
        if before == Admission::Disabled as u8 && admission == Admission::Enabled {
            self.record.up_since_us.store(now_us, Ordering::Relaxed);
        }
        self.note(why, now_us);
    }

    /// How it is, in a word: what keeps most from it counts most.
    pub fn state(&self) -> ServerState {
        match (self.admission(), self.health()) {
            (Admission::Disabled, _) => ServerState::Disabled,
            (_, Health::Down) => ServerState::Down,
            (_, Health::Starting) => ServerState::Starting,
            _ if !self.breaker().is_closed() => ServerState::Ejected,
            (Admission::Draining, _) => ServerState::Draining,
            (Admission::Enabled, Health::Up | Health::Unknown) => ServerState::Up,
        }
    }

    /// What has become of it lately.
    pub(crate) fn history(&self) -> Kept {
        self.history.kept()
    }

    /// What was set by hand holds on from the server that had this one's name.
    pub(crate) fn take_over(&self, before: &Standing, now_us: u64) {
        let admission = before.admission();
        if admission != self.admission() {
            self.set_admission(admission, "set before its address changed", now_us);
        }
    }

    /// Takes over what has become of the server that had this one's name.
    pub(crate) fn remember(&self, before: &Standing) {
        self.history.follow(&before.history);
    }

    /// Notes what was heard of it.
    pub(crate) fn note(&self, why: &str, now_us: u64) {
        self.history.note(now_us, why, || self.state());
    }

    /// Whether it gets nothing for a while, because requests failed there.
    #[inline]
    pub fn is_ejected(&self, now_us: u64) -> bool {
        self.breaker().is_open(now_us / 1000)
    }

    /// Lets everybody to it that was kept from it for a while, and forgets what has failed there.
    pub fn readmit(&self, why: &str, now_us: u64) {
        if !self.change_breaker(|_| Breaker::default()).is_closed() {
            self.comes_back(why, now_us);
        }
    }

    /// What failures of requests have come to.
    #[inline]
    pub(crate) fn breaker(&self) -> Breaker {
        Breaker::of_bits(self.record.breaker.load(Ordering::SeqCst))
    }

    /// Changes that, and says what it was before.
    pub(crate) fn change_breaker(&self, change: impl Fn(Breaker) -> Breaker) -> Breaker {
        let changed = |bits| Some(change(Breaker::of_bits(bits)).to_bits());
        let (Ok(before) | Err(before)) =
            self.record.breaker.fetch_update(Ordering::SeqCst, Ordering::SeqCst, changed);
        Breaker::of_bits(before)
    }

    /// It gets nothing from now on, for a while.
    pub(crate) fn was_ejected(&self, why: &str, now_us: u64) {
        self.ejections.fetch_add(1, Ordering::Relaxed);
        self.note(why, now_us);
    }

    /// How often it was ejected.
    pub fn ejections(&self) -> u64 {
        self.ejections.load(Ordering::Relaxed)
    }

    /// Whether it was since this was last asked. For the control thread.
    pub(crate) fn takes_ejections(&self) -> bool {
        let now = self.ejections();
        self.ejections_told.swap(now, Ordering::Relaxed) != now
    }

    /// A rest is over, and its weight may grow from now on.
    pub(crate) fn comes_back(&self, why: &str, now_us: u64) {
        self.record.up_since_us.store(now_us, Ordering::Relaxed);
        self.note(why, now_us);
    }

    /// Since when it has been up; 0: since the switch began.
    #[inline]
    pub fn up_since_us(&self) -> u64 {
        self.record.up_since_us.load(Ordering::Relaxed)
    }

    /// Probes of it so far.
    pub fn probes(&self) -> &ProbeCounts {
        &self.probes
    }

    fn came_up(&self, was_healthy: bool, now_us: u64) {
        if !was_healthy && self.is_healthy(now_us) {
            self.record.up_since_us.store(now_us, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use pointsman_balance::BreakerLimits;

    use super::*;

    const NOW_US: u64 = 1_000_000;

    /// What a standing lets in of new and of sticky clients.
    fn admitted(standing: &Standing, now_us: u64) -> (bool, bool) {
        (standing.admits(Newcomer::New, now_us), standing.admits(Newcomer::Sticky, now_us))
    }

    #[test]
    fn health_and_hand_decide_together() {
        for (health, healthy) in
            [(Health::Unknown, true), (Health::Starting, false), (Health::Up, true), (Health::Down, false)]
        {
            for (admission, new, sticky) in [
                (Admission::Enabled, true, true),
                (Admission::Draining, false, true),
                (Admission::Disabled, false, false),
            ] {
                let standing = Standing::new(0);
                standing.set_health(health, "probe", NOW_US);
                standing.set_admission(admission, "hand", NOW_US);
                assert_eq!((standing.health(), standing.admission()), (health, admission));
                assert_eq!(admitted(&standing, NOW_US), (healthy && new, healthy && sticky), "{standing:?}");
            }
        }
    }

    const LIMITS: BreakerLimits = BreakerLimits { failures_max: 1, open_ms: 500, open_ms_max: 500 };

    #[test]
    fn an_ejection_ends_by_itself_or_by_hand() {
        let standing = Standing::new(0);
        standing.change_breaker(|breaker| breaker.failed(false, 500, LIMITS).0);
        assert_eq!(admitted(&standing, NOW_US - 1), (false, false));
        assert_eq!(admitted(&standing, NOW_US), (true, true));
        standing.readmit("hand", NOW_US / 2);
        assert_eq!(admitted(&standing, NOW_US / 2), (true, true));
        assert_eq!(standing.up_since_us(), NOW_US / 2);
    }

    #[test]
    fn what_keeps_most_from_it_is_its_state() {
        let standing = Standing::new(0);
        let mut expected = vec![];
        let mut check = |state, why| {
            assert_eq!(standing.state(), state, "{why}");
            expected.push((state, why));
        };
        standing.set_admission(Admission::Draining, "a", 1);
        check(ServerState::Draining, "a");
        standing.change_breaker(|breaker| breaker.failed(false, 1, LIMITS).0);
        standing.was_ejected("b", 1);
        check(ServerState::Ejected, "b");
        standing.set_health(Health::Down, "c", 1);
        check(ServerState::Down, "c");
        standing.set_admission(Admission::Disabled, "d", 1);
        check(ServerState::Disabled, "d");
        standing.set_health(Health::Down, "nothing new", 1);
        standing.set_health(Health::Up, "e", 1);
        check(ServerState::Disabled, "e");
        standing.readmit("f", 1);
        check(ServerState::Disabled, "f");
        standing.set_admission(Admission::Enabled, "g", 1);
        check(ServerState::Up, "g");
        let kept = standing.history().changes;
        assert_eq!(kept.iter().map(|kept| (kept.state, &*kept.why)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn it_is_up_since_it_last_came_up() {
        let standing = Standing::new(0);
        standing.set_health(Health::Up, "probe", 1);
        assert_eq!(standing.up_since_us(), 0, "it was taken to be up before");
        standing.set_health(Health::Down, "probe", 2);
        standing.set_health(Health::Up, "probe", 3);
        assert_eq!(standing.up_since_us(), 3);
        standing.set_admission(Admission::Draining, "hand", 4);
        standing.set_admission(Admission::Enabled, "hand", 5);
        assert_eq!(standing.up_since_us(), 3, "it served all the time");
        standing.set_admission(Admission::Disabled, "hand", 6);
        standing.set_admission(Admission::Enabled, "hand", 7);
        assert_eq!(standing.up_since_us(), 7);
    }
}
