//! What is to be measured, whole: where, how much, how long, over what kind of connections.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use pointsman_tls::{CertificateFiles, Offer};
use serde::{Deserialize, Serialize};

use crate::agents::Agents;
use crate::{Class, Fault, Interrupt, Numbers, Script, Shares, Sources, Think, Url, packed};

/// More threads than any machine has cores.
const THREADS_MAX: usize = 1024;
/// Connections at a time, of all threads together.
const CONNECTIONS_MAX: usize = 1_000_000;
/// Requests a second that a plan may ask for.
const RATE_MAX: f64 = 1e8;
/// Streams of a connection at a time.
const STREAMS_MAX: u32 = 10_000;
/// A day.
const SECONDS_MAX: u64 = 86_400;

/// A whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// What is asked for, each as often as its weight says; at least one. Where there are sessions, those of their steps.
    pub targets: Vec<Target>,
    /// Which of them are counted together, and which answers to them are right; empty: all are alike.
    pub classes: Vec<Class>,
    /// What each user does, one step after the other. The load is then one of sessions: so many begin a second, or so many
    /// users begin another behind each. [`Plan::of_sessions`] makes such a plan.
    pub session: Option<Script>,
    /// How much.
    pub load: Load,
    /// How long it is measured.
    pub time: Duration,
    /// How long there is load before that, of which nothing is counted.
    pub warm_up: Duration,
    /// Threads of the generator.
    pub threads: usize,
    /// What is spoken.
    pub protocol: Protocol,
    /// Requests at a time on a connection of HTTP/2, where the server takes as many; clients of a closed loop share
    /// connections then. In HTTP/1.1 it is one.
    pub streams: u32,
    /// What is offered by ALPN, best first; `None`: what is spoken and nothing else. None at all: no ALPN.
    pub alpn: Option<Vec<String>>,
    /// What becomes of connections, and how their handshakes are.
    pub handshakes: Handshakes,
    /// Requests on a connection before it is closed; `None`: as many as the server takes.
    pub requests_per_connection: Option<u32>,
    /// What shares of the requests go over connections of some kind.
    pub shares: Shares,
    /// Connections at a time, of all threads together: what is due when there are so many waits.
    pub connections_max: usize,
    /// How many of them are opened before the load begins, if it is an open loop whose connections are kept. What is due when
    /// none is free opens another, whose handshake is work that the server has beside the requests.
    pub opened_first: usize,
    /// What is offered in handshakes.
    #[serde(with = "packed::offer")]
    pub offer: Offer,
    /// A PEM file of the authorities that the server's certificate must come from; `None`: those of the system.
    #[serde(skip)]
    pub ca: Option<PathBuf>,
    /// Whether the server's certificate is checked.
    pub verify: bool,
    /// What is shown to a server that asks for a certificate.
    #[serde(skip)]
    pub certificate: Option<CertificateFiles>,
    /// The server name that is asked for, and that the certificate is checked for; `None`: the URL's host.
    pub server_name: Option<String>,
    /// How connections are ended.
    pub close: Close,
    /// Where connections come from.
    pub sources: Sources,
    /// How long a request may take, from when it was begun.
    pub timeout: Duration,
    /// How long a client of a closed loop waits behind an answer.
    pub think: Think,
    /// How much later each client of a closed loop begins than the one before; `None`: all within a tenth of a second.
    pub delay: Option<Duration>,
    /// A process whose CPU time is looked at: the server, with its threads and children.
    pub server_process: Option<u32>,
    /// What random draws begin with: the same seed, the same arrivals.
    pub seed: u64,
    /// Those that its requests have had by now.
    pub numbers: Numbers,
    /// The machines that carry it out together; `None`: this process does.
    #[serde(skip)]
    pub agents: Option<Agents>,
    /// What ends it before its time.
    #[serde(skip)]
    pub interrupt: Interrupt,
}

/// What one kind of request asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Target {
    /// Where.
    pub url: Url,
    /// How often, beside the others.
    pub weight: u32,
    /// The method.
    pub method: String,
    /// Fields, in order; `Host` and `Content-Length` are added where they are not among them.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Body,
}

/// What a request carries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// Nothing.
    #[default]
    None,
    /// These bytes.
    Bytes(#[serde(with = "packed::bytes")] Vec<u8>),
    /// A text with places that are filled in anew for each request.
    Template(String),
    /// So many bytes, which nobody reads.
    Filled(u64),
}

