//! What went over a connection, and when: for the capture.

/// Which way bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From us.
    Sent,
    /// To us.
    Received,
}

/// A write or a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) way: Way,
    /// By the monotonic clock.
    pub(crate) at_ns: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The pieces of a connection in their order; none are kept where nobody wants them.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(crate) wanted: bool,
    pub(crate) pieces: Vec<Piece>,
}

impl Recording {
    pub(crate) fn note(&mut self, way: Way, at_ns: u64, bytes: &[u8]) {
        if self.wanted && !bytes.is_empty() {
            self.pieces.push(Piece { way, at_ns, bytes: bytes.to_vec() });
        }
    }
}
