//! A ladder of clients as a report shows it: what was answered by how many clients, of each class too.

use pointsman_measure::chart::{Axis, Chart, Line};
use pointsman_measure::report::{Figure, Run};
use pointsman_measure::statistics::scalability;
use pointsman_measure::table::{Cell, Table, csv};
use pointsman_measure::verdict::Colour;
use serde_json::json;

use super::{NotRun, answered_bounds, band, chart, ms, round, table};
use crate::classes::ClassRecord;
use crate::outcome::Outcome;
use crate::plan::Load;
use crate::provenance::provenance;

/// Classes that are drawn: so many lines can be told apart. All of them are listed.
const CLASSES_DRAWN: usize = 6;

/// What each number of clients came to, under this name, in the order of running. A step whose client was not in control
/// is marked and counts for no figure; those that were not run are void.
pub fn ladder(name: &str, steps: &[Outcome], not_run: Option<&NotRun>) -> Run {
    let rungs: Vec<Rung<'_>> = steps.iter().map(Rung::of).collect();
    let Some(first) = steps.first() else { return Run::named(name) };
    let mut run = provenance(name, &first.machine);
    run.settings = first.plan.settings();
    let void = not_run.map_or(&[][..], |not_run| &not_run.steps);
    let clients = rungs.iter().map(|rung| rung.clients).chain(void.iter().copied());
    let clients: Vec<String> = clients.map(|clients| clients.to_string()).collect();
    run.settings.insert("load.clients".to_owned(), clients.join(", "));
    run.reasons = reasons(&rungs);
    run.colour = colour(&rungs);
    let counting: Vec<&Rung<'_>> = rungs.iter().filter(|rung| rung.colour != Colour::Red).collect();
    run.answer = answer(&counting, rungs.len() + void.len());
    run.figures = figures(&counting);
    run.charts = charts(&rungs);
    run.tables = tables(&rungs);
    for (at, table) in run.tables.iter_mut().enumerate() {
        let word = if at == 0 { vec![Cell::from("void")] } else { Vec::new() };
        let row = |clients: &u32| [vec![f64::from(*clients).into()], word.clone()].concat();
        table.rows.extend(void.iter().map(row));
    }
    let outcomes: Vec<_> = steps.iter().map(Outcome::json).collect();
    run.outcome = Some(json!({"kind": "workload", "steps": outcomes}));
    not_run.iter().for_each(|not_run| not_run.mark(&mut run, "clients"));
    run
}

/// All tables of a ladder as one, a row for each number of clients.
pub fn ladder_csv(run: &Run) -> String {
    let mut tables = run.tables.iter();
    let mut whole = tables.next().cloned().unwrap_or_default();
    for further in tables {
        let unit = further.title.split(" of each class").next().unwrap_or_default();
        whole.columns.extend(further.columns.iter().skip(1).map(|class| format!("{class}: {unit}")));
        let columns = whole.columns.len() + 1 - further.columns.len();
        for (row, cells) in whole.rows.iter_mut().zip(&further.rows) {
            row.resize(columns, Cell::Empty);
            row.extend(cells.iter().skip(1).cloned());
        }
    }
    let columns = whole.columns.len();
    whole.rows.iter_mut().for_each(|row| row.resize(columns, Cell::Empty));
    csv(&whole)
}

/// One number of clients.
struct Rung<'o> {
    clients: u32,
    outcome: &'o Outcome,
    rate: f64,
    /// From where to where it is, where that is known.
    interval: Option<(f64, f64)>,
    bytes_per_s: f64,
    colour: Colour,
    reasons: Vec<String>,
}

impl Rung<'_> {
    fn of(outcome: &Outcome) -> Rung<'_> {
        let clients = match outcome.plan.load {
            Load::Closed { clients } => clients,
            Load::Open { .. } => 0,
        };
        let verdict = outcome.verdict();
        let rate = outcome.rate();
        let voids = outcome.voids.iter().map(|void| void.sentence.clone());
        Rung {
            clients,
            outcome,
            rate,
            interval: answered_bounds(outcome),
            bytes_per_s: outcome.record.bytes_in_time() as f64 / outcome.seconds,
            colour: if outcome.voids.is_empty() { verdict.colour } else { Colour::Red },
            reasons: voids.chain(verdict.reasons.into_iter().map(|reason| reason.text)).collect(),
        }
    }

    fn of_class(&self, class: usize, of: fn(&ClassRecord) -> u64) -> f64 {
        self.outcome.record.classes.get(class).map_or(0, of) as f64 / self.outcome.seconds
    }

    fn response_ms(&self, quantile: f64) -> Option<f64> {
        let times = &self.outcome.record.response;
        (!times.is_empty()).then(|| ms(times.value_at_quantile(quantile) as f64))
    }
}

