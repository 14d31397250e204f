//! A run as text: what was found, its figures, the first of its tables, and the verdict with its reasons.

use std::fmt::Write as _;

use pointsman_measure::report::{Figure, Run};
use pointsman_measure::table::{self, short};
use pointsman_measure::verdict::Colour;

/// What a terminal shows of it.
pub(super) fn told(run: &Run) -> String {
    let mut text = format!("{}\n  {}\n\n", run.name, run.answer);
    let figures: Vec<[String; 2]> = run.figures.iter().map(figure).collect();
    let width = figures.iter().map(|[name, _]| name.chars().count()).max().unwrap_or_default();
    for [name, value] in &figures {
        line(&mut text, &format!("  {name:<width$}  {value}"));
    }
    if let Some(first) = run.tables.first().filter(|first| !first.rows.is_empty()) {
        line(&mut text, &format!("\n  {}", first.title));
        text.push_str(&table::text(first));
    }
    line(&mut text, "");
    line(
        &mut text,
        match run.colour {
            Colour::Green => "  green: the generator was in control",
            Colour::Amber => "  amber: it counts, and it should be known that",
            Colour::Red => "  RED: not a result",
        },
    );
    for reason in &run.reasons {
        line(&mut text, &format!("    {reason}"));
    }
    text
}

/// What a terminal shows of a run whose figures are those of its first table: the answer, that table, and what speaks
/// against it.
pub(super) fn tabled(run: &Run) -> String {
    let mut text =
        format!("{}: {}\n", run.colour, if run.answer.is_empty() { "not a result" } else { &run.answer });
    if let Some(table) = run.tables.first() {
        text += &table::text(table);
    }
    for reason in &run.reasons {
        text += &format!("  {reason}\n");
    }
    text
}

fn line(text: &mut String, words: &str) {
    let (Ok(()) | Err(_)) = writeln!(text, "{}", words.trim_end());
}

fn figure(figure: &Figure) -> [String; 2] {
    let Some(value) = figure.value else { return [figure.name.clone(), "–".to_owned()] };
    let range = figure.interval.map(|(low, high)| format!(" ({} to {})", short(low), short(high)));
    let value = format!("{}{} {}", short(value), range.unwrap_or_default(), figure.unit);
    [figure.name.clone(), value.trim_end().to_owned()]
}

#[cfg(test)]
mod tests {
    use pointsman_measure::table::{Cell, Table};

    use super::*;

    #[test]
    fn a_run_is_told_in_lines() {
        let mut run = Run::named("http://a/");
        run.answer = "At the most 500 (495 to 506) requests a second are answered.".to_owned();
        run.figures = vec![
            Figure {
                name: "peak".to_owned(),
                unit: "requests/s".to_owned(),
                value: Some(500.2),
                interval: Some((495.0, 506.0)),
            },
            Figure { name: "knee".to_owned(), ..Figure::default() },
        ];
        run.tables = vec![Table {
            title: "Demanded against answered".to_owned(),
            columns: vec!["demanded/s".to_owned(), "phase".to_owned()],
            rows: vec![vec![Cell::Number(99.5), "ramp".into()], vec![Cell::Number(5.0)]],
        }];
        run.colour = Colour::Amber;
        run.reasons = vec!["3 of 9 trials amber".to_owned()];
        let expected = "\
http://a/
  At the most 500 (495 to 506) requests a second are answered.

  peak  500 (495 to 506) requests/s
  knee  –

  Demanded against answered
  demanded/s  phase
        99.5  ramp
           5

  amber: it counts, and it should be known that
    3 of 9 trials amber
";
        assert_eq!(told(&run), expected);
    }
}
