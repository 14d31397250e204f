//! WebSocket frames: where they end, however their bytes arrive.

use pointsman_http::{Frames, GOING_AWAY};
use proptest::prelude::*;

/// A frame with its length in the shortest form, as RFC 6455 section 5.2 has it.
fn frame(first: u8, mask: Option<[u8; 4]>, payload: &[u8]) -> Vec<u8> {
    let marked = if mask.is_some() { 0x80 } else { 0 };
    let mut bytes = vec![first];
    match payload.len() {
        short @ 0..=125 => bytes.push(marked | u8::try_from(short).expect("short")),
        long @ 126..=0xffff => {
            bytes.push(marked | 126);
            bytes.extend(u16::try_from(long).expect("two bytes").to_be_bytes());
        }
        longer => {
            bytes.push(marked | 127);
            bytes.extend((longer as u64).to_be_bytes());
        }
    }
    bytes.extend(mask.unwrap_or_default().iter().take(if mask.is_some() { 4 } else { 0 }));
    bytes.extend(payload);
    bytes
}

fn after(bytes: &[u8]) -> Frames {
    let mut frames = Frames::default();
    frames.feed(bytes);
    frames
}

/// The examples of RFC 6455 section 5.7: each prefix of them ends amid a frame, and each of them at a border.
#[test]
fn the_examples_of_the_standard_end_where_they_end() {
    let binary = |length: usize| frame(0x82, None, &vec![7; length]);
    let examples: [&[u8]; 8] = [
        b"\x81\x05Hello",
        b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58",
        b"\x01\x03Hel",
        b"\x80\x02lo",
        b"\x89\x05Hello",
        b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58",
        &binary(256),
        &binary(65_536),
    ];
    for example in examples {
        for end in 1..example.len() {
            assert!(!after(&example[..end]).is_at_border(), "{end} of {:?}", &example[..2]);
        }
        assert!(after(example).is_at_border());
    }
    assert!(after(b"").is_at_border());
}

#[test]
fn what_is_no_frame_has_no_end() {
    let bad: [&[u8]; 3] = [b"\x82\x7f\x80\0\0\0\0\0\0\0", b"\x09\0", b"\x89\x7e\0\x7e"];
    for bytes in bad {
        let mut frames = after(bytes);
        assert!(!frames.is_followed() && frames.unseen_bytes_max() == u64::MAX, "{bytes:?}");
        frames.feed(b"\x81\0");
        frames.pass(u64::MAX);
        assert!(!frames.is_at_border(), "{bytes:?}");
    }
    // Nothing follows a Close frame, and so does no other one.
    assert!(after(b"\x88\0").is_followed() && !after(b"\x88\0").is_at_border());
    assert!(!after(&GOING_AWAY).is_at_border() && after(&GOING_AWAY).unseen_bytes_max() == 0);
}

proptest! {
    /// Frames end where they were made to end, in whatever pieces they come, seen or not.
    #[test]
    fn borders_are_where_frames_were_joined(
        made in prop::collection::vec((any::<bool>(), any::<Option<[u8; 4]>>(), 0_usize..70_000), 1..6),
        piece in 1_usize..5000,
    ) {
        let mut frames = Frames::default();
        for (is_last, mask, length) in made {
            prop_assert!(frames.is_at_border());
            let bytes = frame(if is_last { 0x82 } else { 0x02 }, mask, &vec![0xff; length]);
            let mut left = &bytes[..];
            while !left.is_empty() {
                prop_assert!(left.len() == bytes.len() || !frames.is_at_border());
                let unseen = usize::try_from(frames.unseen_bytes_max()).expect("small").min(left.len());
                if unseen > piece {
                    frames.pass(unseen as u64);
                    left = &left[unseen..];
                } else {
                    let (now, later) = left.split_at(piece.min(left.len()));
                    frames.feed(now);
                    left = later;
                }
            }
        }
        prop_assert!(frames.is_at_border());
    }

    #[test]
    fn any_bytes_in_any_pieces_come_to_the_same(bytes: Vec<u8>, piece in 1_usize..20) {
        let mut frames = Frames::default();
        bytes.chunks(piece).for_each(|piece| frames.feed(piece));
        let whole = after(&bytes);
        prop_assert_eq!(frames.is_at_border(), whole.is_at_border());
        prop_assert_eq!(frames.unseen_bytes_max(), whole.unseen_bytes_max());
    }
}
