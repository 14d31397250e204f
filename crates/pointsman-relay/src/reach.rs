//! Getting a request to one server: connect or reuse, send, and the first bytes of the answer.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use pointsman_config::ServerProtocol;
use pointsman_http::{AnswerTo, Unfinished};
use pointsman_net::{PooledBuffer, Presence, Stall, write_all};
use pointsman_telemetry::{Event, Recorder, Topic};
use pointsman_tls::ServerHandshakeFault as TlsFault;
use pointsman_upstream::{ConnectFault, Connection, Owner, Place, Rest, Trust};
use pointsman_view::HelloFacts;
use tokio::io::AsyncWrite;

use crate::choice::{Choice, Cost, Picked};
use crate::ejection::Heard;
use crate::exchange::{Exchange, Seen};
use crate::fault::{ClientFault, Fault, ServerFault};
use crate::hold::Hold;
use crate::in_flight::InFlight;
use crate::local::LocalServer;
use crate::presence::Ahead;
use crate::proxy_header::proxy_header;
use crate::session::Session;
use crate::shard::Shard;
use crate::shortage::{Lack, connect};
use crate::transport::Transport;
use crate::verdict::Forward;

/// A server that has taken a request, or as much of it as there is.
pub(crate) struct Reached {
    pub(crate) server: ServerConnection,
    /// What has come of the answer: something, where the whole request was sent.
    pub(crate) answer: PooledBuffer,
    /// When the answer's head must be here, on the shard's clock.
    pub(crate) answer_until_us: u64,
    /// Whether the connection can serve again: the answer is over, and nothing is left on it.
    pub(crate) is_reusable: bool,
}

/// A connection to a server, with a request on its way there for as long as it lives.
pub(crate) struct ServerConnection {
    pub(crate) io: Connection,
    in_flight: InFlight,
}

/// Counts a connection that lies idle.
pub(crate) struct CountedIdle {
    recorder: Rc<Recorder>,
    server: Rc<LocalServer>,
}

impl CountedIdle {
    fn begin(recorder: Rc<Recorder>, server: Rc<LocalServer>) -> CountedIdle {
        recorder.hear(&Event::IdleAdded(&server.metrics));
        CountedIdle { recorder, server }
    }
}

impl Drop for CountedIdle {
    fn drop(&mut self) {
        self.recorder.hear(&Event::IdleRemoved(&self.server.metrics));
    }
}

impl Reached {
    /// Lets a shared connection hear what became of a request on it.
    pub(crate) fn hear_of(&self, fault: Fault) {
        if let Fault::Server(ServerFault::ResponseTimeout | ServerFault::WriteTimeout) = fault {
            self.server.io.is_given_up();
        }
    }

    /// Keeps the connection for the next request, if it can serve one.
    pub(crate) fn settle(self, shard: &Shard, exchange: &Exchange, client: Owner) {
        // With urgent data a byte of what it said is missing.
        if !self.is_reusable || self.server.io.is_stream() || self.server.io.had_urgent_data() {
            return;
        }
        // A body behind an answer to HEAD is how an answer reaches the wrong request: some servers send one.
        let trust = if exchange.to == AnswerTo::Head { Trust::Probation } else { Trust::Full };
        let server = self.server.server().clone();
        let count = || CountedIdle::begin(shard.recorder.clone(), server.clone());
        let now_ms = shard.clock.round_us() / 1000;
        shard.idle.give_back(
            server.place(client),
            self.server.io,
            now_ms,
            server.idle_limits(),
            trust,
            count,
        );
    }
}

impl ServerConnection {
    pub(crate) fn server(&self) -> &Rc<LocalServer> {
        self.in_flight.server()
    }
}

/// What came of one try.
pub(crate) enum Tried {
    Failed {
        fault: ServerFault,
        seen: Seen,
    },
    /// There is nobody left to try for, or no memory to try it with.
    GivenUp(Fault),
}

