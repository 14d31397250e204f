//! Which hosts may be asked for on a connection of HTTP/2 over TLS, by the name that its client gave in the handshake. Others are
//! answered 421 (RFC 9113 section 9.1.2), unless a trusted proxy asks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pointsman_http::{RequestHead, Version};
use pointsman_view::{Connection, HOST_BYTES_MAX, normal_host};

use super::Setting;
use crate::wanted::Wanted;

/// Of certificates for more names nothing is proved.
const NAMES_MAX: usize = 64;

/// What a listener's certificates are for. By default that is not said, and may be every host.
#[derive(Clone, Default)]
pub struct Hosts(Option<Arc<Served>>);

/// Whether who named nobody, or this name, may ask for a host.
type Serves = dyn Fn(Option<&str>, &str) -> bool + Send + Sync;

struct Served {
    /// Of each certificate, what tells it from all others, and its names in lower case.
    certificates: Vec<(String, Vec<String>)>,
    serves: Box<Serves>,
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hosts").field(&self.0.as_ref().map(|served| &served.certificates)).finish()
    }
}

/// Names of handshakes, and hosts that may be asked for on their connections: conditions of one test each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directed {
    pub(crate) name: Named,
    pub(crate) host: Vec<(String, Wanted)>,
}

/// The name of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// There is none.
    Nobody,
    /// It is the host.
    Host,
    /// It is one of these.
    Among(Vec<(String, Wanted)>),
}

/// Names that a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    Exact(String),
    /// Of one label more than this.
    Wildcard(String),
}

/// What may be asked for by one name: of these slots, and of none of all.
type Allowed = (Vec<Slot>, bool);

impl Hosts {
    /// Of a listener with these certificates, each with what tells it from all others and with its names in lower case.
    pub fn new(
        certificates: Vec<(String, Vec<String>)>,
        serves: impl Fn(Option<&str>, &str) -> bool + Send + Sync + 'static,
    ) -> Hosts {
        Hosts(Some(Arc::new(Served { certificates, serves: Box::new(serves) })))
    }

    /// Whether who named nobody, or this name, may ask for a host, in lower case.
    pub(super) fn serve(&self, name: Option<&str>, host: &str) -> bool {
        self.0.as_ref().is_none_or(|served| (served.serves)(name, host))
    }

    /// All names with the hosts that may be asked for; nothing where that is not said, or is too much.
    pub(crate) fn directed(&self) -> Option<Vec<Directed>> {
        let served = self.0.as_ref()?;
        let slots = served.slots()?;
        let mut groups: BTreeMap<Allowed, Allowed> = BTreeMap::new();
        for slot in slots.iter().map(Some).chain([None]) {
            let [name, _] = served.examples(&slots, slot)?;
            let (named, takes_others) = groups.entry(served.allowed(&slots, Some(&name))?).or_default();
            match slot {
                Some(slot) => named.push(slot.clone()),
                None => *takes_others = true,
            }
        }
        let mut ways = vec![Directed { name: Named::Host, host: Vec::new() }];
        for host in texts("host", &slots, &served.allowed(&slots, None)?) {
            ways.push(Directed { name: Named::Nobody, host });
        }
        for (hosts, names) in &groups {
            for name in texts("tls.sni", &slots, names) {
                let hosts = texts("host", &slots, hosts).into_iter();
                ways.extend(hosts.map(|host| Directed { name: Named::Among(name.clone()), host }));
            }
        }
        Some(ways)
    }
}

impl Served {
    /// All names, each once; nothing where there are too many, or one cannot be written as a regex.
    fn slots(&self) -> Option<Vec<Slot>> {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        let slot = |name: &String| {
            let (plain, slot) = match name.strip_prefix("*.") {
                Some(parent) => (parent, Slot::Wildcard(parent.to_owned())),
                None => (name.as_str(), Slot::Exact(name.clone())),
            };
            plain.bytes().all(is_plain).then_some(slot)
        };
        let names = self.certificates.iter().flat_map(|(_, names)| names);
        let mut slots: Vec<Slot> = names.map(slot).collect::<Option<_>>()?;
        slots.sort();
        slots.dedup();
        (slots.len() <= NAMES_MAX).then_some(slots)
    }

    /// Two names of a slot, or of none, that are of no other.
    fn examples(&self, slots: &[Slot], slot: Option<&Slot>) -> Option<[String; 2]> {
        if let Some(Slot::Exact(name)) = slot {
            return Some([name.clone(), name.clone()]);
        }
        let name = |number: usize| match slot {
            Some(Slot::Wildcard(parent)) => format!("x{number}.{parent}"),
            _ => format!("x{number}"),
        };
        let is_exact = |name: &String| slots.contains(&Slot::Exact(name.clone()));
        let mut free = (0..).map(name).filter(|name| !is_exact(name));
        Some([free.next()?, free.next()?])
    }

    /// Whom a name may ask for; the hosts that are tried are other ones than it, where there are others.
    fn allowed(&self, slots: &[Slot], name: Option<&str>) -> Option<Allowed> {
        let serves = |slot: Option<&Slot>| {
            let [_, host] = self.examples(slots, slot)?;
            Some((self.serves)(name, &host))
        };
        let mut allowed = Vec::new();
        for slot in slots {
            if serves(Some(slot))? {
                allowed.push(slot.clone());
            }
        }
        Some((allowed, serves(None)?))
    }
}

