//! A table of the source, read by its key table: unknown keys, wrong types, numbers out of range and missing
//! keys are found here, once for all keys.

use std::borrow::Cow;

use pointsman_rules::Span;
use toml::de::{DeTable, DeValue};

use crate::findings::{Findings, Spanned, span};
use crate::keys::{Default, Key, Kind, POOL_HEADER, ROOT, Table};
use crate::notation::Refusal;

/// A value of the source.
type Value<'t> = toml::Spanned<DeValue<'t>>;

/// A table of the source together with what it may hold.
#[derive(Clone, Copy)]
pub(crate) struct Section<'t> {
    schema: &'static Table,
    table: &'t DeTable<'t>,
    at: Span,
    /// Which of the tables with that header it is, or is in: what stands for `NAME`.
    name: Option<&'t str>,
    findings: &'t Findings<'t>,
}

/// An element of a list that takes strings and tables.
pub(crate) enum TextOrSection<'t> {
    Text(Spanned<String>),
    Section(Section<'t>),
}

impl<'t> Section<'t> {
    /// Takes the whole of a configuration.
    pub(crate) fn root(table: &'t DeTable<'t>, findings: &'t Findings<'t>) -> Self {
        Self { schema: &ROOT, table, at: Span::default(), name: None, findings }.looked_at()
    }

    /// Takes one table of a configuration alone; what is wrong with the others is not looked for.
    pub(crate) fn part(
        table: &'t DeTable<'t>,
        findings: &'t Findings<'t>,
        name: &'static str,
    ) -> Option<Self> {
        Self { schema: &ROOT, table, at: Span::default(), name: None, findings }.section(name)
    }

    /// Reports the keys in the table that are unknown and those that are missing.
    fn looked_at(self) -> Self {
        let Self { schema, table, findings, .. } = self;
        for key in table.keys().filter(|key| schema.key(key.get_ref()).is_none()) {
            let message = format!("unknown key `{}` {}", key.get_ref(), self.written_place());
            findings.error(span(key.span()), message, unknown_key_help(schema, key.get_ref(), findings));
        }
        for key in schema.keys().filter(|key| matches!(key.default, Default::Required)) {
            if !table.contains_key(key.name) {
                let message = format!("`{}` is missing {}", key.name, self.written_place());
                self.missing(message, format!("it must be {}", key.kind.expected()));
            }
        }
        self
    }

    /// Where its keys stand, as a phrase, with the name that was written.
    pub(crate) fn written_place(&self) -> String {
        let place = self.schema.place();
        match self.name {
            Some(name) => place.replace("NAME", name),
            None => place,
        }
    }

    /// Reports that something is not there. Where the text is torn it may only have gone unread.
    pub(crate) fn missing(&self, message: impl Into<String>, help: impl Into<String>) {
        if !self.findings.is_torn() {
            self.findings.error(self.at, message, help);
        }
    }

    /// Where the table stands: its header, or the whole of it if it is inline.
    pub(crate) fn at(&self) -> Span {
        self.at
    }

    /// The list that findings about this table go to.
    pub(crate) fn findings(&self) -> &'t Findings<'t> {
        self.findings
    }

    /// Whether the key is there.
    pub(crate) fn has(&self, name: &'static str) -> bool {
        self.find(name).1.is_some()
    }

    /// Where the key's value stands; the table where it is absent.
    pub(crate) fn place(&self, name: &'static str) -> Span {
        self.find(name).1.map_or(self.at, |value| span(value.span()))
    }

    /// Reports an empty list.
    pub(crate) fn require_elements(&self, name: &'static str, message: &str, help: &str) {
        let Some(list) = self.find(name).1.and_then(|value| value.get_ref().as_array()) else { return };
        if list.is_empty() {
            self.findings.error(self.place(name), message, help);
        }
    }

    /// A whole number within the range of its key; the default where it is absent or wrong and has one.
    pub(crate) fn number<N: TryFrom<u64>>(&self, name: &'static str) -> Option<N> {
        let (key, value) = self.find(name);
        let default = if let Default::Integer(default) = key.default { Some(default) } else { None };
        value
            .and_then(|value| self.in_range(key, value))
            .or(default)
            .and_then(|number| N::try_from(number).ok())
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, name: &'static str) -> bool {
        let (key, value) = self.find(name);
        let default = matches!(key.default, Default::Boolean(true));
        let Some(value) = value else { return default };
        value.get_ref().as_bool().unwrap_or_else(|| {
            self.wrong_type(key, value);
            default
        })
    }

