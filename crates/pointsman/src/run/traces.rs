//! Spans on their way to a collector: one request of HTTP/1.1 for each batch, on a connection of its own.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pointsman_config::{Endpoint, Found, Lookup, reason};
use pointsman_dns::Reader;
use pointsman_telemetry::{ExportFault, Metrics, TraceSettings, Traces};

use super::notice::{self, notice};
use crate::http_request::{Unanswered, connect, send};

/// How long the collector may take to let us in, and its name to be looked up for the first time.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// And to take a batch, or to answer, from one byte to the next.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Starts what sends spans to the collector. `name` tells where that is, if it has a name.
pub(super) fn open(
    traces: &pointsman_config::Traces,
    name: Option<Reader>,
    metrics: &Metrics,
    seed: u64,
) -> io::Result<Traces> {
    let settings = TraceSettings {
        sample: traces.sample,
        service: traces.service.clone(),
        version: env!("CARGO_PKG_VERSION"),
        seed,
    };
    let mut collector = Collector { endpoint: traces.endpoint.clone(), name, said: Reach::Good };
    Traces::open(settings, metrics, move |body| collector.export(body))
}

/// What the collector's name is looked up by, where it has one.
pub(super) fn lookup(traces: &pointsman_config::Traces) -> Option<Lookup> {
    let host = &traces.endpoint.host;
    let is_address = host.parse::<IpAddr>().is_ok();
    (!is_address).then(|| Lookup::Addresses(host.to_ascii_lowercase().into()))
}

/// Who takes spans.
struct Collector {
    endpoint: Endpoint,
    name: Option<Reader>,
    /// What was said of it last.
    said: Reach,
}

/// How it stands with the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// It takes what it gets.
    Good,
    /// Nobody knows where it is.
    Unknown,
    /// It is not to be had, or not for long enough.
    Unreached,
    /// It answers with this status.
    Refuses(u16),
}

/// Why a batch was not taken.
struct Fault {
    reach: Reach,
    why: String,
}

impl Fault {
    fn of(reach: Reach, why: impl fmt::Display) -> Fault {
        Fault { reach, why: why.to_string() }
    }
}

impl Collector {
    /// Sends a batch (OTLP 1, section OTLP/HTTP), and says so where it stands otherwise with the collector than before.
    fn export(&mut self, body: &[u8]) -> Result<(), ExportFault> {
        let fault = match self.post(body) {
            Ok(200..=299) => {
                self.say(Reach::Good, String::new());
                return Ok(());
            }
            Ok(status) => Fault::of(Reach::Refuses(status), format!("it answers {status}")),
            Err(fault) => fault,
        };
        self.say(fault.reach, fault.why);
        match fault.reach {
            Reach::Refuses(429 | 502 | 503 | 504) | Reach::Unknown | Reach::Unreached => {
                Err(ExportFault::Again)
            }
            Reach::Refuses(_) | Reach::Good => Err(ExportFault::Never),
        }
    }

    fn say(&mut self, now: Reach, why: String) {
        if now == self.said {
            return;
        }
        self.said = now;
        let collector = self.endpoint.authority();
        match now {
            Reach::Good => notice(&format!("traces sent again collector={collector}")),
            _ => notice::warn(&format!("traces not sent collector={collector} why=\"{why}\"")),
        }
    }

    /// The status of the answer.
    fn post(&self, body: &[u8]) -> Result<u16, Fault> {
        let addresses = self.addresses()?;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\nUser-Agent: pointsman/{}\r\n\r\n",
            self.endpoint.path,
            self.endpoint.authority(),
            body.len(),
            env!("CARGO_PKG_VERSION"),
        );
        ask(&addresses, &[head.as_bytes(), body]).map_err(|fault| match fault {
            Unanswered::Io(error) => Fault::of(Reach::Unreached, reason(&error)),
            Unanswered::Foreign => Fault::of(Reach::Unreached, "what it answers is not HTTP"),
        })
    }

    /// Where it is.
    fn addresses(&self) -> Result<Vec<SocketAddr>, Fault> {
        let with_port = |address| SocketAddr::new(address, self.endpoint.port);
        let Some(name) = &self.name else {
            let address = self.endpoint.host.parse::<IpAddr>();
            return address
                .map(|address| vec![with_port(address)])
                .map_err(|error| Fault::of(Reach::Unknown, error));
        };
        match name.known_within(CONNECT_MAX) {
            Ok(Found::Addresses(addresses)) => Ok(addresses.into_iter().map(with_port).collect()),
            Ok(Found::Services(_)) => Ok(Vec::new()),
            Err(why) => {
                Err(Fault::of(Reach::Unknown, format!("cannot look up `{}`: {why}", self.endpoint.host)))
            }
        }
    }
}

/// The status of the answer.
fn ask(addresses: &[SocketAddr], request: &[&[u8]]) -> Result<u16, Unanswered> {
    let stream = connect(addresses, CONNECT_MAX)?;
    stream.set_read_timeout(Some(PAUSE_MAX))?;
    stream.set_write_timeout(Some(PAUSE_MAX))?;
    send(stream, request)?.status()
}
