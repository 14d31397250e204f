//! What both kinds of forms have: fields with names and values, within limits.

use std::borrow::Cow;
use std::convert::Infallible;

use super::{FormNames, FormOptions, FormReading, Wrong};
use crate::text::{Decoder, Encoding, Piece, form_encoding};
use crate::{Cause, Fault, Limits, PathId, Sink, Value};

/// The field that says which encoding a form is in (RFC 7578 section 4.6).
const CHARSET: &[u8] = b"_charset_";

/// More than the name of any encoding has.
const CHARSET_BYTES_MAX: usize = 64;

/// The fields of a form, one after another, and what is known of the present one.
///
/// A value that is not looked for need not be decodable, nor a name that no reading makes one that is looked for.
#[derive(Debug)]
pub(super) struct Fields {
    limits: Limits,
    reading: FormReading,
    /// Of the form, unless a part says otherwise.
    encoding: Encoding,
    parameters: u32,
    /// How many values each name has had.
    numbers: Vec<u32>,
    name: Name,
    value: Text,
    /// The places that ask for the present one, and which value it is of each.
    asked: Vec<(PathId, u32)>,
    is_charset: bool,
    /// Whether `_charset_` names another encoding than UTF-8, which few servers heed.
    has_other_charset: bool,
    /// Whether a value was told that is another one in another encoding.
    has_told_beyond_ascii: bool,
}

/// How the text of one value is found.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueText {
    pub(super) encoding: Encoding,
    /// Why its text is unknown, whatever its bytes are.
    pub(super) unknown: Option<Cause>,
}

/// The name of the present field, without its escapes.
#[derive(Debug, Default)]
struct Name {
    bytes: Vec<u8>,
    has_bad_escape: bool,
}

impl Fields {
    pub(super) fn new(names: &FormNames, options: &FormOptions<'_>) -> Result<Fields, Fault> {
        Ok(Fields {
            limits: *options.limits,
            reading: options.reading,
            encoding: options.encoding()?,
            parameters: 0,
            numbers: vec![0; names.count as usize * 2],
            name: Name::default(),
            value: Text::new(),
            asked: Vec::new(),
            is_charset: false,
            has_other_charset: false,
            has_told_beyond_ascii: false,
        })
    }

    pub(super) fn reading(&self) -> FormReading {
        self.reading
    }

    /// How values are read whose own head says nothing else.
    pub(super) fn text(&self) -> ValueText {
        ValueText { encoding: self.encoding, unknown: None }
    }

    /// There is one more field, or file.
    pub(super) fn count(&mut self) -> Result<(), Wrong> {
        self.parameters = self.parameters.saturating_add(1);
        if self.parameters > self.limits.parameters_max {
            return Err(Wrong(Cause::Limit, "too many fields"));
        }
        self.name.bytes.clear();
        self.name.has_bad_escape = false;
        Ok(())
    }

