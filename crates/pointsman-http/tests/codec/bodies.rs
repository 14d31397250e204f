//! Bodies: where they end, what is wrong with them, however the bytes are cut.

use pointsman_http::{BodyFault, BodyReader, Fed, Framing, Trailers};
use proptest::prelude::*;

/// The data of a body, the bytes that belong to it, and whether it ended, when `bytes` come in
/// pieces of these lengths, over and over.
fn read(framing: Framing, bytes: &[u8], pieces: &[usize]) -> Result<(Vec<u8>, usize, bool), BodyFault> {
    let mut plain = BodyReader::new(framing);
    let mut unchunking = BodyReader::new(framing);
    let (mut data, mut used) = (Vec::new(), 0);
    let mut pieces = pieces.iter().cycle();
    while used < bytes.len() && !plain.is_done() {
        let piece = pieces.next().map_or(bytes.len(), |&piece| piece.max(1)).min(bytes.len() - used);
        let piece = &bytes[used..used + piece];
        let fed = plain.feed(piece);
        let unchunked = unchunking.feed_unchunked(piece, &mut data, &mut Vec::new());
        assert_eq!(fed, unchunked, "both ways of feeding agree");
        let Fed { used: taken, done } = fed?;
        assert!(done || taken == piece.len(), "what is not used belongs to the next message");
        assert_eq!(done, plain.is_done());
        used += taken;
    }
    Ok((data, used, plain.is_done()))
}

fn check_chunked(bytes: &str, expected: Result<(&str, usize, bool), BodyFault>) {
    let expected = expected.map(|(data, used, done)| (data.as_bytes().to_vec(), used, done));
    for pieces in [&[][..], &[1], &[2], &[3, 1], &[7]] {
        assert_eq!(read(Framing::Chunked, bytes.as_bytes(), pieces), expected, "{bytes:?} in {pieces:?}");
    }
}

#[test]
fn by_length() {
    assert_eq!(read(Framing::Length(5), b"hellonext", &[]), Ok((b"hello".to_vec(), 5, true)));
    assert_eq!(read(Framing::Length(5), b"hel", &[1]), Ok((b"hel".to_vec(), 3, false)));
    let mut reader = BodyReader::new(Framing::Length(5));
    assert_eq!(reader.feed(b"hel"), Ok(Fed { used: 3, done: false }));
    assert_eq!(reader.feed(b""), Ok(Fed { used: 0, done: false }));
    assert_eq!(reader.feed(b"lonext"), Ok(Fed { used: 2, done: true }));
    assert_eq!(reader.feed(b"next"), Ok(Fed { used: 0, done: true }));
}

#[test]
fn none_and_until_close() {
    let none = BodyReader::new(Framing::None);
    assert!(none.is_done() && !none.ends_at_close());
    let mut until_close = BodyReader::new(Framing::UntilClose);
    assert!(until_close.ends_at_close() && !until_close.is_done());
    let mut data = Vec::new();
    assert_eq!(
        until_close.feed_unchunked(b"abc", &mut data, &mut Vec::new()),
        Ok(Fed { used: 3, done: false })
    );
    assert_eq!(data, b"abc");
}

#[test]
fn chunks_are_followed_to_their_end() {
    check_chunked("0\r\n\r\n", Ok(("", 5, true)));
    check_chunked("000\r\n\r\n", Ok(("", 7, true)));
    check_chunked("5\r\nhello\r\n0\r\n\r\nnext", Ok(("hello", 15, true)));
    check_chunked("3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", Ok(("hello", 20, true)));
    check_chunked("A\r\n0123456789\r\n0\r\n\r\n", Ok(("0123456789", 20, true)));
    check_chunked("a\r\n0123456789\r\n0\r\n\r\n", Ok(("0123456789", 20, true)));
    check_chunked("00000000000000a\r\n0123456789\r\n0\r\n\r\n", Ok(("0123456789", 34, true)));
    check_chunked("4\r\n\r\n\r\n\r\n0\r\n\r\n", Ok(("\r\n\r\n", 14, true)));
    check_chunked("5;a=b;c=\"d\"\r\nhello\r\n0;e\r\n\r\n", Ok(("hello", 27, true)));
    check_chunked("0\r\nX-Sum: 1\r\nY:\r\n\r\nnext", Ok(("", 19, true)));
}

#[test]
fn trailers_are_handed_over_without_the_empty_line() {
    let whole = b"3\r\nhel\r\n0\r\nX-Sum: 1\r\nY:\r\n\r\nnext";
    for piece in 1..whole.len() {
        let (mut data, mut trailers) = (Vec::new(), Vec::new());
        let mut reader = BodyReader::new(Framing::Chunked);
        for bytes in whole.chunks(piece) {
            reader.feed_unchunked(bytes, &mut data, &mut trailers).expect("no fault");
        }
        assert!(reader.is_done());
        assert_eq!((&data[..], &trailers[..]), (&b"hel"[..], &b"X-Sum: 1\r\nY:\r\n"[..]), "{piece}");
    }
}

