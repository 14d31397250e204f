//! What a command asks of the running switch, and what the answer means.

use std::io;
use std::path::Path;
use std::time::Duration;

use pointsman_config::{AdminClient, AdminUse};
use serde_json::Value;

use crate::admin_client::{Reply, TlsOptions, Way, exchange};
use crate::check::terminal;

/// How long it may take to answer: longer than it works on one.
const ANSWER_MAX: Duration = Duration::from_secs(130);

/// What the switch says.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Who asks, and where.
pub(crate) struct Asker {
    way: Way,
    /// Absent where a certificate is shown instead.
    token: Option<String>,
}

impl Asker {
    /// For the switch that a configuration names, to change something; `what` says what needs a token. The error is a
    /// text for people.
    pub(crate) fn of(config: &Path, options: &TlsOptions, what: &str) -> Result<Asker, String> {
        let wanted = options.wanted(AdminUse::Change);
        let name = config.display();
        let client = AdminClient::of(config, wanted).map_err(|problems| {
            let help = if problems.is_unreadable() { "help: name one with `--config FILE`\n" } else { "" };
            format!("{}{help}", problems.render(terminal::colour(&io::stderr())))
        })?;
        let Some(mut client) = client else {
            return Err(format!(
                "error: `{name}` has no `[admin]`, which says where the switch can be asked\n\
                 help: add it with `bind` and `token_file` and start the switch anew; SIGHUP reloads it meanwhile\n"
            ));
        };
        let way = Way::to(&client, options)?;
        let token = client.token.take();
        if token.is_none() && wanted == AdminUse::Change {
            return Err(format!(
                "error: `[admin]` of `{name}` has no `token_file`, and {what} needs a token, or a certificate (`--cert`)\n\
                 help: `(umask 077; openssl rand -hex 32 > admin.token)` makes one, `token_file = \"admin.token\"` names \
                 it, and SIGHUP lets the switch read it\n"
            ));
        }
        Ok(Asker { way, token })
    }

    /// Asks; the error is a text for people.
    pub(crate) fn ask(&self, method: &str, target: &str, body: &str) -> Result<Answer, String> {
        let Asker { way, token } = self;
        let address = way.address;
        let authorization =
            token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {address}\r\n{authorization}Accept: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
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
}

/// A text in an answer; empty where it has none of that name.
pub(crate) fn text(body: &Value, name: &str) -> String {
    body[name].as_str().unwrap_or_default().to_owned()
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
