//! A comparison as a report shows it.

use pointsman_measure::chart::{Axis, Chart, Line};
use pointsman_measure::compare::{Difference, Side};
use pointsman_measure::report::{Figure, Run};
use pointsman_measure::statistics::Interval;
use pointsman_measure::table::{Cell, Table};
use serde_json::{Value, json};

use super::{Compared, Fought, Quantity, Weighed};
use crate::interrupt::mark_interrupted;
use crate::json::{interval, negotiated};
use crate::provenance::provenance;
use crate::report::{AGREED, agreed as agreed_on, chart};

impl Compared {
    /// The run as a report shows it, under this name.
    pub fn report(&self, name: &str) -> Run {
        let mut run = provenance(name, &self.machine);
        let (a, b) = (self.asked.a.settings(), self.asked.b.settings());
        // What both have in common stands once.
        for (key, value) in &a {
            if b.get(key) == Some(value) {
                run.settings.insert(key.clone(), value.clone());
            }
        }
        for (side, settings) in [("A", &a), ("B", &b)] {
            let own = settings.iter().filter(|(key, _)| !run.settings.contains_key(*key));
            let own: Vec<(String, String)> =
                own.map(|(key, value)| (format!("{side}.{key}"), value.clone())).collect();
            run.settings.extend(own);
        }
        run.settings.insert("blocks".to_owned(), self.asked.blocks.to_string());
        run.colour = self.colour();
        run.reasons = self.reasons();
        run.answer = self.answer();
        run.figures = self.weighed.iter().map(figure).collect();
        run.charts = self.weighed.iter().map(|weighed| self.chart(weighed.quantity)).collect();
        let agreed = ["A", "B"].into_iter().zip(&self.negotiated);
        let agreed = agreed.map(|(side, found)| agreed_on(&format!("{AGREED}: {side}"), found));
        run.tables = [self.table(), self.failed()].into_iter().chain(agreed).collect();
        run.tables.retain(|table| !table.rows.is_empty());
        run.outcome = Some(self.json());
        mark_interrupted(&mut run, self.how_far().as_deref());
        run
    }

    /// What was found, a sentence for each quantity.
    pub fn answer(&self) -> String {
        if self.weighed.is_empty() {
            return "Nothing could be compared.".to_owned();
        }
        let said: Vec<String> = self.weighed.iter().map(sentence).collect();
        said.join(" ")
    }

    /// The quantities, a row each.
    pub fn table(&self) -> Table {
        let columns = ["", "unit", "A", "B", "B / A", "from", "to", "noise floor, %", "blocks", "difference"];
        let rows = self.weighed.iter().map(|weighed| {
            let (comparison, ratio) = (&weighed.comparison, &weighed.comparison.ratio);
            let rounded = |value: f64| Cell::Number((value * 1e4).round() / 1e4);
            vec![
                weighed.quantity.name().into(),
                weighed.quantity.unit().into(),
                rounded(weighed.means[0]),
                rounded(weighed.means[1]),
                rounded(ratio.estimate),
                rounded(ratio.low),
                rounded(ratio.high),
                rounded(comparison.floor_share() * 100.0),
                f64::from(comparison.blocks).into(),
                word(comparison.difference).into(),
            ]
        });
        Table {
            title: "A against B".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }
    }

    /// What share of the requests failed, of each side.
    fn failed(&self) -> Table {
        let rows = [("A", Side::A), ("B", Side::B), ("A again", Side::AgainA)].map(|(name, side)| {
            let shares: Vec<f64> = self
                .trials
                .iter()
                .filter(|trial| trial.turn.side == side && trial.was_run())
                .map(|trial| trial.failed_share)
                .collect();
            let percent = |share: f64| Cell::Number((share * 1e5).round() / 1e3);
            let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
            let most = shares.iter().copied().fold(0.0, f64::max);
            vec![name.into(), (shares.len() as f64).into(), percent(mean), percent(most)]
        });
        Table {
            title: "Requests that failed".to_owned(),
            columns: ["", "trials", "mean, %", "most of a trial, %"].map(str::to_owned).to_vec(),
            rows: rows.to_vec(),
        }
    }

