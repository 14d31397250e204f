//! A view as lines of a terminal.

use pointsman_rules::Colour;

use super::view::{STATUS, State, Traffic, View};
use crate::check::terminal::{Style, cell};
use crate::units::{age, bytes_per_s, count, duration, rate};

/// How many letters a name may have before it is cut.
const NAME_LETTERS_MAX: usize = 32;
/// Lines that stay in their place while the others are moved.
const HEAD_LINES: usize = 6;

/// Pieces of text, each in its style.
type Line = Vec<(String, Style)>;

/// How many letters stand in a line, and how many lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// All lines of a view, as wide as they are.
pub(super) fn lines(view: &View) -> Vec<String> {
    let whole = Size { columns: usize::MAX, rows: usize::MAX };
    fitted(view, whole, &mut 0, Colour::Never)
}

/// The lines that fit, from `first` on where not all do; `first` is brought to where there are some.
pub(super) fn fitted(view: &View, size: Size, first: &mut usize, colour: Colour) -> Vec<String> {
    let mut head = head(view);
    let body = body(view, size.columns);
    let room = size.rows.saturating_sub(head.len());
    *first = (*first).min(body.len().saturating_sub(room));
    let shown = body.into_iter().skip(*first).take(room);
    head.truncate(size.rows);
    head.into_iter().chain(shown).map(|line| drawn(&line, size.columns, colour)).collect()
}

fn head(view: &View) -> Vec<Line> {
    let all = &view.all;
    let plain = |text: String| (text, Style::Plain);
    let title = format!("pointsman {}", view.version);
    let rest = format!(
        "  generation {}  up {}  over {:.1} s",
        count(view.generation),
        age(view.uptime_s),
        view.interval_s
    );
    let requests = format!(
        "{}/s  in flight {}  waiting {}  connections {}  tunnels {}",
        rate(all.requests_per_s),
        count(view.in_flight),
        count(all.requests_waiting),
        count(all.connections_open),
        count(all.tunnels_open)
    );
    let times = format!("p50 {}  p99 {}", duration(all.durations.p50_s), duration(all.durations.p99_s));
    let bytes =
        format!("in {}  out {}", bytes_per_s(all.received_bytes_per_s), bytes_per_s(all.sent_bytes_per_s));
    let lines = [
        vec![(title, Style::Bold), plain(rest)],
        vec![caption("requests"), plain(requests)],
        status(all),
        vec![caption("times"), plain(times)],
        vec![caption("bytes"), plain(bytes)],
        errors(view),
    ];
    debug_assert_eq!(lines.len(), HEAD_LINES, "the head is as high as is said");
    lines.into()
}

fn caption(word: &str) -> (String, Style) {
    (format!("{word:<10}"), Style::Dim)
}

fn status(all: &Traffic) -> Line {
    let [none, informed, fine, moved, refused, failed] = all.status_per_s;
    let mut line = vec![caption("status")];
    let classes = [
        ("2xx", fine, Style::Green),
        ("3xx", moved, Style::Plain),
        ("4xx", refused, Style::Yellow),
        ("5xx", failed, Style::Red),
        ("1xx", informed, Style::Plain),
        ("none", none, Style::Yellow),
    ];
    for (name, per_s, style) in classes {
        let style = if per_s > 0.0 { style } else { Style::Dim };
        line.push((format!("{name} {}/s  ", rate(per_s)), style));
    }
    line
}

fn errors(view: &View) -> Line {
    let mut line = vec![caption("errors")];
    if view.errors.is_empty() {
        line.push(("none".to_owned(), Style::Dim));
    }
    for fault in &view.errors {
        line.push((format!("{} {} {}/s  ", fault.of, fault.why, rate(fault.per_s)), Style::Red));
    }
    line
}

/// The tables. Where a terminal is narrow they do without what matters least.
fn body(view: &View, columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    listeners(view, columns, &mut lines);
    servers(view, columns, &mut lines);
    rules(view, columns, &mut lines);
    lines
}

fn listeners(view: &View, columns: usize, lines: &mut Vec<Line>) {
    let listeners = view.listeners.iter().map(|(name, traffic)| {
        let [.., refused, failed] = traffic.status_per_s;
        let figures = [
            rate(traffic.requests_per_s),
            rate(refused),
            rate(failed),
            duration(traffic.durations.p50_s),
            duration(traffic.durations.p99_s),
            count(traffic.connections_open),
        ];
        Row { names: vec![name.clone()], state: None, figures: figures.into() }
    });
    let titles = ["REQ/S", "4XX/S", "5XX/S", "P50", "P99", "OPEN"];
    let table = Table { names: &["LISTENER"], figures: &titles, sheds: &["OPEN", "P50", "4XX/S"] };
    table.draw(listeners.collect(), columns, lines);
}

fn servers(view: &View, columns: usize, lines: &mut Vec<Line>) {
    let servers = view.servers.iter().map(|row| {
        let figures = [
            rate(row.requests_per_s),
            rate(row.failures_per_s),
            rate(row.retries_per_s),
            duration(row.durations.p50_s),
            duration(row.durations.p99_s),
            count(row.in_flight),
            count(row.idle_connections),
        ];
        let names = vec![row.pool.clone(), row.server.clone()];
        Row { names, state: Some(row.state), figures: figures.into() }
    });
    let titles = ["REQ/S", "FAIL/S", "RETRY/S", "P50", "P99", "FLIGHT", "IDLE"];
    let sheds = &["IDLE", "RETRY/S", "P50", "FLIGHT"];
    let table = Table { names: &["POOL", "SERVER", "STATE"], figures: &titles, sheds };
    table.draw(servers.collect(), columns, lines);
}