/// Texts of a field that are of these slots, and those of none: for each of the two, conditions of one test each.
fn texts(field: &str, slots: &[Slot], (of, takes_others): &Allowed) -> Vec<Vec<(String, Wanted)>> {
    let condition = |slots: &[&Slot], wanted| (format!("{field} matches \"{}\"", regex(slots)), wanted);
    let mut texts = Vec::new();
    if !of.is_empty() {
        let of: Vec<&Slot> = of.iter().collect();
        let mut all = vec![condition(&of, Wanted::True)];
        let is_other = |slot: &&Slot| matches!(slot, Slot::Exact(_)) && !of.contains(slot);
        let others: Vec<&Slot> = slots.iter().filter(is_other).collect();
        if !others.is_empty() {
            all.push(condition(&others, Wanted::False));
        }
        texts.push(all);
    }
    if *takes_others {
        let all: Vec<&Slot> = slots.iter().collect();
        texts.push(if all.is_empty() { Vec::new() } else { vec![condition(&all, Wanted::False)] });
    }
    texts
}

fn regex(slots: &[&Slot]) -> String {
    let one = |slot: &&Slot| match slot {
        Slot::Exact(name) => name.replace('.', "[.]"),
        Slot::Wildcard(parent) => format!("[^.]*[.]{}", parent.replace('.', "[.]")),
    };
    format!("^(?:{})$", slots.iter().map(one).collect::<Vec<_>>().join("|"))
}

impl Setting {
    /// Whether a request is for the connection that it comes on. `received` is what its head was parsed from.
    #[must_use]
    pub fn is_directed(&self, head: &RequestHead, received: &[u8], connection: &Connection) -> bool {
        let Some(tls) = connection.tls.as_ref().filter(|_| head.version() == Version::Http2) else {
            return true;
        };
        let mut scratch = [0; HOST_BYTES_MAX];
        let host = normal_host(head.authority(received), &mut scratch);
        let host = host.and_then(|host| std::str::from_utf8(host).ok()).unwrap_or_default();
        self.hosts.serve(tls.sni.as_deref(), host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Certificates by name, the first for whoever has none.
    fn hosts(certificates: &'static [&'static [&'static str]]) -> Hosts {
        let named = |name: &str| {
            let parent = name.split_once('.').map(|(_, parent)| format!("*.{parent}"));
            let of = |name: &str| certificates.iter().position(|names| names.contains(&name));
            of(name).or_else(|| of(&parent?))
        };
        let listed = certificates.iter().enumerate().map(|(number, names)| {
            (number.to_string(), names.iter().map(|name| (*name).to_owned()).collect())
        });
        Hosts::new(listed.collect(), move |name, host| {
            match (name.map(|name| (name, named(name))), named(host)) {
                (Some((name, _)), _) if name == host => true,
                (Some((_, shown)), Some(wanted)) => shown.unwrap_or(0) == wanted,
                (Some(_), None) => false,
                (None, wanted) => wanted.unwrap_or(0) == 0,
            }
        })
    }

    fn shown(hosts: &Hosts) -> Vec<String> {
        let all = |conditions: &[(String, Wanted)]| {
            let one = |(condition, wanted): &(String, Wanted)| match wanted {
                Wanted::False => format!("!({condition})"),
                _ => condition.clone(),
            };
            conditions.iter().map(one).collect::<Vec<_>>().join(" && ")
        };
        let line = |Directed { name, host }: &Directed| match name {
            Named::Nobody => format!("nobody: {}", all(host)),
            Named::Host => "the host".to_owned(),
            Named::Among(name) => format!("{}: {}", all(name), all(host)),
        };
        hosts.directed().expect("it is said").iter().map(line).collect()
    }

    #[test]
    fn names_are_grouped_by_what_they_may_ask_for() {
        let expected = [
            "the host",
            r#"nobody: host matches "^(?:a[.]example|b[.]example)$""#,
            r#"nobody: !(host matches "^(?:a[.]example|b[.]example)$")"#,
            r#"tls.sni matches "^(?:a[.]example|b[.]example)$": host matches "^(?:a[.]example|b[.]example)$""#,
            r#"!(tls.sni matches "^(?:a[.]example|b[.]example)$"): host matches "^(?:a[.]example|b[.]example)$""#,
        ];
        assert_eq!(shown(&hosts(&[&["a.example", "b.example"]])), expected);
        let own_beside_wildcard = shown(&hosts(&[&["a.example"], &["*.w.example"], &["x0.w.example"]]));
        let wild = r#"tls.sni matches "^(?:[^.]*[.]w[.]example)$" && !(tls.sni matches "^(?:a[.]example|x0[.]w[.]example)$"): host matches "^(?:[^.]*[.]w[.]example)$" && !(host matches "^(?:a[.]example|x0[.]w[.]example)$")"#;
        assert!(own_beside_wildcard.contains(&wild.to_owned()), "{own_beside_wildcard:#?}");
        assert!(Hosts::default().directed().is_none());
    }
}
