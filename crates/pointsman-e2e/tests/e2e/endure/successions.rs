//! Upgrades, and reloads to another number of threads, under load: who connects, and who asks on a connection that it
//! has, sees nothing of them.

use std::io::{Error, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use pointsman_e2e::{Bound, Client, Origin, PATIENCE, SetOnDrop, Setup, Switch, Unit, figure, scale, until};

pointsman_e2e::for_threads!(who_connects, who_stays, who_connects_through_reloads, who_stays_through_reloads,);

const CLIENTS: usize = 8;

fn who_connects(threads: usize) {
    under_load(threads, Change::Upgrade, "who connects", connects);
}

fn who_stays(threads: usize) {
    under_load(threads, Change::Upgrade, "who stays", stays);
}

fn who_connects_through_reloads(threads: usize) {
    under_load(threads, Change::Reload, "who connects", connects);
}

fn who_stays_through_reloads(threads: usize) {
    under_load(threads, Change::Reload, "who stays", stays);
}

/// How the number of threads becomes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Upgrade,
    Reload,
}

/// Every request on a connection of its own.
fn connects(load: &Load) {
    while load.goes_on() {
        load.note(ask_alone(load.address));
    }
}

/// One connection after the other, each for as long as its answers do not say that it ends.
fn stays(load: &Load) {
    while load.goes_on() {
        let mut client = Client::plain(load.address);
        while load.goes_on() {
            match ask_again(&mut client) {
                Ok(is_last) => {
                    load.note(Ok(()));
                    if is_last {
                        break;
                    }
                }
                Err(error) => {
                    load.note(Err(error));
                    break;
                }
            }
        }
    }
}

struct Load {
    address: SocketAddr,
    answered: AtomicU64,
    failed: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

impl Load {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    fn note(&self, outcome: Result<()>) {
        match outcome {
            Ok(()) => drop(self.answered.fetch_add(1, Ordering::Relaxed)),
            Err(error) => self.failed.lock().expect("no panic under the lock").push(format!("{error:?}")),
        }
    }

    /// Waits for some more answers.
    fn go_on(&self) {
        let enough = self.answered.load(Ordering::Relaxed) + scale(100, 2000);
        until("answers", || (self.answered.load(Ordering::Relaxed) >= enough).then_some(()));
    }
}

/// Changes to other numbers of threads, from four to two and back among them, while clients ask.
fn under_load(threads: usize, change: Change, what: &str, client: fn(&Load)) {
    let origin = Origin::new("origin");
    let setup = |threads| Setup::new(threads).top("drain_ms_max = 60000").pool("standard", &[&origin]);
    let mut switch: Switch = setup(threads).start();
    let load = Load {
        address: switch.address("shop"),
        answered: AtomicU64::new(0),
        failed: Mutex::default(),
        is_over: AtomicBool::new(false),
    };
    let others = [2, threads, 4, 2, 4];
    thread::scope(|scope| {
        let _over = SetOnDrop(&load.is_over);
        for _ in 0..CLIENTS {
            scope.spawn(|| client(&load));
        }
        for (threads, generation) in others.into_iter().zip(2..) {
            load.go_on();
            match change {
                Change::Upgrade => {
                    switch.upgrade_to(&setup(threads));
                    switch.wait_for_predecessors();
                }
                Change::Reload => switch.reload(&setup(threads), generation),
            }
        }
        load.go_on();
    });
    let failed = load.failed.lock().expect("no panic under the lock");
    if change == Change::Reload {
        switch.wait_for_threads(4);
    }
    let fault = format!("{} times {change:?}, {what}, {threads} threads", others.len());
    figure(&fault, failed.len() as u64, Unit::Count("failed requests"), Bound::Exactly(0));
    assert!(!switch.said().contains("drain cut"), "{}", switch.said());
}

fn ask_alone(address: SocketAddr) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    match answer.starts_with(b"HTTP/1.1 200 ") && answer.windows(4).any(|end| end == b"\r\n\r\n") {
        true => Ok(()),
        false => Err(Error::other(String::from_utf8_lossy(&answer).into_owned())),
    }
}

fn ask_again(client: &mut Client) -> Result<bool> {
    client.try_send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")?;
    let answer = client.try_response()?;
    match answer.status() {
        200 => Ok(answer.head.field("connection") == Some("close")),
        status => Err(Error::other(status.to_string())),
    }
}
