//! Bodies: they end in one place however their bytes are cut, and where a slow reading says they do.

use pointsman_http::{BodyFault, BodyReader, Framing};

use crate::random::Random;

pub(crate) const TOKENS: &[&str] = &[
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    "0\r\n\r\n",
    "0\r\n",
    "5\r\nhello\r\n",
    "5;a=b\r\n",
    ";",
    "\"",
    "F",
    "a",
    "00000",
    "ffffffffffffffff",
    "7fffffffffffffff",
    "0x5",
    " ",
    "\t",
    "\0",
    "X-Sum: 1\r\n",
    "Content-Length: 5\r\n",
    "transfer-encoding: chunked\r\n",
    "Trailer: x\r\n",
    ": ",
    "GET / HTTP/1.1\r\n",
];

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    let mut random = Random::of(input);
    let announced = 1 + random.below(input.len() + 10) as u64;
    for framing in [Framing::Chunked, Framing::Length(announced), Framing::UntilClose, Framing::None] {
        let whole = follow(framing, input, || input.len());
        let pieces = follow(framing, input, || 1 + random.below(9));
        assert_eq!(pieces, whole, "{framing:?} in pieces and in one");
        assert_eq!(follow(framing, input, || 1), whole, "{framing:?} byte by byte and in one");
        match (framing, whole) {
            (Framing::Chunked, whole) => chunked_as_read_slowly(input, &whole),
            (Framing::Length(bytes), Ok(body)) => {
                let held = input.len().min(bytes as usize);
                assert_eq!(
                    body,
                    Body { used: held, done: held as u64 == bytes, ..Body::new(&input[..held]) }
                );
            }
            (Framing::UntilClose, Ok(body)) => {
                assert_eq!(body, Body { used: input.len(), done: false, ..Body::new(input) });
            }
            (Framing::None, Ok(body)) => assert_eq!(body, Body { used: 0, done: true, ..Body::new(b"") }),
            (_, Err(fault)) => panic!("{framing:?} knows no faults: {fault:?}"),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Body {
    data: Vec<u8>,
    /// Lines, without the empty one.
    trailers: Vec<u8>,
    used: usize,
    done: bool,
}

impl Body {
    fn new(data: &[u8]) -> Body {
        Body { data: data.to_vec(), trailers: Vec::new(), used: 0, done: false }
    }
}

/// Feeds `input` in pieces, to a reader that forwards and to one that takes the framing off.
fn follow(framing: Framing, input: &[u8], mut piece: impl FnMut() -> usize) -> Result<Body, BodyFault> {
    let (mut forwarding, mut unchunking) = (BodyReader::new(framing), BodyReader::new(framing));
    let mut body = Body { used: 0, done: forwarding.is_done(), ..Body::new(b"") };
    while !body.done && body.used < input.len() {
        let end = (body.used + piece()).min(input.len());
        let bytes = &input[body.used..end];
        let fed = forwarding.feed(bytes);
        let unchunked = unchunking.feed_unchunked(bytes, &mut body.data, &mut body.trailers);
        assert_eq!(fed, unchunked, "both ways of following");
        let fed = fed?;
        assert!(fed.done || fed.used == bytes.len(), "what is left over belongs to the next message");
        body.used += fed.used;
        body.done = fed.done;
        assert_eq!(forwarding.is_done(), fed.done);
    }
    Ok(body)
}

fn chunked_as_read_slowly(input: &[u8], found: &Result<Body, BodyFault>) {
    match (found, slow(input)) {
        (Ok(body), Some(slow)) => assert_eq!(*body, slow),
        (Ok(body), None) => assert!(!body.done, "the slow reading finds no end"),
        // The only limits that the slow reading does not know.
        (Err(BodyFault::ChunkExtensions | BodyFault::Trailer), Some(slow)) => {
            assert!(slow.used > 5, "nothing in the shortest body can be wrong");
        }
        (Err(fault), Some(slow)) => panic!("refused for {fault:?}, but the slow reading has {slow:?}"),
        (Err(_), None) => {}
    }
}

/// A whole chunked body (RFC 9112 section 7.1), line by line; nothing where it is unfinished or wrong.
fn slow(input: &[u8]) -> Option<Body> {
    let mut data = Vec::new();
    let mut rest = input;
    loop {
        let (line, after) = line(rest)?;
        let (size, extension) =
            line.split_at(line.iter().position(|byte| *byte == b';').unwrap_or(line.len()));
        let size = std::str::from_utf8(size).ok().filter(|size| (1..=15).contains(&size.len()))?;
        if !size.bytes().all(|byte| byte.is_ascii_hexdigit()) || !are_extensions(extension) {
            return None;
        }
        let bytes = usize::from_str_radix(size, 16).ok()?;
        rest = after;
        if bytes == 0 {
            break;
        }
        data.extend_from_slice(rest.get(..bytes)?);
        rest = rest[bytes..].strip_prefix(b"\r\n")?;
    }
    let mut trailers = Vec::new();
    loop {
        let (line, after) = line(rest)?;
        rest = after;
        if line.is_empty() {
            return Some(Body { data, trailers, used: input.len() - rest.len(), done: true });
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        if !pointsman_http::is_token(&line[..colon]) || !line[colon..].iter().all(is_printable) {
            return None;
        }
        trailers.extend_from_slice(line);
        trailers.extend_from_slice(b"\r\n");
    }
}

/// A line without its CRLF, and what follows it.
fn line(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = input.windows(2).position(|end| end == b"\r\n")?;
    Some((&input[..end], &input[end + 2..]))
}

/// Whether these are extensions of a chunk (RFC 9112 section 7.1.1), without the white space that the grammar
/// tolerates.
fn are_extensions(mut rest: &[u8]) -> bool {
    let token = |text: &[u8]| text.iter().take_while(|byte| pointsman_http::is_token(&[**byte])).count();
    while let Some(name) = rest.strip_prefix(b";") {
        let Some(bytes) = Some(token(name)).filter(|bytes| *bytes > 0) else { return false };
        rest = &name[bytes..];
        let Some(value) = rest.strip_prefix(b"=") else { continue };
        let bytes = match value.strip_prefix(b"\"") {
            Some(quoted) => quoted_bytes(quoted).map(|bytes| bytes + 1),
            None => Some(token(value)),
        };
        let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else { return false };
        rest = &value[bytes..];
    }
    rest.is_empty()
}

/// Bytes up to the closing quote, which is among them.
fn quoted_bytes(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' if is_printable(text.get(at + 1)?) => at += 2,
            byte if *byte != b'\\' && is_printable(byte) => at += 1,
            _ => return None,
        }
    }
}

fn is_printable(byte: &u8) -> bool {
    *byte == b'\t' || *byte >= b' ' && *byte != 0x7f
}
