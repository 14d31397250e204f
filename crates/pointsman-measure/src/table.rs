//! Tables of results, as CSV and as a spreadsheet.

use rust_xlsxwriter::{DocProperties, ExcelDateTime, Format, Workbook, XlsxError};

/// Characters of a sheet's name at most: a limit of the format.
const SHEET_NAME_MAX: usize = 31;

/// A table.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Table {
    /// What it shows; in a spreadsheet the name of its sheet.
    pub title: String,
    /// The heads of its columns.
    pub columns: Vec<String>,
    /// Its rows; what a row has less than there are columns is empty.
    pub rows: Vec<Vec<Cell>>,
}

/// What stands in a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A word or more.
    Text(String),
    /// A number; what is not finite stays empty.
    Number(f64),
    /// Nothing.
    Empty,
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The table for a terminal, indented by two: columns as wide as they need, those with numbers to the right, and `-` where
/// nothing is known.
pub fn text(table: &Table) -> String {
    let shown = |cell: Option<&Cell>| match cell {
        Some(Cell::Text(text)) => (text.clone(), false),
        Some(Cell::Number(number)) if number.is_finite() => (short(*number), true),
        Some(Cell::Number(_) | Cell::Empty) => ("-".to_owned(), false),
        None => (String::new(), false),
    };
    let rows: Vec<Vec<(String, bool)>> = table
        .rows
        .iter()
        .map(|row| (0..table.columns.len()).map(|column| shown(row.get(column))).collect())
        .collect();
    let shape = |(column, head): (usize, &String)| {
        let cells = rows.iter().map(|row| row[column].0.chars().count());
        let width = cells.chain([head.chars().count()]).max().unwrap_or_default();
        (width, rows.iter().any(|row| row[column].1))
    };
    let shapes: Vec<(usize, bool)> = table.columns.iter().enumerate().map(shape).collect();
    let line = |cells: &mut dyn Iterator<Item = &String>| {
        let padded = cells.zip(&shapes).map(|(cell, (width, is_number))| match is_number {
            true => format!("  {cell:>width$}"),
            false => format!("  {cell:<width$}"),
        });
        format!("{}\n", padded.collect::<String>().trim_end())
    };
    let head = line(&mut table.columns.iter());
    rows.iter().fold(head, |text, row| text + &line(&mut row.iter().map(|(cell, _)| cell)))
}

/// A number with as many digits as tell something.
pub fn short(value: f64) -> String {
    match value.abs() {
        none if none < 1e-9 => "0".to_owned(),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        small if small < 0.1 => format!("{value:.4}"),
        small if small < 10.0 => format!("{value:.3}"),
        small if small < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The table as CSV (RFC 4180, with a header line). A text that a spreadsheet would take for a formula gets an apostrophe
/// before it.
pub fn csv(table: &Table) -> String {
    let head: Vec<Cell> = table.columns.iter().map(|column| Cell::Text(column.clone())).collect();
    std::iter::once(&head).chain(&table.rows).map(|row| line(row)).collect()
}

fn line(row: &[Cell]) -> String {
    let fields: Vec<String> = row.iter().map(field).collect();
    format!("{}\r\n", fields.join(","))
}

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Number(number) if number.is_finite() => number.to_string(),
        Cell::Number(_) => String::new(),
        Cell::Text(text) => {
            let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
            if text.contains([',', '"', '\r', '\n']) || !guard.is_empty() {
                format!("\"{guard}{}\"", text.replace('"', "\"\""))
            } else {
                text.clone()
            }
        }
    }
}