/// What happened while what was read ahead was sent.
enum Replayed {
    Written(std::io::Result<usize>),
    Answered(std::io::Result<usize>),
    /// The client is gone.
    Left,
}

pub(crate) fn failed(fault: ServerFault, seen: Seen) -> Tried {
    Tried::Failed { fault, seen }
}

/// What a server may have seen of a request of which so many bytes were sent.
fn seen(sent: usize) -> Seen {
    if sent == 0 { Seen::Nothing } else { Seen::Something }
}

/// What the system or the library says, of which answers and the access log tell less.
fn note_unreached(shard: &Shard, server: &LocalServer, fault: &ConnectFault) {
    shard.shared.notes.note(Topic::Servers, || {
        let (pool, name) = (server.metrics.pool(), server.metrics.name());
        let address = server.address.map_or_else(|| "-".to_owned(), |address| address.to_string());
        let (what, error) = match fault {
            ConnectFault::Io(error) => ("connect", error.to_string()),
            ConnectFault::Tls(error) => ("TLS", error.to_string()),
            ConnectFault::Timeout => ("connect", "no answer in time".to_owned()),
            ConnectFault::TlsTimeout => ("TLS", "no answer in time".to_owned()),
        };
        let tls_name = server.tls.as_ref().map(|tls| tls.name());
        let tls_name = tls_name.map(|name| format!(" name={name}")).unwrap_or_default();
        format!("{what} failed pool={pool} server={name} address={address}{tls_name} error={error:?}")
    });
}

impl<C: Transport> Session<C> {
    /// Connects to a server of a connection's target. Nothing was sent yet: another one may take its place.
    pub(crate) async fn reach_for_connection(
        &mut self,
        mut choice: Choice,
        hello: Option<&HelloFacts>,
        exchange: &mut Exchange,
    ) -> Result<ServerConnection, Fault> {
        let mut fault = Fault::NoServer;
        loop {
            // Nothing was sent of it.
            let in_flight = match choice.pick(Cost::Free, &self.shard) {
                Picked::Server(in_flight) => in_flight,
                Picked::Full => {
                    Box::pin(self.wait_for_place(&mut choice, (Ahead::Body, fault), exchange)).await?
                }
                Picked::OverBudget | Picked::Nobody => return Err(fault),
            };
            let server = in_flight.server().clone();
            exchange.is_trial = choice.is_trial;
            self.begin_try(&server, exchange);
            let (tried, again) = match self.connect(&server, hello, exchange).await {
                Ok(mut io) => {
                    if !io.begin_use(|| self.shard.with_room(|| self.shard.buffers.server_tls_exchange())) {
                        return Err(Fault::Memory);
                    }
                    exchange.is_connected(self);
                    exchange.is_reached = true;
                    server.hear(Heard::Passed, exchange.is_trial, self.shard.clock);
                    return Ok(ServerConnection { io, in_flight });
                }
                Err(Tried::Failed { fault, seen }) => (fault, exchange.may_try_again(fault, seen)),
                Err(Tried::GivenUp(fault)) => return Err(fault),
            };
            fault = Fault::Server(tried);
            if tried != ServerFault::Shortage {
                self.shard.recorder.hear(&Event::ServerFailed(&server.metrics, tried.kind()));
                server.hear(Heard::Failed, exchange.is_trial, self.shard.clock);
                choice.exclude(&server);
            }
            if !again || u32::from(exchange.tries) >= server.limits.tries_max || exchange.is_over(&self.shard)
            {
                return Err(fault);
            }
        }
    }

    pub(crate) fn begin_try(&self, server: &Rc<LocalServer>, exchange: &mut Exchange) {
        if exchange.tries > 0 {
            self.shard.recorder.hear(&Event::Retried(&server.metrics));
            // Of an answer that did not come to its head.
            exchange.unfinished = Unfinished::default();
        } else if let Some(retries) = &server.retries {
            retries.asked(self.shard.clock);
        }
        self.begin_at(server, exchange);
    }

