//! How values are written inside strings: addresses, networks, names, keys.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use pointsman_rules::unmapped;
use pointsman_telemetry::Sample;
use pointsman_view::{Server, Servers};

/// Why a string was refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// In a sentence.
    pub(crate) message: String,
    /// What to write instead.
    pub(crate) help: String,
}

/// Where a server listens, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerAddress {
    /// An address and a port.
    Socket(SocketAddr),
    /// A host name and a port.
    Host(String, u16),
    /// The name of a service, whose records say where its servers listen.
    Service(String),
}

/// The name of a listener or pool.
pub(crate) fn name(text: &str) -> Result<String, Refusal> {
    checked_name(text, "-_", "letters, digits, `-` and `_`")
}

/// The name of a server.
pub(crate) fn server_name(text: &str) -> Result<String, Refusal> {
    checked_name(text, "-_.", "letters, digits, `-`, `_` and `.`")
}

/// Names stand in logs, metrics, cookies and rules, and must need no quoting in any of them.
fn checked_name(text: &str, marks: &str, allowed: &str) -> Result<String, Refusal> {
    const LENGTH_MAX: usize = 64;
    let well_formed = text.chars().all(|letter| letter.is_ascii_alphanumeric() || marks.contains(letter));
    if !text.is_empty() && text.len() <= LENGTH_MAX && well_formed {
        return Ok(text.to_owned());
    }
    refuse(text, "a name", format!("names are made of 1 to {LENGTH_MAX} {allowed}"))
}

/// `common`, `literal`, or the name of a server.
pub(crate) fn readings(text: &str) -> Result<Servers, Refusal> {
    match text {
        "common" => return Ok(Servers::default()),
        "literal" => return Ok(Servers::NONE),
        _ => {}
    }
    let server = Server::ALL.into_iter().find(|server| server.name() == text);
    server.map(|server| Servers::NONE.with(server)).ok_or_else(|| Refusal {
        message: format!("`{text}` is not a known reading"),
        help:
            "write `common`, `literal`, or servers: `go`, `python`, `php`, `node`, `dotnet`, `java`, `nginx`"
                .to_owned(),
    })
}

/// A path. What is there is seen when it is read.
pub(crate) fn path(text: &str) -> Result<String, Refusal> {
    match text {
        "" => Err(Refusal { message: "the path is empty".to_owned(), help: "name a file".to_owned() }),
        text if text.contains('\0') => refuse(text, "a path", "a path has no zero byte in it"),
        text => Ok(text.to_owned()),
    }
}

/// A place to listen on, before the folder of a relative path is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BindAddress {
    /// An address; an IPv4-mapped one is IPv4.
    Socket(SocketAddr),
    /// A path.
    Unix(String),
}

/// What a peer is believed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trusted {
    /// Its address.
    Network(IpNet),
    /// That it came to a Unix socket.
    Unix,
}

const UNIX: &str = "unix:";

/// A place to listen on: an address, or a path behind `unix:`.
pub(crate) fn bind(text: &str) -> Result<BindAddress, Refusal> {
    const HELP: &str =
        "write an IP address and a port, as in `0.0.0.0:8443` or `[::]:8443`, or `unix:` and a path";
    if let Some(path) = text.strip_prefix(UNIX) {
        return self::path(path).map(BindAddress::Unix);
    }
    match text.parse() {
        Ok(SocketAddr::V6(address)) if address.ip().to_ipv4_mapped().is_some() => {
            Ok(BindAddress::Socket(SocketAddr::new(address.ip().to_canonical(), address.port())))
        }
        Ok(address) => Ok(BindAddress::Socket(address)),
        Err(_) => refuse(text, "an address to listen on", HELP),
    }
}

/// Permissions, as `chmod` takes them.
pub(crate) fn unix_mode(text: &str) -> Result<u32, Refusal> {
    let is_octal = (3..=4).contains(&text.len()) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    match u32::from_str_radix(text, 8) {
        Ok(mode @ 0..=0o777) if is_octal => Ok(mode),
        _ => refuse(
            text,
            "a mode of a file",
            "write three octal digits, as in `0660`: owner, group and others",
        ),
    }
}

/// A peer to believe: a network, an address, or `unix:`.
pub(crate) fn trusted(text: &str) -> Result<Trusted, Refusal> {
    if text == UNIX { Ok(Trusted::Unix) } else { network(text).map(Trusted::Network) }
}

