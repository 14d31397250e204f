//! What was read of a body before its server had any of it, and what looks into the rest on its way.

use std::cell::RefCell;

use pointsman_http::{BodyFault, BodyReader, Fed};
use pointsman_net::Booking;
use pointsman_view::Inspection;

use crate::hold::Hold;
use crate::mirror::Mirror;

/// A body that was read ahead of its server, as far as it is not in the message.
pub(crate) struct Ahead {
    /// What the server gets next. Tries lend it for as long as one of them sends a piece.
    pub(crate) hold: RefCell<Hold>,
    /// What came last of it, which the server gets when more has come, or all has proved well-formed.
    pub(crate) tail: Vec<u8>,
    /// What looks into what is still to come; nothing where all is known, or nobody wants to know.
    pub(crate) judge: Option<Judge>,
    pub(crate) pace: Pace,
    /// The copy that waits for the rest.
    pub(crate) mirror: Option<Box<Mirror>>,
}

impl Ahead {
    /// Nothing was read ahead; a copy waits for the body.
    pub(crate) fn of_mirror() -> Ahead {
        Ahead { hold: RefCell::default(), tail: Vec::new(), judge: None, pace: Pace::default(), mirror: None }
    }
}

impl Ahead {
    /// Whether all of the body is held, in so many bytes at most.
    pub(crate) fn is_whole_within(&self, bytes_max: usize) -> bool {
        let Ahead { hold, tail, judge, .. } = self;
        let hold = hold.borrow();
        let is_whole = judge.is_none() && tail.is_empty() && !hold.is_partly_gone() && !hold.is_in_turn();
        is_whole && hold.pieces().map(<[u8]>::len).sum::<usize>() <= bytes_max
    }
}

/// Looks into a body on its way.
pub(crate) struct Judge {
    pub(crate) inspection: Box<Inspection>,
    /// What it may hold so far.
    booked: Booking,
    fed_bytes: u64,
    /// What the evidence takes of itself, which the rules say.
    evidence_bytes: u64,
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
    /// `booked` is what an inspection holds that was fed little. Nothing where there is no memory for what so many rules
    /// want to know.
    pub(crate) fn new(inspection: Inspection, booked: Booking) -> Option<Judge> {
        let evidence_bytes = inspection.evidence_bytes();
        let mut judge = Judge { inspection: Box::new(inspection), booked, fed_bytes: 0, evidence_bytes };
        judge.has_room_for(0).then_some(judge)
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
        // What compressed content comes to is known behind it, within what its bytes may come to.
        if self.inspection.is_coded() && !self.has_room_for(0) {
            return Err(Unfollowed::Memory);
        }
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
            true => self.inspection.held_bytes_max_so_far() + HELD_OF_FED * bytes as u64,
            false => self.fed_bytes.saturating_mul(HELD_OF_FED),
        };
        let held_bytes = held_bytes.min(held_bytes_max);
        let missing = (held_bytes + self.evidence_bytes).saturating_sub(self.booked.bytes());
        missing == 0 || self.booked.grow(missing.next_multiple_of(BOOKED_STEP_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pointsman_http::{Framing, HeadLimits, RequestHead};
    use pointsman_net::{Account, Budget};
    use pointsman_rules::{Evidence, Targets, compile};
    use pointsman_view::{BodyOptions, BodyPaths};

    use super::*;

    const KIB: u64 = 1024;

    fn judge(head: &str, account: &Account) -> Judge {
        let program = compile("if (json.a == 1) { routeTo(x); }", &Targets::Any).expect("a rule set").program;
        let mut parsed = RequestHead::default();
        let limits = HeadLimits { head_bytes_max: 1000, headers_max: 10, target_bytes_max: 100 };
        assert_eq!(parsed.parse(head.as_bytes(), &limits), Ok(true));
        let paths = Arc::new(BodyPaths::new(&program));
        let evidence = Evidence::new(&program);
        let inspection = Inspection::new(evidence, paths, &parsed, head.as_bytes(), &BodyOptions::default());
        Judge::new(inspection, account.book(KIB).expect("there is enough")).expect("there is enough")
    }

    const CHUNKED: &str =
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/json\r\nTransfer-Encoding: chunked\r\n\r\n";

    /// However it is cut: nothing from the last byte of content on, until all is known.
    #[test]
    fn the_last_byte_is_kept_back() {
        let mut framed = Vec::new();
        let mut places = Vec::new();
        for chunk in ["{\"a", "\"", ":[1,2", "]}", "  "] {
            framed.extend_from_slice(format!("{:x};x=\"y\"\r\n", chunk.len()).as_bytes());
            places.extend(framed.len()..framed.len() + chunk.len());
            framed.extend_from_slice(chunk.as_bytes());
            framed.extend_from_slice(b"\r\n");
        }
        framed.extend_from_slice(b"0\r\nX: y\r\n\r\n");
        for step in 1..=framed.len() {
            let mut judge = judge(CHUNKED, &Account::unlimited());
            let mut body = BodyReader::new(Framing::Chunked);
            let (mut came, mut kept_back) = (0, 0);
            for piece in framed.chunks(step) {
                let fed = judge.follow(&mut body, piece, &mut kept_back).expect("it is well framed");
                came += piece.len();
                assert_eq!(fed.used, piece.len());
                let last = places.iter().rfind(|place| **place < came);
                let expected = last.map_or(came, |last| came - last);
                assert_eq!(kept_back, if fed.done { 0 } else { expected }, "{came} bytes by {step}");
            }
            assert!(body.is_done() && judge.inspection.fault().is_none());
        }
    }

    /// With a length the end is known when it comes.
    #[test]
    fn what_has_a_length_keeps_nothing_back() {
        let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/json\r\nContent-Length: 7\r\n\r\n";
        let mut judge = judge(head, &Account::unlimited());
        let mut body = BodyReader::new(Framing::Length(7));
        let mut kept_back = 0;
        for piece in [&b"{\"a"[..], b"\":", b"1]"] {
            judge.follow(&mut body, piece, &mut kept_back).expect("it is well framed");
            assert_eq!(kept_back, 0);
        }
        assert!(judge.inspection.fault().is_some(), "what ends it is wrong");
    }

    #[test]
    fn what_it_may_hold_is_booked_by_and_by() {
        let account = Account::new(Arc::new(Budget::new(200 * KIB, 1)));
        let mut judge = judge(CHUNKED, &account);
        let mut body = BodyReader::new(Framing::Chunked);
        let (mut fed, mut kept_back) = (0, 0);
        let start = b"fffff\r\n[";
        judge.follow(&mut body, start, &mut kept_back).expect("there is enough");
        let unfollowed = loop {
            match judge.follow(&mut body, &[b' '; 1024], &mut kept_back) {
                Ok(_) => fed += KIB,
                Err(unfollowed) => break unfollowed,
            }
            assert!(judge.booked.bytes() >= 2 * fed && fed < 200 * KIB, "{fed}");
        };
        assert_eq!(unfollowed, Unfollowed::Memory);
        assert!(fed >= 32 * KIB, "{fed}");
    }
}
