//! A ladder of clients as a report shows it.

use pointsman_measure::chart::{Axis, Chart, Line};
use pointsman_measure::report::{Figure, Run};
use pointsman_measure::table::{Cell, Table};
use serde_json::{Value, json};

use super::{Climbed, Top, by_clients, means};
use crate::interrupt::mark_interrupted;
use crate::json::negotiated;
use crate::provenance::provenance;
use crate::report::{AGREED, agreed, band, chart};

impl Top {
    /// The run as a report shows it, under this name.
    pub fn report(&self, name: &str) -> Run {
        let mut run = provenance(name, &self.machine);
        run.settings = self.asked.plan.settings();
        run.settings.insert("load.clients".to_owned(), format!("1 to {}", self.asked.clients_max));
        run.colour = self.colour();
        run.reasons = self.reasons();
        run.answer = self.answer();
        run.figures = self.figures();
        run.charts = vec![self.throughput(), self.latency()];
        let agreed = agreed(AGREED, &self.negotiated);
        run.tables = vec![self.table(), agreed];
        run.tables.retain(|table| !table.rows.is_empty());
        run.outcome = Some(self.json());
        let how_far = || format!("{} trials had ended by then", self.trials.len());
        mark_interrupted(&mut run, self.was_interrupted.then(how_far).as_deref());
        run
    }

    /// What was found, in a sentence or two.
    pub fn answer(&self) -> String {
        let Some((clients, peak)) = self.peak else { return "Nothing was found.".to_owned() };
        let most = format!(
            "At {} {:.0} ({:.0} to {:.0}) requests a second are answered, with {clients} clients.",
            if self.not_in_control.is_some() || self.more.is_some() { "least" } else { "the most" },
            peak.estimate,
            peak.low,
            peak.high
        );
        match self.enough.filter(|enough| *enough < clients) {
            Some(enough) => format!("{most} {enough} clients are enough for that."),
            None if clients == self.asked.clients_max => format!("{most} More clients may reach more."),
            None => most,
        }
    }

    fn figures(&self) -> Vec<Figure> {
        let plain = |name: &str, unit: &str, value: Option<f64>| Figure {
            name: name.to_owned(),
            unit: unit.to_owned(),
            value,
            interval: None,
        };
        let peak = self.peak.map(|(_, peak)| peak);
        let mut figures = vec![
            Figure {
                interval: peak.map(|peak| (peak.low, peak.high)),
                ..plain("peak", "requests/s", peak.map(|peak| peak.estimate))
            },
            plain("smallest number for it", "clients", self.smallest.map(f64::from)),
        ];
        if let Some(law) = &self.law {
            figures.push(plain("one client (γ)", "requests/s", Some(law.unit)));
            figures.push(plain("contention (α)", "%", Some(law.contention * 100.0)));
            figures.push(plain("crosstalk (β)", "%", Some(law.crosstalk * 100.0)));
            figures.push(plain("clients at the law's peak", "clients", law.clients_at_peak()));
        }
        if let Some(ceiling) = &self.asked.ceiling {
            figures.push(plain("generator before null servers", "requests/s", Some(ceiling.per_s)));
        }
        figures
    }

    fn throughput(&self) -> Chart {
        let counted = by_clients(&self.trials);
        let bounds =
            |rates: &[f64]| self.asked.interval_of(rates).map(|found| (found.low.max(0.0), found.high));
        let answered = Line {
            name: "answered".to_owned(),
            points: means(&self.trials),
            // A number that was tried once has no interval, and one without a result has none either.
            band: band(counted.iter().map(|(clients, rates)| (f64::from(*clients), bounds(rates)))),
            ..Line::default()
        };
        let of_law = self.law.iter().map(|law| Line {
            name: "universal scalability law".to_owned(),
            points: answered.points.iter().map(|(clients, _)| (*clients, law.throughput(*clients))).collect(),
            ..Line::default()
        });
        let lines = of_law.collect::<Vec<_>>();
        chart(
            "throughput-by-clients",
            "Throughput by number of clients",
            Axis::from_zero("clients"),
            Axis::from_zero("answered, requests/s"),
            [vec![answered], lines].concat(),
        )
    }

