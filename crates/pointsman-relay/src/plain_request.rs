//! A plain HTTP request on a port that speaks TLS is refused in words, as nginx does with its 497.

use std::rc::Rc;

use pointsman_http::{REQUEST_START_BYTES_MAX, begins_request};
use pointsman_net::{Deadline, Tcp};

use crate::shard::Shard;
use crate::turn_away::{LISTEN_BYTES_MAX, LISTEN_MS, Words, say_no};

/// Body of the response.
pub(crate) const SENTENCE: &str = "a plain HTTP request was sent to a TLS port: use https\n";

/// Status of the response.
pub(crate) const STATUS: u16 = 400;

/// Whether a connection on which TLS is expected begins with a plain HTTP request.
pub(crate) async fn begins_plain_request(tcp: &Tcp) -> bool {
    tcp.peek::<REQUEST_START_BYTES_MAX, _>(begins_request).await.unwrap_or(false)
}

/// Sends the response and closes the connection in order.
pub(crate) async fn refuse_plain_request(shard: &Rc<Shard>, tcp: Tcp, deadline: &mut Deadline) {
    let rest = shard.buffers.last_word();
    let words = Words { status: STATUS, lines: shard.text_lines(), body: SENTENCE };
    let farewell = say_no(tcp, words, rest, LISTEN_BYTES_MAX);
    // However it ends: the connection is over. Idle, so that no drain waits for it.
    let (Ok(_) | Err(_)) = deadline.idle_within(LISTEN_MS, farewell).await;
}
