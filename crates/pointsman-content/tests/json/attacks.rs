//! Documents that are made to cost: each is read in time that its length bounds.

use std::time::{Duration, Instant};

use pointsman_content::{Cause, JsonPath, Limits, PathId};

use crate::paths::path;
use crate::reading::{Found, Heard, characters, pieces, read};

const MILLION: usize = 1_000_000;

/// Far more than any of them needs on a machine that does other things too, and far less than quadratic time takes.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Longer ones are not read one character at a time too: that takes a while.
const ONE_BY_ONE_BYTES_MAX: usize = 2 * MILLION;

/// At once, in small pieces and one character at a time, within the time.
fn attack(paths: &[&str], limits: Limits, document: &str) -> Heard {
    let paths: Vec<JsonPath> = paths.iter().map(|name| path(name)).collect();
    let begin = Instant::now();
    let whole = read(&paths, limits, [document]);
    let in_pieces = read(&paths, limits, pieces(document, &[1000, 1, 37]));
    let one_by_one = document.len() <= ONE_BY_ONE_BYTES_MAX;
    let one_by_one = one_by_one.then(|| read(&paths, limits, characters(document)));
    assert!(begin.elapsed() < TIME_MAX, "{:?} for {} bytes", begin.elapsed(), document.len());
    assert!(whole.calls() == in_pieces.calls());
    assert!(one_by_one.is_none_or(|one_by_one| whole.calls() == one_by_one.calls()));
    whole
}

fn cause(heard: &Heard) -> Option<(Cause, u64)> {
    let fault = heard.outcome.expect("an outcome").err()?;
    Some((fault.cause, fault.at))
}

fn deep() -> Limits {
    Limits { depth_max: u32::MAX, ..Limits::default() }
}

#[test]
fn depth() {
    let around = |open: &str, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(MILLION), close.repeat(MILLION))
    };
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"b\":", "}]")] {
        let document = around(open, "1", close);
        assert!(attack(&[".a.a", "[*][*]"], deep(), &document).is_accepted());
        let shallow = attack(&[".a.a", "[*][*]"], Limits::default(), &document);
        assert_eq!(cause(&shallow).map(|(cause, _)| cause), Some(Cause::Limit));
        let unfinished = document.get(..document.len() / 2).expect("ASCII");
        assert_eq!(
            cause(&attack(&[], deep(), unfinished)),
            Some((Cause::Malformed, unfinished.len() as u64))
        );
    }
    let crossed = around("[", "", "}");
    assert_eq!(cause(&attack(&[], deep(), &crossed)), Some((Cause::Malformed, MILLION as u64)));
}

#[test]
fn long_numbers() {
    let digits = "1".repeat(MILLION);
    for number in
        [digits.clone(), format!("-0.{digits}"), format!("1e{digits}"), format!("1.{digits}E-{digits}")]
    {
        let heard = attack(&[".a", ".b"], Limits::default(), &format!("{{\"a\":{number},\"b\":1}}"));
        assert!(heard.is_accepted());
        assert_eq!(heard.values(PathId(0)), [&Found::TooLong]);
        assert_eq!(heard.values(PathId(1)), [&Found::Number("1".to_owned())]);
        assert!(attack(&["."], Limits::default(), &number).is_accepted());
        assert!(!attack(&["."], Limits::default(), &format!("{number}.")).is_accepted());
    }
}

#[test]
fn many_members() {
    let members: String = (0..MILLION).map(|number| format!("\"m{number}\":0,")).collect();
    let document = format!("{{{members}\"z\":1}}");
    let names: Vec<String> = (0..1000).map(|number| format!(".m{}", number * 999)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let heard = attack(&names, Limits::default(), &document);
    assert!(heard.is_accepted());
    for place in [0, 1, 999] {
        assert_eq!(heard.values(PathId(place)), [&Found::Number("0".to_owned())]);
    }
}

#[test]
fn repeated_members() {
    let document = format!("{{{}\"z\":1}}", "\"a\":1,".repeat(MILLION));
    assert!(attack(&[".z"], Limits::default(), &document).is_accepted());
    assert_eq!(cause(&attack(&[".a"], Limits::default(), &document)), Some((Cause::DuplicateKey, 7)));
}

#[test]
fn many_elements() {
    let names: Vec<String> = (0..1000).map(|number| format!("[{}].a", number * 100)).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.extend(["[*].a", "[*][*]"]);
    let document = format!("[{}1]", "{\"a\":1},[],".repeat(MILLION / 4));
    let heard = attack(&names, Limits::default(), &document);
    assert!(heard.is_accepted());
    assert_eq!(heard.values(PathId(1000)).len(), MILLION / 4);
}

/// Each object would have to be looked through if what it has met were forgotten name by name.
#[test]
fn many_empty_objects_where_many_names_are_looked_for() {
    let names: Vec<String> = (0..10_000).map(|number| format!("[*].n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let document = format!("[{}0]", "{},".repeat(MILLION / 4));
    assert!(attack(&names, Limits::default(), &document).is_accepted());
}

#[test]
fn names_that_look_alike() {
    let names: Vec<String> = (0..1000).map(|number| format!(".{}{number:03}", "a".repeat(100))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let alike: String = (0..MILLION / 100).map(|_| format!("\"{}\":0,", "a".repeat(103))).collect();
    assert!(attack(&names, Limits::default(), &format!("{{{alike}\"z\":0}}")).is_accepted());
}

#[test]
fn long_strings() {
    for (piece, decoded_bytes) in [("a", 1), ("é", 2), (r"\n", 1), (r"\u00e4", 2), (r"\ud83d\ude00", 4)] {
        let times = MILLION / piece.len();
        let long = piece.repeat(times);
        let document = format!("{{\"{long}\":\"{long}\",\"b\":[\"{long}\"]}}");
        let heard = attack(&[".b[0]", ".c"], Limits::default(), &document);
        assert!(heard.is_accepted());
        assert_eq!(heard.values(PathId(0)), [&Found::TooLong]);
        let value_bytes_max = (times * decoded_bytes) as u32;
        let wide = attack(&[".b[0]"], Limits { value_bytes_max, ..Limits::default() }, &document);
        assert!(
            matches!(wide.values(PathId(0))[..], [Found::Text(text)] if text.len() == times * decoded_bytes)
        );
    }
}

#[test]
fn what_is_never_finished() {
    let long = "a".repeat(MILLION);
    for (before, behind) in
        [("\"", ""), ("{\"", ""), ("[\"", "\\"), ("{\"a\":\"", "\\u00"), ("[\"", "\\ud83d")]
    {
        let unfinished = format!("{before}{long}{behind}");
        let expected = Some((Cause::Malformed, unfinished.len() as u64));
        assert_eq!(cause(&attack(&[".a", "[*]"], Limits::default(), &unfinished)), expected);
    }
}

#[test]
fn white_space() {
    let space = " \t\r\n".repeat(MILLION / 4);
    let document = format!("{space}{{{space}\"a\"{space}:{space}1{space}}}{space}");
    assert!(attack(&[".a"], Limits::default(), &document).is_accepted());
    assert!(!attack(&[".a"], Limits::default(), &space).is_accepted());
}
