//! A small HTTP/1 server that records what it is sent and answers as it is told.

use std::io::{Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};

use crate::raw_origin::{listen, listen_on};
use crate::tls_server::Line;
use crate::{Body, Framing, Head, PATIENCE, Reader, Shaken, TlsServer};

/// A server behind the switch, on a free port. It stops when it is dropped.
pub struct Origin {
    name: String,
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

/// A request as the origin saw it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The number of the connection it came on, from 0.
    pub connection: usize,
    /// Its head.
    pub head: Head,
    /// Its body, as far as it was read.
    pub body: Body,
    /// Whether the body came whole.
    pub complete: bool,
}

impl Request {
    /// The target, as it stands in the request line.
    #[must_use]
    pub fn target(&self) -> &str {
        self.head.word(1)
    }
}

/// What happens to the connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It waits for the next request.
    KeepAlive,
    /// It is closed, under TLS with `close_notify`.
    Close,
    /// It is closed without a word.
    Cut,
    /// It is reset.
    Reset,
}

/// What an origin does with a request. It is called when the head is there; the body is its to read.
type Answer = dyn Fn(&mut Exchange<'_>) -> Then + Send + Sync;

/// One request and its answer, seen from the origin.
pub struct Exchange<'a> {
    /// The request's head.
    pub head: Head,
    /// The origin's name.
    pub name: &'a str,
    /// The number of the connection, from 0.
    pub connection: usize,
    reader: &'a mut Reader<Recorded>,
    shared: &'a Shared,
    index: usize,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// To end them with the origin; nothing where the origin has let one go.
    sockets: Vec<Option<TcpStream>>,
    raw: Vec<Vec<u8>>,
    requests: Vec<Request>,
    shaken: Vec<Shaken>,
    /// Connections that this side has closed.
    ended: usize,
}

