//! The server behind the switch: a thread for each connection, one buffer each, the same answer always.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Its whole answer: a head as servers send it, and 1 KiB.
fn answer() -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: application/octet-stream\r\n\
                Content-Length: 1024\r\nLast-Modified: Tue, 14 Oct 2025 10:00:00 GMT\r\n\
                ETag: \"68ee1f40-400\"\r\nAccept-Ranges: bytes\r\n\r\n";
    [head.as_bytes(), &[b'x'; 1024]].concat()
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
    let answer = answer();
    let mut buffer = [0; 16 * 1024];
    let mut filled = 0;
    loop {
        match stream.read(&mut buffer[filled..]) {
            Ok(0) | Err(_) => return,
            Ok(count) => filled += count,
        }
        if request_bytes(&buffer[..filled]).is_some_and(|bytes| bytes <= filled) {
            // The client waits for its answer, so nothing of a next request can be there.
            filled = 0;
            if stream.write_all(&answer).is_err() {
                return;
            }
        }
    }
}

/// How long the request is, once its head is there.
fn request_bytes(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    Some(head + content_length(&bytes[..head]))
}

/// What a head announces; 0 where it announces nothing.
pub(crate) fn content_length(head: &[u8]) -> usize {
    let name = b"content-length:";
    let mut lines = head.split(|byte| *byte == b'\n');
    let line = lines.find(|line| line.len() > name.len() && line[..name.len()].eq_ignore_ascii_case(name));
    let digits = line.map_or(&[][..], |line| &line[name.len()..]).trim_ascii();
    digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}
