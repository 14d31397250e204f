//! What clients and servers may take: each limit is one line here, and its field, its key, its default, its
//! range and its line of the reference come from it.

use pointsman_view::{BodyKind, BodyLabel, BodyOptions, ContentLimits, Servers};

use crate::keys::{DAY_MS, Default as KeyDefault, Key, Kind};
use crate::section::Section;

limits! {
    /// What a client of a listener may take.
    pub struct ListenerLimits, LISTENER_LIMIT_KEYS;

    connections_max: u32 = 65_536, 1..10_000_000, "connections",
        "Open connections of this listener, in the whole process; more are refused with 503, over TLS by closing.";
    connections_per_address_max: u32 = 0, 0..10_000_000, "connections",
        "Open connections from one address, or from one /64 of IPv6, to this listener; more are refused with 429, over TLS by closing. Peers in `trusted_proxies` are not counted, but the clients that they name in PROXY headers are. 0: no limit.";
    handshakes_per_address_per_second_max: u32 = 0, 0..1_000_000, "handshakes/s",
        "TLS handshakes that one address, or one /64 of IPv6, may begin in a second, resumptions among them; what comes beyond is closed before the handshake costs anything. Peers in `trusted_proxies` are not counted, but the clients that they name in PROXY headers are. 0: no limit.";
    head_bytes_max: u32 = 16_384, 1024..1_048_576, "bytes",
        "Bytes of a request's head; 431 over it.";
    headers_max: u16 = 100, 1..256, "headers",
        "Header lines of a request; 431 over it.";
    target_bytes_max: u32 = 8192, 64..1_048_576, "bytes",
        "Bytes of a request's target; 414 over it.";
    body_bytes_max: u64 = 0, 0..1_125_899_906_842_624, "bytes",
        "Bytes of a request's body; 413 over it. 0: no limit.";
    requests_max: u32 = 0, 0..4_294_967_295, "requests",
        "Requests on one connection, which is then closed. 0: no limit.";
    pipeline_requests_max: u16 = 16, 2..128, "requests",
        "Requests of one connection that are on their way at a time where `pipeline` is `concurrent` or `latest`; more are not read until one of them is answered.";
    pipeline_bytes_max: u32 = 262_144, 1024..1_073_741_824, "bytes",
        "Bytes of answers that wait for their turn on one connection, likewise; at that the servers that send them are not read.";
    proxy_header_ms_max: u32 = 10_000, 1..DAY_MS, "ms",
        "From a connection's start to the end of its PROXY header, where one is required.";
    http2_streams_max: u32 = 100, 1..65_536, "streams",
        "Requests of one HTTP/2 connection at a time; more wait at the client.";
    http2_stream_window_bytes: u32 = 262_144, 16_384..16_777_216, "bytes",
        "Bytes of a request's body over HTTP/2 that may come before its server takes them. Booked of `buffer_bytes_max` for each request with a body, and each tunnel.";
    http2_window_bytes: u32 = 1_048_576, 65_535..16_777_216, "bytes",
        "The same for all requests of one connection together, on top of the windows of those that are open and have a body: what nobody reads of one is in no other's way.";
    handshake_ms_max: u32 = 10_000, 1..DAY_MS, "ms",
        "The TLS handshake.";
    head_ms_max: u32 = 10_000, 1..DAY_MS, "ms",
        "From a request's first byte to the end of its head; 408 over it.";
    idle_ms_max: u32 = 60_000, 1..DAY_MS, "ms",
        "Between two requests of a connection, which is then closed.";
    body_ms_max: u32 = 30_000, 1..DAY_MS, "ms",
        "Between two bytes of a request's body; 408 over it. While an early answer is relayed the answer's limits hold instead, and behind it this begins anew.";
    body_bytes_per_second_min: u32 = 240, 0..1_000_000_000, "bytes",
        "How fast a request's body must come on average, beyond a first `body_ms_max`; 408 below it. Only time in which the client is waited for counts, and none beside an early answer. 0: as slowly as it likes.";
    half_closed_ms_max: u32 = 10_000, 1..DAY_MS, "ms",
        "How long the server of a client that sends nothing more, and so may have left, may stay silent: then both connections end.";
    tunnel_idle_ms_max: u32 = 3_600_000, 1..DAY_MS, "ms",
        "How long nothing may come through a tunnel in either direction before it is closed. Once a side sends nothing more, `half_closed_ms_max` holds where it is less.";
    write_ms_max: u32 = 30_000, 1..DAY_MS, "ms",
        "How long a client may take no byte of an answer before it is cut off, at most a quarter of that later. Taken is what its kernel acknowledges; with a full window it does so only when a sizeable share of its buffer, or a segment, is free.";
}