impl Origin {
    /// An origin that tells what it saw: [`echo`].
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::answering(name, echo)
    }

    /// An origin that answers so.
    ///
    /// # Panics
    /// When no port is free.
    pub fn answering(name: &str, answer: impl Fn(&mut Exchange<'_>) -> Then + Send + Sync + 'static) -> Self {
        Self::start(name, listen(), None, Arc::new(answer))
    }

    /// The same on an address, if it is free.
    #[must_use]
    pub fn at(
        address: SocketAddr,
        name: &str,
        answer: impl Fn(&mut Exchange<'_>) -> Then + Send + Sync + 'static,
    ) -> Option<Self> {
        Some(Self::start(name, listen_on(address)?, None, Arc::new(answer)))
    }

    /// The same over TLS.
    ///
    /// # Panics
    /// When no port is free.
    pub fn secured(
        name: &str,
        tls: &TlsServer,
        answer: impl Fn(&mut Exchange<'_>) -> Then + Send + Sync + 'static,
    ) -> Self {
        Self::start(name, listen(), Some(tls.clone()), Arc::new(answer))
    }

    fn start(name: &str, listener: TcpListener, tls: Option<TlsServer>, answer: Arc<Answer>) -> Self {
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared::default());
        let mut origin = Self { name: name.to_owned(), address, shared: shared.clone(), accepting: None };
        let name = name.to_owned();
        origin.accepting = Some(std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if shared.stop.load(Ordering::SeqCst) {
                    return;
                }
                let (name, shared, answer) = (name.clone(), shared.clone(), answer.clone());
                let (connection, tls) = (shared.admit(&socket), tls.clone());
                std::thread::spawn(move || {
                    serve(&name, connection, (socket, tls.as_ref()), &shared, &*answer);
                    shared.change(|state| state.ended += 1);
                });
            }
        }));
        origin
    }

    /// An origin that sends these bytes to every request, after reading its body.
    #[must_use]
    pub fn saying(name: &str, answer: impl Into<Vec<u8>>, then: Then) -> Self {
        let answer = answer.into();
        Self::answering(name, move |exchange| {
            exchange.body();
            exchange.send(&answer);
            then
        })
    }

    /// An address where nothing listens, nor will while the tests run.
    ///
    /// # Panics
    /// When no port is free.
    #[must_use]
    pub fn dead_address() -> SocketAddr {
        // Bound: nobody else can be given the port.
        static HELD: Mutex<Vec<Socket>> = Mutex::new(Vec::new());
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a descriptor");
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
        let address = socket.local_addr().ok().and_then(|address| address.as_socket()).expect("bound");
        HELD.lock().expect("no panic under the lock").push(socket);
        address
    }

    /// An address where something may listen. Its port is none of those that the kernel gives to whoever asks for any: no
    /// other test has it meanwhile.
    ///
    /// # Panics
    /// When no port is free.
    #[must_use]
    pub fn free_address() -> SocketAddr {
        const FIRST: u32 = 10_000;
        static TRIED: AtomicU32 = AtomicU32::new(0);
        let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").expect("Linux");
        let given: u32 =
            range.split_whitespace().next().and_then(|port| port.parse().ok()).expect("two ports");
        // Where those that are given begin far down, nothing is left but to take one of them.
        let count = given.max(FIRST + 10_000) - FIRST;
        let port_of = |number: u32| FIRST + std::process::id().wrapping_mul(97).wrapping_add(number) % count;
        let mut all = (0..count).map(|_| port_of(TRIED.fetch_add(1, Ordering::Relaxed)));
        let free = all.find_map(|port| {
            let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).expect("a port")));
            TcpListener::bind(address).is_ok().then_some(address)
        });
        free.expect("a free port")
    }

    /// Its name, which it also sends as `X-Server`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().sockets.len()
    }

    /// Every TLS handshake that succeeded up to now.
    #[must_use]
    pub fn shaken(&self) -> Vec<Shaken> {
        self.shared.lock().shaken.clone()
    }

    /// Every request up to now.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// How many requests it saw.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.lock().requests.len()
    }

    /// The last request.
    ///
    /// # Panics
    /// When there was none.
    #[must_use]
    pub fn last(&self) -> Request {
        self.shared.lock().requests.last().cloned().expect("a request")
    }

    /// Every byte that came on a connection.
    #[must_use]
    pub fn raw(&self, connection: usize) -> String {
        self.shared.lock().raw[connection].iter().map(|byte| char::from(*byte)).collect()
    }

    /// Waits until so many heads of requests have come.
    ///
    /// # Panics
    /// When they do not come in time.
    pub fn wait_for_requests(&self, count: usize) {
        self.wait(&format!("{count} requests"), |state| state.requests.len() >= count);
    }

    /// Waits until the body of the last request is whole.
    ///
    /// # Panics
    /// When it does not come in time.
    pub fn wait_for_body(&self) {
        self.wait("a whole body", |state| state.requests.last().is_some_and(|request| request.complete));
    }

    /// Waits until it has closed so many connections.
    ///
    /// # Panics
    /// When they are not closed in time.
    pub fn wait_for_ends(&self, count: usize) {
        self.wait(&format!("the end of {count} connections"), |state| state.ended >= count);
    }

    fn wait(&self, what: &str, ready: impl Fn(&State) -> bool) {
        let state = self.shared.lock();
        let waited = self.shared.changed.wait_timeout_while(state, PATIENCE, |state| !ready(state));
        let ready = !waited.expect("no panic under the lock").1.timed_out();
        assert!(ready, "{} waited for {what}", self.name);
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then sees the flag; if that fails it is gone already.
        drop(TcpStream::connect(self.address));
        // Nothing listens any more once it has ended. What it failed of, it has said.
        self.accepting.take().into_iter().for_each(|accepting| drop(accepting.join()));
        for socket in self.shared.lock().sockets.iter().flatten() {
            // Fails when the far end closed first: then there is nothing to end.
            drop(socket.shutdown(Shutdown::Both));
        }
    }
}

impl Exchange<'_> {
    /// The request's method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.head.word(0)
    }

    /// The request's target.
    #[must_use]
    pub fn target(&self) -> &str {
        self.head.word(1)
    }

    /// Reads the body to its end; what there was of it when the switch breaks off.
    pub fn body(&mut self) -> Body {
        while self.piece().is_some() {}
        self.shared.lock().requests[self.index].body.clone()
    }

    /// The next piece of the body, as soon as it is there; nothing at its end, or when the switch
    /// breaks off.
    pub fn piece(&mut self) -> Option<Vec<u8>> {
        let piece = self.reader.piece();
        let trailers = self.reader.take_trailers();
        self.shared.change(|state| {
            let request = &mut state.requests[self.index];
            match &piece {
                Ok(Some(piece)) => request.body.bytes.extend_from_slice(piece),
                Ok(None) => {
                    request.complete = true;
                    request.body.trailers.extend(trailers);
                }
                Err(_) => {}
            }
        });
        piece.ok().flatten()
    }

    /// Sends bytes; the switch may have closed, which is not the origin's business.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let line = &mut self.reader.stream().line;
        drop(line.write_all(bytes.as_ref()).and_then(|()| line.flush()));
    }

    /// Sends a plain answer of this status, with a Content-Length and the origin's name.
    pub fn answer(&mut self, status: &str, body: &str) -> Then {
        let (name, length, connection) = (self.name, body.len(), self.connection);
        let shown = if self.method() == "HEAD" { "" } else { body };
        self.send(format!(
            "HTTP/1.1 {status}\r\nX-Server: {name}\r\nX-Connection: {connection}\r\n\
             Content-Length: {length}\r\n\r\n{shown}"
        ));
        Then::KeepAlive
    }
}

