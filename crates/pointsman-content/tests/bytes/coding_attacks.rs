//! Bombs, and bytes that no encoder writes: they take bounded time and room, and nothing panics.

use std::time::{Duration, Instant};

use pointsman_content::{Cause, Coding};

use crate::coding::{CODINGS, decode, encode};
use crate::heard::cut;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
/// What may come out of a bomb.
const ALLOWED: usize = 64 * KIB;

#[test]
fn bombs_end_at_the_limit() {
    let bomb = vec![0; 4 * MIB];
    for (list, coding) in CODINGS {
        let body = encode(coding, &bomb, 9);
        assert!(body.len() < bomb.len() / 500, "{list}: {}", body.len());
        let (content, decoded) = decode(list, ALLOWED as u64, [&body[..]]);
        // None of a Brotli meta-block comes that is longer than may come.
        let expected = if coding == Coding::Brotli { 0 } else { ALLOWED };
        assert_eq!(
            (content.len(), decoded.map_err(|fault| fault.cause)),
            (expected, Err(Cause::Limit)),
            "{list}"
        );
    }
}

/// A last meta-block of Brotli with a command that takes no bits: five literals that are one, and two more copied from four
/// before (RFC 7932 section 9.2). `times` 7 is what it means, at most 16 MiB.
fn commands_without_bits(times: usize) -> Vec<u8> {
    let nibbles = if 7 * times > 1 << 16 { 6 } else { 4 };
    let fields = [
        // The window; last, not empty, and so long.
        (0b1111, 4),
        (0b01, 2),
        (nibbles - 4, 2),
        (7 * times - 1, 4 * nibbles),
        // One type of each block, plain distances, one context mode and tree of each.
        (0, 3 + 6 + 2 + 2),
        // Three prefix codes of one symbol.
        (1, 4),
        (usize::from(b'a'), 8),
        (1, 4),
        (5 << 3, 10),
        (1, 4),
        (0, 6),
    ];
    let (mut bits, mut count) = (0_u128, 0_usize);
    for (value, width) in fields {
        bits |= (value as u128) << count;
        count += width;
    }
    bits.to_le_bytes()[..count.div_ceil(8)].to_vec()
}

/// What may come out of so many bytes.
fn out_of(body_bytes: usize) -> usize {
    256 * KIB + 100 * body_bytes.next_multiple_of(256)
}

