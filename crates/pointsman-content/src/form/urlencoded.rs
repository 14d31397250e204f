//! Forms as `application/x-www-form-urlencoded`.

use super::fields::Fields;
use super::{FormNames, Stepwise, Wrong, feed};
use crate::text::is_utf8;
use crate::{Cause, Fault, Limits, Sink};

/// Reads `application/x-www-form-urlencoded` (WHATWG URL section 5.1): fields are split on `&`, name and value on the
/// first `=`, `+` is a space, and `%` stands before two hex digits.
///
/// What the standard lets pass is refused: a `%` without its digits, and bytes that are not UTF-8 when decoded. Nothing
/// between two `&` is no field; a field without `=` has the empty value.
///
/// It holds a name or a value, within the limits. The places of faults are counted in bytes of the body; what is wrong
/// with a name or a value stands at its start.
#[derive(Debug)]
pub struct UrlencodedReader {
    fields: Fields,
    place: Place,
    /// Bytes read.
    at: u64,
    /// How many stand before the present name or value.
    start: u64,
    fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the first byte of a field.
    Start,
    In(Side),
    /// Behind a `%`.
    Percent(Side),
    /// Behind a `%` and its first digit.
    Digit(Side, u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Name,
    Value,
}

const BAD_ESCAPE: Wrong = Wrong(Cause::Malformed, "`%` without two hex digits");

impl UrlencodedReader {
    /// A reader for a form whose media type has this `charset` parameter, which may say nothing but UTF-8.
    pub fn new(
        names: &FormNames,
        charset: Option<&[u8]>,
        limits: &Limits,
    ) -> Result<UrlencodedReader, Fault> {
        if !charset.is_none_or(is_utf8) {
            return Err(Wrong(Cause::Encoding, "a form in another charset than UTF-8").at(0));
        }
        Ok(UrlencodedReader {
            fields: Fields::new(names, limits),
            place: Place::Start,
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
    pub fn finish(&mut self, names: &FormNames, sink: &mut impl Sink) -> Result<(), Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        self.end_field(names, sink).map_err(|fault| *self.fault.insert(fault))?;
        self.fields.finish(sink);
        Ok(())
    }

    fn hex_digit(&self, byte: u8) -> Result<u8, Fault> {
        let digit = char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        digit.ok_or(BAD_ESCAPE.at(self.at))
    }

    fn put(&mut self, side: Side, decoded: &[u8]) -> Result<(), Fault> {
        let put = match side {
            Side::Name => self.fields.name(decoded),
            Side::Value => self.fields.value(decoded),
        };
        put.map_err(|wrong| wrong.at(self.start))
    }

    fn begin(&mut self, names: &FormNames, sink: &mut impl Sink) -> Result<(), Fault> {
        self.fields.begin(names, sink).map_err(|wrong| wrong.at(self.start))
    }

    /// At a `&` or the body's end.
    fn end_field(&mut self, names: &FormNames, sink: &mut impl Sink) -> Result<(), Fault> {
        match self.place {
            Place::Start => return Ok(()),
            Place::Percent(_) | Place::Digit(..) => return Err(BAD_ESCAPE.at(self.at)),
            Place::In(Side::Name) => self.begin(names, sink)?,
            Place::In(Side::Value) => {}
        }
        self.fields.end(sink).map_err(|wrong| wrong.at(self.start))
    }
}

impl Stepwise for UrlencodedReader {
    fn standing(&mut self) -> (&mut u64, &mut Option<Fault>) {
        (&mut self.at, &mut self.fault)
    }

    fn step(&mut self, names: &FormNames, bytes: &[u8], sink: &mut impl Sink) -> Result<usize, Fault> {
        let byte = bytes[0];
        let side = match self.place {
            Place::Start if byte == b'&' => return Ok(1),
            Place::Start => {
                self.fields.count().map_err(|wrong| wrong.at(self.at))?;
                self.start = self.at;
                Side::Name
            }
            Place::In(side) => side,
            Place::Percent(side) => {
                self.place = Place::Digit(side, self.hex_digit(byte)?);
                return Ok(1);
            }
            Place::Digit(side, high) => {
                let low = self.hex_digit(byte)?;
                self.put(side, &[high << 4 | low])?;
                self.place = Place::In(side);
                return Ok(1);
            }
        };
        self.place = Place::In(side);
        match (side, byte) {
            (_, b'&') => {
                self.end_field(names, sink)?;
                self.place = Place::Start;
            }
            (Side::Name, b'=') => {
                self.begin(names, sink)?;
                self.start = self.at + 1;
                self.place = Place::In(Side::Value);
            }
            (_, b'%') => self.place = Place::Percent(side),
            (_, b'+') => self.put(side, b" ")?,
            _ => {
                let plain = plain_bytes(side, bytes);
                self.put(side, &bytes[..plain])?;
                return Ok(plain);
            }
        }
        Ok(1)
    }
}

/// Bytes at the start that mean themselves.
fn plain_bytes(side: Side, bytes: &[u8]) -> usize {
    let end = match side {
        Side::Name => bytes.iter().position(|byte| matches!(byte, b'&' | b'=' | b'%' | b'+')),
        Side::Value => memchr::memchr3(b'&', b'%', b'+', bytes),
    };
    end.unwrap_or(bytes.len())
}
