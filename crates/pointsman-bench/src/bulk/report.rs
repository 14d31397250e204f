//! Bytes a second by size, as a report shows them.

use std::collections::BTreeMap;

use pointsman_measure::chart::{Axis, Chart, Line};
use pointsman_measure::report::{Figure, Run};
use pointsman_measure::statistics::Estimate;
use pointsman_measure::table::{Cell, Table};
use pointsman_measure::verdict::Colour;
use serde_json::{Value, json};

use super::{Bulk, Bulked, Hauled, MIB, Row, Way};
use crate::Plan;
use crate::interrupt::mark_interrupted;
use crate::json::{estimate, negotiated};
use crate::provenance::provenance;
use crate::report::{AGREED, agreed, band, chart, round, table};

impl Bulk {
    /// Those of all plans: where they differ, what each of them says, in their order. One says nothing of TLS that has none,
    /// and the others have it all the same.
    fn settings(&self) -> BTreeMap<String, String> {
        let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in self.plans.iter().flat_map(Plan::settings) {
            let values = said.entry(name).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let mut settings: BTreeMap<String, String> =
            said.into_iter().map(|(name, values)| (name, values.join(", "))).collect();
        settings.retain(|name, _| !(name.starts_with("targets[") && name.ends_with("].url")));
        let urls = self.plans.iter().flat_map(|plan| &plan.targets).map(|target| target.url.to_string());
        let sizes: Vec<String> = self.sizes.iter().map(u64::to_string).collect();
        for (name, value) in [
            ("targets.url", urls.collect::<Vec<_>>().join(", ")),
            ("sizes", sizes.join(", ")),
            ("rounds", self.rounds.to_string()),
            ("bodies", self.way.name().to_owned()),
        ] {
            settings.insert(name.to_owned(), value);
        }
        settings
    }
}

impl Bulked {
    /// The run as a report shows it, under this name.
    pub fn report(&self, name: &str) -> Run {
        let mut run = provenance(name, &self.machine);
        run.settings = self.asked.settings();
        run.colour = self.colour();
        run.reasons = self.reasons();
        run.answer = self.answer();
        run.figures = self.figures();
        run.charts = self.charts();
        let tables = self.series.iter().zip(&self.negotiated).map(|(series, found)| {
            let title =
                if series.name.is_empty() { AGREED.to_owned() } else { format!("{AGREED}: {}", series.name) };
            agreed(&title, found)
        });
        run.tables = std::iter::once(self.table()).chain(tables).collect();
        run.tables.retain(|table| !table.rows.is_empty());
        run.outcome = Some(self.json());
        mark_interrupted(&mut run, self.interrupted.as_deref());
        run
    }

    /// Amber where some rows count and others do not.
    pub fn colour(&self) -> Colour {
        let worst = self.rows.iter().map(|row| row.colour).max().unwrap_or(Colour::Red);
        let counts = self.rows.iter().any(|row| row.colour != Colour::Red);
        if worst == Colour::Red && counts { Colour::Amber } else { worst }
    }

    fn reasons(&self) -> Vec<String> {
        let rows = self.rows.iter().filter(|row| !row.reasons.is_empty());
        let sentence = |row: &Row| {
            let what = if row.colour == Colour::Red { ", not a result" } else { "" };
            format!("{}, {}{what}: {}", self.name_of(row), row.colour, row.reasons.join("; "))
        };
        rows.map(sentence).collect()
    }

    fn name_of(&self, row: &Row) -> String {
        match self.series[row.series].name.as_str() {
            "" => size_name(row.size),
            series => format!("{}, {series}", size_name(row.size)),
        }
    }

    /// The rows that count, those of large bodies first.
    fn counting(&self) -> Vec<(&Row, Estimate)> {
        let mut rows: Vec<(&Row, Estimate)> =
            self.rows.iter().filter_map(|row| Some((row, row.payload_per_s?))).collect();
        rows.sort_by_key(|(row, _)| (std::cmp::Reverse(row.size), row.series));
        rows
    }

    /// Of the largest size that has a result.
    fn answer(&self) -> String {
        let counting = self.counting();
        let Some((largest, _)) = counting.first() else { return String::new() };
        let said = counting.iter().filter(|(row, _)| row.size == largest.size).map(|(row, payload)| {
            let with = match (self.series[row.series].name.as_str(), row.suite) {
                ("", "") => String::new(),
                ("", suite) => format!(" with {suite}"),
                (series, _) => format!(" with {series}"),
            };
            let times = row.times_first.map(|times| format!(", {:.2} times as much", times.value));
            format!("{} MiB/s{with}{}", round(payload.value / MIB), times.unwrap_or_default())
        });
        let said: Vec<String> = said.collect();
        let left_out = match self.rows.len() - counting.len() {
            0 => String::new(),
            1 => " One row is not a result.".to_owned(),
            many => format!(" {many} rows are not results."),
        };
        let way = self.asked.way.name();
        format!("Bodies of {} {way}: {}.{left_out}", size_name(largest.size), said.join("; "))
    }

