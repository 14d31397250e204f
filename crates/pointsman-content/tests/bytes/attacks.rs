//! Hostile texts and forms: they take time that grows with their bytes alone, and no more room than the limits say.

use std::time::{Duration, Instant};

use pointsman_content::{Cause, Fault, FormNames, Limits, TextKind, TextPiece, TextReader};

use crate::heard::{Outcome, cut, multipart, urlencoded};

const KIB: usize = 1024;

/// Far more than these take, and far less than what grows with the square of their bytes.
const LONG: Duration = Duration::from_secs(20);

fn timed<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = act();
    assert!(start.elapsed() < LONG, "{what}: {:?}", start.elapsed());
    done
}

fn cause((_, read): &Outcome) -> Result<(), Cause> {
    read.map_err(|fault| fault.cause)
}

#[test]
fn a_million_fields() {
    let names = FormNames::new(["a", "b"]);
    let many = Limits { parameters_max: u32::MAX, ..Limits::default() };
    for (body, expected) in [(b"a&".repeat(1_000_000), 1_000_000), (b"x=1&".repeat(1_000_000), 0)] {
        let (heard, read) = timed("fields", || urlencoded(&names, None, &many, [&body[..]]));
        assert_eq!((heard.values.get(&0).map_or(0, Vec::len), read), (expected, Ok(())));
        let outcome = urlencoded(&names, None, &Limits::default(), [&body[..]]);
        assert_eq!(cause(&outcome), Err(Cause::Limit));
    }
    let empty = b"&".repeat(1024 * KIB);
    assert_eq!(cause(&urlencoded(&names, None, &Limits::default(), [&empty[..]])), Ok(()));
    let part = b"--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n";
    let body = [&part.repeat(10_000)[..], b"--B--"].concat();
    let (heard, read) = timed("parts", || multipart(&names, b"B", &many, [&body[..]]));
    assert_eq!((heard.values.get(&0).map_or(0, Vec::len), read), (10_000, Ok(())));
    assert_eq!(cause(&multipart(&names, b"B", &Limits::default(), [&body[..]])), Err(Cause::Limit));
}

#[test]
fn escapes_everywhere() {
    let names = FormNames::new(["a"]);
    for text in ["%c3%a9", "+", "%00", "a+", "%F0%9F%98%80"] {
        let body = format!("a={0}&b={0}", text.repeat(32 * KIB));
        for piece in [usize::MAX, 1] {
            let outcome =
                timed(text, || urlencoded(&names, None, &Limits::default(), cut(body.as_bytes(), &[piece])));
            assert_eq!(cause(&outcome), Ok(()), "{text}");
        }
    }
}

/// What looks like a delimiter up to its last byte, over and over, in a file and in a field.
#[test]
fn delimiters_nearly_everywhere() {
    let names = FormNames::new(["a"]);
    let boundary = [b'-'; 69].iter().chain(b"B").copied().collect::<Vec<u8>>();
    let lines = ["\r\n--".to_owned(), "\r\n".to_owned(), "\n".to_owned(), "\r".to_owned(), "-".to_owned()];
    let nearly = [
        format!("\r\n{}", "-".repeat(71)),
        format!("\r\n{}A", "-".repeat(71)),
        format!("x{}B", "-".repeat(71)),
    ];
    for text in lines.into_iter().chain(nearly) {
        for head in ["", "; filename=\"x\""] {
            let mut body = [b"--", &boundary[..]].concat();
            body.extend(format!("\r\nContent-Disposition: form-data; name=\"a\"{head}\r\n\r\n").into_bytes());
            body.extend(text.repeat(256 * KIB / text.len()).into_bytes());
            body.extend([b"\r\n--", &boundary[..], b"--\r\n"].concat());
            for piece in [usize::MAX, 1, 1000] {
                let outcome =
                    timed(&text, || multipart(&names, &boundary, &Limits::default(), cut(&body, &[piece])));
                assert_eq!(cause(&outcome), Ok(()), "{text:?} in pieces of {piece}");
            }
        }
    }
}

#[test]
fn heads_without_an_end() {
    let names = FormNames::new(["a"]);
    for head in
        ["x", "x: y\r\n", "Content-Disposition: form-data; x=\"", "\r", " \r\n", ";", "Content-Type: a/b\r\n"]
    {
        let body = format!("--B\r\n{}", head.repeat(256 * KIB / head.len()));
        for piece in [usize::MAX, 1] {
            let outcome =
                timed(head, || multipart(&names, b"B", &Limits::default(), cut(body.as_bytes(), &[piece])));
            assert!(cause(&outcome).is_err());
            let (_, read) = outcome;
            assert!(read.is_err_and(|fault| fault.at < 10_000), "{head:?} is refused early");
        }
    }
    // As many parameters as there is room for.
    let parameters: String = (0..1300).map(|number| format!(";{number:04}=")).collect();
    let body = format!("--B\r\nContent-Disposition: form-data{parameters}\r\n");
    let outcome = timed("parameters", || multipart(&names, b"B", &Limits::default(), [body.as_bytes()]));
    assert_eq!(cause(&outcome), Err(Cause::Malformed));
}

fn read_text(kind: TextKind, charset: Option<&[u8]>, bytes: &[u8], piece: usize) -> Result<usize, Fault> {
    let mut reader = TextReader::new(kind, charset)?;
    let mut given = 0;
    let mut each = |piece: TextPiece<'_>| match piece {
        TextPiece::Text(text) => {
            given += text.len();
            Ok(())
        }
        TextPiece::Undecodable(fault) => Err(fault),
    };
    for bytes in cut(bytes, &[piece]) {
        reader.feed(bytes, &mut each)?;
    }
    reader.finish(&mut each)?;
    Ok(given)
}

#[test]
fn texts_in_single_bytes() {
    for (charset, bytes) in [
        (None, "<é€😀".repeat(30_000).into_bytes()),
        (Some(&b"utf-16le"[..]), b"<\0".repeat(128 * KIB)),
        (Some(b"utf-16be"), [b"\0<", &b"\xd8\x3d\xde\x00".repeat(64 * KIB)[..]].concat()),
        (Some(b"iso-8859-1"), b"<\xe9".repeat(128 * KIB)),
        (Some(b"us-ascii"), b"<".repeat(256 * KIB)),
    ] {
        for kind in [TextKind::Xml, TextKind::Json] {
            let read = |piece| {
                timed("text", || read_text(kind, charset, &bytes, piece).map_err(|fault| fault.cause))
            };
            let expected = match (kind, charset) {
                (TextKind::Json, Some(b"iso-8859-1")) => Err(Cause::Encoding),
                _ => read(usize::MAX),
            };
            assert_eq!(read(1), expected);
        }
    }
}

#[test]
fn declarations_without_an_end() {
    for start in ["<?xml ", "<?xml a='", "<?xml version='1.0'"] {
        for filling in [" ", "a", "=", "'"] {
            let text = format!("{start}{}", filling.repeat(256 * KIB));
            let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            for (charset, bytes) in [(None, text.as_bytes()), (Some(&b"utf-16le"[..]), &wide)] {
                for piece in [usize::MAX, 1] {
                    let read = timed(start, || read_text(TextKind::Xml, charset, bytes, piece));
                    assert_eq!(read.map_err(|fault| (fault.cause, fault.at)), Err((Cause::Limit, 0)));
                }
            }
        }
    }
}
