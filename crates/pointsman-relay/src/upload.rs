//! A request body that goes on after the head: sent while the answer is listened for.

use std::num::NonZeroU64;
use std::task::Poll;

use pointsman_http::{BodyReader, Framing};
use pointsman_net::{Presence, Stall};

use crate::ahead::Pace;
use crate::answer::{FinalHead, Upload};
use crate::bandwidth::Toward;
use crate::exchange::Exchange;
use crate::facts::Text;
use crate::fault::{ClientFault, Fault, ServerFault};
use crate::mirror::Mirror;
use crate::pump::{BodyForm, Pump, PumpFault, Step, Waiting};
use crate::reach::{Reached, ServerConnection};
use crate::session::{After, Session};
use crate::trailers::TrailerFilter;
use crate::transport::Transport;
use crate::verdict::Forward;

/// How far an exchange is after its upload.
enum Progress {
    /// The server has the request, or all of it that it will take: its answer comes next.
    Uploaded,
    /// The final answer's head is here, and the rest of the body may still follow.
    Answered(FinalHead),
}

/// What happened while the body was sent.
enum Event {
    Uploaded(Result<Step, PumpFault>),
    Answered(std::io::Result<usize>),
    /// The client is gone, and nobody is left to tell the answer.
    Left,
}

impl<C: Transport> Session<C> {
    /// Sends the rest of the body, and relays the answer, which may come before the body's end.
    pub(crate) async fn upload_and_answer(
        &mut self,
        forward: &mut Forward,
        reached: &mut Reached,
        exchange: &mut Exchange,
    ) -> Result<After, Fault> {
        let body = std::mem::replace(&mut forward.body, BodyReader::new(Framing::None));
        let mut up = Pump::new(
            &self.shard.buffers,
            (
                body,
                BodyForm::AsItCame,
                forward.trailers.take().map_or_else(TrailerFilter::default, |filter| *filter),
            ),
            forward.body_left,
            (exchange.bandwidth, Toward::Server),
        );
        let mut mirror = forward.ahead.as_mut().and_then(|ahead| ahead.mirror.take());
        if let Some(ahead) = forward.ahead.take()
            && !up.begin_with(*ahead)
        {
            return Err(Fault::Memory);
        }
        // What passes through a pipe cannot be copied.
        if mirror.is_none() {
            up.through_pipe(&self.shard, &self.io, &reached.server.io);
        }
        let pieces = (&mut up, &mut mirror);
        let uploaded = self.upload(pieces, forward.expects_continue, reached, exchange).await;
        match (mirror, &uploaded) {
            (Some(mirror), Ok(Progress::Uploaded)) if up.has_read_all() => {
                self.send_mirror(*mirror, exchange)
            }
            (Some(_), _) => self.drop_mirror(),
            (None, _) => {}
        }
        let after = match uploaded {
            Ok(Progress::Uploaded) => self.relay_answer(None, reached, exchange).await,
            Ok(Progress::Answered(mut head)) => {
                self.relay(&mut head, reached, &mut Upload::Running(&mut up), exchange).await
            }
            Err(fault) => Err(fault),
        };
        exchange.request_bytes += up.read_bytes;
        if let (Some(facts), Some(fault)) = (exchange.facts_mut(), up.content_fault()) {
            facts.note(Text::Content, fault.to_string().as_bytes());
        }
        if matches!(after, Err(Fault::Content(_))) && up.has_read_all() {
            // What it says next can be read.
            exchange.has_whole_request = true;
            self.keep_excess(up.take_excess(), exchange);
        }
        after
    }

