//! A request that proves something, as it is printed: its text, and where that is not the request, its bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pointsman_analysis::{Padding, Setting, Witness};
use serde_json::{Value, json};

use crate::explain::members;

/// Of the same byte so many or more, one behind another, are told and not shown to people.
const RUN_BYTES_MIN: usize = 256;
/// Characters of base64 that stand in a command that people copy.
const TYPED_CHARS_MAX: usize = 8 * 1024;

/// A request, and what `explain` is to be told besides.
#[derive(Debug)]
pub(crate) struct Printed {
    /// As people read it.
    pub(crate) request: String,
    bytes: Vec<u8>,
    /// Whether its text can be put before `explain`.
    is_text: bool,
    pub(crate) options: String,
    /// The same, word by word.
    words: Vec<String>,
    /// What follows in its body behind what is shown.
    rest: Option<Padding>,
}

impl Printed {
    pub(crate) fn new(witness: &Witness, setting: &Setting) -> Printed {
        let request = witness.to_string();
        let bytes = witness.request();
        let options = witness.explain_options(setting);
        Printed {
            is_text: is_read_as(&request, &bytes),
            request,
            bytes,
            options: options.to_string(),
            words: options.words,
            rest: witness.rest(),
        }
    }

    /// Its bytes are in base64 (RFC 4648 section 4) where its text is not they.
    pub(crate) fn to_json(&self) -> Value {
        let mut object = json!({
            "request": self.request,
            "options": self.options,
            "explain": members::of_words(&self.words),
        });
        if !self.is_text {
            object["request_base64"] = json!(STANDARD.encode(&self.bytes));
        }
        if let Some(Padding { byte, bytes }) = self.rest {
            object["more_bytes"] = json!(bytes);
            object["more_of"] = json!(char::from(byte).to_string());
        }
        object
    }

    /// The request line by line, long runs of one letter shortened, and what follows in its body.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let rest = self.rest.map(|rest| rest.to_string());
        let text = match pieces(&self.bytes).len() {
            0 | 1 => self.request.trim_end().to_owned(),
            _ => shortened(&self.request),
        };
        text.lines().map(str::to_owned).collect::<Vec<_>>().into_iter().chain(rest)
    }

    /// How to come by a file with its bytes, where its text is none.
    pub(crate) fn note(&self) -> Option<String> {
        let pieces = pieces(&self.bytes);
        if self.is_text && pieces.len() < 2 {
            return None;
        }
        let which = if self.rest.is_some() { "those before the rest are" } else { "they are" };
        let command = command(&pieces);
        Some(match command.len() <= TYPED_CHARS_MAX {
            true => format!("this text is not its bytes; {which} written by `{command} > request.txt`"),
            false => {
                let key = if self.is_text { "request" } else { "request_base64" };
                format!("this text is not its bytes; {which} in `{key}` of `--json`")
            }
        })
    }
}

/// A part of a request.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'b> {
    Bytes(&'b [u8]),
    /// The same byte so many times.
    Run(u8, usize),
}

/// Long runs of one byte, and what stands around them.
fn pieces(bytes: &[u8]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    for run in bytes.chunk_by(|one, next| one == next) {
        let end = at + run.len();
        if let (Some(byte), true) = (run.first(), run.len() >= RUN_BYTES_MIN) {
            pieces.extend(bytes.get(from..at).filter(|before| !before.is_empty()).map(Piece::Bytes));
            pieces.push(Piece::Run(*byte, run.len()));
            from = end;
        }
        at = end;
    }
    pieces.extend(bytes.get(from..).filter(|rest| !rest.is_empty()).map(Piece::Bytes));
    pieces
}

/// A command that writes all of them, for a POSIX shell with `base64`.
fn command(pieces: &[Piece<'_>]) -> String {
    let each = pieces.iter().map(|piece| match piece {
        Piece::Bytes(bytes) => format!("echo {} | base64 -d", STANDARD.encode(bytes)),
        Piece::Run(b' ', bytes) => format!("printf '%{bytes}s' ''"),
        Piece::Run(byte, bytes) => format!("printf '%{bytes}s' '' | tr ' ' '\\{byte:03o}'"),
    });
    match each.collect::<Vec<_>>().as_slice() {
        [one] => one.clone(),
        all => format!("({})", all.join("; ")),
    }
}

/// A text in which long runs of one letter are told.
fn shortened(text: &str) -> String {
    let mut short = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let end = rest.find(|other| other != letter).unwrap_or(rest.len());
        let (run, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
        match (run.len(), letter) {
            (..RUN_BYTES_MIN, _) => short.push_str(run),
            (spaces, ' ') => short.push_str(&format!("… {spaces} spaces …")),
            (times, letter) => short.push_str(&format!("… {times} times `{letter}` …")),
        }
        rest = behind;
    }
    short
}

/// Whether `explain` reads these bytes where it is given this text: lines of a head end in CRLF whatever an editor makes of
/// them, and nothing else is mended. Of blanks at the end of lines and of a body nobody can tell.
fn is_read_as(text: &str, bytes: &[u8]) -> bool {
    let Some((head, body)) = text.split_once("\n\n") else { return false };
    let read = format!("{}\r\n\r\n{body}", head.replace('\n', "\r\n"));
    read.as_bytes() == bytes && body.split('\n').all(|line| line == line.trim_end()) && !body.ends_with('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_told() {
        let long = [&b"a "[..], &b"&".repeat(300), b"b", &b" ".repeat(256)].concat();
        let all = [Piece::Bytes(b"a "), Piece::Run(b'&', 300), Piece::Bytes(b"b"), Piece::Run(b' ', 256)];
        assert_eq!(pieces(&long), all);
        let written = "(echo YSA= | base64 -d; printf '%300s' '' | tr ' ' '\\046'; echo Yg== | base64 -d; printf '%256s' '')";
        assert_eq!(command(&all), written);
        assert_eq!(shortened(str::from_utf8(&long).expect("text")), "a … 300 times `&` …b… 256 spaces …");
        for short in [&b""[..], b"a", &b"x".repeat(255)] {
            assert!(pieces(short).iter().all(|piece| *piece == Piece::Bytes(short)), "{short:?}");
        }
        assert_eq!(command(&pieces(b"a")), "echo YQ== | base64 -d");
        assert_eq!(shortened("é\u{301}x"), "é\u{301}x");
    }

    #[test]
    fn what_is_typed_as_it_is_printed() {
        let head = ("POST / HTTP/1.1\nHost: a\n\n", "POST / HTTP/1.1\r\nHost: a\r\n\r\n");
        let rows = [
            ("", "", true),
            ("{\"a\":1}", "{\"a\":1}", true),
            ("a\\x\tb\nc", "a\\x\tb\nc", true),
            ("--b\n\n1\n--b--", "--b\r\n\r\n1\r\n--b--", false),
            ("\\u{1}", "\u{1}", false),
            ("a\n", "a\n", false),
            ("a \nb", "a \nb", false),
        ];
        for (text, bytes, is_read) in rows {
            let [text, bytes] = [format!("{}{text}", head.0), format!("{}{bytes}", head.1)];
            assert_eq!(is_read_as(&text, bytes.as_bytes()), is_read, "{text:?}");
        }
        assert!(!is_read_as("POST / HTTP/1.1\nA: \\xff\n\n", b"POST / HTTP/1.1\r\nA: \xff\r\n\r\n"));
    }
}
