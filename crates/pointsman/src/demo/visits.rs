//! The requests that the demo sends, and who must get them.

use std::time::Instant;

use super::client::{Answer, Client};
use super::entry::{Entry, duration};
use super::event::{Event, Events};
use super::site::{HOST, Site};
use super::switch::Addresses;
use super::{Screen, Stop};
use crate::check::terminal::{Style, cell};

/// A request with what must come of it.
struct Visit {
    over: Over,
    /// As it stands in its first line.
    request: &'static str,
    lines: &'static [&'static str],
    body: &'static str,
    /// What the first line does not show.
    note: &'static str,
    rule: &'static str,
    pool: Option<&'static str>,
    server: Server,
    status: u16,
    /// The end of a line of the answer: what the server saw, or the switch said.
    shows: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Tls,
    Plain,
}

/// Which server of the pool must be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    /// None: the switch answers.
    Nobody,
    Any,
    Named(&'static str),
    /// The one that the route cookie of an earlier answer leads to; the request carries it.
    SameAsBefore,
}

const USUAL: Visit = Visit {
    over: Over::Tls,
    request: "GET /",
    lines: &["User-Agent: pointsman-demo"],
    body: "",
    note: "",
    rule: "else",
    pool: Some("standard"),
    server: Server::Any,
    status: 200,
    shows: "GET / HTTP/1.1",
};

const FAST: Visit = Visit { pool: Some("fast"), server: Server::Named("server3"), ..USUAL };

const OWN: Visit = Visit { pool: None, server: Server::Nobody, ..USUAL };

const CART: Visit = Visit { request: "GET /cart", rule: "cart", shows: "GET /cart HTTP/1.1", ..USUAL };

const XML_ORDER: Visit = Visit {
    request: "POST /orders",
    lines: &["User-Agent: pointsman-demo", "Content-Type: text/xml"],
    shows: "POST /orders HTTP/1.1",
    ..USUAL
};

const CHAT: Visit = Visit {
    request: "POST /v1/chat/completions",
    lines: &["User-Agent: pointsman-demo", "Content-Type: application/json"],
    shows: "POST /v1/chat/completions HTTP/1.1",
    ..USUAL
};

const VISITS: [Visit; 15] = [
    USUAL,
    Visit {
        request: "GET /logo.png",
        rule: "images",
        pool: Some("images"),
        server: Server::Named("server2"),
        shows: "GET /logo.png HTTP/1.1",
        ..USUAL
    },
    Visit {
        lines: &["User-Agent: pointsman-demo", "Cookie: customer=gold"],
        note: "cookie customer=gold",
        rule: "gold",
        shows: "x-class: gold",
        ..FAST
    },
    Visit {
        request: "POST /api/orders",
        lines: &["User-Agent: pointsman-demo", "Content-Type: text/plain"],
        body: "three trees",
        note: "11 bytes",
        rule: "api",
        shows: "POST /orders HTTP/1.1",
        ..FAST
    },
    CART,
    Visit { note: "cookie pm_route", server: Server::SameAsBefore, ..CART },
    Visit { request: "GET /old/shelf", rule: "moved", status: 308, shows: "", ..OWN },
    Visit {
        body: "<purchase><customerName>CCL</customerName><totalAmount>60000</totalAmount></purchase>",
        note: "XML, 60000",
        rule: "large",
        pool: FAST.pool,
        server: FAST.server,
        ..XML_ORDER
    },
    Visit {
        body: "<purchase><customerName>CCL</customerName><totalAmount>4000</totalAmount></purchase>",
        note: "XML, 4000",
        ..XML_ORDER
    },
    Visit {
        lines: CHAT.lines,
        body: r#"{"purchase":{"customerName":"CCL","totalAmount":52000.01}}"#,
        note: "JSON, 52000.01",
        rule: "large",
        pool: FAST.pool,
        server: FAST.server,
        ..XML_ORDER
    },
    Visit {
        body: r#"{"model":"llama-3.3-70b","messages":[{"role":"user","content":"hello"}]}"#,
        note: "llama",
        rule: "llama",
        pool: Some("llama"),
        server: Server::Named("server4"),
        ..CHAT
    },
    Visit {
        body: r#"{"messages":[{"role":"user","content":"hello"}],"model":"mistral-small"}"#,
        note: "mistral",
        rule: "mistral",
        pool: Some("mistral"),
        server: Server::Named("server5"),
        ..CHAT
    },
    Visit { over: Over::Plain, request: "GET /hello", rule: "hello", shows: "hello to 127.0.0.1", ..OWN },
    Visit {
        over: Over::Plain,
        lines: &[],
        note: "no user agent",
        rule: "robots",
        status: 403,
        shows: "say who you are",
        ..OWN
    },
    // Its total decides, and what comes behind it is wrong: no server gets to see it.
    Visit {
        over: Over::Plain,
        body: "<purchase><totalAmount>60000</totalAmount></torn>",
        note: "torn XML",
        rule: "large",
        pool: FAST.pool,
        server: Server::Nobody,
        status: 400,
        shows: "",
        ..XML_ORDER
    },
];

