//! Load from several machines at once: a controller sends the whole plan to its agents over TLS, of which both sides show
//! certificates, and adds up what they come to.
//!
//! ```text
//! controller                                   agent
//!     hello (versions) ──────────────────────▶
//!     ◀────────────────────── welcome (versions, cores)
//!     errand (plan, which of how many) ──────▶ asks each kind of request once
//!     ◀─────────────────────────────── ready
//!     ping ──▶ ◀── pong, a few times           whose clock is how far ahead
//!     start (a moment by the agent's clock) ─▶ load
//!     ◀─────── progress, a beat at least once a second, both ways
//!     cut (where another agent is lost) ─────▶ ends its load
//!     end (where somebody wants no more) ────▶ ends it then, and waits for what is under way
//!     ◀─────────── done (its part: whole, or what there is of it)
//! ```
//!
//! Invariants:
//! - Who shows no certificate of the agent's authority hears nothing from it.
//! - No frame is longer than a bound, and memory is taken for what came, never for what was announced.
//! - An agent whose controller is gone, or silent, ends its load at once; an agent that is gone voids the run, and ends the
//!   load of the others, whose parts are told.
//! - Nobody waits without a bound for who goes on speaking and does not come to an end.

mod agent;
mod allowed;
mod errand;
mod link;
mod trial;

use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pointsman_tls::{CertificateFiles, ClientTls, Offer, OneVersion, SystemAuthorities, TlsVersion};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde::{Deserialize, Serialize};

pub use self::agent::{Agent, AgentSettings};
pub use self::allowed::Allowed;
use self::link::{FRAME_BYTES_MAX, Link, Message, Versions, shake};
use crate::ceiling::BeforeNull;
use crate::{Fault, Outcome, Plan, Progress};

/// Where an agent listens if nobody says.
pub const AGENT_PORT: u16 = 8481;
/// The most agents of a controller.
const AGENTS_MAX: usize = 256;
/// How long it may take to connect to an agent, to shake hands with it, and to be welcome.
const GREETING_MAX: Duration = Duration::from_secs(5);
/// What both sides speak, by ALPN: nothing else is mistaken for it.
const PROTOCOL: &str = "pointsman-bench";

/// Whom a controller sends its plans to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentsSettings {
    /// `host:port` or `host` of each; no two are the same.
    pub names: Vec<String>,
    /// The controller's own certificate.
    pub certificate: CertificateFiles,
    /// A PEM file of the authorities that agents' certificates must come from.
    pub ca: PathBuf,
    /// Threads of each agent; `None`: as many as the one with the fewest cores has.
    pub threads: Option<usize>,
}

/// The agents of a controller, connected when they are first needed. One run goes on at a time.
#[derive(Clone)]
pub struct Agents(Arc<Shared>);

struct Shared {
    settings: AgentsSettings,
    tls: Arc<ClientConfig>,
    links: Mutex<Vec<Option<Connected>>>,
    threads: Mutex<Option<usize>>,
}

/// An agent that has welcomed us.
struct Connected {
    link: Link,
    cores: usize,
}

/// How an agent's clock was told, just before a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// How far the agent's clock, which counts from when its machine started, is ahead of ours, in nanoseconds.
    pub ahead_ns: i64,
    /// The shortest round trip, in nanoseconds: what the clock is known to is at most half of it.
    pub round_trip_ns: u64,
}

impl Clock {
    /// How exactly the agent's clock is known, and with it when its load began beside that of others, in seconds.
    pub fn known_to_s(self) -> f64 {
        self.round_trip_ns as f64 / 2e9
    }
}

impl fmt::Debug for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Agents").field(&self.0.settings.names).finish()
    }
}

impl Agents {
    /// Reads the files. Nobody is connected to yet.
    ///
    /// # Errors
    /// When a name is none, or stands there twice, or a file is of no use.
    pub fn new(settings: AgentsSettings) -> Result<Agents, Fault> {
        let names = &settings.names;
        if names.is_empty() || names.len() > AGENTS_MAX {
            return Err(Fault::new(format!("there are 1 to {AGENTS_MAX} agents")));
        }
        for (at, name) in names.iter().enumerate() {
            let own = split(name)?;
            if names[..at].iter().any(|other| split(other).is_ok_and(|other| other == own)) {
                return Err(Fault::new(format!("`{name}` is an agent only once")));
            }
        }
        let tls = ClientTls {
            ca: Some(settings.ca.clone()),
            certificate: Some(settings.certificate.clone()),
            verify: true,
            min_version: TlsVersion::Tls13,
            protocol: PROTOCOL,
        };
        let offer = Offer { version: Some(OneVersion::Tls13), ..Offer::default() };
        let config = offer.client_config(&tls, &SystemAuthorities::default()).map_err(|errors| {
            let words: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Fault::new(words.join("\n"))
        })?;
        let links = settings.names.iter().map(|_| None).collect();
        Ok(Agents(Arc::new(Shared {
            settings,
            tls: Arc::new(config),
            links: Mutex::new(links),
            threads: Mutex::new(None),
        })))
    }

    /// Their names, as they were given.
    pub fn names(&self) -> &[String] {
        &self.0.settings.names
    }

