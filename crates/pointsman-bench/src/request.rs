//! Requests, written before they are sent.

use std::net::SocketAddr;
use std::ops::Range;

use rustls::pki_types::ServerName;

use crate::http2::{Head, Kept};
use crate::plan::{Body, Protocol, Target};
use crate::{Fault, Plan, Scheme};

/// Each connection holds what of a body is not sent yet.
pub(crate) const FILLED_BYTES_MAX: u64 = 64 << 20;

/// A place that is filled with more digits than this has no use.
const RANDOM_TEXT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// All that a plan asks for, ready to be sent.
#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) origins: Vec<Origin>,
    requests: Vec<Request>,
    all: Choice,
    /// Of those without and with TLS.
    by_tls: [Choice; 2],
    /// Of those that go to each origin.
    by_origin: Vec<Choice>,
}

/// Some of the requests, each as often as its weight says.
#[derive(Debug, Default)]
struct Choice {
    requests: Vec<usize>,
    /// How likely it is to be one of the requests up to each, of the sum of all weights.
    bounds: Vec<u64>,
}

/// Where connections go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    /// Whom TLS asks for; `None`: no TLS.
    pub(crate) tls: Option<ServerName<'static>>,
}

/// One kind of request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) origin: usize,
    /// Whether it is a HEAD, whose answers have no body.
    pub(crate) is_head: bool,
    /// Which of the plan's classes it belongs to.
    pub(crate) class: Option<u16>,
    /// As the URL has it.
    pub(crate) host: String,
    /// Without the end of the head, and the length where that differs.
    head: Text,
    body: Text,
    /// Whether the length of the body has to be told in each.
    has_length: bool,
    /// Its head in HTTP/2, where that is spoken.
    pub(crate) http2: Option<Head>,
}

/// Bytes with places in them.
#[derive(Debug, Default)]
pub(crate) struct Text {
    bytes: Vec<u8>,
    /// In order: where in `bytes` each stands.
    places: Vec<(usize, Place)>,
}

/// What is filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// How many requests the thread began before.
    Number,
    /// A number out of these.
    Random(Range<u64>),
    /// So many letters.
    Letters(u64),
}

impl Requests {
    pub(crate) fn new(plan: &Plan) -> Result<Requests, Fault> {
        let mut all = Requests {
            origins: Vec::new(),
            requests: Vec::new(),
            all: Choice::default(),
            by_tls: Default::default(),
            by_origin: Vec::new(),
        };
        let mut kept = Kept::default();
        for target in &plan.targets {
            let origin = all.origin(plan, target)?;
            let index = all.requests.len();
            all.requests.push(Request::new(target, origin, plan.protocol, &mut kept)?);
            all.by_origin.resize_with(all.origins.len(), Choice::default);
            let over_tls = usize::from(all.origins[origin].tls.is_some());
            for choice in [&mut all.all, &mut all.by_tls[over_tls], &mut all.by_origin[origin]] {
                choice.add(index, target.weight);
            }
        }
        if all.all.requests.is_empty() {
            return Err(Fault::new("all URLs have the weight 0"));
        }
        for (class, place) in plan.classes.iter().zip(0..) {
            class.targets.iter().for_each(|target| all.requests[*target].class = Some(place));
        }
        Ok(all)
    }

    fn origin(&mut self, plan: &Plan, target: &Target) -> Result<usize, Fault> {
        let url = &target.url;
        let tls = match url.scheme {
            Scheme::Http => None,
            Scheme::Https => {
                let name = plan.server_name.clone().unwrap_or_else(|| url.host.clone());
                let parsed = ServerName::try_from(name.clone());
                Some(parsed.map_err(|_| Fault::new(format!("`{name}` is no server name for TLS")))?)
            }
        };
        let origin = Origin { address: url.address()?, tls };
        Ok(self.origins.iter().position(|known| *known == origin).unwrap_or_else(|| {
            self.origins.push(origin);
            self.origins.len() - 1
        }))
    }

    /// Which is next: over TLS or not, where that is said.
    pub(crate) fn draw(&self, random: &mut fastrand::Rng, tls: Option<bool>) -> usize {
        let choice = match tls {
            None => &self.all,
            Some(tls) => &self.by_tls[usize::from(tls)],
        };
        choice.draw(random)
    }

    /// Which is next of those that go to this place, to which at least one goes.
    pub(crate) fn draw_at(&self, origin: usize, random: &mut fastrand::Rng) -> usize {
        self.by_origin[origin].draw(random)
    }

    pub(crate) fn is_over_tls(&self, index: usize) -> bool {
        self.origins[self.requests[index].origin].tls.is_some()
    }

    pub(crate) fn get(&self, index: usize) -> &Request {
        &self.requests[index]
    }
}

impl Choice {
    fn add(&mut self, request: usize, weight: u32) {
        if weight > 0 {
            self.requests.push(request);
            self.bounds.push(self.bounds.last().copied().unwrap_or_default() + u64::from(weight));
        }
    }