    /// The same for a try that is no answer to another one's failure.
    pub(crate) fn begin_at(&self, server: &Rc<LocalServer>, exchange: &mut Exchange) {
        exchange.tries += 1;
        exchange.server = Some(server.clone());
        exchange.try_until_us = exchange.request_until_us();
        let try_ms_max = server.limits.try_ms_max;
        if try_ms_max > 0 {
            exchange.try_until_us = self.shard.after_ms(exchange.try_ms(&self.shard, try_ms_max));
        }
    }

    pub(crate) async fn try_server(
        &mut self,
        in_flight: InFlight,
        forward: &Forward,
        exchange: &mut Exchange,
    ) -> Result<Reached, Tried> {
        let server = &in_flight.server().clone();
        let mut io = match (self.kept(server, exchange), server.protocol) {
            (Some(io), _) => io,
            (None, ServerProtocol::Http1) => self.connect(server, None, exchange).await?,
            (None, ServerProtocol::Http2) => Box::pin(self.share(server, exchange)).await?,
        };
        let window_bytes = server.limits.http2_stream_window_bytes;
        let is_stream = io.is_stream();
        let book = || match is_stream {
            true => self.shard.buffers.server_stream(window_bytes),
            false => self.shard.buffers.server_tls_exchange(),
        };
        if !io.begin_use(|| self.shard.with_room(book)) {
            return Err(Tried::GivenUp(Fault::Memory));
        }
        exchange.is_connected(self);
        let (mut sent, mut stall) = (0, Stall::new(server.limits.write_ms_max));
        loop {
            let write = write_all(&mut io, &forward.message, &mut sent);
            match self.deadline.within(exchange.try_ms(&self.shard, stall.look_ms()), write).await {
                Ok(Ok(())) => break,
                // The answer to it is there.
                Ok(Err(error)) if io.is_stream() && error.kind() == ErrorKind::BrokenPipe && sent > 0 => {
                    break;
                }
                Ok(Err(error)) => {
                    let fault = if io.is_stream() { ServerFault::of_io(&error) } else { ServerFault::Closed };
                    return Err(failed(fault, seen(sent)));
                }
                // Slowly, but it takes it.
                Err(_) if !exchange.is_try_over(&self.shard) && stall.goes_on(io.taken_bytes()) => {}
                Err(_) => {
                    io.is_given_up();
                    return Err(failed(ServerFault::WriteTimeout, seen(sent)));
                }
            }
        }
        let mut answer = self.shard.buffers.head();
        if let Some(ahead) = &forward.ahead {
            // On the heap: most requests have nothing to replay.
            Box::pin(self.replay(&ahead.hold, &mut io, &mut answer, (server, exchange))).await?;
        }
        let answer_until_us =
            self.shard.after_ms(exchange.try_ms(&self.shard, server.limits.response_ms_max));
        if forward.is_sent() && answer.is_empty() {
            let ms = self.shard.ms_until(answer_until_us);
            let read = |context: &mut Context<'_>, _: &mut C| io.poll_read_into(context, &mut answer);
            match self.while_present(ms, Ahead::Request, read).await.map_err(Tried::GivenUp)? {
                Ok(Ok(1..)) => exchange.has_first_byte(self),
                Ok(read) => {
                    let fault = ServerFault::of_read(&read);
                    return Err(failed(fault, Seen::Something));
                }
                Err(_) => {
                    io.is_given_up();
                    return Err(failed(ServerFault::ResponseTimeout, Seen::Something));
                }
            }
        }
        let server = ServerConnection { io, in_flight };
        Ok(Reached { server, answer, answer_until_us, is_reusable: false })
    }

