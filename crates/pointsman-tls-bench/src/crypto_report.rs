//! What came of method 1, as a report shows it.

use pointsman_bench::{Machine, mark_interrupted, provenance, texts};
use pointsman_measure::Interval;
use pointsman_measure::chart::{Axis, Chart, Content, Line};
use pointsman_measure::report::{Figure, Run};
use pointsman_measure::table::{Cell, Table};

use crate::crypto::{Outcome, Row};
use crate::engaged::Place;
use crate::operation::{Cipher, Operation};

impl Outcome {
    /// The run as a report shows it, under this name.
    pub fn report(&self, name: &str) -> Run {
        let (json, verdict) = (self.json(), self.verdict());
        let mut run = provenance(name, &Machine::look());
        let providers = self.plan.providers.iter();
        run.versions.extend(providers.map(|provider| (provider.name(), provider.version())));
        run.machine.insert("processor's instructions".to_owned(), crate::processor_flags().join(" "));
        run.settings = texts(&json["settings"]);
        run.colour = verdict.colour;
        run.reasons = verdict.reasons.into_iter().map(|reason| reason.text).collect();
        run.answer = self.answer();
        run.figures = self.rows.iter().map(|row| self.figure(row)).collect();
        run.charts = self.charts();
        run.tables = vec![self.table(), self.unable_table()];
        run.tables.retain(|table| !table.rows.is_empty());
        run.outcome = Some(json);
        mark_interrupted(&mut run, self.interrupted.as_deref());
        run
    }

    fn answer(&self) -> String {
        let count = |place: Place| self.rows.iter().filter(|row| row.figures.engaged.place == place).count();
        let not_as_claimed =
            self.rows.iter().filter(|row| row.figures.engaged.word() == "NOT engaged").count();
        let claimed = match not_as_claimed {
            0 => String::new(),
            count => format!(" {count} are claimed to be done by hardware, and are not."),
        };
        format!(
            "Of {} rows {} are done by the cores themselves, {} partly, and {} by something else.{claimed}",
            self.rows.len(),
            count(Place::Cores),
            count(Place::Partly),
            count(Place::Elsewhere),
        )
    }

    fn who(&self, row: &Row) -> String {
        self.plan.providers[row.provider].name()
    }

    fn figure(&self, row: &Row) -> Figure {
        let depth = if row.depth == 1 { String::new() } else { format!(", {} at a time", row.depth) };
        Figure {
            name: format!("{} by {}{depth}", row.operation, self.who(row)),
            unit: "1/s".to_owned(),
            value: Some(row.figures.rate.estimate),
            interval: Some((row.figures.rate.low, row.figures.rate.high)),
        }
    }

