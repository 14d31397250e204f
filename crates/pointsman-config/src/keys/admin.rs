//! The keys of the admin listener.

use super::listener_tls::{CERTIFICATE_KEYS, MIN_VERSION};
use super::{ADDRESS, Default, Key, Kind, Table};

pub(super) static ADMIN: Table = Table {
    header: "[admin]",
    doc: "Serves `/metrics`, `/health` and the [admin API](admin-api.md). On the loopback everybody may read; changes, \
          and whatever is asked from elsewhere, need a token or a client certificate. Without this table there is no \
          admin listener.",
    groups: &[&[
        Key {
            name: "bind",
            kind: Kind::Text(ADDRESS),
            default: Default::Required,
            doc: "The address to listen on. One that is not on the loopback needs `token_file`, or \
                  `client_ca` of `tls`; without `tls` it gives a warning: tokens come there in the clear. Port 0 takes any free one, which commands cannot find.",
        },
        Key {
            name: "tls",
            kind: Kind::Table(&ADMIN_TLS),
            default: Default::Words("plain HTTP"),
            doc: "Ends TLS here.",
        },
        Key {
            name: "token_file",
            kind: Kind::Text("a path"),
            default: Default::Words("none: only client certificates can change something"),
            doc: "Tokens that changes need, one a line, each with at least 128 random bits, a name before it where \
                  it has one; `#` begins a comment. 64 at most. It is read again at each reload.",
        },
        Key {
            name: "audit_log",
            kind: Kind::Text("a path"),
            default: Default::Words("none: standard error alone"),
            doc: "The file that a line in JSON is appended to for each change, refused ones included. It is opened for \
                  each, so that it may be moved away at any time.",
        },
        Key {
            name: "allowed_origins",
            kind: Kind::Texts("origins such as `https://console.example`"),
            default: Default::Words("`[]`"),
            doc: "Web pages that may ask, besides those from the admin listener itself, and names of hosts that it may \
                  be called by, besides `localhost` and addresses.",
        },
        Key {
            name: "metrics_rules_max",
            kind: Kind::Integer { min: 0, max: 1_000_000, unit: "rules" },
            default: Default::Integer(500),
            doc: "Of how many rules `/metrics` tells [statuses and durations](metrics-and-logs.md#rules) by name, in the \
                  whole process, 30 series each. Those that decide first have the places; the others count together.",
        },
    ]],
};

static ADMIN_TLS: Table = Table {
    header: "[admin.tls]",
    doc: "Ends TLS on the admin listener. All files are PEM; they are read again at each reload, and watched like the \
          others.",
    groups: &[
        CERTIFICATE_KEYS,
        &[
            MIN_VERSION,
            Key {
                name: "client_ca",
                kind: Kind::Text("a path"),
                default: Default::Words("none: nobody is asked for a certificate"),
                doc: "Authorities of client certificates: who shows one of theirs may do whatever a token may. Name \
                      authorities that issue nothing else.",
            },
            Key {
                name: "client_auth",
                kind: Kind::Word(&["request", "require"]),
                default: Default::Word("request"),
                doc: "Whether a client without a certificate is let in, to show a token or to read, or not. Needs \
                      `client_ca`.",
            },
        ],
    ],
};