/// An address to listen on.
pub(crate) fn bind_address(text: &str) -> Result<SocketAddr, Refusal> {
    const HELP: &str = "write an IP address and a port, as in `0.0.0.0:8443` or `[::]:8443`";
    text.parse().or_else(|_| refuse(text, "an address to listen on", HELP))
}

/// Where a web page comes from, as browsers write it (RFC 6454 section 6.2).
pub(crate) fn origin(text: &str) -> Result<Box<str>, Refusal> {
    const HELP: &str =
        "write a scheme, a host and a port unless it is the usual one, as in `https://console.example`";
    let lower = text.to_ascii_lowercase();
    let host = ["http://", "https://"].iter().find_map(|scheme| lower.strip_prefix(scheme));
    let is_origin = host.is_some_and(|host| {
        let port = host.rsplit_once(':').filter(|_| !host.ends_with(']'));
        let name = port.map_or(host, |(name, _)| name);
        let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let is_host = is_host_name(name) || name.parse::<std::net::Ipv4Addr>().is_ok();
        let is_address = address.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok());
        (is_host || is_address) && port.is_none_or(|(_, port)| port.parse::<u16>().is_ok())
    });
    if is_origin { Ok(lower.into()) } else { refuse(text, "the origin of a web page", HELP) }
}

/// The address of a name server.
pub(crate) fn socket_address(text: &str) -> Result<SocketAddr, Refusal> {
    const HELP: &str = "write an IP address and a port, as in `127.0.0.53:53` or `[::1]:53`";
    let address = text.parse().ok().filter(|address: &SocketAddr| address.port() != 0);
    address.map_or_else(|| refuse(text, "the address of a name server", HELP), Ok)
}

/// An address to connect to.
pub(crate) fn server_address(text: &str) -> Result<ServerAddress, Refusal> {
    const HELP: &str = "write an address and a port, as in `127.0.0.1:9001`, `[::1]:9001` or `host:9001`";
    if let Ok(address) = text.parse::<SocketAddr>() {
        return match address.port() {
            0 => refuse(text, "the address of a server", "a server's port is from 1 to 65535"),
            _ => Ok(ServerAddress::Socket(address)),
        };
    }
    let host_and_port = text.rsplit_once(':').and_then(|(host, port)| {
        let port = port.parse::<u16>().ok().filter(|port| *port != 0)?;
        is_host_name(host).then(|| ServerAddress::Host(host.to_owned(), port))
    });
    host_and_port.map_or_else(|| refuse(text, "the address of a server", HELP), Ok)
}

/// The name of a service (RFC 2782): what it is called, how it is transported, and whose it is.
pub(crate) fn service(text: &str) -> Result<ServerAddress, Refusal> {
    const HELP: &str =
        "write `_`, what the records call it, `._tcp.` and a domain, as in `_http._tcp.shop.example`";
    match service_domain(text).is_some_and(|domain| is_host_name(domain) && is_host_name(text)) {
        true => Ok(ServerAddress::Service(text.to_owned())),
        false => refuse(text, "the name of a service", HELP),
    }
}

/// Whose service it is, by the name of that.
pub(crate) fn service_domain(name: &str) -> Option<&str> {
    let (service, rest) = name.strip_prefix('_')?.split_once('.')?;
    let (transport, domain) = rest.strip_prefix('_')?.split_once('.')?;
    (!service.is_empty() && !transport.is_empty()).then_some(domain)
}

/// A host name's last label is never a number, so a mistyped IPv4 address does not become a question to the
/// resolver.
pub(crate) fn is_host_name(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    host.len() <= 253
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && !last.is_empty()
        && !last.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name that a certificate is for.
pub(crate) fn tls_name(text: &str) -> Result<String, Refusal> {
    const HELP: &str = "write a host name or an address alone, as in `shop.example` or `192.0.2.1`";
    match text.parse::<IpAddr>().is_ok() || is_host_name(text) {
        true => Ok(text.to_owned()),
        false => refuse(text, "a name that a certificate can be for", HELP),
    }
}

/// A network, or an address as the network of it alone.
pub(crate) fn network(text: &str) -> Result<IpNet, Refusal> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.to_canonical().into());
    }
    match text.parse().map(unmapped) {
        Ok(Err(_)) => Err(Refusal {
            message: format!("`{text}` is wider than the IPv4-mapped addresses"),
            help: "write the IPv4 network, or one of at least 96 bits".to_owned(),
        }),
        Ok(Ok(network)) if network.trunc() == network => Ok(network),
        // Whether the address alone or its network was meant cannot be known.
        Ok(Ok(network)) => {
            refuse(text, "a network", format!("did you mean `{}` or `{}`?", network.trunc(), network.addr()))
        }
        Err(_) => refuse(text, "a network", "write a network or an address, as in `10.0.0.0/8` or `::1`"),
    }
}

