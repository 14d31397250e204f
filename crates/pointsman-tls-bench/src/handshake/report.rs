//! What came of the handshakes, as a report shows it.

use pointsman_bench::{Machine, mark_interrupted, provenance, texts};
use pointsman_measure::chart::{Axis, Chart, Content, Layer, Line};
use pointsman_measure::report::{Figure, Run};
use pointsman_measure::table::{Cell, Table};
use pointsman_measure::verdict::Colour;

use super::outcome::{Distribution, Measured, Outcome, SERVER_UNKNOWN};
use super::phases::Phase;
use crate::crypto_report::rounded;

/// Points of a distribution's line.
const POINTS: usize = 200;

impl Outcome {
    /// The run as a report shows it, under this name. A run that is void is red.
    pub fn report(&self, name: &str) -> Run {
        let (json, verdict) = (self.json(), self.verdict());
        let mut run = provenance(name, &Machine::look());
        run.settings = texts(&json["settings"]);
        run.colour = if self.voids.is_empty() { verdict.colour } else { Colour::Red };
        let reasons = verdict.reasons.into_iter().map(|reason| reason.text);
        run.reasons = self.voids.iter().map(|void| void.sentence.clone()).chain(reasons).collect();
        run.answer = self.series.iter().map(answer).collect::<Vec<_>>().join(" ");
        run.figures = self.series.iter().flat_map(figures).collect();
        run.charts = vec![self.phases_chart(), self.prediction_chart(), self.distribution_chart()];
        run.tables = vec![self.phases_table(), self.prediction_table(), self.answers_table()];
        run.outcome = Some(json);
        mark_interrupted(&mut run, self.interrupted.as_deref());
        run
    }

    /// A bar for each series, its phases on top of each other.
    fn phases_chart(&self) -> Chart {
        let layer = |phase: Phase| Layer {
            name: phase.name().to_owned(),
            values: self.series.iter().map(|series| median_of(series, phase)).collect(),
        };
        self.bars("phases", "Phases of a handshake and its request, medians", Phase::ALL.map(layer).to_vec())
    }

    /// What the primitives explain, and what they do not.
    fn prediction_chart(&self) -> Chart {
        let predicted =
            |series: &Measured| series.servers.as_ref().map_or(0.0, |predicted| predicted.us().estimate);
        let rest = |series: &Measured| series.unexplained().map_or(0.0, |rest| rest.estimate);
        let layer = |name: &str, of: &dyn Fn(&Measured) -> f64| Layer {
            name: name.to_owned(),
            values: self.series.iter().map(of).collect(),
        };
        let layers = vec![layer("predicted from primitives", &predicted), layer("unexplained", &rest)];
        self.bars("prediction", "The server's share: predicted, and the rest", layers)
    }

    fn bars(&self, id: &str, title: &str, layers: Vec<Layer>) -> Chart {
        Chart {
            id: id.to_owned(),
            title: title.to_owned(),
            x: Axis::linear("series"),
            y: Axis::from_zero("us"),
            content: Content::Bars {
                categories: self.series.iter().map(|series| series.name.clone()).collect(),
                layers,
            },
        }
    }

    fn distribution_chart(&self) -> Chart {
        let line = |series: &Measured| {
            let quantiles = (0..=POINTS).map(|at| at as f64 / POINTS as f64);
            let points = series.handshake.iter().flat_map(|times| {
                quantiles.clone().map(|quantile| (times.quantile(quantile), quantile * 100.0))
            });
            Line { name: series.name.clone(), points: points.collect(), is_stepped: true, ..Line::default() }
        };
        Chart {
            id: "distribution".to_owned(),
            title: "Handshakes that took no longer".to_owned(),
            x: Axis::logarithmic("us, from when TCP was connected"),
            y: Axis::from_zero("% of handshakes"),
            content: Content::Lines(self.series.iter().map(line).collect()),
        }
    }

    fn phases_table(&self) -> Table {
        let mut rows = Vec::new();
        for series in &self.series {
            let phases = series.phases.iter().map(|(phase, times, own)| (phase.name(), times, Some(*own)));
            let shares = [
                ("whole handshake", &series.handshake),
                ("one round trip", &series.round_trip),
                ("the server's share", &series.server),
                ("our own share", &series.client),
            ];
            let shares =
                shares.into_iter().filter_map(|(name, times)| Some((name, times.as_ref()?, None::<f64>)));
            for (name, times, own) in phases.chain(shares) {
                rows.push(row(&series.name, name, times, own));
            }
        }
        let columns = ["series", "phase", "median", "low", "high", "p90", "p99", "maximum", "own CPU"];
        table("Phases, in us", &columns, rows)
    }

