//! What a report shows, and its JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::chart::{Axis, Chart, Content};
use crate::table::{Cell, Table};
use crate::verdict::Colour;

/// The version of the schema that is written, and the only one that is read.
pub const SCHEMA: &str = "pointsman-bench/1";

/// All that a report shows.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Document {
    /// The head of the page.
    pub title: String,
    /// Beside each other, in this order.
    pub runs: Vec<Run>,
}

/// One run of the bench.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What it is called beside the others.
    pub name: String,
    /// When it began, as RFC 3339; empty if nobody said.
    pub started: String,
    /// Where it ran: processor, cores, memory, kernel, governor …
    pub machine: BTreeMap<String, String>,
    /// With what: versions of programs and libraries.
    pub versions: BTreeMap<String, String>,
    /// How: everything that another run would need to be the same.
    pub settings: BTreeMap<String, String>,
    /// Whether the client was in control.
    pub colour: Colour,
    /// Why not, in sentences.
    pub reasons: Vec<String>,
    /// What was found, in a sentence or two for who reads no further; empty if nobody said.
    pub answer: String,
    /// What was found.
    pub figures: Vec<Figure>,
    /// What is drawn.
    pub charts: Vec<Chart>,
    /// What is listed.
    pub tables: Vec<Table>,
    /// Everything that was measured, as the command that measured it writes it: for programs, and not on the page.
    pub outcome: Option<Value>,
}

/// A figure with its interval.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Figure {
    /// The same in each run that has it: figures of a name stand beside each other.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The figure; None where it could not be measured.
    pub value: Option<f64>,
    /// The interval, if there is one.
    pub interval: Option<(f64, f64)>,
}

impl Run {
    /// A run with a name and nothing else: green, for nothing speaks against it.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            started: String::new(),
            machine: BTreeMap::new(),
            versions: BTreeMap::new(),
            settings: BTreeMap::new(),
            colour: Colour::Green,
            reasons: Vec::new(),
            answer: String::new(),
            figures: Vec::new(),
            charts: Vec::new(),
            tables: Vec::new(),
            outcome: None,
        }
    }
}

impl Document {
    /// The document as JSON; numbers that are not finite become `null`.
    pub fn to_json(&self) -> Value {
        let runs: Vec<Value> = self.runs.iter().map(run).collect();
        json!({"schema": SCHEMA, "title": self.title, "runs": runs})
    }
}

fn run(run: &Run) -> Value {
    let mut object = json!({
        "name": run.name,
        "started": run.started,
        "machine": run.machine,
        "versions": run.versions,
        "settings": run.settings,
        "verdict": {"colour": run.colour.to_string(), "reasons": run.reasons},
        "answer": run.answer,
        "figures": run.figures.iter().map(figure).collect::<Vec<_>>(),
        "charts": run.charts.iter().map(chart).collect::<Vec<_>>(),
        "tables": run.tables.iter().map(table).collect::<Vec<_>>(),
    });
    if let Some(outcome) = &run.outcome {
        object["outcome"] = outcome.clone();
    }
    object
}

fn figure(figure: &Figure) -> Value {
    let mut object = Map::new();
    object.insert("name".to_owned(), figure.name.clone().into());
    object.insert("unit".to_owned(), figure.unit.clone().into());
    object.insert("value".to_owned(), figure.value.into());
    if let Some((low, high)) = figure.interval {
        object.insert("low".to_owned(), low.into());
        object.insert("high".to_owned(), high.into());
    }
    Value::Object(object)
}

fn chart(chart: &Chart) -> Value {
    let axis = |axis: &Axis| {
        let mut object = json!({"label": axis.label, "log": axis.is_log});
        if axis.is_from_zero {
            object["from_zero"] = true.into();
        }
        object
    };
    let mut object = json!({"id": chart.id, "title": chart.title, "x": axis(&chart.x), "y": axis(&chart.y)});
    match &chart.content {
        Content::Lines(lines) => {
            let lines = lines.iter().map(|line| {
                json!({
                    "name": line.name, "points": line.points, "band": line.band,
                    "stepped": line.is_stepped, "scattered": line.is_scattered,
                })
            });
            object["lines"] = lines.collect();
        }
        Content::Bars { categories, layers } => {
            object["categories"] = json!(categories);
            object["layers"] =
                layers.iter().map(|layer| json!({"name": layer.name, "values": layer.values})).collect();
        }
    }
    object
}

fn table(table: &Table) -> Value {
    let cell = |cell: &Cell| match cell {
        Cell::Text(text) => json!(text),
        Cell::Number(number) => json!(number),
        Cell::Empty => Value::Null,
    };
    let rows: Vec<Vec<Value>> = table.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    json!({"title": table.title, "columns": table.columns, "rows": rows})
}
