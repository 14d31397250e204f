//! The server behind the switch: a thread for each connection, one buffer each, and two answers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// The body of each answer.
pub(crate) const BODY_BYTES: usize = 1024;

/// A whole answer: a head as servers send it, and the body as it is framed.
fn answer(framing: &str, body: &[&[u8]]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: application/octet-stream\r\n\
         {framing}\r\nLast-Modified: Tue, 14 Oct 2025 10:00:00 GMT\r\n\
         ETag: \"68ee1f40-400\"\r\nAccept-Ranges: bytes\r\n\r\n"
    );
    [head.as_bytes(), &body.concat()].concat()
}

/// A server that serves until the process ends.
pub(crate) struct Origin {
    pub(crate) port: u16,
}

impl Origin {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                std::thread::spawn(move || serve(stream));
            }
        });
        Self { port }
    }
}

fn serve(mut stream: TcpStream) {
    stream.set_nodelay(true).expect("a TCP socket");
    let body = [b'x'; BODY_BYTES];
    let with_length = answer("Content-Length: 1024", &[&body]);
    let in_chunks = [b"200\r\n", &body[..512], b"\r\n200\r\n", &body[512..], b"\r\n0\r\n\r\n"];
    let in_chunks = answer("Transfer-Encoding: chunked", &in_chunks);
    let mut buffer = [0; 16 * 1024];
    let mut filled = 0;
    loop {
        match stream.read(&mut buffer[filled..]) {
            Ok(0) | Err(_) => return,
            Ok(count) => filled += count,
        }
        if message_bytes(&buffer[..filled]).is_some_and(|bytes| bytes <= filled) {
            let answer = if buffer.starts_with(b"GET /img/chunked ") { &in_chunks } else { &with_length };
            // The client waits for its answer, so nothing of a next request can be there.
            filled = 0;
            if stream.write_all(answer).is_err() {
                return;
            }
        }
    }
}

/// How long a message is, once its head is there, and the last chunk where there are any.
pub(crate) fn message_bytes(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    if value_of(b"transfer-encoding:", &bytes[..head]).is_some() {
        const LAST: &[u8] = b"\r\n0\r\n\r\n";
        return bytes[head..]
            .windows(LAST.len())
            .position(|seven| seven == LAST)
            .map(|at| head + at + LAST.len());
    }
    let digits = value_of(b"content-length:", &bytes[..head]).unwrap_or_default();
    Some(head + digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0')))
}

/// The value behind a name and its colon.
fn value_of<'a>(name: &[u8], head: &'a [u8]) -> Option<&'a [u8]> {
    let mut lines = head.split(|byte| *byte == b'\n');
    let line = lines.find(|line| line.len() > name.len() && line[..name.len()].eq_ignore_ascii_case(name));
    line.map(|line| line[name.len()..].trim_ascii())
}
