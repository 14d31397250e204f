//! The rest of a request that was answered before its end.

use std::future::poll_fn;
use std::task::Poll;

use pointsman_h2::{Rest, RestCame};

use crate::exchange::Exchange;
use crate::session::Session;
use crate::transport::Transport;

/// How long a client may pause that sends the rest of a request, which was answered before its end.
const REST_MS_MAX: u32 = 1000;
/// How long it may take that was answered with a success.
const REST_OF_SUCCESS_MS_MAX: u32 = 30_000;

impl<C: Transport> Session<C> {
    /// Reads what the client still sends of a request that was answered with `status`, and throws it away.
    ///
    /// Clients that hear of the stream's end while they send may lose the response. Those that heard of a failure
    /// stop sending; those that heard of a success send on, and some wait until they may.
    pub(crate) async fn rest_of_request(&mut self, status: u16) {
        let Session { io, shard, deadline, .. } = self;
        let (rest, total_ms) = match status {
            200..300 => (Rest::All, REST_OF_SUCCESS_MS_MAX),
            _ => (Rest::Window, REST_MS_MAX),
        };
        let until_us = shard.after_ms(total_ms);
        loop {
            let ms = shard.ms_until(until_us).min(REST_MS_MAX);
            let came = poll_fn(|context| match shard.is_stopping() {
                true => Poll::Ready(RestCame::End),
                false => io.poll_rest(context, rest),
            });
            match deadline.within(ms, came).await {
                Ok(RestCame::Some) if ms > 0 => {}
                // Whether all has come makes no difference to what follows.
                Ok(RestCame::Some | RestCame::End) | Err(_) => return,
            }
        }
    }

    /// Waits for the rest of a request that `status` answers before its end, where some clients need that.
    ///
    /// curl 7.88 reads nothing more behind a whole response, and waits for leave to send the rest. A gRPC client
    /// stops sending.
    pub(crate) async fn rest_before_success(&mut self, status: u16, exchange: &Exchange) {
        if matches!(status, 200..300) && !exchange.is_grpc && !exchange.has_whole_request {
            self.rest_of_request(status).await;
        }
    }
}
