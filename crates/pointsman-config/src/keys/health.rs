//! The keys of a pool's probes.

use super::{DAY_MS, Default, Key, Kind, Table};

pub(super) static HEALTH: Table = Table {
    header: "[pool.NAME.health]",
    doc: "How the servers of the pool are probed. One that is down gets nothing, until it is up again. Probes go \
          where requests go and begin as their connections do: with a PROXY header where the pool says so, then TLS. See \
          the [guide](../guide/health.md).",
    groups: &[CONVERSATION, EXPECTED, TIMES],
};

const CONVERSATION: &[Key] = &[
    Key {
        name: "kind",
        kind: Kind::Word(&["http", "tcp", "tls", "grpc"]),
        default: Default::Word("http"),
        doc: "What a probe does. `http`: a request, over HTTP/2 where the pool speaks it. `tcp`: it connects. `tls`: it \
              connects and shakes hands. `grpc`: it calls `Check` of `grpc.health.v1.Health`, which must say `SERVING`.",
    },
    Key {
        name: "path",
        kind: Kind::Text("a path such as `/health`"),
        default: Default::Words("`\"/\"`"),
        doc: "What is asked for, with a query if need be.",
    },
    Key {
        name: "host",
        kind: Kind::Text("a host, with a port if need be"),
        default: Default::Words("`tls_name` of the server, or its address"),
        doc: "The `Host` of the request, or `:authority`.",
    },
    Key {
        name: "method",
        kind: Kind::Word(&["GET", "HEAD", "OPTIONS"]),
        default: Default::Word("GET"),
        doc: "How it is asked for.",
    },
    Key {
        name: "service",
        kind: Kind::Text("the name of a service"),
        default: Default::Words("the server as a whole"),
        doc: "What a gRPC server is asked about.",
    },
    Key {
        name: "port",
        kind: Kind::Integer { min: 1, max: 65_535, unit: "ports" },
        default: Default::Words("that of the server's address"),
        doc: "The port that is probed.",
    },
];

const EXPECTED: &[Key] = &[
    Key {
        name: "expect_status",
        kind: Kind::Texts("status codes such as `204` or ranges such as `200-299`"),
        default: Default::Words("`[\"200-399\"]`"),
        doc: "With what status a server is up.",
    },
    Key {
        name: "expect_header",
        kind: Kind::Texts("names of fields, or `name: value`"),
        default: Default::Words("`[]`"),
        doc: "Fields that the answer must have, each with this value where one is written.",
    },
    Key {
        name: "expect_body",
        kind: Kind::Text("a text"),
        default: Default::Words("any body"),
        doc: "What must stand in the answer's body.",
    },
    Key {
        name: "expect_body_regex",
        kind: Kind::Text("a regex"),
        default: Default::Words("any body"),
        doc: "What must match somewhere in the answer's body, as the regexes of rules do.",
    },
    Key {
        name: "body_bytes_max",
        kind: Kind::Integer { min: 1, max: 1_048_576, unit: "bytes" },
        default: Default::Integer(16_384),
        doc: "How much of the body is looked into; what follows is not read.",
    },
];

const TIMES: &[Key] = &[
    Key {
        name: "interval_ms",
        kind: Kind::Integer { min: 100, max: DAY_MS, unit: "ms" },
        default: Default::Integer(5000),
        doc: "From the end of a probe to the next one.",
    },
    Key {
        name: "jitter_percent",
        kind: Kind::Integer { min: 0, max: 100, unit: "percent" },
        default: Default::Integer(10),
        doc: "How much of `interval_ms` a wait may be shorter or longer, by chance.",
    },
    Key {
        name: "timeout_ms",
        kind: Kind::Integer { min: 25, max: DAY_MS, unit: "ms" },
        default: Default::Integer(2000),
        doc: "How long a probe may take, from connecting to the last byte that it looks at.",
    },
    Key {
        name: "rise",
        kind: Kind::Integer { min: 1, max: 100, unit: "probes" },
        default: Default::Integer(2),
        doc: "Probes in a row that must pass until a server that is down is up. The first of all decides alone.",
    },
    Key {
        name: "fall",
        kind: Kind::Integer { min: 1, max: 100, unit: "probes" },
        default: Default::Integer(3),
        doc: "Probes in a row that must fail until a server that is up is down. The first of all decides alone.",
    },
    Key {
        name: "start",
        kind: Kind::Word(&["up", "probe"]),
        default: Default::Word("up"),
        doc: "What a new server is until its first probe: `up`, or, with `probe`, without requests.",
    },
];
