//! Paths: the vectors, and what holds for every path.

use pointsman_view::{EncodedSlash, PathOptions, PathRefusal, normal_form};
use proptest::prelude::*;

use crate::vectors::cases;

fn options(names: &str) -> PathOptions {
    let mut options = PathOptions::default();
    for name in names.split(' ').filter(|name| !name.is_empty()) {
        match name {
            "merge_slashes" => options.merge_slashes = true,
            "encoded_slash=refuse" => options.encoded_slash = EncodedSlash::Refuse,
            _ => panic!("unknown option {name}"),
        }
    }
    options
}

#[test]
fn vectors() {
    let mut count = 0;
    for case in cases(include_str!("../../../../testdata/normal-forms/paths.txt")) {
        let mut scratch = b"left over from the request before".to_vec();
        let found = match normal_form(&case.raw, options(case.options), &mut scratch) {
            Ok(normal) => {
                assert_eq!(normal.is_rewritten(), normal.target() != case.raw, "{}", case.line);
                String::from_utf8_lossy(normal.path()).into_owned()
            }
            Err(refusal) => format!("! {refusal:?}"),
        };
        assert_eq!(found, case.expected, "{} with [{}]", case.line, case.options);
        count += 1;
    }
    assert!(count > 200);
}

#[test]
fn the_query_goes_along_untouched() {
    for (raw, target, query, is_rewritten) in [
        ("/a", "/a", None, false),
        ("/a?", "/a?", Some(""), false),
        ("/a?b=%2e&c", "/a?b=%2e&c", Some("b=%2e&c"), false),
        ("/%61?b=%61?c", "/a?b=%61?c", Some("b=%61?c"), true),
        ("/a/../?/../x", "/?/../x", Some("/../x"), true),
        ("/a%2Fb?x", "/a%2Fb?x", Some("x"), false),
        ("/.a?x", "/.a?x", Some("x"), false),
        ("", "/", None, true),
        ("*", "*", None, false),
    ] {
        let mut scratch = Vec::new();
        let normal = normal_form(raw.as_bytes(), PathOptions::default(), &mut scratch).expect(raw);
        assert_eq!(normal.target(), target.as_bytes(), "{raw}");
        assert_eq!(normal.query(), query.map(str::as_bytes), "{raw}");
        assert_eq!(normal.is_rewritten(), is_rewritten, "{raw}");
    }
}

#[test]
fn an_ordinary_path_needs_no_scratch() {
    let mut scratch = Vec::new();
    normal_form(b"/static/app.min.js?v=%41", PathOptions::default(), &mut scratch).expect("a path");
    assert_eq!(scratch.capacity(), 0);
}

#[test]
fn each_refusal_is_a_client_fault_with_a_sentence_of_its_own() {
    use PathRefusal::*;
    let all = [Relative, Byte, Escape, Nul, Backslash, EncodedSlash, HiddenDots];
    let sentences: std::collections::HashSet<_> = all.iter().map(|refusal| refusal.sentence()).collect();
    assert_eq!(sentences.len(), all.len());
    assert!(all.iter().all(|refusal| refusal.status() == 400));
}

/// Depth costs nothing: a code wrapped in thousands of others is found in one pass.
#[test]
fn deep_encoding_is_found() {
    let mut path = b"/%".to_vec();
    path.extend(b"25".repeat(100_000));
    path.extend_from_slice(b"2e");
    let refusal = normal_form(&path, PathOptions::default(), &mut Vec::new()).expect_err("hidden dots");
    assert_eq!(refusal, PathRefusal::HiddenDots);
}

/// Pieces that meet each other in ways that spell trouble.
fn paths() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "/", "//", ".", "..", "%2e", "%2E", "%252e", "%25", "%2f", "%2F", "%5c", "%5C", "%255c",
            "%25252e", "2e", "25", "e", "%", "%2", "%00", "\\", "?", "#", " ", "a", "A", ";", "%41", "%c3",
        ]).prop_map(str::to_owned),
        1 => "[ -~]{0,4}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| format!("/{}", pieces.concat()))
}

fn any_options() -> impl Strategy<Value = PathOptions> {
    (any::<bool>(), any::<bool>()).prop_map(|(refuse, merge_slashes)| PathOptions {
        encoded_slash: if refuse { EncodedSlash::Refuse } else { EncodedSlash::Keep },
        merge_slashes,
    })
}

/// What a server that decodes `rounds` times, slashes too, takes for segments.
fn segments_after(path: &[u8], rounds: usize) -> Vec<Vec<u8>> {
    let mut path = path.to_vec();
    for _ in 0..rounds {
        path = decoded_once(&path);
    }
    path.split(|&byte| byte == b'/' || byte == b'\\').map(<[u8]>::to_vec).collect()
}

fn decoded_once(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = path;
    while let Some(&byte) = rest.first() {
        let digits = rest.get(1..3).filter(|digits| byte == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        match digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()) {
            Some(meant) => {
                out.push(meant);
                rest = &rest[3..];
            }
            None => {
                out.push(byte);
                rest = &rest[1..];
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_normal_form_is_stable_and_hides_nothing(raw in paths(), options in any_options()) {
        let mut scratch = Vec::new();
        if let Ok(normal) = normal_form(raw.as_bytes(), options, &mut scratch) {
            let path = normal.path();
            prop_assert!(path.starts_with(b"/"));
            for rounds in 0..5 {
                let segments = segments_after(path, rounds);
                prop_assert!(
                    !segments.iter().any(|segment| segment == b"." || segment == b".."),
                    "{raw} after {rounds} rounds",
                );
            }
            let upper = path.to_ascii_uppercase();
            prop_assert!(!upper.windows(3).any(|code| code == b"%2E" || code == b"%00"));
            prop_assert!(!options.merge_slashes || !path.windows(2).any(|pair| pair == b"//"));

            let mut second = Vec::new();
            let again = normal_form(normal.target(), options, &mut second).expect("a normal form has one");
            prop_assert_eq!(again.target(), normal.target());
            prop_assert!(!again.is_rewritten());
        }
    }

    #[test]
    fn any_bytes_have_a_normal_form_or_a_refusal(
        raw in prop::collection::vec(any::<u8>(), 0..64),
        options in any_options(),
    ) {
        let mut scratch = Vec::new();
        if let Ok(normal) = normal_form(&raw, options, &mut scratch) {
            prop_assert_eq!(normal.is_rewritten(), normal.target() != raw);
        }
    }
}
