//! What is measured: the rules, the request, the connections.

use crate::failure::{Failure, Result};

/// The pools, in the order of the origin's listeners; the last takes what no rule decided.
pub(super) const POOLS: [&str; 4] = ["api", "static", "img", "web"];

/// The header that rules of tenants look at.
pub(super) const TENANT: &str = "x-tenant";

/// One kind of traffic, who carries it, and what is asked of us.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) measure: Measure,
    pub(super) setups: &'static [Setup],
    pub(super) comparisons: &'static [Comparison],
    pub(super) rules: Rules,
    /// Nothing is put in the proxy's way, whatever is asked for.
    pub(super) is_alone: bool,
    pub(super) tls: bool,
    /// What clients speak; servers hear HTTP/1.1 all the same.
    pub(super) speech: Speech,
    /// Content of each request; none where it is 0.
    pub(super) upload_bytes: usize,
    /// Of all load generators together.
    pub(super) connections: u32,
    /// The folder of the request's target; a name comes behind it.
    pub(super) folder: &'static str,
    /// `1k` or `1m`: what the origin is asked for.
    pub(super) answer: &'static str,
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// Which of [`POOLS`] the rules must choose.
    pub(super) pool: usize,
}

/// What clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speech {
    /// One request after the other, by wrk.
    Http1,
    /// So many at the same time on each connection, by h2load.
    Http2 { streams: u32 },
}

/// What a round comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// CPU time for each request under load.
    CpuTime,
    /// Resident memory for each connection that had one request and is idle.
    IdleMemory,
}

/// A program and how it is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    /// Its name in tables.
    pub(super) name: &'static str,
    pub(super) program: Program,
    /// Whether it writes an access log.
    pub(super) logs: bool,
    pub(super) threads: Threads,
    /// Other rules than the scenario's, none of which takes the request.
    pub(super) rules: Option<Rules>,
    /// Fewer than the scenario's: of one that takes so long that the others would never be answered in a round.
    pub(super) connections: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Ours,
    Nginx,
    /// nginx that compiles its expressions (`pcre_jit`), which it does not unless told to.
    NginxJit,
    Haproxy,
}

/// How many threads, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Threads {
    /// One process with one thread, on the proxy's core.
    One,
    /// One process with a thread on each core.
    Two,
    /// Two processes with one thread each, on a core each: what two threads cost when they share nothing.
    TwoProcesses,
}

impl Setup {
    const fn of(name: &'static str, program: Program) -> Self {
        Self { name, program, logs: false, threads: Threads::One, rules: None, connections: None }
    }
}

/// The name of our own switch in every table.
pub(super) const OURS: &str = "pointsman";
const NGINX: &str = "nginx";
const HAPROXY: &str = "haproxy";
const OURS_LOGS: &str = "pointsman+log";
const NGINX_JIT: &str = "nginx+jit";
const NGINX_LOGS: &str = "nginx+log";
const OURS_THREE: &str = "three rules";
const TWO_THREADS: &str = "two threads";
const TWO_PROCESSES: &str = "two processes";

const PEERS: &[Setup] =
    &[Setup::of(OURS, Program::Ours), Setup::of(NGINX, Program::Nginx), Setup::of(HAPROXY, Program::Haproxy)];

/// One setup's median, alone or beside another's, and the most that it may come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison {
    pub(super) of: &'static str,
    pub(super) beside: Beside,
    /// The bar. Without one the figure is for information.
    pub(super) max: Option<f64>,
}

/// What a median is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Beside {
    /// Nothing: it is the figure.
    Nothing,
    /// Another's, which it is divided by.
    Over(&'static str),
    /// Another's, which is taken off.
    Beyond(&'static str),
}

impl Comparison {
    const fn with(of: &'static str, over: &'static str, max: f64) -> Self {
        Self { of, beside: Beside::Over(over), max: Some(max) }
    }

    const fn shown(of: &'static str, over: &'static str) -> Self {
        Self { of, beside: Beside::Over(over), max: None }
    }
}

/// The rules of a scenario, the same for every proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    /// Three path prefixes and a default.
    Prefixes,
    /// So many of "path prefix and header equals", and a default.
    Tenants(usize),
    /// The same for the peers as tables that are looked up: cheaper, and they know no order.
    TenantsLookedUp(usize),
}

