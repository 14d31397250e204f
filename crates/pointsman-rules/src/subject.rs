//! What a rule set is asked about.

use std::fmt::{self, Write as _};
use std::net::IpAddr;
use std::ops::ControlFlow;

use smallvec::SmallVec;

use crate::decimal::integer_digits;
use crate::{Cause, Evidence, Field};

/// One value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Bytes.
    Text(&'a [u8]),
    /// A whole number.
    Integer(u64),
    /// An IP address; IPv4-mapped ones count as IPv4.
    Ip(IpAddr),
    /// True or false.
    Boolean(bool),
    /// It is there, and no comparison holds for it: JSON's `null`, an object or an array.
    Nothing,
    /// It is there, and what a comparison with it comes to cannot be said.
    Unknown(Cause),
}

/// A value that owns itself: a [`Value`] for whoever keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedValue {
    /// Bytes.
    Text(Box<[u8]>),
    /// A whole number.
    Integer(u64),
    /// An IP address.
    Ip(IpAddr),
    /// True or false.
    Boolean(bool),
    /// It is there, and no comparison holds for it.
    Nothing,
    /// It is there, and what a comparison with it comes to cannot be said.
    Unknown(Cause),
}

impl From<Value<'_>> for OwnedValue {
    fn from(value: Value<'_>) -> OwnedValue {
        match value {
            Value::Text(text) => OwnedValue::Text(text.into()),
            Value::Integer(integer) => OwnedValue::Integer(integer),
            Value::Ip(ip) => OwnedValue::Ip(ip),
            Value::Boolean(boolean) => OwnedValue::Boolean(boolean),
            Value::Nothing => OwnedValue::Nothing,
            Value::Unknown(cause) => OwnedValue::Unknown(cause),
        }
    }
}

impl OwnedValue {
    /// As rules see it.
    #[must_use]
    pub fn as_value(&self) -> Value<'_> {
        match self {
            OwnedValue::Text(text) => Value::Text(text),
            OwnedValue::Integer(integer) => Value::Integer(*integer),
            OwnedValue::Ip(ip) => Value::Ip(*ip),
            OwnedValue::Boolean(boolean) => Value::Boolean(*boolean),
            OwnedValue::Nothing => Value::Nothing,
            OwnedValue::Unknown(cause) => Value::Unknown(*cause),
        }
    }
}

/// Fields that a request has any number of, each with a name of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// `header["name"]`
    Header,
    /// `query["k"]`
    QueryParam,
    /// `cookie["name"]`
    Cookie,
}

/// Something rules can decide about: an HTTP request, later a mail envelope.
pub trait Subject {
    /// Shows each value of `field` in order until `see` breaks. An absent field shows none.
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>);

    /// The value of a field that has exactly one, where it can be had at once; nothing says nothing. What
    /// [`Subject::each`] shows, sooner.
    fn only(&self, _field: &Field) -> Option<Value<'_>> {
        None
    }

    /// Why `field` may have values that [`Subject::each`] cannot show, now or later. Nothing for
    /// a field whose values are all known, as those of a request's head are.
    fn unsettled(&self, _field: &Field) -> Option<Cause> {
        None
    }

    /// Shows the names of its fields of a kind: of all that have values, or of which more may come. The names of headers
    /// may be in any case, and a name may come twice. False where it cannot tell: then any name may be there.
    fn each_name(&self, _kind: NameKind, _see: &mut dyn FnMut(&[u8])) -> bool {
        false
    }

    /// Whether all fields of the body are known to be absent, because there is no body or nobody asks for it.
    fn is_without_body(&self) -> bool {
        false
    }

    /// What has been read of its body; nothing where it has none.
    fn evidence(&self) -> Option<&Evidence> {
        None
    }
}

/// Room for the text of a value that is not text itself, or not in the wanted case.
#[derive(Default)]
pub(crate) struct TextRoom(SmallVec<[u8; 128]>);

impl Value<'_> {
    /// The value as bytes: of an address, number or truth value its canonical spelling. Without any where there is
    /// nothing to compare.
    pub(crate) fn text<'s>(&'s self, room: &'s mut TextRoom) -> &'s [u8] {
        match self {
            Value::Text(text) => return text,
            Value::Integer(integer) => {
                let mut buffer = [0; 20];
                room.0.extend_from_slice(integer_digits(*integer, &mut buffer));
            }
            // Writing to memory does not fail.
            Value::Ip(ip) => write!(room, "{}", ip.to_canonical()).unwrap_or_default(),
            Value::Boolean(true) => return b"true",
            Value::Boolean(false) => return b"false",
            Value::Nothing | Value::Unknown(_) => {}
        }
        &room.0
    }

    /// The same with ASCII letters in lower case.
    pub(crate) fn folded_text<'s>(&'s self, room: &'s mut TextRoom) -> &'s [u8] {
        let Value::Text(text) = self else {
            // Canonical spellings have no capital letters.
            return self.text(room);
        };
        room.0.extend_from_slice(text);
        room.0.make_ascii_lowercase();
        &room.0
    }
}

impl fmt::Write for TextRoom {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
