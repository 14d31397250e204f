//! `application/x-www-form-urlencoded`: vectors, and the reading of the URL standard beside it.

use std::collections::BTreeMap;

use pointsman_content::{Cause, FormNames, FormOptions, FormReading, Limits};
use proptest::prelude::*;

use crate::heard::{Field, Outcome, cut, name_of, options, urlencoded, urlencoded_as};
use crate::vectors::{Case, assert_none, cases, escaped};

/// The limits of a case: the usual ones where it says nothing.
pub(crate) fn limits_of(case: &Case) -> Limits {
    let usual = Limits::default();
    Limits {
        parameters_max: case.number("parameters_max").unwrap_or(usual.parameters_max),
        name_bytes_max: case.number("name_bytes_max").unwrap_or(usual.name_bytes_max),
        value_bytes_max: case.number("value_bytes_max").unwrap_or(usual.value_bytes_max),
        ..usual
    }
}

/// How a case is read: `reading=common`, or as the standards say.
pub(crate) fn reading_of(case: &Case) -> FormReading {
    match case.settings.get("reading").map(String::as_str) {
        None => FormReading::Literal,
        Some("common") => FormReading::Common,
        Some(other) => panic!("`{other}` is no reading"),
    }
}

/// The names that a case asks for.
pub(crate) fn names_of(case: &Case) -> Vec<String> {
    let asked = case.bytes("ask").unwrap_or_default();
    let asked = String::from_utf8(asked).expect("names are UTF-8");
    asked.split(',').map(str::to_owned).collect()
}

/// An outcome as vector files have it: fields by name, then what was wrong.
pub(crate) fn lines_of(names: &[String], (heard, read): &Outcome) -> (String, Vec<String>) {
    let mut lines = Vec::new();
    for (path, values) in &heard.values {
        for value in values {
            let value = match value {
                Some(Field::Text(text)) => format!("= {}", escaped(text)),
                Some(Field::TooLong) => "is too long".to_owned(),
                Some(Field::Undecodable(cause)) => format!("is undecodable ({})", name_of(*cause)),
                None => "begins".to_owned(),
            };
            lines.push(format!("{} {value}", escaped(&names[*path as usize])).trim_end().to_owned());
        }
    }
    for (path, cause) in &heard.unknown {
        lines.push(format!("{} is unknown ({})", escaped(&names[*path as usize]), name_of(*cause)));
    }
    let outcome = match read {
        Ok(()) => "fields".to_owned(),
        Err(fault) => format!("{} at {}", name_of(fault.cause), fault.at),
    };
    (outcome, lines)
}

#[test]
fn vectors() {
    let all = cases("form/urlencoded.txt");
    let mut wrong = Vec::new();
    for case in &all {
        let asked = names_of(case);
        let names = FormNames::new(asked.iter().map(String::as_str));
        let charset = case.bytes("charset");
        let mut check = |pieces: &str, outcome: Outcome| {
            let (outcome, lines) = lines_of(&asked, &outcome);
            case.check(pieces, &outcome, &lines, &mut wrong);
        };
        let limits = limits_of(case);
        let options = FormOptions { charset: charset.as_deref(), reading: reading_of(case), limits: &limits };
        check("whole", urlencoded_as(&names, &options, [&case.body[..]]));
        check("bytes", urlencoded_as(&names, &options, case.body.chunks(1)));
        for at in 0..case.body.len().min(200) {
            let (before, behind) = case.body.split_at(at);
            let outcome = urlencoded_as(&names, &options, [before, b"", behind]);
            check(&format!("cut at {at}"), outcome);
        }
    }
    assert_none(&wrong);
    assert!(all.len() >= 30, "{}", all.len());
}

#[test]
fn a_name_that_stands_twice_is_heard_of_once() {
    let names = FormNames::new(["a", "b", "a"]);
    let (heard, read) = urlencoded(&names, None, &Limits::default(), [&b"a=1&b=2"[..]]);
    assert_eq!((read, heard.ended), (Ok(()), 3));
    assert_eq!(heard.values.keys().collect::<Vec<_>>(), [&0, &1]);
}

