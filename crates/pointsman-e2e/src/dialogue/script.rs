//! How a dialogue is written.
//!
//! ```text
//! # A comment.
//! listener| x_forwarded = "off"          setup: keys of the listener `shop`
//! limits| head_bytes_max = 400           its limits
//! pool| response_ms_max = 200            keys of the pool `standard`
//! top| drain_ms_max = 100                keys of the process
//! rules| R1: if (path == "/t") { routeTo(other); }
//!
//! C> GET / HTTP/1.1                      the client sends; each line ends with CRLF,
//! C> Host: a.example                     or where it ends with a backslash by nothing
//! C>
//!
//! S< GET / HTTP/1.1                      the server of `standard` sees a message: start line,
//! S< Host: a.example                     fields (all values of that name, in order; `*` is any),
//! S< -Connection                         fields that must not be there,
//! S<                                     and after an empty line the body, decoded
//!
//! S> HTTP/1.1 200 OK                     it answers
//! S> Content-Length: 3
//! S>
//! S> one\
//!
//! C< HTTP/1.1 200                        the client sees (the beginning of the start line is enough)
//! C<
//! C< one\
//! ```
//!
//! `T` is the server of the pool `other`. Lines of their own in a message that is seen: `(more)` at
//! its end: the body goes on; `(rest)` at its beginning: this is how it goes on; `(no body)`: the answer to
//! HEAD; `(cut)`: the connection ends inside the body; `(chunked)`, `(length)`, `(until close)`: the framing; `+Name: value`: a
//! trailer field. An answer that the client sees has one right `Date`, unless something is said of it. Steps:
//! `C opens`, `S accepts`, `C closes`, `C resets`, `C finishes sending`, `C sees the end`, `S sees nothing`. A blank
//! line ends a message, so several can follow each other.

use crate::{Framing, Head, unescape};

/// A dialogue.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) top: String,
    pub(super) listener: String,
    pub(super) limits: String,
    pub(super) pool: String,
    pub(super) rules: String,
    pub(super) steps: Vec<Step>,
}

/// Who does or sees something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    Client,
    Server,
    OtherServer,
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) party: Party,
    pub(super) act: Act,
}

#[derive(Debug)]
pub(super) enum Act {
    Open,
    Accept,
    Send(Vec<u8>),
    Expect(Expected),
    FinishSending,
    Close,
    Reset,
    SeeEnd,
    SeeNothing,
}

/// A message to see.
#[derive(Debug, Default)]
pub(super) struct Expected {
    pub(super) start: String,
    fields: Vec<(String, String)>,
    absent: Vec<String>,
    pub(super) body: Option<Vec<u8>>,
    trailers: Vec<(String, String)>,
    framing: Option<String>,
    pub(super) more: bool,
    pub(super) bodiless: bool,
    pub(super) cut: bool,
}

impl Script {
    /// Reads a dialogue. The error begins with the number of the line.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut script = Self::default();
        let mut block: Option<(usize, Party, bool, Vec<&str>)> = None;
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let message = message_line(line);
            let same = |(_, party, sends, _): &(usize, Party, bool, Vec<&str>)| {
                message.is_some_and(|(p, s, _)| p == *party && s == *sends)
            };
            if !block.as_ref().is_some_and(same)
                && let Some(done) = block.take()
            {
                script.steps.push(message_step(done)?);
            }
            if let Some((party, sends, content)) = message {
                block.get_or_insert((number, party, sends, Vec::new())).3.push(content);
            } else if let Some((key, value)) = line.split_once('|').filter(|(key, _)| !key.contains(' ')) {
                script.set(key, value.trim()).map_err(|error| format!("{number}: {error}"))?;
            } else if !line.trim().is_empty() && !line.starts_with('#') {
                let (party, act) = plain_step(line).ok_or_else(|| format!("{number}: what is `{line}`?"))?;
                script.steps.push(Step { line: number, party, act });
            }
        }
        if let Some(done) = block {
            script.steps.push(message_step(done)?);
        }
        Ok(script)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let text = match key {
            "top" => &mut self.top,
            "listener" => &mut self.listener,
            "limits" => &mut self.limits,
            "pool" => &mut self.pool,
            "rules" => &mut self.rules,
            _ => return Err(format!("no setup is called `{key}`")),
        };
        text.push_str(value);
        text.push('\n');
        Ok(())
    }
}

impl Expected {
    fn read(lines: &[&str]) -> Self {
        let mut expected = Self::default();
        let mut body: Option<String> = None;
        for line in lines {
            match (*line, &mut body) {
                ("(more)", _) => expected.more = true,
                ("(rest)", _) => body = Some(String::new()),
                ("(no body)", _) => expected.bodiless = true,
                ("(cut)", _) => expected.cut = true,
                ("(chunked)" | "(length)" | "(until close)", _) => {
                    expected.framing = Some((*line).to_owned())
                }
                (line, Some(_)) if line.starts_with('+') => expected.trailers.push(field(&line[1..])),
                (line, Some(body)) => push_line(body, line),
                ("", None) => body = Some(String::new()),
                (line, None) if expected.start.is_empty() => line.clone_into(&mut expected.start),
                (line, None) => match line.strip_prefix('-') {
                    Some(name) => expected.absent.push(name.to_owned()),
                    None => expected.fields.push(field(line)),
                },
            }
        }
        expected.body = body.map(|body| unescape(&body));
        expected
    }