#[test]
fn what_is_much_of_little_is_refused_before_it_is_decoded() {
    let (small, _) = decode("br", u64::MAX, [&commands_without_bits(4500)[..]]);
    assert!(small == b"a".repeat(7 * 4500), "the bomb is a stream, but means {} bytes", small.len());
    let mut bombs = vec![("br".to_owned(), commands_without_bits(16 * MIB / 7))];
    for (list, coding) in CODINGS {
        let body = encode(coding, &vec![0; 4 * MIB], 9);
        bombs.extend(CODINGS.map(|(outer, coding)| (format!("{list}, {outer}"), encode(coding, &body, 9))));
        bombs.push((list.to_owned(), body));
    }
    for (list, body) in &bombs {
        let whole = decode(list, u64::MAX, [&body[..]]);
        assert_eq!(whole.1.map_err(|fault| fault.cause), Err(Cause::Limit), "{list}");
        assert!(whole.0.len() <= out_of(body.len()), "{list}: {}", whole.0.len());
        for piece in [1, 7, 255, 256, 257, 1000] {
            let pieces = decode(list, u64::MAX, cut(body, &[piece]));
            assert!(pieces == whole, "{list} in pieces of {piece}: {:?}, {:?}", pieces.1, whole.1);
        }
    }
    // It takes the work of nothing: many of them are refused in the time of a few.
    let start = Instant::now();
    for _ in 0..1000 {
        decode("br", u64::MAX, [&bombs[0].1[..]]).1.expect_err("a bomb");
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn what_is_written_is_no_bomb() {
    let mut numbers = Numbers(3);
    let mut ratios = Vec::new();
    for digits in [9, 4] {
        let mut text = Vec::new();
        while text.len() < MIB {
            let order = numbers.below(10_usize.pow(digits));
            let line = format!(
                "{{\"order\": {order}, \"customer\": {{\"name\": \"CCL\", \"country\": \"US\", \"is_regular\": true}}, \
                 \"currency\": \"USD\", \"status\": \"waits for payment\", \"items\": [], \"remarks\": null}},\n"
            );
            text.extend_from_slice(line.as_bytes());
        }
        for (list, coding) in CODINGS {
            for level in [1, 9] {
                let body = encode(coding, &text, level);
                ratios.push(text.len() / body.len());
                for piece in [usize::MAX, 1, 1000] {
                    let (content, decoded) = decode(list, u64::MAX, cut(&body, &[piece]));
                    assert_eq!((content == text, decoded), (true, Ok(())), "{list}, {ratios:?}");
                }
            }
        }
        // What waits in the second coding goes on with the last bytes of the first.
        let body = encode(Coding::Gzip, &encode(Coding::Brotli, &text, 9), 9);
        for piece in [usize::MAX, 1, 256] {
            let (content, decoded) = decode("br, gzip", u64::MAX, cut(&body, &[piece]));
            assert_eq!((content == text, decoded), (true, Ok(())), "in pieces of {piece}");
        }
    }
    assert!(ratios.iter().any(|ratio| (40..100).contains(ratio)), "{ratios:?}");
}

#[test]
fn bombs_within_bombs_end_at_the_limit() {
    let bomb = vec![0; 8 * MIB];
    let inner = encode(Coding::Gzip, &bomb, 9);
    for (list, coding) in CODINGS {
        let body = encode(coding, &inner, 9);
        let list = format!("gzip, {list}");
        let (content, decoded) = decode(&list, ALLOWED as u64, [&body[..]]);
        assert_eq!(
            (content.len(), decoded.map_err(|fault| fault.cause)),
            (ALLOWED, Err(Cause::Limit)),
            "{list}"
        );
    }
    // Nothing comes out of it at all, but the first coding makes much of little.
    let nothing = encode(Coding::Gzip, b"", 9).repeat(20_000);
    let body = encode(Coding::Brotli, &nothing, 5);
    let (content, decoded) = decode("gzip, br", ALLOWED as u64, [&body[..]]);
    assert_eq!((content.len(), decoded.map_err(|fault| fault.cause)), (0, Err(Cause::Limit)));
}

/// The time that `body` takes, which comes in pieces of so many bytes.
fn time_of(list: &str, body: &[u8], piece: usize) -> Duration {
    let start = Instant::now();
    let (_, decoded) = decode(list, u64::MAX, cut(body, &[piece]));
    assert_eq!(decoded, Ok(()), "{list}");
    start.elapsed()
}

/// Streams that are all overhead: each of their bytes takes work, and none means anything.
#[test]
fn streams_of_nothing_take_time_that_grows_with_them() {
    const STREAM: usize = 128 * KIB;
    let frame_of_nothing = [0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3, 1, 0, 0];
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0];
    let mut blocks_of_nothing = [0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3].to_vec();
    blocks_of_nothing.extend([0, 0, 0].repeat(STREAM / 3));
    blocks_of_nothing.extend([1, 0, 0]);
    for (list, body) in [
        ("gzip", encode(Coding::Gzip, b"", 9).repeat(STREAM / 20)),
        ("gzip", encode(Coding::Gzip, b"a", 9).repeat(STREAM / 21)),
        ("zstd", frame_of_nothing.repeat(STREAM / 9)),
        ("zstd", [&skippable.repeat(STREAM / 8)[..], &frame_of_nothing].concat()),
        ("zstd", blocks_of_nothing),
    ] {
        for piece in [usize::MAX, 1] {
            let time = time_of(list, &body, piece);
            assert!(time < Duration::from_secs(20), "{list} in pieces of {piece}: {time:?}");
        }
    }
}

/// How many bodies are tried with each coding; more by an environment variable, for those who wait.
fn inputs() -> u64 {
    std::env::var("POINTSMAN_FUZZ_INPUTS").ok().and_then(|inputs| inputs.parse().ok()).unwrap_or(50)
}

/// Numbers that are as good as random, and the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % end.max(1)
    }
}

#[test]
fn changed_streams_are_read_or_refused() {
    let mut numbers = Numbers(7);
    for round in 0..inputs() {
        for (list, coding) in CODINGS {
            let mut content = Vec::new();
            for _ in 0..numbers.below(5) {
                let word: Vec<u8> =
                    (0..1 + numbers.below(300)).map(|_| numbers.below(256) as u8 & 0x5f).collect();
                content.extend(word.repeat(1 + numbers.below(40)));
            }
            let mut body = encode(coding, &content, round as u32);
            for _ in 0..1 + numbers.below(3) {
                let at = numbers.below(body.len());
                match numbers.below(4) {
                    0 => body[at] = numbers.below(256) as u8,
                    1 => body[at] ^= 1 << numbers.below(8),
                    2 => body.truncate(at + 1),
                    _ => {
                        let from = numbers.below(body.len());
                        let moved =
                            body[from..].iter().take(1 + numbers.below(9)).copied().collect::<Vec<_>>();
                        body.splice(at..at, moved);
                    }
                }
            }
            let whole = decode(list, MIB as u64, [&body[..]]);
            let piece = 1 + numbers.below(50);
            let pieces = decode(list, MIB as u64, cut(&body, &[piece]));
            let cause = |decoded: Result<(), pointsman_content::Fault>| decoded.map_err(|fault| fault.cause);
            assert_eq!(cause(whole.1), cause(pieces.1), "{list} {}", body.escape_ascii());
            let (short, long) =
                if whole.0.len() < pieces.0.len() { (whole.0, pieces.0) } else { (pieces.0, whole.0) };
            assert!(long.starts_with(&short), "{list} {}", body.escape_ascii());
        }
    }
}