const NAMES: [&str; 5] = ["a", "b", "", "é", "a b"];

/// What the URL standard makes of a body, of the names asked for.
fn by_the_standard(body: &[u8]) -> BTreeMap<u32, Vec<Option<Field>>> {
    let mut values: BTreeMap<u32, Vec<Option<Field>>> = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(body) {
        if let Some(path) = NAMES.iter().position(|asked| *asked == name) {
            values.entry(path as u32).or_default().push(Some(Field::Text(value.into_owned())));
        }
    }
    values
}

/// A form written as some client may: escapes for any byte, empty pairs, names without values.
fn forms() -> impl Strategy<Value = String> {
    let text = "([a-c]|é|[ -~]|\\PC){0,4}";
    let name = prop_oneof![prop::sample::select(&NAMES[..]).prop_map(str::to_owned), text];
    let field = (name, text, 0..8_u8, any::<u64>()).prop_map(|(name, value, form, escapes)| {
        let (name, value) = (written(&name, escapes), written(&value, escapes >> 7));
        match form {
            0 => name,
            1 => format!("{name}="),
            2 => "&".to_owned(),
            3 => format!("{name}={value}=x"),
            _ => format!("{name}={value}"),
        }
    });
    prop::collection::vec(field, 0..6).prop_map(|fields| fields.join("&"))
}

/// Text with the bytes escaped that must be, and some that need not; a space is a plus, or not.
fn written(text: &str, escapes: u64) -> String {
    let mut written = String::new();
    for (at, byte) in text.bytes().enumerate() {
        let is_escaped = escapes >> (at % 64) & 1 == 1;
        match byte {
            b' ' if !is_escaped => written.push('+'),
            byte if byte.is_ascii_alphanumeric() && !is_escaped => written.push(char::from(byte)),
            byte if is_escaped => written.push_str(&format!("%{byte:02x}")),
            byte => written.push_str(&format!("%{byte:02X}")),
        }
    }
    written
}

proptest! {
    #[test]
    fn valid_forms_are_read_as_the_standard_says(
        body in forms(),
        pieces in prop::collection::vec(1_usize..9, 1..5),
    ) {
        let names = FormNames::new(NAMES);
        let (heard, read) = urlencoded(&names, None, &Limits::default(), cut(body.as_bytes(), &pieces));
        prop_assert_eq!(read, Ok(()));
        prop_assert_eq!(heard.values, by_the_standard(body.as_bytes()));
    }

    /// Each value is what the standard says, or is undecodable for what the standard repairs.
    #[test]
    fn any_bytes_are_read_as_the_standard_says_or_undecodable(
        body in prop::collection::vec(prop_oneof![
            prop::sample::select(b"&=%+ab4C\r\n".to_vec()), any::<u8>(),
        ], 0..24),
        pieces in prop::collection::vec(1_usize..9, 1..5),
    ) {
        let (names, limits) = (FormNames::new(NAMES), Limits::default());
        let common = FormOptions { reading: FormReading::Common, ..options(&limits) };
        let whole = urlencoded_as(&names, &common, [&body[..]]);
        prop_assert_eq!(urlencoded_as(&names, &common, cut(&body, &pieces)), whole.clone());
        let (heard, read) = whole;
        prop_assert_eq!(read, Ok(()));
        let expected = by_the_standard(&body);
        prop_assert!(heard.values.keys().eq(expected.keys()));
        for (found, expected) in heard.values.values().flatten().zip(expected.values().flatten()) {
            let Some(Field::Text(text)) = expected else { panic!("{expected:?}") };
            match found {
                Some(Field::Undecodable(Cause::Malformed)) => prop_assert!(text.contains('%')),
                Some(Field::Undecodable(Cause::Encoding)) => prop_assert!(text.contains(char::REPLACEMENT_CHARACTER)),
                found => prop_assert_eq!(found, expected),
            }
        }
        let literal = urlencoded(&names, None, &limits, [&body[..]]);
        prop_assert_eq!(urlencoded(&names, None, &limits, cut(&body, &pieces)), literal);
    }
}
