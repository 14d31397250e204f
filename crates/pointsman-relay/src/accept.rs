//! From an accepted connection to its session: limits, the TLS handshake, facts.

use std::io::{
    self,
    ErrorKind::{ConnectionAborted, ConnectionReset},
};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use pointsman_config::{Listener, Pipeline, Protocol, ProxyProtocol};
use pointsman_net::{Acceptor, Booking, Deadline, Elapsed, Task, Tcp, spawn};
use pointsman_telemetry::{Event, Handshake, HandshakeFailure, Refusal, TlsGroup, TlsSession, TlsVersion};
use pointsman_view::{Connection, TlsClient, TlsFacts};
use tokio::io::AsyncRead;

use crate::admission::OpenConnection;
use crate::failed_handshake::Shaking;
use crate::hand_over::keep;
use crate::handshake_rate::HandshakeLimit;
use crate::header::behind_header;
use crate::http2::serve_http2;
use crate::live::{ListenerId, ListenerState, SocketId};
use crate::pipeline;
use crate::plain_request::{begins_plain_request, refuse_plain_request};
use crate::session::{Session, serve};
use crate::shard::Shard;
use crate::shortage::{Lack, Use};
use crate::through::begin_through;
use crate::transport::Transport;
use crate::turn_away::turn_away;

/// How long accepting pauses when the process is out of descriptors or memory.
const PAUSE_MS: u32 = 100;

/// The task that accepts on one socket.
pub(crate) struct Accepting {
    acceptor: Rc<Acceptor>,
    socket: SocketId,
    task: Task,
}

impl Accepting {
    /// # Errors
    /// When the system is out of memory for it.
    pub(crate) fn start(shard: &Rc<Shard>, socket: SocketId, accepts: OwnedFd) -> io::Result<Accepting> {
        let acceptor = Rc::new(Acceptor::new(accepts)?);
        let task = spawn(accept_all(shard.clone(), socket, acceptor.clone()));
        Ok(Accepting { acceptor, socket, task })
    }

    /// Leaves the socket to another process, which takes what waits there.
    pub(crate) fn leave(self, shard: &Rc<Shard>) {
        self.task.abort();
        if self.acceptor.leave() {
            self.take_waiting(shard);
        }
    }

    /// Takes what the kernel has accepted already, then closes the socket. Where the listener has left the
    /// plan there is nothing to serve such connections by, and they close.
    pub(crate) fn close(self, shard: &Rc<Shard>) {
        self.task.abort();
        self.take_waiting(shard);
    }

    fn take_waiting(&self, shard: &Rc<Shard>) {
        while let Some(tcp) = self.acceptor.accept_waiting() {
            open(shard, self.socket, tcp);
        }
    }
}

async fn accept_all(shard: Rc<Shard>, socket: SocketId, acceptor: Rc<Acceptor>) {
    let mut pause = shard.timers.deadline();
    loop {
        match acceptor.accept_unheard().await.and_then(|accepted| keep(&shard, socket, accepted)) {
            Ok(Some(tcp)) => open(&shard, socket, tcp),
            Ok(None) => {}
            // It has gone before it was accepted.
            Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionReset) => {}
            Err(error) => {
                let lack = Lack::of(&error);
                let is_over = lack.is_some_and(|lack| shard.makes_room(Use::Client, lack));
                // What is open goes on meanwhile, and when some of it closes there is room again.
                if !is_over {
                    let elapsed = pause.within(PAUSE_MS, std::future::pending::<()>()).await;
                    debug_assert!(elapsed.is_err());
                }
            }
        }
    }
}

/// Begins with a connection that came by a socket.
pub(crate) fn open(shard: &Rc<Shard>, socket: SocketId, tcp: Tcp) {
    let local = shard.local();
    let Some((id, listener, live)) = local.live.listener_of(socket) else { return };
    // A peer that is gone already has no address left.
    let (Ok(src), Ok(dst)) = (tcp.peer(), tcp.local()) else { return };
    let connections_max = local.live.plan.connections_max.unwrap_or_else(|| shard.shared.connections_max());
    let admitted = OpenConnection::admit(shard, listener, &live.state, connections_max, src);
    let counted = match admitted {
        // Only where the operator wants more connections than there are surely descriptors for.
        Ok(_) if shard.is_short(Use::Client) && !shard.makes_room(Use::Client, Lack::Table) => {
            Err(Refusal::Descriptors)
        }
        admitted => admitted,
    };
    let counted = match counted {
        Ok(counted) => counted,
        Err(why) => {
            shard.recorder.hear(&Event::Refused(&live.state.metrics, why));
            return turn_away(shard, tcp, listener.is_plain_http(), why);
        }
    };
    let incoming = Incoming {
        id,
        state: live.state.clone(),
        tcp,
        connection: Connection { src, dst, proxied: None, tls: None },
        counted,
        deadline: shard.timers.deadline(),
    };
    match listener.proxy_protocol {
        ProxyProtocol::Off => begin(shard, listener, incoming),
        ProxyProtocol::Required => behind_header(shard, listener, incoming),
    }
}

