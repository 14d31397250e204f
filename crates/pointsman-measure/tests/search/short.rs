//! Searches that have not as many trials as they want.

use super::*;

/// Whoever ends it: the client was in control, and the server is steady.
#[test]
fn a_search_that_is_ended_says_nothing_of_what_was_not_run() {
    let server = Server::Deterministic { capacity: 500.0 };
    let (mut without, mut with) = (0, 0);
    for trials in 0..60 {
        let mut search = Search::new(goal(100_000), 1).expect("a goal that can be");
        while search.records().len() < trials
            && let Step::Run(trial) = search.step()
        {
            search.saw(run(server, &trial));
        }
        search.end();
        match search.step() {
            Step::None(why) => {
                assert_eq!(why, NoResult::OutOfTrials, "behind {trials} trials");
                without += 1;
            }
            Step::Found(found) => {
                assert!(found.hysteresis_share.is_none_or(|share| share < 0.05), "{found:?}");
                assert!(search.missing().contains(&Phase::Peak), "behind {trials} trials it is missing");
                with += 1;
            }
            Step::Run(trial) => panic!("{trial:?}"),
        }
    }
    assert!(without > 10 && with > 10, "{without} without a result, {with} with one");
}

/// Whenever it is ended, the trial that would have been the next is of a phase that is missing.
#[test]
fn what_would_have_been_the_next_is_missing() {
    let server = Server::Deterministic { capacity: 500.0 };
    let (_, whole) = search(goal(100_000), 1, |trial| run(server, trial));
    for trials in 0..whole.records().len() {
        let mut search = Search::new(goal(100_000), 1).expect("a goal that can be");
        let next = loop {
            let Step::Run(trial) = search.step() else { panic!("{trials} trials are not all") };
            if search.records().len() == trials {
                break trial.phase;
            }
            search.saw(run(server, &trial));
        };
        search.end();
        assert!(!matches!(search.step(), Step::Run(_)));
        assert!(search.missing().contains(&next), "behind {trials} trials: {next} of {:?}", search.missing());
    }
}

#[test]
fn no_server_is_unsteady_by_trials_that_were_not_run() {
    let mut ended_early = 0;
    for seed in 0..50 {
        let (found, whole) = search(Goal::default(), seed, by_chance(pointsman_measure::Random::new(seed)));
        if found != Err(NoResult::Unsteady) {
            continue;
        }
        let mut seen = by_chance(pointsman_measure::Random::new(seed));
        let mut search = Search::new(Goal::default(), seed).expect("a goal that can be");
        for _ in 1..whole.records().len() {
            let Step::Run(trial) = search.step() else { panic!("it is as long as the other") };
            search.saw(seen(&trial));
        }
        search.end();
        let step = search.step();
        assert!(!matches!(step, Step::None(NoResult::Unsteady)), "{seed}: one confirmation is missing");
        ended_early += 1;
    }
    assert!(ended_early > 5, "{ended_early}");
}

/// A server that is steady but for a stall, which a sweep is about to show when somebody ends it.
#[test]
fn no_server_is_unsteady_whose_search_was_ended() {
    let server = Server::Deterministic { capacity: 1e6 };
    let goal = Goal { rate_min: 1_000.0, ..Goal::default() };
    let mut search = Search::new(goal, 1).expect("a goal that can be");
    let mut beyond = 0;
    while beyond < 3 {
        let Step::Run(trial) = search.step() else { panic!("it goes on") };
        let seen = run(server, &trial);
        let is_swept = trial.phase == Phase::Sweep;
        let is_stalled = trial.rate_per_s > 5_000.0 && !is_swept;
        // Its confirmation is around what was the greatest before.
        let confirmed = search.records().iter().filter(|record| record.trial.phase == Phase::Confirmation);
        let middle = confirmed.map(|record| record.trial.rate_per_s).fold(0.0, f64::max) / 1.05;
        beyond += u32::from(is_swept && trial.rate_per_s > 1.16 * middle);
        search.saw(if is_stalled { Seen { p99_us: 1_000_000, ..seen } } else { seen });
    }
    search.end();
    assert_eq!(search.step(), Step::None(NoResult::OutOfTrials));
}

#[test]
fn a_search_without_trials_says_where_it_had_none() {
    let server = Server::Deterministic { capacity: 500.0 };
    let (found, whole) = search(Goal::default(), 1, |trial| run(server, trial));
    assert!(found.is_ok_and(|found| found.peak.is_some()) && whole.missing().is_empty());
    // Some are red, and as many are missing before the last, which are kept for the peak.
    let few = Goal { trials_max: whole.records().len() as u32 + 5, ..Goal::default() };
    let mut red = 0;
    let (found, cut) = search(few, 1, |trial| {
        let is_red = trial.phase == Phase::Sweep && red < 9;
        red += u32::from(is_red);
        let control = if is_red { Colour::Red } else { Colour::Green };
        Seen { control, ..run(server, trial) }
    });
    assert!(found.is_ok_and(|found| found.peak.is_some()));
    assert_eq!(cut.missing(), [Phase::Zoom]);
    // Red ones are run again, until there are no more.
    let (found, cut) = search(Goal::default(), 1, |trial| {
        let control = if trial.phase == Phase::Sweep { Colour::Red } else { Colour::Green };
        Seen { control, ..run(server, trial) }
    });
    assert!(found.is_ok_and(|found| found.peak.is_none()));
    assert_eq!(cut.missing(), [Phase::Sweep, Phase::Zoom, Phase::Peak]);
}

/// Whatever is not told to be missing is not: more trials would have changed nothing.
#[test]
fn what_more_trials_would_change_is_told_to_be_missing() {
    let mut missing = Vec::new();
    for seed in 0..5 {
        let found_in = |trials_max| {
            let goal = Goal { trials_max, ..goal(100_000) };
            search(goal, seed, |trial| run(Server::Exponential { capacity: 500.0 }, trial))
        };
        let (whole, _) = found_in(1_000);
        for trials_max in (100..250).step_by(5) {
            let (found, search) = found_in(trials_max);
            match (search.missing(), &found) {
                ([], _) => assert_eq!(found, whole, "{seed}: {trials_max} trials"),
                (phases, Ok(_)) => missing.extend_from_slice(phases),
                (_, Err(why)) => assert_eq!(*why, NoResult::OutOfTrials, "{seed}: {trials_max} trials"),
            }
        }
    }
    for phase in [Phase::Confirmation, Phase::Peak] {
        assert!(missing.contains(&phase), "{phase} of {missing:?}");
    }
}