fn rules(view: &View, columns: usize, lines: &mut Vec<Line>) {
    // Rules of listeners that read no requests are hit, too.
    let hits: f64 = view.rules.iter().filter(|row| !row.is_of_others()).map(|row| row.hits_per_s).sum();
    let rules = view.rules.iter().map(|row| {
        let share = if hits > 0.0 { row.hits_per_s / hits } else { 0.0 };
        let [.., refused, failed] = row.status_per_s.map_or([None; STATUS.len()], |all| all.map(Some));
        let known = |per_s: Option<f64>| per_s.map_or_else(|| "-".to_owned(), rate);
        let figures = [
            rate(row.hits_per_s),
            format!("{:.1} %", share * 100.0),
            known(refused),
            known(failed),
            duration(row.durations.p50_s),
            duration(row.durations.p99_s),
            count(row.hits),
        ];
        let names = vec![row.listener.clone(), row.rule.clone()];
        Row { names, state: None, figures: figures.into() }
    });
    let titles = ["HITS/S", "SHARE", "4XX/S", "5XX/S", "P50", "P99", "HITS"];
    let sheds = &["HITS", "SHARE", "P50", "4XX/S"];
    let table = Table { names: &["LISTENER", "RULE"], figures: &titles, sheds };
    table.draw(rules.collect(), columns, lines);
}

/// A line of a table: names at the left, figures at the right.
struct Row {
    names: Vec<String>,
    state: Option<State>,
    figures: Vec<String>,
}

/// What stands above rows: names at the left, figures at the right.
struct Table<'a> {
    names: &'a [&'a str],
    figures: &'a [&'a str],
    /// Figures that are left out where there is no room for all, what matters least first.
    sheds: &'a [&'a str],
}

/// As wide is a column of figures.
const FIGURE_LETTERS: usize = 9;

impl Table<'_> {
    fn draw(&self, rows: Vec<Row>, columns: usize, lines: &mut Vec<Line>) {
        if rows.is_empty() {
            return;
        }
        let names = self.names;
        let cells: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                let state = row.state.map(|state| state.name().to_owned());
                row.names.iter().map(|name| shown(name)).chain(state).collect()
            })
            .collect();
        let width = |at: usize| {
            let longest = cells.iter().map(|cells| cells[at].chars().count()).max().unwrap_or_default();
            longest.max(names[at].len()) + 2
        };
        let widths: Vec<usize> = (0..names.len()).map(width).collect();
        let left_out = self.left_out(columns.saturating_sub(widths.iter().sum()));
        let figures = |texts: &mut dyn Iterator<Item = &str>| -> String {
            let all = self.figures.iter().zip(texts);
            let shown = all.filter(|(title, _)| !left_out.contains(title));
            shown.map(|(_, text)| format!("{text:>FIGURE_LETTERS$}")).collect()
        };
        lines.push(Vec::new());
        let title: String =
            names.iter().zip(&widths).map(|(name, width)| format!("{name:<width$}")).collect();
        lines.push(vec![(title + &figures(&mut self.figures.iter().copied()), Style::Bold)]);
        for (row, cells) in rows.iter().zip(&cells) {
            let mut line = Line::new();
            for (at, (text, width)) in cells.iter().zip(&widths).enumerate() {
                let style = row.state.filter(|_| at == names.len() - 1).map_or(Style::Plain, style);
                line.push((format!("{text:<width$}"), style));
            }
            line.push((figures(&mut row.figures.iter().map(String::as_str)), Style::Plain));
            lines.push(line);
        }
    }

    /// The figures that so many columns have no room for.
    fn left_out(&self, columns: usize) -> &[&str] {
        let excess = self.figures.len().saturating_sub(columns / FIGURE_LETTERS);
        &self.sheds[..excess.min(self.sheds.len())]
    }
}

const fn style(state: State) -> Style {
    match state {
        State::Up => Style::Green,
        State::Down | State::Ejected => Style::Red,
        State::Disabled | State::Draining => Style::Yellow,
        State::Left => Style::Dim,
    }
}

/// A name on a terminal: it is cut, and what would move the cursor is left out.
fn shown(name: &str) -> String {
    let letters = name.chars().map(|letter| if letter.is_control() { '?' } else { letter });
    if name.chars().count() <= NAME_LETTERS_MAX {
        return letters.collect();
    }
    letters.take(NAME_LETTERS_MAX - 1).chain(['…']).collect()
}

/// A line in so many columns, without what stands blank at its end.
fn drawn(line: &Line, columns: usize, colour: Colour) -> String {
    let mut room = columns;
    let mut text = String::new();
    for (piece, style) in line {
        let piece: String = piece.chars().take(room).collect();
        room -= piece.chars().count();
        text.push_str(&cell(&piece, 0, *style, colour));
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests;
