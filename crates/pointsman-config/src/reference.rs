//! The reference of the configuration, printed from the key tables.

use crate::keys::{Default, Key, Kind, ROOT, Table};

/// Every table and key of a configuration, as Markdown: one section a table.
pub fn reference() -> String {
    ROOT.with_descendants().into_iter().map(section).collect::<Vec<_>>().join("\n")
}

fn section(table: &'static Table) -> String {
    let title = match table.header {
        "" => "Top level".to_owned(),
        header => format!("`{header}`"),
    };
    let rows: String = table.keys().map(row).collect();
    format!("## {title}\n\n{}\n\n| key | value | default | meaning |\n|---|---|---|---|\n{rows}", table.doc)
}

fn row(key: &Key) -> String {
    format!("| `{}` | {} | {} | {} |\n", key.name, value(&key.kind), default(&key.default), key.doc)
}

fn value(kind: &Kind) -> String {
    match kind {
        Kind::Integer { min, max, unit } => format!("{min} to {max} {unit}"),
        Kind::Boolean => "`true` or `false`".to_owned(),
        Kind::Word(words) => words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", "),
        Kind::Text(what) => format!("string: {what}"),
        Kind::Texts(what) => format!("list of strings: {what}"),
        Kind::OneOrMoreTexts(what) => format!("string or list of strings: {what}"),
        Kind::TextsOrTables(what, table) => {
            format!("list of strings ({what}) and tables (see `{}`)", table.header)
        }
        Kind::Table(table) => format!("table, see `{}`", table.header),
        Kind::Tables(table) => format!("list of tables, see `{}`", table.header),
        Kind::NamedTables(table) => format!("tables by name, see `{}`", table.header),
    }
}

fn default(default: &Default) -> String {
    match default {
        Default::Required => "**required**".to_owned(),
        Default::RequiredWithout(other) => format!("required without `{other}`"),
        Default::Words(words) => (*words).to_owned(),
        Default::Integer(number) => format!("`{number}`"),
        Default::Boolean(flag) => format!("`{flag}`"),
        Default::Word(word) => format!("`\"{word}\"`"),
    }
}
