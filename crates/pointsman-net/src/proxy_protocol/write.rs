//! Writing a header, for servers that want to know whom the switch speaks for.

use std::net::{IpAddr, SocketAddr};

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, on behalf of somebody else.
const PROXY: u8 = 0x21;
/// Version 2, on our own behalf.
const LOCAL: u8 = 0x20;

const ALPN: u8 = 0x01;
const AUTHORITY: u8 = 0x02;
const UNIQUE_ID: u8 = 0x05;
const AWS: u8 = 0xea;
const AZURE: u8 = 0xee;
/// The kind of value of either cloud that has a meaning.
const OF_ENDPOINT: u8 = 0x01;
const SSL: u8 = 0x20;
const SSL_VERSION: u8 = 0x21;
const SSL_CIPHER: u8 = 0x23;

/// The client speaks TLS; it showed a certificate on this connection; it showed one in this session.
const CLIENT_SSL: u8 = 0x01;
const CLIENT_CERT_CONN: u8 = 0x02;
const CLIENT_CERT_SESS: u8 = 0x04;

/// What version 2 says of a client's TLS.
#[derive(Clone, Copy, Debug)]
pub struct TlsClaim<'a> {
    /// The server name that the client asked for.
    pub sni: Option<&'a str>,
    /// The application protocol of the connection.
    pub alpn: Option<&'a [u8]>,
    /// Absent where TLS goes on to the server as it is.
    pub session: Option<TlsSession<'a>>,
}

/// What a handshake agreed on.
#[derive(Clone, Copy, Debug)]
pub struct TlsSession<'a> {
    /// `1.2` or `1.3`.
    pub version: &'a str,
    /// The cipher suite's name.
    pub cipher: &'a str,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// Whether it showed a certificate, which then verified.
    pub has_certificate: bool,
}

/// What the header of a proxy in front has said of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassedOn<'a> {
    /// The application protocol, unless the client's TLS ends here.
    pub alpn: Option<&'a [u8]>,
    /// The host that the client asked for, likewise.
    pub authority: Option<&'a str>,
    /// What the proxy calls the connection.
    pub unique_id: Option<&'a [u8]>,
    /// The VPC endpoint of AWS.
    pub aws_vpce_id: Option<&'a str>,
    /// The private link of Azure.
    pub azure_link_id: Option<u32>,
}

/// A header of version 1 for a connection from one address to another; without them it says that they are unknown.
/// At most 107 bytes.
pub fn write_header_v1(ends: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
    let Some((source, destination)) = ends.map(of_one_family) else { return b"PROXY UNKNOWN\r\n".to_vec() };
    let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
    let (from, to) = (source.ip(), destination.ip());
    format!("PROXY {family} {from} {to} {} {}\r\n", source.port(), destination.port()).into_bytes()
}

/// The same of version 2, with what is known of the client's TLS, and with what a proxy in front has said. At most some
/// 1000 bytes.
pub fn write_header_v2(
    ends: Option<(SocketAddr, SocketAddr)>,
    tls: Option<&TlsClaim<'_>>,
    passed: &PassedOn<'_>,
) -> Vec<u8> {
    let mut block = Vec::with_capacity(64);
    let family = match ends.map(of_one_family) {
        None => 0x00,
        Some((source, destination)) => {
            push_ip(&mut block, source.ip());
            push_ip(&mut block, destination.ip());
            block.extend(source.port().to_be_bytes());
            block.extend(destination.port().to_be_bytes());
            if source.is_ipv4() { 0x11 } else { 0x21 }
        }
    };
    match tls {
        Some(tls) => push_tls(&mut block, tls),
        None => push_names(&mut block, passed.alpn, passed.authority),
    }
    if let Some(id) = passed.unique_id {
        push(&mut block, UNIQUE_ID, id);
    }
    if let Some(id) = passed.aws_vpce_id {
        push(&mut block, AWS, &[&[OF_ENDPOINT], id.as_bytes()].concat());
    }
    if let Some(id) = passed.azure_link_id {
        push(&mut block, AZURE, &[&[OF_ENDPOINT][..], &id.to_le_bytes()].concat());
    }
    let mut header = Vec::with_capacity(16 + block.len());
    header.extend(SIGNATURE);
    header.extend([PROXY, family]);
    header.extend(length(&block).to_be_bytes());
    header.extend(block);
    header
}

/// A header of version 2 for a connection that the switch makes on its own behalf: `LOCAL`.
pub fn write_local_header_v2() -> Vec<u8> {
    [SIGNATURE.as_slice(), &[LOCAL, 0, 0, 0]].concat()
}

/// A header has one family; an IPv4 address beside one of IPv6 is written as mapped.
fn of_one_family((source, destination): (SocketAddr, SocketAddr)) -> (SocketAddr, SocketAddr) {
    match source.is_ipv4() == destination.is_ipv4() {
        true => (source, destination),
        false => (mapped(source), mapped(destination)),
    }
}

fn mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(v4) => SocketAddr::new(v4.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

fn push_ip(block: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        IpAddr::V4(v4) => block.extend(v4.octets()),
        IpAddr::V6(v6) => block.extend(v6.octets()),
    }
}

fn push_names(block: &mut Vec<u8>, alpn: Option<&[u8]>, authority: Option<&str>) {
    if let Some(alpn) = alpn {
        push(block, ALPN, alpn);
    }
    if let Some(authority) = authority {
        push(block, AUTHORITY, authority.as_bytes());
    }
}

