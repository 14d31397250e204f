//! JSON (RFC 8259): values by path, pushed in pieces.

mod nest;
mod number;
mod path;
mod reader;
mod scan;
mod standing;
mod string;
mod trie;

pub use path::{JsonPath, JsonStep};
pub use reader::JsonReader;
pub use trie::JsonPaths;

use crate::{Cause, Fault};

#[cold]
fn malformed(at: u64, what: &'static str) -> Fault {
    Fault { cause: Cause::Malformed, at, what }
}