limits! {
    /// What a body may be, and take, that is read for the rules.
    pub struct BodyLimits, BODY_LIMIT_KEYS;

    body_depth_max: u32 = 64, 1..4096, "levels",
        "Elements, objects and arrays within each other in a body that is read for the rules. Over this and the limits that follow, what the rules ask of the body ends unknown, cause limit: 413 unless they say otherwise with `on_unknown`.";
    body_attributes_max: u32 = 64, 1..1024, "attributes",
        "Attributes of an XML element, its namespace declarations among them.";
    body_name_bytes_max: u32 = 256, 1..65_536, "bytes",
        "Bytes of the name of an XML element or attribute, with its prefix, and of a form's field, decoded.";
    body_value_bytes_max: u32 = 4096, 1..1_048_576, "bytes",
        "Bytes of a value that the rules ask for, decoded. A longer one exists, and comparing it is unknown.";
    body_parameters_max: u32 = 1000, 1..1_000_000, "fields",
        "Fields of a form, files among them.";
    body_decoded_bytes_max: u64 = 16_777_216, 1024..1_099_511_627_776, "bytes",
        "Bytes that a body comes to when its Content-Encoding is undone. It may not come to more either than 256 KiB and 100 times the bytes that were sent: what does is a bomb, whatever this is set to. The server gets it as it was sent.";
    hold_bytes_max: u32 = 16_777_216, 16_384..1_073_741_824, "bytes",
        "Bytes of a request's body, with what frames them, that are held while the rules wait for what it says; what they would decide beyond is unknown, cause limit: 413 unless the rules say otherwise with `on_unknown`. It is no more than `hold_total_bytes_max`.";
}

limits! {
    /// What a server of a pool may take.
    pub struct PoolLimits, POOL_LIMIT_KEYS;

    connect_ms_max: u32 = 3000, 1..DAY_MS, "ms",
        "Connecting to a server; 504 over it.";
    response_ms_max: u32 = 60_000, 1..DAY_MS, "ms",
        "From the last byte of a request to the end of the answer's head; 504 over it.";
    body_ms_max: u32 = 60_000, 1..DAY_MS, "ms",
        "Between two bytes of an answer's body.";
    write_ms_max: u32 = 30_000, 1..DAY_MS, "ms",
        "How long a server may take no byte of a request; 504 over it, at most a quarter of that later. Taken is what its kernel acknowledges, likewise.";
    idle_ms_max: u32 = 30_000, 1..DAY_MS, "ms",
        "How long an idle connection is kept.";
    idle_connections_max: u32 = 256, 0..65_536, "connections",
        "Idle connections kept for each server and thread. 0: none is kept.";
    http2_streams_max: u32 = 100, 1..65_536, "streams",
        "Requests on one HTTP/2 connection at a time, if the server takes so many; for more another one is opened.";
    http2_stream_window_bytes: u32 = 262_144, 16_384..16_777_216, "bytes",
        "Bytes of an answer's body over HTTP/2 that may come before the client takes them. Booked of `buffer_bytes_max` for each request.";
    zone_threshold_percent: u32 = 70, 0..100, "percent",
        "The servers of the own `zone` serve alone while so many percent of them are healthy; then all zones do.";
    panic_threshold_percent: u32 = 0, 0..100, "percent",
        "Where fewer than so many percent of the servers are healthy, backups not counted, all of these are used, healthy or not. 0: never.";
    slow_start_ms: u32 = 0, 0..DAY_MS, "ms",
        "How long a server that has come up, or that a reload has added, is given less than its part of the requests: a tenth at first, and evenly more. 0: no time.";
    outlier_failures_max: u32 = 0, 0..65_535, "failures",
        "Failures in a row after which a server is ejected: no connection, no answer, or one with status 502, 503 or 504. 0: none is.";
    outlier_ms: u32 = 10_000, 1..DAY_MS, "ms",
        "How long a server is ejected; then one request is let through on trial. If that fails, too, it is ejected for longer, by so much each time.";
    outlier_ms_max: u32 = 300_000, 1..DAY_MS, "ms",
        "How long a server is ejected at most.";
    outlier_ejected_percent_max: u32 = 50, 0..100, "percent",
        "How many of the pool's servers may be ejected at a time, rounded down; beyond that they go on.";
    queue_max: u32 = 1000, 0..1_000_000, "requests",
        "Requests that may wait at a time until a server has fewer than its `connections_max`, where each that they may go to has as many; 503 over it, with `Retry-After`. 0: none waits.";
    queue_ms_max: u32 = 5000, 1..DAY_MS, "ms",
        "How long a request may wait so; 503 over it, with `Retry-After`.";
    tries_max: u32 = 3, 1..16, "tries",
        "Attempts in all to get a request to a server.";
    retries_percent_max: u32 = 20, 0..1500, "percent",
        "Attempts that follow a failed one, in percent of the pool's requests of the last ten seconds; beyond that, and `retries_per_second_min`, the first failure is the answer. One that follows where no server can have seen the request does not count. 1500: no bound, since `tries_max` is 16 at most.";
    retries_per_second_min: u32 = 10, 0..1_000_000, "tries",
        "Such attempts that there may be besides, for each second of those ten, however few the requests are.";
    try_ms_max: u32 = 0, 0..DAY_MS, "ms",
        "How long one attempt may take that has the whole request, from connecting to the end of the answer's head; 504 over it, or another server where `timeout` stands in `retry_on`. 0: as long as the other limits let it.";
    hedge_ms: u32 = 0, 0..DAY_MS, "ms",
        "After so long without an answer's head, a request that may be sent again (`retry_methods`), and any server of the pool may serve, goes to another server besides: the first answer that `retry_on` does not ask another server for is taken, and the other server is given up. Once for a request; it counts as an attempt of `tries_max`, and as one that follows a failed one. A request with a body that was held and is longer than 64 KiB has none. 0: never.";
    request_ms_max: u32 = 0, 0..DAY_MS, "ms",
        "How long a request may take with all its attempts, from its first byte to the end of its answer's head; 504 over it, 408 where its body is waited for. 0: as long as the other limits let it.";
    head_bytes_max: u32 = 32_768, 1024..1_048_576, "bytes",
        "Bytes of an answer's head; 502 over it.";
    headers_max: u16 = 100, 1..256, "headers",
        "Header lines of an answer; 502 over it.";
}

