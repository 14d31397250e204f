//! Clients that ask at a steady pace, over connections that they keep and over new ones, and note how long it took.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use pointsman_e2e::Client;

/// How many keep a connection, and how many make a new one for each request.
pub(super) const KEEPING: usize = 4;
const CONNECTING: usize = 2;
/// From the begin of a request to that of the next.
const PACE: Duration = Duration::from_millis(3);

/// A part of a run, of which latencies are held against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Rest,
    Storm,
}

/// What became of requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Noted {
    pub(super) failed: u64,
    /// Kept connections that ended.
    pub(super) closed: u64,
    /// By phase, in microseconds.
    pub(super) rest_us: Vec<u64>,
    pub(super) storm_us: Vec<u64>,
}

/// Clients at work.
pub(super) struct Traffic<'scope> {
    asking: Vec<ScopedJoinHandle<'scope, Noted>>,
    /// Each of them ends when its own is gone.
    go_on: Vec<Sender<()>>,
}

/// Which phase it is: shared by all who ask.
#[derive(Debug, Default)]
pub(super) struct Clock(AtomicUsize);

impl Clock {
    pub(super) fn set(&self, phase: Phase) {
        self.0.store(usize::from(phase == Phase::Storm), Ordering::SeqCst);
    }

    fn phase(&self) -> Phase {
        if self.0.load(Ordering::SeqCst) == 0 { Phase::Rest } else { Phase::Storm }
    }
}

impl<'scope> Traffic<'scope> {
    /// Begins with as many clients as there are; `connect` makes a connection, `is_good` looks at an answer.
    pub(super) fn begin<'env>(
        scope: &'scope Scope<'scope, 'env>,
        clock: &'scope Clock,
        connect: &'scope (impl Fn() -> Client + Sync),
        is_good: &'scope (impl Fn(&str) -> bool + Sync),
    ) -> Self {
        let (mut asking, mut go_on) = (Vec::new(), Vec::new());
        for number in 0..KEEPING + CONNECTING {
            let (sender, stop) = channel();
            go_on.push(sender);
            let keeps = number < KEEPING;
            asking.push(scope.spawn(move || ask(clock, connect, is_good, keeps, &stop)));
        }
        Self { asking, go_on }
    }

    /// Ends it, and says what was noted by all.
    pub(super) fn end(self) -> Noted {
        drop(self.go_on);
        let mut all = Noted::default();
        for asking in self.asking {
            let noted = asking.join().expect("it notes only");
            all.failed += noted.failed;
            all.closed += noted.closed;
            all.rest_us.extend(noted.rest_us);
            all.storm_us.extend(noted.storm_us);
        }
        all
    }
}

#[expect(clippy::print_stdout, reason = "shown where the test fails")]
fn ask(
    clock: &Clock,
    connect: &impl Fn() -> Client,
    is_good: &impl Fn(&str) -> bool,
    keeps: bool,
    stop: &Receiver<()>,
) -> Noted {
    let mut noted = Noted::default();
    let mut kept = keeps.then(connect);
    let mut next = Instant::now();
    loop {
        next += PACE;
        if stop.recv_timeout(next.saturating_duration_since(Instant::now())) != Err(RecvTimeoutError::Timeout)
        {
            return noted;
        }
        let (phase, begun) = (clock.phase(), Instant::now());
        let mut client = kept.take().unwrap_or_else(connect);
        let asked = client.try_send("GET /1/x HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        let answer = asked.and_then(|()| client.try_response());
        let us = u64::try_from(begun.elapsed().as_micros()).expect("a while");
        match answer {
            Ok(answer) if answer.status() == 200 && is_good(answer.server()) => {
                let closes = answer.head.field("connection").is_some_and(|said| said == "close");
                if keeps && !closes {
                    kept = Some(client);
                }
                noted.closed += u64::from(keeps && closes);
            }
            odd => {
                println!("failed: {:?}", odd.map(|answer| answer.head));
                noted.failed += 1;
            }
        }
        match phase {
            Phase::Rest => noted.rest_us.push(us),
            Phase::Storm => noted.storm_us.push(us),
        }
    }
}

/// The latency that 99 of 100 requests stay below.
pub(super) fn p99(mut latencies_us: Vec<u64>) -> u64 {
    latencies_us.sort_unstable();
    let place = latencies_us.len() * 99 / 100;
    latencies_us.get(place).copied().unwrap_or_default()
}
