//! Forms as `multipart/form-data`.

use super::delimiter::{Before, Delimiter, Found};
use super::fields::Fields;
use super::part_head::{PartHead, PartKind};
use super::preamble::Preamble;
use super::{FormNames, FormOptions, FormReading, Stepwise, Wrong, feed};
use crate::{Cause, Fault, Sink};

/// Reads `multipart/form-data` (RFC 7578, RFC 2046 section 5.1).
///
/// Parts are split where all servers split them; a body that two of them may split differently is malformed: a line that
/// begins as a delimiter does and goes on otherwise, be it with blanks; a delimiter behind a CR or LF alone, within a
/// part's head, right behind it, or behind the close-delimiter; `--boundary` anywhere in a line of the preamble; anything
/// but CRLF behind the close-delimiter. So is a part without a name, or with an encoded one (`name*`).
///
/// A part with a `filename` is a file: it is skipped, whatever its size. Every other part is a field. Some parts are a
/// field to one server and a file, or nothing, to another. With [`FormReading::Common`] they make a field unknown that is
/// looked for, and pass otherwise:
///
/// - an empty `filename`, or only `filename*`;
/// - a `filename` and no Content-Type;
/// - Content-Type `application/octet-stream` and no `filename`;
/// - another disposition than `form-data`.
///
/// A field that is looked for is undecodable with a transfer encoding that changes bytes, or a Content-Type that is none.
///
/// It holds the head of a part, at most 8 KiB and 16 lines, or a field within the limits. The places of faults are counted
/// in bytes of the body; what is wrong with a line of a head, or with a value, stands at its start.
#[derive(Debug)]
pub struct MultipartReader {
    fields: Fields,
    delimiter: Delimiter,
    preamble: Preamble,
    head: PartHead,
    place: Place,
    /// Bytes read.
    at: u64,
    /// How many stand before the present part's head, or its value.
    start: u64,
    fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Preamble,
    /// Behind `--boundary`, and one more byte.
    Delimiter(Option<u8>),
    Head,
    Field,
    File,
    /// Behind `--boundary--`.
    Close,
    /// Behind that and a CR.
    CloseReturn,
    Epilogue,
}

impl MultipartReader {
    /// A reader for a form whose media type has this `boundary` parameter, without the quotes it may stand in: 1 to 70
    /// characters (RFC 2046 section 5.1.1).
    pub fn new(
        names: &FormNames,
        boundary: &[u8],
        options: &FormOptions<'_>,
    ) -> Result<MultipartReader, Fault> {
        if !is_boundary(boundary) {
            return Err(Wrong(Cause::Malformed, "a boundary that is none").at(0));
        }
        Ok(MultipartReader {
            fields: Fields::new(names, options)?,
            delimiter: Delimiter::new(boundary),
            preamble: Preamble::default(),
            head: PartHead::default(),
            place: Place::Preamble,
            at: 0,
            start: 0,
            fault: None,
        })
    }

    /// Takes more bytes of the body. `names` are those that it was made for.
    pub fn feed(&mut self, names: &FormNames, bytes: &[u8], sink: &mut impl Sink) -> Result<(), Fault> {
        feed(self, names, bytes, sink)
    }

