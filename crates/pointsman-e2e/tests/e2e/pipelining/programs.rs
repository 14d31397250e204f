//! Random programs of requests, servers that are fast and slow and fail, and clients that send in pieces: whatever
//! happens, each answer is that to its own request, in order.

use std::io::Result;

use pointsman_e2e::{Client, Random, Response};

use super::{Over, Shop, get};

pointsman_e2e::for_threads!(each_answer_is_to_its_own_request);

const PROGRAMS: u64 = 60;

/// A request and what may come of it.
struct Asked {
    method: &'static str,
    target: String,
    text: String,
}

impl Asked {
    fn random(random: &mut Random, program: u64, number: usize) -> Asked {
        let method = random.one(&["GET", "GET", "GET", "GET", "HEAD", "OPTIONS", "POST", "DELETE"]);
        let server = random.one(&["a", "a", "b", "b", "c", "c", "d"]);
        let gate = random.one(&["", "/gated", "/half"]);
        let kinds = ["", "", "", "", "/chunked", "/304", "/early", "/dies", "/until-close"];
        let target = format!("/{server}{gate}{}/{program}/{number}", random.one(&kinds));
        let text = match method {
            "GET" => get(&target),
            "POST" => format!("POST {target} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 3\r\n\r\nabc"),
            _ => format!("{method} {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n"),
        };
        Asked { method, target, text }
    }

    fn is(&self, word: &str) -> bool {
        self.target.split('/').any(|other| other == word)
    }

    fn is_safe(&self) -> bool {
        !matches!(self.method, "POST" | "DELETE")
    }

    /// Whether its answer may be the last.
    fn may_end(&self) -> bool {
        self.is("dies") || self.is("until-close")
    }

    /// Whether its answer may be cut off, or the connection end in its place.
    fn may_be_cut(&self, mode: &str, is_last: bool) -> bool {
        self.may_end() || (mode == "latest" && self.is_safe() && !is_last)
    }

    fn check(&self, answer: &Response, mode: &str, is_last: bool) {
        let seen = format!("{} {}: {:?} {}", self.method, self.target, answer.head, answer.text());
        match answer.status() {
            503 => {
                assert!(mode == "latest" && self.is_safe() && !is_last, "{seen}");
                assert_eq!(answer.server(), "", "{seen}");
            }
            502 => assert!(self.is("d") || self.is("dies"), "{seen}"),
            304 => assert!(self.is("304") && answer.server() == &self.target[1..2], "{seen}"),
            200 => {
                let body = match (self.method, self.is("chunked")) {
                    ("HEAD", _) => String::new(),
                    (_, true) => format!("-{}", self.target),
                    (_, false) => self.target.clone(),
                };
                assert!(!self.is("d") && !self.is("304"), "{seen}");
                assert_eq!((answer.text(), answer.server()), (body, &self.target[1..2]), "{seen}");
                let hints: Vec<_> = answer.interim.iter().map(|head| head.field("link")).collect();
                let own = format!("<{}>", self.target);
                assert!(hints.iter().all(|hint| *hint == Some(own.as_str())), "{seen} {hints:?}");
                assert_eq!(hints.len(), usize::from(self.is("early")), "{seen}");
            }
            _ => panic!("{seen}"),
        }
    }
}

/// What a client and the servers do, in an order drawn by chance.
enum Deed {
    Send(Vec<u8>),
    Open(String),
}

fn deeds(random: &mut Random, asked: &[Asked]) -> Vec<Deed> {
    let all: String = asked.iter().map(|asked| asked.text.as_str()).collect();
    let mut rest = all.as_bytes();
    let mut deeds = Vec::new();
    while !rest.is_empty() {
        let bound = random.one(&[10, 200, 2000]);
        let (piece, more) = rest.split_at((1 + random.below(bound)).min(rest.len()));
        deeds.push(Deed::Send(piece.to_vec()));
        rest = more;
    }
    for asked in asked.iter().filter(|asked| asked.is("gated") || asked.is("half")) {
        deeds.insert(random.below(deeds.len() + 1), Deed::Open(asked.target.clone()));
    }
    deeds
}

fn next(client: &mut Client, asked: &Asked) -> Result<Response> {
    match asked.method {
        "HEAD" => client.try_response_to_head(),
        _ => client.try_response(),
    }
}

fn run(shop: &Shop, mode: &str, program: u64) {
    let mut random = Random::new(program);
    let count = 1 + random.below(12);
    let asked: Vec<_> = (0..count).map(|number| Asked::random(&mut random, program, number)).collect();
    let mut client = shop.client();
    let mut is_sent = true;
    for deed in deeds(&mut random, &asked) {
        match deed {
            // The switch may have closed behind an answer that is the last.
            Deed::Send(piece) => is_sent &= client.try_send(piece).is_ok(),
            Deed::Open(target) => shop.stage.open(&target),
        }
    }
    for (at, one) in asked.iter().enumerate() {
        let is_last = at + 1 == count;
        match next(&mut client, one) {
            Ok(answer) => {
                one.check(&answer, mode, is_last);
                if answer.head.field("connection") == Some("close") {
                    assert!(one.may_end(), "program {program}: {} {:?}", one.target, answer.head);
                    assert!(client.closes(), "program {program}: {}", one.target);
                    return;
                }
            }
            Err(error) => {
                // A TLS client that cannot write any more says so when it reads, whatever there is to read.
                let is_elsewhere = !is_sent && asked.iter().any(|other| other.may_be_cut(mode, false));
                let is_here = one.may_be_cut(mode, is_last);
                assert!(is_here || is_elsewhere, "program {program}: {}: {error}", one.target);
                return;
            }
        }
    }
    // Nothing is left over.
    client.send(get(&format!("/a/{program}/end")));
    let end = client.response();
    assert_eq!(end.text(), format!("/a/{program}/end"), "program {program}");
}

fn each_answer_is_to_its_own_request(threads: usize) {
    for (mode, over) in [
        ("concurrent", Over::Plain),
        ("concurrent", Over::Tls),
        ("latest", Over::Plain),
        ("latest", Over::Tls),
        ("hold", Over::Plain),
    ] {
        let shop = Shop::with(threads, mode, over, |setup| setup.limits("pipeline_requests_max = 5"));
        for program in 0..PROGRAMS {
            run(&shop, mode, program);
        }
    }
}
