//! Changes of the text of a configuration that leave the rest of it as somebody wrote it, comments and layout included.
//!
//! Invariant: nothing here says what the text means: it is loaded like any other before it serves.

mod layout;

use std::fmt;

use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// What becomes of a server of a pool.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEdit {
    /// It has these keys besides its name, and no others; where there is none of that name it is added.
    Put(Vec<(String, EditValue)>),
    /// These keys have other values; one without a value is taken away.
    Merge(Vec<(String, Option<EditValue>)>),
    /// It is taken out.
    Remove,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum EditValue {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
    /// `true` or `false`.
    Flag(bool),
}

/// Why a text cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditFault {
    /// It has no such pool.
    NoPool,
    /// The pool has no such server.
    NoServer,
    /// The server has no name of its own, and would be called otherwise.
    Nameless,
    /// It is not written as changes need it.
    Layout,
}

impl fmt::Display for EditFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EditFault::NoPool => "there is no such pool: `/api/v1/pools` names them",
            EditFault::NoServer => "the pool has no such server in the configuration: `/api/v1/pools` names them",
            EditFault::Nameless => {
                "a server without a name is called by its address: with another one it would be another server"
            }
            EditFault::Layout => "the configuration is written in a way that cannot be changed here",
        })
    }
}

impl std::error::Error for EditFault {}

/// Changes a server of a pool in the text of a configuration.
///
/// # Errors
/// What the text lacks; whether the new one is any good is seen when it is loaded.
pub fn edit_server(source: &str, pool: &str, server: &str, edit: &ServerEdit) -> Result<String, EditFault> {
    let mut document: DocumentMut = source.parse().map_err(|_| EditFault::Layout)?;
    let pools = document.get_mut("pool").and_then(Item::as_table_like_mut).ok_or(EditFault::NoPool)?;
    let pool = pools.get_mut(pool).and_then(Item::as_table_like_mut).ok_or(EditFault::NoPool)?;
    match pool.get_mut("servers") {
        Some(Item::Value(Value::Array(servers))) => in_array(servers, server, edit)?,
        Some(Item::ArrayOfTables(servers)) => in_tables(servers, server, edit)?,
        _ => return Err(EditFault::Layout),
    }
    Ok(with_line_ends_of(source, &document.to_string()))
}

/// The lines that have changed end as those around them do, and the others are as they were: the writer of TOML ends
/// some of them in its own way, and adds an end to the last one.
fn with_line_ends_of(source: &str, edited: &str) -> String {
    const CRLF: &str = "\r\n";
    let edited = edited.strip_suffix('\n').filter(|_| !source.ends_with('\n')).unwrap_or(edited);
    if !source.contains(CRLF) {
        return edited.to_owned();
    }
    let lines = |text| -> Vec<&str> { str::split_inclusive(text, '\n').collect() };
    let (before, after) = (lines(source), lines(edited));
    let bare = |line: &str| line.strip_suffix('\n').map(|line| line.trim_end_matches('\r').to_owned());
    let is_same =
        |(one, other): &(&&str, &&str)| one == other || bare(one).is_some() && bare(one) == bare(other);
    let first = before.iter().zip(&after).take_while(is_same).count();
    let most = before.len().min(after.len()) - first;
    let last = before.iter().rev().zip(after.iter().rev()).take(most).take_while(is_same).count();
    let of_crlf = before.iter().filter(|line| line.ends_with(CRLF)).count();
    let usual = if 2 * of_crlf >= before.len() { CRLF } else { "\n" };
    let changed = after[first..after.len() - last].iter().map(|line| match bare(line) {
        Some(bare) => bare + usual,
        None => (*line).to_owned(),
    });
    let kept = |lines: &[&str]| lines.concat();
    kept(&before[..first]) + &changed.collect::<String>() + &kept(&before[before.len() - last..])
}

fn in_array(servers: &mut Array, name: &str, edit: &ServerEdit) -> Result<(), EditFault> {
    let found = servers.iter().position(|server| is_called(server, name));
    let Some(at) = found else {
        let ServerEdit::Put(keys) = edit else { return Err(EditFault::NoServer) };
        layout::push(servers, added(name, keys));
        return Ok(());
    };
    let changes = match edit {
        ServerEdit::Remove => {
            layout::remove(servers, at);
            return Ok(());
        }
        ServerEdit::Merge(changes) => changes.clone(),
        ServerEdit::Put(keys) => only(keys, servers.get(at).and_then(Value::as_inline_table)),
    };
    let server = servers.get_mut(at).ok_or(EditFault::NoServer)?;
    if let Value::String(address) = server {
        let mut table = InlineTable::new();
        table.insert("address", address.value().as_str().into());
        let decor = address.decor().clone();
        *server = Value::InlineTable(table);
        *server.decor_mut() = decor;
    }
    merge(server.as_inline_table_mut().ok_or(EditFault::Layout)?, &changes)
}

