//! The keys of a class of `limitRate`.

use super::{Default, Key, Kind, Table};

pub(super) static LIMIT: Table = Table {
    header: "[limit.NAME]",
    doc: "How many requests may come that rules call by `limitRate(NAME)`. Each bucket holds `burst` requests at \
          first and fills at the rate; a request takes one when it is decided, and where there is none it is answered \
          with `status` and `Retry-After`. A reload keeps what was taken, unless it changes `key` or `keys_max`.",
    groups: &[&[
        Key {
            name: "key",
            kind: Kind::Text("a field of the connection or the head, as rules write it"),
            default: Default::Words("all requests share one bucket"),
            doc: "Requests with the same first value of it share a bucket: `clientip`, `cookie[\"sid\"]`, \
                  `header[\"x-api-key\"]`. Of an IPv6 address the first 64 bits count. Those that have no value share \
                  one bucket, too.",
        },
        Key {
            name: "per_second",
            kind: Kind::Integer { min: 1, max: 1_000_000, unit: "requests" },
            default: Default::Words("see `per_minute`"),
            doc: "Requests that a bucket gets in a second. One of the two must be there.",
        },
        Key {
            name: "per_minute",
            kind: Kind::Integer { min: 1, max: 1_000_000, unit: "requests" },
            default: Default::Words("see `per_second`"),
            doc: "The same in a minute.",
        },
        Key {
            name: "burst",
            kind: Kind::Integer { min: 1, max: 1_000_000, unit: "requests" },
            default: Default::Words("as many as come in a second, at least 1"),
            doc: "Requests that a bucket holds: so many may come at once after a pause.",
        },
        Key {
            name: "keys_max",
            kind: Kind::Integer { min: 1, max: 10_000_000, unit: "keys" },
            default: Default::Integer(100_000),
            doc: "Buckets that there is room for, of 32 bytes each, rounded up to a power of two: 4 MiB for 100,000, \
                  taken at once. Where there is no room for a new one, the one that is the nearest to full is \
                  forgotten.",
        },
        Key {
            name: "status",
            kind: Kind::Integer { min: 400, max: 599, unit: "as a status" },
            default: Default::Integer(429),
            doc: "What a request that is too much is answered with.",
        },
    ]],
};
