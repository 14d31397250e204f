//! Sticky clients whose server is down: they are put elsewhere and stay there, or wait for it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman_e2e::{Exchange, Origin, Setup, Switch, ok, until};

pointsman_e2e::for_threads!(
    who_is_put_elsewhere_stays_there,
    who_is_idle_goes_home,
    without_room_everybody_goes_home,
    in_each_share_of_a_split,
    fail_waits_for_the_server,
    new_cookies_need_no_exception,
    a_backup_is_nobodys_home
);

const CLIENTS: usize = 40;

/// Servers, and what makes each of them fail its probes.
pub(crate) struct Site {
    origins: Vec<Origin>,
    are_well: Vec<Arc<AtomicBool>>,
}

impl Site {
    pub(crate) fn new() -> Site {
        let (mut origins, mut are_well) = (Vec::new(), Vec::new());
        for name in ["s0", "s1", "s2", "s3"] {
            let is_well = Arc::new(AtomicBool::new(true));
            are_well.push(is_well.clone());
            origins.push(Origin::answering(name, move |exchange: &mut Exchange<'_>| {
                match (exchange.target(), is_well.load(Ordering::SeqCst)) {
                    ("/health", false) => exchange.answer("503 Service Unavailable", ""),
                    _ => ok(exchange),
                }
            }));
        }
        Site { origins, are_well }
    }

    pub(crate) fn setup(&self, threads: usize, rule: &str, keys: &str) -> Setup {
        let health = "path = \"/health\", interval_ms = 100, jitter_percent = 0, rise = 1, fall = 1";
        let servers: Vec<&Origin> = self.origins.iter().collect();
        Setup::new(threads).rules(rule).listener("trusted_proxies = [\"127.0.0.1\"]").pool_with(
            "standard",
            &format!("health = {{ {health} }}\n{keys}"),
            &servers,
        )
    }

    pub(crate) fn set_well(&self, switch: &Switch, server: usize, is_well: bool) {
        self.are_well[server].store(is_well, Ordering::SeqCst);
        let state = if is_well { "up" } else { "down" };
        switch.wait_for_line(&format!("server {state} pool=standard server=s{server}"));
    }
}

pub(crate) const BY_ADDRESS: &str = "R1: { routeTo(standard, STICKY_ON_IP); }";

/// The server of each client; its status where none answered.
pub(crate) fn homes(switch: &Switch) -> Vec<String> {
    let mut client = switch.client();
    let mut home = |number: usize| {
        let answer = client.ask("GET", "/", &format!("X-Forwarded-For: 192.0.2.{number}\r\n"));
        match answer.status() {
            200 => answer.server().to_owned(),
            status => status.to_string(),
        }
    };
    (1..=CLIENTS).map(&mut home).collect()
}

pub(crate) fn exceptions(switch: &Switch) -> usize {
    let now = switch.metric("pointsman_sticky_exceptions", &[]);
    (0..=CLIENTS).find(|&count| (now - count as f64).abs() < 0.5).expect("a count")
}

/// Their first server comes back, a reload comes, and nobody moves a second time.
fn who_is_put_elsewhere_stays_there(threads: usize) {
    let site = Site::new();
    let setup = site.setup(threads, BY_ADDRESS, "");
    let switch = setup.start();
    let before = homes(&switch);
    assert_eq!((homes(&switch), exceptions(&switch)), (before.clone(), 0));
    site.set_well(&switch, 0, false);
    let meanwhile = homes(&switch);
    let moved = before.iter().filter(|home| *home == "s0").count();
    assert!(moved > 2, "{before:?}");
    for (before, meanwhile) in before.iter().zip(&meanwhile) {
        assert!(if before == "s0" { meanwhile != "s0" } else { meanwhile == before });
    }
    assert_eq!((homes(&switch), exceptions(&switch)), (meanwhile.clone(), moved));
    site.set_well(&switch, 0, true);
    assert_eq!((homes(&switch), exceptions(&switch)), (meanwhile.clone(), moved));
    switch.reload(&setup.rules(&format!("R0: if (path == \"/new\") {{ discard(); }} {BY_ADDRESS}")), 2);
    assert_eq!((homes(&switch), exceptions(&switch)), (meanwhile.clone(), moved));
    // Another one goes: who was put there moves on, and nobody else.
    site.set_well(&switch, 1, false);
    let later = homes(&switch);
    for (meanwhile, later) in meanwhile.iter().zip(&later) {
        assert!(if meanwhile == "s1" { later != "s1" } else { later == meanwhile });
    }
    assert_eq!(homes(&switch), later);
}

