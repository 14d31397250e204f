//! Agents that are played by the tests: their clocks differ, they get lost, and they never come to an end.

use std::io::Write;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pointsman_measure::report::Document;
use pointsman_measure::verdict::Colour;

use super::super::tests::{link, part, plan as some_plan, sockets};
use super::*;

fn plan() -> Plan {
    Plan { warm_up: Duration::ZERO, timeout: Duration::from_millis(100), ..some_plan() }
}

/// A whole part of the plan, or the beginning of one.
fn came(times_ns: &[u64], batches: usize) -> Message {
    let mut part = part(times_ns);
    part.record.answered = part.record.due;
    part.record.batches.iter_mut().for_each(|batch| batch.completed = 7);
    part.cut_to(batches);
    Message::Done(Box::new(part))
}

/// Gets ready with a clock that is so far ahead, and says when load is to begin by it.
fn begin(link: &mut Link, ahead_ns: i64) -> u64 {
    let is_errand = matches!(link.expect(SILENCE_MAX).expect("a plan"), Message::Errand(_));
    assert!(is_errand);
    link.send(&Message::Ready).expect("it listens");
    loop {
        match link.expect(SILENCE_MAX).expect("a word") {
            Message::Ping => {
                let now_ns = now_ns().wrapping_add_signed(ahead_ns);
                link.send(&Message::Pong { now_ns }).expect("it listens");
            }
            Message::Start { begin_ns } => return begin_ns,
            Message::Beat => {}
            other => panic!("{other:?}"),
        }
    }
}

fn progress(at_seconds: f64, rate: f64) -> Message {
    let progress = Progress { at_seconds, of_seconds: 1.0, rate, failed_rate: 2.0, ..Progress::default() };
    Message::Progress(progress)
}

type Played<'e> = Box<dyn FnOnce(&mut Link) + Send + 'e>;

/// What comes of agents that behave so; the name of each is its number.
fn run(plays: Vec<Played<'_>>) -> Result<Outcome, Fault> {
    run_of(&plan(), plays)
}

fn run_of(plan: &Plan, plays: Vec<Played<'_>>) -> Result<Outcome, Fault> {
    let names: Vec<String> = (0..plays.len()).map(|index| index.to_string()).collect();
    std::thread::scope(|scope| {
        let mut ours = Vec::new();
        for play in plays {
            let (near, far) = sockets();
            ours.push(link(near));
            scope.spawn(move || play(&mut link(far)));
        }
        carry_out(plan, &names, ours.iter_mut().collect(), &mut |_| {})
    })
}

/// Waits until the others' load is to end.
fn until_cut(link: &mut Link) {
    while !matches!(link.attend(SILENCE_MAX).expect("it is there"), Some(Message::Cut)) {}
}

#[test]
fn all_begin_at_one_moment_whatever_their_clocks_say() {
    let begins = std::sync::Mutex::new(Vec::new());
    let behind = -(now_ns() as i64) + 5 * SECOND_NS as i64;
    let play = |ahead_ns: i64| -> Played<'_> {
        let begins = &begins;
        Box::new(move |link: &mut Link| {
            let begin_ns = begin(link, ahead_ns);
            begins.lock().expect("nobody broke off").push(begin_ns.wrapping_add_signed(-ahead_ns));
            link.send(&came(&[1_000_000], 10)).expect("it listens");
        })
    };
    let outcome = run(vec![play(1 << 60), play(behind), play(0)]).expect("they are there");
    let begins = begins.into_inner().expect("nobody broke off");
    let (first, last) = (begins.iter().min().expect("three"), begins.iter().max().expect("three"));
    let known_to = outcome.agents.iter().map(|agent| agent.clock.known_to_s()).fold(0.0, f64::max);
    assert!((last - first) as f64 / 1e9 <= 2.0 * known_to, "{begins:?}, known to {known_to}");
    assert_eq!((outcome.record.due, outcome.seconds, outcome.voids.len()), (3, 1.0, 0));
    assert!(
        (outcome.rate() - 210.0).abs() < 1e-9,
        "7 in each tenth of a second, of three: {}",
        outcome.rate()
    );
    // Their walls have clocks, too: each says that it began in 1970.
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).expect("later than 1970").as_secs();
    assert!((unix - 60..=unix + 1).contains(&outcome.began_unix_s), "{}", outcome.began_unix_s);
}

