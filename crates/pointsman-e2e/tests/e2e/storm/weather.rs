//! What happens to the servers, by chance: at any time some of them have been up for a while.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use pointsman_e2e::Random;

use super::server::{Server, State};

/// How long a server must have been up to count as healthy: the switch knows it by then.
pub(super) const SETTLED: Duration = Duration::from_millis(1500);
/// So many are healthy at any time.
const HEALTHY_MIN: usize = 2;

/// What was done, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deeds {
    pub(super) killed: u64,
    pub(super) stalled: u64,
    pub(super) slowed: u64,
    pub(super) restored: u64,
}

/// Changes the servers until told to stop; then all are up again.
pub(super) fn rage(servers: &mut [Server], mut chance: Random, stop: &Receiver<()>) -> Deeds {
    let mut deeds = Deeds::default();
    loop {
        let pause = Duration::from_millis(50 + u64::try_from(chance.below(250)).expect("small"));
        match stop.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => break,
        }
        let index = chance.below(servers.len());
        if !servers[index].is(State::Up) {
            // Some come back at once, others only when nobody waits for them any more.
            if chance.below(3) == 0 {
                servers[index].become_so(State::Up, false);
                deeds.restored += 1;
            }
        } else if others_are_healthy(servers, index) {
            strike(&mut servers[index], &mut chance, &mut deeds);
        }
    }
    for server in servers.iter_mut().filter(|server| !server.is(State::Up)) {
        server.become_so(State::Up, false);
    }
    deeds
}

fn others_are_healthy(servers: &[Server], index: usize) -> bool {
    let now = Instant::now();
    let is_healthy = |server: &Server| server.up_since().is_some_and(|since| now - since >= SETTLED);
    let healthy = servers.iter().enumerate().filter(|(other, server)| *other != index && is_healthy(server));
    healthy.count() >= HEALTHY_MIN
}

fn strike(server: &mut Server, chance: &mut Random, deeds: &mut Deeds) {
    // In turn, so that a short storm has of all.
    match (deeds.killed + deeds.stalled + deeds.slowed) % 5 {
        0 | 2 => {
            server.become_so(State::Dead, chance.below(2) == 0);
            deeds.killed += 1;
        }
        1 | 4 => {
            server.become_so(State::Stalled, false);
            deeds.stalled += 1;
        }
        _ => {
            let delay = Duration::from_millis(5 + u64::try_from(chance.below(60)).expect("small"));
            server.become_so(State::Slow(delay), false);
            deeds.slowed += 1;
        }
    }
}
