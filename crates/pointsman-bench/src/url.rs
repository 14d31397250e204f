//! Where a request goes.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

use serde::{Deserialize, Serialize};

use crate::Fault;

/// Whether requests go over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`.
    Http,
    /// `https`.
    Https,
}

/// An absolute `http` or `https` URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Url {
    /// Whether it is over TLS.
    pub scheme: Scheme,
    /// A name or an address; one of IPv6 without its brackets.
    pub host: String,
    /// The port, given or not.
    pub port: u16,
    /// Path and query, from the `/` on.
    pub target: String,
}

impl Url {
    /// Reads `text`. Without a scheme it is `http`; a fragment is left out, as clients do.
    pub fn parse(text: &str) -> Result<Url, Fault> {
        let wrong =
            |why: &str| Fault::new(format!("`{text}` is no URL such as `https://shop.example/`: {why}"));
        let (scheme, rest) = match text.split_once("://") {
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(("https", rest)) => (Scheme::Https, rest),
            Some((other, _)) => return Err(wrong(&format!("`{other}` is neither `http` nor `https`"))),
            None => (Scheme::Http, text),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            return Err(wrong("a user name stands in it, which would not be sent"));
        }
        let (host, port) = split_authority(authority).ok_or_else(|| wrong("it names no host"))?;
        let port = match port {
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| wrong(&format!("`{digits}` is no port")))?,
            None if scheme == Scheme::Https => 443,
            None => 80,
        };
        let target = target.split('#').next().unwrap_or_default();
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        if !target.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ' && text.contains('{')) {
            return Err(wrong("its path has characters that must be percent-encoded"));
        }
        Ok(Url { scheme, host: host.to_owned(), port, target })
    }

    /// Another path of the same server.
    pub(crate) fn with_target(&self, target: &str) -> Result<Url, Fault> {
        let authority = Url { target: String::new(), ..self.clone() };
        Url::parse(&format!("{authority}{target}"))
    }

    /// What the Host field says.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.scheme, self.port) {
            (Scheme::Http, 80) | (Scheme::Https, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// Looks the host up; the first of its addresses is the one that is measured.
    pub fn address(&self) -> Result<SocketAddr, Fault> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        found
            .map_err(|error| Fault::new(format!("cannot look up `{}`: {error}", self.host)))?
            .next()
            .ok_or_else(|| Fault::new(format!("`{}` has no address", self.host)))
    }
}

impl TryFrom<String> for Url {
    type Error = Fault;

    fn try_from(text: String) -> Result<Url, Fault> {
        Url::parse(&text)
    }
}

impl From<Url> for String {
    fn from(url: Url) -> String {
        url.to_string()
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}{}", self.authority(), self.target)
    }
}

/// The host, and the port if there is one.
fn split_authority(authority: &str) -> Option<(&str, Option<&str>)> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_host = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic());
    match rest.strip_prefix(':') {
        _ if !is_host => None,
        None => rest.is_empty().then_some((host, None)),
        port => Some((host, port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        for (text, whole, authority) in [
            ("http://a", "http://a/", "a"),
            ("a:8080/x?y=1#z", "http://a:8080/x?y=1", "a:8080"),
            ("https://a:443/", "https://a/", "a"),
            ("https://[::1]:8443?q", "https://[::1]:8443/?q", "[::1]:8443"),
        ] {
            let url = Url::parse(text).expect(text);
            assert_eq!((url.to_string().as_str(), url.authority().as_str()), (whole, authority));
        }
        let address = Url::parse("http://[::1]:81/").expect("a URL").address().expect("an address");
        assert_eq!(address, "[::1]:81".parse().expect("an address"));
        for bad in [
            "",
            "ftp://a/",
            "http:///x",
            "http://a:0/",
            "http://a:x/",
            "http://u@a/",
            "http://a/\u{e4}",
            "http://[::1",
        ] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
    }
}
