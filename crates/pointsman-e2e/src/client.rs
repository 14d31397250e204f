//! A client that sends the bytes it is told to, and reads one answer at a time.

mod session;

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};
use socket2::{Domain, SockRef, Socket, Type};

use crate::{Body, Framing, Head, PATIENCE, Reader, TlsClient};

/// A connection to the switch.
pub struct Client {
    reader: Reader<Stream>,
    local: SocketAddr,
}

/// What bytes go over.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// An answer, read to its end.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The final head.
    pub head: Head,
    /// Heads with a 1xx status that came before it.
    pub interim: Vec<Head>,
    /// The body and its trailers.
    pub body: Body,
}

impl Response {
    /// The status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.word(1).parse().unwrap_or_else(|_| panic!("no status in `{}`", self.head.start))
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body.bytes).into_owned()
    }

    /// The name of the origin that answered; empty when the switch itself did.
    #[must_use]
    pub fn server(&self) -> &str {
        self.head.field("x-server").unwrap_or_default()
    }
}

impl Client {
    /// Connects without TLS.
    ///
    /// # Panics
    /// When nothing listens there.
    #[must_use]
    pub fn plain(address: SocketAddr) -> Self {
        Self::over(connect(address).expect("the switch listens"))
    }

    /// The same from another address of this machine.
    ///
    /// # Panics
    /// When nothing listens there.
    #[must_use]
    pub fn plain_from(source: IpAddr, address: SocketAddr) -> Self {
        Self::try_plain_from(source, address).expect("the switch listens")
    }

