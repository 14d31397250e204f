//! What a server is told by a PROXY header of whose requests a connection carries.

use pointsman_config::ProxyVersion;
use pointsman_net::{TlsClaim, write_header_v1, write_header_v2};
use pointsman_view::{Connection, Proxied};

/// The header for a client's connection.
pub(crate) fn proxy_header(version: ProxyVersion, connection: &Connection) -> Vec<u8> {
    let ends = match connection.proxied.as_deref() {
        Some(Proxied::Unknown) => None,
        Some(Proxied::Client(_)) | None => connection.sender().zip(connection.dst),
    };
    match version {
        ProxyVersion::V1 => write_header_v1(ends),
        ProxyVersion::V2 => {
            let claim = connection.tls.as_ref().map(|tls| TlsClaim {
                sni: tls.sni.as_deref(),
                alpn: tls.alpn.as_deref(),
                version: tls.version,
                cipher: tls.cipher,
                is_resumed: tls.resumed,
                has_certificate: tls.client.is_some(),
            });
            write_header_v2(ends, claim.as_ref())
        }
    }
}