    /// One of the words of the key; its default where it is absent or wrong.
    pub(crate) fn word(&self, name: &'static str) -> &'static str {
        let (key, value) = self.find(name);
        let default = if let Default::Word(word) = key.default { word } else { "" };
        let Kind::Word(words) = key.kind else { return default };
        let Some(text) = value.and_then(|value| self.string(key, value)) else { return default };
        words.iter().find(|word| **word == text.value).copied().unwrap_or_else(|| {
            let message = format!("`{}` is no value of `{name}`", text.value);
            let help = self.findings.did_you_mean(&text.value, words, "values");
            self.findings.error(text.span, message, help);
            default
        })
    }

    /// A string.
    pub(crate) fn text(&self, name: &'static str) -> Option<Spanned<String>> {
        let (key, value) = self.find(name);
        self.string(key, value?)
    }

    /// A string in some notation.
    pub(crate) fn parsed<T>(
        &self,
        name: &'static str,
        notation: impl Fn(&str) -> Result<T, Refusal>,
    ) -> Option<Spanned<T>> {
        self.parse(&self.text(name)?, notation)
    }

    /// A list of strings in some notation, or one string where the key takes that too.
    pub(crate) fn parsed_list<T>(
        &self,
        name: &'static str,
        notation: impl Fn(&str) -> Result<T, Refusal>,
    ) -> Vec<Spanned<T>> {
        self.texts(name).iter().filter_map(|text| self.parse(text, &notation)).collect()
    }

    /// What a string says in some notation; a refusal is reported at its place.
    pub(crate) fn parse<T>(
        &self,
        text: &Spanned<String>,
        notation: impl Fn(&str) -> Result<T, Refusal>,
    ) -> Option<Spanned<T>> {
        match notation(&text.value) {
            Ok(value) => Some(Spanned { value, span: text.span }),
            Err(refusal) => {
                self.findings.error(text.span, refusal.message, refusal.help);
                None
            }
        }
    }

    fn texts(&self, name: &'static str) -> Vec<Spanned<String>> {
        let (key, value) = self.find(name);
        let Some(value) = value else { return Vec::new() };
        match (value.get_ref(), &key.kind) {
            (DeValue::Array(list), _) => list.iter().filter_map(|value| self.string(key, value)).collect(),
            (DeValue::String(_), Kind::OneOrMoreTexts(_)) => self.string(key, value).into_iter().collect(),
            _ => {
                self.wrong_type(key, value);
                Vec::new()
            }
        }
    }

    /// A table.
    pub(crate) fn section(&self, name: &'static str) -> Option<Section<'t>> {
        let (key, value) = self.find(name);
        self.subsection(key, value?)
    }

    /// A list of tables.
    pub(crate) fn sections(&self, name: &'static str) -> Vec<Section<'t>> {
        let (key, value) = self.find(name);
        self.elements(key, value).filter_map(|value| self.subsection(key, value)).collect()
    }

    /// Tables by name, in the order of the text.
    pub(crate) fn named_sections(&self, name: &'static str) -> Vec<(Spanned<String>, Section<'t>)> {
        let (key, value) = self.find(name);
        let Some(value) = value else { return Vec::new() };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(key, value);
            return Vec::new();
        };
        let mut named: Vec<_> = table
            .iter()
            .filter_map(|(name, value)| {
                let spanned = Spanned { value: name.get_ref().to_string(), span: span(name.span()) };
                Some((spanned, Self { name: Some(name.get_ref()), ..*self }.subsection(key, value)?))
            })
            .collect();
        // The parser keeps keys sorted by name; people read them in the order they wrote them.
        named.sort_by_key(|(name, _)| name.span.start);
        named
    }

    /// A list of strings and tables.
    pub(crate) fn texts_or_sections(&self, name: &'static str) -> Vec<TextOrSection<'t>> {
        let (key, value) = self.find(name);
        self.elements(key, value)
            .filter_map(|value| match value.get_ref() {
                DeValue::String(_) => self.string(key, value).map(TextOrSection::Text),
                _ => self.subsection(key, value).map(TextOrSection::Section),
            })
            .collect()
    }

    /// A key of this table by its name, and its value if it has one.
    fn find(&self, name: &'static str) -> (&'static Key, Option<&'t Value<'t>>) {
        let key = self.schema.key(name);
        debug_assert!(key.is_some(), "`{name}` is no key of {}", self.schema.place());
        // The parser puts a value of no extent where it found none, and has reported that.
        let value = self.table.get(name).filter(|value| !value.span().is_empty());
        (key.unwrap_or(&Key::NONE), value)
    }

    fn elements(
        &self,
        key: &'static Key,
        value: Option<&'t Value<'t>>,
    ) -> impl Iterator<Item = &'t Value<'t>> {
        let list = value.and_then(|value| value.get_ref().as_array());
        if let (Some(value), None) = (value, list) {
            self.wrong_type(key, value);
        }
        list.into_iter().flat_map(|list| list.iter())
    }

    fn subsection(&self, key: &'static Key, value: &'t Value<'t>) -> Option<Section<'t>> {
        match (key.kind.table(), value.get_ref()) {
            (Some(schema), DeValue::Table(table)) => {
                Some(Section { schema, table, at: span(value.span()), ..*self }.looked_at())
            }
            _ => {
                self.wrong_type(key, value);
                None
            }
        }
    }

    fn string(&self, key: &'static Key, value: &Value<'_>) -> Option<Spanned<String>> {
        match value.get_ref() {
            DeValue::String(text) => Some(Spanned { value: text.to_string(), span: span(value.span()) }),
            _ => {
                self.wrong_type(key, value);
                None
            }
        }
    }

    fn in_range(&self, key: &'static Key, value: &Value<'_>) -> Option<u64> {
        let Kind::Integer { min, max, unit } = key.kind else { return None };
        let Some(integer) = value.get_ref().as_integer() else {
            self.wrong_type(key, value);
            return None;
        };
        // Digits that do not even fit 64 bits are out of every range, and so are negative ones.
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        if let Some(number) = number.filter(|number| (min..=max).contains(number)) {
            return Some(number);
        }
        let message = format!("`{}` is {integer}; it must be from {min} to {max} {unit}", key.name);
        let help = match key.default {
            Default::Integer(default) => format!("the default is {default}"),
            _ => String::new(),
        };
        self.findings.error(span(value.span()), message, help);
        None
    }

    fn wrong_type(&self, key: &'static Key, value: &Value<'_>) {
        let message =
            format!("`{}` must be {}, and this is {}", key.name, key.kind.expected(), called(value));
        self.findings.error(span(value.span()), message, wrong_type_help(key, value.get_ref()));
    }
}

impl Kind {
    /// What a value must be, as a phrase.
    fn expected(&self) -> String {
        match self {
            Self::Integer { min, max, unit } => format!("a whole number of {unit} from {min} to {max}"),
            Self::Boolean => "`true` or `false`".to_owned(),
            Self::Word(words) => format!("one of the strings `{}`", words.join("`, `")),
            Self::Text(what) => format!("{what}, in quotation marks"),
            Self::Texts(what) => format!("a list of {what}, in quotation marks"),
            Self::OneOrMoreTexts(what) => format!("{what}, in quotation marks, or a list of them"),
            Self::TextsOrTables(what, table) => {
                format!("a list of {what}, in quotation marks, or of tables with {}", key_names(table))
            }
            Self::Table(table) => format!("a table, `{}`", table.header),
            Self::Tables(table) => format!("a list of tables, `{}`", table.header),
            Self::NamedTables(table) => format!("made of tables, `{}`", table.header),
        }
    }
}

/// Quotation marks are what people most often put where none belong, or leave out.
fn wrong_type_help(key: &Key, value: &DeValue<'_>) -> Cow<'static, str> {
    let help = match (&key.kind, value) {
        (Kind::Word(words), DeValue::Boolean(flag)) => {
            let word = if *flag { "on" } else { "off" };
            return if words.contains(&word) { format!("write `\"{word}\"`").into() } else { "".into() };
        }
        (Kind::Table(table), DeValue::Boolean(true)) if table.may_be_empty() => {
            return format!("write `{} = {{}}`", key.name).into();
        }
        (Kind::Table(_), DeValue::Boolean(false)) => "leave it out",
        (Kind::Integer { .. }, DeValue::String(text)) if text.parse::<u64>().is_ok() => LEAVE_OUT_QUOTES,
        (Kind::Boolean, DeValue::String(text)) if text.parse::<bool>().is_ok() => LEAVE_OUT_QUOTES,
        (Kind::Text(_) | Kind::Word(_), DeValue::Integer(_) | DeValue::Float(_)) => {
            "put quotation marks around it"
        }
        (Kind::Texts(_) | Kind::TextsOrTables(..), DeValue::String(_)) => "put square brackets around it",
        _ => "",
    };
    help.into()
}

const LEAVE_OUT_QUOTES: &str = "leave out the quotation marks";

impl Key {
    /// Stands in for a key that the code asks for and the table lacks: a mistake that debug builds refuse.
    const NONE: Key =
        Key { name: "", kind: Kind::Text("nothing"), default: Default::Words("nothing"), doc: "Nothing." };
}

fn key_names(table: &Table) -> String {
    table.keys().map(|key| format!("`{}`", key.name)).collect::<Vec<_>>().join(", ")
}

/// A key that another table has is rather misplaced than misspelled.
fn unknown_key_help(schema: &'static Table, written: &str, findings: &Findings<'_>) -> String {
    if findings.overflowed() {
        return String::new();
    }
    if (schema.header, written) == (POOL_HEADER, "http2") {
        return "servers are spoken HTTP/2 to with `protocol = \"h2\"`".to_owned();
    }
    let tables = ROOT.with_descendants();
    let owners: Vec<&str> =
        tables.iter().filter(|table| table.key(written).is_some()).map(|table| table.header).collect();
    match owners.as_slice() {
        [] => {
            let names: Vec<&str> = schema.keys().map(|key| key.name).collect();
            findings.did_you_mean(written, &names, "keys")
        }
        [""] => format!("`{written}` stands at the top of the file, before the first table"),
        owners => format!("it is a key of `{}`", owners.join("` and `")),
    }
}

fn called(value: &Value<'_>) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