    /// Over what was varied: block sizes, and operations at a time.
    fn charts(&self) -> Vec<Chart> {
        let mut charts = Vec::new();
        for cipher in Cipher::ALL {
            let is = |row: &&Row| matches!(row.operation, Operation::Seal(of, _) if of == cipher);
            let rows: Vec<&Row> =
                self.rows.iter().filter(|row| row.depth == self.plan.depths[0]).filter(is).collect();
            let place = |row: &Row| {
                let bytes = row.operation.bytes() as f64;
                (bytes, row.figures.rate.map(|rate| rate * bytes / 1e6))
            };
            let title = format!("{} over the size of blocks", cipher.name());
            charts.extend(self.chart(&title, ("bytes of a block", "MB/s"), &rows, place));
        }
        let mut operations: Vec<Operation> = Vec::new();
        for row in &self.rows {
            if !operations.contains(&row.operation) {
                operations.push(row.operation);
            }
        }
        for operation in operations {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.operation == operation).collect();
            let title = format!("{operation} over operations at a time");
            let rate = |row: &Row| (row.depth as f64, row.figures.rate);
            charts.extend(self.chart(&title, ("operations at a time", "a second"), &rows, rate));
            let title = format!("{operation}: time of one, over operations at a time");
            let timed: Vec<&Row> = rows.into_iter().filter(|row| row.figures.latency.is_some()).collect();
            let latency = |row: &Row| {
                let us = |quantile| {
                    let times = row.figures.latency.as_ref();
                    times.map_or(0.0, |times| times.value_at_quantile(quantile) as f64 / 1e3)
                };
                (row.depth as f64, Interval { estimate: us(0.5), low: us(0.5), high: us(0.99) })
            };
            let axes = ("operations at a time", "us: median, and up to p99");
            charts.extend(self.chart(&title, axes, &timed, latency));
        }
        charts
    }

    /// A line for each provider; none where nobody has two places.
    fn chart(
        &self,
        title: &str,
        (x, y): (&str, &str),
        rows: &[&Row],
        place: impl Fn(&Row) -> (f64, Interval),
    ) -> Option<Chart> {
        let line = |at: usize| {
            let mut places: Vec<(f64, Interval)> =
                rows.iter().filter(|row| row.provider == at).map(|row| place(row)).collect();
            places.sort_by(|one, other| one.0.total_cmp(&other.0));
            Line {
                name: self.plan.providers[at].name(),
                points: places.iter().map(|(x, y)| (*x, y.estimate)).collect(),
                band: places.iter().map(|(x, y)| (*x, y.low.max(0.0), y.high)).collect(),
                ..Line::default()
            }
        };
        let lines: Vec<Line> = (0..self.plan.providers.len()).map(line).collect();
        let lines: Vec<Line> = lines.into_iter().filter(|line| line.points.len() > 1).collect();
        (!lines.is_empty()).then(|| Chart {
            id: title.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
            title: title.to_owned(),
            x: Axis::logarithmic(x),
            y: Axis::from_zero(y),
            content: Content::Lines(lines),
        })
    }

    fn table(&self) -> Table {
        const COLUMNS: [&str; 14] = [
            "operation",
            "provider",
            "at a time",
            "a second",
            "low",
            "high",
            "CPU us",
            "p50 us",
            "p99 us",
            "times the first",
            "low",
            "high",
            "CPU share",
            "engaged",
        ];
        let row = |row: &Row| {
            let figures = &row.figures;
            let number = |value: f64| Cell::Number(rounded(value));
            let at = |quantile| {
                let times = figures.latency.as_ref();
                times.map_or(Cell::Empty, |times| number(times.value_at_quantile(quantile) as f64 / 1e3))
            };
            let ratio = |of: fn(&Interval) -> f64| {
                figures.speed_up.as_ref().map_or(Cell::Empty, |factor| number(of(factor)))
            };
            vec![
                row.operation.to_string().as_str().into(),
                self.who(row).as_str().into(),
                (row.depth as f64).into(),
                number(figures.rate.estimate),
                number(figures.rate.low),
                number(figures.rate.high),
                number(figures.cpu_us.estimate),
                at(0.5),
                at(0.99),
                ratio(|factor| factor.estimate),
                ratio(|factor| factor.low),
                ratio(|factor| factor.high),
                number(figures.engaged.cpu_share),
                figures.engaged.sentence().as_str().into(),
            ]
        };
        Table {
            title: "Primitives".to_owned(),
            columns: COLUMNS.map(str::to_owned).to_vec(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    fn unable_table(&self) -> Table {
        let row = |unable: &crate::crypto::Unable| {
            let name = self.plan.providers[unable.provider].name();
            vec![unable.primitive.name().into(), name.as_str().into(), unable.why.to_string().as_str().into()]
        };
        Table {
            title: "Not measured".to_owned(),
            columns: ["primitive", "provider", "why"].map(str::to_owned).to_vec(),
            rows: self.unable.iter().map(row).collect(),
        }
    }
}

/// Four digits that count.
pub(crate) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pointsman_measure::verdict::Colour;

    use super::*;
    use crate::crypto::{Plan, crypto};
    use crate::{Library, Primitive, Provider};
    use pointsman_bench::Interrupt;

    #[test]
    fn a_report_says_all_that_was_measured() {
        let sizes = [16, 64].map(|bytes| Primitive::Cipher(Cipher::Aes128Gcm, bytes));
        let plan = Plan {
            primitives: [sizes.to_vec(), vec![Primitive::Exchange(crate::Group::X25519MlKem768)]].concat(),
            providers: vec![Provider::Library(Library::aws_lc_rs()), Provider::Library(Library::ring())],
            depths: vec![1, 2],
            rounds: 4,
            round_time: Duration::from_millis(1),
            seed: 1,
            interrupt: Interrupt::default(),
        };
        let outcome = crypto(&plan, &mut |_| {}).expect("two libraries");
        let run = outcome.report("here");
        assert_eq!(run.figures.len(), outcome.rows.len());
        assert_eq!(run.versions["ring"], Library::ring().version());
        // Blocks once; rate and time of two blocks and three steps over depths.
        assert_eq!(run.charts.len(), 1 + 2 * 5, "{:?}", run.charts.iter().map(|c| &c.id).collect::<Vec<_>>());
        assert_eq!(
            run.tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(),
            [outcome.rows.len(), 1]
        );
        assert!(run.answer.starts_with("Of 14 rows "), "{}", run.answer);
        let said = run.outcome.expect("JSON");
        assert_eq!(said["settings"]["rounds"], 4);
    }

    #[test]
    fn a_busy_machine_is_no_green_one() {
        let plan = Plan {
            primitives: vec![Primitive::Cipher(Cipher::Aes128Gcm, 16)],
            providers: vec![Provider::Library(Library::ring())],
            depths: vec![1],
            rounds: 4,
            round_time: Duration::from_millis(1),
            seed: 1,
            interrupt: Interrupt::default(),
        };
        let mut outcome = crypto(&plan, &mut |_| {}).expect("a library");
        let waited = outcome.rows[0].figures.waited_share;
        assert!(waited.is_some_and(|share| (0.0..=1.0).contains(&share)), "{outcome:?}");
        assert!(outcome.rows[0].figures.switches_per_s.is_some());
        let mut seen = |waited, switches, stolen, depth| {
            let row = &mut outcome.rows[0];
            (row.figures.waited_share, row.figures.switches_per_s) = (Some(waited), Some(switches));
            (row.depth, outcome.stolen) = (depth, Some(stolen));
            let run = outcome.report("here");
            (run.colour, run.reasons.len())
        };
        assert_eq!(seen(0.0, 1.0, 0.0, 1), (Colour::Green, 0));
        assert_eq!(seen(0.1, 1.0, 0.0, 1), (Colour::Amber, 1));
        assert_eq!(seen(0.5, 900.0, 0.0, 1), (Colour::Red, 2));
        assert_eq!(seen(0.0, 1.0, 0.2, 1), (Colour::Red, 1));
        assert_eq!(seen(0.5, 900.0, 0.0, 1_000), (Colour::Green, 0), "threads that wait for each other");
    }

    #[test]
    fn four_digits_count() {
        assert_eq!([0.0, 1234.56, 0.000_123_456, 12.0].map(rounded), [0.0, 1235.0, 0.000_123_5, 12.0]);
    }
}
