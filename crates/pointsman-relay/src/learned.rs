//! What clients are known by that a server gives them first: the cookie of a session, or a field of the answer. Whoever
//! shows it from then on belongs to the server that gave it, whatever its hash says.

use std::fmt;
use std::rc::Rc;

use pointsman_http::{HeaderLine, ResponseHead};
use pointsman_rules::{Field, Stickiness};
use pointsman_view::cookie_values;

use crate::choice::Choice;
use crate::commit::HeaderEdits;
use crate::local::{LocalPool, LocalServer};
use crate::pick::Fork;
use crate::shard::Shard;
use crate::sticky_targets::KeptTarget;

/// What is to be done with an answer's head.
#[derive(Debug)]
pub(crate) struct OfAnswer {
    pub(crate) edits: HeaderEdits<'static>,
    /// What is learned of it about its client.
    pub(crate) learning: Option<Learning>,
}

impl OfAnswer {
    /// Does it, with the lines that the switch adds.
    pub(crate) fn apply(
        &self,
        (head, received): (&mut ResponseHead, &[u8]),
        lines: &mut Vec<u8>,
        server: &LocalServer,
        shard: &Shard,
    ) {
        if let Some(learning) = &self.learning {
            learning.hear(head, received, server, shard);
        }
        self.edits.drop_lines(head.lines_mut(), received);
        self.edits.strip(lines);
        self.edits.write(lines);
    }
}

/// What is looked for in an answer, and where its client is put.
#[derive(Debug)]
pub(crate) struct Learning {
    of: Given,
    place: Place,
}

/// Where a client is put that shows what its server gave.
pub(crate) struct Place {
    pool: Rc<LocalPool>,
    /// Where clients of the listener stay with targets.
    target: Option<KeptTarget>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("pool", self.pool.name()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Given {
    Cookie(Box<str>),
    Header(Box<str>),
}

impl Learning {
    /// What an answer may give by which its client is kept from then on; nothing where it is kept by what no answer says.
    pub(crate) fn of(sticky: &Stickiness, choice: &Choice, fork: &Fork<'_>) -> Option<Learning> {
        let Stickiness::Field(field) = sticky else { return None };
        let of = match field {
            Field::Cookie(name) => Given::Cookie(name.clone()),
            Field::Header(name) => Given::Header(name.clone()),
            _ => return None,
        };
        Place::of(sticky, choice, fork).map(|place| Learning { of, place })
    }

    /// Notes what an answer gives.
    pub(crate) fn hear(&self, head: &ResponseHead, received: &[u8], server: &LocalServer, shard: &Shard) {
        if let Some(value) = self.of.value(head.lines(), received) {
            self.place.put(value, server, shard);
        }
    }
}

impl Place {
    /// Nothing where nothing is remembered.
    pub(crate) fn of(sticky: &Stickiness, choice: &Choice, fork: &Fork<'_>) -> Option<Place> {
        fork.shard.shared.sticky_clients.get()?;
        Some(Place { pool: choice.pool.clone(), target: fork.kept_target(sticky, choice) })
    }

    /// Notes that whoever shows this value is with a server.
    pub(crate) fn put(&self, value: &[u8], server: &LocalServer, shard: &Shard) {
        let Some(table) = shard.shared.sticky_clients.get() else { return };
        let hash = &shard.local().live.sticky;
        let now_us = shard.clock.round_us();
        self.pool.put(hash.hash(self.pool.name().as_bytes(), value), server, table, now_us);
        if let (Some(target), Some(targets)) = (&self.target, shard.shared.sticky_targets.get()) {
            target.put(hash, value, targets, now_us);
        }
    }
}

impl Given {
    /// The last value that is given: it is the one that the client keeps (RFC 6265 section 5.3).
    fn value<'b>(&self, lines: &[HeaderLine], buffer: &'b [u8]) -> Option<&'b [u8]> {
        let named = |name: &'static str| {
            lines.iter().rev().filter(move |line| line.is_named(name.as_bytes(), buffer))
        };
        let found = match self {
            Given::Cookie(name) => {
                named("set-cookie").find_map(|line| given_cookie(line.value(buffer), name))
            }
            Given::Header(name) => {
                let mut lines = lines.iter();
                lines.find(|line| line.is_named(name.as_bytes(), buffer)).map(|line| line.value(buffer))
            }
        };
        found.filter(|value| !value.is_empty())
    }
}

/// The value of a Set-Cookie line (RFC 6265 section 4.1), as the client will show it, if it sets this cookie.
fn given_cookie<'v>(line: &'v [u8], name: &str) -> Option<&'v [u8]> {
    let pair = line.split(|byte| *byte == b';').next()?;
    cookie_values(pair, name.as_bytes()).next()
}

#[cfg(test)]
mod tests {
    use pointsman_http::{AnswerTo, HeadLimits};

    use super::*;

    /// What an answer with these lines gives: of the cookie `sid`, and of the field `x-session`.
    fn given(lines: &str) -> (Option<String>, Option<String>) {
        let text = format!("HTTP/1.1 200 OK\r\n{}\r\n", lines.replace('\n', "\r\n"));
        let mut head = ResponseHead::default();
        let limits = HeadLimits { head_bytes_max: 4096, headers_max: 20, target_bytes_max: 0 };
        assert_eq!(head.parse(text.as_bytes(), AnswerTo::Other, &limits), Ok(true), "{lines}");
        let value = |given: Given| {
            given
                .value(head.lines(), text.as_bytes())
                .map(|value| String::from_utf8_lossy(value).into_owned())
        };
        (value(Given::Cookie("sid".into())), value(Given::Header("x-session".into())))
    }

    #[test]
    fn the_last_cookie_and_the_first_field_count() {
        let text = |text: &str| Some(text.to_owned());
        for (lines, cookie, field) in [
            ("", None, None),
            ("Set-Cookie: sid=abc; Path=/; HttpOnly\n", text("abc"), None),
            ("set-cookie: a=1\nSET-COOKIE:sid = abc ;Secure\n", text("abc"), None),
            ("Set-Cookie: sid=1\nSet-Cookie: other=2\nSet-Cookie: sid=3\n", text("3"), None),
            ("Set-Cookie: sid=\"a b\"\n", text("\"a b\""), None),
            ("Set-Cookie: sid=a=b\n", text("a=b"), None),
            ("Set-Cookie: SID=1\nSet-Cookie: x; sid=1\nSet-Cookie: sid\nCookie: sid=1\n", None, None),
            ("Set-Cookie: sid=; Max-Age=0\n", None, None),
            ("X-Session:  s1 \nx-session: s2\n", None, text("s1")),
            ("X-Session:\n", None, None),
        ] {
            assert_eq!(given(lines), (cookie, field), "{lines}");
        }
    }
}