fn who_is_idle_goes_home(threads: usize) {
    let site = Site::new();
    let setup = site.setup(threads, BY_ADDRESS, "").top("sticky_idle_ms_max = 1000");
    let switch = setup.start();
    let before = homes(&switch);
    site.set_well(&switch, 0, false);
    assert_ne!(homes(&switch), before);
    site.set_well(&switch, 0, true);
    until("all exceptions are forgotten", || (exceptions(&switch) == 0).then_some(()));
    assert_eq!(homes(&switch), before);
}

/// What the hash says is all that is known then.
fn without_room_everybody_goes_home(threads: usize) {
    let site = Site::new();
    let switch = site.setup(threads, BY_ADDRESS, "").top("sticky_entries_max = 0").start();
    let before = homes(&switch);
    site.set_well(&switch, 0, false);
    assert!(homes(&switch).iter().all(|home| home != "s0"));
    site.set_well(&switch, 0, true);
    assert_eq!((homes(&switch), exceptions(&switch)), (before, 0));
}

/// A client stays on its side of a split, and with its server there.
fn in_each_share_of_a_split(threads: usize) {
    let (site, canary) = (Site::new(), Origin::new("c0"));
    let rule = "R1: { routeTo(split(50: standard, 50: canary), STICKY_ON_IP); }";
    let switch = site.setup(threads, rule, "").pool("canary", &[&canary]).start();
    let before = homes(&switch);
    site.set_well(&switch, 0, false);
    let meanwhile = homes(&switch);
    site.set_well(&switch, 0, true);
    assert_eq!(homes(&switch), meanwhile);
    for (before, meanwhile) in before.iter().zip(&meanwhile) {
        assert!(if before == "s0" { meanwhile.starts_with('s') } else { meanwhile == before });
    }
}

fn fail_waits_for_the_server(threads: usize) {
    let site = Site::new();
    let switch = site.setup(threads, BY_ADDRESS, "on_down = \"fail\"").start();
    let before = homes(&switch);
    site.set_well(&switch, 0, false);
    let expected: Vec<_> =
        before.iter().map(|home| if home == "s0" { "503" } else { home }.to_owned()).collect();
    assert_eq!(homes(&switch), expected);
    site.set_well(&switch, 0, true);
    assert_eq!((homes(&switch), exceptions(&switch)), (before, 0));
}

/// Who is new gets an id that leads to a server which is there, also where sticky clients of others wait.
fn new_cookies_need_no_exception(threads: usize) {
    for keys in ["on_down = \"fail\"", ""] {
        let site = Site::new();
        let switch = site.setup(threads, "R1: { routeTo(standard, STICKY_ON_COOKIE); }", keys).start();
        site.set_well(&switch, 0, false);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let answer = switch.get("/");
                let set = answer.head.field("set-cookie").expect("a cookie");
                let pair = set.split(';').next().unwrap_or_default().to_owned();
                assert!(answer.status() == 200 && answer.server() != "s0", "{keys}");
                (pair, answer.server().to_owned())
            })
            .collect();
        assert_eq!(exceptions(&switch), 0);
        site.set_well(&switch, 0, true);
        for (pair, server) in &clients {
            assert_eq!(switch.client().ask("GET", "/", &format!("Cookie: {pair}\r\n")).server(), server);
        }
    }
}

/// Nobody is remembered because of a server that serves only when no other can, and nobody is refused.
fn a_backup_is_nobodys_home(threads: usize) {
    let site = Site::new();
    let entry = |origin: &Origin, keys: &str| {
        format!("{{ name = \"{}\", address = \"{}\"{keys} }}", origin.name(), origin.address())
    };
    let [s0, s1, s2, _] = &site.origins[..] else { panic!("there are four") };
    let servers = [entry(s0, ""), entry(s1, ""), entry(s2, ", backup = true")].join(", ");
    for on_down in ["repick", "fail"] {
        let pool = format!("[pool.standard]\non_down = \"{on_down}\"\nservers = [{servers}]");
        let setup = Setup::new(threads).rules(BY_ADDRESS).listener("trusted_proxies = [\"127.0.0.1\"]");
        let switch = setup.raw(&pool).default_pool("standard").start();
        let seen: HashSet<_> = homes(&switch).into_iter().collect();
        assert_eq!(seen, HashSet::from(["s0".to_owned(), "s1".to_owned()]), "{on_down}");
        assert_eq!(exceptions(&switch), 0);
    }
}