/// The prefixes of [`Rules::Prefixes`], each for the pool of the same position.
pub(super) const PREFIXES: [&str; 3] = ["/api/", "/static/", "/img/"];

/// A rule of [`Rules::Tenants`].
pub(super) struct TenantRule {
    pub(super) prefix: String,
    pub(super) tenant: String,
    pub(super) pool: usize,
}

/// The rules of [`Rules::Tenants`], in order: each prefix has as many tenants, ten of a hundred rules and a hundred of
/// more. Pools alternate, so that neighbours differ.
pub(super) fn tenant_rules(count: usize) -> impl Iterator<Item = TenantRule> {
    let tenants = if count > 100 { 100 } else { 10 };
    (0..count).map(move |number| TenantRule {
        prefix: format!("/app{}/", number / tenants),
        tenant: format!("t{}", number % tenants),
        pool: number % 3,
    })
}

const BROWSER: &[(&str, &str)] = &[
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    ("Accept-Language", "en-US,en;q=0.5"),
    ("Accept-Encoding", "gzip, deflate, br"),
    ("Referer", "https://shop.example/catalogue?page=3"),
    (
        "Cookie",
        "session=8f14e45fceea167a5a36dedd4bea2543; theme=dark; consent=yes; _ga=GA1.2.1157.1700000000",
    ),
    ("Upgrade-Insecure-Requests", "1"),
    ("Cache-Control", "max-age=0"),
];

const PLAIN: Scenario = Scenario {
    name: "plain3",
    about: "three prefix rules, 1 KiB, keep-alive",
    measure: Measure::CpuTime,
    setups: PEERS,
    comparisons: &[Comparison::with(OURS, NGINX, 0.80), Comparison::with(OURS, HAPROXY, 0.72)],
    rules: Rules::Prefixes,
    is_alone: false,
    tls: false,
    speech: Speech::Http1,
    upload_bytes: 0,
    connections: 64,
    folder: "/img/",
    answer: "1k",
    headers: &[],
    pool: 2,
};

/// HTTP/2 from clients, HTTP/1.1 to servers.
const HTTP2: Scenario = Scenario {
    name: "h2",
    about: "HTTP/2 under TLS 1.3, three prefix rules, 1 KiB, 10 streams on each of 32 connections",
    comparisons: &[Comparison::with(OURS, NGINX, 0.80), Comparison::with(OURS, HAPROXY, 1.0)],
    tls: true,
    speech: Speech::Http2 { streams: 10 },
    connections: 32,
    ..PLAIN
};
const SHOWN: &[Comparison] = &[Comparison::shown(OURS, NGINX), Comparison::shown(OURS, HAPROXY)];

/// Connections that are idle.
const IDLE: Scenario = Scenario { measure: Measure::IdleMemory, is_alone: true, connections: 2000, ..PLAIN };