/// 16 bytes in hex.
pub(crate) fn sticky_key(text: &str) -> Result<[u8; 16], Refusal> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|letter| letter.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let pairs = digits.unwrap_or_default();
    let bytes: Vec<u8> =
        pairs.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    <[u8; 16]>::try_from(bytes).ok().filter(|_| pairs.len() == 32).ok_or_else(|| Refusal {
        message: match text.chars().count() {
            32 => "`sticky_key` must be hex digits alone".to_owned(),
            count => format!("`sticky_key` must be 32 hex digits, and this has {count} characters"),
        },
        help: "make one with `openssl rand -hex 16`".to_owned(),
    })
}

/// The name of a protocol for ALPN.
pub(crate) fn alpn(text: &str) -> Result<String, Refusal> {
    if matches!(text, "h2" | "http/1.1") {
        return Ok(text.to_owned());
    }
    let help = "there are `h2`, which is HTTP/2, and `http/1.1`".to_owned();
    Err(Refusal { message: format!("the protocol `{text}` is not supported"), help })
}

/// The protocol that handshakes are known of.
pub(crate) const WEBSOCKET: &str = "websocket";

/// A protocol as `Upgrade` names it (RFC 9110 section 7.8).
pub(crate) fn upgrade(text: &str) -> Result<Box<str>, Refusal> {
    const HELP: &str = "write a name, or a name, `/` and a version, as in `websocket` or `foo/2`";
    let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_token = |part: &str| !part.is_empty() && part.bytes().all(is_token_byte);
    if !text.splitn(2, '/').all(is_token) {
        return refuse(text, "a protocol", HELP);
    }
    let name = text.split('/').next().unwrap_or_default();
    // Whoever tunnels them leaves the next requests to a server that never asks the rules.
    if ["h2c", "h2", "http", "tls"].iter().any(|http| name.eq_ignore_ascii_case(http)) {
        let message = format!("`{text}` is never passed on: requests inside would pass by the rules");
        return Err(Refusal { message, help: "take it out".to_owned() });
    }
    Ok(text.into())
}

/// The name of a request trailer that servers get.
pub(crate) fn trailer(text: &str) -> Result<Box<str>, Refusal> {
    const HELP: &str = "write letters, digits and `-`, as in `x-checksum`";
    let name = text.to_ascii_lowercase();
    if !pointsman_http::is_token(name.as_bytes())
        || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        return refuse(text, "the name of a trailer", HELP);
    }
    let never = !pointsman_http::may_trail_request(name.as_bytes())
        || pointsman_http::is_kept_from_servers(name.as_bytes());
    if never {
        let message =
            format!("`{text}` never passes as a trailer: servers that merge it would route or trust by it");
        return Err(Refusal { message, help: "take it out".to_owned() });
    }
    Ok(name.into())
}

/// A share of many, in percent with at most four decimals.
pub(crate) fn sample(text: &str) -> Result<Sample, Refusal> {
    const HELP: &str = "write a percentage with at most four decimals, as in `10%` or `0.5%`";
    let millionths = || {
        let (whole, decimals) = match text.strip_suffix('%')?.split_once('.') {
            Some((whole, decimals)) if (1..=4).contains(&decimals.len()) => (whole, decimals),
            Some(_) => return None,
            None => (text.strip_suffix('%')?, ""),
        };
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let written = format!("{whole}{decimals:0<4}");
        let is_written = (1..=3).contains(&whole.len()) && is_number(&written);
        written.parse().ok().filter(|millionths| is_written && *millionths <= Sample::ALL.millionths())
    };
    millionths().map_or_else(
        || refuse(text, "a share from `0%` to `100%`", HELP),
        |millionths| Ok(Sample::per_million(millionths)),
    )
}

