//! The page: one file, no script, no network.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Document, Figure, Run};
use crate::chart::{Chart, ranges, svg};
use crate::table::{Cell, Table};
use crate::verdict::Colour;

const STYLE: &str = include_str!("style.css");
/// A longer text of a document is cut on the page; the JSON in the page has it whole.
const TEXT_CHARACTERS_MAX: usize = 2_000;

/// A text as it may stand in HTML, in an element or a quoted attribute. Control characters and those that turn the
/// direction of text become U+FFFD, so that a name cannot act on what stands around it.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().take(TEXT_CHARACTERS_MAX) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                out.push('\u{fffd}')
            }
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The document as one HTML page, with the document itself in it (in the element `document`), so that it can be drawn
/// again. A red run shows its reasons and no figures: it is not a result.
pub fn page(document: &Document) -> String {
    let title = escape(&document.title);
    let runs = &document.runs;
    // In a script element only `<` could end it.
    let json = document.to_json().to_string().replace('<', "\\u003c");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         {}{}{}{}{}<script type=\"application/json\" id=\"document\">{json}</script>\n</body>\n</html>\n",
        verdicts(runs),
        figures(runs),
        charts(runs),
        tables(runs),
        circumstances(runs),
    )
}

fn verdicts(runs: &[Run]) -> String {
    let verdict = |run: &Run| {
        let what = match run.colour {
            Colour::Green => "the client was in control",
            Colour::Amber => "the client was in control, with reservations",
            Colour::Red => "the client was not in control: this run is not a result",
        };
        let reasons: String =
            run.reasons.iter().map(|reason| format!("<li>{}</li>", escape(reason))).collect();
        let list = if reasons.is_empty() { reasons } else { format!("<ul>{reasons}</ul>") };
        let (name, colour, started) = (escape(&run.name), run.colour, escape(&run.started));
        format!(
            "<div class=\"verdict {colour}\"><strong>{name}</strong> <small>{started}</small><br>{colour}: {what}{list}</div>\n"
        )
    };
    runs.iter().map(verdict).collect()
}

/// What may be shown as a result.
fn results(runs: &[Run]) -> Vec<&Run> {
    runs.iter().filter(|run| run.colour != Colour::Red).collect()
}

fn heads(runs: &[&Run], class: &str) -> String {
    runs.iter().map(|run| format!("<th scope=\"col\"{class}>{}</th>", escape(&run.name))).collect()
}

fn figures(runs: &[Run]) -> String {
    let runs = results(runs);
    let mut names: Vec<(&str, &str)> = Vec::new();
    for figure in runs.iter().flat_map(|run| &run.figures) {
        if !names.contains(&(&figure.name, &figure.unit)) {
            names.push((&figure.name, &figure.unit));
        }
    }
    if names.is_empty() {
        return String::new();
    }
    let cell = |run: &&Run, (name, unit): (&str, &str)| {
        let found = run.figures.iter().find(|figure| figure.name == name && figure.unit == unit);
        format!("<td class=\"number\">{}</td>", found.map_or_else(String::new, value))
    };
    let row = |name: &(&str, &str)| {
        let cells: String = runs.iter().map(|run| cell(run, *name)).collect();
        format!(
            "<tr><th scope=\"row\">{} <small>{}</small></th>{cells}</tr>\n",
            escape(name.0),
            escape(name.1)
        )
    };
    let rows: String = names.iter().map(row).collect();
    let heads = heads(&runs, " class=\"number\"");
    format!(
        "<h2>Figures</h2>\n<div class=\"wide\"><table><caption>Below each figure its interval at 95 %.</caption>\n\
         <tr><td></td>{heads}</tr>\n{rows}</table></div>\n"
    )
}

fn value(figure: &Figure) -> String {
    let number = crate::chart::number;
    let value = figure.value.map_or_else(|| "–".to_owned(), number);
    let interval =
        figure.interval.map(|(low, high)| format!("<br><small>{} to {}</small>", number(low), number(high)));
    format!("{value}{}", interval.unwrap_or_default())
}