    /// Sends the rest of the body, unless the server answers before it has it all.
    ///
    /// It may do so to refuse the body, or because it answers while the body goes on. Whether the
    /// client sends the rest is its choice, so its connection closes after such an answer.
    async fn upload(
        &mut self,
        (up, mirror): (&mut Pump, &mut Option<Box<Mirror>>),
        mut waits_for_continue: bool,
        reached: &mut Reached,
        exchange: &mut Exchange,
    ) -> Result<Progress, Fault> {
        let limits = reached.server.server().limits;
        let mut stall = Stall::new(limits.write_ms_max);
        let continue_until_us = self.shard.after_ms(limits.response_ms_max);
        if !reached.answer.is_empty()
            && let Some(head) = self.early_head(reached, exchange).await?
        {
            return Ok(Progress::Answered(head));
        }
        let uploaded = loop {
            let (waiting, began_us) = (up.waiting(), self.shard.clock.round_us());
            let read_bytes = up.read_bytes;
            let continue_until_us = waits_for_continue.then_some(continue_until_us);
            let ms = exchange.try_ms(&self.shard, self.upload_ms(up, continue_until_us, &stall));
            let step = {
                let Session { io, deadline, shard, .. } = &mut *self;
                let Reached { server, answer, .. } = &mut *reached;
                let both = std::future::poll_fn(|context| {
                    if let Poll::Ready(read) = server.io.poll_read_into(context, answer) {
                        return Poll::Ready(Event::Answered(read));
                    }
                    if let Poll::Ready(step) = up.poll_step(context, shard, io, &mut server.io) {
                        return Poll::Ready(Event::Uploaded(step));
                    }
                    // Of an orderly end, reading what it sent hears.
                    let is_gone = io.presence(context) == Presence::Broken;
                    if is_gone { Poll::Ready(Event::Left) } else { Poll::Pending }
                });
                deadline.within(ms, both).await
            };
            if waiting == Waiting::Read && !waits_for_continue {
                up.pace.waited_us += self.shard.clock.round_us() - began_us;
            }
            if mirror.is_some() && up.read_bytes > read_bytes {
                self.add_to_mirror(mirror, up.last_read());
            }
            match step {
                Ok(Event::Uploaded(Ok(Step::Moved))) => {
                    waits_for_continue = false;
                    stall = Stall::new(limits.write_ms_max);
                }
                Ok(Event::Uploaded(Ok(Step::Throttled))) => {}
                Ok(Event::Uploaded(Ok(Step::Done))) => break Ok(()),
                Ok(Event::Uploaded(Err(fault))) => break Err(fault),
                Ok(Event::Answered(Ok(1..))) => {
                    exchange.has_first_byte(self);
                    if let Some(head) = self.early_head(reached, exchange).await? {
                        return Ok(Progress::Answered(head));
                    }
                    waits_for_continue &= exchange.interims == 0;
                }
                Ok(Event::Answered(read)) => return Err(Fault::of_server(&read)),
                Ok(Event::Left) => return Err(Fault::Client(ClientFault::Closed)),
                // Slowly, but the server takes it.
                Err(_) if !exchange.is_over(&self.shard) && goes_on(waiting, &mut stall, reached) => {}
                Err(_) => return Err(stalled(up, waits_for_continue)),
            }
        };
        reached.answer_until_us = self.shard.after_ms(exchange.try_ms(&self.shard, limits.response_ms_max));
        match uploaded {
            Ok(()) => {
                exchange.has_whole_request = true;
                self.keep_excess(up.take_excess(), exchange);
                Ok(Progress::Uploaded)
            }
            // It may have answered before it stopped reading.
            Err(PumpFault::Sink) => {
                exchange.keeps_client = false;
                Ok(Progress::Uploaded)
            }
            Err(fault) => Err(fault_of(fault)),
        }
    }

    /// How long the next step of an upload may take. Until the server has said 100, it is the server that is waited for.
    fn upload_ms(&self, up: &Pump, continue_until_us: Option<u64>, stall: &Stall) -> u32 {
        match (up.waiting(), continue_until_us) {
            (Waiting::Read, Some(until_us)) => self.shard.ms_until(until_us),
            (Waiting::Read, None) => self.body_ms(up.pace),
            (Waiting::Write, _) => stall.look_ms(),
            (Waiting::Class, _) => up.shaping.waits_ms(&self.shard).unwrap_or_default(),
        }
    }