    fn figures(&self) -> Vec<Figure> {
        let figure = |what: &str, row: &Row, unit: &str, found: Estimate| Figure {
            name: format!("{what}, {}", self.name_of(row)),
            unit: unit.to_owned(),
            value: Some(found.value),
            interval: found.bounds,
        };
        let counting = self.counting();
        let payload = counting
            .iter()
            .map(|(row, payload)| figure("payload", row, "MiB/s", payload.map(|bytes| bytes / MIB)));
        let times =
            counting.iter().filter_map(|(row, _)| Some(figure("times the first", row, "", row.times_first?)));
        let server = counting
            .iter()
            .filter_map(|(row, _)| Some(figure("server's CPU", row, "µs/MiB", row.server_us_per_mib?)));
        let own = counting
            .iter()
            .filter_map(|(row, _)| Some(figure("generator's CPU", row, "µs/MiB", row.own_us_per_mib?)));
        payload.chain(times).chain(server).chain(own).collect()
    }

    fn charts(&self) -> Vec<Chart> {
        let sizes = || Axis::logarithmic("bytes of a body");
        let mut payload = self.lines(|row| row.payload_per_s.map(|found| found.map(|bytes| bytes / MIB)));
        payload.extend(self.crosses());
        let costs = [
            ("bulk-server", "CPU of the server for a MiB, by size", self.lines(|row| row.server_us_per_mib)),
            (
                "bulk-generator",
                "CPU of the generator for a MiB, by size",
                self.lines(|row| row.own_us_per_mib),
            ),
        ];
        let costs = costs.into_iter().filter(|(_, _, lines)| !lines.is_empty());
        let costs =
            costs.map(|(id, title, lines)| chart(id, title, sizes(), Axis::logarithmic("µs a MiB"), lines));
        std::iter::once(chart("bulk", "Payload by size", sizes(), Axis::from_zero("MiB/s"), payload))
            .chain(costs)
            .collect()
    }

    /// A line for each series that has it.
    fn lines(&self, of: impl Fn(&Row) -> Option<Estimate>) -> Vec<Line> {
        let line = |(number, series): (usize, &super::Series)| {
            let rows = self.rows.iter().filter(|row| row.series == number);
            let mut found: Vec<(f64, Option<Estimate>)> =
                rows.map(|row| (row.size as f64, of(row))).collect();
            found.sort_by(|left, right| left.0.total_cmp(&right.0));
            let name = if series.name.is_empty() { "all".to_owned() } else { series.name.clone() };
            Line {
                name,
                points: found
                    .iter()
                    .filter_map(|(size, found)| Some((*size, found.as_ref()?.value)))
                    .collect(),
                band: band(found.iter().map(|(size, found)| (*size, found.and_then(|found| found.bounds)))),
                ..Line::default()
            }
        };
        self.series.iter().enumerate().map(line).filter(|line| !line.points.is_empty()).collect()
    }

    /// What was seen in trials that count for nothing.
    fn crosses(&self) -> Option<Line> {
        let red = self.trials.iter().filter(|trial| !trial.counts() && trial.payload_per_s > 0.0);
        let points: Vec<(f64, f64)> =
            red.map(|trial| (trial.size as f64, trial.payload_per_s / MIB)).collect();
        let name = "not a result".to_owned();
        (!points.is_empty()).then(|| Line { name, points, is_scattered: true, ..Line::default() })
    }

    fn table(&self) -> Table {
        let columns = [
            "size",
            "series",
            "verdict",
            "trials",
            "answers/s",
            "MiB/s",
            "from",
            "to",
            "times the first",
            "from",
            "to",
            "server us/MiB",
            "generator us/MiB",
            "suite",
        ];
        let number = |value: f64| Cell::Number((value * 1e4).round() / 1e4);
        let middle = |found: Option<Estimate>| found.map_or(Cell::Empty, |found| number(found.value));
        let bounds = |found: Option<Estimate>| match found.and_then(|found| found.bounds) {
            Some((low, high)) => [number(low), number(high)],
            None => [Cell::Empty, Cell::Empty],
        };
        let row = |row: &Row| {
            let payload = row.payload_per_s.map(|found| found.map(|bytes| bytes / MIB));
            let ([low, high], [times_low, times_high]) = (bounds(payload), bounds(row.times_first));
            vec![
                (row.size as f64).into(),
                self.series[row.series].name.as_str().into(),
                row.colour.to_string().as_str().into(),
                format!("{} of {}", row.counted, row.trials).as_str().into(),
                if row.counted > 0 { number(row.answers_per_s) } else { Cell::Empty },
                middle(payload),
                low,
                high,
                middle(row.times_first),
                times_low,
                times_high,
                middle(row.server_us_per_mib),
                middle(row.own_us_per_mib),
                if row.suite.is_empty() { "none".into() } else { row.suite.into() },
            ]
        };
        table("Payload by size", &columns, self.rows.iter().map(row).collect())
    }