/// The tables as an XLSX workbook, a sheet each. The same tables give the same bytes.
///
/// # Errors
/// More rows (1,048,576) or columns (16,384) than a sheet can have, or a text of more than 32,767 characters.
pub fn xlsx(tables: &[Table]) -> Result<Vec<u8>, XlsxError> {
    let mut workbook = Workbook::new();
    // Without it the time of making stands in the file.
    let made = ExcelDateTime::from_ymd(2000, 1, 1)?;
    workbook.set_properties(&DocProperties::new().set_creation_datetime(&made));
    let head = Format::new().set_bold();
    for (at, table) in tables.iter().enumerate() {
        let sheet = workbook.add_worksheet();
        sheet.set_name(sheet_name(at, &table.title))?;
        for (column, title) in (0..).zip(&table.columns) {
            sheet.write_string_with_format(0, column, title, &head)?;
        }
        for (row, cells) in (1..).zip(&table.rows) {
            for (column, cell) in (0..).zip(cells) {
                match cell {
                    Cell::Text(text) => sheet.write_string(row, column, text)?,
                    Cell::Number(number) if number.is_finite() => sheet.write_number(row, column, *number)?,
                    Cell::Number(_) | Cell::Empty => continue,
                };
            }
        }
        sheet.set_freeze_panes(1, 0)?;
    }
    workbook.save_to_buffer()
}

/// A name that the format allows and no other sheet has.
fn sheet_name(at: usize, title: &str) -> String {
    let number = (at + 1).to_string();
    let allowed = |c: &char| !c.is_control() && !"[]:*?/\\'".contains(*c);
    let room = SHEET_NAME_MAX - number.len() - 1;
    // Counted as the format counts, in UTF-16.
    let mut units = 0;
    let short: String = title
        .chars()
        .filter(allowed)
        .take_while(|c| {
            units += c.len_utf16();
            units <= room
        })
        .collect();
    format!("{number} {}", short.trim()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Table {
        Table {
            title: "Requests per second: static [mix] 'a/b'".to_owned(),
            columns: ["clients", "requests/s, mean", "note"].map(str::to_owned).to_vec(),
            rows: vec![
                vec![1.0.into(), 99.5.into(), "=HYPERLINK(\"http://x\")".into()],
                vec![4.0.into(), f64::NAN.into(), "two\nlines".into()],
                vec![8.0.into()],
            ],
        }
    }

    #[test]
    fn columns_are_as_wide_as_they_need() {
        let table =
            Table { rows: vec![vec![1.0.into(), 1234.6.into(), "ok".into()], vec![4.0.into()]], ..ladder() };
        let expected = "  clients  requests/s, mean  note\n        1              1235  ok\n        4\n";
        assert_eq!(text(&table), expected);
    }

    #[test]
    fn numbers_have_the_digits_that_tell_something() {
        let shown = [0.0, 1e-12, 3.0, 0.012_34, 1.234_56, 99.54, 499.83, -0.5].map(short);
        assert_eq!(shown, ["0", "0", "3", "0.0123", "1.235", "99.5", "500", "-0.500"]);
        let gone = Table { rows: vec![vec![f64::NAN.into(), Cell::Empty]], ..ladder() };
        assert_eq!(text(&gone), "  clients  requests/s, mean  note\n  -        -\n");
    }

    #[test]
    fn csv_is_quoted_and_holds_no_formula() {
        let expected = "clients,\"requests/s, mean\",note\r\n1,99.5,\"'=HYPERLINK(\"\"http://x\"\")\"\r\n4,,\"two\nlines\"\r\n8\r\n";
        assert_eq!(csv(&ladder()), expected);
        assert_eq!(csv(&Table::default()), "\r\n");
    }

    #[test]
    fn a_workbook_is_made_again_the_same() {
        let tables = [ladder(), ladder(), Table { title: "🚂".repeat(40), ..ladder() }];
        let made = xlsx(&tables).expect("a workbook");
        assert_eq!(made[..4], *b"PK\x03\x04");
        assert_eq!(made, xlsx(&tables).expect("a workbook"));
        assert_eq!(sheet_name(0, &ladder().title), "1 Requests per second static mi");
        assert_eq!(sheet_name(9, ""), "10");
        let wide = Table { rows: vec![vec![Cell::Number(1.0); 16_385]], ..Table::default() };
        assert!(xlsx(&[wide]).is_err());
    }
}
