//! Traces: from their table to where spans go.

use pointsman_telemetry::Sample;

use crate::notation::{self, Refusal, refuse};
use crate::section::Section;

/// Where the spans of requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// The collector.
    pub endpoint: Endpoint,
    /// What the switch is called there.
    pub service: String,
    /// How many requests are sampled of which nobody who is believed says whether they are.
    pub sample: Sample,
}

/// An address of plain HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The path, with its slash.
    pub path: String,
}

impl Endpoint {
    /// As a `Host` field names it.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Where collectors listen for OTLP over HTTP.
const PORT: u16 = 4318;
const PATH: &str = "/v1/traces";

/// Nothing where the endpoint is wrong, which was reported.
pub(crate) fn read(section: &Section<'_>) -> Option<Traces> {
    let sample = section.parsed("sample", notation::sample).map_or(Sample::ALL, |sample| sample.value);
    let service = section.parsed("service", service).map(|service| service.value);
    let endpoint = section.parsed("endpoint", endpoint)?.value;
    Some(Traces { endpoint, service: service.unwrap_or_else(|| "pointsman".to_owned()), sample })
}

fn service(text: &str) -> Result<String, Refusal> {
    match text.trim().is_empty() || text.chars().any(char::is_control) {
        true => refuse(text, "the name of a service", "write what the switch is to be called, as in `edge`"),
        false => Ok(text.to_owned()),
    }
}

fn endpoint(text: &str) -> Result<Endpoint, Refusal> {
    const HELP: &str =
        "write where a collector takes OTLP over HTTP, as in `http://127.0.0.1:4318/v1/traces`";
    if text.starts_with("https://") {
        let message = "spans are sent without TLS".to_owned();
        return Err(Refusal {
            message,
            help: "send them to a collector on this machine, by `http://`".to_owned(),
        });
    }
    let read = || {
        let rest = text.strip_prefix("http://")?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (host, port) = match authority.strip_prefix('[') {
            Some(inside) => {
                let (host, port) = inside.split_once(']')?;
                host.parse::<std::net::Ipv6Addr>().ok()?;
                (host, port.strip_prefix(':').map_or(port.is_empty().then_some(""), Some)?)
            }
            None => authority.split_once(':').unwrap_or((authority, "")),
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        let is_path = |byte: u8| byte.is_ascii_graphic() && !b"?#\"\\".contains(&byte);
        let is_written = !host.is_empty() && host.bytes().all(is_name) && path.bytes().all(is_path);
        let port = if port.is_empty() { Some(PORT) } else { port.parse().ok().filter(|port| *port != 0) };
        let path = if matches!(path, "" | "/") { PATH } else { path };
        Some(Endpoint { host: host.to_owned(), port: port?, path: path.to_owned() }).filter(|_| is_written)
    };
    read().map_or_else(|| refuse(text, "the address of a collector", HELP), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        for (text, expected) in [
            ("http://127.0.0.1:4318/v1/traces", Some("127.0.0.1:4318 /v1/traces")),
            ("http://collector.example", Some("collector.example:4318 /v1/traces")),
            ("http://collector:80/", Some("collector:80 /v1/traces")),
            ("http://[::1]/otlp", Some("[::1]:4318 /otlp")),
            ("http://[::1]:9/otlp", Some("[::1]:9 /otlp")),
            ("https://collector.example", None),
            ("collector.example:4318", None),
            ("http://", None),
            ("http://:4318", None),
            ("http://a:0", None),
            ("http://a:65536", None),
            ("http://[::1", None),
            ("http://[a]:1", None),
            ("http://[::1]x", None),
            ("http://a b/", None),
            ("http://user@a/", None),
            ("http://a/?x=1", None),
            ("http://a/\r\nx: y", None),
            ("", None),
        ] {
            let found = endpoint(text).ok().map(|found| format!("{} {}", found.authority(), found.path));
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
