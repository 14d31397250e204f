//! What clients, servers and operators may do to the switch, and what it costs: small here, in full by
//! `cargo xtask endure`, which shows the figures.

mod crowds;
mod descriptors;
mod dying_servers;
mod framed;
mod http2_floods;
mod http2_holds;
mod known_servers;
mod large_bodies;
mod large_rules;
mod limits;
mod memory;
mod pressure;
mod questions;
mod reloads;
mod successions;
mod tls_sessions;
mod tunnels;

use std::io::Write;
use std::time::Duration;

use pointsman_e2e::{
    Bound, Client, Exchange, Setup, Switch, Then, Unit, descriptors_of_this_process, figure, ok, pause,
    scale, until,
};

/// Descriptors of a test process that are for nobody of a crowd.
const OTHER_DESCRIPTORS: u64 = 600;

/// So many connections, for each of which this process needs so many descriptors, and the switch as many. A small
/// crowd may be smaller still where there are not enough; a claim that is shown in full may not.
fn crowd(small: usize, full: usize, descriptors_each: u64) -> usize {
    let (limit, wanted) = (descriptors_of_this_process(), scale(small, full));
    let possible = limit.saturating_sub(OTHER_DESCRIPTORS) / descriptors_each;
    let possible = usize::try_from(possible).unwrap_or(usize::MAX);
    let needed = OTHER_DESCRIPTORS + wanted as u64 * descriptors_each;
    assert!(
        scale(true, wanted <= possible),
        "{wanted} in full need {needed} descriptors, and {limit} may be had (`ulimit -Hn`)"
    );
    wanted.min(possible)
}

/// Says what was wrong: a count alone says little to whoever has to find out why.
fn tell(what: &str) {
    // Nobody listens to what cannot be said.
    drop(writeln!(std::io::stderr(), "{what}"));
}

/// A setup that takes whole crowds.
fn for_crowds(threads: usize) -> Setup {
    Setup::new(threads).top("connections_max = 100000")
}

fn clients(switch: &Switch, count: usize) -> Vec<Client> {
    (0..count).map(|_| switch.client()).collect()
}

/// As metrics say it.
fn whole(count: usize) -> f64 {
    count.to_string().parse().expect("a number")
}

/// Whether its next request is answered.
fn is_served(client: &mut Client) -> bool {
    let sent = client.try_send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    sent.is_ok() && client.try_response().is_ok_and(|answer| answer.status() == 200)
}

/// So much memory for each of a crowd, and what the allocator takes for each thread: some MiB at a time.
fn each_at_most(bytes: u64, count: usize, threads: usize) -> Bound {
    Bound::AtMost(bytes + (threads * 4 * 1024 * 1024 / count) as u64)
}

/// Milliseconds of a clock tick (`USER_HZ` is 100 wherever Linux runs).
const TICK_MS: u64 = 10;

/// What a switch had used of processors and of memory, to be held against what it has used later.
struct Costs<'s> {
    switch: &'s Switch,
    cpu_ticks: u64,
    allocated_bytes: u64,
}

impl<'s> Costs<'s> {
    fn since(switch: &'s Switch) -> Self {
        Self { switch, cpu_ticks: switch.cpu_ticks(), allocated_bytes: switch.allocated_bytes() }
    }

    /// What each of a crowd has of memory: the most that is resident while somebody else is served all the time.
    fn resident_each(&self, other: &mut Client, count: usize) -> u64 {
        let mut most = 0;
        for _ in 0..50 {
            assert_eq!(other.get("/other").status(), 200);
            most = most.max(self.switch.allocated_bytes());
        }
        most.saturating_sub(self.allocated_bytes) / count as u64
    }

    /// So much of all processors, at the most. Those who are served meanwhile are in it.
    fn cpu(&self, fault: &str, ms_max: u64) {
        let ms = (self.switch.cpu_ticks() - self.cpu_ticks) * TICK_MS;
        figure(fault, ms, Unit::Count("milliseconds of CPU, others' with it"), Bound::AtMost(ms_max));
    }

    /// The same where each of a crowd may cost so much, on top of those who are served meanwhile.
    fn cpu_of(&self, fault: &str, count: usize, us_each_max: u64) {
        const OTHERS_MS: u64 = 100;
        self.cpu(fault, OTHERS_MS + count as u64 * us_each_max / 1000);
    }

    /// So much more memory, at the most.
    fn memory(&self, fault: &str, bytes_max: u64) {
        let grown = self.switch.allocated_bytes().saturating_sub(self.allocated_bytes);
        figure(fault, grown, Unit::Bytes("memory more than before"), Bound::AtMost(bytes_max));
    }
}

/// The answer of a server that takes its time: whoever asks it again and again costs the switch little.
fn unhurried(exchange: &mut Exchange<'_>) -> Then {
    const TIME: Duration = Duration::from_millis(5);
    pause(TIME);
    ok(exchange)
}

/// A setup with so little memory for clients that what is not given back shows.
fn modest(threads: usize) -> Setup {
    Setup::new(threads).top("buffer_bytes_max = 67108864")
}

/// Remembers how the switch is at rest. What it gives says when it is so again: nobody else is connected, no request is
/// at a server, and no more is booked than before.
fn returns_to_rest(switch: &Switch, threads: usize) -> impl Fn(&str) + '_ {
    let gauges = |switch: &Switch| {
        let names = ["pointsman_connections_open", "pointsman_server_in_flight_requests"];
        (names.map(|name| switch.metric(name, &[])), switch.metric("pointsman_buffer_booked_bytes", &[]))
    };
    let ([open, _], booked) = gauges(switch);
    // A thread keeps two steps, of a MiB at most, of what it has once booked.
    let threads = u32::try_from(threads).expect("a few");
    let most = booked + f64::from(2 * threads * 1024 * 1024);
    move |fault| {
        until(&format!("rest behind {fault}"), || {
            let (now, booked) = gauges(switch);
            (now == [open, 0.0] && booked <= most).then_some(())
        });
    }
}
