//! Rule sets of any size, and requests for them: some hit early, some late, some never.

use std::borrow::Cow;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::ControlFlow;

use pointsman_rules::{Field, NameKind, Subject, Value};

/// A rule set as text, and who asks it.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) source: String,
    pub(crate) requests: Vec<Request>,
}

/// A made-up request.
#[derive(Debug)]
pub(crate) struct Request {
    host: String,
    path: String,
    method: &'static str,
    srcip: IpAddr,
    query: Vec<(&'static [u8], String)>,
    headers: Vec<(Cow<'static, str>, String)>,
}

const REQUESTS: usize = 1024;

/// Numbers that look random and are the same each time (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 33) as usize % bound
    }
}

/// What rules and requests have in common.
struct Values {
    numbers: Numbers,
    hosts: usize,
    tenants: usize,
    paths: usize,
}

impl Set {
    /// One host a rule.
    pub(crate) fn hosts(name: &'static str, rules: usize) -> Set {
        let mut values = Values::of(rules);
        values.hosts = rules;
        let mut source = String::new();
        for number in 0..rules {
            line(&mut source, &format!("host == \"h{number}.example.com\""));
        }
        Set { name, source, requests: (0..REQUESTS).map(|_| values.request()).collect() }
    }

    /// Two or three tests a rule, over host, path, a header, networks, method and query.
    pub(crate) fn mixed(name: &'static str, rules: usize) -> Set {
        let mut values = Values::of(rules);
        let mut source = String::new();
        let mut hits = Vec::new();
        for number in 0..rules {
            let mut request = values.request();
            let mut kinds = [0, 1, 2, 3, 4, 5];
            for place in 0..2 {
                let other = place + values.numbers.below(kinds.len() - place);
                kinds.swap(place, other);
            }
            // A method and a query alone would take what all later rules are for.
            if kinds[0] > 3 && kinds[1] > 3 {
                kinds[0] = 0;
            }
            let tests = if number % 3 == 0 { 3 } else { 2 };
            let tests: Vec<_> = kinds.iter().take(tests).map(|kind| request.test(*kind)).collect();
            line(&mut source, &tests.join(" && "));
            if values.numbers.below(rules / 512 + 1) == 0 {
                request.headers.swap(0, 1);
                hits.push(request);
            }
        }
        let mut requests: Vec<_> = (0..REQUESTS / 2).map(|_| values.request()).collect();
        hits.truncate(REQUESTS / 2);
        requests.extend(hits);
        // In no order of the rules.
        for place in (1..requests.len()).rev() {
            requests.swap(place, values.numbers.below(place + 1));
        }
        Set { name, source, requests }
    }

    /// One host for all, and thresholds that half of the requests do not reach.
    pub(crate) fn skewed(name: &'static str, rules: usize) -> Set {
        let mut values = Values::of(rules);
        let mut source = String::new();
        for _ in 0..rules {
            let threshold = rules + values.numbers.below(rules);
            line(&mut source, &format!("host == \"a\" && query[\"amount\"] > {threshold}.50"));
        }
        let request = |_| {
            let mut request = values.request();
            request.host = "a".to_owned();
            let amount = values.numbers.below(2 * rules);
            request.query.push((b"amount", format!("{amount}.75")));
            request
        };
        Set { name, source, requests: (0..REQUESTS).map(request).collect() }
    }

    /// A header of its own for each rule, or a query key, a cookie or a field of the body: of all these a request has
    /// two or none.
    pub(crate) fn names(name: &'static str, rules: usize) -> Set {
        let mut values = Values::of(rules);
        let mut source = String::new();
        for number in 0..rules {
            let field = match number % 4 {
                0 => format!("header[\"h{number}\"]"),
                1 => format!("query[\"q{number}\"]"),
                2 => format!("cookie[\"c{number}\"]"),
                _ => format!("json.p{number}"),
            };
            line(&mut source, &format!("{field} == \"x\""));
        }
        let request = |number| {
            let mut request = values.request();
            for _ in 0..number % 3 {
                let name = format!("h{}", values.numbers.below(rules) / 4 * 4);
                request
                    .headers
                    .push((name.into(), if number % 2 == 0 { "x".to_owned() } else { "y".to_owned() }));
            }
            request
        };
        Set { name, source, requests: (0..REQUESTS).map(request).collect() }
    }

    /// Regexes that share their beginnings, or their ends, and have a name of their own inside.
    pub(crate) fn regexes(name: &'static str, rules: usize) -> Set {
        let mut source = String::new();
        for number in 0..rules {
            let test = match number % 2 {
                0 => format!("path matches \"^/api/v[0-9]+/service{number}/[0-9]+$\""),
                _ => format!("path matches \"/images{number}/.*\\.(gif|png)$\""),
            };
            line(&mut source, &test);
        }
        let mut values = Values::of(rules);
        let request = |number| {
            let mut request = values.request();
            // One in four is of no rule.
            let of = values.numbers.below(rules + rules / 3);
            request.path = match number % 2 {
                0 => format!("/api/v2/service{of}/12345"),
                _ => format!("/shop/images{of}/12345.png"),
            };
            request
        };
        Set { name, source, requests: (0..REQUESTS).map(request).collect() }
    }