    /// One of them; there is at least one.
    #[inline]
    fn draw(&self, random: &mut fastrand::Rng) -> usize {
        match (self.requests.as_slice(), self.bounds.as_slice()) {
            ([only], _) => *only,
            (requests, bounds) => {
                let drawn = random.u64(..bounds[bounds.len() - 1]);
                requests[bounds.partition_point(|bound| *bound <= drawn)]
            }
        }
    }
}

impl Request {
    fn new(target: &Target, origin: usize, protocol: Protocol, kept: &mut Kept) -> Result<Request, Fault> {
        let body = match &target.body {
            Body::None => Text::default(),
            Body::Bytes(bytes) => Text { bytes: bytes.clone(), places: Vec::new() },
            Body::Template(template) => Text::template(template)?,
            Body::Filled(bytes) if *bytes <= FILLED_BYTES_MAX => {
                Text { bytes: vec![b'x'; *bytes as usize], places: Vec::new() }
            }
            Body::Filled(bytes) => {
                return Err(Fault::new(format!(
                    "a body of {bytes} bytes is too long: {FILLED_BYTES_MAX} are the most"
                )));
            }
        };
        let mut head = format!("{} {} HTTP/1.1\r\n", target.method, target.url.target);
        let is_given = |name: &str| target.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        if !is_given("host") {
            head += &format!("Host: {}\r\n", target.url.authority());
        }
        for (name, value) in &target.headers {
            if !pointsman_http::is_token(name.as_bytes()) || !pointsman_http::is_field_value(value.as_bytes())
            {
                return Err(Fault::new(format!("`{name}: {value}` is no header field")));
            }
            head += &format!("{name}: {value}\r\n");
        }
        let says_length = target.body != Body::None && !is_given("content-length");
        let has_length = says_length && !body.places.is_empty();
        if says_length && !has_length {
            head += &format!("Content-Length: {}\r\n", body.bytes.len());
        }
        let http2 = match protocol {
            Protocol::Http1 => None,
            Protocol::Http2 => {
                let body_bytes = (!body.varies()).then_some(body.bytes.len());
                Some(Head::new(target, kept, body_bytes, says_length)?)
            }
        };
        Ok(Request {
            origin,
            is_head: target.method == "HEAD",
            class: None,
            host: target.url.host.clone(),
            head: Text::template(&head)?,
            body,
            has_length,
            http2,
        })
    }

    /// Its body, which is written to `text` where it has places.
    pub(crate) fn body<'t>(
        &'t self,
        text: &'t mut Vec<u8>,
        number: u64,
        random: &mut fastrand::Rng,
    ) -> &'t [u8] {
        if !self.body.varies() {
            return &self.body.bytes;
        }
        text.clear();
        self.body.write(text, number, random);
        text
    }

    /// The whole request in HTTP/1.1. Where nothing is to be filled in it is appended from memory as it is.
    pub(crate) fn write(&self, into: &mut Vec<u8>, number: u64, random: &mut fastrand::Rng) {
        self.write_adding(into, number, random, |_, _| {});
    }

    /// The same, and `add` may append fields; it is told where the head begins.
    #[inline]
    pub(crate) fn write_adding(
        &self,
        into: &mut Vec<u8>,
        number: u64,
        random: &mut fastrand::Rng,
        add: impl FnOnce(&mut Vec<u8>, usize),
    ) {
        let start = into.len();
        self.head.write(into, number, random);
        add(into, start);
        if !self.has_length {
            into.extend_from_slice(b"\r\n");
            self.body.write(into, number, random);
            return;
        }
        // The length stands before what it is the length of: the body is written behind a gap.
        const GAP: &[u8] = b"Content-Length:                     \r\n\r\n";
        let at = into.len();
        into.extend_from_slice(GAP);
        let start = into.len();
        self.body.write(into, number, random);
        let mut length = into.len() - start;
        let mut digit = at + GAP.len() - 4;
        loop {
            digit -= 1;
            into[digit] = b'0' + (length % 10) as u8;
            length /= 10;
            if length == 0 {
                break;
            }
        }
    }
}

/// Whether the places of a text can be filled in.
pub(crate) fn check_template(text: &str) -> Result<(), Fault> {
    Text::template(text).map(|_| ())
}

impl Text {
    /// `{n}`, `{random 1 1000}` and `{letters 2000}` are places; other braces stay.
    pub(crate) fn template(text: &str) -> Result<Text, Fault> {
        let mut parsed = Text::default();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, behind) = rest.split_at(open);
            parsed.bytes.extend_from_slice(before.as_bytes());
            let inner = behind.find('}').map(|end| &behind[1..end]);
            match inner.map(Place::read).transpose()?.flatten() {
                Some(place) => {
                    parsed.places.push((parsed.bytes.len(), place));
                    rest = &behind[inner.map_or(0, str::len) + 2..];
                }
                None => {
                    parsed.bytes.push(b'{');
                    rest = &behind[1..];
                }
            }
        }
        parsed.bytes.extend_from_slice(rest.as_bytes());
        Ok(parsed)
    }

    /// Whether it is another one each time.
    pub(crate) fn varies(&self) -> bool {
        !self.places.is_empty()
    }

    /// What it is where it does not vary.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[inline]
    pub(crate) fn write(&self, into: &mut Vec<u8>, number: u64, random: &mut fastrand::Rng) {
        let mut from = 0;
        for (at, place) in &self.places {
            into.extend_from_slice(&self.bytes[from..*at]);
            from = *at;
            place.write(into, number, random);
        }
        into.extend_from_slice(&self.bytes[from..]);
    }
}