/// Amber where some steps count and others do not.
fn colour(rungs: &[Rung<'_>]) -> Colour {
    let worst = rungs.iter().map(|rung| rung.colour).max().unwrap_or(Colour::Green);
    let counts = rungs.iter().any(|rung| rung.colour != Colour::Red);
    if worst == Colour::Red && counts { Colour::Amber } else { worst }
}

fn reasons(rungs: &[Rung<'_>]) -> Vec<String> {
    let sentence = |rung: &Rung<'_>| {
        let what = if rung.colour == Colour::Red { ", not a result" } else { "" };
        format!("{} clients, {}{what}: {}", rung.clients, rung.colour, rung.reasons.join("; "))
    };
    rungs.iter().filter(|rung| !rung.reasons.is_empty()).map(sentence).collect()
}

fn most<'r, 'o>(counting: &[&'r Rung<'o>]) -> Option<&'r Rung<'o>> {
    counting.iter().copied().max_by(|left, right| left.rate.total_cmp(&right.rate))
}

fn answer(counting: &[&Rung<'_>], all: usize) -> String {
    let Some(most) = most(counting) else { return String::new() };
    let left_out = match all - counting.len() {
        0 => String::new(),
        1 => "; one step is not a result".to_owned(),
        many => format!("; {many} steps are not results"),
    };
    let failed: u64 = counting.iter().map(|rung| rung.outcome.record.failed()).sum();
    let failed = if failed == 0 { "none failed".to_owned() } else { format!("{failed} requests failed") };
    format!(
        "{} requests a second, {} MB/s, with {} clients: the most of {} steps; {failed}{left_out}.",
        round(most.rate),
        round(most.bytes_per_s / 1e6),
        most.clients,
        counting.len(),
    )
}

fn figures(counting: &[&Rung<'_>]) -> Vec<Figure> {
    let Some(most) = most(counting) else { return Vec::new() };
    let figure = |name: &str, unit: &str, value: Option<f64>| Figure {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value,
        interval: None,
    };
    let sum = |of: fn(&Outcome) -> u64| counting.iter().map(|rung| of(rung.outcome)).sum::<u64>() as f64;
    let failed = sum(|outcome| outcome.record.failed()) / sum(|outcome| outcome.record.due).max(1.0);
    let points: Vec<(f64, f64)> = counting.iter().map(|rung| (f64::from(rung.clients), rung.rate)).collect();
    let law = scalability(&points);
    vec![
        Figure { interval: most.interval, ..figure("most answered", "1/s", Some(most.rate)) },
        figure("clients there", "clients", Some(f64::from(most.clients))),
        figure("failed", "%", Some(100.0 * failed)),
        figure("response p99 there", "ms", most.response_ms(0.99)),
        figure("received there", "MB/s", Some(most.bytes_per_s / 1e6)),
        figure("best number by the scalability law", "clients", law.and_then(|law| law.clients_at_peak())),
    ]
}

/// A line through the steps that count, and crosses where the others are.
fn lines(name: &str, rungs: &[Rung<'_>], of: impl Fn(&Rung<'_>) -> Option<f64>) -> Vec<Line> {
    let points = |is_red: bool| -> Vec<(f64, f64)> {
        let chosen = rungs.iter().filter(|rung| (rung.colour == Colour::Red) == is_red);
        chosen.filter_map(|rung| Some((f64::from(rung.clients), of(rung)?))).collect()
    };
    let mut lines = vec![Line { name: name.to_owned(), points: points(false), ..Line::default() }];
    let red = points(true);
    if !red.is_empty() {
        lines.push(Line {
            name: "not a result".to_owned(),
            points: red,
            is_scattered: true,
            ..Line::default()
        });
    }
    lines
}

fn charts(rungs: &[Rung<'_>]) -> Vec<Chart> {
    let clients = || Axis::from_zero("clients");
    let mut answered = lines("answered", rungs, |rung| Some(rung.rate));
    // One that is no result has no interval.
    let interval = |rung: &Rung<'_>| rung.interval.filter(|_| rung.colour != Colour::Red);
    answered[0].band = band(rungs.iter().map(|rung| (f64::from(rung.clients), interval(rung))));
    let mut times = lines("p50", rungs, |rung| rung.response_ms(0.5));
    times.insert(1, lines("p99", rungs, |rung| rung.response_ms(0.99)).swap_remove(0));
    let mut charts = vec![
        chart("ladder", "Requests by clients", clients(), Axis::from_zero("requests a second"), answered),
        chart(
            "ladder-bytes",
            "Throughput by clients",
            clients(),
            Axis::from_zero("MB/s"),
            lines("received", rungs, |rung| Some(rung.bytes_per_s / 1e6)),
        ),
        chart("ladder-times", "Response time by clients", clients(), Axis::from_zero("ms"), times),
    ];
    let names = class_names(rungs);
    if !names.is_empty() {
        let by_class = |of: fn(&ClassRecord) -> u64, unit: f64| {
            let classes = names.iter().enumerate().take(CLASSES_DRAWN);
            let line = |(at, name): (usize, &&str)| {
                lines(name, rungs, |rung| Some(rung.of_class(at, of) / unit)).swap_remove(0)
            };
            classes.map(line).collect::<Vec<Line>>()
        };
        let requests = by_class(ClassRecord::completed, 1.0);
        let bytes = by_class(ClassRecord::bytes, 1e6);
        charts.push(chart(
            "classes",
            "Requests of each class",
            clients(),
            Axis::from_zero("requests a second"),
            requests,
        ));
        charts.push(chart(
            "classes-bytes",
            "Throughput of each class",
            clients(),
            Axis::from_zero("MB/s"),
            bytes,
        ));
    }
    charts
}

fn class_names<'o>(rungs: &[Rung<'o>]) -> Vec<&'o str> {
    let classes = rungs.first().map(|rung| &rung.outcome.plan.classes);
    classes.into_iter().flatten().map(|class| class.name.as_str()).collect()
}

fn tables(rungs: &[Rung<'_>]) -> Vec<Table> {
    let number = |value: f64| Cell::Number((value * 1000.0).round() / 1000.0);
    let time = |value: Option<f64>| value.map_or(Cell::Empty, number);
    let row = |rung: &Rung<'_>| {
        vec![
            f64::from(rung.clients).into(),
            rung.colour.to_string().as_str().into(),
            number(rung.rate),
            time(rung.interval.map(|(low, _)| low)),
            time(rung.interval.map(|(_, high)| high)),
            number(rung.bytes_per_s),
            (rung.outcome.record.failed() as f64).into(),
            time(rung.response_ms(0.5)),
            time(rung.response_ms(0.99)),
        ]
    };
    let columns = ["clients", "verdict", "requests/s", "from", "to", "bytes/s", "failed", "p50 ms", "p99 ms"];
    let mut tables = vec![table("By clients", &columns, rungs.iter().map(row).collect())];
    let names = class_names(rungs);
    if names.is_empty() {
        return tables;
    }
    let columns: Vec<&str> = std::iter::once("clients").chain(names.iter().copied()).collect();
    let of_classes = |title: &str, of: &dyn Fn(&Rung<'_>, usize) -> f64| {
        let row = |rung: &Rung<'_>| {
            let cells = (0..names.len()).map(|class| number(of(rung, class)));
            std::iter::once(f64::from(rung.clients).into()).chain(cells).collect()
        };
        table(title, &columns, rungs.iter().map(row).collect())
    };
    let failed =
        |rung: &Rung<'_>, class: usize| rung.of_class(class, |class| class.failed) * rung.outcome.seconds;
    tables.extend([
        of_classes("requests/s of each class", &|rung, class| rung.of_class(class, ClassRecord::completed)),
        of_classes("bytes/s of each class", &|rung, class| rung.of_class(class, ClassRecord::bytes)),
        of_classes("failed of each class", &failed),
    ]);
    tables
}
