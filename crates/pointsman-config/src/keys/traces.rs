//! The keys of traces.

use super::{Default, Key, Kind, Table};

pub(super) static TRACES: Table = Table {
    header: "[traces]",
    doc: "Spans of requests, sent to a collector of OpenTelemetry ([all of it](metrics-and-logs.md#traces)). Without this \
          table there are none, and trace context passes through as any field. What has changed here takes effect at the \
          next start.",
    groups: &[&[
        Key {
            name: "endpoint",
            kind: Kind::Text("an address of plain HTTP, as in `http://127.0.0.1:4318/v1/traces`"),
            default: Default::Required,
            doc: "Where a collector takes OTLP over HTTP, in its JSON. The port is 4318 and the path `/v1/traces` where they \
                  are left out. A name is looked up as those of servers are, by what \
                  `[dns]` says.",
        },
        Key {
            name: "service",
            kind: Kind::Text("a name"),
            default: Default::Words("`pointsman`"),
            doc: "What the switch is called there (`service.name`).",
        },
        Key {
            name: "sample",
            kind: Kind::Text("a percentage, as in `10%` or `0.5%`"),
            default: Default::Words("every request"),
            doc: "How many requests are sampled, by chance, where nobody says so who is in `trusted_proxies`.",
        },
    ]],
};
