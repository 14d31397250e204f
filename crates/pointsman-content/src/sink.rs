//! Who hears what was found.

use crate::Cause;

/// A path, by its place among those that a reader was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

/// A value that stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// An element's direct text, joined over CDATA, comments and instructions; an attribute; a JSON string; a form's
    /// field. Decoded.
    Text(&'a str),
    /// A JSON number, as it is written.
    Number(&'a str),
    /// `true` or `false` of JSON.
    Boolean(bool),
    /// JSON's `null`, or an object or array: it is there, and compares with nothing.
    Other,
    /// Longer than [`Limits::value_bytes_max`](crate::Limits::value_bytes_max): it is there, and nobody knows what it is.
    TooLong,
    /// Bytes or escapes that are no text: the value is there, and its text is unknown for this cause.
    Undecodable(Cause),
}

/// Hears of the values at the paths that are looked for, as soon as each is settled.
///
/// Of a path's values, `number` counts from 0 in the order in which they begin. One may begin within another (`//a`), so
/// that the later one is whole first.
pub trait Sink {
    /// There is one more value of the path.
    fn begins(&mut self, path: PathId, number: u32);

    /// It is whole.
    fn value(&mut self, path: PathId, number: u32, value: Value<'_>);

    /// The rest of the path's values is unknown for this cause, because servers disagree whether a value stands there.
    /// Later calls for the path have no effect.
    fn ends_unknown(&mut self, path: PathId, cause: Cause);

    /// No more values of the path come: the only place where there could be more is closed. Called once for each path,
    /// for all that are left when the document ends, and not at all behind a fault. Of a path
    /// that ended unknown it means nothing.
    fn ends(&mut self, path: PathId);
}
