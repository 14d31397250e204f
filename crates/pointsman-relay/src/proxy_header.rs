//! What a server is told by a PROXY header of whose requests a connection carries.

use pointsman_config::ProxyVersion;
use pointsman_net::{PassedOn, TlsClaim, TlsSession, write_header_v1, write_header_v2};
use pointsman_view::{Connection, HelloFacts, Proxied, ProxyFacts};

/// The header for a client's connection, and the hello that it goes on with where TLS is its server's.
pub(crate) fn proxy_header(
    version: ProxyVersion,
    connection: &Connection,
    hello: Option<&HelloFacts>,
) -> Vec<u8> {
    let proxied = connection.proxied.as_deref();
    let ends = match proxied.map(|facts| facts.client) {
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
            write_header_v2(ends, claim.as_ref(), &proxied.map(passed_on).unwrap_or_default())
        }
    }
}

/// What a proxy in front has said of the connection.
fn passed_on(facts: &ProxyFacts) -> PassedOn<'_> {
    let values = &facts.values;
    PassedOn {
        alpn: values.alpn.as_deref(),
        authority: values.authority.as_deref(),
        unique_id: values.unique_id.as_deref(),
        aws_vpce_id: values.aws_vpce_id.as_deref(),
        azure_link_id: values.azure_link_id,
    }
}