/// Sends every request and shows where it went. How many went astray.
pub(super) fn send_all(
    site: &Site,
    addresses: &Addresses,
    events: &mut Events,
    screen: &mut Screen,
) -> Result<usize, Stop> {
    let trusting = trusting(site)?;
    let cannot = || Stop::because("no connection to the switch");
    let started = Instant::now();
    let mut tls = Client::tls(addresses.tls, &trusting, HOST).map_err(cannot())?;
    let handshake = duration(started.elapsed().as_micros().try_into().unwrap_or(u64::MAX));
    let mut plain = Client::plain(addresses.plain).map_err(cannot())?;
    let over_tls = VISITS.iter().filter(|visit| visit.over == Over::Tls).count();
    screen.show(&format!(
        "{} requests, {over_tls} of them on one connection ({}, connected in {handshake})\n\n{}\n",
        VISITS.len(),
        tls.agreed(),
        Entry::titles(screen.colour),
    ))?;
    let (mut astray, mut cart) = (0, Cart::default());
    for visit in &VISITS {
        let client = if visit.over == Over::Tls { &mut tls } else { &mut plain };
        let answer = client.exchange(visit.bytes(&cart).as_bytes());
        let answer = answer.map_err(Stop::because("a request was not answered"))?;
        let entry = events.wait_for("the line of a request in the access log", |event| match event {
            Event::Logged(line) => Entry::read(line).filter(|entry| entry.request() == visit.request),
            _ => None,
        })?;
        screen.show(&format!("{}\n", entry.row(&visit.shown(), screen.colour)))?;
        if let Some(fault) = visit.fault(&entry, &answer, &cart) {
            screen.show(&format!("    {}\n", cell(&fault, 0, Style::Red, screen.colour)))?;
            astray += 1;
        }
        cart.remember(&entry, answer);
    }
    screen.show(
        "\n  decided: from the request's first byte to the rule that took it; done: to the end of its answer.\n  \
         Both as the switch measured them and wrote them into its access log.\n",
    )?;
    Ok(astray)
}

/// What connections over TLS have in common: whom they trust, and their sessions.
pub(super) fn trusting(site: &Site) -> Result<pointsman_tls::Client, Stop> {
    pointsman_tls::Client::trusting(&site.authority()).map_err(|errors| {
        let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
        Stop::Failed(messages.join("; "))
    })
}

/// Where the cart is kept, once an answer has said so.
#[derive(Default)]
struct Cart {
    cookie: Option<String>,
    server: Option<String>,
}

impl Cart {
    fn remember(&mut self, entry: &Entry, answer: Answer) {
        let route = answer.cookies.into_iter().find(|cookie| cookie.starts_with("pm_route="));
        if let Some(cookie) = route {
            self.cookie = Some(cookie);
            self.server.clone_from(&entry.server);
        }
    }
}

