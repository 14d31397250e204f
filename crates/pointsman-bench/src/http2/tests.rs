//! What a server may send is taken or refused, and no request is lost on the way.

use std::sync::Arc;

use super::frames::{FIRST_WINDOW, flag, kind, setting, write, write_goaway, write_number, write_settings};
use super::*;
use crate::request::Requests;
use crate::{Body, Load, Plan, Protocol, Target, Url};

/// A connection with so many requests on it, each with a body larger than the first window.
fn begun(count: usize, streams: usize) -> (Http2, Turn) {
    let url = Url::parse("http://127.0.0.1/{n}").expect("a URL");
    let body = Body::Bytes(vec![b'x'; 70_000]);
    let target = Target { url, weight: 1, method: "POST".into(), headers: Vec::new(), body };
    let mut plan = Plan::new(vec![target], Load::Closed { clients: 1 });
    plan.protocol = Protocol::Http2;
    let requests = Arc::new(Requests::new(&plan).expect("good"));
    let mut turn = Turn::new(requests, fastrand::Rng::with_seed(1));
    let mut http2 = Http2::default();
    http2.reset(streams);
    (0..count).for_each(|number| http2.ask(Job { number: number as u64, begun_ns: 5, ..Job::new(0) }));
    http2.write(5, &mut turn);
    (http2, turn)
}

fn fed(http2: &mut Http2, turn: &mut Turn, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Broken> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    http2.feed(&bytes, 9, turn)
}

/// Bytes of content among what is to be sent.
fn content(out: &[u8]) -> i64 {
    let at = if out.starts_with(PREFACE) { PREFACE.len() } else { 0 };
    let (mut cutter, mut bytes, mut sum) = (Cutter::default(), &out[at..], 0);
    while let Some(piece) = cutter.next(&mut bytes).expect("our own frames") {
        if let Piece::Data(_, count, _) = piece {
            sum += count as i64;
        }
    }
    sum
}

#[test]
fn no_more_is_sent_than_windows_allow() {
    let (mut http2, mut turn) = begun(2, 2);
    assert_eq!(content(&turn.out), FIRST_WINDOW, "the connection's window is for both");
    turn.out.clear();
    fed(&mut http2, &mut turn, |out| write_settings(out, &[(setting::INITIAL_WINDOW_SIZE, 100_000)]))
        .expect("fine");
    assert_eq!(content(&turn.out), 0);
    fed(&mut http2, &mut turn, |out| write_number(out, kind::WINDOW_UPDATE, 0, 5_000)).expect("fine");
    assert_eq!(content(&turn.out), 5_000);
    turn.out.clear();
    fed(&mut http2, &mut turn, |out| write_number(out, kind::WINDOW_UPDATE, 0, 1_000_000)).expect("fine");
    assert_eq!(content(&turn.out), 140_000 - FIRST_WINDOW - 5_000);
}

#[test]
fn as_many_streams_are_open_as_both_want() {
    let (mut http2, mut turn) = begun(8, 5);
    assert_eq!((http2.session.streams.len(), http2.len()), (5, 8));
    let settings = [(setting::MAX_CONCURRENT_STREAMS, 3)];
    fed(&mut http2, &mut turn, |out| write_settings(out, &settings)).expect("fine");
    // Three have ended, and two are left: there is room for one.
    for stream in [1, 3, 5] {
        fed(&mut http2, &mut turn, |out| {
            write(out, kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, stream, &[0x88]);
        })
        .expect("fine");
    }
    assert_eq!((http2.session.streams.len(), http2.len(), turn.done.len()), (3, 5, 3));
    fed(&mut http2, &mut turn, |out| write_goaway(out, 9, 0)).expect("fine");
    assert_eq!(
        (http2.session.streams.len(), turn.refused.len()),
        (2, 3),
        "eleven and those without a stream"
    );
    assert!(!http2.goes_on());
}

#[test]
fn whatever_comes_no_request_is_lost() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut ends = [0; 4];
    for _ in 0..3_000 {
        let (mut http2, mut turn) = begun(4, 3);
        let mut outcome = fed(&mut http2, &mut turn, |out| write_settings(out, &[]));
        while outcome.is_ok() && random.u8(..) > 8 {
            // Half of it is an answer, and the rest is anything.
            if random.bool() {
                let stream = 2 * random.u32(..3) + 1;
                let flags = flag::END_HEADERS | random.u8(..2);
                outcome = fed(&mut http2, &mut turn, |out| write(out, kind::HEADERS, flags, stream, &[0x88]));
                continue;
            }
            let kind = random.u8(..11);
            let stream = if matches!(kind, 4 | 6 | 7) { 0 } else { random.u32(..9) };
            let flags = random.choice([0, 1, 4, 5, 8, 0x2c, 0x25]).expect("one");
            let length = random.choice([0, 1, 4, 5, 6, 8, 40]).expect("one");
            let payload: Vec<u8> = (0..length)
                .map(|_| random.choice([0, 1, 3, 0x20, 0x40, 0x7f, 0x82, 0x88, 0xbe, 0xff]).expect("one"))
                .collect();
            outcome = fed(&mut http2, &mut turn, |out| write(out, kind, flags, stream, &payload));
            turn.out.clear();
        }
        let left = http2.give_up().count();
        let counts = [turn.done.len(), turn.failed.len(), turn.refused.len(), left];
        assert_eq!(counts.iter().sum::<usize>(), 4, "{counts:?}");
        ends.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    }
    assert!(ends.iter().all(|count| *count > 5), "each way to end was gone: {ends:?}");
}

#[test]
fn a_server_that_only_asks_for_acknowledgements_is_left() {
    let (mut http2, mut turn) = begun(1, 1);
    fed(&mut http2, &mut turn, |out| write_settings(out, &[])).expect("fine");
    let pings =
        (0..ACKS_MAX + 1).map(|_| fed(&mut http2, &mut turn, |out| write(out, kind::PING, 0, 0, &[0; 8])));
    assert_eq!(pings.last(), Some(Err(Broken)));
}

#[test]
fn a_head_without_an_end_is_refused() {
    let (mut http2, mut turn) = begun(1, 1);
    fed(&mut http2, &mut turn, |out| write_settings(out, &[])).expect("fine");
    fed(&mut http2, &mut turn, |out| write(out, kind::HEADERS, 0, 1, &[0x88])).expect("fine");
    let more =
        (0..17).map(|_| fed(&mut http2, &mut turn, |out| write(out, kind::CONTINUATION, 0, 1, &[0; 16_384])));
    assert_eq!(more.last(), Some(Err(Broken)));
}
