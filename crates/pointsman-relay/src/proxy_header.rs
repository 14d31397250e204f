//! What a server is told by a PROXY header of whose requests a connection carries.

use pointsman_config::ProxyVersion;
use pointsman_net::{TlsClaim, TlsSession, write_header_v1, write_header_v2};
use pointsman_view::{Connection, HelloFacts, Proxied};

/// The header for a client's connection, and the hello that it goes on with where TLS is its server's.
pub(crate) fn proxy_header(
    version: ProxyVersion,
    connection: &Connection,
    hello: Option<&HelloFacts>,
) -> Vec<u8> {
    let ends = match connection.proxied.as_deref() {
        Some(Proxied::Unknown) => None,
        Some(Proxied::Client(_)) | None => connection.sender().zip(connection.dst),
    };
    match version {
        ProxyVersion::V1 => write_header_v1(ends),
        ProxyVersion::V2 => {
            let claim = match hello {
                Some(hello) => Some(TlsClaim {
                    sni: hello.sni.as_deref(),
                    // Which of several the server takes nobody knows yet.
                    alpn: if let [alone] = &hello.alpn[..] { Some(alone) } else { None },
                    session: None,
                }),
                None => connection.tls.as_ref().map(|tls| TlsClaim {
                    sni: tls.sni.as_deref(),
                    alpn: tls.alpn.as_deref(),
                    session: Some(TlsSession {
                        version: tls.version,
                        cipher: tls.cipher,
                        is_resumed: tls.resumed,
                        has_certificate: tls.client.is_some(),
                    }),
                }),
            };
            write_header_v2(ends, claim.as_ref())
        }
    }
}
