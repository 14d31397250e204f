//! The line that an exchange leaves in the access log: one JSON object, absent facts left out.

use std::io::Write;

use crate::event::Exchange;
use crate::json::{push_number, push_string};

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
        push_key(out, "tags");
        for (index, tag) in exchange.tags.iter().enumerate() {
            out.push(if index == 0 { b'[' } else { b',' });
            push_string(out, tag.as_bytes());
        }
        out.push(b']');
    }
    push_text(out, "error", exchange.error);
    out.extend_from_slice(b"}\n");
}

fn push_client(out: &mut Vec<u8>, exchange: &Exchange<'_>) {
    push_text(out, "listener", Some(exchange.listener.name()));
    push_key(out, "client");
    write!(out, "\"{}\"", exchange.client).expect("memory takes all bytes");
    push_key(out, "client_ip");
    write!(out, "\"{}\"", exchange.client_ip).expect("memory takes all bytes");
    push_text(out, "tls", exchange.tls);
    push_text(out, "sni", exchange.sni);
}

fn push_request(out: &mut Vec<u8>, exchange: &Exchange<'_>) {
    push_bytes(out, "method", exchange.method);
    push_bytes(out, "host", exchange.host);
    push_bytes(out, "path", exchange.path);
    push_text(out, "version", exchange.version);
}

fn push_way(out: &mut Vec<u8>, exchange: &Exchange<'_>) {
    push_text(out, "rule", exchange.rule);
    push_text(out, "pool", exchange.pool);
    push_text(out, "server", exchange.server.map(|server| server.name()));
}

fn push_figures(out: &mut Vec<u8>, exchange: &Exchange<'_>) {
    push_figure(out, "status", (exchange.status != 0).then_some(u64::from(exchange.status)));
    push_figure(out, "request_bytes", Some(exchange.request_bytes));
    push_figure(out, "response_bytes", Some(exchange.response_bytes));
    push_figure(out, "decided_us", exchange.decided_us);
    push_figure(out, "connected_us", exchange.connected_us);
    push_figure(out, "first_byte_us", exchange.first_byte_us);
    push_figure(out, "total_us", Some(exchange.total_us));
    push_figure(out, "tries", (exchange.tries != 0).then_some(u64::from(exchange.tries)));
    if let Some(reused) = exchange.reused {
        push_key(out, "reused");
        out.extend_from_slice(if reused { b"true" } else { b"false" });
    }
}

fn push_text(out: &mut Vec<u8>, key: &str, value: Option<&str>) {
    push_bytes(out, key, value.map(str::as_bytes));
}

fn push_bytes(out: &mut Vec<u8>, key: &str, value: Option<&[u8]>) {
    if let Some(value) = value {
        push_key(out, key);
        push_string(out, value);
    }
}

fn push_figure(out: &mut Vec<u8>, key: &str, value: Option<u64>) {
    if let Some(value) = value {
        push_key(out, key);
        push_number(out, value);
    }
}

/// Keys are our own words, so nothing in them needs an escape.
fn push_key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
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
            listener: &listener,
            now_us: 0,
            client: "127.0.0.1:5555".parse().unwrap(),
            client_ip: "127.0.0.1".parse().unwrap(),
            tls: Some("1.3"),
            sni: Some("a.example"),
            method: Some(b"GET"),
            host: Some(b"a.example"),
            path: Some(b"/x"),
            version: Some("1.1"),
            rule: Some("R1"),
            pool: Some("fast"),
            server: Some(&server),
            status: 200,
            request_bytes: 120,
            response_bytes: 1300,
            decided_us: Some(3),
            connected_us: Some(120),
            first_byte_us: Some(800),
            total_us: 1200,
            tries: 1,
            reused: Some(true),
            tags: &["gold", "a\"b"],
            error: Some("…"),
        };
        let mut out = Vec::new();
        push_line(&mut out, b"2026-11-21T02:17:54.123Z", &exchange);
        let expected = concat!(
            r#"{"time":"2026-11-21T02:17:54.123Z","listener":"shop","client":"127.0.0.1:5555","#,
            r#""client_ip":"127.0.0.1","tls":"1.3","sni":"a.example","method":"GET","host":"a.example","#,
            r#""path":"/x","version":"1.1","rule":"R1","pool":"fast","server":"server1","status":200,"#,
            r#""request_bytes":120,"response_bytes":1300,"decided_us":3,"connected_us":120,"#,
            r#""first_byte_us":800,"total_us":1200,"tries":1,"reused":true,"tags":["gold","a\"b"],"#,
            "\"error\":\"…\"}\n",
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn absent_facts_are_left_out() {
        let listener = ListenerMetrics::new("shop", 1);
        let exchange = Exchange {
            client: "[::1]:5555".parse().unwrap(),
            client_ip: "2001:db8::1".parse().unwrap(),
            ..Exchange::new(&listener)
        };
        let mut out = Vec::new();
        push_line(&mut out, b"T", &exchange);
        let expected = concat!(
            r#"{"time":"T","listener":"shop","client":"[::1]:5555","client_ip":"2001:db8::1","#,
            r#""request_bytes":0,"response_bytes":0,"total_us":0}"#,
            "\n",
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
