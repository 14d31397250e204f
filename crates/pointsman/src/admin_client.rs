//! One request to the admin listener of a running switch, and its answer.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pointsman_config::reason;
use pointsman_http::{AnswerTo, Framing, HeadLimits, ResponseHead};

/// How long the switch may take to let us in.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The longest answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What was answered.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// Sends a request and reads its answer; nothing where it is none of HTTP. The error is a text for people.
pub(crate) fn exchange(
    address: SocketAddr,
    request: &str,
    answer_max: Duration,
) -> Result<Option<Reply>, String> {
    converse(address, request.as_bytes(), answer_max).map_err(|error| {
        format!(
            "error: the switch cannot be asked at {address}: {}\n\
             help: look whether it runs, and whether it listens there: it says `admin address=` at its start\n",
            reason(&error)
        )
    })
}

fn converse(address: SocketAddr, request: &[u8], answer_max: Duration) -> io::Result<Option<Reply>> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_MAX)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(answer_max))?;
    stream.set_write_timeout(Some(CONNECT_MAX))?;
    stream.write_all(request)?;
    let mut received = Vec::new();
    loop {
        match read(&received) {
            Received::Whole(reply) => return Ok(Some(reply)),
            Received::Foreign => return Ok(None),
            Received::Part if received.len() > ANSWER_BYTES_MAX => return Ok(None),
            Received::Part => {}
        }
        let mut piece = [0; 16 * 1024];
        let count = stream.read(&mut piece)?;
        received.extend_from_slice(&piece[..count]);
        if count == 0 {
            return Ok(None);
        }
    }
}

/// What was received, read.
enum Received {
    /// There is more to come.
    Part,
    Whole(Reply),
    /// It is not what a switch says.
    Foreign,
}

fn read(received: &[u8]) -> Received {
    let mut head = ResponseHead::default();
    match head.parse(received, AnswerTo::Other, &HeadLimits::default()) {
        Ok(true) => {}
        Ok(false) => return Received::Part,
        Err(_) => return Received::Foreign,
    }
    let body = received.get(head.head_bytes()..).unwrap_or_default();
    match head.framing() {
        Framing::Length(bytes) if (body.len() as u64) < bytes => Received::Part,
        Framing::Length(bytes) if bytes == body.len() as u64 => {
            Received::Whole(Reply { status: head.status(), body: body.to_vec() })
        }
        _ => Received::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_messages_are_answers() {
        let check = |text: &str, expected: &str| {
            let said = match read(text.as_bytes()) {
                Received::Whole(Reply { status, body }) => format!("{status} {}", body.escape_ascii()),
                Received::Part => "part".to_owned(),
                Received::Foreign => "foreign".to_owned(),
            };
            assert_eq!(said, expected, "{text:?}");
        };
        check("HTTP/1.1 422 No\r\nContent-Length: 2\r\n\r\n{}", "422 {}");
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", "part");
        check("HTTP/1.1 200 OK\r\nContent-Len", "part");
        check("", "part");
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}{}", "foreign");
        check("HTTP/1.1 204 None\r\n\r\n", "foreign");
        check("SSH-2.0-x\r\n", "foreign");
    }
}
