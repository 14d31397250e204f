//! What handshakes agreed on, counted: whether it is what was asked for.

use pointsman_tls::{Offer, group_name, iana_name};
use rustls::crypto::aws_lc_rs::{ALL_CIPHER_SUITES, ALL_KX_GROUPS};
use rustls::{ClientConnection, HandshakeKind, ProtocolVersion};
use serde::{Deserialize, Serialize};

/// What kind of handshake it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// Full, in one round trip (TLS 1.3) or two (1.2).
    Full,
    /// Full, and the server asked for another group: one round trip more.
    Retried,
    /// An earlier session went on.
    Resumed,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Full, Kind::Retried, Kind::Resumed];

    /// A word for reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Full => "full",
            Kind::Retried => "full, retried",
            Kind::Resumed => "resumed",
        }
    }
}

/// What a handshake agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Negotiated {
    /// Full or resumed.
    pub kind: Kind,
    /// Whether we had a session that could have been resumed, and offered it.
    pub offered_session: bool,
    /// `1.3` or `1.2`.
    pub version: &'static str,
    /// The suite's name in IANA's registry.
    pub suite: &'static str,
    /// The group's name there; none where a session was resumed without one.
    pub group: &'static str,
    /// The protocol that ALPN chose; none where the server did not choose.
    pub protocol: &'static str,
}

impl Negotiated {
    /// Of a connection whose handshake is complete.
    pub fn of(connection: &ClientConnection, offered_session: bool) -> Negotiated {
        Negotiated {
            kind: match connection.handshake_kind() {
                Some(HandshakeKind::Resumed) => Kind::Resumed,
                Some(HandshakeKind::FullWithHelloRetryRequest) => Kind::Retried,
                _ => Kind::Full,
            },
            offered_session,
            version: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => "1.2",
                _ => "1.3",
            },
            suite: connection.negotiated_cipher_suite().map_or("", |suite| iana_name(suite.suite())),
            group: connection
                .negotiated_key_exchange_group()
                .and_then(|group| group.name().as_str())
                .unwrap_or(""),
            protocol: match connection.alpn_protocol() {
                None => "",
                Some(b"http/1.1") => "http/1.1",
                Some(b"h2") => "h2",
                Some(_) => "another",
            },
        }
    }
}

/// How many of these handshakes agreed on something else than was pinned, a sentence for each part of it: what makes a run void.
pub fn unlike_pinned(pinned: &Offer, negotiated: &[(Negotiated, u64)]) -> Vec<String> {
    let differ = |what| count_of(negotiated, |agreed| differing(pinned, agreed) == Some(what));
    ["version", "suite", "group"]
        .into_iter()
        .filter_map(|what| another(what, differ(what), negotiated))
        .collect()
}

/// The sentence about `count` of them that agreed on another thing, if there are any.
pub(crate) fn another(what: &str, count: u64, negotiated: &[(Negotiated, u64)]) -> Option<String> {
    let all = count_of(negotiated, |_| true);
    (count > 0).then(|| format!("{count} of {all} handshakes agreed on another {what} than was asked for"))
}

/// How many of these handshakes are so.
pub fn count_of(negotiated: &[(Negotiated, u64)], is: impl Fn(&Negotiated) -> bool) -> u64 {
    negotiated.iter().filter(|(agreed, _)| is(agreed)).map(|(_, count)| count).sum()
}

/// The first thing that was pinned and not agreed on, by its name.
fn differing(pinned: &Offer, agreed: &Negotiated) -> Option<&'static str> {
    let is_other = |pinned: &[String], agreed: &str| {
        !pinned.is_empty() && !pinned.iter().any(|name| group_name(name).eq_ignore_ascii_case(agreed))
    };
    if pinned.version.is_some_and(|version| version.name() != agreed.version) {
        return Some("version");
    }
    if is_other(&pinned.suites, agreed.suite) {
        return Some("suite");
    }
    (!agreed.group.is_empty() && is_other(&pinned.groups, agreed.group)).then_some("group")
}

/// How often each thing was agreed on. There are few different ones.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<Packed>", into = "Vec<Packed>")]
pub struct Agreements(Vec<(Negotiated, u64)>);

impl Agreements {
    /// One more.
    pub fn count(&mut self, negotiated: Negotiated) {
        self.add(negotiated, 1);
    }

    pub(crate) fn add(&mut self, negotiated: Negotiated, count: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == negotiated) {
            Some((_, known)) => *known += count,
            None => self.0.push((negotiated, count)),
        }
    }

    /// All of these, as a run has them.
    pub(crate) fn add_all(&mut self, negotiated: &[(Negotiated, u64)]) {
        negotiated.iter().for_each(|(negotiated, count)| self.add(*negotiated, *count));
    }

    pub(crate) fn merge(&mut self, other: Agreements) {
        self.add_all(&other.0);
    }

    /// The most frequent first.
    pub fn into_sorted(mut self) -> Vec<(Negotiated, u64)> {
        self.0.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        self.0
    }
}

/// One of them on its way from one machine to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Packed {
    kind: Kind,
    offered_session: bool,
    version: String,
    suite: String,
    group: String,
    protocol: String,
    count: u64,
}

impl From<Agreements> for Vec<Packed> {
    fn from(Agreements(all): Agreements) -> Vec<Packed> {
        let packed = all.into_iter().map(|(agreed, count)| Packed {
            kind: agreed.kind,
            offered_session: agreed.offered_session,
            version: agreed.version.to_owned(),
            suite: agreed.suite.to_owned(),
            group: agreed.group.to_owned(),
            protocol: agreed.protocol.to_owned(),
            count,
        });
        packed.collect()
    }
}

impl TryFrom<Vec<Packed>> for Agreements {
    type Error = String;

    fn try_from(packed: Vec<Packed>) -> Result<Agreements, String> {
        let suites = || ALL_CIPHER_SUITES.iter().map(|suite| iana_name(suite.suite())).chain([""]);
        let groups = || ALL_KX_GROUPS.iter().filter_map(|group| group.name().as_str()).chain([""]);
        let mut all = Agreements::default();
        for packed in packed {
            let negotiated = Negotiated {
                kind: packed.kind,
                offered_session: packed.offered_session,
                version: known(&packed.version, ["1.2", "1.3"].into_iter())?,
                suite: known(&packed.suite, suites())?,
                group: known(&packed.group, groups())?,
                protocol: known(&packed.protocol, ["", "http/1.1", "h2", "another"].into_iter())?,
            };
            all.add(negotiated, packed.count);
        }
        Ok(all)
    }
}

/// The name as this program has it.
fn known(name: &str, mut names: impl Iterator<Item = &'static str>) -> Result<&'static str, String> {
    names.find(|known| *known == name).ok_or_else(|| format!("no handshake agrees on `{name}`"))
}
