//! What a body may be, at most.

/// Limits on a body. Over one of them is [`Cause::Limit`](crate::Cause::Limit), but for values: one that is too long is
/// there and cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Elements, objects and arrays within each other.
    pub depth_max: u32,
    /// Attributes of an element, namespace declarations among them.
    pub attributes_max: u32,
    /// Bytes of a name of an element or attribute, with its prefix; of a name of a form's field, decoded.
    pub name_bytes_max: u32,
    /// Bytes of a value that a path names, decoded.
    pub value_bytes_max: u32,
    /// Fields of a form.
    pub parameters_max: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            depth_max: 64,
            attributes_max: 64,
            name_bytes_max: 256,
            value_bytes_max: 4096,
            parameters_max: 1000,
        }
    }
}