    fn answers_table(&self) -> Table {
        let rows = self.series.iter().flat_map(|series| {
            series.answers.iter().map(|(status, count)| {
                let status = status.map_or("no HTTP/1".to_owned(), |status| status.to_string());
                vec![series.name.as_str().into(), status.as_str().into(), Cell::Number(*count as f64)]
            })
        });
        table("Answers behind the handshakes", &["series", "status", "answers"], rows.collect())
    }

    fn prediction_table(&self) -> Table {
        let mut rows = Vec::new();
        for series in &self.series {
            let sides =
                [("server", &series.servers, &series.server), ("client", &series.clients, &series.client)];
            for (who, prediction, measured) in sides {
                let (Some(prediction), Some(measured)) = (prediction, measured) else { continue };
                let row = |what: &str, us: Option<f64>| {
                    let us = us.map_or(Cell::Empty, |us| Cell::Number(rounded(us)));
                    vec![series.name.as_str().into(), who.into(), what.into(), us]
                };
                rows.extend(
                    prediction
                        .steps
                        .iter()
                        .map(|step| row(&step.operation.to_string(), step.us.map(|us| us.estimate))),
                );
                rows.extend(prediction.missing.iter().map(|missing| row(missing, None)));
                let predicted = prediction.us().estimate;
                rows.push(row("predicted", Some(predicted)));
                rows.push(row("measured", Some(measured.median.estimate)));
                rows.push(row("unexplained", Some(measured.median.estimate - predicted)));
            }
        }
        table("Predicted and measured, in us", &["series", "side", "what", "us"], rows)
    }
}

fn row(series: &str, name: &str, times: &Distribution, own: Option<f64>) -> Vec<Cell> {
    let number = |value: f64| Cell::Number(rounded(value));
    vec![
        series.into(),
        name.into(),
        number(times.median.estimate),
        times.interval().map_or(Cell::Empty, |(low, _)| number(low)),
        times.interval().map_or(Cell::Empty, |(_, high)| number(high)),
        number(times.quantile(0.9)),
        number(times.quantile(0.99)),
        number(times.quantile(1.0)),
        own.map_or(Cell::Empty, number),
    ]
}

fn table(title: &str, columns: &[&str], rows: Vec<Vec<Cell>>) -> Table {
    let columns = columns.iter().map(|column| (*column).to_owned()).collect();
    Table { title: title.to_owned(), columns, rows }
}

fn median_of(series: &Measured, phase: Phase) -> f64 {
    let found = series.phases.iter().find(|(known, ..)| *known == phase);
    found.map_or(0.0, |(_, times, _)| times.median.estimate)
}

fn answer(series: &Measured) -> String {
    let Some(handshake) = &series.handshake else { return format!("{}: no handshake.", series.name) };
    let Some(server) = &series.server else {
        let took = handshake.median.estimate;
        return format!("{}: {took:.0} us, the server's share is unknown: {SERVER_UNKNOWN}.", series.name);
    };
    let server = server.median.estimate;
    let rest = match (&series.servers, series.unexplained()) {
        (Some(predicted), Some(rest)) => {
            format!(
                ", of which {:.0} us were predicted and {:.0} us are unexplained",
                predicted.us().estimate,
                rest.estimate
            )
        }
        _ => String::new(),
    };
    format!("{}: {:.0} us, the server's share {server:.0} us{rest}.", series.name, handshake.median.estimate)
}

fn figures(series: &Measured) -> Vec<Figure> {
    let figure = |what: &str, times: &Option<Distribution>| {
        let median = times.as_ref().map(|times| times.median);
        Figure {
            name: format!("{}: {what}", series.name),
            unit: "us".to_owned(),
            value: median.map(|median| median.estimate),
            interval: times.as_ref().and_then(Distribution::interval),
        }
    };
    let mut figures = vec![
        figure("handshake, median", &series.handshake),
        figure("the server's share, median", &series.server),
        figure("our own share, median", &series.client),
    ];
    if let Some(rest) = series.unexplained() {
        figures.push(Figure {
            name: format!("{}: unexplained of the server's share", series.name),
            unit: "us".to_owned(),
            value: Some(rest.estimate),
            interval: Some((rest.low, rest.high))
                .filter(|_| series.server.as_ref().is_some_and(Distribution::is_bounded)),
        });
    }
    figures
}