    /// Everything, for programs.
    pub fn json(&self) -> Value {
        let series = self.series.iter().zip(&self.negotiated).map(|(series, found)| {
            let urls: Vec<String> = series.plan.targets.iter().map(|target| target.url.to_string()).collect();
            json!({
                "name": series.name, "urls": urls, "suite": series.plan.offer.suites.first(),
                "negotiated": negotiated(found),
            })
        });
        json!({
            "version": 1, "kind": "bulk", "seconds": self.seconds, "sizes": self.asked.sizes,
            "way": match self.asked.way {
                Way::Down => "down",
                Way::Up => "up",
            },
            "rounds": self.asked.rounds, "series": series.collect::<Vec<_>>(),
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "trials": self.trials.iter().map(trial).collect::<Vec<_>>(),
        })
    }
}

fn row(row: &Row) -> Value {
    json!({
        "size": row.size, "series": row.series, "colour": row.colour.to_string(), "reasons": row.reasons,
        "counted": row.counted, "trials": row.trials, "suite": row.suite,
        "payload_per_second": row.payload_per_s.as_ref().map(estimate), "answers_per_second": row.answers_per_s,
        "times_first": row.times_first.as_ref().map(estimate),
        "server_us_per_mib": row.server_us_per_mib.as_ref().map(estimate),
        "generator_us_per_mib": row.own_us_per_mib.as_ref().map(estimate),
    })
}

fn trial(trial: &Hauled) -> Value {
    let reasons: Vec<&str> = trial.verdict.reasons.iter().map(|reason| reason.text.as_str()).collect();
    let voids: Vec<&str> = trial.voids.iter().map(|void| void.sentence.as_str()).collect();
    json!({
        "round": trial.round, "series": trial.series, "size": trial.size,
        "payload_per_second": trial.payload_per_s, "answers_per_second": trial.answers_per_s,
        "server_us_per_mib": trial.server_us_per_mib, "generator_us_per_mib": trial.own_us_per_mib,
        "connections_opened": trial.opened, "suite": trial.suite,
        "colour": trial.verdict.colour.to_string(), "reasons": reasons, "voids": voids,
    })
}

/// In the largest unit of which it is a whole number.
fn size_name(bytes: u64) -> String {
    let steps = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match steps.into_iter().find(|(bits, _)| bytes.is_multiple_of(1 << bits)) {
        Some((bits, unit)) => format!("{} {unit}", bytes >> bits),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_once_has_no_bounds() {
        let once = Some(Estimate::plain(2.0));
        let found = Row {
            size: 1,
            series: 0,
            counted: 1,
            trials: 1,
            payload_per_s: once,
            answers_per_s: 2.0,
            own_us_per_mib: Some(Estimate { value: 2.0, bounds: Some((1.0, 3.0)) }),
            server_us_per_mib: None,
            times_first: once,
            suite: "",
            colour: Colour::Green,
            reasons: Vec::new(),
        };
        let value = row(&found);
        for name in ["payload_per_second", "times_first"] {
            assert_eq!(value[name], json!({"estimate": 2.0, "low": null, "high": null}), "{name}");
        }
        assert_eq!(value["generator_us_per_mib"], json!({"estimate": 2.0, "low": 1.0, "high": 3.0}));
        assert_eq!(value["server_us_per_mib"], Value::Null);
    }

    /// Whichever comes first.
    #[test]
    fn settings_are_those_of_all_that_is_measured() {
        use crate::{Body, Load, Target, Url};
        let plan = |url: &str, process: u32| {
            let url = Url::parse(url).expect("a URL");
            let target =
                Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Body::None };
            let mut plan = Plan::new(vec![target], Load::Closed { clients: 1 });
            plan.offer.suites = vec!["A".to_owned(), "B".to_owned()];
            plan.offer.version = Some(pointsman_tls::OneVersion::Tls13);
            plan.server_process = Some(process);
            plan.with_tls_where_it_is()
        };
        let (plain, over_tls) = ("http://a/{size}", "https://a/{size}");
        for (urls, said) in [([plain, over_tls], true), ([over_tls, plain], true), ([plain, plain], false)] {
            let plans = vec![plan(urls[0], 4), plan(urls[1], 5)];
            let settings = Bulk { plans, way: Way::Down, sizes: vec![10, 20], rounds: 2 }.settings();
            let of = |name: &str| settings.get(name).map(String::as_str);
            assert_eq!(of("tls.suites"), said.then_some("A, B"), "{urls:?}");
            assert_eq!(of("tls.version").is_some(), said, "{urls:?}");
            assert_eq!(of("tls.verify"), said.then_some("true"), "{urls:?}");
            assert_eq!((of("load.clients"), of("server_process")), (Some("1"), Some("4, 5")));
            assert_eq!((of("targets.url"), of("sizes")), (Some(&*urls.join(", ")), Some("10, 20")));
        }
    }

    #[test]
    fn sizes_are_said_in_whole_units() {
        let names = [1, 1000, 1024, 1536, 3 << 20, 1 << 30].map(size_name);
        assert_eq!(names, ["1 B", "1000 B", "1 KiB", "1536 B", "3 MiB", "1 GiB"]);
    }
}
