//! The line that an exchange leaves in the access log: one JSON object, or a line of the common or combined format with
//! the same facts behind it. Absent facts are left out.

use crate::event::{Counts, Exchange, Query};
use crate::json::{push_number, push_string};
use crate::trace::push_hex;

/// A key as literals, with what stands around it. Keys are our own words, so nothing in them needs an escape.
struct Key {
    json: &'static [u8],
    pair: &'static [u8],
}

macro_rules! key {
    ($key:literal) => {
        Key { json: concat!(",\"", $key, "\":").as_bytes(), pair: concat!(" ", $key, "=").as_bytes() }
    };
}

/// Facts behind each other: `,"key":value`, or as pairs: ` key=value`.
struct Facts<'o, const PAIRS: bool>(&'o mut Vec<u8>);

/// Appends the JSON line of an exchange, with its line feed.
pub(crate) fn push_line(out: &mut Vec<u8>, time: &[u8], exchange: &Exchange<'_>) {
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(time);
    out.push(b'"');
    let mut facts = Facts::<false>(out);
    facts.client(exchange);
    facts.request(exchange);
    facts.way(exchange);
    facts.answer(exchange);
    facts.figures(exchange);
    facts.words(exchange);
    out.extend_from_slice(b"}\n");
}

/// Appends what the common and the combined format do not say of an exchange, as pairs, each behind a blank. Strings
/// are JSON's.
pub(crate) fn push_details(out: &mut Vec<u8>, exchange: &Exchange<'_>) {
    let mut facts = Facts::<true>(out);
    facts.json(key!("listener"), Some(&exchange.counts.listener.quoted));
    facts.tls(exchange);
    facts.bytes(key!("host"), exchange.host);
    facts.way(exchange);
    facts.figures(exchange);
    facts.words(exchange);
}

