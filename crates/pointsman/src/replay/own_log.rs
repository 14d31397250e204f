//! Lines of the switch's own access log: JSON, facts that are not known left out.

use pointsman_http::Version;
use serde_json::{Map, Value};

use super::record::{Client, Content, Decided, Format, Host, Query, Record, Request, Target, Tls};

const NOT_OURS: &str = "it is JSON, but no line of an access log";

pub(super) fn read(line: &[u8]) -> Result<Record, &'static str> {
    let Ok(Value::Object(facts)) = serde_json::from_slice(line) else { return Err("it is no JSON") };
    let listener = text(&facts, "listener")?.ok_or(NOT_OURS)?;
    let client = match text(&facts, "client")?.ok_or(NOT_OURS)? {
        "unix:" => Client::Unix,
        end => Client::Port(end.parse().map_err(|_| "its `client` is no address with a port")?),
    };
    let client_ip = text(&facts, "client_ip")?.map(str::parse).transpose();
    let request = match text(&facts, "method")? {
        Some(method) => Some(request(&facts, method)?),
        None => None,
    };
    let sni = text(&facts, "sni")?.map(str::to_owned);
    let tls = match (text(&facts, "tls")?, &request) {
        (Some(version), _) => Tls::Spoken(version_of(version)?, sni),
        (None, Some(_)) => Tls::Plain,
        (None, None) => Tls::Hello(sni),
    };
    Ok(Record {
        format: Format::Ours,
        listener: Some(listener.to_owned()),
        client,
        client_ip: client_ip.map_err(|_| "its `client_ip` is no address")?,
        tls,
        request,
        decided: decided(&facts)?,
    })
}

/// A fact that is a text; nothing where it is not known.
fn text<'f>(facts: &'f Map<String, Value>, key: &str) -> Result<Option<&'f str>, &'static str> {
    match facts.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(NOT_OURS),
    }
}

fn request(facts: &Map<String, Value>, method: &str) -> Result<Request, &'static str> {
    let path = text(facts, "path")?.ok_or("it has a `method` and no `path`")?;
    let version = match text(facts, "version")? {
        Some("1.0") => Some(Version::Http10),
        Some("1.1") => Some(Version::Http11),
        Some("2") => Some(Version::Http2),
        _ => None,
    };
    Ok(Request {
        method: method.as_bytes().to_vec(),
        target: Target::Path(path.as_bytes().to_vec()),
        query: query(facts)?,
        content: content(facts)?,
        version,
        host: Host::Known(text(facts, "host")?.map(|host| host.as_bytes().to_vec())),
        headers: Vec::new(),
    })
}

/// `null` where there was none; nothing where the log leaves queries out.
fn query(facts: &Map<String, Value>) -> Result<Query, &'static str> {
    if facts.get("query") == Some(&Value::Null) {
        return Ok(Query::Known(None));
    }
    Ok(match text(facts, "query")? {
        // Bytes that are no text are lost in JSON.
        Some(query) if !query.contains(char::REPLACEMENT_CHARACTER) => {
            Query::Known(Some(query.as_bytes().to_vec()))
        }
        _ => Query::Unknown,
    })
}

/// Nothing in a log that does not say whether there was a body.
fn content(facts: &Map<String, Value>) -> Result<Option<Content>, &'static str> {
    let has_body = match facts.get("body") {
        None => return Ok(None),
        Some(Value::Bool(has_body)) => *has_body,
        Some(_) => return Err(NOT_OURS),
    };
    let length = match facts.get("content_length") {
        None => None,
        Some(length) => Some(length.as_u64().ok_or(NOT_OURS)?),
    };
    let media_type = text(facts, "content_type")?.map(|name| name.as_bytes().to_vec());
    Ok(Some(Content { media_type, length, has_body }))
}

fn version_of(version: &str) -> Result<&'static str, &'static str> {
    let known = ["1.3", "1.2", "1.1", "1.0"].into_iter().find(|known| *known == version);
    known.ok_or("its `tls` is no version of TLS")
}