/// Answers 200 with what it saw, as JSON.
pub fn echo(exchange: &mut Exchange<'_>) -> Then {
    let body = exchange.body();
    let fields: Vec<_> = exchange.head.fields.iter().map(|(name, value)| [name, value]).collect();
    let seen = serde_json::json!({
        "server": exchange.name,
        "connection": exchange.connection,
        "method": exchange.method(),
        "target": exchange.target(),
        "fields": fields,
        "body_bytes": body.bytes.len(),
    });
    exchange.answer("200 OK", &seen.to_string())
}

/// Answers 200 with its name.
pub fn ok(exchange: &mut Exchange<'_>) -> Then {
    exchange.body();
    let name = exchange.name;
    exchange.answer("200 OK", name)
}

fn serve(
    name: &str,
    connection: usize,
    (socket, tls): (TcpStream, Option<&TlsServer>),
    shared: &Arc<Shared>,
    answer: &Answer,
) {
    let copy = socket.try_clone().expect("a descriptor");
    let Ok((line, shaken)) = Line::open(copy, tls) else {
        // Fails when the far end closed first: then there is nothing to end.
        return drop(socket.shutdown(Shutdown::Both));
    };
    shared.change(|state| state.shaken.extend(shaken));
    let mut reader = Reader::new(Recorded { line, connection, shared: shared.clone() });
    while let Ok(Some(head)) = reader.head() {
        reader.begin_body(head.request_framing());
        let index = shared.change(|state| {
            let complete = head.request_framing() == Framing::Empty;
            let body = Body::default();
            state.requests.push(Request { connection, head: head.clone(), body, complete });
            state.requests.len() - 1
        });
        let mut exchange = Exchange { head, name, connection, reader: &mut reader, shared, index };
        match answer(&mut exchange) {
            Then::KeepAlive => {}
            Then::Close => {
                reader.stream().line.farewell();
                break;
            }
            Then::Cut => break,
            Then::Reset => {
                // A close becomes a reset when it is the last descriptor's.
                SockRef::from(&socket).set_linger(Some(Duration::ZERO)).expect("an open socket");
                shared.change(|state| state.sockets[connection] = None);
                return;
            }
        }
    }
    // Fails when the far end closed first: then there is nothing to end.
    drop(socket.shutdown(Shutdown::Both));
}

impl Shared {
    fn admit(&self, socket: &TcpStream) -> usize {
        // An idle connection lives longer than a test's patience; the drop of the origin ends it.
        socket.set_read_timeout(Some(PATIENCE * 6)).expect("an open socket");
        socket.set_nodelay(true).expect("an open socket");
        let copy = socket.try_clone().expect("a descriptor");
        self.change(|state| {
            state.sockets.push(Some(copy));
            state.raw.push(Vec::new());
            state.sockets.len() - 1
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic under the lock")
    }
}

/// A connection whose every byte is kept, under TLS in the clear.
struct Recorded {
    line: Line,
    connection: usize,
    shared: Arc<Shared>,
}

impl Read for Recorded {
    fn read(&mut self, space: &mut [u8]) -> Result<usize> {
        let count = self.line.read(space)?;
        self.shared.change(|state| state.raw[self.connection].extend_from_slice(&space[..count]));
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    /// The two ends understand each other without a switch between them.
    #[test]
    fn client_and_origin() {
        let origin = Origin::new("origin");
        let mut client = Client::plain(origin.address());
        let chunked = "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n";
        for number in 0..3 {
            client.send(format!("POST /x HTTP/1.1\r\n{chunked}"));
            let answer = client.response();
            assert_eq!((answer.status(), answer.server()), (200, "origin"));
            let request = origin.last();
            assert_eq!((request.target(), request.body.bytes.as_slice()), ("/x", b"abc".as_slice()));
            assert_eq!(request.body.trailers, [("X-T".to_owned(), "1".to_owned())]);
            assert_eq!((origin.count(), origin.connections()), (number + 1, 1));
        }
        assert_eq!(client.ask("HEAD", "/", "").body.bytes, b"");
        assert!(origin.raw(0).starts_with("POST /x HTTP/1.1\r\n"));
    }

    /// An answer that breaks off is an error, not a short answer.
    #[test]
    fn cut_answers() {
        for framing in ["Content-Length: 5\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"] {
            let origin = Origin::saying("origin", format!("HTTP/1.1 200 OK\r\n{framing}"), Then::Close);
            let mut client = Client::plain(origin.address());
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert!(client.try_response().is_err());
        }
    }
}
