//! Four servers are killed, stalled, slowed and started again at random, and nobody who asks loses an answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use pointsman_e2e::{Bound, Client, Head, Random, SetOnDrop, Setup, Switch, Unit, figure, pause, scale};

use super::chance;
use super::server::{Server, Watch, body};
use super::weather::{Deeds, SETTLED, rage};

pointsman_e2e::for_threads!(four_servers);

/// Clients that ask on and on; every second one wants to stay with its server.
const CLIENTS: usize = 8;

/// What probes and tries may take here: short, so that much happens.
const POOL: &str = "\
[pool.standard]
hedge_ms = 150
retry_on = [\"connect\", \"reset\", \"timeout\"]
tries_max = 4
retries_percent_max = 300
try_ms_max = 700
connect_ms_max = 700
response_ms_max = 2000
health = { path = \"/0/health\", interval_ms = 100, timeout_ms = 400, rise = 1, fall = 2 }";

/// Requests that a server may have: where others are down, some clients wait.
const CONNECTIONS_MAX: usize = 4;

/// What became of requests.
#[derive(Clone, Debug, Default)]
struct Seen {
    whole: u64,
    /// Begun by a server that died, stalled or was too slow, and visibly so.
    broken: u64,
    /// Nothing came of them.
    lost: u64,
    /// Answered by the switch: it found no server.
    refused: u64,
    /// They look whole, and are not what a server said.
    wrong: u64,
    /// Of clients that stay: moves away from a server that nothing had happened to.
    moved: u64,
    stayed: u64,
}

impl Seen {
    fn and(self, other: Self) -> Self {
        Self {
            whole: self.whole + other.whole,
            broken: self.broken + other.broken,
            lost: self.lost + other.lost,
            refused: self.refused + other.refused,
            wrong: self.wrong + other.wrong,
            moved: self.moved + other.moved,
            stayed: self.stayed + other.stayed,
        }
    }
}

fn four_servers(threads: usize) {
    let lasts = scale(Duration::from_secs(8), Duration::from_secs(120));
    let fault = format!("servers killed, stalled, slowed for {} s, {threads} threads", lasts.as_secs());
    let mut servers: Vec<Server> = ["s1", "s2", "s3", "s4"].into_iter().map(Server::start).collect();
    let switch = switch(threads, &servers);
    let watches: Vec<Watch> = servers.iter().map(Server::watch).collect();
    let (stop, mut chance) = (AtomicBool::new(false), chance());
    let weather = chance.split();
    let (storm, calm) = channel();
    let (seen, deeds): (Seen, Deeds) = std::thread::scope(|scope| {
        let visitors = (0..CLIENTS).map(|number| Visitor::new(&switch, &watches, number, chance.split()));
        let over = SetOnDrop(&stop);
        let stop = &stop;
        let visitors: Vec<_> =
            visitors.map(|mut visitor| scope.spawn(move || visitor.ask_until(stop))).collect();
        let all = &mut servers;
        let raging = scope.spawn(move || rage(all, weather, &calm));
        pause(lasts);
        drop(storm);
        let deeds = raging.join().expect("it changes servers only");
        drop(over);
        let seen = visitors.into_iter().map(|visitor| visitor.join().expect("it counts only"));
        (seen.fold(Seen::default(), Seen::and), deeds)
    });
    let won = switch.metric("pointsman_hedges_total", &[("outcome", "won")]) as u64;
    figure(
        &fault,
        won,
        Unit::Count("answers of a second server beside a slow one"),
        Bound::AtLeast(each_min()),
    );
    report(&fault, &seen, deeds);
}

fn switch(threads: usize, servers: &[Server]) -> Switch {
    let entries = servers.iter().map(|server| {
        let (name, address) = (server.name(), server.address());
        format!("{{ name = \"{name}\", address = \"{address}\", connections_max = {CONNECTIONS_MAX} }}")
    });
    let pool = format!("{POOL}\nservers = [{}]", entries.collect::<Vec<_>>().join(", "));
    Setup::new(threads)
        .top("[access_log]\npath = \"access.log\"")
        .rules("if (header[\"x-stays\"] exists) { routeTo(standard, STICKY_ON_COOKIE); }")
        .raw(&pool)
        .default_pool("standard")
        .start()
}

/// So much of each is to be seen.
fn each_min() -> u64 {
    scale(1, 10)
}

fn report(fault: &str, seen: &Seen, deeds: Deeds) {
    let Deeds { killed, stalled, slowed, restored } = deeds;
    for (count, what) in
        [(killed, "killed"), (stalled, "stalled"), (slowed, "slowed"), (restored, "up again")]
    {
        figure(fault, count, Unit::Count(what), Bound::AtLeast(each_min()));
    }
    figure(fault, seen.whole, Unit::Count("whole answers"), Bound::AtLeast(scale(200, 10_000)));
    figure(fault, seen.lost, Unit::Count("requests without an answer"), Bound::Exactly(0));
    figure(fault, seen.refused, Unit::Count("answers of 5xx"), Bound::Exactly(0));
    figure(fault, seen.wrong, Unit::Count("answers that look whole and are not"), Bound::Exactly(0));
    // As many as the storm breaks off: no bound but that most are whole.
    figure(
        fault,
        seen.broken,
        Unit::Count("begun answers that broke off, visibly"),
        Bound::AtMost(seen.whole / 10),
    );
    figure(fault, seen.stayed, Unit::Count("requests that stayed with their server"), Bound::AtLeast(1));
    // A machine that stops for a moment looks like a server that does.
    figure(
        fault,
        seen.moved,
        Unit::Count("moves from a server that was well"),
        Bound::AtMost(seen.stayed / 500),
    );
}

/// A client that asks without a pause.
struct Visitor<'s> {
    switch: &'s Switch,
    watches: &'s [Watch],
    chance: Random,
    /// Tells its requests from all others.
    number: usize,
    asked: usize,
    client: Client,
    stays: bool,
    cookie: Option<String>,
    /// Who answered last, and when that was asked.
    last: Option<(String, Instant)>,
    seen: Seen,
}

/// What came of one request.
enum Outcome {
    Whole { server: String, cookie: Option<String> },
    Broken,
    Lost,
    Refused,
    Wrong,
}

impl<'s> Visitor<'s> {
    fn new(switch: &'s Switch, watches: &'s [Watch], number: usize, chance: Random) -> Self {
        let (client, stays) = (switch.client(), number % 2 == 1);
        let seen = Seen::default();
        Self { switch, watches, chance, number, asked: 0, client, stays, cookie: None, last: None, seen }
    }

    fn ask_until(&mut self, stop: &AtomicBool) -> Seen {
        while !stop.load(Ordering::Relaxed) {
            let asked = Instant::now();
            let outcome = self.ask();
            if !matches!(outcome, Outcome::Whole { .. }) {
                self.client = self.switch.client();
            }
            match outcome {
                Outcome::Whole { server, cookie } => self.is_answered(server, cookie, asked),
                Outcome::Broken => self.seen.broken += 1,
                Outcome::Lost => self.seen.lost += 1,
                Outcome::Refused => self.seen.refused += 1,
                Outcome::Wrong => self.seen.wrong += 1,
            }
        }
        self.seen.clone()
    }

    fn is_answered(&mut self, server: String, cookie: Option<String>, asked: Instant) {
        self.seen.whole += 1;
        if !self.stays {
            return;
        }
        self.cookie = cookie.or(self.cookie.take());
        if let Some((last, then)) = &self.last {
            let watch = self.watches.iter().find(|watch| watch.name() == last).expect("one of them");
            // Whoever was well before, and is so still.
            let was_well = watch.up_since().is_some_and(|since| since + SETTLED <= *then);
            match (*last == server, was_well) {
                (true, _) => self.seen.stayed += 1,
                (false, true) => self.seen.moved += 1,
                (false, false) => {}
            }
        }
        self.last = Some((server, asked));
    }

    fn ask(&mut self) -> Outcome {
        const LENGTHS: [usize; 6] = [0, 1, 100, 9_000, 40_001, 200_000];
        const METHODS: [&str; 5] = ["GET", "GET", "HEAD", "PUT", "DELETE"];
        self.asked += 1;
        let length = self.chance.one(&LENGTHS);
        let method = self.chance.one(&METHODS);
        let target = format!("/{length}/{}-{}", self.number, self.asked);
        let mut request = format!("{method} {target} HTTP/1.1\r\nHost: shop.example\r\n");
        if self.stays {
            request.push_str("X-Stays: 1\r\n");
        }
        if let Some(cookie) = &self.cookie {
            request.push_str(&format!("Cookie: {cookie}\r\n"));
        }
        match method {
            "PUT" => request.push_str("Content-Length: 5\r\n\r\nhello"),
            _ => request.push_str("\r\n"),
        }
        if self.client.try_send(&request).is_err() {
            return Outcome::Lost;
        }
        if method == "HEAD" {
            let Ok(answer) = self.client.try_response_to_head() else { return Outcome::Lost };
            return judged(&answer.head, None, &target);
        }
        let Ok(head) = self.client.try_head() else { return Outcome::Lost };
        match self.client.rest() {
            Ok(body) => judged(&head, Some(&body.bytes), &target),
            Err(_) if head.word(1) == "200" => Outcome::Broken,
            Err(_) => Outcome::Refused,
        }
    }
}

fn judged(head: &Head, came: Option<&[u8]>, target: &str) -> Outcome {
    let server = head.field("x-server").unwrap_or_default().to_owned();
    let cookie = head.field("set-cookie").and_then(|line| line.split(';').next()).map(str::to_owned);
    match head.word(1) {
        "200" if came.is_none_or(|came| came == body(&server, target)) => Outcome::Whole { server, cookie },
        "200" => Outcome::Wrong,
        _ => Outcome::Refused,
    }
}
