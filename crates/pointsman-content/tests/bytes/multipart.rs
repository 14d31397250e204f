//! `multipart/form-data`: vectors, and a reading of whole bodies beside it.

use std::collections::BTreeMap;

use pointsman_content::{Cause, FormNames, FormOptions, Limits};
use proptest::prelude::*;

use crate::heard::{Field, Outcome, cut, multipart, multipart_as};
use crate::urlencoded::{limits_of, lines_of, names_of, reading_of};
use crate::vectors::{assert_none, cases};

#[test]
fn vectors() {
    let all = ["form/multipart.txt", "form/part-heads.txt", "form/readings.txt"].map(cases).concat();
    let mut wrong = Vec::new();
    for case in &all {
        let asked = names_of(case);
        let names = FormNames::new(asked.iter().map(String::as_str));
        let boundary = case.bytes("boundary").expect("a boundary");
        let mut check = |pieces: &str, outcome: Outcome| {
            let (outcome, lines) = lines_of(&asked, &outcome);
            case.check(pieces, &outcome, &lines, &mut wrong);
        };
        let (limits, charset) = (limits_of(case), case.bytes("charset"));
        let options = FormOptions { charset: charset.as_deref(), reading: reading_of(case), limits: &limits };
        check("whole", multipart_as(&names, &boundary, &options, [&case.body[..]]));
        check("bytes", multipart_as(&names, &boundary, &options, case.body.chunks(1)));
        for at in 0..case.body.len().min(300) {
            let (before, behind) = case.body.split_at(at);
            let outcome = multipart_as(&names, &boundary, &options, [before, b"", behind]);
            check(&format!("cut at {at}"), outcome);
        }
    }
    assert_none(&wrong);
    assert!(all.len() >= 50, "{}", all.len());
}

const NAMES: [&str; 4] = ["a", "b", "", "é\""];

/// Reads a whole body by splitting it: nothing that two readers may split differently, then lines, then words.
fn plainly(boundary: &str, body: &[u8]) -> Option<BTreeMap<u32, Vec<Option<Field>>>> {
    let (body, delimiter) = ([b"\r\n", body].concat(), format!("--{boundary}").into_bytes());
    let starts: Vec<usize> = (1..body.len())
        .filter(|&at| matches!(body[at - 1], b'\r' | b'\n') && body[at..].starts_with(&delimiter))
        .collect();
    // The CRLF before a delimiter is its own, so that no two share one.
    let mut parts = Vec::new();
    for (at, &start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(body.len());
        let is_last = at + 1 == starts.len();
        if !body[..start].ends_with(b"\r\n") {
            return None;
        }
        let between = &body[start + delimiter.len()..end];
        if is_last {
            let epilogue = between.strip_prefix(b"--")?;
            if !(epilogue.is_empty() || epilogue.starts_with(b"\r\n")) {
                return None;
            }
        } else {
            parts.push(between.strip_prefix(b"\r\n")?.strip_suffix(b"\r\n")?);
        }
    }
    let first = *starts.first()?;
    // Somebody sees a delimiter wherever it stands in the preamble.
    if body[..first].windows(delimiter.len()).any(|bytes| bytes == delimiter) {
        return None;
    }
    let mut values: BTreeMap<u32, Vec<Option<Field>>> = BTreeMap::new();
    for part in parts {
        let (name, is_file, value) = part_plainly(part)?;
        if is_file {
            continue;
        }
        let value = match String::from_utf8(value.to_vec()) {
            Ok(value) => Field::Text(value),
            Err(_) => Field::Undecodable(Cause::Encoding),
        };
        if let Some(path) = NAMES.iter().position(|asked| *asked == name) {
            values.entry(path as u32).or_default().push(Some(value));
        }
    }
    Some(values)
}

/// The name of a part, whether it is a file, and what stands in it. It knows the heads that are generated below.
fn part_plainly(part: &[u8]) -> Option<(String, bool, &[u8])> {
    let end = part.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&part[..end]).ok()?;
    let mut name = None;
    let mut is_file = false;
    for line in head.split("\r\n") {
        let (field, value) = line.split_once(": ")?;
        if field != "Content-Disposition" {
            continue;
        }
        let quoted = value.strip_prefix("form-data; name=\"")?;
        let (written, rest) = quoted.split_once('"')?;
        name = Some(written.replace("%22", "\""));
        is_file = !rest.is_empty();
    }
    Some((name?, is_file, &part[end + 4..]))
}

