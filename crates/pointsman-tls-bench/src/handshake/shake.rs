//! One handshake and the request behind it, with a stamp at every step.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use pointsman_bench::{Close, Negotiated};
use pointsman_tls::in_words;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection};

use super::phases::{Moments, Stamp};
use super::recording::{Recording, Way};
use crate::work::Trouble;

/// What one read takes: a few records.
const READ_BYTES: usize = 64 * 1024;
/// What a server may send before its answer begins: certificates and tickets are a thousandth of it.
const RECEIVED_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A status line up to its status: `HTTP/1.1 200`.
const STATUS_LINE_BYTES: usize = 12;

/// Where handshakes are done, and how.
pub(crate) struct Where<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) name: ServerName<'static>,
    pub(crate) request: &'a [u8],
    pub(crate) timeout: Duration,
    pub(crate) close: Close,
}

/// What came of a handshake.
#[derive(Debug)]
pub(crate) struct Shaken {
    pub(crate) moments: Moments,
    pub(crate) negotiated: Negotiated,
    /// Bytes that the server sent up to its Finished.
    pub(crate) flight_bytes: u64,
    /// Our address.
    pub(crate) from: SocketAddr,
    /// The server's certificates, its own first; none where it sent none.
    pub(crate) certificates: Vec<CertificateDer<'static>>,
    /// The status of the answer; nothing where what came is no answer of HTTP/1.
    pub(crate) status: Option<u16>,
}

/// A connection whose handshake is under way.
struct Shaking<'a> {
    socket: TcpStream,
    tls: ClientConnection,
    recording: &'a mut Recording,
    scratch: &'a mut Vec<u8>,
    received: u64,
    /// The server has said that it says no more.
    has_closed: bool,
    /// What came of an answer and is not skipped.
    answer: Vec<u8>,
    /// Until when the answer has to be there, by the monotonic clock.
    deadline_ns: u64,
}

/// Does one. `offered` says behind it whether a session was offered.
pub(crate) fn shake(
    to: &Where<'_>,
    config: &Arc<ClientConfig>,
    offered: impl Fn() -> bool,
    recording: &mut Recording,
    scratch: &mut Vec<u8>,
) -> Result<Shaken, Trouble> {
    scratch.resize(READ_BYTES, 0);
    let mut moments = Moments { begun: Stamp::now(), ..Moments::default() };
    let socket = TcpStream::connect_timeout(&to.address, to.timeout).map_err(|error| broken(&error))?;
    moments.connected = Stamp::now();
    let set = socket.set_nodelay(true).and_then(|()| socket.set_read_timeout(Some(to.timeout)));
    set.and_then(|()| socket.set_write_timeout(Some(to.timeout))).map_err(|error| broken(&error))?;
    let from = socket.local_addr().map_err(|error| broken(&error))?;
    let tls = ClientConnection::new(config.clone(), to.name.clone())
        .map_err(|error| Trouble::new(error.to_string()))?;
    let deadline_ns = moments.begun.wall_ns.saturating_add(to.timeout.as_nanos() as u64);
    let mut shaking = Shaking {
        socket,
        tls,
        recording,
        scratch,
        received: 0,
        has_closed: false,
        answer: Vec::new(),
        deadline_ns,
    };
    shaking.flush()?;
    moments.hello_sent = Stamp::now();
    let flight_bytes = shaking.through(&mut moments)?;
    let negotiated = Negotiated::of(&shaking.tls, offered());
    let certificates = shaking.tls.peer_certificates().unwrap_or_default();
    let certificates = certificates.iter().map(|one| one.clone().into_owned()).collect();
    let status = shaking.ask(to.request, &mut moments)?;
    shaking.end(to.close);
    Ok(Shaken { moments, negotiated, flight_bytes, from, certificates, status })
}

