//! A line of the access log as one aligned line for people.

use pointsman_rules::Colour;
use serde_json::Value;

use crate::check::terminal::{Style, cell};

/// What the demo shows of an exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Whose connection it was.
    pub(super) client: String,
    pub(super) method: String,
    pub(super) path: String,
    /// The version of TLS, if it was spoken.
    tls: Option<String>,
    pub(super) rule: Option<String>,
    pub(super) pool: Option<String>,
    pub(super) server: Option<String>,
    status: Option<u64>,
    decided_us: Option<u64>,
    total_us: u64,
    error: Option<String>,
}

const WIDTHS: [usize; 7] = [34, 7, 7, 16, 6, 8, 8];

/// Columns from here on are figures, and stand at the right.
const FIRST_FIGURE: usize = 4;

impl Entry {
    /// Reads a line of the log; nothing where it is none.
    pub(super) fn read(line: &str) -> Option<Entry> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| value[key].as_str().map(|text| text.escape_debug().to_string());
        let number = |key: &str| value[key].as_u64();
        value.is_object().then(|| Entry {
            client: text("client").unwrap_or_default(),
            method: text("method").unwrap_or_default(),
            path: text("path").unwrap_or_default(),
            tls: text("tls"),
            rule: text("rule"),
            pool: text("pool"),
            server: text("server"),
            status: number("status"),
            decided_us: number("decided_us"),
            total_us: number("total_us").unwrap_or_default(),
            error: text("error"),
        })
    }

    /// The titles over rows.
    pub(super) fn titles(colour: Colour) -> String {
        let titles = ["request", "over", "rule", "went to", "status", "decided", "done"];
        joined(&titles.map(|title| (title.to_owned(), Style::Dim)), colour)
    }

    /// The request in a few words.
    pub(super) fn request(&self) -> String {
        match self.method.as_str() {
            "" => "(no request)".to_owned(),
            method => format!("{method} {}", self.path),
        }
    }

    /// The exchange in one line; `request` says what was asked.
    pub(super) fn row(&self, request: &str, colour: Colour) -> String {
        let over = self.tls.as_ref().map_or_else(|| "plain".to_owned(), |version| format!("TLS {version}"));
        let status = self.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        let style = match self.status {
            Some(200..=299) => Style::Green,
            Some(300..=399) => Style::Cyan,
            Some(400..=499) => Style::Yellow,
            _ => Style::Red,
        };
        let decided = self.decided_us.map_or_else(|| "-".to_owned(), duration);
        let cells = [
            (shortened(request, WIDTHS[0]), Style::Plain),
            (over, Style::Dim),
            (self.rule.clone().unwrap_or_else(|| "-".to_owned()), Style::Bold),
            (self.went_to(), Style::Plain),
            (status, style),
            (decided, Style::Dim),
            (duration(self.total_us), Style::Dim),
        ];
        let error = self.error.as_ref().map(|error| format!("  {error}")).unwrap_or_default();
        format!("{}{error}", joined(&cells, colour))
    }

    /// `pool/server`, or what the switch did by itself.
    fn went_to(&self) -> String {
        match (&self.pool, &self.server, self.status) {
            (Some(pool), Some(server), _) => format!("{pool}/{server}"),
            // Its body proved malformed before a server was reached.
            (Some(_), None, Some(400..=499)) => "refused here".to_owned(),
            (Some(pool), None, _) => format!("{pool}, no server"),
            (None, _, None) => "discarded".to_owned(),
            (None, _, Some(300..=399)) => "redirected".to_owned(),
            (None, _, Some(400..)) => "refused here".to_owned(),
            (None, _, Some(_)) => "answered here".to_owned(),
        }
    }
}

fn joined(cells: &[(String, Style); 7], colour: Colour) -> String {
    let mut line = String::from(" ");
    for (column, ((text, style), width)) in cells.iter().zip(WIDTHS).enumerate() {
        let fill = if column < FIRST_FIGURE { 0 } else { width.saturating_sub(text.chars().count()) };
        line.push_str(&" ".repeat(fill + 1));
        line.push_str(&cell(text, width - fill, *style, colour));
    }
    line
}

/// Microseconds with a unit that suits them.
pub(super) fn duration(us: u64) -> String {
    match us {
        0..=999 => format!("{us} µs"),
        1000..=999_999 => format!("{}.{:02} ms", us / 1000, us % 1000 / 10),
        _ => format!("{}.{:02} s", us / 1_000_000, us % 1_000_000 / 10_000),
    }
}

fn shortened(text: &str, chars_max: usize) -> String {
    match text.chars().count() > chars_max {
        true => text.chars().take(chars_max - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &str) -> String {
        let entry = Entry::read(line).expect("an object");
        entry.row(&entry.request(), Colour::Never)
    }

    #[test]
    fn an_exchange_is_one_aligned_line() {
        let rows = [
            Entry::titles(Colour::Never),
            row(
                r#"{"tls":"1.3","method":"GET","path":"/x","rule":"R1","pool":"fast","server":"server1","status":200,"decided_us":30,"total_us":1204}"#,
            ),
            row(r#"{"method":"GET","path":"/old","rule":"moved","status":308,"decided_us":8,"total_us":12}"#),
            row(r#"{"method":"GET","path":"/","rule":"R7","status":403,"decided_us":8,"total_us":2500000}"#),
            row(
                r#"{"method":"GET","path":"/","rule":"else","pool":"standard","server":"s","status":502,"decided_us":8,"total_us":12,"error":"no connection to the server"}"#,
            ),
            row(
                r#"{"rule":"R8","method":"GET","path":"/a/path/that/is/longer/than/its/column","decided_us":8,"total_us":12}"#,
            ),
            row(
                r#"{"method":"POST","path":"/orders","rule":"R1","pool":"fast","status":400,"decided_us":8,"total_us":12,"error":"XML"}"#,
            ),
            row(r#"{"total_us":12,"status":408,"error":"the head did not arrive in time"}"#),
        ];
        let expected = "  request                            over    rule    went to          status  decided     done
  GET /x                             TLS 1.3 R1      fast/server1        200    30 µs  1.20 ms
  GET /old                           plain   moved   redirected          308     8 µs    12 µs
  GET /                              plain   R7      refused here        403     8 µs   2.50 s
  GET /                              plain   else    standard/s          502     8 µs    12 µs  no connection to the server
  GET /a/path/that/is/longer/than/i… plain   R8      discarded             -     8 µs    12 µs
  POST /orders                       plain   R1      refused here        400     8 µs    12 µs  XML
  (no request)                       plain   -       refused here        408        -    12 µs  the head did not arrive in time";
        assert_eq!(rows.join("\n"), expected);
    }

    #[test]
    fn what_is_no_entry_is_none() {
        for line in ["", "ready", "[1]", "3"] {
            assert_eq!(Entry::read(line), None, "{line}");
        }
        assert_eq!(Entry::read("{}"), Some(Entry::default()));
    }

    #[test]
    fn terminals_are_safe() {
        assert!(!row(r#"{"method":"GET","path":"/\u001b[2J","total_us":1}"#).contains('\x1b'));
    }
}