    /// The same where the switch may refuse the connection at once.
    ///
    /// # Errors
    /// When nothing listens there, or it is reset before it is known here that it stood.
    ///
    /// # Panics
    /// When this machine does not have the source's address.
    pub fn try_plain_from(source: IpAddr, address: SocketAddr) -> Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(source, 0).into()).expect("an address of this machine");
        socket.connect(&address.into())?;
        let socket = TcpStream::from(socket);
        patient(&socket)?;
        Ok(Self::over(socket))
    }

    /// Connects without TLS, with so little room for what it has not read.
    ///
    /// # Panics
    /// When nothing listens there.
    #[must_use]
    pub fn cramped(address: SocketAddr, room_bytes: usize) -> Self {
        Self::over(cramped(address, room_bytes))
    }

    /// The same with TLS, asking for the server `name`.
    ///
    /// # Errors
    /// When the handshake fails.
    ///
    /// # Panics
    /// When nothing listens there.
    pub fn cramped_tls(
        address: SocketAddr,
        room_bytes: usize,
        config: &TlsClient,
        name: &str,
    ) -> Result<Self> {
        Self::tls_over(cramped(address, room_bytes), config, name)
    }

    /// Connects to a Unix socket without TLS. It has no address of its own.
    ///
    /// # Panics
    /// When nobody listens there.
    #[must_use]
    pub fn unix(path: &Path) -> Self {
        let socket = UnixStream::connect(path).expect("the switch listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("connected");
        socket.set_write_timeout(Some(PATIENCE)).expect("connected");
        // What reads, writes and shuts down does not look at the family.
        let stream = Stream::Plain(TcpStream::from(OwnedFd::from(socket)));
        Self { reader: Reader::new(stream), local: SocketAddr::from(([0, 0, 0, 0], 0)) }
    }

    fn over(socket: TcpStream) -> Self {
        let local = socket.local_addr().expect("an open socket");
        Self { reader: Reader::new(Stream::Plain(socket)), local }
    }

    /// Connects with TLS, asking for the server `name`.
    ///
    /// # Errors
    /// When the handshake fails. With TLS 1.3 a refused client certificate shows only when the first
    /// answer is read.
    pub fn tls(address: SocketAddr, config: &TlsClient, name: &str) -> Result<Self> {
        Self::tls_over(connect(address)?, config, name)
    }

    /// The same connection with TLS from here on.
    ///
    /// # Errors
    /// When the handshake fails.
    ///
    /// # Panics
    /// When it speaks TLS already.
    pub fn into_tls(self, config: &TlsClient, name: &str) -> Result<Self> {
        let local = self.local;
        let Stream::Plain(mut socket) = self.reader.into_stream() else { panic!("TLS inside of TLS") };
        let mut connection = config.connection(name);
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        let stream = Stream::Tls(Box::new(StreamOwned::new(connection, socket)));
        Ok(Self { reader: Reader::new(stream), local })
    }

    fn tls_over(socket: TcpStream, config: &TlsClient, name: &str) -> Result<Self> {
        Self::over(socket).into_tls(config, name)
    }

    /// This end's address: what the switch sees as `srcip` and `srcport`.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Sends bytes.
    ///
    /// # Panics
    /// When they cannot be sent.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).expect("the switch reads");
    }

    /// Sends bytes, which the switch may be too annoyed to take.
    ///
    /// # Errors
    /// When the switch closed.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        let stream = self.reader.stream();
        stream.write_all(bytes.as_ref())?;
        stream.flush()
    }

    /// Sends as many of these bytes as are taken at once; over TLS they are taken when they are encrypted.
    ///
    /// # Errors
    /// When the switch closed, or took nothing for so long as [`Client::waits_to_send`] says, or [`PATIENCE`].
    pub fn send_some(&mut self, bytes: &[u8]) -> Result<usize> {
        match self.reader.stream() {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Tls(stream) => encrypt_some(&mut stream.conn, &mut stream.sock, bytes),
        }
    }

    /// How long a send waits for the switch to take something.
    ///
    /// # Panics
    /// When that is no time.
    pub fn waits_to_send(&mut self, time: Duration) {
        self.reader.stream().socket().set_write_timeout(Some(time)).expect("an open socket");
    }

    /// Sends bytes over TLS as one record, all but its last byte.
    ///
    /// # Panics
    /// When they cannot be sent, or make more than a record, or there is no TLS.
    pub fn send_but_last_byte(&mut self, bytes: &[u8]) {
        let Stream::Tls(stream) = self.reader.stream() else { panic!("records are of TLS") };
        stream.conn.writer().write_all(bytes).expect("there is room");
        let mut record = Vec::new();
        stream.conn.write_tls(&mut record).expect("memory");
        assert!(!stream.conn.wants_write(), "more than one record");
        stream.sock.write_all(&record[..record.len() - 1]).expect("the switch reads");
    }

    /// Says that nothing more will be sent, and goes on reading.
    pub fn finish_sending(&mut self) {
        let socket = self.reader.stream().socket();
        socket.shutdown(Shutdown::Write).expect("still open");
    }

    /// Says over TLS that nothing more will be sent, and leaves the connection underneath open.
    ///
    /// # Panics
    /// Without TLS, or when the switch has closed.
    pub fn notify_of_close(&mut self) {
        let Stream::Tls(stream) = self.reader.stream() else { panic!("only TLS has a word for it") };
        stream.conn.send_close_notify();
        stream.flush().expect("still open");
    }

    /// Breaks the connection off, as a process does that is killed with something unread.
    ///
    /// # Panics
    /// When the system refuses.
    pub fn reset(mut self) {
        let socket = SockRef::from(self.reader.stream().socket());
        socket.set_linger(Some(Duration::ZERO)).expect("an open socket");
    }

    /// Sends a GET for `shop.example` and reads the answer.
    pub fn get(&mut self, target: &str) -> Response {
        self.ask("GET", target, "")
    }

    /// Sends a request for `shop.example` without a body and reads the answer. `fields` are further
    /// lines, each ended by CRLF.
    pub fn ask(&mut self, method: &str, target: &str, fields: &str) -> Response {
        self.send(format!("{method} {target} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n"));
        if method == "HEAD" { self.response_to_head() } else { self.response() }
    }

    /// The next answer.
    ///
    /// # Panics
    /// When none comes, or it is cut off.
    pub fn response(&mut self) -> Response {
        self.try_response().unwrap_or_else(|error| panic!("no whole answer: {error}"))
    }

    /// The next answer, to a HEAD request.
    ///
    /// # Panics
    /// When none comes.
    pub fn response_to_head(&mut self) -> Response {
        self.try_response_to_head().unwrap_or_else(|error| panic!("no whole answer: {error}"))
    }

    /// The next answer, to a HEAD request.
    ///
    /// # Errors
    /// When none comes.
    pub fn try_response_to_head(&mut self) -> Result<Response> {
        self.read_response(true)
    }

    /// The next answer.
    ///
    /// # Errors
    /// When none comes, or it is cut off.
    pub fn try_response(&mut self) -> Result<Response> {
        self.read_response(false)
    }

    /// The head of the next answer, which may be an interim one. The body is left to [`Client::piece`].
    ///
    /// # Panics
    /// When none comes.
    pub fn head(&mut self) -> Head {
        self.try_head().unwrap_or_else(|error| panic!("no head: {error}"))
    }

    /// The same where none may come.
    ///
    /// # Errors
    /// When none comes.
    pub fn try_head(&mut self) -> Result<Head> {
        let head = self.reader.head()?.ok_or_else(no_answer)?;
        self.reader.begin_body(head.response_framing(false));
        Ok(head)
    }

    /// From here on bytes come as they come: [`Client::piece`] reads them, to the end of the connection.
    pub fn begin_tunnel(&mut self) {
        self.reader.begin_body(Framing::Close);
    }

    /// The next piece of the body, as soon as it is there; nothing at its end.
    ///
    /// # Errors
    /// When the answer is cut off.
    pub fn piece(&mut self) -> Result<Option<Vec<u8>>> {
        self.reader.piece()
    }

    /// Reads the body until exactly this much of it came.
    ///
    /// # Panics
    /// When something else comes.
    pub fn expect_body(&mut self, expected: &[u8]) {
        let mut came = Vec::new();
        while came.len() < expected.len() {
            came.extend(self.piece().expect("a body").expect("more of the body"));
        }
        assert_eq!(String::from_utf8_lossy(&came), String::from_utf8_lossy(expected));
    }

    /// The rest of a body.
    ///
    /// # Errors
    /// When the answer is cut off.
    pub fn rest(&mut self) -> Result<Body> {
        self.reader.rest()
    }

    /// Waits until the switch closes, and says whether it did so without a further byte. A reset
    /// counts as closing.
    #[must_use]
    pub fn closes(&mut self) -> bool {
        match self.reader.at_end() {
            Ok(ended) => ended,
            Err(error) => is_closed(&error),
        }
    }

    /// Everything the switch still sends, to the end of the connection.
    pub fn everything(&mut self) -> String {
        self.reader.begin_body(Framing::Close);
        let mut all = Vec::new();
        while let Ok(Some(piece)) = self.reader.piece() {
            all.extend(piece);
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    pub(crate) fn stream(&mut self) -> &mut Stream {
        self.reader.stream()
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.reader.stream_ref(), Stream::Tls(_))
    }

    fn read_response(&mut self, to_head: bool) -> Result<Response> {
        let mut interim = Vec::new();
        loop {
            let head = self.reader.head()?.ok_or_else(no_answer)?;
            if head.word(1).starts_with('1') {
                interim.push(head);
                continue;
            }
            self.reader.begin_body(head.response_framing(to_head));
            return Ok(Response { head, interim, body: self.reader.rest()? });
        }
    }
}