impl<const PAIRS: bool> Facts<'_, PAIRS> {
    fn client(&mut self, exchange: &Exchange<'_>) {
        self.json(key!("listener"), Some(&exchange.counts.listener.quoted));
        self.key(&key!("client"));
        match exchange.peer {
            Some((address, port)) => self.peer(address, port),
            None => self.0.extend_from_slice(b"\"unix:\""),
        }
        self.word(key!("client_ip"), exchange.client_ip);
        self.tls(exchange);
    }

    /// `"192.0.2.7:5555"` or `"[2001:db8::7]:5555"`.
    fn peer(&mut self, address: &[u8], port: u16) {
        let out = &mut self.0;
        let (open, close): (&[u8], &[u8]) = match address.contains(&b':') {
            true => (b"\"[", b"]:"),
            false => (b"\"", b":"),
        };
        out.extend_from_slice(open);
        out.extend_from_slice(address);
        out.extend_from_slice(close);
        push_number(out, port.into());
        out.push(b'"');
    }

    fn tls(&mut self, exchange: &Exchange<'_>) {
        self.word(key!("tls"), exchange.tls.map(str::as_bytes));
        self.text(key!("sni"), exchange.sni);
    }

    fn request(&mut self, exchange: &Exchange<'_>) {
        self.bytes(key!("method"), exchange.method);
        self.bytes(key!("host"), exchange.host);
        self.bytes(key!("path"), exchange.path);
        match exchange.query {
            Query::Unlogged => {}
            Query::Absent => self.json(key!("query"), Some(b"null")),
            Query::Text(query) => self.bytes(key!("query"), Some(query)),
        }
        self.word(key!("version"), exchange.version.map(str::as_bytes));
        self.bytes(key!("content_type"), exchange.content_type);
        self.figure(key!("content_length"), exchange.content_length);
        self.flag(key!("body"), exchange.has_body);
    }

    fn way(&mut self, exchange: &Exchange<'_>) {
        self.bytes(key!("rule"), exchange.rule);
        self.bytes(key!("unknown"), exchange.unknown);
        self.bytes(key!("limit"), exchange.limit);
        self.bytes(key!("mirror"), exchange.mirror);
        self.bytes(key!("pool"), exchange.pool);
        self.json(key!("server"), exchange.counts.server.map(|server| &*server.quoted));
    }

    fn answer(&mut self, exchange: &Exchange<'_>) {
        let Counts { status, request_bytes, response_bytes, .. } = exchange.counts;
        self.figure(key!("status"), (status != 0).then_some(u64::from(status)));
        self.figure(key!("request_bytes"), Some(request_bytes));
        self.figure(key!("response_bytes"), Some(response_bytes));
    }

    fn figures(&mut self, exchange: &Exchange<'_>) {
        self.figure(key!("decided_us"), exchange.decided_us);
        self.figure(key!("queued_us"), exchange.queued_us);
        self.figure(key!("connected_us"), exchange.connected_us);
        self.figure(key!("first_byte_us"), exchange.first_byte_us);
        self.figure(key!("total_us"), Some(exchange.counts.total_us));
        self.figure(key!("tries"), (exchange.tries != 0).then_some(u64::from(exchange.tries)));
        self.flag(key!("reused"), exchange.reused);
        self.word(key!("hedge"), exchange.hedge.map(|hedge| hedge.name().as_bytes()));
        self.bytes(key!("other_server"), exchange.other_server);
        self.flag(key!("over_budget"), exchange.over_budget.then_some(true));
    }

    fn words(&mut self, exchange: &Exchange<'_>) {
        if !exchange.tags.is_empty() {
            self.key(&key!("tags"));
            for (index, tag) in exchange.tags.iter().enumerate() {
                self.0.push(if index == 0 { b'[' } else { b',' });
                push_string(self.0, tag.as_bytes());
            }
            self.0.push(b']');
        }
        if let Some(trace) = exchange.trace {
            self.key(&key!("trace"));
            self.0.push(b'"');
            push_hex(self.0, &trace.trace);
            self.0.push(b'"');
        }
        self.text(key!("error"), exchange.error);
    }

    #[inline]
    fn key(&mut self, key: &Key) {
        self.0.extend_from_slice(if PAIRS { key.pair } else { key.json });
    }

    #[inline]
    fn text(&mut self, key: Key, value: Option<&str>) {
        self.bytes(key, value.map(str::as_bytes));
    }

    #[inline]
    fn bytes(&mut self, key: Key, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.key(&key);
            push_string(self.0, value);
        }
    }

    /// A text of ours: nothing in it needs an escape.
    #[inline]
    fn word(&mut self, key: Key, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.key(&key);
            self.0.push(b'"');
            self.0.extend_from_slice(value);
            self.0.push(b'"');
        }
    }

    /// What is JSON already.
    #[inline]
    fn json(&mut self, key: Key, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.key(&key);
            self.0.extend_from_slice(value);
        }
    }

    #[inline]
    fn flag(&mut self, key: Key, flag: Option<bool>) {
        self.json(key, flag.map(|flag| if flag { &b"true"[..] } else { b"false" }));
    }

    #[inline]
    fn figure(&mut self, key: Key, value: Option<u64>) {
        if let Some(value) = value {
            self.key(&key);
            push_number(self.0, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Hedge;
    use crate::family::{ListenerMetrics, ServerMetrics};
    use crate::style::Sample;
    use crate::trace::Tracer;

    #[test]
    fn all_facts() {
        let listener = ListenerMetrics::new("shop", 1);
        let server = ServerMetrics::new("fast", "server1", 1);
        let parent = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let trace = Tracer::new(Sample::ALL, 1).begin(Some(parent), true);
        let exchange = Exchange {
            counts: Counts {
                listener: &listener,
                server: Some(&server),
                rule: None,
                is_connection: false,
                is_failed: false,
                status: 200,
                request_bytes: 120,
                response_bytes: 1300,
                total_us: 1200,
            },
            now_us: 0,
            peer: Some((b"127.0.0.1", 5555)),
            client_ip: Some(b"127.0.0.1"),
            tls: Some("1.3"),
            sni: Some("a.example"),
            method: Some(b"GET"),
            host: Some(b"a.example"),
            path: Some(b"/x"),
            query: Query::Text(b"a=\"b"),
            version: Some("1.1"),
            referer: None,
            user_agent: None,
            content_type: Some(b"application/json"),
            content_length: Some(31),
            has_body: Some(true),
            rule: Some(b"R1"),
            unknown: Some(b"malformed"),
            limit: Some(b"api"),
            mirror: Some(b"shadow"),
            pool: Some(b"fast"),
            decided_us: Some(3),
            connected_us: Some(120),
            first_byte_us: Some(800),
            tries: 1,
            reused: Some(true),
            queued_us: Some(90),
            hedge: Some(Hedge::Won),
            other_server: Some(b"server2"),
            over_budget: true,
            tags: &["gold".into(), "a\"b".into()],
            error: Some("…"),
            trace: Some(&trace),
        };
        let mut out = Vec::new();
        push_line(&mut out, b"2026-11-21T02:17:54.123Z", &exchange);
        let expected = concat!(
            r#"{"time":"2026-11-21T02:17:54.123Z","listener":"shop","client":"127.0.0.1:5555","#,
            r#""client_ip":"127.0.0.1","tls":"1.3","sni":"a.example","method":"GET","host":"a.example","#,
            r#""path":"/x","query":"a=\"b","version":"1.1","content_type":"application/json","#,
            r#""content_length":31,"body":true,"rule":"R1","unknown":"malformed","limit":"api","mirror":"shadow","pool":"fast","#,
            r#""server":"server1","status":200,"#,
            r#""request_bytes":120,"response_bytes":1300,"decided_us":3,"queued_us":90,"connected_us":120,"#,
            r#""first_byte_us":800,"total_us":1200,"tries":1,"reused":true,"hedge":"won","other_server":"server2","#,
            r#""over_budget":true,"tags":["gold","a\"b"],"#,
            "\"trace\":\"4bf92f3577b34da6a3ce929d0e0e4736\",",
            "\"error\":\"…\"}\n",
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn absent_facts_are_left_out() {
        let listener = ListenerMetrics::new("the \"shop\"", 1);
        let exchange = Exchange {
            peer: Some((b"::1", 5555)),
            client_ip: Some(b"2001:db8::1"),
            query: Query::Absent,
            has_body: Some(false),
            ..Exchange::new(Counts::new(&listener))
        };
        let mut out = Vec::new();
        push_line(&mut out, b"T", &exchange);
        let expected = concat!(
            r#"{"time":"T","listener":"the \"shop\"","client":"[::1]:5555","client_ip":"2001:db8::1","#,
            r#""query":null,"body":false,"request_bytes":0,"response_bytes":0,"total_us":0}"#,
            "\n",
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
