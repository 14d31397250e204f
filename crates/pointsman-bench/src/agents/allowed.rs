//! Where an agent puts load, whoever asks it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use crate::Fault;

/// A target that an agent's operator allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// Anything.
    Any,
    /// Addresses that are nobody's on the internet: private, shared and link-local ones, and the loopback.
    Private,
    /// A network, or an address.
    Network(IpNet),
    /// A name, whatever its address is.
    Host(String),
}

impl Allowed {
    fn covers(&self, host: &str, address: IpAddr) -> bool {
        match self {
            Allowed::Any => true,
            Allowed::Private => is_private(address),
            Allowed::Network(network) => network.contains(&address),
            Allowed::Host(name) => name.eq_ignore_ascii_case(host),
        }
    }

    /// Whether load may go to this host, which has this address.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn check(allowed: &[Allowed], host: &str, address: IpAddr) -> Result<(), Fault> {
        let address = address.to_canonical();
        if allowed.iter().any(|allowed| allowed.covers(host, address)) {
            return Ok(());
        }
        let words: Vec<String> = allowed.iter().map(|allowed| format!("`{allowed}`")).collect();
        let fault = format!(
            "no load goes from here to `{host}` ({address}): allowed {} {}",
            if words.len() == 1 { "is" } else { "are" },
            words.join(", ")
        );
        Err(Fault::new(fault).help(format!("whoever runs the agent may start it with `--allow {host}`")))
    }
}

/// Of IPv6 the unique local addresses (RFC 4193) and those of a link, of IPv4 those of RFC 1918, 3927 and 6598 as well.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let is_shared = v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64;
            v4.is_private() || v4.is_loopback() || v4.is_link_local() || is_shared
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::Any => f.write_str("any"),
            Allowed::Private => f.write_str("private"),
            Allowed::Network(network) if network.prefix_len() == network.max_prefix_len() => {
                write!(f, "{}", network.addr())
            }
            Allowed::Network(network) => write!(f, "{network}"),
            Allowed::Host(name) => f.write_str(name),
        }
    }
}

impl FromStr for Allowed {
    type Err = String;

    /// `any`, `private`, a name, an address, or a network such as `10.0.0.0/8`.
    fn from_str(word: &str) -> Result<Allowed, String> {
        let bare = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(word);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(Allowed::Network(address.into()));
        }
        if let Ok(network) = word.parse::<IpNet>() {
            return Ok(Allowed::Network(network.trunc()));
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        match word {
            "any" => Ok(Allowed::Any),
            "private" => Ok(Allowed::Private),
            name if !name.is_empty() && name.bytes().all(is_name) => Ok(Allowed::Host(name.to_owned())),
            _ => Err(format!(
                "`--allow` takes a name, an address, a network such as `10.0.0.0/8`, `private` or `any`, not `{word}`"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_goes_where_it_may() {
        for (allowed, host, address, may) in [
            ("private", "a.example", "10.1.2.3", true),
            ("private", "a.example", "::ffff:192.168.0.1", true),
            ("private", "a.example", "100.64.0.1", true),
            ("private", "localhost", "::1", true),
            ("private", "a.example", "fd00::5", true),
            ("private", "a.example", "93.184.216.34", false),
            ("private", "a.example", "::ffff:93.184.216.34", false),
            ("private", "a.example", "2001:db8::1", false),
            ("any", "a.example", "93.184.216.34", true),
            ("a.example", "A.example", "93.184.216.34", true),
            ("a.example", "b.a.example", "10.1.2.3", false),
            ("93.184.0.0/16", "a.example", "93.184.216.34", true),
            ("10.0.0.7", "a.example", "10.0.0.8", false),
            ("[::1]", "localhost", "::1", true),
        ] {
            let rule: Allowed = allowed.parse().expect(allowed);
            let address = address.parse().expect("an address");
            let checked = Allowed::check(&[rule], host, address);
            assert_eq!(checked.is_ok(), may, "{allowed} {host} {address}");
        }
        let both = ["10.0.0.7", "10.0.0.0/8"].map(|word| word.parse().expect(word));
        let fault = Allowed::check(&both, "a.example", [9, 9, 9, 9].into()).expect_err("another");
        assert!(fault.to_string().ends_with("(9.9.9.9): allowed are `10.0.0.7`, `10.0.0.0/8`"), "{fault}");
        assert!(fault.advice().is_some_and(|help| help.contains("--allow a.example")));
        for bad in ["", "a b", "http://a/", "10.0.0.0/40", "a:80"] {
            assert!(bad.parse::<Allowed>().is_err(), "{bad}");
        }
    }
}
