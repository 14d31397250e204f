//! The parameters of a query.

use crate::percent::code_at_start;

/// A parameter's value: as received, or decoded where that changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryValue<'a> {
    /// Nothing in it was encoded.
    Borrowed(&'a [u8]),
    /// Decoded.
    Decoded(Vec<u8>),
}

impl QueryValue<'_> {
    /// The value.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            QueryValue::Borrowed(bytes) => bytes,
            QueryValue::Decoded(bytes) => bytes,
        }
    }
}

/// The values of the parameter `key` in order, decoded once.
///
/// Parameters are split on `&`, key and value on the first `=`; `+` is a space. A parameter without
/// `=` has the empty value; empty ones between two `&` are none. A `%` without two hex digits stays
/// as it is: the query is forwarded untouched, so nothing is refused here.
pub fn query_values<'a>(query: &'a [u8], key: &[u8]) -> impl Iterator<Item = QueryValue<'a>> {
    parameters(query)
        .filter(move |(name, _)| Decoded(name).eq(key.iter().copied()))
        .map(|(_, value)| decoded(value))
}

/// The keys of all parameters in order, decoded once.
pub(crate) fn query_keys(query: &[u8]) -> impl Iterator<Item = QueryValue<'_>> {
    parameters(query).map(|(name, _)| decoded(name))
}

pub(crate) fn parameters(query: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let parameters = query.split(|&byte| byte == b'&').filter(|parameter| !parameter.is_empty());
    parameters.map(|parameter| match memchr::memchr(b'=', parameter) {
        Some(at) => (&parameter[..at], &parameter[at + 1..]),
        None => (parameter, &b""[..]),
    })
}

pub(crate) fn decoded(text: &[u8]) -> QueryValue<'_> {
    match memchr::memchr2(b'%', b'+', text) {
        None => QueryValue::Borrowed(text),
        Some(_) => QueryValue::Decoded(Decoded(text).collect()),
    }
}

/// The bytes that are left of some text, decoded one by one.
struct Decoded<'a>(&'a [u8]);

impl Iterator for Decoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let (&byte, after) = self.0.split_first()?;
        let (meant, after) = match (byte, code_at_start(self.0)) {
            (_, Some(meant)) => (meant, &self.0[3..]),
            (b'+', None) => (b' ', after),
            (_, None) => (byte, after),
        };
        self.0 = after;
        Some(meant)
    }
}
