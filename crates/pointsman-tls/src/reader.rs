//! Fields of messages of TLS: numbers, and bytes behind their length (RFC 8446 section 3).

/// What is still to be read.
pub(crate) struct Reader<'b>(pub(crate) &'b [u8]);

impl<'b> Reader<'b> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, bytes: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
    }

    /// Bytes behind their length, which has one byte.
    pub(crate) fn short_vector(&mut self) -> Option<&'b [u8]> {
        let length = self.u8()?;
        self.take(length.into())
    }

    /// Bytes behind their length, which has two bytes.
    pub(crate) fn vector(&mut self) -> Option<&'b [u8]> {
        let length = self.u16()?;
        self.take(length.into())
    }
}
