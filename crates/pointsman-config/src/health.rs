//! How the servers of a pool are probed: what was written is what it means, once it is checked.

use std::ops::RangeInclusive;

use pointsman_balance::Thresholds;
use regex::bytes::{Regex, RegexBuilder};

use crate::ServerProtocol;
use crate::notation::Refusal;
use crate::section::Section;

/// How the servers of a pool are probed.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheck {
    /// What a probe does.
    pub asks: Asks,
    /// The port that is probed, where it is not that of the server's address.
    pub port: Option<u16>,
    /// From the end of a probe to the next one.
    pub interval_ms: u32,
    /// How much of that a wait may be shorter or longer.
    pub jitter_percent: u32,
    /// How long a probe may take.
    pub timeout_ms: u32,
    /// How many probes in a row change what is said of a server.
    pub thresholds: Thresholds,
    /// Whether a new server gets nothing until it was probed.
    pub starts_down: bool,
}

/// What a probe does.
#[derive(Clone, Debug, PartialEq)]
pub enum Asks {
    /// It connects.
    Tcp,
    /// It connects and shakes hands.
    Tls,
    /// It asks for something.
    Http(HttpProbe),
    /// It asks a service of gRPC whether it serves.
    Grpc {
        /// Its name; empty for the server as a whole.
        service: String,
        /// Whom `:authority` names, where not the server itself.
        host: Option<String>,
    },
}

/// A request, and what its answer must be.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpProbe {
    /// `GET`, `HEAD` or `OPTIONS`.
    pub method: &'static str,
    /// With a query if there is one.
    pub path: String,
    /// Whom `Host` names, where not the server itself.
    pub host: Option<String>,
    /// One of them has the status.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// Names of fields that must be there, with their values where those matter.
    pub fields: Vec<(String, Option<String>)>,
    /// What must be in the body.
    pub body: Vec<BodyTest>,
    /// How much of the body is looked into.
    pub body_bytes_max: usize,
}

/// What must be in a body.
#[derive(Clone, Debug)]
pub enum BodyTest {
    /// A text.
    Holds(String),
    /// What matches.
    Matches(Regex),
}

impl PartialEq for BodyTest {
    fn eq(&self, other: &BodyTest) -> bool {
        match (self, other) {
            (BodyTest::Holds(one), BodyTest::Holds(another)) => one == another,
            (BodyTest::Matches(one), BodyTest::Matches(another)) => one.as_str() == another.as_str(),
            _ => false,
        }
    }
}

/// What a pool says of its servers that concerns probes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolSpeaks {
    pub(crate) tls: bool,
    pub(crate) protocol: ServerProtocol,
}

const OF_HTTP: &[&str] = &[
    "path",
    "method",
    "expect_status",
    "expect_header",
    "expect_body",
    "expect_body_regex",
    "body_bytes_max",
];

/// Reads the table.
pub(crate) fn read(section: &Section<'_>, pool: PoolSpeaks) -> HealthCheck {
    let kind = section.word("kind");
    let host = section.parsed("host", host).map(|host| host.value);
    let asks = match kind {
        "tcp" => Asks::Tcp,
        "tls" => Asks::Tls,
        "grpc" => {
            let service = section.text("service").map(|service| service.value).unwrap_or_default();
            Asks::Grpc { service, host }
        }
        _ => Asks::Http(http(section, host)),
    };
    note_idle(section, kind);
    if kind == "tls" && !pool.tls {
        let help = "add `tls = {}` to the pool, or set `kind` to `tcp`";
        section.findings().error(
            section.place("kind"),
            "a probe of kind `tls` needs `tls` of the pool",
            help,
        );
    }
    if kind == "grpc" && pool.protocol != ServerProtocol::Http2 {
        let message = "a probe of kind `grpc` needs `protocol = \"h2\"` of the pool";
        section.findings().error(section.place("kind"), message, "gRPC is spoken over HTTP/2 alone");
    }
    HealthCheck {
        asks,
        port: section.number("port"),
        interval_ms: section.number("interval_ms").unwrap_or_default(),
        jitter_percent: section.number("jitter_percent").unwrap_or_default(),
        timeout_ms: section.number("timeout_ms").unwrap_or_default(),
        thresholds: Thresholds {
            rise: section.number("rise").unwrap_or(1),
            fall: section.number("fall").unwrap_or(1),
        },
        starts_down: section.word("start") == "probe",
    }
}