limits! {
    /// How often names are looked up, and what of the answers counts.
    pub struct DnsLimits, DNS_LIMIT_KEYS;

    ttl_ms_min: u32 = 1000, 100..DAY_MS, "ms",
        "How long an answer holds at least, whatever its TTL is, 0 among them; and how long after a failure the name is looked up again, twice as long each time, up to 30 s or `ttl_ms_max`.";
    ttl_ms_max: u32 = 300_000, 100..DAY_MS, "ms",
        "How long an answer holds at most.";
    answer_ms_max: u32 = 2000, 1..60_000, "ms",
        "How long one who is asked may take to answer; then the next is asked, and each twice at most.";
    start_ms_max: u32 = 10_000, 1..600_000, "ms",
        "How long a start, a reload or another change waits for the first answers about the names in it. A running switch serves and answers meanwhile, and [changes](admin-api.md#answers) wait behind it.";
    addresses_max: u32 = 1000, 1..10_000, "addresses",
        "How many addresses of an answer count; more are left out.";
    members_max: u32 = 64, 1..1024, "servers",
        "How many servers of a service count: those of the least priority values first; more are left out.";
}

impl BodyLimits {
    /// How bodies are read for the rules, where one of another media type is of this kind.
    pub(crate) fn body_options(&self, kind: BodyKind, label: BodyLabel, readings: Servers) -> BodyOptions {
        BodyOptions {
            kind,
            label,
            readings,
            limits: ContentLimits {
                depth_max: self.body_depth_max,
                attributes_max: self.body_attributes_max,
                name_bytes_max: self.body_name_bytes_max,
                value_bytes_max: self.body_value_bytes_max,
                parameters_max: self.body_parameters_max,
            },
            decoded_bytes_max: self.body_decoded_bytes_max,
        }
    }
}

/// Defines a struct of limits together with the keys that set them. Bounds are both allowed.
macro_rules! limits {
    (
        $(#[$meta:meta])* pub struct $name:ident, $keys:ident;
        $($key:ident: $type:ident = $default:literal, $min:literal..$max:tt, $unit:literal, $doc:literal;)+
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $(#[doc = $doc] pub $key: $type,)+
        }

        pub(crate) static $keys: &[Key] = &[$(Key {
            name: stringify!($key),
            kind: Kind::Integer { min: $min, max: $max, unit: $unit },
            default: KeyDefault::Integer($default),
            doc: $doc,
        }),+];

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default),+ }
            }
        }

        impl $name {
            /// Reads the limits out of a table; a wrong value is reported and counts as the default.
            pub(crate) fn read(section: &Section<'_>) -> Self {
                Self { $($key: section.number(stringify!($key)).unwrap_or($default)),+ }
            }
        }
    };
}
use limits;

#[cfg(test)]
mod tests {
    use super::*;

    /// `number` falls back to the default where a number does not fit its field, so the ranges must.
    #[test]
    fn ranges_fit_the_fields() {
        let eight_bytes = ["body_bytes_max", "body_decoded_bytes_max"];
        for key in
            [LISTENER_LIMIT_KEYS, BODY_LIMIT_KEYS, POOL_LIMIT_KEYS, DNS_LIMIT_KEYS].into_iter().flatten()
        {
            let Kind::Integer { max, .. } = key.kind else { panic!("{} is no number", key.name) };
            assert!(max <= u64::from(u32::MAX) || eight_bytes.contains(&key.name), "{}", key.name);
        }
    }

    /// Who reads bodies without a configuration, as `explain` may, reads them alike.
    #[test]
    fn the_defaults_of_bodies_are_those_of_their_readers() {
        assert_eq!(
            BodyLimits::default().body_options(BodyKind::default(), BodyLabel::default(), Servers::default()),
            BodyOptions::default()
        );
    }
}