    fn latency(&self) -> Chart {
        let line = |name: &str, of: fn(&Climbed) -> u64| {
            let mut counted: Vec<&Climbed> = self.trials.iter().filter(|trial| trial.counts()).collect();
            counted.sort_by_key(|trial| (trial.clients, of(trial)));
            let groups = counted.chunk_by(|left, right| left.clients == right.clients);
            let middle = |group: &[&Climbed]| of(group[(group.len() - 1) / 2]) as f64 / 1e3;
            Line {
                name: name.to_owned(),
                points: groups.map(|group| (f64::from(group[0].clients), middle(group))).collect(),
                ..Line::default()
            }
        };
        chart(
            "latency-by-clients",
            "Response time by number of clients",
            Axis::from_zero("clients"),
            Axis::logarithmic("response time, ms"),
            vec![line("median", |trial| trial.p50_us), line("99th percentile", |trial| trial.p99_us)],
        )
    }

    /// Each number of clients that was tried, in ascending order.
    pub fn table(&self) -> Table {
        let columns = ["clients", "answered/s", "from", "to", "trials"];
        let counted = by_clients(&self.trials).into_iter().filter(|(_, rates)| !rates.is_empty());
        let rows = counted.map(|(clients, rates)| {
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            let interval = self.asked.interval_of(&rates);
            let (low, high) = (interval.map(|interval| interval.low), interval.map(|interval| interval.high));
            let cells = [Some(f64::from(clients)), Some(mean), low, high, Some(rates.len() as f64)];
            let cell = |value: f64| Cell::Number((value * 100.0).round() / 100.0);
            cells.map(|value| value.map_or(Cell::Empty, cell)).to_vec()
        });
        Table {
            title: "Throughput by number of clients".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }
    }

    /// Everything, for programs.
    pub fn json(&self) -> Value {
        let trials: Vec<Value> = self.trials.iter().map(trial).collect();
        json!({
            "version": 1, "kind": "find-clients", "seconds": self.seconds, "cut_short": self.was_cut_short,
            "not_run": self.not_run, "ceiling_per_second": self.asked.ceiling.as_ref().map(|ceiling| ceiling.per_s),
            "peak": self.peak.map(|(clients, peak)| {
                json!({"clients": clients, "estimate": peak.estimate, "low": peak.low, "high": peak.high})
            }),
            "smallest_clients": self.smallest, "enough_clients": self.enough, "not_in_control": self.not_in_control,
            "more": self.more.map(|(clients, ratio)| {
                json!({"clients": clients, "ratio": ratio.estimate, "low": ratio.low, "high": ratio.high})
            }),
            "one_client_less": self.fewer.map(|fewer| {
                json!({"ratio": fewer.ratio.estimate, "low": fewer.ratio.low, "high": fewer.ratio.high})
            }),
            "scalability": self.law.map(|law| {
                json!({
                    "unit": law.unit, "contention": law.contention, "crosstalk": law.crosstalk,
                    "r_squared": law.r_squared,
                })
            }),
            "negotiated": negotiated(&self.negotiated), "trials": trials,
        })
    }
}

fn trial(trial: &Climbed) -> Value {
    let reasons: Vec<&str> = trial.verdict.reasons.iter().map(|reason| reason.text.as_str()).collect();
    json!({
        "clients": trial.clients, "rate": trial.rate, "p50_us": trial.p50_us, "p99_us": trial.p99_us,
        "colour": trial.verdict.colour.to_string(), "reasons": reasons, "server_us": trial.server_us,
        "voids": trial.voids.iter().map(|void| void.sentence.as_str()).collect::<Vec<_>>(),
    })
}
