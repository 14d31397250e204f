//! What stands in a body.

mod form;
mod json;
mod xml;

use pointsman_rules::{Cause, JsonStep, OwnedValue, Place};

use super::Setting;
use super::body::Kind;
use super::coding::coded;
use super::sought::Wish;

/// The bytes of a body, with a place where it can be made longer without a difference.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) before: Vec<u8>,
    /// May stand between the two any number of times.
    pub(super) padding: u8,
    /// What is wrong with it, if anything is to be, stands here.
    pub(super) behind: Vec<u8>,
    pub(super) cause: Option<Cause>,
}

impl Content {
    /// Whether nothing stands before what is wrong with it.
    pub(super) fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// All of it, so much longer.
    pub(super) fn padded(&self, bytes: usize) -> Vec<u8> {
        [&self.before[..], &vec![self.padding; bytes], &self.behind].concat()
    }

    /// The same in codings, and just as long as that then.
    pub(super) fn coded_as_long(&self, length: usize, codings: &[OwnedValue]) -> Option<Vec<u8>> {
        let mut padding = 0;
        for _ in 0..CODED_TRIES_MAX {
            let bytes = coded(&self.padded(padding), codings)?;
            if bytes.len() == length {
                return Some(bytes);
            }
            // More of it may take another block.
            padding = (padding + length).checked_sub(bytes.len())?;
        }
        None
    }
}

/// How often it is tried to make coded content just as long as it is to be.
const CODED_TRIES_MAX: usize = 3;

/// A body in which the wishes are met, as far as one of a kind can.
pub(super) fn of_wishes(
    kind: Kind,
    wishes: &[&Wish<'_>],
    boundary: &[u8],
    setting: &Setting,
) -> Option<Content> {
    let mut causes = wishes.iter().filter_map(|wish| wish.values.rest);
    let cause = causes.next();
    if causes.any(|other| Some(other) != cause) {
        return None;
    }
    let limits = &setting.body_options.limits;
    match kind {
        Kind::Xml => xml::content(wishes, cause, limits),
        Kind::Json => json::content(wishes, cause, limits),
        Kind::Urlencoded => form::urlencoded(wishes, cause, limits),
        Kind::Multipart => form::multipart(wishes, cause, boundary, limits),
        Kind::Other => None,
    }
}

/// A body in which no field has a value, shorter than `length` where that can be.
pub(super) fn empty(kind: Kind, wishes: &[&Wish<'_>], boundary: &[u8], length: Option<u64>) -> Content {
    let (before, padding) = match kind {
        Kind::Xml => (format!("<{}/>", free_name(wishes)).into_bytes(), b' '),
        Kind::Json if length == Some(1) => (b"0".to_vec(), b' '),
        Kind::Json => (b"{}".to_vec(), b' '),
        Kind::Urlencoded => (Vec::new(), b'&'),
        Kind::Multipart => ([b"--", boundary, b"--\r\n"].concat(), b' '),
        Kind::Other => (Vec::new(), b'x'),
    };
    Content { before, padding, ..Content::default() }
}

/// A name that no path asks for, and no form's field; any, where all letters are asked for.
fn free_name(wishes: &[&Wish<'_>]) -> &'static str {
    const NAMES: &str = "xyzabcdefghijklmnopqrstuvw";
    let is_asked =
        |name: &str| wishes.iter().filter_map(|wish| wish.place()).any(|place| asks_for(place, name));
    let mut letters = (0..NAMES.len()).filter_map(|at| NAMES.get(at..=at));
    letters.find(|name| !is_asked(name)).unwrap_or("x")
}

fn asks_for(place: &Place, name: &str) -> bool {
    match place {
        Place::Xml(path) => path.steps.iter().any(|step| &*step.name.local == name),
        Place::Json(steps) => {
            steps.iter().any(|step| matches!(step, JsonStep::Member(member) if &**member == name))
        }
        Place::Form(field) => &**field == name,
        Place::Size => false,
    }
}
