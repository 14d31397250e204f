//! Connections whose requests nobody reads, as the fields that a rule can ask for.

use std::net::IpAddr;
use std::ops::ControlFlow;

use pointsman_rules::{Field, Subject, Value};

use crate::Connection;
use crate::request::{See, address, port, texts};

/// What a client says before TLS begins: nothing of it is secret, and nothing is proven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HelloFacts {
    /// The server name that it asks for, in lower case.
    pub sni: Option<String>,
    /// The application protocols that it offers, best first.
    pub alpn: Vec<Vec<u8>>,
    /// The highest version that it offers: `1.0` to `1.3`.
    pub version: Option<&'static str>,
}

/// A connection as rules see it that is passed on as it is.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionView<'a> {
    connection: &'a Connection,
    /// Absent where not even that is read.
    hello: Option<&'a HelloFacts>,
}

impl<'a> ConnectionView<'a> {
    /// A view of a connection, and of the hello that it begins with where that is read.
    pub fn new(connection: &'a Connection, hello: Option<&'a HelloFacts>) -> ConnectionView<'a> {
        ConnectionView { connection, hello }
    }

    /// `clientip`: the client of a PROXY header, otherwise the peer; `None` where that has no address.
    pub fn client_ip(&self) -> Option<IpAddr> {
        self.connection.sender().map(|sender| sender.ip().to_canonical())
    }

    /// The connection.
    pub fn connection(&self) -> &'a Connection {
        self.connection
    }
}

impl Subject for ConnectionView<'_> {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        // Whether the one who looks has seen enough concerns nobody here.
        let _seen_enough = self.each_until_break(field, see);
    }
}

impl ConnectionView<'_> {
    /// One arm a field and no catch-all: a field that is added to the language is missed here.
    fn each_until_break(&self, field: &Field, see: See<'_>) -> ControlFlow<()> {
        let connection = self.connection;
        match field {
            Field::SrcIp => address(connection.src, see),
            Field::SrcPort => port(connection.src, see),
            Field::DstIp => address(connection.dst, see),
            Field::DstPort => port(connection.dst, see),
            Field::ClientIp => self.client_ip().map(Value::Ip).into_iter().try_for_each(see),
            Field::Proto => see(Value::Text(if self.hello.is_some() { b"tls" } else { b"tcp" })),
            Field::TlsSni => texts(self.hello.and_then(|hello| hello.sni.as_deref()).map(str::as_bytes), see),
            Field::TlsVersion => texts(self.hello.and_then(|hello| hello.version).map(str::as_bytes), see),
            Field::TlsAlpn => {
                texts(self.hello.into_iter().flat_map(|hello| &hello.alpn).map(Vec::as_slice), see)
            }
            Field::Proxy(value) => texts(connection.proxy_value(*value).as_deref(), see),
            // The compiler refuses rules that ask for what only a request or a handshake has.
            Field::Scheme
            | Field::TlsCipher
            | Field::TlsResumed
            | Field::TlsClientSubject
            | Field::TlsClientSan
            | Field::TlsClientFingerprint
            | Field::TlsClientCertificate
            | Field::Method
            | Field::Host
            | Field::Url
            | Field::Path
            | Field::Query
            | Field::QueryParam(_)
            | Field::Version
            | Field::Header(_)
            | Field::Cookie(_)
            | Field::ContentType
            | Field::ContentLength
            | Field::Upgrade
            | Field::Payload(_) => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Proxied;

    fn values(view: ConnectionView<'_>, field: &Field) -> Vec<String> {
        let mut seen = Vec::new();
        view.each(field, &mut |value| {
            seen.push(match value {
                Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
                Value::Ip(address) => address.to_string(),
                Value::Integer(number) => number.to_string(),
                Value::Boolean(truth) => truth.to_string(),
                Value::Nothing | Value::Unknown(_) => format!("{value:?}"),
            });
            ControlFlow::Continue(())
        });
        seen
    }

    #[test]
    fn the_fields_of_a_connection() {
        let proxied = Proxied::Client("[::ffff:192.0.2.9]:7".parse().expect("an address"));
        let connection = Connection {
            src: "198.51.100.1:5".parse().ok(),
            dst: "198.51.100.2:443".parse().ok(),
            proxied: Some(Arc::new(proxied.into())),
            tls: None,
        };
        let hello = HelloFacts {
            sni: Some("shop.example".to_owned()),
            alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            version: Some("1.3"),
        };
        let rows: [(Field, &[&str], &[&str]); 10] = [
            (Field::SrcIp, &["198.51.100.1"], &["198.51.100.1"]),
            (Field::SrcPort, &["5"], &["5"]),
            (Field::DstIp, &["198.51.100.2"], &["198.51.100.2"]),
            (Field::DstPort, &["443"], &["443"]),
            (Field::ClientIp, &["192.0.2.9"], &["192.0.2.9"]),
            (Field::Proto, &["tcp"], &["tls"]),
            (Field::TlsSni, &[], &["shop.example"]),
            (Field::TlsAlpn, &[], &["h2", "http/1.1"]),
            (Field::TlsVersion, &[], &["1.3"]),
            (Field::Path, &[], &[]),
        ];
        for (field, unread, read) in rows {
            assert_eq!(values(ConnectionView::new(&connection, None), &field), unread, "{field}");
            assert_eq!(values(ConnectionView::new(&connection, Some(&hello)), &field), read, "{field}");
        }
    }

    #[test]
    fn a_unix_socket_has_no_address() {
        let connection = Connection { src: None, dst: None, proxied: None, tls: None };
        for field in [Field::SrcIp, Field::SrcPort, Field::DstIp, Field::DstPort, Field::ClientIp] {
            assert!(values(ConnectionView::new(&connection, None), &field).is_empty(), "{field}");
        }
    }
}