pub(crate) fn refuse<T>(text: &str, what: &str, help: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { message: format!("`{text}` is not {what}"), help: help.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples() {
        for (text, expected) in [
            ("100%", Some(1_000_000)),
            ("100.0000%", Some(1_000_000)),
            ("10%", Some(100_000)),
            ("0.5%", Some(5000)),
            ("0.0001%", Some(1)),
            ("012.3%", Some(123_000)),
            ("0%", Some(0)),
            ("100.0001%", None),
            ("101%", None),
            ("0.00001%", None),
            ("1000%", None),
            ("10", None),
            ("10 %", None),
            ("-1%", None),
            ("+1%", None),
            (".5%", None),
            ("5.%", None),
            ("1.2.3%", None),
            ("%", None),
            ("", None),
        ] {
            assert_eq!(sample(text).ok().map(Sample::millionths), expected, "{text}");
        }
    }

    #[test]
    fn server_addresses() {
        let host = |name: &str, port| ServerAddress::Host(name.to_owned(), port);
        for (text, expected) in [
            ("127.0.0.1:9001", Some(ServerAddress::Socket(([127, 0, 0, 1], 9001).into()))),
            ("[::1]:9001", "[::1]:9001".parse().ok().map(ServerAddress::Socket)),
            ("localhost:80", Some(host("localhost", 80))),
            ("a.example.:80", Some(host("a.example.", 80))),
            ("a_b-c:80", Some(host("a_b-c", 80))),
            ("127.0.0.1", None),
            ("127.0.0.1:0", None),
            ("127.0.0.256:80", None),
            ("localhost", None),
            ("localhost:", None),
            ("localhost:65536", None),
            (":80", None),
            ("::1:80", None),
            ("http://a.example:80", None),
            ("a b:80", None),
            ("", None),
        ] {
            assert_eq!(server_address(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn services() {
        for text in ["_http._tcp.shop.example", "_a._udp.b", "_web-1._tcp.shop.example."] {
            assert_eq!(service(text).ok(), Some(ServerAddress::Service(text.to_owned())), "{text}");
        }
        for text in [
            "",
            "shop.example",
            "_http.shop.example",
            "_._tcp.a",
            "_http._tcp.",
            "_http._tcp.a:80",
            "_a._b.1",
        ] {
            assert!(service(text).is_err(), "{text}");
        }
    }

    #[test]
    fn networks() {
        for (text, expected) in [
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("10.0.0.1", Some("10.0.0.1/32")),
            ("::1", Some("::1/128")),
            ("::ffff:10.0.0.0/104", Some("10.0.0.0/8")),
            ("::ffff:10.0.0.1", Some("10.0.0.1/32")),
            ("::ffff:10.0.0.0/95", None),
            ("::ffff:10.0.0.1/104", None),
            ("10.0.0.1/8", None),
            ("10.0.0.0/33", None),
            ("ten", None),
        ] {
            assert_eq!(network(text).ok().map(|network| network.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn tls_names() {
        for text in ["shop.example", "a_b", "192.0.2.1", "::1"] {
            assert!(tls_name(text).is_ok(), "{text}");
        }
        for text in ["", "shop.example:443", "[::1]", "*.shop.example", "https://shop.example", "192.0.2.256"]
        {
            assert!(tls_name(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sticky_keys() {
        let key = sticky_key("000102030405060708090a0B0C0D0E0f").ok();
        assert_eq!(key, Some([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]));
        for text in ["", "00", "000102030405060708090a0B0C0D0E0", "000102030405060708090a0B0C0D0E0fff", "zz"]
        {
            assert!(sticky_key(text).is_err(), "{text}");
        }
        // 31 digits make 16 bytes too, the last of one digit.
        assert!(sticky_key(&"1".repeat(31)).is_err());
    }

    #[test]
    fn origins() {
        for (text, expected) in [
            ("https://Console.example", Some("https://console.example")),
            ("http://127.0.0.1:9090", Some("http://127.0.0.1:9090")),
            ("http://[::1]:9090", Some("http://[::1]:9090")),
            ("http://[::1]", Some("http://[::1]")),
            ("console.example", None),
            ("https://console.example/", None),
            ("https://console.example:x", None),
            ("https://*.example", None),
            ("https://", None),
            ("null", None),
            ("*", None),
        ] {
            assert_eq!(origin(text).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn names() {
        assert!(name("shop_2-a").is_ok());
        for text in ["", "a.b", "a b", "größe", "a\nb"] {
            assert!(name(text).is_err(), "{text}");
        }
        assert!(server_name("web1.example").is_ok());
        assert!(server_name(&"a".repeat(65)).is_err());
    }
}