/// The bytes that are forwarded of `whole`, which arrives in pieces of `piece` bytes.
fn forwarded(whole: &[u8], piece: usize, treatment: Trailers) -> Vec<u8> {
    let mut reader = BodyReader::new(Framing::Chunked).with_trailers(treatment);
    let mut forwarded = Vec::new();
    for bytes in whole.chunks(piece) {
        let fed = reader.feed(bytes).expect("no fault");
        let mut bytes = bytes[..fed.used].to_vec();
        if let Some(mut cut) = reader.take_cut() {
            cut.retain(|name| !name.eq_ignore_ascii_case(b"x-role"));
            bytes.splice(cut.place, cut.lines);
        }
        forwarded.extend_from_slice(&bytes);
    }
    assert!(reader.is_done());
    forwarded
}

#[test]
fn trailers_are_cut_out_however_they_arrive() {
    let data = "3\r\nhel\r\n0\r\n";
    for (trailers, kept) in [
        ("", ""),
        ("X-Role: root\r\n", ""),
        ("X-Sum: 1\r\n", "X-Sum: 1\r\n"),
        ("X-Role:\r\nX-Sum: 1\r\nx-role: b:c\r\nY:\r\n", "X-Sum: 1\r\nY:\r\n"),
    ] {
        let whole = format!("{data}{trailers}\r\nnext");
        for piece in 1..=whole.len() {
            let text =
                |treatment| String::from_utf8(forwarded(whole.as_bytes(), piece, treatment)).expect("ASCII");
            assert_eq!(text(Trailers::Forward), format!("{data}{trailers}\r\n"), "{piece}");
            assert_eq!(text(Trailers::Drop), format!("{data}\r\n"), "{piece}");
            assert_eq!(text(Trailers::SetAside), format!("{data}{kept}\r\n"), "{piece}");
        }
    }
}

#[test]
fn answers_may_have_odd_names_in_trailers() {
    let body = b"0\r\ngrpc_status.x-bin: 0\r\n\r\n";
    let whole = Ok(Fed { used: body.len(), done: true });
    assert_eq!(BodyReader::of_answer(Framing::Chunked).feed(body), whole);
    assert_eq!(BodyReader::new(Framing::Chunked).feed(body), Err(BodyFault::Trailer));
    for forbidden in [b"0\r\nSet-Cookie: a=b\r\n\r\n", b"0\r\nset_cookie: a=b\r\n\r\n"] {
        assert_eq!(BodyReader::of_answer(Framing::Chunked).feed(forbidden), Err(BodyFault::Trailer));
    }
}

#[test]
fn an_unfinished_body_is_not_done() {
    let whole = "5\r\nhello\r\n0\r\nX: 1\r\n\r\n";
    for bytes in 0..whole.len() {
        let (_, used, done) = read(Framing::Chunked, &whole.as_bytes()[..bytes], &[]).expect("no fault");
        assert!(!done && used == bytes, "{bytes}");
    }
}

#[test]
fn faults_in_chunk_sizes() {
    for bytes in [
        "\r\n",
        ";a\r\n",
        "g\r\n",
        " 5\r\n",
        "5 \r\n",
        "5 ;a\r\n",
        "+5\r\n",
        "-5\r\n",
        "0x5\r\n",
        "5\n",
        "5\rx",
        "5\r\r\n",
        "5;a\n",
        "5;a\x00\r\n",
        "5;a\x7f\r\n",
        "5;a\rb",
        "\u{ff15}\r\n",
        "1_0\r\n",
        "5,5\r\n",
        "0000000000000001\r\n",
        "ffffffffffffffff\r\n",
        "10000000000000000\r\n",
        "1\r\na\r\n\r\n",
        "1\r\na\r\n 0\r\n\r\n",
    ] {
        check_chunked(bytes, Err(BodyFault::ChunkSize));
    }
}

#[test]
fn faults_after_chunk_data() {
    for bytes in ["1\r\nab\r\n", "1\r\na\n0\r\n", "1\r\na\rb", "1\r\na0\r\n", "2\r\na\r\n0\r\n"] {
        check_chunked(bytes, Err(BodyFault::ChunkEnd));
    }
}

#[test]
fn faults_in_trailers() {
    for lines in [
        "\n",
        "X\r\n",
        ": x\r\n",
        " X: 1\r\n",
        "X : 1\r\n",
        "X: 1\n",
        "X: 1\r\n folded\r\n",
        "X: \x00\r\n",
        "X: 1\r\r\n",
        "\rX",
        "X(): 1\r\n",
    ] {
        check_chunked(&format!("0\r\n{lines}\r\n"), Err(BodyFault::Trailer));
    }
}