pub(super) const SCENARIOS: &[Scenario] = &[
    PLAIN,
    Scenario {
        name: "browser3",
        about: "the same with a browser's headers",
        comparisons: &[Comparison::with(OURS, NGINX, 0.80), Comparison::shown(OURS, HAPROXY)],
        headers: BROWSER,
        ..PLAIN
    },
    Scenario {
        name: "tls3",
        about: "the same under TLS 1.3, X25519, AES-128-GCM, ECDSA P-256",
        comparisons: &[Comparison::with(OURS, NGINX, 0.68), Comparison::with(OURS, HAPROXY, 0.60)],
        tls: true,
        ..PLAIN
    },
    Scenario {
        name: "handshake",
        about: "a full TLS 1.3 handshake for each request: X25519, ECDSA P-256, 1 KiB, close",
        comparisons: &[Comparison::with(OURS, NGINX, 0.45), Comparison::shown(OURS, HAPROXY)],
        tls: true,
        headers: &[("Connection", "close")],
        ..PLAIN
    },
    Scenario {
        name: "rules100",
        about: "a hundred ordered rules on path prefix and header, the last one takes it",
        setups: &[
            Setup::of(OURS, Program::Ours),
            Setup::of(NGINX, Program::Nginx),
            Setup::of(NGINX_JIT, Program::NginxJit),
            Setup::of(HAPROXY, Program::Haproxy),
        ],
        comparisons: &[
            Comparison::with(OURS, NGINX, 0.55),
            Comparison::shown(OURS, NGINX_JIT),
            Comparison::with(OURS, HAPROXY, 0.40),
        ],
        rules: Rules::Tenants(100),
        folder: "/app9/",
        headers: &[(TENANT, "t9")],
        pool: 0,
        ..PLAIN
    },
    Scenario {
        name: "lookup100",
        about: "the same hundred, for the peers as tables without an order",
        comparisons: &[Comparison::shown(OURS, NGINX), Comparison::shown(OURS, HAPROXY)],
        rules: Rules::TenantsLookedUp(100),
        folder: "/app9/",
        headers: &[(TENANT, "t9")],
        pool: 0,
        ..PLAIN
    },
    Scenario {
        name: "rules20000",
        about: "twenty thousand ordered rules on path prefix and header, the last one takes it",
        setups: &[
            Setup::of(OURS, Program::Ours),
            Setup { rules: Some(Rules::Prefixes), ..Setup::of(OURS_THREE, Program::Ours) },
            Setup::of(NGINX, Program::Nginx),
            Setup { connections: Some(4), ..Setup::of(HAPROXY, Program::Haproxy) },
        ],
        comparisons: &[
            Comparison { of: OURS, beside: Beside::Beyond(OURS_THREE), max: Some(1.0) },
            Comparison::shown(OURS, NGINX),
            Comparison::shown(OURS, HAPROXY),
        ],
        rules: Rules::Tenants(20_000),
        folder: "/app199/",
        headers: &[(TENANT, "t99")],
        pool: 1,
        ..PLAIN
    },
    Scenario {
        name: "big",
        about: "three prefix rules, 1 MiB",
        comparisons: &[Comparison::with(OURS, NGINX, 0.75), Comparison::shown(OURS, HAPROXY)],
        connections: 16,
        answer: "1m",
        ..PLAIN
    },
    HTTP2,
    Scenario {
        name: "h2-plain",
        about: "the same without TLS, by prior knowledge",
        comparisons: SHOWN,
        tls: false,
        ..HTTP2
    },
    Scenario {
        name: "h2-post",
        about: "the same under TLS, with 1 KiB up and 1 KiB down",
        comparisons: SHOWN,
        upload_bytes: 1024,
        ..HTTP2
    },
    Scenario {
        name: "h2-big",
        about: "HTTP/2 under TLS 1.3, 1 MiB, 4 streams on each of 8 connections",
        comparisons: SHOWN,
        speech: Speech::Http2 { streams: 4 },
        connections: 8,
        answer: "1m",
        ..HTTP2
    },
    Scenario {
        name: "log",
        about: "plain3 with an access log in a file, beside none",
        setups: &[
            Setup::of(OURS, Program::Ours),
            Setup { logs: true, ..Setup::of(OURS_LOGS, Program::Ours) },
            Setup::of(NGINX, Program::Nginx),
            Setup { logs: true, ..Setup::of(NGINX_LOGS, Program::Nginx) },
        ],
        comparisons: &[
            Comparison::with(OURS_LOGS, OURS, 1.15),
            Comparison::shown(NGINX_LOGS, NGINX),
            Comparison::shown(OURS_LOGS, NGINX_LOGS),
        ],
        ..PLAIN
    },
    Scenario {
        name: "threads2",
        about: "plain3 on both cores, which the load shares: do two threads cost each other?",
        setups: &[
            Setup::of(OURS, Program::Ours),
            Setup { threads: Threads::Two, ..Setup::of(TWO_THREADS, Program::Ours) },
            Setup { threads: Threads::TwoProcesses, ..Setup::of(TWO_PROCESSES, Program::Ours) },
        ],
        comparisons: &[
            Comparison::with(TWO_THREADS, OURS, 1.10),
            Comparison::with(TWO_THREADS, TWO_PROCESSES, 1.10),
        ],
        // The load is on the proxies' cores already.
        is_alone: true,
        connections: 16,
        ..PLAIN
    },
    Scenario {
        name: "idle-plain",
        about: "memory of a connection that is idle after one request; 2,000 of them",
        comparisons: &[
            Comparison { of: OURS, beside: Beside::Nothing, max: Some(2048.0) },
            Comparison::shown(OURS, NGINX),
            Comparison::shown(OURS, HAPROXY),
        ],
        ..IDLE
    },
    Scenario {
        name: "idle-tls",
        about: "the same under TLS 1.3",
        comparisons: &[Comparison::with(OURS, NGINX, 0.85), Comparison::shown(OURS, HAPROXY)],
        tls: true,
        ..IDLE
    },
];

