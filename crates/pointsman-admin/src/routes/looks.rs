//! What is looked at again and again while something moves: rows of the table.

use super::get;
use crate::answers;
use crate::route::{Call, Route};

pub(super) const TRAFFIC: Route = get(
    "/api/v1/traffic",
    Call::Traffic,
    &answers::TRAFFIC,
    "What has come since the start and what became of it, by listener, rule and server, and how servers stand: to be read again and again.",
);
pub(super) const REQUESTS: Route = get(
    "/api/v1/requests",
    Call::Requests,
    &answers::REQUESTS,
    "The slowest requests of the last minutes and the latest that failed, with the rule that decided each and when its steps were taken. Who sent what is shown to whoever has a token or a client certificate.",
);
pub(super) const BANDWIDTH: Route = get(
    "/api/v1/bandwidth",
    Call::Bandwidth,
    &answers::BANDWIDTH,
    "The classes of bandwidth, what was sent in each since the start, and what waits there: to be read again and again.",
);