impl Body {
    /// What a plan holds of it, in bytes.
    pub(crate) fn carried_bytes(&self) -> usize {
        match self {
            Body::None | Body::Filled(_) => 0,
            Body::Bytes(bytes) => bytes.len(),
            Body::Template(text) => text.len(),
        }
    }
}

/// How much is asked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Load {
    /// So many requests a second, whatever becomes of them.
    Open {
        /// A second, of all threads together.
        rate: f64,
        /// How they are spread.
        arrivals: Arrivals,
    },
    /// So many clients, each of which asks when it has its answer.
    Closed {
        /// Of all threads together.
        clients: u32,
    },
}

/// How requests of an open loop are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// As from many people who know nothing of each other: the gaps are exponential.
    #[default]
    Poisson,
    /// All gaps are the same.
    Uniform,
}

impl Arrivals {
    /// A word for reports.
    pub fn name(self) -> &'static str {
        match self {
            Arrivals::Poisson => "poisson",
            Arrivals::Uniform => "uniform",
        }
    }
}

/// What is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: by ALPN over TLS, and without it as both ends know before (RFC 9113 section 3.3).
    Http2,
}

impl Protocol {
    /// As it is called in ALPN.
    pub fn alpn(self) -> &'static str {
        match self {
            Protocol::Http1 => "http/1.1",
            Protocol::Http2 => "h2",
        }
    }

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http1 => "HTTP/1.1",
            Protocol::Http2 => "HTTP/2",
        }
    }

    /// Whether it may be spoken where a handshake has agreed on this; on nothing, if it is empty.
    pub(crate) fn is_agreed_by(self, agreed: &str) -> bool {
        agreed == self.alpn() || (agreed.is_empty() && self == Protocol::Http1)
    }
}

/// What becomes of connections, and how their handshakes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Handshakes {
    /// Connections are kept; what handshakes there are are full ones.
    #[default]
    Keep,
    /// Each connection is new, with a full handshake, for one request, or as many as the plan says.
    Full,
    /// The same, and this share of them resume a session; 1.0 is all.
    Resumed(f64),
}

/// How connections are ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Close {
    /// As clients do: TLS says so, then TCP. Our port stays taken for a while.
    #[default]
    Fin,
    /// Broken off: nothing stays, and the server has less to do than for an end.
    Reset,
}

/// What the thread `index` of `threads` has of so many that all threads share.
pub(crate) fn share_of_thread(all: usize, (index, threads): (usize, usize)) -> usize {
    all / threads + usize::from(index < all % threads)
}

impl Plan {
    /// The usual plan for these targets and this load: ten seconds behind two of warm-up.
    pub fn new(targets: Vec<Target>, load: Load) -> Plan {
        Plan {
            targets,
            classes: Vec::new(),
            session: None,
            load,
            time: Duration::from_secs(10),
            warm_up: Duration::from_secs(2),
            threads: 1,
            protocol: Protocol::default(),
            streams: 1,
            alpn: None,
            handshakes: Handshakes::default(),
            requests_per_connection: None,
            shares: Shares::default(),
            connections_max: 10_000,
            opened_first: 0,
            offer: Offer::default(),
            ca: None,
            verify: true,
            certificate: None,
            server_name: None,
            close: Close::default(),
            sources: Sources::default(),
            timeout: Duration::from_secs(10),
            think: Think::default(),
            delay: None,
            server_process: None,
            seed: 1,
            numbers: Numbers::default(),
            agents: None,
            interrupt: Interrupt::default(),
        }
    }

    /// The usual plan for sessions that go like this: the load's rate is that of their beginnings, its clients are users.
    pub fn of_sessions(script: Script, load: Load) -> Plan {
        let targets = script.steps.iter().map(|step| step.target.clone()).collect();
        Plan { session: Some(script), ..Plan::new(targets, load) }
    }

    /// Whether an answer with this status is a failure.
    #[inline]
    pub(crate) fn is_failure(&self, request: u32, status: u16) -> bool {
        let expects = self.session.as_ref().and_then(|script| script.steps[request as usize].expects);
        expects.map_or(status >= 400, |expected| status != expected)
    }

