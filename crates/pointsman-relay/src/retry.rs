//! Tries at servers, one after the other, until one of them answers.

use std::rc::Rc;

use pointsman_telemetry::Event;

use crate::choice::{Cost, Picked};
use crate::ejection::Heard;
use crate::exchange::{Exchange, Seen};
use crate::fault::{Fault, ServerFault};
use crate::local::LocalServer;
use crate::presence::Ahead;
use crate::reach::{Reached, Tried};
use crate::session::Session;
use crate::shard::Shard;
use crate::transport::Transport;
use crate::verdict::Forward;

impl<C: Transport> Session<C> {
    /// Brings a request to a server of its target.
    ///
    /// While it is held whole it may be sent again: for what `retry_on` of the pool says, if no byte of it was sent, or
    /// if its method is one of `retry_methods`.
    pub(crate) async fn reach(
        &mut self,
        forward: &mut Forward,
        exchange: &mut Exchange,
    ) -> Result<Reached, Fault> {
        let (mut fault, mut cost) = (Fault::NoServer, Cost::Free);
        loop {
            let in_flight = match forward.choice.pick(cost, &self.shard) {
                Picked::Server(in_flight) => in_flight,
                Picked::Full => {
                    let ahead = if forward.is_sent() { Ahead::Request } else { Ahead::Body };
                    // On the heap: most requests find a place.
                    Box::pin(self.wait_for_place(&mut forward.choice, (ahead, fault), exchange)).await?
                }
                Picked::OverBudget => {
                    self.tell_over_budget(exchange);
                    return Err(fault);
                }
                Picked::Nobody => return Err(fault),
            };
            let server = in_flight.server().clone();
            exchange.is_trial = forward.choice.is_trial;
            self.begin_try(&server, exchange);
            let since_us = server.response_time.as_ref().map_or(0, |_| self.shard.clock.now_us());
            let tried = match self.hedge_ms(&server, forward, exchange) {
                None => self.try_server(in_flight, forward, exchange).await,
                // On the heap: few pools ask for it.
                Some(ms) => Box::pin(self.try_hedged(ms, in_flight, forward, exchange)).await,
            };
            let (tried, seen) = match tried {
                Ok(reached) => {
                    exchange.is_reached = true;
                    if !forward.is_sent() {
                        // It is not sent again: what it holds serves for the answer.
                        forward.let_go_sent();
                        exchange.try_until_us = exchange.request_until_us();
                    }
                    // An answer that comes while the request is still read says as much of the client.
                    if let Some(time) = server.response_time.as_ref().filter(|_| !reached.answer.is_empty())
                        && Rc::ptr_eq(&server, reached.server.server())
                    {
                        time.answered(since_us, self.shard.clock);
                    }
                    return Ok(reached);
                }
                Err(Tried::Failed { fault, seen }) => (fault, seen),
                Err(Tried::GivenUp(fault)) => return Err(fault),
            };
            fault = Fault::Server(tried);
            // Of two at a time it is the one that failed last.
            let server = exchange.server.clone().unwrap_or(server);
            let again = exchange.may_try_again(tried, seen);
            cost = cost_behind(tried, seen, exchange);
            let is_last = !again || !self.has_another_try(&server, forward, exchange);
            let says_nothing = match tried {
                ServerFault::Closed => says_nothing(tried, exchange.reused) && again,
                ServerFault::Unread => !is_last,
                _ => says_nothing(tried, exchange.reused),
            };
            if !says_nothing {
                self.shard.has_failed(&server, (tried, exchange.is_trial, since_us));
                forward.choice.exclude(&server);
            }
            if is_last {
                return Err(fault);
            }
        }
    }

    /// Whether another try may follow this one, whatever its fault.
    pub(crate) fn has_another_try(
        &self,
        server: &LocalServer,
        forward: &Forward,
        exchange: &Exchange,
    ) -> bool {
        let is_held = !forward.is_partly_gone() && exchange.status == 0 && exchange.interims == 0;
        is_held && u32::from(exchange.tries) < server.limits.tries_max && !exchange.is_over(&self.shard)
    }