    /// Each trial in its order: what drifts shows.
    fn chart(&self, quantity: Quantity) -> Chart {
        let line = |name: &str, side: Side| {
            let of_side = |(_, trial): &(usize, &Fought)| trial.turn.side == side && trial.counts();
            let trials = self.trials.iter().enumerate().filter(of_side);
            let point =
                |(at, trial): (usize, &Fought)| Some(((at + 1) as f64, trial.figures[quantity as usize]?));
            Line { name: name.to_owned(), points: trials.filter_map(point).collect(), ..Line::default() }
        };
        let lines = [line("A", Side::A), line("B", Side::B), line("A again", Side::AgainA)];
        chart(
            &format!("trials-{}", quantity.name().replace([' ', '\''], "-")),
            &format!("Trial by trial: {}", quantity.name()),
            Axis::linear("trial"),
            // What drifts and what differs is small beside what is measured.
            Axis::linear(quantity.unit()),
            lines.into_iter().filter(|line| !line.points.is_empty()).collect(),
        )
    }

    /// Everything, for programs.
    pub fn json(&self) -> Value {
        let trials: Vec<Value> = self.trials.iter().map(trial).collect();
        let weighed: Vec<Value> = self.weighed.iter().map(weighed).collect();
        json!({
            "version": 1, "kind": "compare", "seconds": self.seconds, "blocks": self.asked.blocks,
            "whole": self.is_whole(), "ceiling_per_second": self.asked.ceiling.as_ref().map(|ceiling| ceiling.per_s), "quantities": weighed, "trials": trials,
            "negotiated": {"a": negotiated(&self.negotiated[0]), "b": negotiated(&self.negotiated[1])},
        })
    }
}

fn word(difference: Difference) -> &'static str {
    match difference {
        Difference::More => "B has more",
        Difference::Less => "B has less",
        Difference::NotShown => "not shown",
    }
}

fn sentence(weighed: &Weighed) -> String {
    let (name, ratio) = (weighed.quantity.name(), &weighed.comparison.ratio);
    let share = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    let range = format!("{} ({} to {})", share(ratio.estimate), share(ratio.low), share(ratio.high));
    let floor = weighed.comparison.floor_share() * 100.0;
    match weighed.comparison.difference {
        Difference::More | Difference::Less => {
            format!("B differs from A in {name}: {range}; the noise of this run is {floor:.1} %.")
        }
        Difference::NotShown => {
            format!("No difference is shown in {name}: {range}, with a noise of {floor:.1} %.")
        }
    }
}

fn figure(weighed: &Weighed) -> Figure {
    let Interval { estimate, low, high } = weighed.comparison.ratio;
    Figure {
        name: format!("{}, B / A", weighed.quantity.name()),
        unit: String::new(),
        value: Some(estimate),
        interval: Some((low, high)),
    }
}

fn weighed(weighed: &Weighed) -> Value {
    let comparison = &weighed.comparison;
    json!({
        "name": weighed.quantity.name(), "unit": weighed.quantity.unit(),
        "a": weighed.means[0], "b": weighed.means[1],
        "ratio": interval(&comparison.ratio), "floor": interval(&comparison.floor),
        "blocks": comparison.blocks,
        "difference": match comparison.difference {
            Difference::More => "more",
            Difference::Less => "less",
            Difference::NotShown => "not shown",
        },
    })
}

fn trial(trial: &Fought) -> Value {
    let reasons: Vec<&str> = trial.verdict.reasons.iter().map(|reason| reason.text.as_str()).collect();
    let figures = Quantity::ALL.into_iter().zip(trial.figures);
    let figures: serde_json::Map<String, Value> =
        figures.filter_map(|(quantity, figure)| Some((quantity.name().to_owned(), json!(figure?)))).collect();
    json!({
        "block": trial.turn.block, "seed": trial.turn.seed,
        "side": match trial.turn.side {
            Side::A => "A",
            Side::B => "B",
            Side::AgainA => "A again",
        },
        "figures": figures, "failed_share": trial.failed_share, "colour": trial.verdict.colour.to_string(), "reasons": reasons,
        "voids": trial.voids.iter().map(|void| void.sentence.as_str()).collect::<Vec<_>>(),
    })
}
