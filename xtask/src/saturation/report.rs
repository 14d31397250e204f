//! What came of the searches: medians over rounds, and how many times the first server's they are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::contender::{CONTENDERS, Contender, Kind};
use super::search::{Found, MODES, Mode};
use super::{LOAD_CORE, Options, SERVER_CORE};
use crate::failure::{Because, Result};
use crate::peers::{Machine, Spread};

/// Figures of a run, as the bench calls them.
const FIGURES: &[&str] = &["sustained", "knee", "peak", "server's CPU at the peak"];

/// All searches.
#[derive(Default)]
pub(super) struct Report(Vec<Found>);

/// What a server's rounds come to in a mode.
struct Line<'a> {
    mode: &'static Mode,
    kind: Kind,
    runs: Vec<&'a Found>,
}

impl Found {
    fn figure(&self, name: &str) -> Option<f64> {
        let figures = self.run["figures"].as_array()?;
        figures.iter().find(|figure| figure["name"] == name)?["value"].as_f64()
    }

    fn colour(&self) -> &str {
        self.run["verdict"]["colour"].as_str().unwrap_or("red")
    }

    /// Whether it is a result.
    pub(super) fn counts(&self) -> bool {
        self.colour() != "red"
    }
}

impl Line<'_> {
    fn spread(&self, name: &str) -> Option<Spread> {
        Spread::of(self.counted().filter_map(|found| found.figure(name)))
    }

    fn rounds_with(&self, name: &str) -> usize {
        self.counted().filter(|found| found.figure(name).is_some()).count()
    }

    fn counted(&self) -> impl Iterator<Item = &Found> {
        self.runs.iter().copied().filter(|found| found.counts())
    }

    /// How many times the same figure of another it is, round by round.
    fn beside(&self, first: &Line, name: &str) -> Option<Spread> {
        let pairs = self.counted().filter_map(|found| {
            let other = first.counted().find(|other| other.round == found.round)?;
            Some(found.figure(name)? / other.figure(name)?)
        });
        Spread::of(pairs)
    }

    /// How many runs have a colour.
    fn of_colour(&self, colour: &str) -> usize {
        self.runs.iter().filter(|found| found.colour() == colour).count()
    }

    /// The run whose peak is in the middle, or where none has a peak whose sustained rate is; the lower of two.
    fn middle(&self) -> Option<&Found> {
        ["peak", "sustained"].into_iter().find_map(|name| {
            let known = self.counted().filter_map(|found| Some((found.figure(name)?, found)));
            let mut known: Vec<(f64, &Found)> = known.collect();
            known.sort_by(|one, other| one.0.total_cmp(&other.0));
            known.get(known.len().checked_sub(1)? / 2).map(|(_, found)| *found)
        })
    }
}

impl Report {
    pub(super) fn take(&mut self, found: Found) {
        self.0.push(found);
    }

    /// Searches of a round that gave no result, however often they were made.
    pub(super) fn without_a_result(&self) -> usize {
        let of = |found: &Found| (found.mode.name, found.kind.name(), found.round);
        let all: BTreeSet<_> = self.0.iter().map(of).collect();
        let counted: BTreeSet<_> = self.0.iter().filter(|found| found.counts()).map(of).collect();
        all.difference(&counted).count()
    }

