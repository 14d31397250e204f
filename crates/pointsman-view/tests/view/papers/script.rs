//! How `testdata/rules/papers/decisions.txt` is read; its first lines say how it is written.

use pointsman_rules::Targets;
use pointsman_view::{Connection, TlsFacts};

/// A rule set and what it must decide.
#[derive(Debug, Default)]
pub(super) struct Set {
    /// Where it begins in the file.
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) rules: String,
    pub(super) warnings: Vec<String>,
    /// Its rules ask for what no request has.
    pub(super) takes_nothing: bool,
    pub(super) requests: Vec<Request>,
    targets: Option<String>,
}

/// A request on its connection, and the decision about it.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) line: usize,
    pub(super) connection: Connection,
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// As the file has it, without its key.
    pub(super) decision: String,
}

impl Set {
    /// The targets its rules may name.
    pub(super) fn targets(&self) -> Targets {
        let Some(pools) = &self.targets else { return Targets::Any };
        Targets::known(pools.split_terminator(')').map(|pool| {
            let (name, servers) = pool.split_once('(').expect("pool(servers)");
            (name.trim(), servers.split_whitespace().collect())
        }))
    }

    /// Whether nothing is missing.
    fn check(&self) {
        let at = format!("line {}, {}", self.line, self.name);
        assert!(!self.rules.is_empty(), "{at}: no rules");
        assert!(self.requests.len() >= 2, "{at}: a request to take and one to leave");
        for request in &self.requests {
            assert!(!request.decision.is_empty(), "{at}: line {} is not decided", request.line);
        }
    }
}

/// The sets of the file.
pub(super) fn sets(file: &str) -> Vec<Set> {
    let mut sets: Vec<Set> = Vec::new();
    for (line, text) in (1..).zip(file.lines()) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if let Some(name) = text.strip_prefix("== ") {
            sets.push(Set { line, name: name.to_owned(), ..Set::default() });
            continue;
        }
        let set = sets.last_mut().unwrap_or_else(|| panic!("line {line}: no set yet"));
        take(set, line, text);
    }
    sets.iter().for_each(Set::check);
    sets
}

fn take(set: &mut Set, line: usize, text: &str) {
    let last = set.requests.last_mut();
    match (text.split_once(' ').unwrap_or((text, "")), last) {
        (("rules|", rule), None) => set.rules.extend([rule, "\n"]),
        (("warning:", warning), None) => set.warnings.push(warning.to_owned()),
        (("targets:", pools), None) => set.targets = Some(pools.to_owned()),
        (("takes", why), None) if why.starts_with("nothing: ") => set.takes_nothing = true,
        (("from", facts), _) => set.requests.push(Request {
            line,
            connection: connection(facts).unwrap_or_else(|| panic!("line {line}: `{facts}`")),
            head: b"\r\n".to_vec(),
            body: Vec::new(),
            decision: String::new(),
        }),
        ((">", text), Some(request)) => {
            let end = request.head.len() - b"\r\n".len();
            request.head.splice(end..end, [text.as_bytes(), b"\r\n"].concat());
        }
        (("|", text), Some(request)) => {
            if !request.body.is_empty() {
                request.body.push(b'\n');
            }
            request.body.extend(text.as_bytes());
        }
        (("decision:", decision), Some(request)) => decision.clone_into(&mut request.decision),
        _ => panic!("line {line}: `{text}` does not stand here"),
    }
}

/// `128.198.60.1:40000 to 192.0.2.80:443 tls`
fn connection(facts: &str) -> Option<Connection> {
    let (src, rest) = facts.split_once(" to ")?;
    let (dst, is_tls) = rest.strip_suffix(" tls").map_or((rest, false), |dst| (dst, true));
    let tls = is_tls.then(|| TlsFacts {
        sni: Some("shop.example".to_owned()),
        version: "1.3",
        cipher: "TLS_AES_128_GCM_SHA256",
        alpn: Some(b"http/1.1".to_vec()),
        resumed: false,
        client: None,
        session: None,
    });
    Some(Connection {
        src: Some(src.parse().ok()?),
        dst: Some(dst.parse().ok()?),
        proxied: None,
        tls: tls.map(Into::into),
    })
}
