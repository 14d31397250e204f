//! Fields of forms by name.

mod delimiter;
mod disposition;
mod fields;
mod multipart;
mod part_head;
mod preamble;
mod urlencoded;

use std::collections::HashMap;

use crate::text::{Encoding, form_encoding};
use crate::{Cause, Fault, Limits, ParameterNames, PathId, Sink};

pub use multipart::MultipartReader;
pub use urlencoded::UrlencodedReader;

/// The names of fields that somebody asks for. A name's [`PathId`] is its place.
#[derive(Clone, Debug, Default)]
pub struct FormNames {
    paths: HashMap<Box<str>, PathId>,
    count: u32,
    bytes_max: usize,
    /// By name as other servers read it: those that are asked for.
    others: HashMap<Box<[u8]>, Vec<PathId>>,
    /// Name reading of those servers.
    read: ParameterNames,
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

    /// The same, and beside each name those that other servers take for it, by how they read names. The [`PathId`] of such
    /// a field is that of the name and [`FormNames::count`].
    #[must_use]
    pub fn with_other_readings(self, read: ParameterNames) -> FormNames {
        let mut others: HashMap<Box<[u8]>, Vec<PathId>> = HashMap::new();
        for (name, path) in &self.paths {
            others.entry(read.read(name.as_bytes()).into()).or_default().push(*path);
        }
        FormNames { others, read, ..self }
    }

    /// The places of fields that other servers take this name for.
    fn others(&self, name: &[u8]) -> impl Iterator<Item = PathId> {
        let exact = std::str::from_utf8(name).ok().and_then(|name| self.path(name));
        let read = (!self.others.is_empty()).then(|| self.read.read(name));
        let paths = read.and_then(|read| self.others.get(&*read)).into_iter().flatten();
        paths.copied().filter(move |path| Some(*path) != exact).map(|path| PathId(path.0 + self.count))
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

/// Options of a form reader.
#[derive(Clone, Copy, Debug)]
pub struct FormOptions<'a> {
    /// The `charset` parameter of the media type, without the quotes it may stand in.
    pub charset: Option<&'a [u8]>,
    /// Treatment of fields that servers read differently.
    pub reading: FormReading,
    /// Limits on the form.
    pub limits: &'a Limits,
}

/// Treatment of fields that common servers (Go, Werkzeug, PHP, busboy, formidable) read in different ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormReading {
    /// They are read as the standards say.
    #[default]
    Literal,
    /// They are unknown, if they are looked for.
    Common,
}

impl FormOptions<'_> {
    /// The encoding of the fields: UTF-8, unless the media type names another one.
    fn encoding(&self) -> Result<Encoding, Fault> {
        match self.charset {
            None => Ok(Encoding::Utf8),
            Some(name) => form_encoding(name)
                .ok_or(Wrong(Cause::Encoding, "a charset that is not supported in forms").at(0)),
        }
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