    /// Requests on a connection, all told.
    pub(crate) fn requests_a_connection(&self) -> u32 {
        match (self.requests_per_connection, self.handshakes) {
            (Some(count), _) => count,
            (None, Handshakes::Keep) => u32::MAX,
            // Which of them have a connection to themselves is drawn.
            (None, _) if self.shares.persistent.is_some() => u32::MAX,
            (None, Handshakes::Full | Handshakes::Resumed(_)) => 1,
        }
    }

    /// Requests on each connection where it is new for so many, and they are as many on each: handshakes can be counted by
    /// them.
    pub(crate) fn requests_a_handshake(&self) -> Option<u32> {
        match (self.handshakes, self.shares.persistent) {
            (Handshakes::Keep, _) | (_, Some(_)) => None,
            (Handshakes::Full | Handshakes::Resumed(_), None) => Some(self.requests_a_connection()),
        }
    }

    /// How many different places are asked over TLS.
    pub(crate) fn tls_places(&self) -> usize {
        let over_tls = self.targets.iter().filter(|target| target.url.scheme == crate::Scheme::Https);
        over_tls.map(|target| (&target.url.host, target.url.port)).collect::<HashSet<_>>().len()
    }

    /// Of what counts requests and knows no sessions of users.
    pub(crate) fn refuse_sessions(&self, what: &str) -> Result<(), Fault> {
        if self.session.is_none() {
            return Ok(());
        }
        Err(Fault::new(format!("{what} counts requests, and a plan with `--session` is one of sessions")).help(
            "leave `--session` out, or say `pointsman bench load --session FILE` with the loads of interest",
        ))
    }

