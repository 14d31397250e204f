//! The keys of TLS on a listener.

use super::{Default, Key, Kind, Table};

pub(super) static LISTENER_TLS: Table = Table {
    header: "[listener.tls]",
    doc: "Ends TLS on this listener. All files are PEM.",
    groups: &[
        CERTIFICATE_KEYS,
        &[
            Key {
                name: "certificates",
                kind: Kind::Tables(&LISTENER_TLS_CERTIFICATES),
                default: Default::Words("`[]`"),
                doc: "More certificates, chosen by the DNS names in them when a client sends a server name. \
                      The first certificate serves every other client.",
            },
            MIN_VERSION,
            Key {
                name: "alpn",
                kind: Kind::Texts("protocol names"),
                default: Default::Words("what `http2` says"),
                doc: "Protocols offered to clients, best first: `h2`, which is HTTP/2, and `http/1.1`. Without it \
                      both, unless `http2` is `off` or `only`.",
            },
            Key {
                name: "tickets",
                kind: Kind::Boolean,
                default: Default::Boolean(true),
                doc: "Whether clients may resume sessions.",
            },
            Key {
                name: "session_s_max",
                kind: Kind::Integer { min: 1, max: 604_800, unit: "s" },
                default: Default::Integer(43_200),
                doc: "How long after a full handshake or a resumption its session may be resumed, by ticket or by \
                      identifier. TLS 1.3 allows seven days at most.",
            },
            Key {
                name: "ticket_key_file",
                kind: Kind::Text("a path"),
                default: Default::Words("keys of this process, replaced every six hours"),
                doc: "Keys of the tickets, for several processes that are to take each other's: one a line, 64 hex \
                      digits, `#` begins a comment, 16 at most. The first seals new tickets, each opens those that it \
                      sealed. It is read again at each reload. See [below](#ticket-keys-that-processes-share).",
            },
            Key {
                name: "client_ca",
                kind: Kind::Text("a path"),
                default: Default::Words("none"),
                doc: "Authorities that client certificates must come from.",
            },
            Key {
                name: "client_auth",
                kind: Kind::Word(&["off", "request", "require"]),
                default: Default::Word("off"),
                doc: "Whether a client is asked for a certificate, or must have one. Needs `client_ca` \
                      unless it is `off`.",
            },
        ],
    ],
};

static LISTENER_TLS_CERTIFICATES: Table = Table {
    header: "[[listener.tls.certificates]]",
    doc: "One more certificate.",
    groups: &[CERTIFICATE_KEYS],
};

pub(super) const MIN_VERSION: Key = Key {
    name: "min_version",
    kind: Kind::Word(&["1.2", "1.3"]),
    default: Default::Word("1.2"),
    doc: "The oldest version of TLS that is accepted.",
};

pub(super) static CERTIFICATE_KEYS: &[Key] = &[
    Key {
        name: "certificate",
        kind: Kind::Text("a path"),
        default: Default::Required,
        doc: "The certificate, followed by its intermediates.",
    },
    Key {
        name: "key",
        kind: Kind::Text("a path"),
        default: Default::Required,
        doc: "The private key of the certificate.",
    },
    KEY_PASSPHRASE_FILE,
];

pub(super) const KEY_PASSPHRASE_FILE: Key = Key {
    name: "key_passphrase_file",
    kind: Kind::Text("a path"),
    default: Default::Words("none: the key is not encrypted"),
    doc: "A file whose first line is the passphrase of the key, which is then PKCS #8 (`BEGIN ENCRYPTED PRIVATE KEY`) with \
          AES or triple DES.",
};
