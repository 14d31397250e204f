//! What is measured: the rules, the request, the connections.

use crate::failure::{Failure, Result};

/// The pools, in the order of the origin's listeners; the last takes what no rule decided.
pub(super) const POOLS: [&str; 4] = ["api", "static", "img", "web"];

/// The header that the hundred rules look at.
pub(super) const TENANT: &str = "x-tenant";

/// One kind of traffic.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) rules: Rules,
    pub(super) tls: bool,
    pub(super) connections: u32,
    /// The folder of the request's target; a name comes behind it.
    pub(super) folder: &'static str,
    /// `1k` or `1m`: what the origin is asked for.
    pub(super) answer: &'static str,
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// Which of [`POOLS`] the rules must choose.
    pub(super) pool: usize,
}

/// The rules of a scenario, the same for every proxy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    /// Three path prefixes and a default.
    Prefixes,
    /// A hundred of "path prefix and header equals": ten prefixes, ten tenants each, and a default.
    Hundred,
}

/// The prefixes of [`Rules::Prefixes`], each for the pool of the same position.
pub(super) const PREFIXES: [&str; 3] = ["/api/", "/static/", "/img/"];

/// A rule of [`Rules::Hundred`].
pub(super) struct TenantRule {
    pub(super) prefix: String,
    pub(super) tenant: String,
    pub(super) pool: usize,
}

/// The rules of [`Rules::Hundred`], in order. Pools alternate, so that neighbours differ.
pub(super) fn tenant_rules() -> impl Iterator<Item = TenantRule> {
    (0..100).map(|number| TenantRule {
        prefix: format!("/app{}/", number / 10),
        tenant: format!("t{}", number % 10),
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
    rules: Rules::Prefixes,
    tls: false,
    connections: 64,
    folder: "/img/",
    answer: "1k",
    headers: &[],
    pool: 2,
};

pub(super) const SCENARIOS: &[Scenario] = &[
    PLAIN,
    Scenario { name: "browser3", about: "the same with a browser's headers", headers: BROWSER, ..PLAIN },
    Scenario {
        name: "tls3",
        about: "the same under TLS 1.3, X25519, AES-128-GCM, ECDSA P-256",
        tls: true,
        ..PLAIN
    },
    Scenario {
        name: "handshake",
        about: "a full TLS 1.3 handshake for each request: X25519, ECDSA P-256, 1 KiB, close",
        tls: true,
        headers: &[("Connection", "close")],
        ..PLAIN
    },
    Scenario {
        name: "rules100",
        about: "a hundred ordered rules on path prefix and header, the last one takes it",
        rules: Rules::Hundred,
        folder: "/app9/",
        headers: &[(TENANT, "t9")],
        pool: 0,
        ..PLAIN
    },
    Scenario { name: "big", about: "three prefix rules, 1 MiB", connections: 16, answer: "1m", ..PLAIN },
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

    pub(super) fn header_lines(&self) -> impl Iterator<Item = String> {
        self.headers.iter().map(|(name, value)| format!("{name}: {value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_of_the_hundred_takes_the_request() {
        let scenario = Scenario::named("rules100").expect("it is there");
        let takes = |rule: &TenantRule| {
            scenario.folder.starts_with(&rule.prefix) && scenario.headers[0].1 == rule.tenant
        };
        let rules: Vec<_> = tenant_rules().collect();
        assert_eq!(rules.len(), 100);
        assert_eq!(rules.iter().position(takes), Some(99));
        assert_eq!(rules[99].pool, scenario.pool);
    }

    #[test]
    fn prefixes_lead_where_scenarios_say() {
        for scenario in SCENARIOS.iter().filter(|scenario| scenario.rules == Rules::Prefixes) {
            assert_eq!(PREFIXES.iter().position(|prefix| scenario.folder == *prefix), Some(scenario.pool));
        }
        assert!(Scenario::named("plain4").is_err());
    }
}
