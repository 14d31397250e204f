//! What handshakes are to be measured.

use std::path::PathBuf;
use std::time::Duration;

use pointsman_bench::{Close, Interrupt, Offer, Scheme, Url};
use pointsman_tls::CertificateFiles;

use crate::library::Library;
use crate::work::Trouble;

/// Handshakes of a series at most.
pub(crate) const COUNT_MAX: u32 = 10_000_000;
/// Series at most.
pub(crate) const SERIES_MAX: usize = 64;

/// All of it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server, and what is asked of it behind each handshake.
    pub url: Url,
    /// What is offered, one series each; they take turns, handshake by handshake.
    pub series: Vec<Wanted>,
    /// Handshakes of each series.
    pub count: u32,
    /// A PEM file of the authorities that the certificate must come from; `None`: those of the system.
    pub ca: Option<PathBuf>,
    /// Whether the certificate is checked.
    pub verify: bool,
    /// What is shown to a server that asks for a certificate.
    pub certificate: Option<CertificateFiles>,
    /// The server name that is asked for; `None`: the URL's host.
    pub server_name: Option<String>,
    /// How long a handshake, and the answer behind it, may take.
    pub timeout: Duration,
    /// How connections are ended.
    pub close: Close,
    /// Where the secrets of the connections are written, for who reads the capture.
    pub key_log: Option<PathBuf>,
    /// Where the bytes of the connections are written, as a capture.
    pub capture: Option<PathBuf>,
    /// What the server is taken to compute with in the prediction; `None`: nothing is predicted.
    pub predicted_with: Option<Library>,
    /// What draws begin with.
    pub seed: u64,
    /// What ends it before its time.
    pub interrupt: Interrupt,
}

/// What a series is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Full or resumed.
    pub kind: KindWanted,
    /// What is offered; a name in it pins.
    pub offer: Offer,
}

/// Which kind of handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindWanted {
    /// Full.
    Full,
    /// An earlier session goes on.
    Resumed,
}

impl KindWanted {
    /// `full` or `resumed`.
    pub fn name(self) -> &'static str {
        match self {
            KindWanted::Full => "full",
            KindWanted::Resumed => "resumed",
        }
    }
}

impl Wanted {
    /// What it is called beside the others.
    pub fn name(&self) -> String {
        let version = self.offer.version.map(|version| format!("TLS {}", version.name()));
        let parts = [Some(self.kind.name().to_owned()), version]
            .into_iter()
            .flatten()
            .chain(self.offer.suites.iter().cloned())
            .chain(self.offer.groups.iter().cloned());
        parts.collect::<Vec<_>>().join(", ")
    }
}

impl Plan {
    /// A thousand full handshakes, with whatever is agreed on.
    pub fn new(url: Url) -> Plan {
        Plan {
            url,
            series: vec![Wanted { kind: KindWanted::Full, offer: Offer::default() }],
            count: 1_000,
            ca: None,
            verify: true,
            certificate: None,
            server_name: None,
            timeout: Duration::from_secs(10),
            close: Close::default(),
            key_log: None,
            capture: None,
            predicted_with: Some(Library::aws_lc_rs()),
            seed: 1,
            interrupt: Interrupt::default(),
        }
    }

    /// What contradicts itself, or is more than can be done.
    pub(crate) fn check(&self) -> Result<(), Trouble> {
        let no = |words: String| Err(Trouble::new(words));
        if self.url.scheme != Scheme::Https {
            return no(format!("{} is not `https`: there is no handshake to measure", self.url));
        }
        if !(1..=COUNT_MAX).contains(&self.count) {
            return no(format!("there are 1 to {COUNT_MAX} handshakes, not {}", self.count));
        }
        if !(1..=SERIES_MAX).contains(&self.series.len()) {
            return no(format!("there are 1 to {SERIES_MAX} series, not {}", self.series.len()));
        }
        if self.timeout.is_zero() {
            return no("a timeout of nothing is over before it begins".to_owned());
        }
        Ok(())
    }
}