    fn lines(&self) -> Vec<Line<'_>> {
        let of = |mode: &'static Mode, kind| {
            let is_its = |found: &&Found| found.mode.name == mode.name && found.kind == kind;
            Line { mode, kind, runs: self.0.iter().filter(is_its).collect() }
        };
        let all = MODES.iter().flat_map(|mode| CONTENDERS.iter().map(move |kind| of(mode, *kind)));
        all.filter(|line| !line.runs.is_empty()).collect()
    }

    pub(super) fn print(&self) {
        print!("\n{}", self.table());
    }

    /// As it stands in a page of the documentation.
    fn table(&self) -> String {
        let lines = self.lines();
        let mut text = String::from(
            "| | sustained | × the first | knee | peak | × the first | CPU at the peak, µs | green, amber, red |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for line in &lines {
            let cell = |name: &str, digits: usize| match line.spread(name) {
                // One round says nothing of how far rounds are apart.
                Some(Spread { median, .. }) if line.rounds_with(name) < 2 => format!("{median:.digits$}"),
                Some(Spread { median, min, max }) => {
                    format!("{median:.digits$} ({min:.digits$} to {max:.digits$})")
                }
                None => "–".to_owned(),
            };
            let first = lines.iter().find(|first| first.mode.name == line.mode.name);
            let ratio = |name: &str| {
                let ratio = first.and_then(|first| line.beside(first, name));
                ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{:.2}", ratio.median))
            };
            text += &format!(
                "| {}, {} | {} | {} | {} | {} | {} | {} | {}, {}, {} |\n",
                line.kind.name(),
                line.mode.unit,
                cell("sustained", 0),
                ratio("sustained"),
                cell("knee", 0),
                cell("peak", 0),
                ratio("peak"),
                cell("server's CPU at the peak", 1),
                line.of_colour("green"),
                line.of_colour("amber"),
                line.of_colour("red"),
            );
        }
        text
    }

    /// The runs in the middle, each in a file that `bench report` reads, without what only programs look at.
    pub(super) fn write_middle_runs(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for line in self.lines() {
            // A page with a red run shows why there is no figure.
            let Some(found) = line.middle().or(line.runs.first().copied()) else { continue };
            let mut run = found.run.clone();
            if let Some(run) = run.as_object_mut() {
                run.remove("outcome");
            }
            let file = folder.join(format!("middle-{}-{}.json", line.mode.name, line.kind.name()));
            let document = json!({"schema": "pointsman-bench/1", "title": "Saturation", "runs": [run]});
            std::fs::write(&file, document.to_string())
                .because(|| format!("cannot write `{}`", file.display()))?;
            files.push(file);
        }
        Ok(files)
    }

    /// Figures, verdicts and trials of all runs.
    pub(super) fn write(
        &self,
        file: &Path,
        machine: &Machine,
        options: &Options,
        contenders: &[Contender],
    ) -> Result<()> {
        let lines = self.lines();
        let summary: Vec<Value> = lines.iter().map(|line| of_line(line, &lines)).collect();
        let runs: Vec<Value> = self.0.iter().map(of_run).collect();
        let servers: Vec<Value> = contenders
            .iter()
            .map(|it| json!({"name": it.kind.name(), "manner": it.kind.manner(), "answer": it.answer}))
            .collect();
        let modes: Vec<Value> = options
            .modes
            .iter()
            .map(|mode| {
                json!({
                    "name": mode.name, "what": mode.what, "unit": mode.unit, "p99_ms_max": mode.p99_ms,
                    "share_of_core": f64::from(mode.share_percent(options)) / 100.0,
                    "trial_ms": mode.trial_ms(options),
                })
            })
            .collect();
        let document = json!({
            "machine": machine.json(),
            "settings": {
                "rounds": options.rounds, "seed": options.seed, "server_core": SERVER_CORE, "load_core": LOAD_CORE,
            },
            "servers": servers, "modes": modes, "summary": summary, "runs": runs,
        });
        std::fs::write(file, format!("{document}\n")).because(|| format!("cannot write `{}`", file.display()))
    }
}

fn of_line(line: &Line, all: &[Line]) -> Value {
    let first = all.iter().find(|first| first.mode.name == line.mode.name);
    let figures: serde_json::Map<String, Value> = FIGURES
        .iter()
        .filter_map(|name| {
            let spread = line.spread(name)?;
            let beside = first.and_then(|first| line.beside(first, name)).map(|ratio| ratio.json());
            Some(((*name).to_owned(), json!({"rounds": spread.json(), "beside_the_first": beside})))
        })
        .collect();
    json!({
        "mode": line.mode.name, "server": line.kind.name(), "unit": line.mode.unit, "figures": figures,
        "green": line.of_colour("green"), "amber": line.of_colour("amber"), "red": line.of_colour("red"),
    })
}