#[test]
fn what_came_before_an_agent_was_lost_is_told() {
    let stays: Played<'_> = Box::new(|link| {
        begin(link, 0);
        link.send(&progress(1.0, 20.0)).expect("it listens");
        until_cut(link);
        link.send(&came(&[1_000_000, 2_000_000], 3)).expect("it listens");
    });
    let goes: Played<'_> = Box::new(|link| {
        begin(link, 0);
        link.send(&progress(1.0, 40.0)).expect("it listens");
        link.send(&progress(3.0, 10.0)).expect("it listens");
    });
    let outcome = run(vec![stays, goes]).expect("it was begun");
    let [lost] = outcome.lost.as_slice() else { panic!("{:?}", outcome.lost) };
    assert_eq!((lost.name.as_str(), lost.answered, lost.failed, lost.told_s), ("1", 60, 6, 3.0));
    let [void] = outcome.voids.as_slice() else { panic!("{:?}", outcome.voids) };
    assert!(void.sentence.starts_with("agent `1` was lost "), "{}", void.sentence);
    assert!(
        void.sentence.ends_with("it had told of 3 s, warm-up and all: 60 answered, 6 failed"),
        "{}",
        void.sentence
    );
    // Rates are of the time that there was.
    assert_eq!((outcome.record.due, outcome.agents.len(), outcome.record.batches.len()), (2, 1, 3));
    assert!((outcome.rate() - 70.0).abs() < 1e-9, "{}", outcome.rate());
    let run = outcome.report("void");
    assert_eq!((run.colour, run.reasons[0] == void.sentence), (Colour::Red, true));
    let titles: Vec<&str> = run.tables.iter().map(|table| table.title.as_str()).collect();
    assert!(titles.contains(&"Agents") && titles.contains(&"Agents that were lost"), "{titles:?}");
    let all = run.outcome.expect("everything");
    assert_eq!((&all["lost_agents"][0]["answered"], &all["agents"][0]["name"]), (&60.into(), &"0".into()));
    assert_eq!(all["times_ns"]["response"]["count"], 2);
}

#[test]
fn a_run_whose_agents_are_all_lost_is_told_too() {
    let goes = || -> Played<'_> {
        Box::new(|link| {
            begin(link, 0);
            link.send(&progress(1.0, 40.0)).expect("it listens");
        })
    };
    let outcome = run(vec![goes(), goes()]).expect("it was begun");
    assert_eq!((outcome.lost.len(), outcome.voids.len(), outcome.agents.len()), (2, 2, 0));
    assert_eq!((outcome.rate(), outcome.record.due), (0.0, 0));
    let run = outcome.report("void");
    assert_eq!(run.colour, Colour::Red);
    let document = Document { title: "t".into(), runs: vec![run] };
    let again = Document::from_json(&document.to_json().to_string());
    assert_eq!(again, Ok(document), "no number in it is none");
}

#[test]
fn who_says_what_it_should_not_is_lost() {
    let play = |word: fn(&mut Link)| -> Vec<Played<'_>> {
        let stays: Played<'_> = Box::new(|link| {
            begin(link, 0);
            until_cut(link);
            link.send(&came(&[], 0)).expect("it listens");
        });
        let odd: Played<'_> = Box::new(move |link| {
            begin(link, 0);
            word(link);
            // It hears no more.
            while link.attend(SILENCE_MAX).is_ok() {}
        });
        vec![stays, odd]
    };
    // Part of another plan, one that is not whole though nobody has asked for it, a second readiness, and words without an end.
    let words: [fn(&mut Link); 4] = [
        |link| {
            let mut other = part(&[]);
            other.record.statuses.pop();
            link.send(&Message::Done(Box::new(other))).expect("it listens");
        },
        |link| link.send(&came(&[], 9)).expect("it listens"),
        |link| link.send(&Message::Ready).expect("it listens"),
        |link| while link.send(&progress(1.0, 1.0)).is_ok() {},
    ];
    for word in words {
        let outcome = run(play(word)).expect("it was begun");
        assert_eq!((outcome.lost.len(), outcome.lost[0].name.as_str()), (1, "1"), "{:?}", outcome.lost);
    }
}

#[test]
fn who_goes_on_and_never_says_what_came_of_it_is_lost() {
    let goes_on: Played<'_> = Box::new(|link| {
        begin(link, 0);
        // It is there, and beats.
        while link.attend(Duration::from_millis(20)).is_ok() {}
    });
    let plan = plan();
    let outcome = run_of(&plan, vec![goes_on]).expect("it was begun");
    assert!(plan.numbers.given() >= 1 << 40, "nobody knows how many it gave");
    assert!(
        outcome.lost[0].why.ends_with("behind the end it had not said what came of it"),
        "{:?}",
        outcome.lost
    );
}

#[test]
fn a_frame_without_an_end_is_waited_for_no_longer_than_one_that_does_not_come() {
    let (near, mut far) = sockets();
    let mut near = link(near);
    let goes_on = std::thread::spawn(move || {
        // A length of 251 MB, byte by byte.
        far.write_all(&[0x0f, 0, 0, 0]).expect("it listens");
        while far.write_all(b" ").is_ok() {}
    });
    let since = Instant::now();
    for _ in 0..3 {
        assert!(near.receive(Duration::from_millis(20)).is_ok_and(|frame| frame.is_none()));
    }
    assert!(near.expect(Duration::from_millis(50)).is_err());
    assert!(since.elapsed() < SILENCE_MAX, "{:?}", since.elapsed());
    drop(near);
    goes_on.join().expect("it ends with the connection");
}