/// A connection that was let in.
pub(crate) struct Incoming {
    pub(crate) id: ListenerId,
    pub(crate) state: Arc<ListenerState>,
    pub(crate) tcp: Tcp,
    pub(crate) connection: Connection,
    pub(crate) counted: OpenConnection,
    pub(crate) deadline: Deadline,
}

/// Begins what the listener speaks.
pub(crate) fn begin(shard: &Rc<Shard>, listener: &Listener, incoming: Incoming) {
    if listener.protocol != Protocol::Http {
        return begin_through(shard, listener.protocol, incoming);
    }
    let Incoming { id, state, tcp, mut connection, counted, deadline } = incoming;
    match &listener.tls {
        None => {
            let session = Session::new(tcp, shard.clone(), id, state, connection, deadline);
            spawn_serving(session, listener.pipeline, counted);
        }
        Some(acceptor) => {
            let acceptor = acceptor.clone();
            let limits = (listener.limits.handshake_ms_max, HandshakeLimit::of(listener, &connection));
            let (shard, mode) = (shard.clone(), listener.pipeline);
            spawn(async move {
                let mut deadline = deadline;
                let shaken =
                    handshake(&shard, (id, &state), &mut deadline, limits, &acceptor, (tcp, &connection));
                if let Some((stream, booked)) = shaken.await {
                    connection.tls = Some(Arc::new(facts(&stream)));
                    let session = Session::new(stream, shard, id, state, connection, deadline);
                    // A task of its own: in this one the stream would stay at every place that it came by.
                    spawn_serving(session, mode, (booked, counted));
                }
            });
        }
    }
}

/// Starts the task of a connection, which keeps the mode that it begins with.
fn spawn_serving<C: Transport + AsyncRead + 'static, H: 'static>(
    session: Session<C>,
    mode: Pipeline,
    held: H,
) {
    match mode {
        Pipeline::Hold => drop(spawn(serve_all(session, held))),
        Pipeline::Concurrent | Pipeline::Latest => drop(spawn(serve_pipelined(session, mode, held))),
    }
}

/// The same where requests may overlap.
async fn serve_pipelined<C: Transport + AsyncRead, H>(mut session: Session<C>, mode: Pipeline, held: H) {
    if session.begins_with_http2() || Box::pin(pipeline::serve(&mut session, mode)).await {
        Box::pin(serve_http2(&mut session)).await;
    }
    drop((session, held));
}

/// The task of a connection that can take requests: what it takes of memory is what an idle connection costs.
/// `held` goes when the connection has closed.
#[expect(clippy::manual_async_fn, reason = "an async function would keep each of its parameters twice")]
fn serve_all<C: Transport + AsyncRead + 'static, H: 'static>(
    mut session: Session<C>,
    held: H,
) -> impl Future<Output = ()> + 'static {
    async move {
        if session.begins_with_http2() || serve(&mut session).await {
            // On the heap: a connection that speaks HTTP/1 has no room for it.
            Box::pin(serve_http2(&mut session)).await;
        }
        drop((session, held));
    }
}

type TlsStream = pointsman_tls::TlsStream<Tcp>;

