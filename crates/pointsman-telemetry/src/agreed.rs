//! What TLS handshakes of clients come to.

/// What was agreed on in a handshake that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Whether a session went on or was begun.
    pub session: TlsSession,
    /// The version.
    pub version: TlsVersion,
    /// By what keys were exchanged.
    pub group: TlsGroup,
}

/// The session of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsSession {
    /// A new one.
    Full,
    /// An earlier one goes on.
    Resumed,
}

/// A version that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// 1.2.
    V12,
    /// 1.3.
    V13,
}

/// A group by which keys are exchanged, under its name in IANA's registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsGroup {
    /// The hybrid of a lattice and a curve.
    X25519MlKem768,
    /// A curve.
    X25519,
    /// P-256.
    Secp256r1,
    /// P-384.
    Secp384r1,
    /// Another one.
    Other,
    /// No keys were exchanged: a session of 1.2 went on.
    None,
}

impl TlsSession {
    pub(crate) const ALL: [(TlsSession, &'static str); 2] =
        [(TlsSession::Full, "full"), (TlsSession::Resumed, "resumed")];
}

impl TlsVersion {
    pub(crate) const ALL: [(TlsVersion, &'static str); 2] =
        [(TlsVersion::V12, "1.2"), (TlsVersion::V13, "1.3")];

    /// Of its name; only two are ever agreed on.
    pub fn named(name: &str) -> TlsVersion {
        if name == "1.2" { TlsVersion::V12 } else { TlsVersion::V13 }
    }
}

impl TlsGroup {
    pub(crate) const ALL: [(TlsGroup, &'static str); 6] = [
        (TlsGroup::X25519MlKem768, "X25519MLKEM768"),
        (TlsGroup::X25519, "X25519"),
        (TlsGroup::Secp256r1, "secp256r1"),
        (TlsGroup::Secp384r1, "secp384r1"),
        (TlsGroup::Other, "other"),
        (TlsGroup::None, "none"),
    ];

    /// Of its name, where there is one.
    pub fn named(name: Option<&str>) -> TlsGroup {
        let Some(name) = name else { return TlsGroup::None };
        let known = Self::ALL.into_iter().find(|(_, known)| *known == name);
        known.map_or(TlsGroup::Other, |(group, _)| group)
    }
}

// Counters are arrays indexed by these enums: a variant without a label must not compile.
const _: () = assert!(TlsSession::ALL.len() == TlsSession::Resumed as usize + 1);
const _: () = assert!(TlsVersion::ALL.len() == TlsVersion::V13 as usize + 1);
const _: () = assert!(TlsGroup::ALL.len() == TlsGroup::None as usize + 1);