/// Warns of keys that the kind of probe does not look at.
fn note_idle(section: &Section<'_>, kind: &str) {
    let is_http = kind == "http";
    let idle_of_http = OF_HTTP.iter().copied().filter(|_| !is_http);
    let idle_host = Some("host").filter(|_| !matches!(kind, "http" | "grpc"));
    let idle_service = Some("service").filter(|_| kind != "grpc");
    for name in idle_of_http.chain(idle_host).chain(idle_service).filter(|name| section.has(name)) {
        let message = format!("`{name}` has no effect while `kind` is `{kind}`");
        section.findings().warning(section.place(name), message, "leave it out, or set another `kind`");
    }
}

fn http(section: &Section<'_>, host: Option<String>) -> HttpProbe {
    let holds = section.text("expect_body").map(|text| BodyTest::Holds(text.value));
    let matches = section.parsed("expect_body_regex", regex).map(|regex| BodyTest::Matches(regex.value));
    let body: Vec<_> = holds.into_iter().chain(matches).collect();
    let method = section.word("method");
    if method == "HEAD" && !body.is_empty() {
        let name = if section.has("expect_body") { "expect_body" } else { "expect_body_regex" };
        let help = "set `method` to `GET`";
        section.findings().error(section.place(name), "the answer to `HEAD` has no body", help);
    }
    let statuses: Vec<_> = match section.has("expect_status") {
        true => {
            section.require_elements(
                "expect_status",
                "no status is expected",
                "name some, as `200-299`, or leave the key out",
            );
            section.parsed_list("expect_status", statuses).into_iter().map(|range| range.value).collect()
        }
        false => vec![200..=399],
    };
    HttpProbe {
        method,
        path: section.parsed("path", target).map_or_else(|| "/".to_owned(), |path| path.value),
        host,
        statuses,
        fields: section.parsed_list("expect_header", field).into_iter().map(|field| field.value).collect(),
        body,
        body_bytes_max: section.number("body_bytes_max").unwrap_or_default(),
    }
}

fn refuse<T>(text: &str, what: &str, help: &str) -> Result<T, Refusal> {
    Err(Refusal { message: format!("`{text}` is not {what}"), help: help.to_owned() })
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn target(text: &str) -> Result<String, Refusal> {
    if text.starts_with('/') && is_visible(text) && !text.contains('#') {
        return Ok(text.to_owned());
    }
    refuse(
        text,
        "a path that can be asked for",
        "it begins with `/`, and has no spaces and no `#`; encode what is not ASCII",
    )
}

fn host(text: &str) -> Result<String, Refusal> {
    let is_mark = |mark: char| "-._~:[]%".contains(mark);
    if !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || is_mark(letter)) {
        return Ok(text.to_owned());
    }
    refuse(text, "a host", "write it as a client would: `shop.example`, or `shop.example:8080`")
}

fn statuses(text: &str) -> Result<RangeInclusive<u16>, Refusal> {
    let status = |digits: &str| {
        let is_status = digits.len() == 3 && digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse::<u16>().ok().filter(|status| is_status && (200..=599).contains(status))
    };
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    match (status(from), status(to)) {
        (Some(from), Some(to)) if from <= to => Ok(from..=to),
        _ => {
            refuse(text, "a status or a range of them", "write `204`, or `200-299`; they go from 200 to 599")
        }
    }
}

fn field(text: &str) -> Result<(String, Option<String>), Refusal> {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name, Some(value.trim())),
        None => (text, None),
    };
    let is_name = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
    let is_value =
        value.is_none_or(|value| value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
    if is_name && is_value {
        return Ok((name.to_ascii_lowercase(), value.map(str::to_owned)));
    }
    refuse(text, "a field", "write its name, or its name and value: `x-ready: yes`")
}

fn regex(text: &str) -> Result<Regex, Refusal> {
    let built = RegexBuilder::new(text).unicode(false).dot_matches_new_line(true).build();
    built.map_err(|error| Refusal {
        message: format!("`{text}` is no regex"),
        help: error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    })
}
