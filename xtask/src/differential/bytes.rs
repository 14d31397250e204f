//! Mutations of bytes, where those of drafts know the grammar too well.

use super::dice::Dice;
use super::request::Request;

/// Bytes that parsers disagree about.
const TOKENS: &[&[u8]] = &[
    b"\0",
    b"\t",
    b"\n",
    b"\r",
    b"\r\n",
    b" ",
    b"\"",
    b"'",
    b"%",
    b"%00",
    b"%2f",
    b"%5c",
    b"%0d%0a",
    b"&",
    b"+",
    b",",
    b"-",
    b".",
    b"..",
    b"/",
    b"//",
    b"/../",
    b":",
    b";",
    b"=",
    b"?",
    b"#",
    b"@",
    b"[",
    b"]",
    b"\\",
    b"_",
    b"{",
    b"}",
    b"<",
    b">",
    b"\x7f",
    b"\x80",
    b"\xa0",
    b"\xc2\xa0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\x0b",
    b"\x0c",
    b"\x1f",
    b"*",
    b"--",
    b"0",
    b"\\u0000",
    b"\\\"",
    b"&#x30;",
    b"]]>",
    b"|",
    b"$",
];

/// Changes a few bytes of one part; the framing follows.
pub(super) fn mutate(request: &mut Request, dice: &mut Dice) {
    for _ in 0..1 + dice.below(3) {
        let parts = 1 + request.lines.len() + 3 * usize::from(request.body.is_some());
        match dice.below(parts) {
            0 => change(&mut request.start, dice),
            at if at <= request.lines.len() => change(&mut request.lines[at - 1], dice),
            _ => change(request.body.get_or_insert_default(), dice),
        }
    }
}

fn change(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let at = dice.below(bytes.len() + 1);
    let end = (at + 1).min(bytes.len());
    let token = dice.bytes(TOKENS).iter().copied();
    match dice.below(8) {
        0..=2 => drop(bytes.splice(at..at, token)),
        3 => drop(bytes.splice(at..end, token)),
        4 => drop(bytes.drain(at..end)),
        5 => {
            let until = (at + 1 + dice.below(12)).min(bytes.len());
            let copy = bytes[at..until].to_vec();
            let to = dice.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        6 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
        _ => {
            let code: Vec<u8> =
                bytes[at..end].iter().flat_map(|byte| format!("%{byte:02x}").into_bytes()).collect();
            bytes.splice(at..end, code);
        }
    }
}

/// Smaller requests near one, most promising first: without a line, without a run of bytes, in one piece.
pub(super) fn smaller(request: &Request) -> Vec<Request> {
    use super::request::Framing;
    let mut found = Vec::new();
    if let Framing::Chunked { trailers, .. } = &request.framing {
        found.push(Request { framing: Framing::Length, ..request.clone() });
        if !trailers.is_empty() || request.body.as_ref().is_some_and(|body| body.len() > 1) {
            let framing = Framing::Chunked { size: 4096, extension: Vec::new(), trailers: trailers.clone() };
            found.push(Request { framing, ..request.clone() });
        }
    }
    if request.body.is_some() {
        found.push(Request { body: None, framing: Framing::Length, ..request.clone() });
    }
    for at in 0..request.lines.len() {
        let mut fewer = request.clone();
        fewer.lines.remove(at);
        found.push(fewer);
    }
    for run in [64, 16, 8, 4, 2, 1] {
        found.extend(without_runs(&request.start, run).map(|start| Request { start, ..request.clone() }));
        for (at, line) in request.lines.iter().enumerate() {
            found.extend(without_runs(line, run).map(|line| {
                let mut shorter = request.clone();
                shorter.lines[at] = line;
                shorter
            }));
        }
        let body = request.body.as_deref().unwrap_or_default();
        found.extend(without_runs(body, run).map(|body| Request { body: Some(body), ..request.clone() }));
    }
    found.retain(|smaller| smaller != request);
    found
}

fn without_runs(bytes: &[u8], run: usize) -> impl Iterator<Item = Vec<u8>> {
    let starts = (0..bytes.len()).step_by(run).filter(move |at| at + run <= bytes.len());
    starts.map(move |at| [&bytes[..at], &bytes[at + run..]].concat())
}

#[cfg(test)]
mod tests {
    use super::super::request::Framing;
    use super::*;

    #[test]
    fn smaller_requests_are_smaller() {
        let framing =
            Framing::Chunked { size: 3, extension: b";a".to_vec(), trailers: vec![b"a: b".to_vec()] };
        let lines = vec![b"Host: a".to_vec()];
        let request =
            Request { start: b"POST / HTTP/1.1".to_vec(), lines, body: Some(b"abcd".to_vec()), framing };
        let length = |request: &Request| request.bytes().len();
        assert!(smaller(&request).iter().all(|smaller| length(smaller) < length(&request)));
        let body =
            |wanted: &[u8]| smaller(&request).iter().any(|smaller| smaller.body.as_deref() == Some(wanted));
        assert!(body(b"cd") && body(b"bcd"));
    }

    #[test]
    fn no_mutation_needs_bytes() {
        let empty = Request {
            start: Vec::new(),
            lines: vec![Vec::new()],
            body: Some(Vec::new()),
            framing: Framing::Length,
        };
        for seed in 0..2000 {
            mutate(&mut empty.clone(), &mut Dice::new(seed, 0));
        }
    }
}
