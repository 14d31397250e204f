//! What came of the contests: a table for people, JSON for the rest.

use std::path::Path;

use serde_json::{Value, json};

use super::contestant::{Bar, Contest, Contestant, Round};
use super::{LOAD_CORE, Options, SERVER_CORE};
use crate::failure::Because;
use crate::peers::{Machine, Spread};

/// All rounds of a contest.
pub(super) struct Result {
    contest: &'static Contest,
    rounds: Vec<Round>,
}

/// What one generator's rounds come to.
struct Line {
    contestant: Contestant,
    rate: Spread,
    us_each: Spread,
    busy: Spread,
    /// What ours cost and how fast it was beside it, round by round.
    cost: Option<Spread>,
    pace: Option<Spread>,
    rounds: usize,
}

impl Result {
    pub(super) fn of(contest: &'static Contest, rounds: Vec<Round>) -> Self {
        Self { contest, rounds }
    }

    pub(super) fn errors(&self) -> u64 {
        self.rounds.iter().map(|round| round.errors).sum()
    }

    /// Rounds of ours that were disturbed.
    pub(super) fn disturbed(&self) -> usize {
        self.rounds.iter().filter(|round| !round.disturbed.is_empty()).count()
    }

    /// Whether ours cost more than it may, or has another rate, or nobody knows.
    pub(super) fn is_missed(&self) -> bool {
        match self.contest.bar {
            Bar::Cost(peer, most) => {
                self.line(peer).and_then(|line| line.cost).is_none_or(|cost| cost.median > most)
            }
            Bar::Rate(apart) => {
                let others = self.contest.contestants.iter().filter(|peer| **peer != Contestant::Ours);
                let mut paces = others.map(|peer| self.line(*peer).and_then(|line| line.pace));
                !paces.all(|pace| pace.is_some_and(|pace| (pace.median - 1.0).abs() <= apart))
            }
        }
    }

    fn good(&self, contestant: Contestant) -> impl Iterator<Item = &Round> {
        self.rounds.iter().filter(move |round| round.contestant == contestant && round.counts())
    }

    fn line(&self, contestant: Contestant) -> Option<Line> {
        let spread = |of: fn(&Round) -> f64| Spread::of(self.good(contestant).map(of));
        let beside = |of: fn(&Round) -> f64| {
            let pairs = self.good(contestant).filter_map(|peer| {
                let ours = self.good(Contestant::Ours).find(|ours| ours.number == peer.number)?;
                Some(of(ours) / of(peer))
            });
            Spread::of(pairs)
        };
        Some(Line {
            contestant,
            rate: spread(Round::rate)?,
            us_each: spread(Round::us_each)?,
            busy: spread(Round::busy)?,
            cost: beside(Round::us_each),
            pace: beside(Round::rate),
            rounds: self.good(contestant).count(),
        })
    }

    fn lines(&self) -> Vec<Line> {
        self.contest.contestants.iter().filter_map(|contestant| self.line(*contestant)).collect()
    }

    fn json(&self) -> Value {
        let bar = match self.contest.bar {
            Bar::Cost(peer, most) => {
                json!({"beside": peer.name(), "at_most": most, "missed": self.is_missed()})
            }
            Bar::Rate(apart) => json!({"rates_apart_at_most": apart, "missed": self.is_missed()}),
        };
        let lines: Vec<Value> = self
            .lines()
            .iter()
            .map(|line| {
                json!({
                    "generator": line.contestant.name(), "rounds": line.rounds,
                    "per_second": line.rate.json(), "us_each": line.us_each.json(), "busy": line.busy.json(),
                    "our_cost_beside": line.cost.map(|cost| cost.json()),
                    "our_rate_beside": line.pace.map(|pace| pace.json()),
                })
            })
            .collect();
        let rounds: Vec<Value> = self
            .rounds
            .iter()
            .map(|round| {
                json!({
                    "generator": round.contestant.name(), "round": round.number, "requests": round.requests, "in_time": round.in_time,
                    "seconds": round.seconds, "errors": round.errors, "user_seconds": round.cpu[0],
                    "system_seconds": round.cpu[1], "colour": round.colour, "disturbed": round.disturbed,
                })
            })
            .collect();
        json!({
            "contest": self.contest.name, "what": self.contest.what, "unit": self.contest.unit,
            "bar": bar,
            "generators": lines, "rounds": rounds,
        })
    }
}

pub(super) fn print(result: &Result) {
    print!("{}", table(result));
}

