//! What both kinds of forms have: fields with names and values, within limits.

use super::{FormNames, Wrong};
use crate::text::is_utf8;
use crate::utf8::{NotUtf8, Utf8};
use crate::{Cause, Limits, PathId, Sink, Value};

/// The field that says which encoding a form is in (RFC 7578 section 4.6).
const CHARSET: &str = "_charset_";

/// More than the name of any encoding has.
const CHARSET_BYTES_MAX: usize = 64;

/// The fields of a form, one after another, and what is known of the present one.
#[derive(Debug)]
pub(super) struct Fields {
    limits: Limits,
    parameters: u32,
    /// How many values each name has had.
    numbers: Vec<u32>,
    text: Text,
    asked: Option<(PathId, u32)>,
    is_charset: bool,
}

impl Fields {
    pub(super) fn new(names: &FormNames, limits: &Limits) -> Fields {
        Fields {
            limits: *limits,
            parameters: 0,
            numbers: vec![0; names.count as usize],
            text: Text::default(),
            asked: None,
            is_charset: false,
        }
    }

    /// There is one more field, or file.
    pub(super) fn count(&mut self) -> Result<(), Wrong> {
        self.parameters = self.parameters.saturating_add(1);
        if self.parameters > self.limits.parameters_max {
            return Err(Wrong(Cause::Limit, "too many fields"));
        }
        self.text.start(self.limits.name_bytes_max as usize);
        Ok(())
    }

    /// More of the field's name.
    pub(super) fn name(&mut self, bytes: &[u8]) -> Result<(), Wrong> {
        let Text { utf8, kept, kept_bytes_max, .. } = &mut self.text;
        utf8.feed(bytes, &mut |text| {
            if kept.len() + text.len() > *kept_bytes_max {
                return Err(Wrong(Cause::Limit, "a long name of a field"));
            }
            kept.push_str(text);
            Ok(())
        })
    }

    /// The name is whole, and it is a file's: no rule asks for it.
    pub(super) fn skip(&mut self) -> Result<(), Wrong> {
        Ok(self.text.end()?)
    }

    /// The name is whole.
    pub(super) fn begin(&mut self, names: &FormNames, sink: &mut impl Sink) -> Result<(), Wrong> {
        self.text.end()?;
        self.is_charset = self.text.kept == CHARSET;
        let path = names.path(&self.text.kept);
        self.asked = path.and_then(|path| {
            let next = self.numbers.get_mut(path.0 as usize)?;
            let number = *next;
            *next = next.saturating_add(1);
            sink.begins(path, number);
            Some((path, number))
        });
        self.text.start(match (self.asked, self.is_charset) {
            (Some(_), _) => self.limits.value_bytes_max as usize,
            (None, true) => CHARSET_BYTES_MAX,
            (None, false) => 0,
        });
        Ok(())
    }

    /// More of the field's value.
    pub(super) fn value(&mut self, bytes: &[u8]) -> Result<(), Wrong> {
        Ok(self.text.push(bytes)?)
    }

    /// The value is whole.
    pub(super) fn end(&mut self, sink: &mut impl Sink) -> Result<(), Wrong> {
        self.text.end()?;
        if self.is_charset && !is_utf8(self.text.kept.as_bytes()) {
            return Err(Wrong(Cause::Encoding, "`_charset_` is not UTF-8"));
        }
        if let Some((path, number)) = self.asked.take() {
            let value = if self.text.is_too_long { Value::TooLong } else { Value::Text(&self.text.kept) };
            sink.value(path, number, value);
        }
        Ok(())
    }

    /// No more fields come.
    pub(super) fn finish(&self, sink: &mut impl Sink) {
        for path in 0..self.numbers.len() {
            sink.ends(PathId(path as u32));
        }
    }
}

/// Text that is checked, and kept up to a limit.
#[derive(Debug, Default)]
struct Text {
    utf8: Utf8,
    kept: String,
    kept_bytes_max: usize,
    is_too_long: bool,
}

impl Text {
    fn start(&mut self, kept_bytes_max: usize) {
        self.kept.clear();
        self.kept_bytes_max = kept_bytes_max;
        self.is_too_long = false;
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), NotUtf8> {
        let Text { utf8, kept, kept_bytes_max, is_too_long } = self;
        utf8.feed(bytes, &mut |text| {
            if *is_too_long || kept.len() + text.len() > *kept_bytes_max {
                *is_too_long = true;
                kept.clear();
            } else {
                kept.push_str(text);
            }
            Ok(())
        })
    }

    fn end(&mut self) -> Result<(), NotUtf8> {
        self.utf8.finish()
    }
}
