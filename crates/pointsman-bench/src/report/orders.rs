//! Orders of growing size as a report shows them: how long each took.

use pointsman_measure::chart::{Axis, Line};
use pointsman_measure::report::{Figure, Run};
use pointsman_measure::statistics::mean_interval;
use pointsman_measure::table::Cell;
use pointsman_measure::verdict::Colour;
use serde_json::json;

use super::charts::{band, chart};
use super::tables::table;
use super::{NotRun, ms};
use crate::outcome::Outcome;
use crate::provenance::provenance;

/// What one size came to.
#[derive(Clone, Debug)]
pub struct OrderOutcome {
    /// Items of the order.
    pub items: u32,
    /// Bytes of it.
    pub bytes: usize,
    /// What came of sending it.
    pub outcome: Outcome,
}

impl OrderOutcome {
    fn is_red(&self) -> bool {
        !self.outcome.voids.is_empty() || self.outcome.verdict().colour == Colour::Red
    }

    fn mean_ms(&self) -> f64 {
        ms(self.outcome.record.service.mean())
    }

    /// Where the mean is, in ms: times are known to three digits, and those that are the same to these could be apart.
    fn mean_bounds(&self) -> Option<(f64, f64)> {
        let times = &self.outcome.record.service;
        let middle = |step: u64| times.median_equivalent(step) as f64;
        let steps = times.iter_recorded();
        let all: Vec<f64> = steps
            .flat_map(|step| {
                std::iter::repeat_n(middle(step.value_iterated_to()), step.count_at_value() as usize)
            })
            .collect();
        let found = mean_interval(&all)?;
        let half = times.equivalent_range(times.max()) as f64 / 2.0;
        Some((ms((found.low - half).max(0.0)), ms(found.high + half)))
    }
}

/// The time of an order by its size, under this name, in the order of running; those that were not run are void.
pub fn orders(name: &str, steps: &[OrderOutcome], not_run: Option<&NotRun>) -> Run {
    let Some(first) = steps.first() else { return Run::named(name) };
    let mut run = provenance(name, &first.outcome.machine);
    run.settings = first.outcome.plan.settings();
    let void = not_run.map_or(&[][..], |not_run| &not_run.steps);
    let items = steps.iter().map(|step| step.items).chain(void.iter().copied());
    let items: Vec<String> = items.map(|items| items.to_string()).collect();
    run.settings.insert("orders.items".to_owned(), items.join(", "));
    run.settings.remove("targets.body_bytes");
    let counting: Vec<&OrderOutcome> = steps.iter().filter(|step| !step.is_red()).collect();
    for step in steps {
        let verdict = step.outcome.verdict();
        let voids = step.outcome.voids.iter().map(|void| &void.sentence);
        let reasons = voids.chain(verdict.reasons.iter().map(|reason| &reason.text));
        let what = if step.is_red() { ", not a result" } else { "" };
        run.reasons.extend(reasons.map(|reason| format!("{} items{what}: {reason}", step.items)));
    }
    run.colour = match (counting.is_empty(), run.reasons.is_empty()) {
        (true, _) => Colour::Red,
        (false, false) => Colour::Amber,
        (false, true) => Colour::Green,
    };
    run.figures = figures(&counting);
    run.answer = answer(&counting);
    let bounds = |step: &OrderOutcome| if step.is_red() { None } else { step.mean_bounds() };
    let mut lines = vec![Line {
        name: "mean".to_owned(),
        points: counting.iter().map(|step| (step.bytes as f64, step.mean_ms())).collect(),
        band: band(steps.iter().map(|step| (step.bytes as f64, bounds(step)))),
        ..Line::default()
    }];
    let red: Vec<_> = steps.iter().filter(|step| step.is_red() && step.outcome.record.answered > 0).collect();
    if !red.is_empty() {
        let points = red.iter().map(|step| (step.bytes as f64, step.mean_ms())).collect();
        lines.push(Line { name: "not a result".to_owned(), points, is_scattered: true, ..Line::default() });
    }
    run.charts = vec![chart(
        "orders",
        "Time of an order by its size",
        Axis::logarithmic("bytes"),
        Axis::logarithmic("ms"),
        lines,
    )];
    let mut table = by_size(steps);
    let row =
        |items: &u32| vec![f64::from(*items).into(), Cell::Empty, Cell::Empty, Cell::Empty, "void".into()];
    table.rows.extend(void.iter().map(row));
    run.tables = vec![table];
    let outcomes: Vec<_> = steps
        .iter()
        .map(|step| json!({"items": step.items, "bytes": step.bytes, "outcome": step.outcome.json()}))
        .collect();
    run.outcome = Some(json!({"kind": "orders", "steps": outcomes}));
    not_run.iter().for_each(|not_run| not_run.mark(&mut run, "items"));
    run
}

fn answer(counting: &[&OrderOutcome]) -> String {
    let (Some(first), Some(last)) = (counting.first(), counting.last()) else { return String::new() };
    let failed: u64 = counting.iter().map(|step| step.outcome.record.failed()).sum();
    let failed = if failed == 0 { "none failed".to_owned() } else { format!("{failed} failed") };
    let time = |step: &OrderOutcome| super::time(step.outcome.record.service.mean() as u64);
    format!(
        "An order of {} bytes takes {}, one of {} bytes {}; {failed}.",
        first.bytes,
        time(first),
        last.bytes,
        time(last)
    )
}

fn figures(counting: &[&OrderOutcome]) -> Vec<Figure> {
    let (Some(first), Some(last)) = (counting.first(), counting.last()) else { return Vec::new() };
    let figure = |name: String, unit: &str, value: f64, interval| Figure {
        name,
        unit: unit.to_owned(),
        value: Some(value).filter(|value| value.is_finite()),
        interval,
    };
    let mean = |step: &OrderOutcome| {
        figure(format!("{} items", step.items), "ms", step.mean_ms(), step.mean_bounds())
    };
    let further_kb = (last.bytes - first.bytes.min(last.bytes)) as f64 / 1e3;
    let slope = (last.mean_ms() - first.mean_ms()) * 1e3 / further_kb;
    let failed: u64 = counting.iter().map(|step| step.outcome.record.failed()).sum();
    let mut figures = vec![mean(first), mean(last)];
    figures.push(figure("a kilobyte more".to_owned(), "µs", slope, None));
    figures.push(figure("failed".to_owned(), "orders", failed as f64, None));
    figures
}

fn by_size(steps: &[OrderOutcome]) -> pointsman_measure::table::Table {
    let number = |value: f64| Cell::Number((value * 1e4).round() / 1e4);
    let row = |step: &OrderOutcome| {
        let record = &step.outcome.record;
        let mut cells = vec![
            f64::from(step.items).into(),
            (step.bytes as f64).into(),
            (record.answered as f64).into(),
            (record.failed() as f64).into(),
            if step.is_red() {
                "red, not a result".into()
            } else {
                step.outcome.verdict().colour.to_string().as_str().into()
            },
        ];
        if !record.service.is_empty() {
            let (low, high) = step.mean_bounds().unzip();
            let bound = |at: Option<f64>| at.map_or(Cell::Empty, number);
            cells.extend([number(step.mean_ms()), bound(low), bound(high)]);
            let at = |quantile| number(ms(record.service.value_at_quantile(quantile) as f64));
            cells.extend([at(0.0), at(0.5), at(1.0)]);
        }
        cells
    };
    table(
        "Time by size, in ms",
        &["items", "bytes", "answered", "failed", "verdict", "mean", "from", "to", "least", "p50", "most"],
        steps.iter().map(row).collect(),
    )
}