fn push_tls(block: &mut Vec<u8>, tls: &TlsClaim<'_>) {
    push_names(block, tls.alpn, tls.sni);
    let Some(session) = &tls.session else { return };
    let certificate = match (session.has_certificate, session.is_resumed) {
        (false, _) => 0,
        (true, true) => CLIENT_CERT_SESS,
        (true, false) => CLIENT_CERT_CONN | CLIENT_CERT_SESS,
    };
    // 0: it verified; anything else: it did not, or there was none.
    let verify = u32::from(!session.has_certificate);
    let mut ssl = vec![CLIENT_SSL | certificate];
    ssl.extend(verify.to_be_bytes());
    push(&mut ssl, SSL_VERSION, format!("TLSv{}", session.version).as_bytes());
    push(&mut ssl, SSL_CIPHER, session.cipher.as_bytes());
    push(block, SSL, &ssl);
}

/// Type, length and value. What is longer than a length can say is not said; neither name nor protocol ever is.
fn push(block: &mut Vec<u8>, kind: u8, value: &[u8]) {
    if value.len() <= usize::from(u8::MAX) * 2 {
        block.push(kind);
        block.extend(length(value).to_be_bytes());
        block.extend(value);
    }
}

fn length(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeaderValues;

    const NONE: PassedOn<'_> =
        PassedOn { alpn: None, authority: None, unique_id: None, aws_vpce_id: None, azure_link_id: None };

    fn ends(source: &str, destination: &str) -> Option<(SocketAddr, SocketAddr)> {
        Some((source.parse().ok()?, destination.parse().ok()?))
    }

    #[test]
    fn lines_of_version_1() {
        for (ends, expected) in [
            // The example of the specification.
            (
                ends("192.168.0.1:56324", "192.168.0.11:443"),
                "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n",
            ),
            (ends("[2001:db8::1]:1", "[::1]:65535"), "PROXY TCP6 2001:db8::1 ::1 1 65535\r\n"),
            (ends("192.0.2.1:1", "[::1]:2"), "PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n"),
            (None, "PROXY UNKNOWN\r\n"),
        ] {
            assert_eq!(String::from_utf8_lossy(&write_header_v1(ends)), expected);
        }
        let full = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535";
        assert!(write_header_v1(ends(full, full)).len() <= 107);
    }

    #[test]
    fn addresses_of_version_2() {
        let header = write_header_v2(ends("192.0.2.1:4660", "198.51.100.2:443"), None, &NONE);
        assert_eq!(
            header,
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x02\x12\x34\x01\xbb"
        );
        let header = write_header_v2(ends("[::1]:1", "[::2]:2"), None, &NONE);
        let mut expected = b"\r\n\r\n\0\r\nQUIT\n\x21\x21\x00\x24".to_vec();
        expected.extend([[0; 15].as_slice(), &[1], &[0; 15], &[2], &[0, 1, 0, 2]].concat());
        assert_eq!(header, expected);
        assert_eq!(write_header_v2(None, None, &NONE), b"\r\n\r\n\0\r\nQUIT\n\x21\x00\x00\x00");
    }

    #[test]
    fn tls_of_version_2() {
        let session = TlsSession { version: "1.3", cipher: "X", is_resumed: false, has_certificate: false };
        let claim = TlsClaim { sni: Some("a.example"), alpn: Some(b"h2"), session: Some(session) };
        let values = |claim: &TlsClaim<'_>| write_header_v2(None, Some(claim), &NONE)[16..].to_vec();
        let said = b"\x01\x00\x02h2\x02\x00\x09a.example\x20\x00\x13\x01\x00\x00\x00\x01\x21\x00\x07TLSv1.3\x23\x00\x01X";
        assert_eq!(values(&claim), said);
        for (has_certificate, is_resumed, client, verify) in
            [(true, false, 7, 0), (true, true, 5, 0), (false, true, 1, 1)]
        {
            let session = Some(TlsSession { has_certificate, is_resumed, ..session });
            let claim = TlsClaim { sni: None, alpn: None, session };
            let values = values(&claim);
            assert_eq!((values[3], &values[4..8]), (client, &[0, 0, 0, verify][..]), "{claim:?}");
        }
        let passed = TlsClaim { session: None, ..claim };
        assert_eq!(values(&passed), b"\x01\x00\x02h2\x02\x00\x09a.example");
        let long = "a".repeat(60_000);
        let header = write_header_v2(None, Some(&TlsClaim { sni: Some(&long), ..claim }), &NONE);
        assert!(header.len() < 100, "a name that no hello can hold is left out");
    }

    #[test]
    fn what_a_proxy_in_front_has_said_is_read_again() {
        let passed = PassedOn {
            alpn: Some(b"h2"),
            authority: Some("shop.example"),
            unique_id: Some(b"id\0"),
            aws_vpce_id: Some("vpce-1"),
            azure_link_id: Some(7),
        };
        let ends = ends("192.0.2.1:4660", "198.51.100.2:443");
        let read = HeaderValues::of(&write_header_v2(ends, None, &passed));
        let expected = HeaderValues {
            alpn: Some(b"h2".to_vec()),
            authority: Some("shop.example".to_owned()),
            unique_id: Some(b"id\0".to_vec()),
            aws_vpce_id: Some("vpce-1".to_owned()),
            azure_link_id: Some(7),
        };
        assert_eq!(read, expected);
        // What the handshake says here is nearer to the client.
        let claim = TlsClaim { sni: Some("own.example"), alpn: None, session: None };
        let read = HeaderValues::of(&write_header_v2(ends, Some(&claim), &passed));
        let authority = Some("own.example".to_owned());
        assert_eq!(read, HeaderValues { authority, alpn: None, ..expected });
    }
}