/// What was found, in which trials; charts and tables are drawn from it.
fn of_run(found: &Found) -> Value {
    let outcome = &found.run["outcome"];
    let trials: Vec<Value> = outcome["trials"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|trial| {
            json!([trial["phase"], trial["offered"], trial["achieved"], trial["p99_us"], trial["colour"]])
        })
        .collect();
    json!({
        "mode": found.mode.name, "server": found.kind.name(), "round": found.round,
        "share_of_core": found.left, "started": found.run["started"], "verdict": found.run["verdict"], "answer": found.run["answer"],
        "figures": found.run["figures"], "seconds": outcome["seconds"], "cut_short": outcome["cut_short"],
        "negotiated": outcome["negotiated"], "settings": found.run["settings"],
        "trials": {"columns": ["phase", "offered", "answered", "p99_us", "colour"], "rows": trials},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: Kind, round: usize, peak: f64, colour: &str) -> Found {
        let run = json!({"verdict": {"colour": colour}, "figures": [{"name": "peak", "value": peak}]});
        Found { mode: &MODES[0], kind, round, left: 0.4, run }
    }

    #[test]
    fn rounds_are_beside_those_of_the_first_server() {
        let mut report = Report::default();
        for (round, peak, colour) in [(1, 100.0, "green"), (2, 200.0, "amber"), (3, 400.0, "green")] {
            report.take(found(Kind::Nginx, round, peak, colour));
            report.take(found(Kind::Ours, round, 3.0 * peak, if round == 3 { "red" } else { "green" }));
        }
        let lines = report.lines();
        let (nginx, ours) = (&lines[0], &lines[1]);
        assert_eq!((lines.len(), nginx.spread("peak").map(|spread| spread.median)), (2, Some(200.0)));
        assert_eq!(nginx.middle().map(|found| found.round), Some(2));
        let ratio = ours.beside(nginx, "peak").expect("two rounds");
        assert!((ratio.median - 3.0).abs() < 1e-9, "{ratio:?}");
        assert_eq!(ours.spread("peak").map(|spread| spread.max), Some(600.0));
        assert_eq!(report.without_a_result(), 1);
        let table = report.table();
        assert!(
            table.contains("| nginx, handshakes/s | – | – | – | 200 (100 to 400) | 1.00 | – |"),
            "{table}"
        );
        assert!(table.contains("| 2, 0, 1 |"), "{table}");
        assert_eq!(ours.middle().map(|found| found.round), Some(1));
        let mut single = Report::default();
        single.take(found(Kind::Nginx, 1, 100.0, "green"));
        assert!(single.table().contains("| – | – | – | 100 | 1.00 |"), "{}", single.table());
        // A result without a peak is one, whatever was red before it.
        let mut late = Report::default();
        late.take(Found {
            run: json!({"verdict": {"colour": "red"}, "figures": []}),
            ..found(Kind::Nginx, 1, 0.0, "")
        });
        let figures = json!([{"name": "sustained", "value": 90.0}, {"name": "peak", "value": null}]);
        let run = json!({"verdict": {"colour": "amber"}, "figures": figures});
        late.take(Found { run, ..found(Kind::Nginx, 1, 0.0, "") });
        assert_eq!(late.lines()[0].middle().map(Found::colour), Some("amber"));
        assert!(late.table().contains("| 90 | 1.00 | – | – | – | – | 0, 1, 1 |"), "{}", late.table());
        // Made again, it has one.
        report.take(found(Kind::Ours, 3, 1_200.0, "amber"));
        assert_eq!(report.without_a_result(), 0);
    }
}