impl Stream {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.get_ref(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, space: &mut [u8]) -> Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(space),
            Self::Tls(stream) => stream.read(space),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// Takes as many bytes as rustls has room for. rustls' own stream would go on to read where it could not write,
/// and wait for an answer that is not due yet.
fn encrypt_some(session: &mut ClientConnection, socket: &mut TcpStream, bytes: &[u8]) -> Result<usize> {
    while session.wants_write() {
        session.write_tls(socket)?;
    }
    let taken = session.writer().write(bytes)?;
    while session.wants_write() {
        match session.write_tls(socket) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            outcome => outcome?,
        };
    }
    Ok(taken)
}

/// Whether this error is the far end closing, rather than nothing happening.
#[must_use]
pub fn is_closed(error: &Error) -> bool {
    let kinds = [ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof, ErrorKind::BrokenPipe];
    kinds.contains(&error.kind())
}

fn no_answer() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "closed before an answer")
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&address, PATIENCE)?;
    patient(&socket)?;
    Ok(socket)
}

fn cramped(address: SocketAddr, room_bytes: usize) -> TcpStream {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).expect("a descriptor");
    // Before it connects: what it has offered it cannot take back.
    socket.set_recv_buffer_size(room_bytes).expect("a socket");
    socket.connect(&address.into()).expect("the switch listens");
    let socket = TcpStream::from(socket);
    patient(&socket).expect("connected");
    socket
}

fn patient(socket: &TcpStream) -> Result<()> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.set_nodelay(true)
}