async fn handshake(
    shard: &Rc<Shard>,
    (id, listener): (ListenerId, &ListenerState),
    deadline: &mut Deadline,
    (ms, limit): (u32, Option<HandshakeLimit>),
    acceptor: &pointsman_tls::Acceptor,
    (tcp, connection): (Tcp, &Connection),
) -> Option<(TlsStream, Booking)> {
    let shaking = Shaking { listener: &listener.metrics, connection, since_us: shard.clock.round_us() };
    let until_us = shard.after_ms(ms);
    let first_word = first_word(shard, id, deadline, until_us, &tcp).await;
    let has_spoken = first_word.is_ok();
    let is_plain = match first_word {
        Ok(()) => deadline.within(shard.ms_until(until_us), begins_plain_request(&tcp)).await,
        Err(elapsed) => Err(elapsed),
    };
    let mut booked = None;
    let outcome = match is_plain {
        Ok(true) => {
            shaking.plain_request(shard);
            refuse_plain_request(shard, tcp, deadline).await;
            return None;
        }
        Ok(false)
            if limit.is_some_and(|limit| {
                !listener.handshakes.take(limit, shard.clock.round_us().saturating_mul(1000))
            }) =>
        {
            shard.recorder.hear(&Event::Refused(&listener.metrics, Refusal::HandshakesPerAddress));
            return None;
        }
        Ok(false) => {
            booked = shard.buffers.tls();
            let Some(_handshake) = booked.as_ref().and_then(|_| shard.buffers.handshake()) else {
                shard.recorder.hear(&Event::Refused(&listener.metrics, Refusal::Memory));
                shaking.count(shard, HandshakeFailure::Memory);
                return None;
            };
            // The handshake's state is large and short-lived: who has not said a word has no room for it.
            let accepted = Box::pin(acceptor.accept(tcp));
            deadline.within(shard.ms_until(until_us), accepted).await
        }
        Err(elapsed) => Err(elapsed),
    };
    match outcome {
        Ok(Ok(stream)) => {
            shard.recorder.hear(&Event::Handshake(&listener.metrics, agreed(&stream)));
            return Some(stream).zip(booked);
        }
        Ok(Err(error)) => shaking.failed(shard, &error),
        Err(Elapsed::Ended) => {}
        Err(Elapsed::Time) => {
            shard.recorder.hear(&Event::Refused(&listener.metrics, Refusal::HandshakeTimeout));
            shaking.timed_out(shard, has_spoken);
        }
    }
    None
}

/// Waits for the first byte. Until it says something a connection is idle, and neither a drain nor the end of its
/// listener waits for it.
pub(crate) async fn first_word(
    shard: &Shard,
    id: ListenerId,
    deadline: &mut Deadline,
    until_us: u64,
    tcp: &Tcp,
) -> Result<(), Elapsed> {
    loop {
        match deadline.idle_within(shard.ms_until(until_us), tcp.readable()).await {
            Err(Elapsed::Ended) if !shard.is_draining() && shard.local().live.listener(id).is_some() => {}
            outcome => return outcome,
        }
    }
}

fn agreed(stream: &TlsStream) -> Handshake {
    Handshake {
        session: if stream.is_resumed() { TlsSession::Resumed } else { TlsSession::Full },
        version: TlsVersion::named(stream.version()),
        group: TlsGroup::named(stream.group()),
    }
}

fn facts(stream: &TlsStream) -> TlsFacts {
    let facts = stream.facts();
    TlsFacts {
        sni: facts.sni,
        version: facts.version,
        cipher: facts.cipher,
        alpn: facts.alpn,
        resumed: facts.resumed,
        client: facts.client.map(|client| TlsClient {
            subject: client.subject.clone(),
            sans: client.sans.clone(),
            fingerprint: client.fingerprint.clone(),
            certificate: client.certificate.clone(),
        }),
        session: facts.session,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two of the sizes that the allocator has blocks of: a byte more takes a block that is a sixth larger.
    const PLAIN_BYTES_MAX: usize = 1536;
    const TLS_BYTES_MAX: usize = 3072;

    fn bytes<A, B, F>(_: fn(A, B) -> F) -> usize {
        size_of::<F>()
    }

    /// What a connection books, less its socket's place, its deadlines and a last word.
    const PIPELINED_BYTES_MAX: usize = 4096;

    fn bytes_of_three<A, B, C, F>(_: fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    fn bytes_by_reference<'a, A: 'a, B, F>(_: fn(&'a mut A, B) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_tasks_of_connections_that_pipeline_are_within_what_is_booked() {
        let task = bytes_of_three(serve_pipelined::<Tcp, OpenConnection>);
        let way = bytes_by_reference(pipeline::serve::<Tcp>);
        assert!(task + way <= PIPELINED_BYTES_MAX, "{task} + {way} bytes");
    }

    #[test]
    fn the_tasks_of_idle_connections_do_not_grow() {
        let plain = bytes(serve_all::<Tcp, OpenConnection>);
        let tls = bytes(serve_all::<TlsStream, (Booking, OpenConnection)>);
        assert!(plain <= PLAIN_BYTES_MAX, "{plain} bytes");
        assert!(tls <= TLS_BYTES_MAX, "{tls} bytes under TLS");
    }
}