impl Shaking<'_> {
    /// From the ClientHello to where a request can be sent. How many bytes the server sent for it.
    fn through(&mut self, moments: &mut Moments) -> Result<u64, Trouble> {
        let mut first_byte = None;
        let mut sent_ours = false;
        while self.tls.is_handshaking() {
            let read = self.read()?;
            first_byte.get_or_insert(read);
            self.process()?;
            match sent_ours {
                true => moments.finished_read = Some(read),
                false => moments.flight_read = read,
            }
            if self.tls.wants_write() && !sent_ours {
                self.flush()?;
                // Of several times the last is our Finished: in TLS 1.3 something may go out before it.
                moments.finished_sent = Stamp::now();
                sent_ours = self.is_tls12();
            }
        }
        moments.first_byte = first_byte.ok_or_else(|| Trouble::new("the server said nothing"))?;
        Ok(self.received)
    }

    fn is_tls12(&self) -> bool {
        self.tls.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_2)
    }

    /// Sends a request, and waits for the first byte of what it is answered, and then for the status.
    fn ask(&mut self, request: &[u8], moments: &mut Moments) -> Result<Option<u16>, Trouble> {
        self.tls.writer().write_all(request).map_err(|error| broken(&error))?;
        self.flush()?;
        moments.request_sent = Stamp::now();
        let mut first = None;
        loop {
            // Tickets come before the answer, and are none; nor are interim answers.
            let come = self.read().and_then(|read| self.process().map(|()| read));
            let read = match (come, first) {
                (Ok(read), _) => read,
                // The measured time is over: that no more comes for it costs nothing.
                (Err(_), Some(begun)) if !is_interim(&self.answer) => {
                    moments.answer = begun;
                    return Ok(status(&self.answer));
                }
                (Err(trouble), _) => return Err(trouble),
            };
            if skip_interim(&mut self.answer) {
                first = None;
            }
            if self.answer.is_empty() {
                continue;
            }
            let begun = *first.get_or_insert(read);
            if self.answer.len() >= STATUS_LINE_BYTES && !is_interim(&self.answer) {
                moments.answer = begun;
                return Ok(status(&self.answer));
            }
        }
    }

    /// Reads what is there, for the library to look at.
    fn read(&mut self) -> Result<Stamp, Trouble> {
        let count = loop {
            if self.has_closed {
                break 0;
            }
            match self.socket.read(self.scratch) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(&error)),
                Ok(count) => break count,
            }
        };
        let read = Stamp::now();
        if count == 0 {
            return Err(Trouble::new("the server ended the connection"));
        }
        self.received += count as u64;
        // A server that goes on with tickets would keep us for ever.
        if read.wall_ns > self.deadline_ns || self.received > RECEIVED_BYTES_MAX {
            return Err(Trouble::new("the server sends on and on, and no answer"));
        }
        let scratch = std::mem::take(self.scratch);
        let mut bytes = &scratch[..count];
        self.recording.note(Way::Received, read.wall_ns, bytes);
        // What is behind a farewell is nothing, and the library takes none of it.
        while !bytes.is_empty() && !self.has_closed {
            self.tls.read_tls(&mut bytes).map_err(|error| broken(&error))?;
            if !bytes.is_empty() {
                // The library's buffer is full: it makes room by looking at what is in it.
                self.process()?;
            }
        }
        *self.scratch = scratch;
        Ok(read)
    }

    fn flush(&mut self) -> Result<(), Trouble> {
        let mut bytes = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut bytes).map_err(|error| broken(&error))?;
        }
        if bytes.is_empty() {
            return Ok(());
        }
        self.socket.write_all(&bytes).map_err(|error| broken(&error))?;
        self.recording.note(Way::Sent, pointsman_bench::clock::now_ns(), &bytes);
        Ok(())
    }

    /// Looks at what came, and takes what of it is an answer: the library has room for little more than a record of it.
    fn process(&mut self) -> Result<(), Trouble> {
        match self.tls.process_new_packets() {
            Ok(state) => {
                self.has_closed = state.peer_has_closed();
                let mut part = self.tls.reader().take(state.plaintext_bytes_to_read() as u64);
                part.read_to_end(&mut self.answer).map_err(|error| broken(&error))?;
                Ok(())
            }
            Err(error) => {
                // The server is told why, where it still listens.
                let (Ok(()) | Err(_)) = self.flush();
                Err(Trouble::new(in_words(&error)))
            }
        }
    }

    /// What fails now is nobody's loss.
    fn end(mut self, how: Close) {
        if how == Close::Fin {
            self.tls.send_close_notify();
            let (Ok(()) | Err(_)) = self.flush();
        }
        how.set(&self.socket);
    }
}

/// Whether it begins with an answer that another one follows (RFC 9110 section 15.2).
fn is_interim(answer: &[u8]) -> bool {
    status(answer).is_some_and(|status| (100..200).contains(&status) && status != 101)
}

/// Takes interim answers that are whole away. Whether there were some.
fn skip_interim(answer: &mut Vec<u8>) -> bool {
    const END: &[u8] = b"\r\n\r\n";
    let mut at = 0;
    while is_interim(&answer[at..])
        && let Some(length) = answer[at..].windows(END.len()).position(|four| four == END)
    {
        at += length + END.len();
    }
    answer.drain(..at);
    at > 0
}

/// That of a status line that begins like this.
fn status(line: &[u8]) -> Option<u16> {
    let rest = line.strip_prefix(b"HTTP/1.")?;
    let digits = rest.get(2..5).filter(|_| rest[0].is_ascii_digit() && rest[1] == b' ')?;
    let status = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (100..600).contains(&status).then_some(status)
}

fn broken(error: &io::Error) -> Trouble {
    let words = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
        _ => error.to_string(),
    };
    Trouble::new(words)
}

#[cfg(test)]
mod tests {
    use super::{is_interim, skip_interim, status};

    #[test]
    fn interim_answers_are_skipped() {
        for (came, rest, skipped) in [
            ("HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", false),
            ("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 50", "HTTP/1.1 50", true),
            ("HTTP/1.1 100 C\r\n\r\nHTTP/1.1 102 P\r\n\r\n", "", true),
            ("HTTP/1.1 103 Early Hints\r\nLink: <", "HTTP/1.1 103 Early Hints\r\nLink: <", false),
            ("HTTP/1.1 101 Switching\r\n\r\n", "HTTP/1.1 101 Switching\r\n\r\n", false),
            ("SSH\r\n\r\n", "SSH\r\n\r\n", false),
        ] {
            let mut answer = came.as_bytes().to_vec();
            assert_eq!(skip_interim(&mut answer), skipped, "{came}");
            assert_eq!(String::from_utf8_lossy(&answer), rest);
        }
        assert!(is_interim(b"HTTP/1.1 103") && !is_interim(b"HTTP/1.1 10"));
    }

    #[test]
    fn a_status_is_what_stands_in_a_status_line() {
        for (line, expected) in [
            ("HTTP/1.1 200", Some(200)),
            ("HTTP/1.0 404", Some(404)),
            ("HTTP/1.1 099", None),
            ("HTTP/1.1 600", None),
            ("HTTP/1.1 20", None),
            ("HTTP/1.1 2 0", None),
            ("HTTP/2.0 200", None),
            ("SSH-2.0-abcd", None),
            ("", None),
        ] {
            assert_eq!(status(line.as_bytes()), expected, "{line}");
        }
    }
}