    /// Sends what was read ahead of a body, as long as the server says nothing. All of it is kept, to be sent again.
    async fn replay(
        &mut self,
        hold: &RefCell<Hold>,
        io: &mut Connection,
        answer: &mut PooledBuffer,
        (server, exchange): (&LocalServer, &mut Exchange),
    ) -> Result<(), Tried> {
        let write_ms_max = server.limits.write_ms_max;
        let mut stall = Stall::new(write_ms_max);
        hold.borrow_mut().rewind();
        loop {
            let is_over = hold.borrow().next().is_none();
            let look_ms = exchange.try_ms(&self.shard, stall.look_ms());
            let Session { io: client, deadline, .. } = &mut *self;
            let step = std::future::poll_fn(|context| {
                if let Poll::Ready(read) = io.poll_read_into(context, answer) {
                    return Poll::Ready(Replayed::Answered(read));
                }
                let written = match hold.borrow().next() {
                    Some(bytes) => Pin::new(&mut *io).poll_write(context, bytes),
                    None => Pin::new(&mut *io).poll_flush(context).map_ok(|()| 0),
                };
                if let Poll::Ready(written) = written {
                    return Poll::Ready(Replayed::Written(written));
                }
                match client.presence(context) {
                    Presence::Broken => Poll::Ready(Replayed::Left),
                    Presence::Ended | Presence::Open => Poll::Pending,
                }
            });
            let fault = match deadline.within(look_ms, step).await {
                Ok(Replayed::Written(Ok(0))) if is_over => return Ok(()),
                Ok(Replayed::Written(Ok(written @ 1..))) => {
                    let mut hold = hold.borrow_mut();
                    hold.advance(written);
                    if hold.is_in_turn() {
                        hold.let_go_sent();
                    }
                    stall = Stall::new(write_ms_max);
                    continue;
                }
                Ok(Replayed::Answered(Ok(1..))) => {
                    exchange.has_first_byte(self);
                    return Ok(());
                }
                // Slowly, but it takes it.
                Err(_) if !exchange.is_try_over(&self.shard) && stall.goes_on(io.taken_bytes()) => continue,
                Err(_) => {
                    io.is_given_up();
                    return Err(failed(ServerFault::WriteTimeout, Seen::Something));
                }
                Ok(Replayed::Left) => return Err(Tried::GivenUp(Fault::Client(ClientFault::Closed))),
                // The answer to it is there.
                Ok(Replayed::Written(Err(error)))
                    if io.is_stream() && error.kind() == ErrorKind::BrokenPipe =>
                {
                    return Ok(());
                }
                Ok(Replayed::Written(Err(error))) if io.is_stream() => ServerFault::of_io(&error),
                Ok(Replayed::Written(_)) => ServerFault::Closed,
                Ok(Replayed::Answered(read)) => ServerFault::of_read(&read),
            };
            return Err(failed(fault, Seen::Something));
        }
    }

    /// A connection that another request has left.
    fn kept(&self, server: &LocalServer, exchange: &mut Exchange) -> Option<Connection> {
        if server.protocol == ServerProtocol::Http2 {
            let stream = self.shard.multiplexed.take(server.place(self.owner));
            exchange.reused = Some(stream.is_some());
            return stream;
        }
        // After a stale connection the others of its age are likely stale too.
        let kept = match exchange.check() {
            Some(check) if exchange.tries == 1 => {
                self.shard.idle.take(server.place(self.owner), self.shard.clock.round_us() / 1000, check)
            }
            _ => None,
        };
        exchange.reused = Some(kept.is_some());
        kept
    }

