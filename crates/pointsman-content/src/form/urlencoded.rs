//! Forms as `application/x-www-form-urlencoded`.

use super::fields::Fields;
use super::{FormNames, FormOptions, FormReading, Stepwise, feed};
use crate::{Fault, Sink};

/// Reads `application/x-www-form-urlencoded` (WHATWG URL section 5.1): fields are split on `&`, name and value on the
/// first `=`, `+` is a space, and `%` stands before two hex digits.
///
/// A value that is looked for is undecodable with a `%` without its digits, or with bytes that are no text in the form's
/// encoding. Nothing between two `&` is no field; a field without `=` has the empty value.
///
/// A line end behind the last value belongs to it (WHATWG URL 5.1), as servers read it. Tools add it by mistake, so
/// [`FormReading::Literal`] leaves it out.
///
/// It holds a name or a value, within the limits. The places of faults are counted in bytes of the body; what is wrong
/// with a name or a value stands at its start.
#[derive(Debug)]
pub struct UrlencodedReader {
    fields: Fields,
    place: Place,
    /// The end of a line behind what has been read of a value. It belongs to the value if more follows.
    line_end: &'static [u8],
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
    /// Behind a `%` and this digit.
    Digit(Side, u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Name,
    Value,
}

impl UrlencodedReader {
    /// A reader for a form that is read in this way.
    pub fn new(names: &FormNames, options: &FormOptions<'_>) -> Result<UrlencodedReader, Fault> {
        Ok(UrlencodedReader {
            fields: Fields::new(names, options)?,
            place: Place::Start,
            line_end: b"",
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
        if self.fields.reading() == FormReading::Literal {
            self.line_end = b"";
        }
        self.end_field(names, sink).map_err(|fault| *self.fault.insert(fault))?;
        self.fields.finish(sink);
        Ok(())
    }

    fn put(&mut self, side: Side, decoded: &[u8]) -> Result<(), Fault> {
        match side {
            Side::Name => self.fields.name(decoded).map_err(|wrong| wrong.at(self.start)),
            Side::Value => {
                self.fields.value(std::mem::take(&mut self.line_end));
                self.fields.value(decoded);
                Ok(())
            }
        }
    }

    /// Bytes of a value that mean themselves. A line end behind them waits until it is known whether it is the last.
    fn put_plain_value(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let rest = match (self.line_end, bytes) {
            (b"\r", [b'\n', rest @ ..]) => {
                self.line_end = b"\r\n";
                rest
            }
            _ => bytes,
        };
        let line_end: &[u8] = match rest {
            [] => return Ok(()),
            [.., b'\r', b'\n'] => b"\r\n",
            [.., b'\n'] => b"\n",
            [.., b'\r'] => b"\r",
            _ => b"",
        };
        self.put(Side::Value, &rest[..rest.len() - line_end.len()])?;
        self.line_end = line_end;
        Ok(())
    }

    /// What stands behind a `%` is no escape: it means itself.
    fn put_bad_escape(&mut self, side: Side, bytes: &[u8]) -> Result<(), Fault> {
        match side {
            Side::Name => self.fields.spoil_name(),
            Side::Value => self.fields.spoil_value(),
        }
        self.put(side, bytes)
    }

    fn begin(&mut self, names: &FormNames, sink: &mut impl Sink) {
        self.fields.begin(names, self.fields.text(), sink);
    }

    /// At a `&` or the body's end.
    fn end_field(&mut self, names: &FormNames, sink: &mut impl Sink) -> Result<(), Fault> {
        match self.place {
            Place::Start => return Ok(()),
            Place::Percent(side) => self.put_bad_escape(side, b"%")?,
            Place::Digit(side, digit) => self.put_bad_escape(side, &[b'%', digit])?,
            Place::In(_) => {}
        }
        match self.place {
            Place::In(Side::Value) | Place::Percent(Side::Value) | Place::Digit(Side::Value, _) => {
                self.fields.value(std::mem::take(&mut self.line_end));
            }
            _ => self.begin(names, sink),
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
            Place::Percent(side) if byte.is_ascii_hexdigit() => {
                self.place = Place::Digit(side, byte);
                return Ok(1);
            }
            Place::Digit(side, high) if byte.is_ascii_hexdigit() => {
                self.put(side, &[hex_digit(high) << 4 | hex_digit(byte)])?;
                self.place = Place::In(side);
                return Ok(1);
            }
            Place::Percent(side) => {
                self.put_bad_escape(side, b"%")?;
                side
            }
            Place::Digit(side, digit) => {
                self.put_bad_escape(side, &[b'%', digit])?;
                side
            }
        };
        self.place = Place::In(side);
        match (side, byte) {
            (_, b'&') => {
                self.end_field(names, sink)?;
                self.place = Place::Start;
            }
            (Side::Name, b'=') => {
                self.begin(names, sink);
                self.start = self.at + 1;
                self.place = Place::In(Side::Value);
            }
            (_, b'%') => self.place = Place::Percent(side),
            (_, b'+') => self.put(side, b" ")?,
            _ => {
                let plain = plain_bytes(side, bytes);
                match side {
                    Side::Name => self.put(side, &bytes[..plain])?,
                    Side::Value => self.put_plain_value(&bytes[..plain])?,
                }
                return Ok(plain);
            }
        }
        Ok(1)
    }
}

fn hex_digit(digit: u8) -> u8 {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or(0)
}

/// Bytes at the start that mean themselves.
fn plain_bytes(side: Side, bytes: &[u8]) -> usize {
    let end = match side {
        Side::Name => bytes.iter().position(|byte| matches!(byte, b'&' | b'=' | b'%' | b'+')),
        Side::Value => memchr::memchr3(b'&', b'%', b'+', bytes),
    };
    end.unwrap_or(bytes.len())
}