/// Bodies that are mostly right: parts as browsers write them, with what looks like delimiters in and between them.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let noise = prop::collection::vec(
        prop::sample::select(vec![
            &b"x"[..],
            b"\r",
            b"\n",
            b"\r\n",
            b"-",
            b"--",
            b"--B",
            b"\r\n--",
            b"\r\n--B",
            b"--BC",
            b"\xc3\xa9",
            b" ",
        ]),
        0..6,
    )
    .prop_map(|tokens| tokens.concat());
    let name = prop::sample::select(vec!["a", "b", "", "é%22", "other"]);
    let part = (name, 0..8_u8, noise.clone()).prop_map(|(name, form, value)| {
        let more = match form {
            0 => "; filename=\"x.txt\"\r\nContent-Type: application/octet-stream",
            1 => "; filename=\"\"",
            2 => "\r\nContent-Type: text/plain; charset=utf-8",
            _ => "",
        };
        let head = format!("\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n");
        [head.into_bytes(), value, b"\r\n".to_vec()].concat()
    });
    (prop::collection::vec(part, 0..4), noise.clone(), noise, 0..6_u8).prop_map(
        |(parts, preamble, epilogue, form)| {
            let mut body = Vec::new();
            if form == 0 {
                body.extend(preamble);
                body.extend(b"\r\n");
            }
            for part in parts {
                body.extend(b"--BC");
                body.extend(part);
            }
            body.extend(b"--BC--");
            if form <= 1 {
                body.extend(b"\r\n");
                body.extend(epilogue);
            }
            body
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn bodies_are_read_as_by_splitting_them(
        body in bodies(),
        pieces in prop::collection::vec(1_usize..12, 1..5),
    ) {
        let names = FormNames::new(NAMES);
        let limits = Limits::default();
        let (heard, read) = multipart(&names, b"BC", &limits, [&body[..]]);
        prop_assert_eq!(multipart(&names, b"BC", &limits, cut(&body, &pieces)), (heard.clone(), read));
        prop_assert_eq!(multipart(&names, b"BC", &limits, body.chunks(1)), (heard.clone(), read));
        prop_assert_eq!(read.ok().map(|()| heard.values), plainly("BC", &body), "{}", body.escape_ascii());
    }

    #[test]
    fn any_bytes_in_any_pieces_give_the_same(
        tokens in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![
                &b"\r\n"[..], b"\r", b"\n", b"--BC", b"--BC\r\n", b"--BC--", b"\r\n\r\n", b"Content-Disposition: ",
                b"form-data; ", b"name=\"a\"", b"; filename=x", b"; filename=\"\"",
                b"Content-Disposition: form-data; name=\"a\"; filename=\"\"\r\n\r\n", b"Content-Type: text/plain", b"\"", b"\\", b";",
                b"Content-Disposition: form-data; name=\"a\"\r\n\r\n", b"\xc3", b"\xa9",
            ]).prop_map(<[u8]>::to_vec),
            prop::collection::vec(any::<u8>(), 1..3),
        ], 0..16),
        pieces in prop::collection::vec(1_usize..12, 1..5),
    ) {
        let (names, limits, body) = (FormNames::new(NAMES), Limits::default(), tokens.concat());
        let whole = multipart(&names, b"BC", &limits, [&body[..]]);
        prop_assert_eq!(multipart(&names, b"BC", &limits, cut(&body, &pieces)), whole.clone());
        prop_assert_eq!(multipart(&names, b"BC", &limits, body.chunks(1)), whole);
    }
}

#[test]
fn boundaries_have_a_syntax() {
    let is_boundary = |boundary: &[u8]| {
        let (_, read) = multipart(&FormNames::default(), boundary, &Limits::default(), [&b""[..]]);
        read.expect_err("no body").what != "a boundary that is none"
    };
    for boundary in
        [&b"x"[..], b"a b", b"'()+_,-./:=?", b"----WebKitFormBoundary7MA4YWxkTrZu0gW", &[b'x'; 70]]
    {
        assert!(is_boundary(boundary), "{}", boundary.escape_ascii());
    }
    for boundary in [&b""[..], b"a ", b"a\"", b"a\r\n", b"a\tb", b"\xc3\xa9", b"a;b", b"a\0", &[b'x'; 71]] {
        assert!(!is_boundary(boundary), "{}", boundary.escape_ascii());
    }
    let (_, read) = multipart(&FormNames::default(), b"", &Limits::default(), []);
    assert_eq!(read.expect_err("no boundary").cause, Cause::Malformed);
}
