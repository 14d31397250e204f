//! What a server may send is taken or refused, and no request is lost on the way.

use std::sync::Arc;

use super::flood::IDLE_MAX;
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
    http2.reset(streams, 0);
    (0..count).for_each(|number| http2.ask(Job { number: number as u64, begun_ns: 5, ..Job::new(0) }));
    http2.write(5, &mut turn);
    (http2, turn)
}

fn fed(http2: &mut Http2, turn: &mut Turn, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Wrong> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    http2.feed(&bytes, 9, turn)
}

/// Bytes of content among what is to be sent.
fn content(out: &[u8]) -> i64 {
    let at = if out.starts_with(PREFACE) { PREFACE.len() } else { 0 };
    let (mut cutter, mut bytes, mut sum) = (Cutter::default(), &out[at..], 0);
    while let Some(piece) = cutter.next(&mut bytes).expect("our own frames") {
        if let Piece::Data(_, Part { bytes: count, .. }) = piece {
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
fn only_what_is_late_is_cut_and_a_silent_connection_takes_no_more() {
    let jobs = |http2: &mut Http2| {
        for (number, begun_ns) in [(1, 20), (2, 50), (3, 20), (4, 60)] {
            http2.ask(Job { number, begun_ns, ..Job::new(0) });
        }
    };
    let numbers = |jobs: &mut dyn Iterator<Item = Job>| jobs.map(|job| job.number).collect::<Vec<_>>();
    // Opened behind what is late by now, heard behind it, and silent since.
    for (opened_ns, heard_ns, goes_on) in [(31, None, true), (10, Some(40), true), (10, None, false)] {
        let (_, mut turn) = begun(0, 0);
        let mut http2 = Http2::default();
        http2.reset(2, opened_ns);
        jobs(&mut http2);
        http2.write(opened_ns, &mut turn);
        if let Some(heard_ns) = heard_ns {
            let mut settings = Vec::new();
            write_settings(&mut settings, &[]);
            http2.feed(&settings, heard_ns, &mut turn).expect("fine");
        }
        http2.cut_late(30, &mut turn);
        let failed = turn.failed.iter().inspect(|(_, kind)| assert_eq!(*kind, ErrorKind::Timeout));
        assert_eq!(numbers(&mut failed.map(|(job, _)| *job)), [1, 3]);
        assert_eq!(http2.goes_on(), goes_on, "{opened_ns} {heard_ns:?}");
        let elsewhere: &[u64] = if goes_on { &[] } else { &[4] };
        assert_eq!(numbers(&mut turn.refused.iter().copied()), elsewhere);
        assert_eq!(http2.len() + elsewhere.len(), 2, "what was sent waits until it is late");
    }
    // The same before it is open.
    let (_, mut turn) = begun(0, 0);
    let mut http2 = Http2::default();
    http2.reset(2, 10);
    jobs(&mut http2);
    http2.cut_late(30, &mut turn);
    assert_eq!((turn.failed.len(), turn.refused.len(), http2.len()), (2, 2, 0));
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

/// Heads that come before an answer and those that do not.
#[test]
fn an_upgrade_is_no_interim_answer() {
    for (status, is_taken) in [(b"100", true), (b"101", false), (b"102", true), (b"103", true)] {
        let (mut http2, mut turn) = begun(1, 1);
        fed(&mut http2, &mut turn, |out| write_settings(out, &[])).expect("fine");
        let head = [&[0x08, 3][..], status].concat();
        let outcome =
            fed(&mut http2, &mut turn, |out| write(out, kind::HEADERS, flag::END_HEADERS, 1, &head));
        assert_eq!(outcome, if is_taken { Ok(()) } else { Err(Wrong::Broken) }, "{head:?}");
        let outcome = outcome.and_then(|()| {
            let flags = flag::END_HEADERS | flag::END_STREAM;
            fed(&mut http2, &mut turn, |out| write(out, kind::HEADERS, flags, 1, &[0x88]))
        });
        assert_eq!((outcome.is_ok(), turn.done.len()), (is_taken, usize::from(is_taken)), "{head:?}");
    }
}

#[test]
fn frames_that_bring_nothing_come_to_an_end() {
    type Write = fn(&mut Vec<u8>);
    let ping: Write = |out| write(out, kind::PING, 0, 0, &[0; 8]);
    let floods: [(&str, Write); 10] = [
        ("pings", ping),
        ("pings answered", |out| write(out, kind::PING, flag::ACK, 0, &[0; 8])),
        ("settings", |out| write_settings(out, &[])),
        ("settings with much to do", |out| write_settings(out, &[(setting::INITIAL_WINDOW_SIZE, 9); 2_000])),
        ("empty data", |out| write(out, kind::DATA, 0, 1, &[])),
        ("data that is padding", |out| write(out, kind::DATA, flag::PADDED, 1, &[3, 0, 0, 0])),
        ("windows", |out| write_number(out, kind::WINDOW_UPDATE, 0, 1)),
        ("resets of what has ended", |out| write_number(out, kind::RST_STREAM, 1, code::CANCEL)),
        ("interim answers", |out| {
            write(out, kind::HEADERS, flag::END_HEADERS, 3, &[0x08, 3, b'1', b'0', b'3'])
        }),
        ("what nobody knows", |out| write(out, 0xfa, 0, 0, &[])),
    ];
    for (name, flood) in floods {
        let (mut http2, mut turn) = begun(2, 2);
        fed(&mut http2, &mut turn, |out| write_settings(out, &[])).expect("fine");
        let head = |out: &mut Vec<u8>| write(out, kind::HEADERS, flag::END_HEADERS, 1, &[0x88]);
        fed(&mut http2, &mut turn, head).expect("fine");
        if name.starts_with("resets") {
            fed(&mut http2, &mut turn, flood).expect("the first ends it");
        }
        let mut some = Vec::new();
        (0..64).for_each(|_| flood(&mut some));
        let ends = (0..IDLE_MAX).find_map(|_| {
            turn.out.clear();
            http2.feed(&some, 9, &mut turn).err()
        });
        assert_eq!(ends, Some(Wrong::Flooded), "{name}");
        assert!(turn.out.len() < 4_000_000, "{name}: {}", turn.out.len());
    }
    // A block that goes on with nothing.
    let (mut http2, mut turn) = begun(1, 1);
    fed(&mut http2, &mut turn, |out| write_settings(out, &[])).expect("fine");
    fed(&mut http2, &mut turn, |out| write(out, kind::HEADERS, 0, 1, &[0x88])).expect("fine");
    let ends = (0..=IDLE_MAX)
        .find_map(|_| fed(&mut http2, &mut turn, |out| write(out, kind::CONTINUATION, 0, 1, &[])).err());
    assert_eq!(ends, Some(Wrong::Flooded));
    // As many beside answers and content are none.
    let (mut http2, mut turn) = begun(1, 1);
    fed(&mut http2, &mut turn, |out| write_settings(out, &[])).expect("fine");
    fed(&mut http2, &mut turn, |out| write(out, kind::HEADERS, flag::END_HEADERS, 1, &[0x88])).expect("fine");
    for _ in 0..2 * IDLE_MAX {
        fed(&mut http2, &mut turn, ping).expect("fine");
        fed(&mut http2, &mut turn, |out| write(out, kind::DATA, 0, 1, b"x")).expect("fine");
        turn.out.clear();
    }
}

#[test]
fn windows_grow_as_often_as_bodies_need_it() {
    let (mut http2, mut turn) = begun(400, 400);
    fed(&mut http2, &mut turn, |out| write_settings(out, &[])).expect("fine");
    // Some 28 MB, for a kilobyte of which each window grows.
    for _ in 0..28_000 {
        fed(&mut http2, &mut turn, |out| write_number(out, kind::WINDOW_UPDATE, 0, 1_000)).expect("fine");
        turn.out.clear();
    }
}

#[test]
fn a_head_without_an_end_is_refused() {
    let (mut http2, mut turn) = begun(1, 1);
    fed(&mut http2, &mut turn, |out| write_settings(out, &[])).expect("fine");
    fed(&mut http2, &mut turn, |out| write(out, kind::HEADERS, 0, 1, &[0x88])).expect("fine");
    let more =
        (0..17).map(|_| fed(&mut http2, &mut turn, |out| write(out, kind::CONTINUATION, 0, 1, &[0; 16_384])));
    assert_eq!(more.last(), Some(Err(Wrong::Broken)));
}