impl Visit {
    fn shown(&self) -> String {
        match self.note {
            "" => self.request.to_owned(),
            note => format!("{}  {note}", self.request),
        }
    }

    fn bytes(&self, cart: &Cart) -> String {
        let mut text = format!("{} HTTP/1.1\r\nHost: {HOST}\r\n", self.request);
        for line in self.lines {
            text.push_str(line);
            text.push_str("\r\n");
        }
        if let (Server::SameAsBefore, Some(cookie)) = (self.server, &cart.cookie) {
            text.push_str(&format!("Cookie: {cookie}\r\n"));
        }
        if !self.body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        text.push_str("\r\n");
        text.push_str(self.body);
        text
    }

    fn is_shown(&self, answer: &Answer) -> bool {
        let wanted = self.shows.to_ascii_lowercase();
        wanted.is_empty() || answer.body.lines().any(|line| line.to_ascii_lowercase().ends_with(&wanted))
    }

    /// What went otherwise than it must.
    fn fault(&self, entry: &Entry, answer: &Answer, cart: &Cart) -> Option<String> {
        let server = match self.server {
            Server::Nobody => entry.server.is_none(),
            Server::Any => entry.server.is_some(),
            Server::Named(name) => entry.server.as_deref() == Some(name),
            Server::SameAsBefore => cart.server.is_some() && entry.server == cart.server,
        };
        let fault = if entry.rule.as_deref() != Some(self.rule) {
            format!("the rule `{}` should have taken it", self.rule)
        } else if entry.pool.as_deref() != self.pool {
            format!(
                "it should have gone to {}",
                self.pool.map_or("no pool".to_owned(), |pool| format!("the pool `{pool}`"))
            )
        } else if !server {
            "another server should have got it".to_owned()
        } else if answer.status != self.status {
            format!("the answer should have been {} and is {}", self.status, answer.status)
        } else if !self.is_shown(answer) {
            format!("the answer does not show `{}`", self.shows)
        } else {
            return None;
        };
        Some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(server: &str) -> Entry {
        let line = format!(
            r#"{{"method":"GET","path":"/cart","rule":"cart","pool":"standard","server":"{server}","status":200}}"#
        );
        Entry::read(&line).expect("an object")
    }

    fn answered(cookies: &[&str]) -> Answer {
        let cookies = cookies.iter().map(|cookie| (*cookie).to_owned()).collect();
        Answer { status: 200, cookies, body: "server1 saw\nGET /cart HTTP/1.1\nHost: a\n".into() }
    }

    #[test]
    fn the_cart_stays_where_it_is() {
        let again = Visit { server: Server::SameAsBefore, ..CART };
        let mut cart = Cart::default();
        assert_eq!(CART.fault(&logged("server1"), &answered(&[]), &cart), None);
        assert!(again.fault(&logged("server1"), &answered(&[]), &cart).is_some(), "no cookie was set");
        cart.remember(&logged("server1"), answered(&["a=b", "pm_route=xyz"]));
        assert!(again.bytes(&cart).contains("Cookie: pm_route=xyz\r\n\r\n"));
        assert_eq!(again.fault(&logged("server1"), &answered(&[]), &cart), None);
        assert!(again.fault(&logged("server2"), &answered(&[]), &cart).is_some());
    }

    #[test]
    fn what_goes_astray_is_said() {
        let cart = Cart::default();
        let (entry, answer) = (logged("server1"), answered(&[]));
        for (visit, word) in [
            (Visit { rule: "gold", ..CART }, "rule `gold`"),
            (Visit { pool: Some("fast"), ..CART }, "pool `fast`"),
            (Visit { pool: None, ..CART }, "no pool"),
            (Visit { server: Server::Named("server3"), ..CART }, "another server"),
            (Visit { status: 201, ..CART }, "201"),
            (Visit { shows: "X-Class: gold", ..CART }, "X-Class"),
        ] {
            let fault = visit.fault(&entry, &answer, &cart).expect("it is astray");
            assert!(fault.contains(word), "{fault}");
        }
    }
}