impl Place {
    fn read(inner: &str) -> Result<Option<Place>, Fault> {
        let words: Vec<&str> = inner.split_ascii_whitespace().collect();
        let number = |word: &str| word.parse::<u64>().ok();
        let place = match words.as_slice() {
            ["n"] => Some(Place::Number),
            ["random", from, to] => match (number(from), number(to)) {
                (Some(from), Some(to)) if from <= to && to < u64::MAX => Some(Place::Random(from..to + 1)),
                _ => None,
            },
            ["letters", count] => {
                number(count).filter(|count| *count <= RANDOM_TEXT_BYTES_MAX).map(Place::Letters)
            }
            _ => return Ok(None),
        };
        let wrong = || {
            Fault::new(format!("`{{{inner}}}` cannot be filled in"))
                .help("there are `{n}`, `{random 1 1000}` and `{letters 2000}`")
        };
        place.map(Some).ok_or_else(wrong)
    }

    fn write(&self, into: &mut Vec<u8>, number: u64, random: &mut fastrand::Rng) {
        use std::io::Write;
        let value = match self {
            Place::Number => number,
            Place::Random(range) => random.u64(range.clone()),
            Place::Letters(count) => {
                into.extend((0..*count).map(|_| random.u8(b'a'..=b'z')));
                return;
            }
        };
        // Memory takes all that is written to it.
        let (Ok(()) | Err(_)) = write!(into, "{value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Load, Url};

    fn written(target: Target) -> Result<Vec<String>, Fault> {
        let plan = Plan::new(vec![target], Load::Closed { clients: 1 });
        let requests = Requests::new(&plan)?;
        let mut random = fastrand::Rng::with_seed(7);
        let text = |number| {
            let mut bytes = Vec::new();
            requests.get(0).write(&mut bytes, number, &mut random);
            String::from_utf8(bytes).expect("text")
        };
        Ok((0..2).map(text).collect())
    }

    fn target(url: &str, method: &str, body: Body) -> Target {
        let url = Url::parse(url).expect(url);
        Target { url, weight: 1, method: method.into(), headers: Vec::new(), body }
    }

    #[test]
    fn a_request_is_written_as_it_is() {
        let mut get = target("http://127.0.0.1:81/a?b", "GET", Body::None);
        get.headers.push(("X-A".into(), "b".into()));
        let whole = "GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:81\r\nX-A: b\r\n\r\n";
        assert_eq!(written(get.clone()).expect("good"), [whole, whole]);
        get.headers[0].1 = "b\r\nc: d".into();
        assert!(written(get).is_err());
        let post = target("http://127.0.0.1/", "POST", Body::Bytes(b"{n}".to_vec()));
        assert_eq!(
            written(post).expect("good")[1],
            "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\n{n}"
        );
    }

    #[test]
    fn places_are_filled_in_and_lengths_are_right() {
        let template = "{\"id\": {n}, \"sum\": {random 5 5}, \"text\": \"{letters 300}\"}";
        let post = target("http://127.0.0.1/x/{n}", "POST", Body::Template(template.into()));
        for (number, text) in written(post).expect("good").iter().enumerate() {
            let (head, body) = text.split_once("\r\n\r\n").expect("a head");
            assert!(head.starts_with(&format!("POST /x/{number} HTTP/1.1\r\n")), "{head}");
            assert!(body.starts_with(&format!("{{\"id\": {number}, \"sum\": 5, \"text\": \"")), "{body}");
            let length = head.rsplit_once("Content-Length:").expect("there").1.trim();
            assert_eq!(length.parse(), Ok(body.len()));
        }
        for bad in ["{random 5}", "{random 6 5}", "{random a b}", "{letters 99999999999}"] {
            let words = bad == "{random 5}";
            let result = written(target("http://127.0.0.1/", "POST", Body::Template(bad.into())));
            assert_eq!(result.is_ok(), words, "{bad}: what is no place stays as it is");
        }
    }

    #[test]
    fn requests_come_as_often_as_their_weights_say() {
        let mut targets: Vec<_> = ["http://127.0.0.1/a", "http://127.0.0.1/b", "http://127.0.0.1/c"]
            .map(|url| target(url, "GET", Body::None))
            .into();
        targets[0].weight = 1;
        targets[1].weight = 0;
        targets[2].weight = 3;
        let requests = Requests::new(&Plan::new(targets, Load::Closed { clients: 1 })).expect("good");
        assert_eq!(requests.origins.len(), 1, "the same place");
        let mut random = fastrand::Rng::with_seed(1);
        let mut counts = [0_u32; 3];
        (0..40_000).for_each(|_| counts[requests.draw(&mut random, None)] += 1);
        assert_eq!(counts[1], 0);
        assert!((9_700..10_300).contains(&counts[0]), "{counts:?}");
    }
}
