//! WebSocket frames that go by: where they end does not depend on how they come, and is where a slow reading has it.

use pointsman_http::Frames;

use crate::random::cuts;

pub(crate) const TOKENS: &[&str] = &[
    "\u{1}\u{5}hello",
    "\0\0",
    "\0\u{7e}\0\u{7e}",
    "\u{7f}\0\0\0\0\0\u{1}\0\0",
    "\u{9}\0",
    "\u{a}\u{1}x",
    "\u{8}\u{2}\u{3}",
    "\u{7e}",
    "\u{7f}",
    "abcd",
];

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    for cut in cuts(input, input.len()) {
        let (seen, rest) = input.split_at(cut);
        let mut frames = Frames::default();
        frames.feed(seen);
        assert_eq!(standing(&frames), slow(seen), "behind {cut} bytes");
        // Some of what nobody has to see goes by unseen.
        let unseen = usize::try_from(frames.unseen_bytes_max()).unwrap_or(usize::MAX).min(rest.len());
        for unseen in [unseen, unseen / 2] {
            let mut frames = frames.clone();
            frames.pass(unseen as u64);
            frames.feed(&rest[unseen..]);
            assert_eq!(standing(&frames), slow(input), "{unseen} bytes unseen behind {cut}");
        }
    }
    let mut frames = Frames::default();
    input.chunks(1).for_each(|byte| frames.feed(byte));
    assert_eq!(standing(&frames), slow(input), "byte by byte");
}

/// Whether another frame may follow here, and how many bytes of this one are still to come: nothing where nobody knows.
type Standing = (bool, Option<u64>);

fn standing(frames: &Frames) -> Standing {
    (frames.is_at_border(), frames.is_followed().then(|| frames.unseen_bytes_max()))
}

/// RFC 6455 section 5.2, frame by frame.
fn slow(bytes: &[u8]) -> Standing {
    let (mut rest, mut has_closed) = (bytes, false);
    while let [first, second, behind @ ..] = rest {
        let (extended, short) = match second % 128 {
            126 => (2, 0),
            127 => (8, 0),
            short => (0, u64::from(short)),
        };
        let head_bytes = extended + if *second >= 128 { 4 } else { 0 };
        if behind.len() < head_bytes {
            return (false, Some(0));
        }
        let payload = behind[..extended].iter().fold(short, |sum, byte| sum << 8 | u64::from(*byte));
        let (is_final, opcode) = (*first >= 128, first % 16);
        if payload >= 1 << 63 || opcode >= 8 && (!is_final || payload > 125) {
            return (false, None);
        }
        has_closed |= opcode == 8;
        let there = (behind.len() - head_bytes) as u64;
        if there < payload {
            return (false, Some(payload - there));
        }
        rest = &behind[head_bytes + payload as usize..];
    }
    (rest.is_empty() && !has_closed, Some(0))
}
