//! Keys that change nothing beside what another one says: each is warned of.

use crate::section::Section;
use crate::server_spec::ServerSpec;
use crate::{Http2, Pipeline, PoolLimits, Protocol, ServerProtocol};

const OF_PIPELINING: &[&str] = &["pipeline_requests_max", "pipeline_bytes_max"];
const OF_HTTP2_TO_CLIENTS: &[&str] =
    &["http2_streams_max", "http2_stream_window_bytes", "http2_window_bytes"];
const OF_QUEUES: &[&str] = &["queue_max", "queue_ms_max"];
const OF_TRIES: &[&str] = &["hedge_ms"];
const OF_HTTP2_TO_SERVERS: &[&str] = &["http2_streams_max", "http2_stream_window_bytes"];

/// Warns of keys of a listener, and of its limits. What it says where no request is read [`Protocol`] looks at.
pub(crate) fn of_listener(
    section: &Section<'_>,
    limits: Option<&Section<'_>>,
    (protocol, http2, pipeline): (Protocol, Http2, Pipeline),
) {
    if protocol != Protocol::Http {
        return;
    }
    let one_by_one = "leave it out: each stream of HTTP/2 goes to its server by itself";
    if http2 == Http2::Only {
        warn(section, &["pipeline"], "while `http2` is `only`", one_by_one);
    }
    let Some(limits) = limits else { return };
    match (http2, pipeline) {
        (Http2::Only, _) => warn(limits, OF_PIPELINING, "while `http2` is `only`", one_by_one),
        (_, Pipeline::Hold) => {
            let help = "set `pipeline` to `concurrent` or `latest`";
            warn(limits, OF_PIPELINING, "while `pipeline` is `hold`", help);
        }
        (_, Pipeline::Concurrent | Pipeline::Latest) => {}
    }
    if http2 == Http2::Off {
        warn(limits, OF_HTTP2_TO_CLIENTS, "while `http2` is `off`", "set `http2` to `on`, or leave it out");
    }
}

/// Warns of keys of a pool.
pub(crate) fn of_pool(
    section: &Section<'_>,
    protocol: ServerProtocol,
    servers: &[ServerSpec],
    limits: &PoolLimits,
) {
    if limits.tries_max == 1 {
        warn(section, OF_TRIES, "while `tries_max` is 1", "set `tries_max` to 2 or more, or leave it out");
    }
    if servers.iter().all(|server| server.connections_max == 0) {
        let help = "give servers a `connections_max`, or leave it out";
        warn(section, OF_QUEUES, "while no server of the pool has `connections_max`", help);
    }
    if protocol == ServerProtocol::Http1 {
        let help = "set `protocol` to `h2`, or leave it out";
        warn(section, OF_HTTP2_TO_SERVERS, "while `protocol` of the pool is `http/1.1`", help);
    }
}

pub(crate) fn warn(section: &Section<'_>, names: &[&'static str], beside: &str, help: &str) {
    for name in names.iter().filter(|name| section.has(name)) {
        let message = format!("`{name}` has no effect {beside}");
        section.findings().warning(section.place(name), message, help);
    }
}
