//! What a reload asks of the running switch, and what the answer means.

use std::time::Duration;

use pointsman_rules::Colour;
use serde_json::Value;

use crate::admin_client::{Reply, Way, exchange};

/// How long it may take to answer: longer than it works on one.
const ANSWER_MAX: Duration = Duration::from_secs(130);

/// What the switch says.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// Asks for a reload; the error is a text for people.
pub(super) fn ask(way: &Way, token: Option<&str>, dry_run: bool, colour: Colour) -> Result<Answer, String> {
    let address = way.address;
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let colour = colour == Colour::Ansi;
    let request = format!(
        "POST /api/v1/reload?dry_run={dry_run}&colour={colour} HTTP/1.1\r\nHost: {address}\r\n\
         {authorization}Accept: application/json\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let received = exchange(way, &request, ANSWER_MAX)?;
    let Some(answer) = received.as_ref().and_then(read) else {
        return Err(format!(
            "error: what answers at {address} is no switch with this API\nhelp: look what listens there, and whether \
             the switch is older than this command\n"
        ));
    };
    match answer.status {
        401 if token.is_none() => Err(format!(
            "error: the switch at {address} does not take the certificate for a token\n\
             help: `client_ca` of `tls` of `[admin]` names the authorities whose certificates it takes\n"
        )),
        401 => Err(format!(
            "error: the switch at {address} does not know the token\n\
             help: it reads `token_file` when it starts and reloads; SIGHUP lets it read it again\n"
        )),
        _ => Ok(answer),
    }
}

/// What an answer means; nothing where it is none of a switch.
fn read(reply: &Reply) -> Option<Answer> {
    let body: Value = serde_json::from_slice(&reply.body).ok()?;
    let is_ours = body["version"] == 1 || reply.status != 200 && body["detail"].is_string();
    is_ours.then_some(Answer { status: reply.status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_switch_says_is_an_answer() {
        let check = |status, body: &str, expected: Option<u16>| {
            let said = read(&Reply { status, body: body.as_bytes().to_vec() }).map(|answer| answer.status);
            assert_eq!(said, expected, "{status} {body:?}");
        };
        check(422, "{\"detail\":\"no\"}", Some(422));
        check(200, "{\"version\":1}", Some(200));
        check(200, "{\"version\":2}", None);
        check(200, "{\"detail\":\"no\"}", None);
        check(200, "{}", None);
        check(200, "ok", None);
    }
}
