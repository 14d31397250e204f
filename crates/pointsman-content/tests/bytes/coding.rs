//! Content codings: vectors, and what the encoders of others write.

use pointsman_content::{Cause, Coding, ContentDecoder, Fault};
use proptest::prelude::*;

use crate::heard::{cut, name_of};
use crate::vectors::{assert_none, cases};

/// What comes out of a body in these pieces, and what was wrong.
pub(crate) fn decode<'a>(
    list: &str,
    decoded_bytes_max: u64,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<u8>, Result<(), Fault>) {
    let mut content = Vec::new();
    let decoded = ContentDecoder::new([list.as_bytes()], decoded_bytes_max).and_then(|mut decoder| {
        let is_decoded = decoder.codings().next().is_some();
        let mut each = |piece: &[u8]| {
            assert!(!piece.is_empty() && (!is_decoded || piece.len() <= 32 * 1024));
            content.extend_from_slice(piece);
            Ok(())
        };
        let decoded = pieces
            .into_iter()
            .try_for_each(|piece| decoder.feed(piece, &mut each))
            .and_then(|()| decoder.finish());
        if let Err(fault) = decoded {
            assert_eq!(decoder.feed(b"a", &mut each), Err(fault), "a fault stays");
            assert_eq!(decoder.finish(), Err(fault), "a fault stays");
        }
        decoded
    });
    if let Err(fault) = decoded {
        assert_eq!(fault.at, content.len() as u64);
    }
    (content, decoded)
}

#[test]
fn vectors() {
    let files = ["gzip", "deflate", "br", "zstd", "lists"].map(|file| format!("coding/{file}.txt"));
    let all: Vec<_> = files.iter().flat_map(|file| cases(file)).collect();
    let mut wrong = Vec::new();
    for case in &all {
        let body = from_hex(&case.body);
        let list = String::from_utf8(case.bytes("list").unwrap_or_default()).expect("a list");
        let limit = case.number("limit").map_or(u64::MAX, u64::from);
        let mut check = |pieces: &str, (content, decoded): (Vec<u8>, Result<(), Fault>)| {
            let (outcome, content) = match decoded {
                Ok(()) => ("content".to_owned(), content),
                Err(Fault { cause: Cause::Malformed, .. }) => ("malformed".to_owned(), Vec::new()),
                Err(fault) => (format!("{} at {}", name_of(fault.cause), fault.at), Vec::new()),
            };
            let content = String::from_utf8(content).expect("text");
            let lines: Vec<String> = (!content.is_empty()).then_some(content).into_iter().collect();
            case.check(pieces, &outcome, &lines, &mut wrong);
        };
        check("whole", decode(&list, limit, [&body[..]]));
        check("bytes", decode(&list, limit, body.chunks(1)));
        for at in 0..body.len() {
            let (before, behind) = body.split_at(at);
            check(&format!("cut at {at}"), decode(&list, limit, [before, b"", behind]));
        }
    }
    assert_none(&wrong);
    assert!(all.len() >= 100, "{}", all.len());
}

fn from_hex(text: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = text.iter().copied().filter(|byte| *byte != b' ').collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(|pair| byte(pair).expect("hex digits")).collect()
}

#[test]
fn lines_of_content_encoding_are_one_list() {
    let codings = |lines: &[&str]| {
        let decoder = ContentDecoder::new(lines.iter().map(|line| line.as_bytes()), 1);
        decoder.map(|decoder| (decoder.codings().collect::<Vec<_>>(), decoder.held_bytes_max()))
    };
    let sum = Coding::Brotli.held_bytes_max() + Coding::Gzip.held_bytes_max();
    assert_eq!(codings(&["br", "gzip"]), Ok((vec![Coding::Gzip, Coding::Brotli], sum)));
    assert_eq!(codings(&["identity", " "]), Ok((vec![], 0)));
    assert_eq!(codings(&["br", "gzip", "br"]).map_err(|fault| fault.cause), Err(Cause::Limit));
}

#[test]
fn who_hears_of_content_may_stop_it() {
    let stop = Fault { cause: Cause::Limit, at: 7, what: "enough" };
    for (list, body) in [
        ("", b"abc".to_vec()),
        ("gzip", encode(Coding::Gzip, b"abc", 1)),
        ("br, gzip", encode(Coding::Gzip, &encode(Coding::Brotli, b"abc", 1), 1)),
    ] {
        let mut decoder = ContentDecoder::new([list.as_bytes()], 100).expect("known codings");
        assert_eq!(decoder.feed(&body, &mut |_| Err(stop)), Err(stop), "{list}");
        assert_eq!(decoder.finish(), Err(stop), "{list}");
    }
}