    /// Compares a head.
    pub(super) fn check_head(&self, head: &Head) -> Result<(), String> {
        let whole = || format!("{}\n    {:?}", head.start, head.fields);
        if !head.start.starts_with(&self.start) {
            return Err(format!("`{}` expected, seen: {}", self.start, whole()));
        }
        for (name, _) in &self.fields {
            let of_name = self.fields.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
            let wanted: Vec<&str> = of_name.map(|(_, value)| value.as_str()).collect();
            let seen = head.all(name);
            let alike = |(seen, wanted): (&&str, &&str)| seen == wanted || *wanted == "*";
            if seen.len() != wanted.len() || !seen.iter().zip(&wanted).all(alike) {
                return Err(format!("`{name}` should be {wanted:?} and is {seen:?} in: {}", whole()));
            }
        }
        match self.absent.iter().find(|name| head.field(name).is_some()) {
            Some(name) => Err(format!("`{name}` should not be in: {}", whole())),
            None => Ok(()),
        }
    }

    /// Whether it says something of a field.
    pub(super) fn names(&self, name: &str) -> bool {
        let fields = self.fields.iter().map(|(name, _)| name);
        fields.chain(&self.absent).any(|other| other.eq_ignore_ascii_case(name))
    }

    /// Compares how the body is framed.
    pub(super) fn check_framing(&self, framing: Framing) -> Result<(), String> {
        let seen = match framing {
            Framing::Empty => "(no body)",
            Framing::Length(_) => "(length)",
            Framing::Chunked => "(chunked)",
            Framing::Close => "(until close)",
        };
        match &self.framing {
            Some(wanted) if wanted != seen => Err(format!("the framing should be {wanted} and is {seen}")),
            _ => Ok(()),
        }
    }

    /// Compares a body.
    pub(super) fn check_body(&self, seen: &[u8]) -> Result<(), String> {
        match &self.body {
            Some(wanted) if wanted != seen => {
                let (wanted, seen) = (String::from_utf8_lossy(wanted), String::from_utf8_lossy(seen));
                Err(format!("the body should be {wanted:?} and is {seen:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Compares the trailer fields: all of them, in order.
    pub(super) fn check_trailers(&self, seen: &[(String, String)]) -> Result<(), String> {
        let lower = |fields: &[(String, String)]| -> Vec<(String, String)> {
            fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect()
        };
        if lower(seen) == lower(&self.trailers) {
            return Ok(());
        }
        Err(format!("the trailers should be {:?} and are {seen:?}", self.trailers))
    }
}

fn message_line(line: &str) -> Option<(Party, bool, &str)> {
    let (start, content) = line.split_at_checked(2)?;
    let (party, direction) = (party(&start[..1])?, &start[1..]);
    let content = content.strip_prefix(' ').unwrap_or(content);
    matches!(direction, "<" | ">").then_some((party, direction == ">", content))
}

fn message_step((line, party, sends, lines): (usize, Party, bool, Vec<&str>)) -> Result<Step, String> {
    if !sends {
        return Ok(Step { line, party, act: Act::Expect(Expected::read(&lines)) });
    }
    let mut text = String::new();
    for line in lines {
        push_line(&mut text, line);
    }
    Ok(Step { line, party, act: Act::Send(unescape(&text)) })
}

/// Adds a line with its CRLF, or without it where it ends with a single backslash.
fn push_line(text: &mut String, line: &str) {
    match line.strip_suffix('\\') {
        Some(open) => text.push_str(open),
        None => {
            text.push_str(line);
            text.push_str("\\r\\n");
        }
    }
}

fn plain_step(line: &str) -> Option<(Party, Act)> {
    let (who, what) = line.split_once(' ')?;
    let act = match what {
        "opens" => Act::Open,
        "accepts" => Act::Accept,
        "closes" => Act::Close,
        "resets" => Act::Reset,
        "finishes sending" => Act::FinishSending,
        "sees the end" => Act::SeeEnd,
        "sees nothing" => Act::SeeNothing,
        _ => return None,
    };
    Some((party(who)?, act))
}

fn party(letter: &str) -> Option<Party> {
    match letter {
        "C" => Some(Party::Client),
        "S" => Some(Party::Server),
        "T" => Some(Party::OtherServer),
        _ => None,
    }
}

fn field(line: &str) -> (String, String) {
    let (name, value) = line.split_once(':').unwrap_or((line, "*"));
    (name.trim().to_owned(), value.trim().to_owned())
}
