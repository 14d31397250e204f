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
        assert_eq!(
            (content.len(), decoded.map_err(|fault| fault.cause)),
            (ALLOWED, Err(Cause::Limit)),
            "{list}"
        );
    }
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
