//! What a rule set is asked about.

use std::net::IpAddr;
use std::ops::ControlFlow;

use crate::Field;

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
}

/// Something rules can decide about: an HTTP request, later a mail envelope.
pub trait Subject {
    /// Shows each value of `field` in order until `see` breaks. An absent field shows none.
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>);
}
