//! Networks of IPv4-mapped IPv6 addresses.

use ipnet::{IpNet, Ipv4Net};

/// A network of IPv4-mapped addresses as the IPv4 network it stands for: a mapped address counts as IPv4, so
/// that a network left in that form would never have a member. Every other network as it is.
///
/// # Errors
/// The network, where its address is mapped and its prefix is shorter than that of all mapped addresses: it
/// would hold some addresses as IPv4 and some as IPv6.
pub fn unmapped(network: IpNet) -> Result<IpNet, IpNet> {
    let IpNet::V6(v6) = network else { return Ok(network) };
    let Some(address) = v6.addr().to_ipv4_mapped() else { return Ok(network) };
    let bits = v6.prefix_len().checked_sub(96).ok_or(network)?;
    Ipv4Net::new(address, bits).map(IpNet::V4).map_err(|_| network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_networks_are_ipv4_networks() {
        for (written, expected) in [
            ("::ffff:10.0.0.0/104", Some("10.0.0.0/8")),
            ("::ffff:10.0.0.1/128", Some("10.0.0.1/32")),
            ("::ffff:0.0.0.0/96", Some("0.0.0.0/0")),
            ("::ffff:10.0.0.0/95", None),
            ("2001:db8::/32", Some("2001:db8::/32")),
            ("::/0", Some("::/0")),
            ("10.0.0.0/8", Some("10.0.0.0/8")),
        ] {
            let network: IpNet = written.parse().expect("a network");
            let expected = expected.map(|text| text.parse().expect("a network"));
            assert_eq!(unmapped(network).ok(), expected, "{written}");
        }
    }
}
