//! The client: one connection, one buffer, blocking.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pointsman_tls::ClientStream;

use crate::origin::{BODY_BYTES, message_bytes};
use crate::site::{NAME, Site};

/// A switch that does not answer must not hang the test.
const ANSWER_MAX: Duration = Duration::from_secs(30);

pub(crate) struct Client {
    connection: Connection,
    buffer: Box<[u8; 16 * 1024]>,
}

enum Connection {
    Plain(TcpStream),
    Tls(Box<ClientStream>),
}

impl Client {
    pub(crate) fn plain(address: SocketAddr) -> Self {
        Self::over(Connection::Plain(connect(address)))
    }

    pub(crate) fn tls(site: &Site, address: SocketAddr) -> Self {
        let stream = site.client.connect(connect(address), NAME).expect("a handshake");
        Self::over(Connection::Tls(Box::new(stream)))
    }

    fn over(connection: Connection) -> Self {
        Self { connection, buffer: Box::new([0; 16 * 1024]) }
    }

    /// The first exchange: shows that the answer is what the server sent, and how long it is.
    pub(crate) fn learn(&mut self, request: &[u8]) -> usize {
        self.send(request);
        let mut filled = 0;
        let bytes = loop {
            filled += self.read(filled);
            match message_bytes(&self.buffer[..filled]) {
                Some(bytes) if bytes <= filled => break bytes,
                _ => {}
            }
        };
        let answer = &self.buffer[..bytes];
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n") && filled == bytes, "{}", answer.escape_ascii());
        // Headers hold a few of them, the body all others.
        assert!(
            answer.iter().filter(|byte| **byte == b'x').count() >= BODY_BYTES,
            "{}",
            answer.escape_ascii()
        );
        bytes
    }

    /// A request and an answer of known length; takes nothing from the heap.
    pub(crate) fn exchange(&mut self, request: &[u8], answer_bytes: usize) {
        self.send(request);
        let mut filled = 0;
        while filled < answer_bytes {
            filled += self.read(filled);
        }
        assert_eq!(filled, answer_bytes);
    }

    fn send(&mut self, request: &[u8]) {
        let sent = match &mut self.connection {
            Connection::Plain(stream) => stream.write_all(request),
            Connection::Tls(stream) => stream.write_all(request).and_then(|()| stream.flush()),
        };
        sent.expect("the request is taken");
    }

    fn read(&mut self, from: usize) -> usize {
        let read = match &mut self.connection {
            Connection::Plain(stream) => stream.read(&mut self.buffer[from..]),
            Connection::Tls(stream) => stream.read(&mut self.buffer[from..]),
        };
        let count = read.expect("an answer comes");
        assert!(count > 0, "the connection ends amid an answer");
        count
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(ANSWER_MAX))).expect("a TCP socket");
    stream
}
