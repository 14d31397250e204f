//! How much content a client may send (RFC 9113 section 6.9).

use std::collections::HashMap;
use std::io::{ErrorKind, Result};

use crate::h2_wire::{PAYLOAD_BYTES_MAX, flag, kind, setting};
use crate::{Frame, H2Client};

/// The first window of all (RFC 9113 section 6.9.2).
const FIRST_BYTES: i64 = 65_535;

/// What may be sent of each stream, and of all together.
#[derive(Debug)]
pub(crate) struct Windows {
    /// The first window of a stream.
    initial: i64,
    connection: i64,
    /// What was sent of a stream, less the room that was given for it.
    spent: HashMap<u32, i64>,
}

impl Default for Windows {
    fn default() -> Self {
        Self { initial: FIRST_BYTES, connection: FIRST_BYTES, spent: HashMap::new() }
    }
}

impl Windows {
    /// How many bytes may be sent of a stream now.
    pub(crate) fn room(&self, stream: u32) -> usize {
        let spent = self.spent.get(&stream).copied().unwrap_or_default();
        usize::try_from((self.initial - spent).min(self.connection)).unwrap_or_default()
    }

    /// Counts what was sent.
    pub(crate) fn spend(&mut self, stream: u32, bytes: usize) {
        let bytes = i64::try_from(bytes).expect("a frame");
        self.connection -= bytes;
        *self.spent.entry(stream).or_default() += bytes;
    }

    /// Takes the leave that a frame gives.
    pub(crate) fn hear(&mut self, frame: &Frame) -> Result<()> {
        match (frame.kind, frame.stream) {
            (kind::WINDOW_UPDATE, 0) => self.connection += i64::from(frame.number(0)?),
            (kind::WINDOW_UPDATE, stream) => {
                *self.spent.entry(stream).or_default() -= i64::from(frame.number(0)?);
            }
            (kind::SETTINGS, _) if !frame.has(flag::ACK) => {
                for pair in frame.payload.chunks_exact(6) {
                    if pair[..2] == setting::INITIAL_WINDOW_SIZE.to_be_bytes() {
                        self.initial = u32::from_be_bytes([pair[2], pair[3], pair[4], pair[5]]).into();
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl H2Client {
    /// How much content of a stream the switch gives leave to send now.
    #[must_use]
    pub fn room(&self, stream: u32) -> usize {
        self.windows.room(stream)
    }

    /// Sends content as fast as the switch gives leave, and with the last of it `flags`.
    ///
    /// # Errors
    /// When the switch gives none in time, or has closed.
    pub fn send_content(&mut self, stream: u32, flags: u8, content: &[u8]) -> Result<()> {
        let mut rest = content;
        loop {
            let piece = rest.len().min(PAYLOAD_BYTES_MAX).min(self.windows.room(stream));
            if piece == 0 && !rest.is_empty() {
                let frame = self.frame()?.ok_or(ErrorKind::ConnectionReset)?;
                self.take(frame)?;
                continue;
            }
            let (now, later) = rest.split_at(piece);
            self.windows.spend(stream, piece);
            self.send(&Frame::data(stream, if later.is_empty() { flags } else { 0 }, now))?;
            rest = later;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_of_the_stream_and_of_all() {
        let mut windows = Windows::default();
        windows.spend(1, 65_000);
        assert_eq!((windows.room(1), windows.room(3)), (535, 535));
        windows.hear(&Frame::window_update(0, 1000)).expect("a number");
        assert_eq!((windows.room(1), windows.room(3)), (535, 1535));
        windows.hear(&Frame::window_update(1, 7)).expect("a number");
        assert_eq!(windows.room(1), 542);
        windows.hear(&Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 1000)])).expect("settings");
        assert_eq!((windows.room(1), windows.room(3)), (0, 1000));
    }
}