    /// The server that has failed had the last try, though there is another one.
    fn tell_over_budget(&self, exchange: &mut Exchange) {
        if let Some(server) = &exchange.server {
            self.shard.recorder.hear(&Event::RetryRefused(&server.metrics));
        }
        if let Some(facts) = exchange.facts_mut() {
            facts.is_over_budget = true;
        }
    }

    /// Takes an answer with this status: its request is not sent again.
    ///
    /// # Errors
    /// Another server is asked.
    pub(crate) fn takes(
        &self,
        status: u16,
        server: &LocalServer,
        forward: &mut Forward,
        exchange: &mut Exchange,
    ) -> Result<(), Fault> {
        let fault = ServerFault::Status(status);
        if self.passes_over(fault, server, forward, exchange) {
            return Err(Fault::Server(fault));
        }
        // What it holds serves for the answer.
        forward.let_go_sent();
        Ok(())
    }

    /// Whether an answer is given up for that of another server, which is picked then.
    fn passes_over(
        &self,
        fault: ServerFault,
        server: &LocalServer,
        forward: &mut Forward,
        exchange: &mut Exchange,
    ) -> bool {
        let may =
            exchange.may_try_again(fault, Seen::Something) && self.has_another_try(server, forward, exchange);
        if !may {
            return false;
        }
        let cost = cost_behind(fault, Seen::Something, exchange);
        match forward.choice.pick_another(server, cost, &self.shard) {
            Picked::Server(next) => {
                forward.choice.keep(next);
                true
            }
            Picked::OverBudget => {
                self.tell_over_budget(exchange);
                false
            }
            // The client has an answer, and does not wait for another one.
            Picked::Full | Picked::Nobody => false,
        }
    }

    /// Whether another server, which is picked then, is asked for the answer of which one has brought nothing that
    /// the client may see.
    pub(crate) fn tries_another(
        &self,
        fault: Fault,
        reached: &Reached,
        forward: &mut Forward,
        exchange: &mut Exchange,
    ) -> bool {
        let (Fault::Server(tried), server) = (fault, reached.server.server()) else { return false };
        let goes_on = match tried {
            ServerFault::Status(_) => true,
            _ => self.passes_over(tried, server, forward, exchange),
        };
        if goes_on {
            self.shard.tell_failed(server, tried, exchange.is_trial);
            // What fails next is the next try.
            exchange.is_reached = false;
        }
        goes_on
    }
}

impl Shard {
    /// A server has failed a try that began at `since_us`.
    pub(crate) fn has_failed(
        &self,
        server: &LocalServer,
        (fault, is_trial, since_us): (ServerFault, bool, u64),
    ) {
        self.tell_failed(server, fault, is_trial);
        if let Some(time) = &server.response_time {
            time.failed(since_us, self.clock);
        }
    }

    fn tell_failed(&self, server: &LocalServer, tried: ServerFault, is_trial: bool) {
        self.recorder.hear(&Event::ServerFailed(&server.metrics, tried.kind()));
        server.hear(Heard::Failed, is_trial, self.clock);
    }
}

/// Whether a fault says nothing about the server.
pub(crate) fn says_nothing(fault: ServerFault, reused: Option<bool>) -> bool {
    match fault {
        // A kept connection that it has closed.
        ServerFault::Closed => reused == Some(true),
        // One that it ends, or that has too many requests; and what the switch itself is short of.
        ServerFault::Unread | ServerFault::Shortage => true,
        _ => false,
    }
}

/// What another try behind this one costs. Where no server can have worked on the request it is as good as the first.
fn cost_behind(fault: ServerFault, seen: Seen, exchange: &Exchange) -> Cost {
    let is_stale = fault == ServerFault::Closed && exchange.reused == Some(true);
    match seen == Seen::Nothing || fault.is_unread() || is_stale {
        true => Cost::Free,
        false => Cost::One,
    }
}
