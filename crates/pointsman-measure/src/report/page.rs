//! The page: one file, no script, no network.

use std::collections::HashMap;

use super::beside::{circumstances, figures};
use super::document::{Document, Figure, Run};
use crate::chart::{Chart, ranges, rounded, svg};
use crate::table::{Cell, Table};
use crate::verdict::Colour;

const STYLE: &str = include_str!("style.css");
/// A longer text of a document is cut on the page; the JSON in the page has it whole.
const TEXT_CHARACTERS_MAX: usize = 2_000;

/// So many of a run's figures are drawn large, at its head.
const TILES: usize = 4;
/// What stands before the document in its page.
pub(super) const BEFORE_DOCUMENT: &str = "<script type=\"application/json\" id=\"document\">";

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
/// again. What is read first comes first: the answers and whether they may be believed. A red run shows its reasons and no
/// figures: it is not a result.
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
         {}{}{}{}{}{BEFORE_DOCUMENT}{json}</script>\n</body>\n</html>\n",
        answers(runs),
        charts(runs),
        figures(runs),
        tables(runs),
        circumstances(runs),
    )
}

/// Of each run: its verdict by colour and word, its answer, and its first figures.
fn answers(runs: &[Run]) -> String {
    let cards: String = runs.iter().map(card).collect();
    format!("<div class=\"runs\">\n{cards}</div>\n")
}

fn card(run: &Run) -> String {
    let what = match run.colour {
        Colour::Green => "the client was in control",
        Colour::Amber => "the client was in control, with reservations",
        Colour::Red => "this run is not a result",
    };
    let reasons: String = run.reasons.iter().map(|reason| format!("<li>{}</li>", escape(reason))).collect();
    let list = if reasons.is_empty() { reasons } else { format!("<ul>{reasons}</ul>") };
    let (name, colour, started) = (escape(&run.name), run.colour, escape(&run.started));
    let answer = match (run.colour, run.answer.is_empty()) {
        (Colour::Red, _) | (_, true) => String::new(),
        _ => format!("<p class=\"answer\">{}</p>\n", escape(&run.answer)),
    };
    let shown = if run.colour == Colour::Red { &[] } else { &run.figures[..] };
    let tiles: String = shown.iter().take(TILES).map(tile).collect();
    let tiles = if tiles.is_empty() { tiles } else { format!("<dl class=\"tiles\">{tiles}</dl>\n") };
    format!(
        "<section class=\"run {colour}\">\n<h2>{name} <small>{started}</small></h2>\n\
         <p class=\"verdict\"><strong>{colour}</strong> {what}</p>{list}\n{answer}{tiles}</section>\n"
    )
}

/// A figure, large.
fn tile(figure: &Figure) -> String {
    let value = figure.value.map_or_else(|| "–".to_owned(), rounded);
    let bounds = figure.interval.map(|(low, high)| format!("{} to {}", rounded(low), rounded(high)));
    format!(
        "<div><dt>{}</dt><dd>{value} <small>{}</small></dd><dd class=\"interval\">{}</dd></div>",
        escape(&figure.name),
        escape(&figure.unit),
        bounds.unwrap_or_default()
    )
}

/// What may be shown as a result.
pub(super) fn results(runs: &[Run]) -> Vec<&Run> {
    runs.iter().filter(|run| run.colour != Colour::Red).collect()
}

/// What makes charts of several runs the same: their id, and what their axes are of, and whether they are logarithmic.
type ChartKey<'r> = (&'r str, (&'r str, bool), (&'r str, bool));

fn chart_key(chart: &Chart) -> ChartKey<'_> {
    (&chart.id, (&chart.x.label, chart.x.is_log), (&chart.y.label, chart.is_y_log()))
}

/// Those of one run stand in a grid. Of several runs charts with an id stand beside each other, on axes that span all of
/// them where they are of the same.
fn charts(runs: &[Run]) -> String {
    let runs = results(runs);
    let mut known: HashMap<ChartKey, usize> = HashMap::new();
    let mut drawn: Vec<Vec<(usize, &Chart)>> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        for chart in &run.charts {
            let row = *known.entry(chart_key(chart)).or_insert(drawn.len());
            if row == drawn.len() {
                drawn.push(Vec::new());
            }
            // Of several of a run the first.
            if drawn[row].last().is_none_or(|(of, _)| *of != at) {
                drawn[row].push((at, chart));
            }
        }
    }
    let rows: Vec<String> =
        drawn.iter().enumerate().map(|(row, drawn)| row_of_charts(&runs, row, drawn)).collect();
    let grids = if runs.len() == 1 { vec![rows.concat()] } else { rows };
    let drawn: String = grids
        .iter()
        .filter(|grid| !grid.is_empty())
        .map(|grid| format!("<div class=\"charts\">\n{grid}</div>\n"))
        .collect();
    if drawn.is_empty() { drawn } else { format!("<h2>Charts</h2>\n{drawn}") }
}

fn row_of_charts(runs: &[&Run], row: usize, drawn: &[(usize, &Chart)]) -> String {
    let spans = drawn.iter().filter_map(|(_, chart)| ranges(chart)).reduce(|left, right| {
        (left.0.zip(right.0).map(|(left, right)| left.joined(right)), left.1.joined(right.1))
    });
    let figure = |(column, (run, chart)): (usize, &(usize, &Chart))| {
        let figure = svg(chart, &format!("chart-{row}-{column}"), spans);
        // Alone it needs no name.
        let name = if runs.len() > 1 {
            format!("<figcaption>{}</figcaption>", escape(&runs[*run].name))
        } else {
            String::new()
        };
        format!("<figure>{figure}{name}</figure>\n")
    };
    drawn.iter().enumerate().map(figure).collect()
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
    let head = |(at, column): (usize, &String)| {
        let is_number = table.rows.first().is_some_and(|row| matches!(row.get(at), Some(Cell::Number(_))));
        let class = if is_number { " class=\"number\"" } else { "" };
        format!("<th scope=\"col\"{class}>{}</th>", escape(column))
    };
    let head: String = table.columns.iter().enumerate().map(head).collect();
    let cell = |cell: &Cell| match cell {
        Cell::Text(text) => format!("<td>{}</td>", escape(text)),
        Cell::Number(number) => format!("<td class=\"number\">{}</td>", crate::chart::number(*number)),
        Cell::Empty => "<td class=\"number\">–</td>".to_owned(),
    };
    let row = |row: &Vec<Cell>| format!("<tr>{}</tr>\n", row.iter().map(cell).collect::<String>());
    let rows: String = table.rows.iter().map(row).collect();
    let (title, run) = (escape(&table.title), escape(run));
    format!(
        "<div class=\"wide\"><table><caption>{title} – {run}</caption>\n<tr>{head}</tr>\n{rows}</table></div>\n"
    )
}
