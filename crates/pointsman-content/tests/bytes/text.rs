//! Text: which encoding it is in, and what it says, however its bytes are cut.

use pointsman_content::{Cause, Fault, TextKind, TextPiece, TextReader};
use proptest::prelude::*;

use crate::heard::{cut, name_of};
use crate::vectors::{assert_none, cases, escaped};

/// The text that comes out, and what was wrong.
fn read<'a>(
    kind: TextKind,
    charset: Option<&[u8]>,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (String, Result<(), Fault>) {
    let mut text = String::new();
    let mut each = |piece: TextPiece<'_>| match piece {
        TextPiece::Text(piece) => {
            assert!(!piece.is_empty());
            text.push_str(piece);
            Ok(())
        }
        TextPiece::Undecodable(fault) => Err(fault),
    };
    let read = TextReader::new(kind, charset).and_then(|mut reader| {
        let read = pieces
            .into_iter()
            .try_for_each(|piece| reader.feed(piece, &mut each))
            .and_then(|()| reader.finish(&mut each));
        if let Err(fault) = read {
            assert_eq!(reader.feed(b"a", &mut each), Err(fault), "a fault stays");
            assert_eq!(reader.finish(&mut each), Err(fault), "a fault stays");
        }
        read
    });
    if let Err(fault) = read {
        assert_eq!(fault.at, text.len() as u64);
    }
    (text, read)
}

#[test]
fn vectors() {
    let all = ["text/xml.txt", "text/json.txt"].map(cases).concat();
    let mut wrong = Vec::new();
    for case in &all {
        let kind = match case.kind.as_str() {
            "xml" => TextKind::Xml,
            "json" => TextKind::Json,
            other => panic!("`{other}` is no kind of text"),
        };
        let charset = case.bytes("charset");
        let mut check = |pieces: &str, (text, read): (String, Result<(), Fault>)| {
            let outcome = match read {
                Ok(()) => "text".to_owned(),
                Err(fault) => format!("{} at {}", name_of(fault.cause), fault.at),
            };
            let lines: Vec<String> = (!text.is_empty()).then(|| escaped(&text)).into_iter().collect();
            case.check(pieces, &outcome, &lines, &mut wrong);
        };
        check("whole", read(kind, charset.as_deref(), [&case.body[..]]));
        check("bytes", read(kind, charset.as_deref(), case.body.chunks(1)));
        for at in 0..case.body.len() {
            let (before, behind) = case.body.split_at(at);
            check(&format!("cut at {at}"), read(kind, charset.as_deref(), [before, b"", behind]));
        }
    }
    assert_none(&wrong);
    assert!(all.len() >= 40, "{}", all.len());
}

#[test]
fn who_hears_of_text_may_stop_it() {
    let stop = Fault { cause: Cause::Malformed, at: 7, what: "enough" };
    for body in [&b"{\"a\":1}"[..], b"\xff\xfe{\0}\0", b"1"] {
        let mut reader = TextReader::new(TextKind::Json, None).expect("no charset");
        let mut each = |_: TextPiece<'_>| Err(stop);
        let fed = reader.feed(body, &mut each).and_then(|()| reader.finish(&mut each));
        assert_eq!(fed, Err(stop));
        assert_eq!(reader.finish(&mut |_| Ok(())), Err(stop));
    }
}

#[test]
fn plain_utf8_is_not_copied() {
    let body = "{\"a\": \"é€😀\"}".as_bytes();
    let mut reader = TextReader::new(TextKind::Json, None).expect("no charset");
    reader.feed(b"    ", &mut |_| Ok(())).expect("white space");
    let mut heard = Vec::new();
    let each = &mut |piece: TextPiece<'_>| match piece {
        TextPiece::Text(piece) => {
            heard.push(piece.as_ptr());
            Ok(())
        }
        TextPiece::Undecodable(fault) => Err(fault),
    };
    reader.feed(body, each).expect("UTF-8");
    assert_eq!(heard, [body.as_ptr()]);
}

/// How the same text may be encoded, with and without a byte order mark.
fn encoded(text: &str, encoding: usize) -> (Option<&'static [u8]>, Vec<u8>) {
    let little = || text.encode_utf16().flat_map(u16::to_le_bytes);
    let big = || text.encode_utf16().flat_map(u16::to_be_bytes);
    match encoding {
        0 => (None, text.as_bytes().to_vec()),
        1 => (Some(b"UTF-8"), [b"\xef\xbb\xbf", text.as_bytes()].concat()),
        2 => (None, [0xff, 0xfe].into_iter().chain(little()).collect()),
        3 => (None, [0xfe, 0xff].into_iter().chain(big()).collect()),
        4 => (Some(b"utf-16"), [0xff, 0xfe].into_iter().chain(little()).collect()),
        5 => (Some(b"utf-16le"), little().collect()),
        6 => (Some(b"UTF-16"), big().collect()),
        _ => (Some(b"utf-16be"), big().collect()),
    }
}

proptest! {
    #[test]
    fn the_encoding_and_the_cuts_make_no_difference(
        first in "[ -~]",
        rest in "\\PC{0,40}",
        encoding in 0_usize..8,
        is_xml in any::<bool>(),
        pieces in prop::collection::vec(1_usize..9, 1..5),
    ) {
        // A declaration would be a contradiction.
        let text = format!("{first}{rest}").replace("<?", "<!");
        let kind = if is_xml { TextKind::Xml } else { TextKind::Json };
        let (charset, bytes) = encoded(&text, encoding);
        prop_assert_eq!(read(kind, charset, cut(&bytes, &pieces)), (text, Ok(())));
    }

    #[test]
    fn any_bytes_in_any_pieces_give_the_same(
        start in prop::sample::select(vec![
            &b""[..], b"\xff\xfe<\0", b"\xfe\xff\0<", b"\xef\xbb\xbf", b"<?xml version='1.0' encoding='utf-8'?>",
            b"<?xml encoding='iso-8859-1'?>", b"\xff\xfe<\0?\0x\0m\0l\0 \0?\0>\0", b"{",
        ]),
        rest in prop::collection::vec(prop_oneof![any::<u8>(), 0x20_u8..0x7f, Just(0xd8), Just(0xdc)], 0..24),
        charset in prop::sample::select(vec![
            None, Some(&b"utf-8"[..]), Some(b"utf-16"), Some(b"utf-16le"), Some(b"us-ascii"), Some(b"iso-8859-1"),
        ]),
        is_xml in any::<bool>(),
        pieces in prop::collection::vec(1_usize..9, 1..5),
    ) {
        let kind = if is_xml { TextKind::Xml } else { TextKind::Json };
        let bytes = [start, &rest].concat();
        let whole = read(kind, charset, [&bytes[..]]);
        prop_assert_eq!(read(kind, charset, cut(&bytes, &pieces)), whole.clone());
        prop_assert_eq!(read(kind, charset, bytes.chunks(1)), whole);
    }
}