    /// A new connection, as long as the client is there. `hello`: of a client whose TLS goes on as it is.
    async fn connect(
        &mut self,
        server: &LocalServer,
        hello: Option<&HelloFacts>,
        exchange: &Exchange,
    ) -> Result<Connection, Tried> {
        let ms = exchange.try_ms(&self.shard, server.limits.connect_ms_max);
        let Session { io, shard, deadline, connection, .. } = self;
        let preface = server.proxy_protocol.map(|version| proxy_header(version, connection, hello));
        // On the heap: most requests find a connection, and an idle client has no room to spare.
        let mut connecting =
            Box::pin(connect(shard, server, preface.as_deref().unwrap_or_default(), (deadline, ms)));
        let connected = std::future::poll_fn(|context| {
            if let Poll::Ready(connected) = connecting.as_mut().poll(context) {
                return Poll::Ready(Some(connected));
            }
            match io.presence(context) {
                Presence::Broken => Poll::Ready(None),
                Presence::Ended | Presence::Open => Poll::Pending,
            }
        });
        let fault = match connected.await {
            Some(Ok(Some(connection))) => return Ok(connection),
            Some(Ok(None)) => return Err(Tried::GivenUp(Fault::Memory)),
            Some(Err(fault)) => fault,
            None => return Err(Tried::GivenUp(Fault::Client(ClientFault::Closed))),
        };
        note_unreached(shard, server, &fault);
        let fault = match fault {
            ConnectFault::Io(error) if Lack::of(&error).is_some() => ServerFault::Shortage,
            ConnectFault::Io(error) => match error.kind() {
                ErrorKind::ConnectionRefused => ServerFault::Refused,
                ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => ServerFault::Unreachable,
                _ => ServerFault::Connect,
            },
            ConnectFault::Timeout => ServerFault::ConnectTimeout,
            ConnectFault::Tls(error) => ServerFault::Tls(TlsFault::of(&error)),
            ConnectFault::TlsTimeout => ServerFault::TlsTimeout,
        };
        Err(failed(fault, Seen::Nothing))
    }

    /// A stream on a connection that others share, which is opened here, unless somebody else does so at the moment.
    async fn share(&mut self, server: &LocalServer, exchange: &mut Exchange) -> Result<Connection, Tried> {
        let place = server.place(self.owner);
        let shard = self.shard.clone();
        loop {
            if shard.multiplexed.takes_none(place) {
                return Err(failed(ServerFault::TakesNone, Seen::Nothing));
            }
            let Some(opening) = shard.multiplexed.begin_opening(place) else {
                self.opened(server, place, exchange).await?;
                if let Some(stream) = shard.multiplexed.take(place) {
                    exchange.reused = Some(true);
                    return Ok(stream);
                }
                continue;
            };
            let connection = self.connect(server, None, exchange).await?;
            if connection.agrees_on_http2() == Some(false) {
                return Err(failed(ServerFault::Tls(TlsFault::NoSharedProtocol), Seen::Nothing));
            }
            let Some(booked) = shard.with_room(|| shard.buffers.http2()) else {
                return Err(Tried::GivenUp(Fault::Memory));
            };
            let (recorder, metrics) = (shard.recorder.clone(), server.metrics.clone());
            let on_rest = Box::new(move |rest| match rest {
                Rest::Begins => recorder.hear(&Event::IdleAdded(&metrics)),
                Rest::Ends => recorder.hear(&Event::IdleRemoved(&metrics)),
            });
            let shared =
                opening.share(connection, server.sharing(shard.idle.keeps_any()), booked, on_rest).await;
            return shared.map_err(|_| failed(ServerFault::Closed, Seen::Nothing));
        }
    }

    /// Waits for a connection that somebody else opens, as long as the client is there.
    async fn opened(&mut self, server: &LocalServer, place: Place, exchange: &Exchange) -> Result<(), Tried> {
        let shard = self.shard.clone();
        let ms = exchange.try_ms(&shard, server.limits.connect_ms_max);
        let poll = |context: &mut Context<'_>, _: &mut C| shard.multiplexed.poll_opened(place, context);
        match self.while_present(ms, Ahead::Body, poll).await.map_err(Tried::GivenUp)? {
            Ok(()) => Ok(()),
            Err(_) => Err(failed(ServerFault::ConnectTimeout, Seen::Nothing)),
        }
    }
}
