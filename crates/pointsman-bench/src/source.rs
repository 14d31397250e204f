//! Which of our own addresses connections come from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Addresses that connections come from, in turns: more of them have more ports together. The kernel chooses where
/// there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    first: Option<IpAddr>,
    count: u64,
}

/// A network of more addresses is used no further than this.
const ADDRESSES_MAX: u64 = 65_536;

impl Sources {
    /// The `turn`th of them.
    pub(crate) fn at(&self, turn: u64) -> Option<SocketAddr> {
        let offset = turn % self.count.max(1);
        let address = match self.first? {
            IpAddr::V4(first) => IpAddr::V4(Ipv4Addr::from_bits(first.to_bits().wrapping_add(offset as u32))),
            IpAddr::V6(first) => {
                IpAddr::V6(Ipv6Addr::from_bits(first.to_bits().wrapping_add(u128::from(offset))))
            }
        };
        Some(SocketAddr::new(address, 0))
    }

    /// How many there are; 0: the kernel chooses.
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl FromStr for Sources {
    type Err = String;

    /// An address, or a network: `127.0.0.0/8`. Of a network, its own address and the last of it are left out, where it
    /// has others.
    fn from_str(text: &str) -> Result<Sources, String> {
        let wrong = || format!("`{text}` is neither an address nor a network such as `127.0.0.0/8`");
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse::<u32>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let host_bits = bits - prefix.unwrap_or(bits).min(bits);
        if prefix.is_some_and(|prefix| prefix > bits) {
            return Err(wrong());
        }
        let all = 1_u128.checked_shl(host_bits).unwrap_or(u128::MAX);
        let (skipped, count) = if all > 2 { (1, all - 2) } else { (0, all) };
        let first = match address {
            IpAddr::V4(v4) => {
                let network = u128::from(v4.to_bits()) & !(all - 1);
                IpAddr::V4(Ipv4Addr::from_bits((network + skipped) as u32))
            }
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits((v6.to_bits() & !(all - 1)) + skipped)),
        };
        Ok(Sources { first: Some(first), count: count.min(u128::from(ADDRESSES_MAX)) as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_gives_its_addresses_in_turns() {
        let at = |text: &str, turn| {
            let sources: Sources = text.parse().expect(text);
            sources.at(turn).expect("an address").ip().to_string()
        };
        assert_eq!(at("10.1.2.3", 7), "10.1.2.3");
        assert_eq!(at("127.0.0.0/30", 0), "127.0.0.1");
        assert_eq!(at("127.0.0.0/30", 1), "127.0.0.2");
        assert_eq!(at("127.0.0.0/30", 2), "127.0.0.1");
        assert_eq!(at("127.9.9.9/8", 256), "127.0.1.1");
        assert_eq!(at("::1/128", 3), "::1");
        assert_eq!(at("fd00::/64", 1), "fd00::2");
        assert_eq!(Sources::default().at(1), None);
        for bad in ["", "x", "127.0.0.1/33", "127.0.0.1/x", "::1/129"] {
            assert!(bad.parse::<Sources>().is_err(), "{bad}");
        }
    }
}
