//! Every field of the language, asked of a plain and of a TLS connection.

use std::sync::Arc;

use pointsman_rules::Field;
use pointsman_view::{Connection, TlsClient, TlsFacts};

use crate::head::{connection_from, values};

fn check(connection: &Connection, request: &[u8], expected: &[(Field, &[&str])]) {
    for (field, expected) in expected {
        let found = values(connection, request, field).expect("a good request");
        assert_eq!(found, *expected, "{field:?}");
    }
}

#[test]
fn a_plain_request() {
    let request = b"POST http://Shop.Example:8080/%61/../b?q=1&q=2%20&r HTTP/1.1\r\n\
        Host: Shop.Example:8080\r\nUser-Agent: x\r\nCookie: sid=7; a=b\r\n\
        Content-Type: Text/XML; charset=utf-8\r\nContent-Length: 12\r\n\r\n";
    check(
        &connection_from("[::ffff:192.0.2.1]:40000"),
        request,
        &[
            (Field::SrcIp, &["192.0.2.1"]),
            (Field::SrcPort, &["40000"]),
            (Field::DstIp, &["192.0.2.80"]),
            (Field::DstPort, &["8080"]),
            (Field::Proto, &["http"]),
            (Field::ClientIp, &["192.0.2.1"]),
            (Field::Method, &["POST"]),
            (Field::Scheme, &["http"]),
            (Field::Host, &["shop.example"]),
            (Field::Url, &["http://Shop.Example:8080/%61/../b?q=1&q=2%20&r"]),
            (Field::Path, &["/b"]),
            (Field::Query, &["q=1&q=2%20&r"]),
            (Field::QueryParam(b"q"[..].into()), &["1", "2 "]),
            (Field::QueryParam(b"r"[..].into()), &[""]),
            (Field::QueryParam(b"s"[..].into()), &[]),
            (Field::Version, &["1.1"]),
            (Field::Header("host".into()), &["Shop.Example:8080"]),
            (Field::Header("user-agent".into()), &["x"]),
            (Field::Cookie("sid".into()), &["7"]),
            (Field::ContentType, &["text/xml"]),
            (Field::ContentLength, &["12"]),
            (Field::TlsSni, &[]),
            (Field::TlsVersion, &[]),
            (Field::TlsCipher, &[]),
            (Field::TlsAlpn, &[]),
            (Field::TlsResumed, &[]),
            (Field::TlsClientSubject, &[]),
            (Field::TlsClientSan, &[]),
            (Field::TlsClientFingerprint, &[]),
            (Field::TlsClientCertificate, &[]),
        ],
    );
}

#[test]
fn a_tls_request() {
    let mut connection = connection_from("[2001:db8::1]:40000");
    connection.tls = Some(Arc::new(TlsFacts {
        sni: Some("a.example".to_owned()),
        version: "1.3",
        cipher: "TLS_AES_128_GCM_SHA256",
        alpn: Some(b"http/1.1".to_vec()),
        resumed: false,
        client: Some(TlsClient {
            subject: "CN=shop,O=Example".to_owned(),
            sans: vec!["a.example".to_owned(), "192.0.2.9".to_owned()],
            fingerprint: "00ff".to_owned(),
            certificate: "MAA=".to_owned(),
        }),
        session: None,
    }));
    check(
        &connection,
        b"GET /? HTTP/1.0\r\n\r\n",
        &[
            (Field::SrcIp, &["2001:db8::1"]),
            (Field::Proto, &["https"]),
            (Field::Scheme, &["https"]),
            (Field::Version, &["1.0"]),
            // HTTP/1.0 without Host.
            (Field::Host, &[]),
            (Field::Query, &[""]),
            (Field::TlsSni, &["a.example"]),
            (Field::TlsVersion, &["1.3"]),
            (Field::TlsCipher, &["TLS_AES_128_GCM_SHA256"]),
            (Field::TlsAlpn, &["http/1.1"]),
            (Field::TlsResumed, &["false"]),
            (Field::TlsClientSubject, &["CN=shop,O=Example"]),
            (Field::TlsClientSan, &["a.example", "192.0.2.9"]),
            (Field::TlsClientFingerprint, &["00ff"]),
            (Field::TlsClientCertificate, &["MAA="]),
        ],
    );
}

#[test]
fn targets_of_other_forms() {
    let connection = connection_from("192.0.2.1:1");
    check(
        &connection,
        b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        &[(Field::Path, &["*"]), (Field::Url, &["*"]), (Field::Query, &[])],
    );
    // The connection says what the scheme is, whatever an absolute target claims.
    check(
        &connection,
        b"GET https://a HTTP/1.1\r\nHost: a\r\n\r\n",
        &[(Field::Path, &["/"]), (Field::Url, &["https://a"]), (Field::Scheme, &["http"])],
    );
}

#[test]
fn a_media_type_of_absurd_length_is_still_one() {
    let long = "A".repeat(5000);
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\nContent-Type: {long}\r\n\r\n");
    let lower = long.to_ascii_lowercase();
    check(&connection_from("192.0.2.1:1"), request.as_bytes(), &[(Field::ContentType, &[&lower])]);
}