    /// The head of a final answer that comes before the body's end, once it is whole.
    async fn early_head(
        &mut self,
        reached: &mut Reached,
        exchange: &mut Exchange,
    ) -> Result<Option<FinalHead>, Fault> {
        // What rules and limits ask of the answer is known only when its head is whole.
        let kept = std::mem::replace(&mut exchange.keeps_client, false);
        let head = self.final_head(reached, None, exchange).await?;
        exchange.keeps_client = kept && head.is_none();
        Ok(head)
    }

    /// How long the client may be waited for now. It has earned a second by each so many bytes.
    pub(crate) fn body_ms(&self, pace: Pace) -> u32 {
        let ms_max = self.limits.body_ms_max;
        let Some(bytes_per_second) = NonZeroU64::new(self.limits.body_bytes_per_second_min.into()) else {
            return ms_max;
        };
        let earned_ms = pace.read_bytes.saturating_mul(1000) / bytes_per_second;
        let left_ms = earned_ms.saturating_add(ms_max.into()).saturating_sub(pace.waited_us / 1000);
        left_ms.min(ms_max.into()) as u32
    }

    /// Sends on what a client still sends after its answer, as long as the server takes it.
    ///
    /// Our side closes first: a client that waits for the answer's end, or for leave to go on, sees it.
    ///
    /// Returns what was found wrong with it: then the server does not get all of it.
    pub(crate) async fn finish_upload(
        &mut self,
        up: &mut Pump,
        server: &mut ServerConnection,
    ) -> Option<Fault> {
        if !self.end_our_side().await {
            return None;
        }
        let server_ms = server.server().limits.write_ms_max;
        let mut stall = Stall::new(server_ms);
        loop {
            let (waiting, began_us) = (up.waiting(), self.shard.clock.round_us());
            let ms = self.upload_ms(up, None, &stall);
            let Session { io, deadline, shard, .. } = &mut *self;
            let step = std::future::poll_fn(|context| up.poll_step(context, shard, io, &mut server.io));
            let step = deadline.within(ms, step).await;
            if waiting == Waiting::Read {
                up.pace.waited_us += self.shard.clock.round_us() - began_us;
            }
            match step {
                Ok(Ok(Step::Moved)) => stall = Stall::new(server_ms),
                Ok(Ok(Step::Throttled)) => {}
                Err(_) if waiting == Waiting::Class => {}
                Err(_) if waiting == Waiting::Write && stall.goes_on(server.io.taken_bytes()) => {}
                Ok(Err(fault @ (PumpFault::Content(_) | PumpFault::Memory))) => return Some(fault_of(fault)),
                _ => return None,
            }
        }
    }
}

/// Whether the server takes the body, however slowly.
fn goes_on(waiting: Waiting, stall: &mut Stall, reached: &Reached) -> bool {
    match waiting {
        Waiting::Write => stall.goes_on(reached.server.io.taken_bytes()),
        Waiting::Class => true,
        Waiting::Read => false,
    }
}

fn stalled(up: &Pump, waits_for_continue: bool) -> Fault {
    match up.waiting() {
        Waiting::Write => Fault::Server(ServerFault::WriteTimeout),
        Waiting::Read if waits_for_continue => Fault::Server(ServerFault::ResponseTimeout),
        Waiting::Read | Waiting::Class => Fault::BodyTimeout,
    }
}

fn fault_of(fault: PumpFault) -> Fault {
    match fault {
        PumpFault::Source => Fault::Client(ClientFault::Closed),
        PumpFault::Sink => Fault::Server(ServerFault::Closed),
        PumpFault::Body(fault) => Fault::Body(fault),
        PumpFault::Content(cause) => Fault::Content(cause),
        PumpFault::Memory => Fault::Memory,
        PumpFault::TooLarge => Fault::BodyTooLarge,
    }
}