impl Scenario {
    pub(super) fn named(name: &str) -> Result<&'static Self> {
        SCENARIOS.iter().find(|scenario| scenario.name == name).ok_or_else(|| {
            let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
            Failure::usage(format!("no such scenario: `{name}`\nhelp: there are {}", names.join(", ")))
        })
    }

    /// The URL of the measured request, or of another name in the same folder.
    pub(super) fn url(&self, port: u16, name: &str) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{port}{}{name}", self.folder)
    }

    pub(super) fn is_http2(&self) -> bool {
        self.speech != Speech::Http1
    }

    pub(super) fn header_lines(&self) -> impl Iterator<Item = String> {
        self.headers.iter().map(|(name, value)| format!("{name}: {value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_of_many_takes_the_request() {
        let of_tenants = SCENARIOS.iter().filter_map(|scenario| match scenario.rules {
            Rules::Tenants(count) | Rules::TenantsLookedUp(count) => Some((scenario, count)),
            Rules::Prefixes => None,
        });
        let counts = of_tenants.map(|(scenario, count)| {
            let takes = |rule: &TenantRule| {
                scenario.folder.starts_with(&rule.prefix) && scenario.headers[0].1 == rule.tenant
            };
            let rules: Vec<_> = tenant_rules(count).collect();
            assert_eq!(rules.iter().position(takes), Some(count - 1), "{}", scenario.name);
            assert_eq!(rules[count - 1].pool, scenario.pool, "{}", scenario.name);
            assert!(PREFIXES.iter().all(|prefix| !scenario.folder.starts_with(prefix)), "{}", scenario.name);
            count
        });
        assert_eq!(counts.collect::<Vec<_>>(), [100, 100, 20_000]);
    }

    #[test]
    fn prefixes_lead_where_scenarios_say() {
        for scenario in SCENARIOS.iter().filter(|scenario| scenario.rules == Rules::Prefixes) {
            assert_eq!(PREFIXES.iter().position(|prefix| scenario.folder == *prefix), Some(scenario.pool));
        }
        assert!(Scenario::named("plain4").is_err());
    }

    #[test]
    fn what_is_compared_is_measured() {
        for Scenario { name, setups, comparisons, .. } in SCENARIOS {
            let is_there = |named: &str| setups.iter().any(|setup| setup.name == named);
            for Comparison { of, beside, .. } in *comparisons {
                let is_known = match beside {
                    Beside::Nothing => true,
                    Beside::Over(other) | Beside::Beyond(other) => is_there(other),
                };
                assert!(is_there(of) && is_known, "{name}: {of} beside {beside:?}");
            }
            let has_bar = comparisons.iter().any(|comparison| comparison.max.is_some());
            let is_shown = ["lookup100", "h2-plain", "h2-post", "h2-big"].contains(name);
            assert_eq!(has_bar, !is_shown, "{name}");
        }
    }
}