    /// The body has ended.
    pub fn finish(&mut self, sink: &mut impl Sink) -> Result<(), Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if !matches!(self.place, Place::Close | Place::Epilogue) {
            let fault = Wrong(Cause::Malformed, "a form without its close-delimiter").at(self.at);
            return Err(*self.fault.insert(fault));
        }
        self.fields.finish(sink);
        Ok(())
    }

    fn read_data(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<usize, Fault> {
        let MultipartReader { fields, delimiter, preamble, place, start, .. } = self;
        let is = *place;
        let dash_boundary =
            if is == Place::Preamble { delimiter.dash_boundary().to_vec() } else { Vec::new() };
        let looked = delimiter.look(bytes, &mut |data| {
            match is {
                Place::Field => fields.value(data),
                Place::Preamble => preamble.feed(data, &dash_boundary)?,
                _ => {}
            }
            Ok(())
        });
        let (used, found) = looked.map_err(|wrong| wrong.at(*start))?;
        match found {
            Found::Nothing => {}
            Found::Delimiter if *place != Place::Epilogue => {
                if is == Place::Field {
                    fields.end(sink).map_err(|wrong| wrong.at(*start))?;
                }
                *place = Place::Delimiter(None);
            }
            Found::Delimiter | Found::Ambiguous => {
                let at = self.at + used as u64;
                return Err(Wrong(Cause::Malformed, "a delimiter where not all see one").at(at));
            }
        }
        Ok(used)
    }

    fn behind_delimiter(&mut self, byte: u8) -> Result<Place, Fault> {
        match (self.place, byte) {
            (Place::Delimiter(None), b'-' | b'\r') => Ok(Place::Delimiter(Some(byte))),
            (Place::Delimiter(Some(b'-')), b'-') => Ok(Place::Close),
            (Place::Delimiter(Some(b'\r')), b'\n') => {
                self.start = self.at + 1;
                self.fields.count().map_err(|wrong| wrong.at(self.start))?;
                Ok(Place::Head)
            }
            (Place::Close, b'\r') => Ok(Place::CloseReturn),
            (Place::CloseReturn, b'\n') => {
                self.delimiter.start_line(Before::ReturnLineFeed);
                Ok(Place::Epilogue)
            }
            _ => Err(Wrong(Cause::Malformed, "a delimiter that does not end its line").at(self.at)),
        }
    }

    fn read_head(&mut self, names: &FormNames, bytes: &[u8], sink: &mut impl Sink) -> Result<usize, Fault> {
        let fed = self.head.feed(bytes, self.delimiter.dash_boundary());
        let (used, is_whole) = fed.map_err(|wrong| wrong.at(self.start + self.head.line_start()))?;
        if is_whole {
            self.place = self.begin_part(names, sink).map_err(|wrong| wrong.at(self.start))?;
            self.delimiter.start_line(Before::Head);
            self.start = self.at + used as u64;
        }
        Ok(used)
    }

    fn begin_part(&mut self, names: &FormNames, sink: &mut impl Sink) -> Result<Place, Wrong> {
        let part = self.head.settle(self.fields.text())?;
        self.fields.name(&part.name)?;
        let text = match (part.kind, self.fields.reading()) {
            (PartKind::Doubtful(_), FormReading::Common) => {
                self.fields.doubt(names, sink);
                None
            }
            (PartKind::Field(text), _) => Some(text),
            (PartKind::Doubtful(text), FormReading::Literal) => text,
            (PartKind::File, _) => None,
        };
        let Some(text) = text else { return Ok(Place::File) };
        self.fields.begin(names, text, sink);
        Ok(Place::Field)
    }
}

impl Stepwise for MultipartReader {
    fn standing(&mut self) -> (&mut u64, &mut Option<Fault>) {
        (&mut self.at, &mut self.fault)
    }

    fn step(&mut self, names: &FormNames, bytes: &[u8], sink: &mut impl Sink) -> Result<usize, Fault> {
        match self.place {
            Place::Head => self.read_head(names, bytes, sink),
            Place::Preamble | Place::Field | Place::File | Place::Epilogue => self.read_data(bytes, sink),
            Place::Delimiter(_) | Place::Close | Place::CloseReturn => {
                self.place = self.behind_delimiter(bytes[0])?;
                Ok(1)
            }
        }
    }
}

/// `bchars` of RFC 2046 section 5.1.1, not ending with a space.
fn is_boundary(boundary: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(byte);
    matches!(boundary.len(), 1..=70) && boundary.iter().all(is_allowed) && boundary.last() != Some(&b' ')
}
