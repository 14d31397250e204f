//! A witness as the switch reads it.

use std::sync::Arc;

use pointsman_http::{BodyReader, Framing, RequestHead, Version};
use pointsman_rules::{Cause, Evidence, Program, Truths};
use pointsman_view::{BodyPaths, Inspection, RequestView, TrustedProxies, normal_form, take_away_forwarding};

use super::versions::may_be_of_http2;
use super::{Padding, Setting, Witness};
use crate::{Asking, Content, Spoilt};

/// Of what follows in a long body so many bytes are read: more of the same makes no difference where the head says how many
/// there are.
const PADDING_READ_MAX: usize = 64 * 1024;
/// Where it does not, all of them are, and there are no more than this.
const CHUNKED_READ_MAX: u64 = 16 * 1024 * 1024;
/// What stands behind the only chunk of a body.
const CHUNK_END: &[u8] = b"\r\n0\r\n\r\n";

/// What is looked for in a witness.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    pub(super) program: &'a Program,
    pub(super) paths: &'a Arc<BodyPaths>,
    /// Values of each field of the body that are kept to be shown.
    pub(super) values_max: usize,
}

/// Shows a witness as a program's rules see it, if it is a request.
pub(super) fn read<T>(
    reading: &Reading<'_>,
    witness: &Witness,
    setting: &Setting,
    see: impl FnOnce(&RequestView<'_>) -> T,
) -> Option<T> {
    with_head(witness, setting, |head, view| {
        let bytes = &witness.bytes;
        let behind = bytes.get(head.head_bytes()..).unwrap_or_default();
        let body = Body::read(head.framing(), behind, witness.rest)?;
        if reading.program.payloads.is_empty() {
            return Some(see(&view));
        }
        let evidence = Evidence::keeping(reading.program, reading.values_max);
        let mut inspection =
            Inspection::new(evidence, reading.paths.clone(), head, bytes, &setting.body_options);
        body.feed(&mut inspection, setting.held_bytes_max(), PADDING_READ_MAX);
        Some(see(&view.with_body(inspection.evidence())))
    })
}

/// Shows a witness as rules see its head, if it is a request.
fn with_head<T>(
    witness: &Witness,
    setting: &Setting,
    see: impl FnOnce(&RequestHead, RequestView<'_>) -> Option<T>,
) -> Option<T> {
    let Witness { bytes, connection, .. } = witness;
    let mut head = head(witness, setting)?;
    let networks = witness.networks(setting);
    let trusted = TrustedProxies { networks: &networks, unix: witness.trusts_unix(setting) };
    if !connection.is_trusted(trusted) {
        take_away_forwarding(&mut head);
        head.check_scheme(bytes, connection.scheme()).ok()?;
        if !setting.is_directed(&head, bytes, connection) {
            return None;
        }
    }
    let change = head.upgrade(bytes, &setting.upgrades).ok()?;
    // What HTTP/2 asks for that is not granted is refused.
    if witness.is_of_http2 && change.is_none() && head.offered_protocols(bytes).next().is_some() {
        return None;
    }
    let mut scratch = Vec::new();
    let path = normal_form(head.path_and_query(bytes), setting.path_options, &mut scratch).ok()?;
    see(&head, RequestView::new(&head, bytes, connection, path, trusted))
}

impl Witness {
    /// Of what follows in its body behind what is written: how much is read to see what it is.
    pub(crate) fn padding_read(&self) -> u64 {
        const CHUNKED: &[u8] = b"\r\nTransfer-Encoding:";
        let written = self.rest.map_or(0, |rest| rest.bytes);
        let is_chunked = written > 0 && self.bytes.windows(CHUNKED.len()).any(|line| line == CHUNKED);
        if is_chunked { written } else { written.min(PADDING_READ_MAX as u64) }
    }

    /// Whether it asks the switch to change to another protocol, and may.
    #[must_use]
    pub fn changes_protocol(&self, setting: &Setting) -> bool {
        let change = head(self, setting).and_then(|head| head.upgrade(&self.bytes, &setting.upgrades).ok());
        change.flatten().is_some()
    }

    /// What becomes of it at a listener of this setting behind the decision of these rules, if its body is wrong there.
    #[must_use]
    pub fn spoilt(&self, program: &Program, setting: &Setting) -> Option<Spoilt> {
        if program.payloads.is_empty() {
            return None;
        }
        with_head(self, setting, |head, view| {
            let behind = self.bytes.get(head.head_bytes()..).unwrap_or_default();
            let content = Content::of(head, behind, setting.hold_bytes_max);
            let asking = Asking { program, options: &setting.body_options, head, received: &self.bytes };
            let reading = content.read(asking, view).ok()?;
            let decision = program.decide(&view.with_body(reading.evidence()), &mut Truths::default());
            let outcome = decision.outcome;
            content.spoilt(program, reading, &outcome)
        })
    }
}

/// Its head, whoever sends it.
fn head(witness: &Witness, setting: &Setting) -> Option<RequestHead> {
    let bytes = &witness.bytes;
    let mut head = RequestHead::default();
    if head.parse(bytes, &setting.head_limits) != Ok(true) {
        return None;
    }
    if witness.is_of_http2 {
        if head.version() != Version::Http11 || !may_be_of_http2(&head, bytes) {
            return None;
        }
        head.is_of_http2().ok()?;
    }
    head.settle_odd_names(bytes, setting.odd_names()).ok()?;
    Some(head)
}

/// A body without what frames it.
#[derive(Debug)]
struct Body {
    bytes: Vec<u8>,
    rest: Option<Padding>,
    /// Bytes of what frames it, before it and behind it.
    framing_bytes: [u64; 2],
}

impl Body {
    /// Nothing where what stands behind the head is not the body that it announces.
    fn read(framing: Framing, behind: &[u8], rest: Option<Padding>) -> Option<Body> {
        let (mut bytes, mut trailers) = (Vec::new(), Vec::new());
        let fed = BodyReader::new(framing).feed_unchunked(behind, &mut bytes, &mut trailers).ok()?;
        let is_all = fed.used == behind.len() && fed.done == rest.is_none();
        if framing == Framing::Chunked && rest.is_some_and(|rest| rest.bytes > CHUNKED_READ_MAX) {
            return None;
        }
        // It is one chunk.
        let framing_bytes = match behind.iter().position(|byte| *byte == b'\n') {
            Some(line_end) if framing == Framing::Chunked => [line_end as u64 + 1, CHUNK_END.len() as u64],
            _ => [0, 0],
        };
        is_all.then_some(Body { bytes, rest, framing_bytes })
    }

    /// Feeds it to its end, or up to as many bytes as are held of one that is not decided; of what follows it so many.
    fn feed(&self, inspection: &mut Inspection, held_bytes_max: u64, padding_read_max: usize) {
        let [before, behind] = self.framing_bytes;
        let padding = self.rest.unwrap_or(Padding { byte: b' ', bytes: 0 });
        let length = self.bytes.len() as u64 + padding.bytes;
        let is_held = before.saturating_add(length).saturating_add(behind) <= held_bytes_max;
        let held = if is_held { length } else { held_bytes_max.saturating_sub(before) };
        let held = usize::try_from(held).unwrap_or(usize::MAX);
        inspection.feed(self.bytes.get(..held).unwrap_or(&self.bytes));
        let is_counted = self.framing_bytes != [0, 0];
        let read_max = if is_counted { usize::MAX } else { padding_read_max };
        let padded = held.saturating_sub(self.bytes.len()).min(read_max);
        let piece = vec![padding.byte; padded.min(PADDING_READ_MAX)];
        for from in (0..padded).step_by(PADDING_READ_MAX) {
            inspection.feed(piece.get(..(padded - from).min(PADDING_READ_MAX)).unwrap_or(&piece));
        }
        match is_held {
            true => inspection.finish(),
            false => inspection.give_up(Cause::Limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use pointsman_rules::{Field, OwnedValue, Subject, Targets, compile};
    use pointsman_view::Connection;

    use super::*;

    /// What is seen of `json.a`, `xml.a`, `form["a"]` and the size of a body, of whose padding so many bytes are read.
    fn seen(head: &str, written: &str, padding: Padding, held_bytes_max: u64, read_max: usize) -> String {
        let rules = r#"if (json.a == 1 || xml.a == 1 || form["a"] == 1 || body.size == 1) { discard(); }"#;
        let program = compile(rules, &Targets::Any).expect("a rule set").program;
        let framing = match head.contains("chunked") {
            true => String::new(),
            false => format!("Content-Length: {}\r\n", written.len() as u64 + padding.bytes),
        };
        let connection = Connection { src: None, dst: None, proxied: None, tls: None };
        let bytes = format!("POST / HTTP/1.1\r\nHost: a\r\n{head}{framing}\r\n").into_bytes();
        let witness = Witness { bytes, is_of_http2: false, rest: Some(padding), connection, proxy: None };
        let head = super::head(&witness, &Setting::default()).expect("a head");
        let framing_bytes = if head.framing() == Framing::Chunked { [7, 7] } else { [0, 0] };
        let body = Body { bytes: written.as_bytes().to_vec(), rest: Some(padding), framing_bytes };
        let evidence = Evidence::keeping(&program, 9);
        let paths = Arc::new(BodyPaths::new(&program));
        let options = Setting::default().body_options;
        let mut inspection = Inspection::new(evidence, paths, &head, &witness.bytes, &options);
        body.feed(&mut inspection, held_bytes_max, read_max);
        let mut scratch = Vec::new();
        let path = normal_form(b"/", Setting::default().path_options, &mut scratch).expect("a path");
        let nobody = TrustedProxies { networks: &[], unix: false };
        let view = RequestView::new(&head, &witness.bytes, &witness.connection, path, nobody);
        let view = view.with_body(inspection.evidence());
        let fields = program.payloads.iter().map(|payload| Field::Payload(payload.clone()));
        let values = |field: Field| {
            let mut values = Vec::new();
            view.each(&field, &mut |value| {
                values.push(OwnedValue::from(value));
                std::ops::ControlFlow::Continue(())
            });
            format!("{values:?} {:?}", view.unsettled(&field))
        };
        fields.map(values).collect::<Vec<_>>().join(", ")
    }

    /// However much follows that says nothing, the same is seen.
    #[test]
    fn more_of_the_same_makes_no_difference() {
        const BYTES: u64 = 300_000;
        for (kind, written, byte) in [
            ("application/json", r#"{"a":1}"#, b' '),
            ("application/json", r#"{"b":1}"#, b' '),
            ("application/json", r#"{"a":1,"a":0"#, b' '),
            ("application/json", r#"{"b":1 !"#, b' '),
            ("application/xml", "<a>1</a>", b' '),
            ("application/xml", "<a></>", b' '),
            ("application/x-www-form-urlencoded", "a=1", b'&'),
            ("application/x-www-form-urlencoded", "", b'&'),
            ("multipart/form-data; boundary=b", "--b--\r\n", b' '),
            ("text/plain", "", b'x'),
        ] {
            for framing in ["", "Transfer-Encoding: chunked\r\n"] {
                let head = format!("Content-Type: {kind}\r\n{framing}");
                let padding = Padding { byte, bytes: BYTES };
                for held_bytes_max in [u64::MAX, BYTES, 5] {
                    let of = |read_max| seen(&head, written, padding, held_bytes_max, read_max);
                    let (part, whole) = (of(PADDING_READ_MAX), of(usize::MAX));
                    assert_eq!(part, whole, "{kind} {written} {held_bytes_max}");
                }
            }
        }
    }
}
