//! What the system says of names: `/etc/resolv.conf` and `/etc/hosts`.

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes that are read of a file; what lies behind them does not count.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// As many as the system's own resolver heeds.
const SERVERS_MAX: usize = 3;
const SEARCH_MAX: usize = 6;
const DOTS_MAX: usize = 15;

/// The port of name servers.
const PORT: u16 = 53;

/// Whom to ask, and how names are completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct System {
    pub(crate) servers: Vec<SocketAddr>,
    search: Vec<String>,
    /// A name with fewer dots is completed first.
    dots: usize,
}

impl System {
    /// As `/etc/resolv.conf` says now.
    pub(crate) fn read() -> System {
        System::of(&text("/etc/resolv.conf"))
    }

    /// These name servers, and no name is completed.
    pub(crate) fn with_servers(servers: &[SocketAddr]) -> System {
        System { servers: servers.to_vec(), search: Vec::new(), dots: 0 }
    }

    /// What `resolv.conf(5)` describes.
    fn of(text: &str) -> System {
        let mut system = System { servers: Vec::new(), search: Vec::new(), dots: 1 };
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    system.servers.extend(address.map(|address| SocketAddr::new(address, PORT)));
                }
                // The last one of them holds.
                Some("search" | "domain") => system.search = words.map(str::to_ascii_lowercase).collect(),
                Some("options") => {
                    let mut dots = words.filter_map(|word| word.strip_prefix("ndots:")?.parse().ok());
                    let dots = dots.next_back();
                    system.dots = dots.unwrap_or(system.dots).min(DOTS_MAX);
                }
                _ => {}
            }
        }
        system.servers.truncate(SERVERS_MAX);
        system.search.truncate(SEARCH_MAX);
        if system.servers.is_empty() {
            system.servers.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT));
        }
        system
    }

    /// The names that a written one may mean, in the order in which they are asked for.
    pub(crate) fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(whole) = name.strip_suffix('.') {
            return vec![whole.to_owned()];
        }
        let completed = self.search.iter().map(|domain| format!("{name}.{}", domain.trim_matches('.')));
        let mut candidates: Vec<_> = completed.collect();
        let at = if name.matches('.').count() >= self.dots { 0 } else { candidates.len() };
        candidates.insert(at, name.to_owned());
        candidates
    }
}

/// The addresses of a name in `/etc/hosts`, and of `localhost` also without that (RFC 6761 section 6.3).
pub(crate) fn known_addresses(name: &str) -> Vec<IpAddr> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let known = of_hosts(&text("/etc/hosts"), name);
    if known.is_empty() && (name == "localhost" || name.ends_with(".localhost")) {
        return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    }
    known
}

/// What `hosts(5)` describes.
fn of_hosts(text: &str, name: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let Some(address) = words.next().and_then(|word| word.parse().ok()) else { continue };
        if words.any(|word| word.eq_ignore_ascii_case(name)) && !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

/// What stands in a file; nothing where it cannot be read.
fn text(path: &str) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolv_conf() {
        let text = "# by hand\nnameserver 192.0.2.1\nnameserver fe80::1%eth0\nnameserver 2001:db8::1\n\
                    domain old.example\nsearch App.example svc.example.\noptions rotate ndots:2 timeout:1\n";
        let system = System::of(text);
        assert_eq!(system.servers, ["192.0.2.1:53".parse(), "[2001:db8::1]:53".parse()].map(Result::unwrap));
        for (name, expected) in [
            ("web", &["web.app.example", "web.svc.example", "web"][..]),
            ("web.a.b", &["web.a.b", "web.a.b.app.example", "web.a.b.svc.example"]),
            ("web.", &["web"]),
        ] {
            assert_eq!(system.candidates(name), expected, "{name}");
        }
        let nothing = System::of("");
        assert_eq!(nothing.servers, ["127.0.0.1:53".parse().unwrap()]);
        assert_eq!(nothing.candidates("web"), ["web"]);
        let many = "nameserver 192.0.2.1\n".repeat(9) + "search " + &"a ".repeat(99) + "\noptions ndots:99";
        let many = System::of(&many);
        assert_eq!((many.servers.len(), many.search.len(), many.dots), (SERVERS_MAX, SEARCH_MAX, DOTS_MAX));
    }

    #[test]
    fn hosts() {
        let text = "127.0.0.1 localhost Web # not.this\n::1 localhost\nnonsense web\n192.0.2.1\tweb web\n192.0.2.1 web";
        let addresses = |name| of_hosts(text, name).iter().map(IpAddr::to_string).collect::<Vec<_>>();
        assert_eq!(addresses("web"), ["127.0.0.1", "192.0.2.1"]);
        assert_eq!(addresses("localhost"), ["127.0.0.1", "::1"]);
        assert!(addresses("not.this").is_empty());
        assert!(!known_addresses("a.localhost.").is_empty());
    }
}
