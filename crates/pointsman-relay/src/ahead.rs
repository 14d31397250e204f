//! What was read of a body before its server had any of it, and what looks into the rest on its way.

use pointsman_http::{BodyFault, BodyReader, Fed};
use pointsman_net::Booking;
use pointsman_view::Inspection;

use crate::hold::Hold;

/// A body that was read ahead of its server, as far as it is not in the message.
pub(crate) struct Ahead {
    /// What the server gets next.
    pub(crate) hold: Hold,
    /// What came last of it, which the server gets when more has come, or all has proved well-formed.
    pub(crate) tail: Vec<u8>,
    /// What looks into what is still to come; nothing where all is known, or nobody wants to know.
    pub(crate) judge: Option<Judge>,
    pub(crate) pace: Pace,
}

/// Looks into a body on its way.
pub(crate) struct Judge {
    pub(crate) inspection: Box<Inspection>,
    /// What it may hold so far.
    booked: Booking,
    fed_bytes: u64,
}

/// Why a body is not followed any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfollowed {
    Framing(BodyFault),
    /// There is no memory left to look into it.
    Memory,
}

/// How much of a body has come, and for how long the client was waited for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    pub(crate) read_bytes: u64,
    pub(crate) waited_us: u64,
}

/// What it keeps of names and values is copied from what it was fed, and room doubles as it grows.
const HELD_OF_FED: u64 = 2;
/// More is booked by so much at a time.
const BOOKED_STEP_BYTES: u64 = 64 * 1024;

impl Judge {
    /// `booked` is what an inspection holds that was fed little.
    pub(crate) fn new(inspection: Inspection, booked: Booking) -> Judge {
        Judge { inspection: Box::new(inspection), booked, fed_bytes: 0 }
    }

    /// Follows bytes of a body and looks into them; with its end, into all of it. `kept_back`: so many bytes at the
    /// end of what came before no server has been sent; it says how many there are now.
    ///
    /// The last byte of content is kept back, and what frames it: without a length it may be the last of all. Where
    /// more is announced nothing needs to be.
    pub(crate) fn follow(
        &mut self,
        body: &mut BodyReader,
        bytes: &[u8],
        kept_back: &mut usize,
    ) -> Result<Fed, Unfollowed> {
        if !self.has_room_for(bytes.len()) {
            return Err(Unfollowed::Memory);
        }
        let mut content_end = None;
        let fed = body.feed_showing(bytes, |content| {
            content_end = Some(content.end);
            self.inspection.feed(&bytes[content]);
        });
        let fed = fed.map_err(Unfollowed::Framing)?;
        *kept_back = match content_end {
            _ if fed.done || body.unseen_bytes_max() > 0 => 0,
            Some(end) => fed.used + 1 - end,
            None => *kept_back + fed.used,
        };
        if fed.done {
            self.inspection.finish();
        }
        Ok(fed)
    }

    /// Books what it may hold once it has been fed so much more.
    fn has_room_for(&mut self, bytes: usize) -> bool {
        self.fed_bytes += bytes as u64;
        let held_bytes_max = self.inspection.held_bytes_max();
        let held_bytes = match self.inspection.is_coded() {
            true => held_bytes_max,
            false => held_bytes_max.min(self.fed_bytes.saturating_mul(HELD_OF_FED)),
        };
        let missing = held_bytes.saturating_sub(self.booked.bytes());
        missing == 0 || self.booked.grow(missing.next_multiple_of(BOOKED_STEP_BYTES))
    }
}