    /// Threads of each, where that is known: at the latest from the first run on.
    pub fn threads(&self) -> Option<usize> {
        self.0.settings.threads.or(*self.0.threads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has all of them carry the plan out together.
    pub(crate) fn run(&self, plan: &Plan, observe: &mut dyn FnMut(&Progress)) -> Result<Outcome, Fault> {
        let carry_out =
            |plan: &Plan, links: Vec<&mut Link>| trial::carry_out(plan, self.names(), links, observe);
        self.together(plan, carry_out, |outcome| outcome.lost.is_empty())
    }

    /// What each reaches before servers that do nothing, on its own machine, by its name: all at once.
    pub(crate) fn ceilings(&self, plan: &Plan, before: BeforeNull) -> Result<Vec<(String, f64)>, Fault> {
        let measure = |plan: &Plan, links: Vec<&mut Link>| trial::ceilings(plan, before, self.names(), links);
        self.together(plan, measure, |_| true)
    }

    /// Does something with all of them, who are connected where they are not. What is not whole, or cannot be done, ends the
    /// connections: whoever still has load ends it when its controller goes away.
    fn together<T>(
        &self,
        plan: &Plan,
        act: impl FnOnce(&Plan, Vec<&mut Link>) -> Result<T, Fault>,
        is_whole: impl FnOnce(&T) -> bool,
    ) -> Result<T, Fault> {
        let mut links = self.0.links.lock().unwrap_or_else(PoisonError::into_inner);
        for (link, name) in links.iter_mut().zip(self.names()) {
            if link.is_none() {
                *link = Some(self.connect(name).map_err(Fault::of_agents)?);
            }
        }
        let fewest = links.iter().flatten().map(|connected| connected.cores).min().unwrap_or(1);
        *self.0.threads.lock().unwrap_or_else(PoisonError::into_inner) = Some(fewest);
        let threads = self.0.settings.threads.unwrap_or(fewest);
        let plan = Plan { threads, agents: Some(self.clone()), ..plan.clone() };
        plan.check()?;
        plan.check_connections(threads * links.len())?;
        let all: Vec<&mut Link> = links.iter_mut().flatten().map(|connected| &mut connected.link).collect();
        let done = act(&plan, all);
        if !done.as_ref().is_ok_and(is_whole) {
            links.iter_mut().for_each(|link| *link = None);
        }
        done
    }

    fn connect(&self, name: &str) -> Result<Connected, Fault> {
        let cannot =
            |error: &dyn fmt::Display| Fault::new(format!("cannot reach the agent `{name}`: {error}"));
        let (host, port) = split(name)?;
        let server = ServerName::try_from(host.to_owned()).map_err(|error| cannot(&error))?;
        let mut socket = connect(host, port).map_err(|error| cannot(&error))?;
        let mut connection =
            ClientConnection::new(self.0.tls.clone(), server).map_err(|error| cannot(&error))?;
        let agreed = shake(&mut connection, &mut socket, Instant::now() + GREETING_MAX);
        agreed.map_err(|error| of_certificates(cannot(&error), &error))?;
        let own = socket.try_clone().map_err(|error| cannot(&error))?;
        let stream = Box::new(StreamOwned::new(connection, socket));
        let mut link = Link::new(stream, own, FRAME_BYTES_MAX).map_err(|error| cannot(&error))?;
        let own = Versions::own();
        let greeted = link.send(&Message::Hello(own.clone())).and_then(|()| link.expect(GREETING_MAX));
        match greeted {
            Ok(Message::Welcome { versions, cores }) => {
                own.same_as(&versions, &format!("the agent `{name}`"), "this controller")?;
                Ok(Connected { link, cores: cores.max(1) })
            }
            Ok(Message::Failed(fault)) => Err(of_agent(name, &fault)),
            Ok(_) => Err(cannot(&"it does not speak as an agent does")),
            Err(lost) => Err(of_certificates(cannot(&lost), &io::Error::other(lost.to_string()))),
        }
    }
}

/// To the first of the name's addresses that takes a connection.
fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, GREETING_MAX) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What can be done about a certificate that one of both sides does not take.
fn of_certificates(fault: Fault, error: &io::Error) -> Fault {
    let words = error.to_string();
    // Who is refused may find the connection closed before the alert that says why has come.
    if ["ertificate", "alert", "closed"].iter().any(|word| words.contains(word)) {
        return fault.help(
            "both sides show certificates of one authority: `pointsman bench agent --init` makes them, the agent's for \
             the name that it is called by here",
        );
    }
    fault
}

/// What an agent said, with its name. Whatever it is, it is shown on a terminal.
fn of_agent(name: &str, fault: &Fault) -> Fault {
    let shown = |words: &str| words.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}");
    let named = Fault::new(format!("agent `{name}`: {}", shown(&fault.to_string())));
    match fault.advice() {
        Some(advice) => named.help(shown(advice)),
        None => named,
    }
}

/// `host`, `host:port`, `[::1]:port`.
fn split(name: &str) -> Result<(&str, u16), Fault> {
    let wrong = || Fault::new(format!("`{name}` is no agent such as `load1.example:{AGENT_PORT}`"));
    let (host, port) = match name.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
            (host, port.strip_prefix(':').or(port.is_empty().then_some("")).ok_or_else(wrong)?)
        }
        None => name.split_once(':').unwrap_or((name, "")),
    };
    let port = if port.is_empty() { AGENT_PORT } else { port.parse().map_err(|_| wrong())? };
    if host.is_empty() || port == 0 { Err(wrong()) } else { Ok((host, port)) }
}

#[cfg(test)]
mod tests;
