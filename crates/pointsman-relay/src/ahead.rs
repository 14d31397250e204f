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
    pub(crate) _booked: Booking,
}

/// How much of a body has come, and for how long the client was waited for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    pub(crate) read_bytes: u64,
    pub(crate) waited_us: u64,
}

/// Follows bytes of a body and lets them be looked into; with its end, all of it. `kept_back`: so many bytes at the end
/// of what came before no server has been sent; it says how many there are now.
///
/// The last byte of content is kept back, and what frames it: without a length it may be the last of all. Where more is
/// announced nothing needs to be.
pub(crate) fn look_into(
    inspection: &mut Inspection,
    body: &mut BodyReader,
    bytes: &[u8],
    kept_back: &mut usize,
) -> Result<Fed, BodyFault> {
    let mut content_end = None;
    let fed = body.feed_showing(bytes, |content| {
        content_end = Some(content.end);
        inspection.feed(&bytes[content]);
    })?;
    *kept_back = match content_end {
        _ if fed.done || body.unseen_bytes_max() > 0 => 0,
        Some(end) => fed.used + 1 - end,
        None => *kept_back + fed.used,
    };
    if fed.done {
        inspection.finish();
    }
    Ok(fed)
}