    /// More of the field's name.
    pub(super) fn name(&mut self, bytes: &[u8]) -> Result<(), Wrong> {
        if self.name.bytes.len() + bytes.len() > self.limits.name_bytes_max as usize {
            return Err(Wrong(Cause::Limit, "a long name of a field"));
        }
        self.name.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// An escape in the name is none. Its bytes are part of the name.
    pub(super) fn spoil_name(&mut self) {
        self.name.has_bad_escape = true;
    }

    /// The name is whole, and servers disagree whether this is a field.
    pub(super) fn doubt(&mut self, names: &FormNames, sink: &mut impl Sink) {
        match self.plain_name() {
            Some(name) => {
                if let Some(path) = names.path(&name) {
                    sink.ends_unknown(path, Cause::Ambiguous);
                }
            }
            None => self.doubt_odd_name(names, sink),
        }
        names.others(&self.name.bytes).for_each(|path| sink.ends_unknown(path, Cause::Ambiguous));
        self.is_charset = false;
    }

    /// The name is whole, and the value follows.
    pub(super) fn begin(&mut self, names: &FormNames, text: ValueText, sink: &mut impl Sink) {
        self.is_charset = self.name.bytes == CHARSET;
        let path = match self.plain_name() {
            Some(name) => names.path(&name),
            None => {
                if self.reading == FormReading::Common {
                    self.doubt_odd_name(names, sink);
                }
                None
            }
        };
        self.asked.clear();
        for path in path.into_iter().chain(names.others(&self.name.bytes)) {
            let Some(next) = self.numbers.get_mut(path.0 as usize) else { continue };
            self.asked.push((path, *next));
            sink.begins(path, *next);
            *next = next.saturating_add(1);
        }
        self.value.start(
            text,
            match (!self.asked.is_empty(), self.is_charset) {
                (true, _) => Some(self.limits.value_bytes_max as usize),
                (false, true) => Some(CHARSET_BYTES_MAX),
                (false, false) => None,
            },
        );
    }

    /// More of the field's value.
    pub(super) fn value(&mut self, bytes: &[u8]) {
        self.value.push(bytes);
    }

    /// An escape in the value is none.
    pub(super) fn spoil_value(&mut self) {
        self.value.unknown = self.value.unknown.or(Some(Cause::Malformed));
    }

    /// The value is whole.
    pub(super) fn end(&mut self, sink: &mut impl Sink) -> Result<(), Wrong> {
        self.value.end();
        if self.is_charset {
            self.heed_charset()?;
        }
        if self.asked.is_empty() {
            return Ok(());
        }
        let value = self.value.told(self.has_other_charset || self.is_in_doubt_beyond_ascii());
        if matches!(value, Value::Text(_)) && self.value.is_beyond_ascii {
            self.has_told_beyond_ascii = true;
        }
        for (path, number) in self.asked.drain(..) {
            sink.value(path, number, value);
        }
        Ok(())
    }

    /// No more fields come.
    pub(super) fn finish(&self, sink: &mut impl Sink) {
        for path in 0..self.numbers.len() / 2 {
            sink.ends(PathId(path as u32));
        }
    }

    /// Servers that know no charset read the bytes as UTF-8.
    fn is_in_doubt_beyond_ascii(&self) -> bool {
        let is_utf8 = |encoding| encoding == Encoding::Utf8;
        self.reading == FormReading::Common && !(is_utf8(self.encoding) && is_utf8(self.value.encoding))
    }

    /// The present field says which encoding the form is in. Values that have been told cannot be taken back.
    fn heed_charset(&mut self) -> Result<(), Wrong> {
        let named = form_encoding(self.value.kept.as_bytes());
        if matches!(named, Some(Encoding::Utf8 | Encoding::Ascii)) {
            return Ok(());
        }
        if self.has_told_beyond_ascii {
            return Err(Wrong(Cause::Encoding, "`_charset_` is not UTF-8, behind a field beyond ASCII"));
        }
        self.has_other_charset = true;
        Ok(())
    }

    /// The name as text in the form's encoding, if it is some.
    fn plain_name(&self) -> Option<Cow<'_, str>> {
        if self.name.has_bad_escape {
            return None;
        }
        match std::str::from_utf8(&self.name.bytes) {
            Ok(name) if self.encoding == Encoding::Utf8 || name.is_ascii() => Some(Cow::Borrowed(name)),
            _ if self.encoding == Encoding::Utf8 || self.reading == FormReading::Common => None,
            _ => {
                let decoded: Option<String> =
                    self.name.bytes.iter().map(|&byte| self.encoding.character(byte)).collect();
                decoded.map(Cow::Owned)
            }
        }
    }

    /// Names that are no text in UTF-8, or have bad escapes, are another name to each server. Those that are looked for
    /// are unknown where one of the readings is among them.
    #[cold]
    fn doubt_odd_name(&self, names: &FormNames, sink: &mut impl Sink) {
        let mut readings = vec![self.name.bytes.clone()];
        readings.extend(without_u_escapes(&self.name.bytes));
        for bytes in readings {
            let western =
                |&byte: &u8| Encoding::Windows1252.character(byte).unwrap_or(char::REPLACEMENT_CHARACTER);
            let texts = [String::from_utf8_lossy(&bytes).into_owned(), bytes.iter().map(western).collect()];
            for path in texts.iter().filter_map(|name| names.path(name)) {
                sink.ends_unknown(path, Cause::Ambiguous);
            }
        }
    }
}