    /// What contradicts itself, or is more than can be done.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if self.targets.is_empty() {
            return Err(Fault::new("nothing is asked for: give a URL"));
        }
        self.check_tls()?;
        match self.load {
            Load::Open { rate, .. } if !(rate > 0.0 && rate <= RATE_MAX) => {
                return Err(Fault::new(format!("a rate is more than 0 and at most {RATE_MAX} a second")));
            }
            Load::Open { .. }
                if self.think != Think::None && self.session.is_none() || self.delay.is_some() =>
            {
                return Err(Fault::new("an open loop has no clients that could think or begin late")
                    .help("say `--clients N` for a closed loop"));
            }
            Load::Closed { clients } if clients == 0 || clients as usize > CONNECTIONS_MAX => {
                return Err(Fault::new(format!("a closed loop has 1 to {CONNECTIONS_MAX} clients")));
            }
            _ => {}
        }
        if let Handshakes::Resumed(share) = self.handshakes
            && !(0.0..=1.0).contains(&share)
        {
            return Err(Fault::new("the share of resumed handshakes is between 0 and 1"));
        }
        if self.handshakes == Handshakes::Resumed(0.0) {
            return Err(
                Fault::new("with a share of 0 no handshake is resumed").help("say `--handshake full`")
            );
        }
        self.check_opened_first()?;
        self.check_sessions()?;
        self.shares.check(self)?;
        crate::classes::check(self)?;
        self.check_protocol()?;
        self.check_bounds()
    }

    /// Whether something is asked over TLS.
    pub fn is_over_tls(&self) -> bool {
        self.targets.iter().any(|target| target.url.scheme == crate::Scheme::Https)
    }

    /// Without what is said of TLS where nothing is asked over it: of plans that are measured beside each other one may be
    /// without.
    #[must_use]
    pub fn with_tls_where_it_is(self) -> Plan {
        if self.is_over_tls() {
            return self;
        }
        let (offer, alpn, ca, certificate) = (Offer::default(), None, None, None);
        Plan { offer, alpn, ca, certificate, verify: true, server_name: None, ..self }
    }

    fn check_tls(&self) -> Result<(), Fault> {
        if self.is_over_tls() {
            return Ok(());
        }
        if self.handshakes != Handshakes::Keep {
            return Err(Fault::new("no URL is `https`, so there are no handshakes to choose").help(
                "for a new connection for each request without TLS, say `--requests-per-connection 1`",
            ));
        }
        // What nobody would heed must not stand among the settings. That no certificate is checked holds nothing to anything.
        let said = [
            ("--tls-version", self.offer.version.is_some()),
            ("--suites", !self.offer.suites.is_empty()),
            ("--groups", !self.offer.groups.is_empty()),
            ("--alpn", self.alpn.is_some()),
            ("--ca", self.ca.is_some()),
            ("--sni", self.server_name.is_some()),
            ("--cert", self.certificate.is_some()),
        ];
        match said.iter().find(|(_, is_said)| *is_said) {
            None => Ok(()),
            Some((option, _)) => Err(Fault::new(format!(
                "no URL is `https`, so there is no TLS for `{option}` to say something of"
            ))
            .help(format!("leave `{option}` out, or give a URL with `https`"))),
        }
    }

    fn check_opened_first(&self) -> Result<(), Fault> {
        let is_kept = matches!(self.load, Load::Open { .. }) && self.handshakes == Handshakes::Keep;
        match self.opened_first {
            0 => Ok(()),
            _ if !is_kept || self.session.is_some() => Err(Fault::new(
                "only an open loop of requests on kept connections can have them open before it begins",
            )
            .help("leave `--opened` out")),
            count if count > self.connections_max => {
                let most = self.connections_max;
                Err(Fault::new(format!(
                    "{count} connections cannot be open where there are {most} at the most"
                ))
                .help("say `--connections` as well"))
            }
            _ => Ok(()),
        }
    }

    fn check_sessions(&self) -> Result<(), Fault> {
        let Some(script) = &self.session else { return Ok(()) };
        if script.steps.len() != self.targets.len() {
            return Err(Fault::new("a session's steps are the plan's targets, and there are others"));
        }
        if self.shares.pipelined.is_some() || self.shares.tls.is_some() {
            return Err(Fault::new("a user asks for one thing after the other, where the step says")
                .help("of the shares, sessions take `--persistent`"));
        }
        if self.protocol == Protocol::Http2 {
            return Err(Fault::new("sessions of users are in HTTP/1.1").help("leave `--http2` out"));
        }
        Ok(())
    }

    fn check_protocol(&self) -> Result<(), Fault> {
        if self.protocol == Protocol::Http1 && self.streams != 1 {
            return Err(Fault::new("connections of HTTP/1.1 have no streams").help("say `--http2`"));
        }
        if self.protocol == Protocol::Http2 && self.shares.pipelined.is_some_and(|share| share > 0.0) {
            return Err(Fault::new("HTTP/2 has no pipelines").help("say `--streams N` instead"));
        }
        let Some(offered) = &self.alpn else { return Ok(()) };
        if let Some(name) = offered.iter().find(|name| name.is_empty() || name.len() > 255) {
            return Err(Fault::new(format!("`{name}` is no name of a protocol for ALPN")));
        }
        let spoken = self.protocol.alpn();
        // Who agrees on nothing speaks HTTP/1.1.
        let is_possible = offered.iter().any(|name| name == spoken)
            || (offered.is_empty() && self.protocol == Protocol::Http1);
        if !is_possible {
            return Err(Fault::new(format!("`{spoken}` is spoken, and must be among what ALPN offers")));
        }
        Ok(())
    }

    fn check_bounds(&self) -> Result<(), Fault> {
        let bounds = [
            ("threads", self.threads as u64, THREADS_MAX as u64),
            ("connections", self.connections_max as u64, CONNECTIONS_MAX as u64),
            ("streams", u64::from(self.streams), u64::from(STREAMS_MAX)),
            ("requests per connection", u64::from(self.requests_a_connection()), u64::from(u32::MAX)),
            ("ms of time", self.time.as_millis() as u64, SECONDS_MAX * 1000),
            ("ms of timeout", self.timeout.as_millis() as u64, SECONDS_MAX * 1000),
        ];
        for (what, value, most) in bounds {
            if value == 0 || value > most {
                return Err(Fault::new(format!("{value} {what}: there are 1 to {most}")));
            }
        }
        if self.warm_up.as_secs() > SECONDS_MAX {
            return Err(Fault::new(format!("a warm-up is at most {SECONDS_MAX} seconds")));
        }
        self.check_connections(self.threads)
    }

    /// Whether each of so many threads may have a connection; those of all agents are more than the plan's own.
    pub(crate) fn check_connections(&self, threads: usize) -> Result<(), Fault> {
        let most = self.connections_max;
        if most < threads {
            return Err(Fault::new(format!("{threads} threads cannot share {most} connections"))
                .help("say `--threads N`, which is of each machine, or more `--connections`"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