/// What the rules said, where they were asked.
fn decided(facts: &Map<String, Value>) -> Result<Option<Decided>, &'static str> {
    let Some(rule) = text(facts, "rule")? else { return Ok(None) };
    let status = facts.get("status").and_then(Value::as_u64);
    Ok(Some(Decided {
        rule: rule.to_owned(),
        pool: text(facts, "pool")?.map(str::to_owned),
        server: text(facts, "server")?.map(str::to_owned),
        status: status.and_then(|status| u16::try_from(status).ok()),
        unknown: text(facts, "unknown")?.map(str::to_owned),
        has_error: facts.contains_key("error"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_that_rules_ask_for_is_read() {
        let line = r#"{"time":"2026-11-21T02:17:54.123Z","listener":"shop","client":"[2001:db8::7]:5555",
            "client_ip":"192.0.2.7","tls":"1.3","sni":"shop.example","method":"GET","host":"shop.example",
            "path":"/x","query":"a=b","version":"2","content_type":"text/xml","content_length":5,"body":true,"rule":"R1","unknown":"limit","pool":"standard","server":"big","status":200,
            "request_bytes":120,"response_bytes":1300,"total_us":1200,"tags":["gold"],"error":"…"}"#;
        let record = read(line.as_bytes()).expect("a line of ours");
        let expected = Record {
            format: Format::Ours,
            listener: Some("shop".to_owned()),
            client: Client::Port("[2001:db8::7]:5555".parse().expect("an address")),
            client_ip: "192.0.2.7".parse().ok(),
            tls: Tls::Spoken("1.3", Some("shop.example".to_owned())),
            request: Some(Request {
                method: b"GET".to_vec(),
                target: Target::Path(b"/x".to_vec()),
                query: Query::Known(Some(b"a=b".to_vec())),
                content: Some(Content {
                    media_type: Some(b"text/xml".to_vec()),
                    length: Some(5),
                    has_body: true,
                }),
                version: Some(Version::Http2),
                host: Host::Known(Some(b"shop.example".to_vec())),
                headers: Vec::new(),
            }),
            decided: Some(Decided {
                rule: "R1".to_owned(),
                pool: Some("standard".to_owned()),
                server: Some("big".to_owned()),
                status: Some(200),
                unknown: Some("limit".to_owned()),
                has_error: true,
            }),
        };
        assert_eq!(record, expected);
        assert_eq!(record.summary(), "GET shop.example/x from 192.0.2.7");
    }

    #[test]
    fn what_is_left_out_is_not_made_up() {
        let bare = read(br#"{"listener":"a","client":"unix:"}"#).expect("a line of ours");
        assert_eq!((bare.client, bare.tls, bare.request), (Client::Unix, Tls::Hello(None), None));
        assert_eq!(bare.decided, None);
        let plain = br#"{"listener":"a","client":"10.0.0.1:5","method":"GET","path":"*"}"#;
        let plain = read(plain).expect("a line of ours");
        assert_eq!(plain.tls, Tls::Plain);
        let request = plain.request.expect("it has one");
        assert_eq!((request.host, request.version), (Host::Known(None), None));
        assert_eq!((request.query, request.content), (Query::Unknown, None));
        let bare =
            br#"{"listener":"a","client":"10.0.0.1:5","method":"GET","path":"/","query":null,"body":false}"#;
        let request = read(bare).expect("a line of ours").request.expect("it has one");
        let content = Content { media_type: None, length: None, has_body: false };
        assert_eq!((request.query, request.content), (Query::Known(None), Some(content)));
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "{",
            "{}",
            "[1]",
            r#"{"listener":"a"}"#,
            r#"{"listener":1,"client":"unix:"}"#,
            r#"{"listener":"a","client":"10.0.0.1"}"#,
            r#"{"listener":"a","client":"unix:","client_ip":"x"}"#,
            r#"{"listener":"a","client":"unix:","method":"GET"}"#,
            r#"{"listener":"a","client":"unix:","tls":"2"}"#,
            r#"{"listener":"a","client":"unix:","rule":1}"#,
            r#"{"listener":"a","client":"unix:","method":"GET","path":"/","body":1}"#,
            r#"{"listener":"a","client":"unix:","method":"GET","path":"/","body":true,"content_length":-1}"#,
            r#"{"listener":"a","client":"unix:","method":"GET","path":"/","query":1}"#,
            r#"{"remote_addr":"10.0.0.1","request":"GET / HTTP/1.1"}"#,
        ] {
            assert!(read(line.as_bytes()).is_err(), "{line}");
        }
        let deep = format!("{}{}", r#"{"a":"#, "[".repeat(60_000));
        assert!(read(deep.as_bytes()).is_err());
    }
}
