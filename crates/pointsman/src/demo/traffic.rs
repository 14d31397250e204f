//! Traffic that goes on while the demo is up, so that there is something to watch: a handful of visitors, one request at a
//! time each, who come over TLS and without it, stay with their carts, and now and then meet a slow or a broken page.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::client::Client;
use super::origin::{BROKEN, PICTURES, SLOW};
use super::site::{HOST, Site};
use super::switch::Addresses;
use super::{Stop, visits};

/// So many requests are on their way at a time at most.
const VISITORS: usize = 6;
/// Every third visitor comes without TLS.
const PLAIN_EVERY: usize = 3;
/// After so many requests a visitor connects anew, and the TLS session goes on.
const REQUESTS_A_CONNECTION: usize = 16;
/// After so many somebody else comes in the visitor's place, who belongs to no server yet.
const REQUESTS_A_CUSTOMER: usize = 100;
/// Addresses that are remembered as ours: the lines of their requests are read long before so many more have come.
const ADDRESSES_MAX: usize = 512;
/// A visitor waits from 0.3 to 2.3 times this long between two requests, in waves.
const PAUSE_S: f64 = 0.12;
const WAVE_S: f64 = 9.0;
/// And so long where the switch does not answer.
const TROUBLE: Duration = Duration::from_secs(1);

struct Asked {
    target: &'static str,
    /// Fields of its head beside the usual ones.
    lines: &'static str,
    body: &'static str,
    has_agent: bool,
}

const fn page(target: &'static str) -> Asked {
    Asked { target, lines: "", body: "", has_agent: true }
}

const fn order(lines: &'static str, body: &'static str) -> Asked {
    Asked { lines, body, ..page("/orders") }
}

const fn chat(body: &'static str) -> Asked {
    Asked { lines: "Content-Type: application/json\r\n", body, ..page("/v1/chat/completions") }
}

