//! Waiting for a place at a server, where each that a request may go to has as many as it may have.

use std::sync::Arc;
use std::task::Context;

use crate::capacity::{Capacity, Joined};
use crate::choice::{Choice, Cost, Picked};
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::in_flight::InFlight;
use crate::presence::Ahead;
use crate::session::Session;
use crate::transport::Transport;

/// How often whoever waits looks at which servers there are: some may have come up, or gone, of which nobody tells.
const LOOK_MS: u32 = 100;

impl<C: Transport> Session<C> {
    /// Waits in the queue of the pool, as long as the client is there. Large: it belongs on the heap.
    ///
    /// # Errors
    /// Too many wait already, or it takes too long. `otherwise` where there is no server left to wait for.
    pub(crate) async fn wait_for_place(
        &mut self,
        choice: &mut Choice,
        (ahead, otherwise): (Ahead, Fault),
        exchange: &mut Exchange,
    ) -> Result<InFlight, Fault> {
        let mut since_us = None;
        let waited = self.wait_in_queue(choice, (ahead, otherwise), exchange.started_us, &mut since_us).await;
        // A place may have come free before it stood in the queue, and one that is full takes nobody.
        if let (Some(facts), Some(since_us)) = (exchange.facts_mut(), since_us) {
            let waited_us = self.shard.clock.now_us().saturating_sub(since_us);
            facts.queued_us = Some(facts.queued_us.unwrap_or_default() + waited_us);
        }
        waited
    }

    async fn wait_in_queue(
        &mut self,
        choice: &mut Choice,
        (ahead, otherwise): (Ahead, Fault),
        started_us: u64,
        since_us: &mut Option<u64>,
    ) -> Result<InFlight, Fault> {
        let limits = *choice.limits();
        let request_until_us = match limits.request_ms_max {
            0 => u64::MAX,
            ms => started_us + u64::from(ms) * 1000,
        };
        let until_us = self.shard.after_ms(limits.queue_ms_max).min(request_until_us);
        loop {
            let mut ticket = match choice.join(&self.shard) {
                None => return Err(otherwise),
                Some(Joined::QueueFull) => return Err(Fault::QueueFull),
                Some(Joined::Waits(ticket)) => {
                    since_us.get_or_insert(self.shard.clock.now_us());
                    Some(ticket)
                }
                Some(Joined::Place(place)) => match self.begins_at(choice, &place) {
                    Some(in_flight) => return Ok(in_flight),
                    None => None,
                },
            };
            while let Some(waiting) = &mut ticket {
                let ms = self.shard.ms_until(until_us);
                let turn = |context: &mut Context<'_>, _: &mut C| waiting.poll(context);
                match self.while_present(ms.min(LOOK_MS), ahead, turn).await? {
                    Ok(place) => {
                        ticket = None;
                        if let Some(in_flight) = self.begins_at(choice, &place) {
                            return Ok(in_flight);
                        }
                    }
                    Err(_) if ms <= LOOK_MS => return Err(Fault::QueueTimeout),
                    Err(_) => match choice.pick(Cost::Free, &self.shard) {
                        // One that has come up, or that others have left since.
                        Picked::Server(in_flight) => return Ok(in_flight),
                        _ if choice.looks_again(waiting, &self.shard) => {}
                        _ => return Err(otherwise),
                    },
                }
            }
        }
    }

    /// `None`: another request tries that server out.
    fn begins_at(&self, choice: &mut Choice, place: &Arc<Capacity>) -> Option<InFlight> {
        let in_flight = choice.in_flight_at(place)?;
        choice.begins(in_flight, &self.shard)
    }
}
