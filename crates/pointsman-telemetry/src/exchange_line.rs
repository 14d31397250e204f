//! The line that an exchange leaves in the access log: one JSON object, absent facts left out.

use crate::event::{Counts, Exchange, Query};
use crate::json::{push_number, push_string};

/// A key as one literal, with what stands around it. Keys are our own words, so nothing in them needs an escape.
macro_rules! key {
    ($key:literal) => {
        concat!(",\"", $key, "\":").as_bytes()
    };
}

/// Appends the line of an exchange, with its line feed.
pub(crate) fn push_line(out: &mut Vec<u8>, time: &[u8], exchange: &Exchange<'_>) {
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(time);
    out.push(b'"');
    push_client(out, exchange);
    push_request(out, exchange);
    push_way(out, exchange);
    push_figures(out, exchange);
    if !exchange.tags.is_empty() {
        out.extend_from_slice(key!("tags"));
        for (index, tag) in exchange.tags.iter().enumerate() {
            out.push(if index == 0 { b'[' } else { b',' });
            push_string(out, tag.as_bytes());
        }
        out.push(b']');
    }
    push_text(out, key!("error"), exchange.error);
    out.extend_from_slice(b"}\n");
}

fn push_client(out: &mut Vec<u8>, exchange: &Exchange<'_>) {
    push_json(out, key!("listener"), Some(&exchange.counts.listener.quoted));
    out.extend_from_slice(key!("client"));
    match exchange.peer {
        Some((address, port)) => push_peer(out, address, port),
        None => out.extend_from_slice(b"\"unix:\""),
    }
    push_word(out, key!("client_ip"), exchange.client_ip);
    push_word(out, key!("tls"), exchange.tls.map(str::as_bytes));
    push_text(out, key!("sni"), exchange.sni);
}

/// `"192.0.2.7:5555"` or `"[2001:db8::7]:5555"`.
fn push_peer(out: &mut Vec<u8>, address: &[u8], port: u16) {
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

fn push_request(out: &mut Vec<u8>, exchange: &Exchange<'_>) {
    push_bytes(out, key!("method"), exchange.method);
    push_bytes(out, key!("host"), exchange.host);
    push_bytes(out, key!("path"), exchange.path);
    match exchange.query {
        Query::Unlogged => {}
        Query::Absent => push_json(out, key!("query"), Some(b"null")),
        Query::Text(query) => push_bytes(out, key!("query"), Some(query)),
    }
    push_word(out, key!("version"), exchange.version.map(str::as_bytes));
    push_bytes(out, key!("content_type"), exchange.content_type);
    push_figure(out, key!("content_length"), exchange.content_length);
    push_flag(out, key!("body"), exchange.has_body);
}

fn push_way(out: &mut Vec<u8>, exchange: &Exchange<'_>) {
    push_bytes(out, key!("rule"), exchange.rule);
    push_bytes(out, key!("unknown"), exchange.unknown);
    push_bytes(out, key!("limit"), exchange.limit);
    push_bytes(out, key!("pool"), exchange.pool);
    push_json(out, key!("server"), exchange.counts.server.map(|server| &*server.quoted));
}

fn push_figures(out: &mut Vec<u8>, exchange: &Exchange<'_>) {
    let Counts { status, request_bytes, response_bytes, total_us, .. } = exchange.counts;
    push_figure(out, key!("status"), (status != 0).then_some(u64::from(status)));
    push_figure(out, key!("request_bytes"), Some(request_bytes));
    push_figure(out, key!("response_bytes"), Some(response_bytes));
    push_figure(out, key!("decided_us"), exchange.decided_us);
    push_figure(out, key!("connected_us"), exchange.connected_us);
    push_figure(out, key!("first_byte_us"), exchange.first_byte_us);
    push_figure(out, key!("total_us"), Some(total_us));
    push_figure(out, key!("tries"), (exchange.tries != 0).then_some(u64::from(exchange.tries)));
    push_flag(out, key!("reused"), exchange.reused);
}

#[inline]
fn push_text(out: &mut Vec<u8>, key: &'static [u8], value: Option<&str>) {
    push_bytes(out, key, value.map(str::as_bytes));
}

#[inline]
fn push_bytes(out: &mut Vec<u8>, key: &'static [u8], value: Option<&[u8]>) {
    if let Some(value) = value {
        out.extend_from_slice(key);
        push_string(out, value);
    }
}

/// A text of ours: nothing in it needs an escape.
#[inline]
fn push_word(out: &mut Vec<u8>, key: &'static [u8], value: Option<&[u8]>) {
    if let Some(value) = value {
        out.extend_from_slice(key);
        out.push(b'"');
        out.extend_from_slice(value);
        out.push(b'"');
    }
}

/// What is JSON already.
#[inline]
fn push_json(out: &mut Vec<u8>, key: &'static [u8], value: Option<&[u8]>) {
    if let Some(value) = value {
        out.extend_from_slice(key);
        out.extend_from_slice(value);
    }
}

#[inline]
fn push_flag(out: &mut Vec<u8>, key: &'static [u8], flag: Option<bool>) {
    push_json(out, key, flag.map(|flag| if flag { &b"true"[..] } else { b"false" }));
}

#[inline]
fn push_figure(out: &mut Vec<u8>, key: &'static [u8], value: Option<u64>) {
    if let Some(value) = value {
        out.extend_from_slice(key);
        push_number(out, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{ListenerMetrics, ServerMetrics};

    #[test]
    fn all_facts() {
        let listener = ListenerMetrics::new("shop", 1);
        let server = ServerMetrics::new("fast", "server1", 1);
        let exchange = Exchange {
            counts: Counts {
                listener: &listener,
                server: Some(&server),
                is_connection: false,
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
            content_type: Some(b"application/json"),
            content_length: Some(31),
            has_body: Some(true),
            rule: Some(b"R1"),
            unknown: Some(b"malformed"),
            limit: Some(b"api"),
            pool: Some(b"fast"),
            decided_us: Some(3),
            connected_us: Some(120),
            first_byte_us: Some(800),
            tries: 1,
            reused: Some(true),
            tags: &["gold".into(), "a\"b".into()],
            error: Some("…"),
        };
        let mut out = Vec::new();
        push_line(&mut out, b"2026-11-21T02:17:54.123Z", &exchange);
        let expected = concat!(
            r#"{"time":"2026-11-21T02:17:54.123Z","listener":"shop","client":"127.0.0.1:5555","#,
            r#""client_ip":"127.0.0.1","tls":"1.3","sni":"a.example","method":"GET","host":"a.example","#,
            r#""path":"/x","query":"a=\"b","version":"1.1","content_type":"application/json","#,
            r#""content_length":31,"body":true,"rule":"R1","unknown":"malformed","limit":"api","pool":"fast","#,
            r#""server":"server1","status":200,"#,
            r#""request_bytes":120,"response_bytes":1300,"decided_us":3,"connected_us":120,"#,
            r#""first_byte_us":800,"total_us":1200,"tries":1,"reused":true,"tags":["gold","a\"b"],"#,
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
