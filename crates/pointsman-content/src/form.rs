//! Fields of forms by name.

mod delimiter;
mod disposition;
mod fields;
mod multipart;
mod part_head;
mod urlencoded;

use std::collections::HashMap;

use crate::utf8::NotUtf8;
use crate::{Cause, Fault, PathId, Sink};

pub use multipart::MultipartReader;
pub use urlencoded::UrlencodedReader;

/// The names of fields that somebody asks for. A name's [`PathId`] is its place.
#[derive(Clone, Debug, Default)]
pub struct FormNames {
    paths: HashMap<Box<str>, PathId>,
    count: u32,
    bytes_max: usize,
}

impl FormNames {
    /// These names, as they are when nothing is encoded. Each is to stand there once: of the places of one that is
    /// repeated, only the first hears of fields.
    pub fn new(names: impl IntoIterator<Item = impl Into<Box<str>>>) -> FormNames {
        let mut all = FormNames::default();
        for name in names {
            let name: Box<str> = name.into();
            all.bytes_max = all.bytes_max.max(name.len());
            all.paths.entry(name).or_insert(PathId(all.count));
            all.count += 1;
        }
        all
    }

    /// How many places there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The place of this name.
    fn path(&self, name: &str) -> Option<PathId> {
        if name.len() > self.bytes_max { None } else { self.paths.get(name).copied() }
    }
}

/// A reader that takes of what it is fed as much as it can use at a time.
trait Stepwise {
    /// The bytes that it has read, and what is wrong with them.
    fn standing(&mut self) -> (&mut u64, &mut Option<Fault>);

    /// Reads some of the bytes, which are not none: how many.
    fn step(&mut self, names: &FormNames, bytes: &[u8], sink: &mut impl Sink) -> Result<usize, Fault>;
}

/// Reads all of the bytes, up to a fault, behind which nothing is read any more.
fn feed(
    reader: &mut impl Stepwise,
    names: &FormNames,
    bytes: &[u8],
    sink: &mut impl Sink,
) -> Result<(), Fault> {
    if let (_, Some(fault)) = reader.standing() {
        return Err(*fault);
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        let step = reader.step(names, rest, sink);
        let (at, fault) = reader.standing();
        let used = step.map_err(|found| *fault.insert(found))?;
        *at += used as u64;
        rest = &rest[used..];
    }
    Ok(())
}

/// What is wrong, while nobody says where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wrong(Cause, &'static str);

impl Wrong {
    fn at(self, at: u64) -> Fault {
        Fault { cause: self.0, at, what: self.1 }
    }
}

impl From<NotUtf8> for Wrong {
    fn from(_: NotUtf8) -> Wrong {
        Wrong(Cause::Encoding, "a field that is not UTF-8")
    }
}