/// What visitors ask for in turn.
const ASKED: [Asked; 24] = [
    page("/"),
    page("/catalogue/oak"),
    page(PICTURES[0]),
    page("/cart"),
    page("/api/prices"),
    page("/catalogue/birch"),
    order("Content-Type: text/xml\r\n", "<purchase><totalAmount>4000</totalAmount></purchase>"),
    page("/cart"),
    chat(r#"{"model":"llama-3.3-70b","messages":[{"role":"user","content":"which tree?"}]}"#),
    page("/"),
    Asked { lines: "Cookie: customer=gold\r\n", ..page("/catalogue/oak") },
    page(PICTURES[1]),
    page("/api/stock/oak"),
    page("/cart"),
    page("/catalogue/spruce"),
    order("Content-Type: application/json\r\n", r#"{"purchase":{"totalAmount":61000.5}}"#),
    page("/old/shelf"),
    page("/cart"),
    Asked { has_agent: false, ..page("/") },
    chat(r#"{"messages":[{"role":"user","content":"which tree?"}],"model":"mistral-small"}"#),
    page("/api/prices"),
    page("/hello"),
    page("/catalogue/pine"),
    page(""),
];

/// In place of an empty target: mostly a page like others, now and then a slow one, seldom a broken one.
const RARE: [&str; 6] = ["/catalogue/elm", SLOW, "/catalogue/yew", "/catalogue/elm", SLOW, BROKEN];

/// The visitors. They end when it is dropped, and with the process at the latest.
pub(super) struct Traffic(Arc<Shared>);

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    addresses: Mutex<VecDeque<SocketAddr>>,
}

impl Traffic {
    pub(super) fn start(site: &Site, addresses: &Addresses) -> Result<Traffic, Stop> {
        let tls = Arc::new(visits::trusting(site)?);
        let shared = Arc::new(Shared::default());
        for number in 0..VISITORS {
            let (shared, tls, addresses) = (shared.clone(), tls.clone(), *addresses);
            let connect = move || match number % PLAIN_EVERY {
                0 => Client::plain(addresses.plain),
                _ => Client::tls(addresses.tls, &tls, HOST),
            };
            let visitor = Visitor { number, shared, began: Instant::now(), client: None, cookie: None };
            thread::Builder::new()
                .spawn(move || visitor.visit(connect))
                .map_err(Stop::because("no thread for a visitor"))?;
        }
        Ok(Traffic(shared))
    }

    /// Whether a line of the access log is of one of its requests, by the address that they came from.
    pub(super) fn is_its_own(&self, client: &str) -> bool {
        client.parse().is_ok_and(|client| self.0.addresses().contains(&client))
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn addresses(&self) -> MutexGuard<'_, VecDeque<SocketAddr>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, address: SocketAddr) {
        let mut addresses = self.addresses();
        if addresses.len() == ADDRESSES_MAX {
            addresses.pop_front();
        }
        addresses.push_back(address);
    }
}

struct Visitor {
    number: usize,
    shared: Arc<Shared>,
    began: Instant,
    client: Option<Client>,
    /// Where the cart is, once an answer has said so.
    cookie: Option<String>,
}

impl Visitor {
    fn visit(mut self, connect: impl Fn() -> io::Result<Client>) {
        // Not all ask for the same at the same time.
        for turn in 5 * self.number.. {
            if self.shared.is_over.load(Ordering::Relaxed) {
                return;
            }
            if turn % REQUESTS_A_CONNECTION == 0 {
                self.client = None;
            }
            if turn % REQUESTS_A_CUSTOMER == 0 {
                self.cookie = None;
            }
            let pause = match self.ask(&request(turn, self.cookie.as_deref()), &connect) {
                Ok(()) => self.pause(),
                Err(_) => {
                    // What went wrong is the switch's to report, and somebody may be stopping it.
                    self.client = None;
                    TROUBLE
                }
            };
            thread::sleep(pause);
        }
    }

    fn ask(&mut self, request: &str, connect: &impl Fn() -> io::Result<Client>) -> io::Result<()> {
        let client = match &mut self.client {
            Some(client) => client,
            none => {
                let client = connect()?;
                self.shared.remember(client.local_address()?);
                none.insert(client)
            }
        };
        let answer = client.exchange(request.as_bytes())?;
        if let Some(route) = answer.cookies.into_iter().find(|cookie| cookie.starts_with("pm_route=")) {
            self.cookie = Some(route);
        }
        Ok(())
    }

    fn pause(&self) -> Duration {
        let wave = (self.began.elapsed().as_secs_f64() / WAVE_S + self.number as f64).sin();
        Duration::from_secs_f64(PAUSE_S * (1.3 + wave))
    }
}

fn request(turn: usize, cookie: Option<&str>) -> String {
    let Asked { target, lines, body, has_agent } = &ASKED[turn % ASKED.len()];
    let rare = RARE[turn / ASKED.len() % RARE.len()];
    let (method, target) = match (target.is_empty(), body.is_empty()) {
        (true, _) => ("GET", rare),
        (false, true) => ("GET", *target),
        (false, false) => ("POST", *target),
    };
    let agent = if *has_agent { "User-Agent: pointsman-demo\r\n" } else { "" };
    let cookie = match (*target == *"/cart", cookie) {
        (true, Some(cookie)) => format!("Cookie: {cookie}\r\n"),
        _ => String::new(),
    };
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    format!("{method} {target} HTTP/1.1\r\nHost: {HOST}\r\n{agent}{lines}{cookie}{length}\r\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_request_comes() {
        let turns = ASKED.len() * RARE.len();
        let all: Vec<String> = (0..turns).map(|turn| request(turn, Some("pm_route=x"))).collect();
        let has = |part: &str| all.iter().filter(|request| request.contains(part)).count();
        for part in
            [SLOW, BROKEN, PICTURES[0], PICTURES[1], "GET /cart ", "POST /orders ", "llama", "mistral"]
        {
            assert!(has(part) > 0, "{part}");
        }
        assert_eq!(has("GET /cart "), has("Cookie: pm_route=x\r\n"), "carts alone");
        assert_eq!(has("User-Agent"), turns - RARE.len(), "one of them says not who it is");
        assert!(has(BROKEN) * 100 < turns, "errors are seldom");
    }

    #[test]
    fn only_so_many_addresses_are_remembered() {
        let shared = Shared::default();
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        (1..=600).for_each(|port| shared.remember(address(port)));
        let traffic = Traffic(Arc::new(shared));
        assert!(traffic.is_its_own("127.0.0.1:600") && !traffic.is_its_own("127.0.0.1:1"));
        assert!(!traffic.is_its_own("127.0.0.1:601") && !traffic.is_its_own("unix:"));
    }
}
