//! What of several runs stands beside each other: figures, and what they were made on, with and how.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Figure, Run};
use super::page::{escape, results};
use crate::chart::{number, rounded};

pub(super) fn figures(runs: &[Run]) -> String {
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
    let rows: String = names.into_iter().map(|name| row(&runs, name)).collect();
    let heads = heads(&runs, " class=\"number\"");
    let beside = if runs.len() > 1 { " × is times the first of its row." } else { "" };
    format!(
        "<h2>Figures</h2>\n<div class=\"wide\"><table><caption>Below each figure its interval at 95 %.{beside}</caption>\n\
         <tr><td></td>{heads}</tr>\n{rows}</table></div>\n"
    )
}

/// A figure of all runs that have it, with how many times the first of them it is.
fn row(runs: &[&Run], (name, unit): (&str, &str)) -> String {
    let of =
        |run: &&Run| run.figures.iter().find(|figure| figure.name == name && figure.unit == unit).cloned();
    let first_at = runs.iter().position(|run| of(run).is_some());
    let first =
        first_at.and_then(|at| of(&runs[at])).and_then(|figure| figure.value).filter(|value| *value != 0.0);
    let cell = |(at, run): (usize, &&Run)| {
        let Some(figure) = of(run) else { return "<td></td>".to_owned() };
        let ratio =
            first.zip(figure.value).filter(|_| first_at != Some(at)).map(|(first, value)| value / first);
        let ratio = ratio.map(|ratio| format!(" <small>× {}</small>", rounded(ratio))).unwrap_or_default();
        format!("<td class=\"number\">{}</td>", value(&figure, &ratio))
    };
    let cells: String = runs.iter().enumerate().map(cell).collect();
    let (name, unit) = (escape(name), escape(unit));
    format!("<tr><th scope=\"row\">{name} <small>{unit}</small></th>{cells}</tr>\n")
}

fn value(figure: &Figure, ratio: &str) -> String {
    let value = figure.value.map_or_else(|| "–".to_owned(), number);
    let interval =
        figure.interval.map(|(low, high)| format!("<br><small>{} to {}</small>", number(low), number(high)));
    format!("{value}{ratio}{}", interval.unwrap_or_default())
}

fn heads(runs: &[&Run], class: &str) -> String {
    runs.iter().map(|run| format!("<th scope=\"col\"{class}>{}</th>", escape(&run.name))).collect()
}

/// A part of what a run was made with.
type Group = fn(&Run) -> &BTreeMap<String, String>;

/// Machine, versions and settings of all runs, the red ones too; what differs is marked.
pub(super) fn circumstances(runs: &[Run]) -> String {
    let all: Vec<&Run> = runs.iter().collect();
    let groups: [(&str, Group); 3] = [
        ("Machine", |run| &run.machine),
        ("Versions", |run| &run.versions),
        ("Settings", |run| &run.settings),
    ];
    let drawn: String = groups.into_iter().map(|(title, group)| circumstance(&all, title, group)).collect();
    if drawn.is_empty() {
        return drawn;
    }
    let caption = match runs.len() {
        0 | 1 => "",
        _ => "<caption>What differs is marked with ≠.</caption>\n",
    };
    let heads = heads(&all, "");
    format!(
        "<h2>Made on, with and how</h2>\n<div class=\"wide\"><table>{caption}<tr><td></td>{heads}</tr>\n{drawn}</table></div>\n"
    )
}

fn circumstance(runs: &[&Run], title: &str, group: Group) -> String {
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| group(run).keys()).collect();
    if names.is_empty() {
        return String::new();
    }
    let row = |name: &String| {
        let values: Vec<&str> =
            runs.iter().map(|run| group(run).get(name).map_or("", String::as_str)).collect();
        let differs = values.windows(2).any(|pair| pair[0] != pair[1]);
        let class = if differs { " class=\"differs\"" } else { "" };
        let cells: String = values.iter().map(|value| format!("<td>{}</td>", escape(value))).collect();
        format!("<tr{class}><th scope=\"row\">{}</th>{cells}</tr>\n", escape(name))
    };
    let rows: String = names.into_iter().map(row).collect();
    let columns = runs.len() + 1;
    format!("<tr><th class=\"group\" colspan=\"{columns}\">{title}</th></tr>\n{rows}")
}
