//! A witness as the switch reads it.

use std::sync::Arc;

use pointsman_http::{BodyReader, Framing, HeaderKind, HeaderLine, RequestHead, Version};
use pointsman_rules::{Evidence, Program};
use pointsman_view::{BodyPaths, Inspection, RequestView, TrustedProxies, normal_form, take_away_forwarding};

use super::{Setting, Witness};

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
    let Witness { bytes, connection, .. } = witness;
    let mut head = head(witness, setting)?;
    let networks = witness.networks(setting);
    let trusted = TrustedProxies { networks: &networks, unix: witness.trusts_unix(setting) };
    if !connection.is_trusted(trusted) {
        take_away_forwarding(&mut head);
        head.check_scheme(bytes, connection.scheme()).ok()?;
    }
    head.upgrade(bytes, &setting.upgrades).ok()?;
    let mut scratch = Vec::new();
    let path = normal_form(head.path_and_query(bytes), setting.path_options, &mut scratch).ok()?;
    let view = RequestView::new(&head, bytes, connection, path, trusted);
    let behind = bytes.get(head.head_bytes()..).unwrap_or_default();
    let body = Body::read(head.framing(), behind, witness.is_cut)?;
    if reading.program.payloads.is_empty() {
        return Some(see(&view));
    }
    let evidence = Evidence::keeping(reading.program, reading.values_max);
    let mut inspection =
        Inspection::new(evidence, reading.paths.clone(), &head, bytes, &setting.body_options);
    inspection.feed(&body.bytes);
    if body.is_whole {
        inspection.finish();
    }
    Some(see(&view.with_body(inspection.evidence())))
}

impl Witness {
    /// Whether it asks the switch to change to another protocol, and may.
    #[must_use]
    pub fn changes_protocol(&self, setting: &Setting) -> bool {
        let change = head(self, setting).and_then(|head| head.upgrade(&self.bytes, &setting.upgrades).ok());
        change.flatten().is_some()
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
        let is_none = |line: &HeaderLine| is_of_http1_alone(line.name(bytes));
        let cookies = head.lines().iter().filter(|line| line.kind == HeaderKind::Cookie);
        if head.version() != Version::Http11 || cookies.count() > 1 || head.lines().iter().any(is_none) {
            return None;
        }
        head.is_of_http2().ok()?;
    }
    head.settle_odd_names(bytes, setting.odd_names()).ok()?;
    Some(head)
}

/// Whether rules see no such line of a request of HTTP/2 (RFC 9113 section 8.2.2): TE is taken away, and all cookies are one
/// line. Transfer-Encoding stands there for a body that announces no length.
fn is_of_http1_alone(name: &[u8]) -> bool {
    const NAMES: [&str; 5] = ["connection", "keep-alive", "proxy-connection", "te", "upgrade"];
    NAMES.into_iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// A body without what frames it.
#[derive(Debug)]
struct Body {
    bytes: Vec<u8>,
    is_whole: bool,
}

impl Body {
    /// Nothing where what stands behind the head is not the body that it announces.
    fn read(framing: Framing, behind: &[u8], is_cut: bool) -> Option<Body> {
        let (mut bytes, mut trailers) = (Vec::new(), Vec::new());
        let fed = BodyReader::new(framing).feed_unchunked(behind, &mut bytes, &mut trailers).ok()?;
        let is_all = fed.used == behind.len() && fed.done != is_cut;
        is_all.then_some(Body { bytes, is_whole: fed.done })
    }
}
