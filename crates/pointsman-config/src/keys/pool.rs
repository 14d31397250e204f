//! The keys of a pool.

use super::balance::{BALANCE, HASH_KEYS};
use super::health::HEALTH;
use super::listener_tls::KEY_PASSPHRASE_FILE;
use super::{Default, Key, Kind, Table};
use crate::limits::POOL_LIMIT_KEYS;

/// The header of a pool's table.
pub(crate) const POOL_HEADER: &str = "[pool.NAME]";

pub(super) static POOL: Table = Table {
    header: POOL_HEADER,
    doc: "Servers that stand in for each other. The name is made of letters, digits, `-` and `_`; rules and \
          listeners call the pool by it.",
    groups: &[
        &[
            BALANCE,
            Key {
                name: "servers",
                kind: Kind::TextsOrTables(SERVER_ADDRESSES, &POOL_SERVERS),
                default: Default::Required,
                doc: "At least one server, each as an address or as a table.",
            },
            Key {
                name: "tls",
                kind: Kind::Table(&POOL_TLS),
                default: Default::Words("plain HTTP"),
                doc: "How TLS is spoken to the servers; `tls = {}` is enough where the system trusts their \
                      certificates.",
            },
            Key {
                name: "protocol",
                kind: Kind::Word(&["http/1.1", "h2"]),
                default: Default::Word("http/1.1"),
                doc: "What the servers speak. `h2` is HTTP/2, which gRPC needs: with `tls` as agreed on in the \
                      handshake, without it with prior knowledge.",
            },
            Key {
                name: "proxy_protocol",
                kind: Kind::Word(&["off", "v1", "v2"]),
                default: Default::Word("off"),
                doc: "Whether a connection to a server begins with a PROXY header, before TLS, that says whose requests \
                      it carries: those of one client's connection alone. `v2` also says what is known of the \
                      client's TLS.",
            },
            Key {
                name: "on_down",
                kind: Kind::Word(&["repick", "fail"]),
                default: Default::Word("repick"),
                doc: "What becomes of a sticky client whose server is down. `repick`: it gets another one, and stays \
                      with that. `fail`: it gets 503 until its server is back.",
            },
            Key {
                name: "health",
                kind: Kind::Table(&HEALTH),
                default: Default::Words("servers are not probed"),
                doc: "How the servers are probed; `health = {}` is enough where they answer `GET /`.",
            },
            Key {
                name: "retry_on",
                kind: Kind::Texts(
                    "some of `connect`, `reset`, `timeout`, `status-502`, `status-503`, `status-504`",
                ),
                default: Default::Words("`[\"connect\", \"reset\"]`"),
                doc: "What another server is asked for, while the request is held whole and nothing of its answer has \
                      gone to the client. `[]`: for nothing.",
            },
            Key {
                name: "retry_methods",
                kind: Kind::OneOrMoreTexts("`idempotent`, `safe`, `any`, or methods such as `POST`"),
                default: Default::Words("`idempotent`"),
                doc: "Which requests are sent again though a server may have looked at them.",
            },
        ],
        HASH_KEYS,
        POOL_LIMIT_KEYS,
    ],
};

static POOL_SERVERS: Table = Table {
    header: "[[pool.NAME.servers]]",
    doc: "One server, usually written inline: `{ name = \"big\", address = \"127.0.0.1:9002\", weight = 3 }`.",
    groups: &[&[
        Key {
            name: "name",
            kind: Kind::Text("a name"),
            default: Default::Words("the address"),
            doc: "Unique in its pool: letters, digits, `-`, `_` and `.`. Rules call the server by it.",
        },
        Key {
            name: "address",
            kind: Kind::Text(SERVER_ADDRESS),
            default: Default::RequiredWithout("service"),
            doc: "Where it listens. A host name is looked up at the start and again whenever its answer has aged; of \
                  several addresses one is taken, as long as it is among the answers \
                  ([guide](../guide/balancing.md#servers-that-have-names)).",
        },
        Key {
            name: "service",
            kind: Kind::Text("the name of a service such as `_http._tcp.shop.example`"),
            default: Default::Words("none"),
            doc: "In place of `address`, and without `name` and `weight`: as many servers as the records of this name say \
                  (SRV, RFC 2782), with their weights and ports, and looked up likewise. Those of the least priority \
                  value serve, the others as backups, one value after the other \
                  ([guide](../guide/balancing.md#services)).",
        },
        Key {
            name: "weight",
            kind: Kind::Integer { min: 1, max: 1000, unit: "shares" },
            default: Default::Integer(1),
            doc: "Its share, beside the other servers of the pool, under the weighted algorithms.",
        },
        Key {
            name: "connections_max",
            kind: Kind::Integer { min: 0, max: 10_000_000, unit: "connections" },
            default: Default::Integer(0),
            doc: "Connections to it that may be in use at a time, in the whole process: of HTTP/1 each has one request, of \
                  HTTP/2 each request counts. Idle ones do not count. 0: no limit.",
        },
        Key {
            name: "backup",
            kind: Kind::Boolean,
            default: Default::Boolean(false),
            doc: "Whether it serves only when no other server of the pool can.",
        },
        Key {
            name: "zone",
            kind: Kind::Text("a name"),
            default: Default::Words("that of the switch"),
            doc: "Where it stands. Servers in the `zone` of the switch come first.",
        },
        Key {
            name: "tls_name",
            kind: Kind::Text(TLS_NAME),
            default: Default::Words("`name` of the pool's `tls`"),
            doc: "The name that this server's certificate is for. Needs `tls` of the pool.",
        },
    ]],
};

static POOL_TLS: Table = Table {
    header: "[pool.NAME.tls]",
    doc: "TLS to the servers of the pool, 1.2 or 1.3, with what its `protocol` says offered by ALPN and sessions resumed. All files \
          are PEM. The handshake is part of `connect_ms_max`.",
    groups: &[&[
        Key {
            name: "ca",
            kind: Kind::Text("a path"),
            default: Default::Words("those that the system trusts"),
            doc: "Authorities that a server's certificate must come from. A certificate that stands here may also be \
                  the server's own.",
        },
        Key {
            name: "name",
            kind: Kind::Text(TLS_NAME),
            default: Default::Words("the host of each server's `address`, or the domain of its `service`"),
            doc: "The name that the servers' certificates are for. A host name is also sent as server name (SNI), an \
                  address is not.",
        },
        Key {
            name: "certificate",
            kind: Kind::Text("a path"),
            default: Default::Words("none"),
            doc: "What is shown to a server that asks for a certificate, followed by its intermediates. Needs `key`.",
        },
        Key {
            name: "key",
            kind: Kind::Text("a path"),
            default: Default::Words("none"),
            doc: "The private key of `certificate`.",
        },
        KEY_PASSPHRASE_FILE,
        Key {
            name: "verify",
            kind: Kind::Boolean,
            default: Default::Boolean(true),
            doc: "Whether the servers' certificates are checked. `false` takes any, so that whoever stands between can \
                  read and change everything; it gives a warning.",
        },
        Key {
            name: "min_version",
            kind: Kind::Word(&["1.2", "1.3"]),
            default: Default::Word("1.2"),
            doc: "The oldest version of TLS that is spoken.",
        },
    ]],
};

const SERVER_ADDRESS: &str = "an address such as `127.0.0.1:9001` or `host:9001`";
const SERVER_ADDRESSES: &str = "addresses such as `127.0.0.1:9001` or `host:9001`";
const TLS_NAME: &str = "a host name or an address, without a port";