/// Charts with an id stand beside each other, on axes that span all of them.
fn charts(runs: &[Run]) -> String {
    let runs = results(runs);
    let mut ids: Vec<&str> = Vec::new();
    for chart in runs.iter().flat_map(|run| &run.charts) {
        if !ids.contains(&chart.id.as_str()) {
            ids.push(&chart.id);
        }
    }
    let mut out = String::new();
    for (row, id) in ids.into_iter().enumerate() {
        let drawn: Vec<(&Run, &Chart)> = runs
            .iter()
            .filter_map(|run| run.charts.iter().find(|chart| chart.id == id).map(|chart| (*run, chart)))
            .collect();
        let spans = drawn.iter().filter_map(|(_, chart)| ranges(chart)).reduce(|left, right| {
            (left.0.zip(right.0).map(|(left, right)| left.joined(right)), left.1.joined(right.1))
        });
        out.push_str("<div class=\"charts\">\n");
        for (column, (run, chart)) in drawn.into_iter().enumerate() {
            let figure = svg(chart, &format!("chart-{row}-{column}"), spans);
            out.push_str(&format!(
                "<figure>{figure}<figcaption>{}</figcaption></figure>\n",
                escape(&run.name)
            ));
        }
        out.push_str("</div>\n");
    }
    if out.is_empty() { out } else { format!("<h2>Charts</h2>\n{out}") }
}

fn tables(runs: &[Run]) -> String {
    let of_run = |run: &&Run| {
        let drawn = run.tables.iter().map(|drawn| table(drawn, &run.name));
        drawn.collect::<String>()
    };
    let drawn: String = results(runs).iter().map(of_run).collect();
    if drawn.is_empty() { drawn } else { format!("<h2>Tables</h2>\n{drawn}") }
}

fn table(table: &Table, run: &str) -> String {
    let head: String =
        table.columns.iter().map(|column| format!("<th scope=\"col\">{}</th>", escape(column))).collect();
    let cell = |cell: &Cell| match cell {
        Cell::Text(text) => format!("<td>{}</td>", escape(text)),
        Cell::Number(number) => format!("<td class=\"number\">{}</td>", crate::chart::number(*number)),
        Cell::Empty => "<td></td>".to_owned(),
    };
    let row = |row: &Vec<Cell>| format!("<tr>{}</tr>\n", row.iter().map(cell).collect::<String>());
    let rows: String = table.rows.iter().map(row).collect();
    let (title, run) = (escape(&table.title), escape(run));
    format!(
        "<div class=\"wide\"><table><caption>{title} – {run}</caption>\n<tr>{head}</tr>\n{rows}</table></div>\n"
    )
}

/// A part of what a run was made with.
type Group = fn(&Run) -> &BTreeMap<String, String>;

/// Machine, versions and settings of all runs, the red ones too; what differs is marked.
fn circumstances(runs: &[Run]) -> String {
    let all: Vec<&Run> = runs.iter().collect();
    let groups: [(&str, Group); 3] = [
        ("Machine", |run| &run.machine),
        ("Versions", |run| &run.versions),
        ("Settings", |run| &run.settings),
    ];
    let mut out = String::new();
    for (title, group) in groups {
        let names: BTreeSet<&String> = runs.iter().flat_map(|run| group(run).keys()).collect();
        if names.is_empty() {
            continue;
        }
        let row = |name: &String| {
            let values: Vec<&str> =
                runs.iter().map(|run| group(run).get(name).map_or("", String::as_str)).collect();
            let class =
                if values.windows(2).any(|pair| pair[0] != pair[1]) { " class=\"differs\"" } else { "" };
            let cells: String = values.iter().map(|value| format!("<td>{}</td>", escape(value))).collect();
            format!("<tr{class}><th scope=\"row\">{}</th>{cells}</tr>\n", escape(name))
        };
        let rows: String = names.into_iter().map(row).collect();
        let heads = heads(&all, "");
        out.push_str(&format!(
            "<h2>{title}</h2>\n<div class=\"wide\"><table>\n<tr><td></td>{heads}</tr>\n{rows}</table></div>\n"
        ));
    }
    out
}