    /// Endings, parts, patterns and regexes of paths.
    pub(crate) fn patterns(name: &'static str, rules: usize) -> Set {
        let mut values = Values::of(rules);
        let mut source = String::new();
        for number in 0..rules {
            let word = values.word(rules);
            let test = match number % 4 {
                0 => format!("path endsWith \"/{word}.html\""),
                1 => format!("url contains \"/{word}/\""),
                2 => format!("path like \"*/{word}/*.gif\""),
                _ => format!("url matches \"/{word}/[0-9]+\\.(jpe?g|png)\""),
            };
            line(&mut source, &test);
        }
        let request = |number| {
            let mut request = values.request();
            let [a, b] = [values.word(rules), values.word(rules * 2)];
            request.path = match number % 4 {
                0 => format!("/shop/{b}.html"),
                1 => format!("/{b}/{a}/view"),
                2 => format!("/shop/{a}/12345.png"),
                _ => format!("/shop/{b}/{b}/{b}.txt"),
            };
            request
        };
        Set { name, source, requests: (0..REQUESTS).map(request).collect() }
    }
}

fn line(source: &mut String, condition: &str) {
    // A text takes whatever is written to it.
    writeln!(source, "if ({condition}) {{ routeTo(a); }}").unwrap_or_default();
}

impl Values {
    fn of(rules: usize) -> Values {
        let paths = (rules / 5).clamp(10, 2_000);
        Values { numbers: Numbers(7), hosts: (rules / 20).max(5), tenants: (rules / 10).max(5), paths }
    }

    fn word(&mut self, of: usize) -> String {
        let number = self.numbers.below(of);
        format!("{}{number:x}", ["item", "sale", "view", "cart"][number % 4])
    }

    fn request(&mut self) -> Request {
        let path = self.numbers.below(self.paths);
        let srcip = u32::try_from(self.numbers.below(1 << 22)).unwrap_or(0) | 0x0a00_0000;
        Request {
            host: format!("h{}.example.com", self.numbers.below(self.hosts)),
            path: format!("/app{}/service{path}/index.html", path % 10),
            method: ["GET", "GET", "POST", "PUT"][self.numbers.below(4)],
            srcip: IpAddr::V4(Ipv4Addr::from(srcip)),
            query: vec![(b"page", self.numbers.below(100).to_string())],
            headers: vec![
                ("user-agent".into(), "Mozilla/5.0".to_owned()),
                ("x-tenant".into(), format!("tenant-{}", self.numbers.below(self.tenants))),
                ("accept".into(), "*/*".to_owned()),
                ("accept-language".into(), "en".to_owned()),
                ("cache-control".into(), "no-cache".to_owned()),
            ],
        }
    }
}

impl Request {
    /// A test that it satisfies.
    fn test(&self, kind: usize) -> String {
        match kind {
            0 => format!("host == \"{}\"", self.host),
            1 => format!("path startsWith \"{}\"", self.path.trim_end_matches("index.html")),
            2 => format!("header[\"x-tenant\"] == \"{}\"", self.headers[1].1),
            3 => {
                let IpAddr::V4(address) = self.srcip else { return "srcport > 0".to_owned() };
                let [a, b, c, _] = address.octets();
                format!("srcip in [{a}.{b}.{c}.0/24]")
            }
            4 => format!("method == \"{}\"", self.method),
            _ => format!("query[\"page\"] == \"{}\"", self.query[0].1),
        }
    }
}

impl Subject for Request {
    fn each_name(&self, kind: NameKind, see: &mut dyn FnMut(&[u8])) -> bool {
        match kind {
            NameKind::Header => self.headers.iter().for_each(|(name, _)| see(name.as_bytes())),
            NameKind::QueryParam => self.query.iter().for_each(|(key, _)| see(key)),
            NameKind::Cookie => {}
        }
        true
    }

    fn is_without_body(&self) -> bool {
        true
    }

    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        let value = match field {
            Field::Host => Value::Text(self.host.as_bytes()),
            Field::Path | Field::Url => Value::Text(self.path.as_bytes()),
            Field::Method => Value::Text(self.method.as_bytes()),
            Field::SrcIp => Value::Ip(self.srcip),
            Field::QueryParam(key) => {
                let values = self.query.iter().filter(|(name, _)| *name == &**key);
                for (_, value) in values {
                    if see(Value::Text(value.as_bytes())).is_break() {
                        break;
                    }
                }
                return;
            }
            Field::Header(name) => {
                let values = self.headers.iter().filter(|(other, _)| **other == **name);
                for (_, value) in values {
                    if see(Value::Text(value.as_bytes())).is_break() {
                        break;
                    }
                }
                return;
            }
            _ => return,
        };
        let _all_seen = see(value);
    }
}
