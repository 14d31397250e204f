//! Tables of extracted values: the papers name a value by its place in a table that is compiled in.

use super::{Broken, Parsed, Parser, parse_field};
use crate::Span;
use crate::ast::FieldRef;
use crate::lexer::{Kind, Meaning, meaning};
use crate::parser::shorten;

/// Names of the papers' tables.
const TABLES: &[&str] = &["rule_fields", "xml_tag_value"];

/// Most entries of a table.
const ENTRIES_MAX: usize = 1_000;

const FORM: &str = "it is written `rule_fields = { {\"purchase:1.totalAmount:1.\", \"\"} };`";

/// A table that the file declares.
#[derive(Debug)]
pub(crate) struct Table {
    name: &'static str,
    entries: Vec<FieldRef>,
}

fn table_name(word: &str) -> Option<&'static str> {
    TABLES.iter().find(|name| **name == word).copied()
}

impl Parser<'_> {
    /// Whether a table is declared here: `rule_fields = { … };`, or with `[]` as in C.
    pub(super) fn at_table(&self) -> bool {
        self.at(Kind::Word)
            && table_name(self.text()).is_some()
            && matches!(self.ahead.kind, Kind::Assign | Kind::LeftSquare)
    }

    /// Reads a declaration. It leaves no item behind: each place of the table becomes the field that it stands for.
    pub(super) fn table(&mut self) {
        if let Err(Broken) = self.table_parts() {
            self.skip_action();
        }
    }

    fn table_parts(&mut self) -> Parsed<()> {
        let start = self.token.span;
        let Some(name) = table_name(self.text()) else { return Err(self.unexpected("a table")) };
        self.bump();
        if self.take(Kind::LeftSquare).is_some() {
            self.take(Kind::Number);
            self.expect_so(Kind::RightSquare, "`]`")?;
        }
        self.expect_so(Kind::Assign, "`=`")?;
        self.expect_so(Kind::LeftCurly, "`{`")?;
        let (mut entries, mut sound) = (Vec::new(), true);
        while !self.at(Kind::RightCurly) {
            let entry = self.table_entry()?;
            sound &= entry.is_some();
            entries.extend(entry);
            if entries.len() > ENTRIES_MAX {
                self.error(
                    start,
                    format!("more than {ENTRIES_MAX} entries"),
                    "write the paths in the conditions",
                );
                return Err(Broken);
            }
            if self.take(Kind::Comma).is_none() {
                break;
            }
        }
        self.expect_so(Kind::RightCurly, "`,` or `}`")?;
        self.expect_so(Kind::Semicolon, "`;`")?;
        if self.tables.iter().any(|table| table.name == name) {
            self.error(start, format!("`{name}` is declared twice"), "keep one of the tables");
            return Err(Broken);
        }
        if !sound {
            return Ok(());
        }
        self.tables.push(Table { name, entries });
        Ok(())
    }

    /// `"path"`, or `{"path", ""}` as a C structure with an empty value. `None` where it holds no field.
    fn table_entry(&mut self) -> Parsed<Option<FieldRef>> {
        let is_structure = self.take(Kind::LeftCurly).is_some();
        let at = self.token.span;
        let text = self.quoted(FORM)?.text;
        if is_structure {
            if self.take(Kind::Comma).is_some() && self.at(Kind::Text) {
                if !meaning(self.text()).is_empty() {
                    self.error(
                        self.token.span,
                        "a value in the table is overwritten by each request",
                        "write `\"\"`",
                    );
                    return Err(Broken);
                }
                self.bump();
            }
            self.expect_so(Kind::RightCurly, "`}`")?;
        }
        match parse_field(&text) {
            Ok(field) => Ok(Some(field)),
            Err(findings) => {
                let place = Meaning::of(self.source, at);
                for finding in findings {
                    let Span { start, end } = finding.span;
                    let span = place.span(start as usize, end as usize);
                    self.findings.add(crate::Diagnostic { span, ..finding });
                }
                Ok(None)
            }
        }
    }

    fn expect_so(&mut self, kind: Kind, what: &str) -> Parsed<Span> {
        match self.take(kind) {
            Some(span) => Ok(span),
            None => Err(self.unexpected_so(what, FORM)),
        }
    }

    /// `rule_fields[1].value`, or `xml_tag_value[0]`: the field at that place of the table. `None` where no such place
    /// is named.
    pub(super) fn table_place(&mut self) -> Option<Parsed<FieldRef>> {
        let name = table_name(self.text())?;
        let start = self.token.span;
        if self.ahead.kind != Kind::LeftSquare {
            let help = format!("a place is `{name}[0]`, counted from 0");
            self.error(start, format!("`{name}` is a table"), help);
            return Some(Err(Broken));
        }
        self.bump();
        self.bump();
        Some(self.place_of(name, start))
    }

    fn place_of(&mut self, name: &'static str, start: Span) -> Parsed<FieldRef> {
        let shown = self.shown();
        let number = if self.at(Kind::Number) { self.text().parse::<usize>().ok() } else { None };
        let Some(number) = number else {
            return Err(self.unexpected_so("a place", format!("places count from 0: `{name}[0]`")));
        };
        self.bump();
        self.expect(Kind::RightSquare, "`]`")?;
        if self.at(Kind::Stray) && self.text() == "." && self.ahead.span.of(self.source) == "value" {
            self.bump();
            self.bump();
        }
        let span = self.since(start);
        let table = self.tables.iter().find(|table| table.name == name);
        let found = table.map(|table| (table.entries.get(number), table.entries.len()));
        match found {
            Some((Some(field), _)) => Ok(FieldRef { span, ..field.clone() }),
            Some((None, length)) => {
                let message = format!("`{name}` has no place {shown}");
                self.error(span, message, format!("it has {length} entries, counted from 0"));
                Err(Broken)
            }
            None => {
                let message = format!(
                    "`{}` is a place in a table that this file does not declare",
                    shorten(span.of(self.source))
                );
                let help = format!(
                    "write the path itself, as `xml.purchase/totalAmount`, \
                     or declare the table above: `{name} = {{ {{\"purchase:1.totalAmount:1.\", \"\"}} }};`"
                );
                self.error(span, message, help);
                Err(Broken)
            }
        }
    }
}
