//! One request to the admin listener of the running switch, and its answer.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use pointsman_config::{AdminClient, reason};
use pointsman_http::{AnswerTo, Framing, HeadLimits, ResponseHead};
use pointsman_rules::Colour;
use serde_json::Value;

/// How long the switch may take to let us in.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long it may take to answer: longer than it works on one.
const ANSWER_MAX: Duration = Duration::from_secs(130);
/// The longest answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What the switch says.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// Asks for a reload; the error is a text for people.
pub(super) fn ask(
    (client, token): &(AdminClient, String),
    dry_run: bool,
    colour: Colour,
) -> Result<Answer, String> {
    let address = client.address;
    let colour = colour == Colour::Ansi;
    let request = format!(
        "POST /api/v1/reload?dry_run={dry_run}&colour={colour} HTTP/1.1\r\nHost: {address}\r\n\
         Authorization: Bearer {token}\r\nAccept: application/json\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let received = exchange(client, request.as_bytes()).map_err(|error| {
        format!(
            "error: the switch cannot be asked at {address}: {}\n\
             help: look whether it runs, and whether it listens there: it says `admin address=` at its start\n",
            reason(&error)
        )
    })?;
    let Some(answer) = received else {
        return Err(format!(
            "error: what answers at {address} is no switch with this API\nhelp: look what listens there, and whether \
             the switch is older than this command\n"
        ));
    };
    match answer.status {
        401 => Err(format!(
            "error: the switch at {address} does not know the token\n\
             help: it reads `token_file` when it starts and reloads; SIGHUP lets it read it again\n"
        )),
        _ => Ok(answer),
    }
}

/// Sends a request and reads its answer; nothing where it is none of a switch.
fn exchange(client: &AdminClient, request: &[u8]) -> io::Result<Option<Answer>> {
    let mut stream = TcpStream::connect_timeout(&client.address, CONNECT_MAX)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.set_write_timeout(Some(CONNECT_MAX))?;
    stream.write_all(request)?;
    let mut received = Vec::new();
    loop {
        match read(&received) {
            Received::Whole(answer) => return Ok(Some(answer)),
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
    Whole(Answer),
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
            let (status, body) = (head.status(), serde_json::from_slice(body).unwrap_or(Value::Null));
            let is_ours = body["version"] == 1 || status != 200 && body["detail"].is_string();
            if is_ours { Received::Whole(Answer { status, body }) } else { Received::Foreign }
        }
        _ => Received::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_json_is_an_answer() {
        let check = |text: &str, expected: &str| {
            let said = match read(text.as_bytes()) {
                Received::Whole(answer) => answer.status.to_string(),
                Received::Part => "part".to_owned(),
                Received::Foreign => "foreign".to_owned(),
            };
            assert_eq!(said, expected, "{text:?}");
        };
        check("HTTP/1.1 422 No\r\nContent-Length: 15\r\n\r\n{\"detail\":\"no\"}", "422");
        check("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"version\":1}", "200");
        check("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"version\":2}", "foreign");
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "foreign");
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", "part");
        check("HTTP/1.1 200 OK\r\nContent-Len", "part");
        check("", "part");
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "foreign");
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}{}", "foreign");
        check("HTTP/1.1 204 None\r\n\r\n", "foreign");
        check("SSH-2.0-x\r\n", "foreign");
    }
}