#[test]
fn names_that_may_not_trail() {
    for name in [
        "Content-Length",
        "transfer-encoding",
        "HOST",
        "Cookie",
        "Authorization",
        "Connection",
        "Trailer",
        "Set-Cookie",
        "Content-Type",
        "Content-Anything",
        "X-Forwarded-For",
        "Forwarded",
        "Expect",
        "TE",
        "Upgrade",
        "Proxy-Authorization",
        "Proxy-Connection",
        // The prefix is forbidden however long the name is.
        "X-Forwarded-Client-Certificate-Chain",
        "Content-Security-Policy-Report-Only",
    ] {
        check_chunked(&format!("0\r\n{name}: 1\r\n\r\n"), Err(BodyFault::Trailer));
    }
    for name in ["X-Content-Length", "Hosts", "Hos", "Digest", "Server-Timing", "X-Forwarded", "Contents"] {
        let body = format!("0\r\n{name}: 1\r\n\r\n");
        check_chunked(&body, Ok(("", body.len(), true)));
    }
    let long = "Transfer-Encoding-Is-Only-How-This-Name-Begins";
    let body = format!("0\r\n{long}: 1\r\n\r\n");
    check_chunked(&body, Ok(("", body.len(), true)));
}

#[test]
fn extensions_are_bounded_over_the_whole_body() {
    let extension = |bytes: usize| format!(";{}", "x".repeat(bytes));
    let body = format!("1{}\r\na\r\n0{}\r\n\r\n", extension(200), extension(3896));
    check_chunked(&body, Ok(("a", body.len(), true)));
    let body = format!("1{}\r\na\r\n0{}\r\n\r\n", extension(200), extension(3897));
    check_chunked(&body, Err(BodyFault::ChunkExtensions));
}

#[test]
fn trailers_are_bounded() {
    const TRAILERS_BYTES_MAX: usize = 8 * 1024;
    let body = |value_bytes: usize| format!("0\r\nX: {}\r\n\r\n", "v".repeat(value_bytes));
    let around = "X: \r\n\r\n".len();
    let longest = body(TRAILERS_BYTES_MAX - around);
    check_chunked(&longest, Ok(("", longest.len(), true)));
    check_chunked(&body(TRAILERS_BYTES_MAX - around + 1), Err(BodyFault::Trailer));
}

/// A chunked body, and the data in it.
fn chunked_bodies() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let chunk = (
        prop::collection::vec(any::<u8>(), 1..40),
        "(;[a-z]{1,3}(=([a-z]{1,3}|\"[a-z=;]{0,3}\"))?)?",
        0_usize..4,
        any::<bool>(),
    );
    let trailers = prop::collection::vec("X-[A-Za-z]{1,5}: ?[ -~]{0,8}\r\n", 0..3);
    (prop::collection::vec(chunk, 0..6), trailers).prop_map(|(chunks, trailers)| {
        let (mut body, mut data) = (Vec::new(), Vec::new());
        for (piece, extension, zeros, upper) in chunks {
            let size = if upper { format!("{:X}", piece.len()) } else { format!("{:x}", piece.len()) };
            body.extend(format!("{}{size}{extension}\r\n", "0".repeat(zeros)).into_bytes());
            body.extend(&piece);
            body.extend(b"\r\n");
            data.extend(piece);
        }
        body.extend(format!("0\r\n{}\r\n", trailers.concat()).into_bytes());
        (body, data)
    })
}

proptest! {
    #[test]
    fn any_cut_of_the_same_bytes_gives_the_same_body(
        (body, data) in chunked_bodies(),
        next in prop::collection::vec(any::<u8>(), 0..10),
        pieces in prop::collection::vec(1_usize..20, 1..8),
    ) {
        let bytes = [&body[..], &next].concat();
        let expected = Ok((data, body.len(), true));
        prop_assert_eq!(read(Framing::Chunked, &bytes, &[]), expected.clone());
        prop_assert_eq!(read(Framing::Chunked, &bytes, &pieces), expected);
    }

    #[test]
    fn any_cut_of_a_damaged_body_gives_the_same_fault(
        (mut body, _) in chunked_bodies(),
        at in any::<prop::sample::Index>(),
        byte in prop::sample::select(b"\r\n;:0a \x00x".to_vec()),
        pieces in prop::collection::vec(1_usize..20, 1..8),
    ) {
        let at = at.index(body.len());
        body[at] = byte;
        prop_assert_eq!(read(Framing::Chunked, &body, &pieces), read(Framing::Chunked, &body, &[]));
    }

    #[test]
    fn any_bytes_are_a_body_or_not(
        bytes in prop::collection::vec(prop::sample::select(b"0015aF;\r\n\r\n\r\nX: ".to_vec()), 0..60),
        pieces in prop::collection::vec(1_usize..9, 1..8),
    ) {
        prop_assert_eq!(read(Framing::Chunked, &bytes, &pieces), read(Framing::Chunked, &bytes, &[]));
    }
}
