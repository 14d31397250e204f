//! Frames that bring no answer nearer: a server may send some between two answers, and who sends them without end holds up
//! whoever reads them (CVE-2019-9512, 9515, 9518; CVE-2024-27316).

use super::frames::{FrameHead, Part, kind};

/// So many of them between two answers; pings and settings of real servers are a handful.
pub(super) const IDLE_MAX: u32 = 10_000;
/// A window may grow once for so many bytes that were sent, beside those. Real servers say so for some thousands at a time.
const BYTES_A_WINDOW: u64 = 256;

/// They do not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flooded;

/// How many came on a connection.
#[derive(Debug, Default)]
pub(super) struct Flood {
    /// Since the last answer, less one for each piece of one.
    idle: u32,
    /// Bytes of requests for which no window has grown yet.
    sent: u64,
}

impl Flood {
    pub(super) fn reset(&mut self) {
        *self = Flood::default();
    }

    /// An answer is whole.
    pub(super) fn answered(&mut self) {
        self.idle = 0;
    }

    /// A piece of an answer has come, or a request is at its end without one.
    pub(super) fn brings(&mut self) {
        self.idle = self.idle.saturating_sub(1);
    }

    /// So many bytes of content go out.
    pub(super) fn sends(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// Some of a DATA frame comes.
    pub(super) fn on_data(&mut self, part: Part) -> Result<(), Flooded> {
        if part.data > 0 {
            self.brings();
            return Ok(());
        }
        self.idles(1)
    }

    /// Another frame comes, which brings nothing until [`Flood::brings`] says so.
    pub(super) fn on_frame(&mut self, head: FrameHead) -> Result<(), Flooded> {
        match head.kind {
            kind::WINDOW_UPDATE if self.sent >= BYTES_A_WINDOW => {
                self.sent -= BYTES_A_WINDOW;
                Ok(())
            }
            // Each of them may mean work for each stream.
            kind::SETTINGS => self.idles(1 + head.length as u32 / 6),
            _ => self.idles(1),
        }
    }

    fn idles(&mut self, count: u32) -> Result<(), Flooded> {
        self.idle = self.idle.saturating_add(count);
        if self.idle > IDLE_MAX { Err(Flooded) } else { Ok(()) }
    }
}
