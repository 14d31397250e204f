//! The context of a trace: what comes with a request, and what goes on to its server (W3C Trace Context).

use crate::style::Sample;

/// Where an exchange stands in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub(crate) trace: [u8; TRACE_BYTES],
    /// Who asked, where the request said so.
    pub(crate) parent: Option<[u8; SPAN_BYTES]>,
    /// The exchange with the client.
    pub(crate) span: [u8; SPAN_BYTES],
    /// What its server is asked.
    pub(crate) to_server: [u8; SPAN_BYTES],
    pub(crate) is_sampled: bool,
}

const TRACE_BYTES: usize = 16;
const SPAN_BYTES: usize = 8;

/// As in `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`.
const PARENT_LENGTH: usize = 55;

/// The one flag that is set here (section 3.2.2.5.1).
const SAMPLED: u8 = 1;

/// What a `traceparent` says.
#[derive(Debug, PartialEq, Eq)]
struct Parent {
    trace: [u8; TRACE_BYTES],
    span: [u8; SPAN_BYTES],
    is_sampled: bool,
}

/// Begins what each exchange has of a trace.
#[derive(Debug)]
pub(crate) struct Tracer {
    sample: Sample,
    chance: fastrand::Rng,
}

impl Tracer {
    pub(crate) fn new(sample: Sample, seed: u64) -> Tracer {
        Tracer { sample, chance: fastrand::Rng::with_seed(seed) }
    }

    /// Goes on with the trace of `traceparent`, or begins one where that is absent or says nothing. Whether it is
    /// sampled is up to the client only where it is believed.
    pub(crate) fn begin(&mut self, traceparent: Option<&[u8]>, is_believed: bool) -> TraceContext {
        let parent = traceparent.and_then(Parent::read);
        let drawn = self.sample.draws(&mut self.chance);
        TraceContext {
            trace: parent.as_ref().map_or_else(|| self.id(), |parent| parent.trace),
            span: self.id(),
            to_server: self.id(),
            is_sampled: parent.as_ref().filter(|_| is_believed).map_or(drawn, |parent| parent.is_sampled),
            parent: parent.map(|parent| parent.span),
        }
    }

    /// By chance, and never all zero, which would be none.
    fn id<const BYTES: usize>(&mut self) -> [u8; BYTES] {
        let mut id = [0; BYTES];
        while id == [0; BYTES] {
            self.chance.fill(&mut id);
        }
        id
    }
}

impl TraceContext {
    /// Whether the request said what trace it belongs to. If not, what it says of the trace's state is of none.
    pub fn goes_on(&self) -> bool {
        self.parent.is_some()
    }

    /// Appends the line that its server is sent, with its CRLF.
    pub fn push_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"traceparent: 00-");
        push_hex(out, &self.trace);
        out.push(b'-');
        push_hex(out, &self.to_server);
        out.extend_from_slice(if self.is_sampled { b"-01\r\n" } else { b"-00\r\n" });
    }
}

impl Parent {
    /// Reads a `traceparent` (section 3.2); of a version that is not known as much as is known.
    fn read(text: &[u8]) -> Option<Parent> {
        let (known, rest) = text.split_at_checked(PARENT_LENGTH)?;
        let version = hex::<1>(&known[..2])?[0];
        let is_whole = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest.starts_with(b"-"),
        };
        let has_dashes = [2, 35, 52].into_iter().all(|at| known[at] == b'-');
        let (trace, span) = (hex(&known[3..35])?, hex(&known[36..52])?);
        let flags = hex::<1>(&known[53..])?[0];
        let is_one = is_whole && has_dashes && trace != [0; TRACE_BYTES] && span != [0; SPAN_BYTES];
        is_one.then_some(Parent { trace, span, is_sampled: flags & SAMPLED != 0 })
    }
}

/// Bytes written as two digits each, in lower case.
fn hex<const BYTES: usize>(digits: &[u8]) -> Option<[u8; BYTES]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; BYTES];
    let (pairs, rest) = digits.as_chunks::<2>();
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    (pairs.len() == BYTES && rest.is_empty()).then_some(bytes)
}

pub(crate) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_comes_is_read_or_nothing() {
        let known = Parent::read(PARENT.as_bytes()).unwrap();
        assert_eq!(
            (known.trace[..2].to_vec(), known.span[7], known.is_sampled),
            (vec![0x4b, 0xf9], 0xb7, true)
        );
        let replaced = |from: &str, to: &str| PARENT.replacen(from, to, 1);
        for (text, is_sampled) in [
            (replaced("-01", "-00"), Some(false)),
            (replaced("-01", "-02"), Some(false)),
            (replaced("-01", "-ff"), Some(true)),
            (replaced("00-4", "01-4"), Some(true)),
            (replaced("00-4", "cc-4") + "-more", Some(true)),
            (replaced("00-4", "01-4") + ".more", None),
            (PARENT.to_owned() + "-more", None),
            (PARENT.to_owned() + " ", None),
            (replaced("00-4", "ff-4"), None),
            (replaced("4bf", "4BF"), None),
            (replaced("4bf", "4bg"), None),
            (replaced("-00f0", "_00f0"), None),
            (replaced("4bf92f3577b34da6a3ce929d0e0e4736", "00000000000000000000000000000000"), None),
            (replaced("00f067aa0ba902b7", "0000000000000000"), None),
            (PARENT[..54].to_owned(), None),
            (String::new(), None),
        ] {
            let read = Parent::read(text.as_bytes());
            assert_eq!(read.map(|parent| parent.is_sampled), is_sampled, "{text}");
        }
    }

    #[test]
    fn a_trace_goes_on_or_begins() {
        let mut none = Tracer::new(Sample::per_million(0), 1);
        let goes_on = none.begin(Some(PARENT.as_bytes()), true);
        assert!(goes_on.goes_on() && goes_on.is_sampled);
        let mut line = Vec::new();
        goes_on.push_line(&mut line);
        let line = String::from_utf8(line).unwrap();
        assert!(line.starts_with("traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-"), "{line}");
        assert!(line.ends_with("-01\r\n") && !line.contains("00f067aa0ba902b7"), "{line}");
        assert_eq!(Parent::read(&line.as_bytes()[13..68]).unwrap().span, goes_on.to_server);
        // Whoever is not believed does not say what is sampled, in neither way.
        assert!(!none.begin(Some(PARENT.as_bytes()), false).is_sampled);
        let mut all = Tracer::new(Sample::ALL, 1);
        let unsampled = PARENT.replace("-01", "-00");
        assert!(all.begin(Some(unsampled.as_bytes()), false).is_sampled);
        assert!(!all.begin(Some(unsampled.as_bytes()), true).is_sampled);

        let (first, second) = (all.begin(None, true), all.begin(Some(b"?"), true));
        assert!(!first.goes_on() && !second.goes_on() && first.is_sampled);
        assert!(first.trace != second.trace && first.span != second.span && first.span != first.to_server);
    }
}