fn in_tables(servers: &mut ArrayOfTables, name: &str, edit: &ServerEdit) -> Result<(), EditFault> {
    let found = servers.iter().position(|server| name_in(server) == Some(name));
    let Some(at) = found else {
        let ServerEdit::Put(keys) = edit else { return Err(EditFault::NoServer) };
        let mut table = Table::new();
        for (key, value) in named(name, keys) {
            table.insert(&key, Item::Value(value.into()));
        }
        servers.push(table);
        return Ok(());
    };
    let changes = match edit {
        ServerEdit::Remove => {
            servers.remove(at);
            return Ok(());
        }
        ServerEdit::Merge(changes) => changes.clone(),
        ServerEdit::Put(keys) => only(keys, servers.get(at)),
    };
    merge(servers.get_mut(at).ok_or(EditFault::NoServer)?, &changes)
}

/// What a server is called: its address as written where it has no name.
fn is_called(server: &Value, name: &str) -> bool {
    match server {
        Value::String(address) => address.value() == name,
        Value::InlineTable(table) => name_in(table) == Some(name),
        _ => false,
    }
}

fn name_in(server: &dyn TableLike) -> Option<&str> {
    ["name", "address", "service"].iter().find_map(|key| server.get(key))?.as_str()
}

/// The changes that leave these keys and no others, but for the name.
fn only<T: TableLike>(keys: &[(String, EditValue)], server: Option<&T>) -> Vec<(String, Option<EditValue>)> {
    let written = server.into_iter().flat_map(|server| server.iter().map(|(key, _)| key.to_owned()));
    let gone = written.filter(|key| key != "name" && !keys.iter().any(|(kept, _)| kept == key));
    let set = keys.iter().map(|(key, value)| (key.clone(), Some(value.clone())));
    gone.map(|key| (key, None)).chain(set).collect()
}

fn merge(server: &mut impl TableLike, changes: &[(String, Option<EditValue>)]) -> Result<(), EditFault> {
    for (key, value) in changes {
        let Some(value) = value else {
            take_out(server, key);
            continue;
        };
        let mut value: Value = value.clone().into();
        match server.get_mut(key) {
            Some(Item::Value(before)) => {
                let is_other = before.as_str() != value.as_str();
                if matches!(key.as_str(), "address" | "service") && is_other && server.get("name").is_none() {
                    return Err(EditFault::Nameless);
                }
                if let Some(Item::Value(before)) = server.get_mut(key) {
                    *value.decor_mut() = before.decor().clone();
                    *before = value;
                }
            }
            Some(_) => return Err(EditFault::Layout),
            None => {
                if let Some(room) = take_room(server) {
                    value.decor_mut().set_suffix(room);
                }
                server.insert(key, Item::Value(value));
            }
        }
    }
    Ok(())
}

/// The room before the brace, which the last value has no more: another one comes behind it.
fn take_room(server: &mut impl TableLike) -> Option<String> {
    let (_, last) = server.iter_mut().last()?;
    let last = last.as_value_mut()?.decor_mut();
    let room = last.suffix()?.as_str().filter(|room| room.trim().is_empty())?.to_owned();
    last.set_suffix("");
    Some(room)
}

/// Takes a key out. The room before the brace, which is that of the last value, stays.
fn take_out(server: &mut impl TableLike, key: &str) {
    let gone = server.remove(key).and_then(|gone| gone.into_value().ok());
    let room = gone.as_ref().and_then(|gone| gone.decor().suffix()?.as_str()).unwrap_or_default();
    if let Some((_, Item::Value(last))) = server.iter_mut().last()
        && room.trim().is_empty()
        && last.decor().suffix().is_none_or(|suffix| suffix.as_str() == Some(""))
    {
        last.decor_mut().set_suffix(room);
    }
}

/// A server as an array has it.
fn added(name: &str, keys: &[(String, EditValue)]) -> Value {
    let keys = named(name, keys);
    match &keys[..] {
        [(key, EditValue::Text(address))] if key == "address" => address.as_str().into(),
        _ => keys.into_iter().map(|(key, value)| (key, Value::from(value))).collect::<InlineTable>().into(),
    }
}

/// All keys of a server that is new: it needs no name where its address, or its service, is what it is called.
fn named(name: &str, keys: &[(String, EditValue)]) -> Vec<(String, EditValue)> {
    let is_called_so = |(key, value): &(String, EditValue)| {
        matches!(key.as_str(), "address" | "service") && *value == EditValue::Text(name.to_owned())
    };
    let name =
        (!keys.iter().any(is_called_so)).then(|| ("name".to_owned(), EditValue::Text(name.to_owned())));
    name.into_iter().chain(keys.iter().cloned()).collect()
}

impl From<EditValue> for Value {
    fn from(value: EditValue) -> Value {
        match value {
            EditValue::Text(text) => text.into(),
            EditValue::Number(number) => number.into(),
            EditValue::Flag(flag) => flag.into(),
        }
    }
}

#[cfg(test)]
mod tests;