/// Content as encoders write it, at some level of theirs.
pub(crate) fn encode(coding: Coding, content: &[u8], level: u32) -> Vec<u8> {
    use std::io::Write;
    let deflate_level = flate2::Compression::new(level % 10);
    match coding {
        Coding::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), deflate_level);
            encoder.write_all(content).expect("room");
            encoder.finish().expect("room")
        }
        Coding::Deflate => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), deflate_level);
            encoder.write_all(content).expect("room");
            encoder.finish().expect("room")
        }
        Coding::Brotli => {
            let mut encoded = Vec::new();
            let window = 10 + level % 15;
            brotli::CompressorWriter::new(&mut encoded, 4096, level % 10, window)
                .write_all(content)
                .expect("room");
            encoded
        }
        Coding::Zstd => {
            let level = match level % 2 {
                0 => ruzstd::encoding::CompressionLevel::Uncompressed,
                _ => ruzstd::encoding::CompressionLevel::Fastest,
            };
            ruzstd::encoding::compress_to_vec(content, level)
        }
    }
}

pub(crate) const CODINGS: [(&str, Coding); 4] =
    [("gzip", Coding::Gzip), ("deflate", Coding::Deflate), ("br", Coding::Brotli), ("zstd", Coding::Zstd)];

/// The end of a stream may come with the last byte that there is room for.
#[test]
fn content_that_just_fills_a_piece() {
    let mut content = "four ".repeat(20_000).into_bytes();
    for bytes in [1, 32 * 1024 - 1, 32 * 1024, 32 * 1024 + 1, 64 * 1024, 96 * 1024] {
        content.resize(bytes, b'x');
        for (list, coding) in CODINGS {
            for level in [0, 1, 6] {
                let body = encode(coding, &content, level);
                let twice = [&body[..], &body].concat();
                for piece in [usize::MAX, 1000, 7] {
                    assert_eq!(
                        decode(list, u64::MAX, cut(&body, &[piece])),
                        (content.clone(), Ok(())),
                        "{list}"
                    );
                    let (both, decoded) = decode(list, u64::MAX, cut(&twice, &[piece]));
                    match coding {
                        Coding::Gzip | Coding::Zstd => {
                            assert_eq!((both.len(), decoded), (2 * bytes, Ok(())), "{list}")
                        }
                        Coding::Deflate | Coding::Brotli => {
                            assert_eq!((both.len(), decoded.is_err()), (bytes, true), "{list}");
                        }
                    }
                }
            }
        }
        content = "four ".repeat(20_000).into_bytes();
    }
}

/// Content that has something to compress, and not so much that it could be a bomb.
fn contents() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        (any::<u8>(), 0_usize..45_000).prop_map(|(byte, times)| vec![byte; times]),
        ("[a-d]{1,9}", 0_usize..4_000).prop_map(|(word, times)| word.repeat(times).into_bytes()),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn what_encoders_write_is_read_in_any_pieces(
        content in contents(),
        outer in prop::sample::select(&CODINGS[..]),
        inner in prop::option::of(prop::sample::select(&CODINGS[..])),
        level in 0_u32..100,
        pieces in prop::collection::vec(1_usize..5000, 1..5),
        spare in 0_u64..2,
    ) {
        let mut list = outer.0.to_owned();
        let mut encoded = content.clone();
        if let Some(inner) = inner {
            encoded = encode(inner.1, &encoded, level);
            list = format!("{}, {list}", inner.0);
        }
        let first_max = encoded.len() as u64;
        let encoded = encode(outer.1, &encoded, level);
        let max = first_max.max(content.len() as u64);
        prop_assert_eq!(decode(&list, max + spare, cut(&encoded, &pieces)), (content.clone(), Ok(())));
        prop_assert_eq!(decode(&list, max, cut(&encoded, &[7])), (content.clone(), Ok(())));
        // One byte less is not the content, and says so.
        let (prefix, decoded) = decode(&list, u64::MAX, cut(&encoded[..encoded.len() - 1], &pieces));
        prop_assert!(content.starts_with(&prefix));
        prop_assert_eq!(decoded.map_err(|fault| fault.cause), Err(Cause::Malformed));
        // Neither is one byte less than there are, if anything is allowed to come.
        if inner.is_none() && !content.is_empty() {
            let (prefix, decoded) = decode(&list, max - 1, cut(&encoded, &pieces));
            prop_assert_eq!(&prefix[..], &content[..content.len() - 1]);
            prop_assert_eq!(decoded.map_err(|fault| fault.cause), Err(Cause::Limit));
        }
    }
}
