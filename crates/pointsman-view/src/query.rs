//! The parameters of a query.

use crate::percent::Decoded;

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
        .filter(move |(name, _)| in_query(name).eq(key.iter().copied()))
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
        Some(_) => QueryValue::Decoded(in_query(text).collect()),
    }
}

fn in_query(text: &[u8]) -> Decoded<'_> {
    Decoded { rest: text, plus_is_blank: true }
}