/// The bytes with escapes of JavaScript decoded (`%u0070`), as ASP.NET reads them, if there are any.
fn without_u_escapes(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut decoded, mut rest, mut has_any) = (Vec::new(), bytes, false);
    while let Some((&byte, after)) = rest.split_first() {
        let unit = match rest {
            [b'%', b'u' | b'U', digits @ ..] => digits.get(..4).and_then(|digits| {
                let digits = std::str::from_utf8(digits).ok()?;
                u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
            }),
            _ => None,
        };
        match unit {
            Some(character) => {
                decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = rest.get("%u0000".len()..).unwrap_or_default();
                has_any = true;
            }
            None => {
                decoded.push(byte);
                rest = after;
            }
        }
    }
    has_any.then_some(decoded)
}

/// The text of a value, kept up to a limit.
#[derive(Debug)]
struct Text {
    encoding: Encoding,
    decoder: Decoder,
    kept: String,
    /// Nothing where the value is not looked for.
    kept_bytes_max: Option<usize>,
    is_too_long: bool,
    is_beyond_ascii: bool,
    unknown: Option<Cause>,
}

impl Text {
    fn new() -> Text {
        Text {
            encoding: Encoding::Utf8,
            decoder: Decoder::new(Encoding::Utf8),
            kept: String::new(),
            kept_bytes_max: None,
            is_too_long: false,
            is_beyond_ascii: false,
            unknown: None,
        }
    }

    fn start(&mut self, text: ValueText, kept_bytes_max: Option<usize>) {
        if self.encoding != text.encoding {
            self.decoder = Decoder::new(text.encoding);
            self.encoding = text.encoding;
        }
        self.kept.clear();
        self.kept_bytes_max = kept_bytes_max;
        self.is_too_long = false;
        self.is_beyond_ascii = false;
        self.unknown = text.unknown;
    }

    fn push(&mut self, bytes: &[u8]) {
        let Text { decoder, kept, kept_bytes_max, is_too_long, is_beyond_ascii, unknown, .. } = self;
        let Some(bytes_max) = *kept_bytes_max else { return };
        *is_beyond_ascii |= !bytes.is_ascii();
        let Ok(()) = decoder.feed(bytes, &mut |piece| keep(piece, bytes_max, kept, is_too_long, unknown));
    }

    fn end(&mut self) {
        let Text { decoder, kept, kept_bytes_max, is_too_long, unknown, .. } = self;
        let Some(bytes_max) = *kept_bytes_max else { return };
        let Ok(()) = decoder.finish(&mut |piece| keep(piece, bytes_max, kept, is_too_long, unknown));
    }

    /// The value, where text beyond ASCII may be unknown.
    fn told(&self, is_in_doubt_beyond_ascii: bool) -> Value<'_> {
        match self.unknown {
            Some(cause) => Value::Undecodable(cause),
            None if is_in_doubt_beyond_ascii && self.is_beyond_ascii => Value::Undecodable(Cause::Encoding),
            None if self.is_too_long => Value::TooLong,
            None => Value::Text(&self.kept),
        }
    }
}

fn keep(
    piece: Piece<'_>,
    bytes_max: usize,
    kept: &mut String,
    is_too_long: &mut bool,
    unknown: &mut Option<Cause>,
) -> Result<(), Infallible> {
    match piece {
        Piece::Undecodable(_) => *unknown = unknown.or(Some(Cause::Encoding)),
        Piece::Text(text) if *is_too_long || kept.len() + text.len() > bytes_max => {
            *is_too_long = true;
            kept.clear();
        }
        Piece::Text(text) => kept.push_str(text),
    }
    Ok(())
}
