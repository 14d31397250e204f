//! A small server: it answers with its name and the request as it saw it. A few of its pages are otherwise.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pointsman_http::{Answer, BodyReader, HeadLimits, Method, RequestHead};

use super::Stop;

/// Pages that are more than a few lines, that come late, and that do not come.
pub(super) const PICTURES: [&str; 2] = ["/pictures/oak.jpg", "/pictures/birch.jpg"];
pub(super) const SLOW: &str = "/catalogue/slow";
pub(super) const BROKEN: &str = "/catalogue/broken";
const PICTURE_BYTES: usize = 96 * 1024;
const SLOW_FOR: Duration = Duration::from_millis(700);

/// Connections that a server has open at most; the switch keeps far fewer.
const CONNECTIONS_MAX: usize = 512;

/// A server on a thread of its own, until the process ends.
pub(super) struct Origin {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
}

impl Origin {
    /// Starts a server on a free port.
    pub(super) fn start(name: &'static str) -> Result<Origin, Stop> {
        let cannot = || Stop::because("a server of the demo cannot listen");
        let listener = TcpListener::bind("127.0.0.1:0").map_err(cannot())?;
        let address = listener.local_addr().map_err(cannot())?;
        thread::spawn(move || accept(&listener, name));
        Ok(Origin { name, address })
    }
}

fn accept(listener: &TcpListener, name: &'static str) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming().flatten() {
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let open = open.clone();
        thread::spawn(move || {
            // A connection that fails is the switch's to report.
            drop(serve(stream, name));
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Answers one request after the other.
fn serve(mut stream: TcpStream, name: &str) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = RequestHead::default();
    let mut received = Vec::new();
    loop {
        while !head.parse(&received, &HeadLimits::default()).map_err(malformed)? {
            if read_more(&mut stream, &mut received)? == 0 {
                return Ok(());
            }
        }
        if head.expects_continue() {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let answer = answer(name, &head, &received);
        received.drain(..head.head_bytes());
        let mut body = BodyReader::new(head.framing());
        while !body.is_done() {
            if received.is_empty() && read_more(&mut stream, &mut received)? == 0 {
                return Ok(());
            }
            let fed = body.feed(&received).map_err(malformed)?;
            received.drain(..fed.used);
        }
        stream.write_all(&answer)?;
        if !head.keeps_alive() {
            return Ok(());
        }
    }
}

fn read_more(stream: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<usize> {
    let mut piece = [0; 16 * 1024];
    let bytes = stream.read(&mut piece)?;
    received.extend_from_slice(&piece[..bytes]);
    Ok(bytes)
}

fn malformed(fault: impl std::fmt::Debug) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{fault:?}"))
}

/// The name of the server and the head as it came.
fn answer(name: &str, head: &RequestHead, received: &[u8]) -> Vec<u8> {
    let target = head.target(received);
    let is = |page: &&str| target == page.as_bytes();
    if is(&SLOW) {
        thread::sleep(SLOW_FOR);
    }
    let seen = received[..head.head_bytes()].trim_ascii();
    let mut body = format!("{name} saw\n").into_bytes();
    body.extend(seen.iter().filter(|byte| **byte != b'\r'));
    body.push(b'\n');
    if PICTURES.iter().any(is) {
        body.resize(PICTURE_BYTES, b'.');
    }
    let answer = Answer {
        status: if is(&BROKEN) { 500 } else { 200 },
        lines: b"",
        body: &body,
        closes: !head.keeps_alive(),
        version: head.version(),
        to_head: head.method() == Method::Head,
    };
    let mut bytes = Vec::new();
    answer.write(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_what_it_saw_and_keeps_the_connection() {
        let origin = Origin::start("server1").expect("a free port");
        let mut stream = TcpStream::connect(origin.address).expect("it listens");
        let requests = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
                        GET /b HTTP/1.1\r\nHost: a\r\nX-Class: gold\r\nConnection: close\r\n\r\n";
        stream.write_all(requests.as_bytes()).expect("it reads");
        let mut answers = String::new();
        stream.read_to_string(&mut answers).expect("text, to the end");
        assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{answers}");
        assert!(answers.contains("server1 saw\nPOST /a HTTP/1.1\nHost: a\n"), "{answers}");
        assert!(
            answers.ends_with("server1 saw\nGET /b HTTP/1.1\nHost: a\nX-Class: gold\nConnection: close\n")
        );
    }
}
