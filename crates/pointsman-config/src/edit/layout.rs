//! Elements of an array come and go, and the comments and lines around them stay.

use toml_edit::{Array, RawString, Value};

/// Adds an element behind the others, written as they are.
pub(super) fn push(array: &mut Array, mut value: Value) {
    let Some(last) = array.len().checked_sub(1) else {
        return array.push_formatted(value);
    };
    let is_spread = array.iter().any(|element| text(element.decor().prefix()).contains('\n'));
    let behind = gap_behind(array, last);
    if !is_spread {
        // Of one line: what stands before the bracket goes on standing there.
        set_gap_behind(array, last, "");
        value.decor_mut().set_prefix(" ");
        array.push_formatted(value);
        return set_gap_behind(array, last + 1, &behind);
    }
    let before = array.get(last).map(|element| text(element.decor().prefix())).unwrap_or_default();
    let indent = before.rsplit('\n').next().unwrap_or_default().to_owned();
    // A comment behind the last element is one about it.
    let (said, end) = behind.rsplit_once('\n').unwrap_or((&behind, ""));
    set_gap_behind(array, last, "");
    value.decor_mut().set_prefix(format!("{said}\n{indent}"));
    array.push_formatted(value);
    array.set_trailing_comma(true);
    array.set_trailing(format!("\n{end}"));
}

/// Takes an element out, with the comment behind it in its line. Comments in lines of their own stay.
pub(super) fn remove(array: &mut Array, at: usize) {
    let is_last = at + 1 == array.len();
    let before = array.get(at).map(|element| text(element.decor().prefix())).unwrap_or_default();
    let behind = gap_behind(array, at);
    array.remove(at);
    let joined = joined(&before, &behind, is_last);
    match (is_last, at.checked_sub(1)) {
        (false, _) => {
            if let Some(next) = array.get_mut(at) {
                next.decor_mut().set_prefix(joined);
            }
        }
        (true, Some(last)) => set_gap_behind(array, last, &joined),
        (true, None) => array.set_trailing(joined),
    }
}

/// What stands between those before and behind one that goes.
fn joined(before: &str, behind: &str, is_last: bool) -> String {
    match (before.split_once('\n'), behind.split_once('\n')) {
        (Some((head, own)), Some((_, rest))) => {
            let own = own.rsplit_once('\n').map(|(lines, _)| format!("{lines}\n")).unwrap_or_default();
            format!("{head}\n{own}{rest}")
        }
        (Some(_), None) if is_last && !before.contains('#') => behind.to_owned(),
        (Some(_), None) => before.to_owned(),
        (None, Some(_)) => behind.to_owned(),
        (None, None) if is_last => behind.to_owned(),
        (None, None) => before.to_owned(),
    }
}

/// What stands behind an element, up to the next one or the bracket, but for the comma.
fn gap_behind(array: &Array, at: usize) -> String {
    let suffix = array.get(at).map(|element| text(element.decor().suffix())).unwrap_or_default();
    match array.get(at + 1) {
        Some(next) => suffix + &text(next.decor().prefix()),
        None => suffix + array.trailing().as_str().unwrap_or_default(),
    }
}

/// Of the last element.
fn set_gap_behind(array: &mut Array, last: usize, gap: &str) {
    if let Some(element) = array.get_mut(last) {
        element.decor_mut().set_suffix("");
    }
    array.set_trailing("");
    match array.trailing_comma() {
        true => array.set_trailing(gap),
        false => {
            if let Some(element) = array.get_mut(last) {
                element.decor_mut().set_suffix(gap);
            }
        }
    }
}

fn text(raw: Option<&RawString>) -> String {
    raw.and_then(RawString::as_str).unwrap_or_default().to_owned()
}