fn table(result: &Result) -> String {
    let contest = result.contest;
    let mut text = format!(
        "\n{}: {}\n  {:<10} {:>9} {:>21} {:>9} {:>21} {:>5}  {:>14} {:>14}\n",
        contest.name,
        contest.what,
        "",
        "per s",
        "[min-max]",
        format!("us/{}", if contest.unit == "request" { "req" } else { "hs" }),
        "[min-max]",
        "busy",
        "ours costs",
        "ours' rate",
    );
    for line in result.lines() {
        let range =
            |spread: &Spread, digits: usize| format!("[{:.digits$}-{:.digits$}]", spread.min, spread.max);
        let times = |spread: Option<Spread>| match spread {
            Some(spread) if line.contestant != Contestant::Ours => format!("{:.3} x", spread.median),
            _ => String::new(),
        };
        text += &format!(
            "  {:<10} {:>9.0} {:>21} {:>9.2} {:>21} {:>5.2}  {:>14} {:>14}\n",
            line.contestant.name(),
            line.rate.median,
            range(&line.rate, 0),
            line.us_each.median,
            range(&line.us_each, 2),
            line.busy.median,
            times(line.cost),
            times(line.pace),
        );
    }
    if let n @ 1.. = result.disturbed() {
        text += &format!("  {n} of ours were disturbed, and do not count\n");
    }
    let verdict = if result.is_missed() { "MISSED" } else { "met" };
    text + &match contest.bar {
        Bar::Cost(peer, most) => format!("  bar: ours costs at most {most} x {}: {verdict}\n", peer.name()),
        Bar::Rate(apart) => format!("  bar: all rates are ours, to {} %: {verdict}\n", apart * 100.0),
    }
}

/// Writes all of it.
pub(super) fn write(
    file: &Path,
    machine: &Machine,
    options: &Options,
    results: &[Result],
) -> crate::failure::Result<()> {
    let document = json!({
        "machine": machine.json(),
        "settings": {
            "seconds": options.turns.seconds, "rounds": options.turns.rounds, "server": options.server.name(),
            "server_core": SERVER_CORE, "load_core": LOAD_CORE,
        },
        "contests": results.iter().map(Result::json).collect::<Vec<_>>(),
    });
    std::fs::write(file, format!("{document:#}\n")).because(|| format!("cannot write `{}`", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(contestant: Contestant, number: usize, requests: u64, cpu: f64) -> Round {
        let (colour, disturbed) = (None, Vec::new());
        let in_time = requests;
        Round {
            contestant,
            number,
            requests,
            in_time,
            seconds: 1.0,
            errors: 0,
            cpu: [cpu, 0.0],
            colour,
            disturbed,
        }
    }

    #[test]
    fn rounds_are_compared_with_those_beside_them() {
        let contest = Contest::named("handshake").expect("there");
        let mut rounds = vec![
            round(Contestant::Ours, 0, 1000, 0.2),
            round(Contestant::STime, 0, 1000, 0.5),
            round(Contestant::Ours, 1, 1000, 0.3),
            round(Contestant::STime, 1, 1000, 1.0),
        ];
        let result = Result::of(contest, rounds.clone());
        let line = result.line(Contestant::STime).expect("two rounds");
        let cost = line.cost.expect("two pairs");
        assert!((cost.median - 0.35).abs() < 1e-9 && (cost.max - 0.4).abs() < 1e-9, "{cost:?}");
        assert!(!result.is_missed(), "{}", table(&result));
        assert!(result.line(Contestant::Wrk).is_none());
        rounds[0].cpu = [0.6, 0.0];
        rounds[2].cpu = [0.6, 0.0];
        let result = Result::of(contest, rounds.clone());
        assert!(result.is_missed() && table(&result).contains("MISSED"));
        rounds[0].disturbed = vec!["it was".to_owned()];
        let result = Result::of(contest, rounds.clone());
        assert_eq!((result.disturbed(), result.good(Contestant::Ours).count()), (1, 1));
        rounds.iter_mut().for_each(|round| round.errors = 1);
        let result = Result::of(contest, rounds);
        assert!(result.is_missed() && result.lines().is_empty(), "a round with errors does not count");
        assert_eq!(result.errors(), 4);
    }

    #[test]
    fn rates_of_a_steady_server_are_those_of_all_generators() {
        let contest = Contest::named("rate").expect("there");
        let all = |wrk: u64, h2load: u64| {
            let rounds = vec![
                round(Contestant::Ours, 0, 5_000, 0.1),
                round(Contestant::Wrk, 0, wrk, 0.1),
                round(Contestant::H2load, 0, h2load, 0.1),
            ];
            Result::of(contest, rounds).is_missed()
        };
        assert!(!all(5_050, 4_950) && all(5_200, 5_000) && all(5_000, 4_800));
        assert!(
            Result::of(contest, vec![round(Contestant::Ours, 0, 5_000, 0.1)]).is_missed(),
            "of nobody else"
        );
    }
}
