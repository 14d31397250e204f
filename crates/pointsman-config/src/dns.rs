//! Names of servers: how they are looked up, and what the answers make of a plan.
//!
//! Nobody is asked here. A plan as it was loaded has names without addresses; what is known of them is joined with it
//! by [`Plan::with_answers`], at the start, at a reload, and whenever an answer changes.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::limits::DnsLimits;
use crate::notation;
use crate::section::Section;
use crate::{Member, Plan, Pool, Server, Service};

/// How names are looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DnsSettings {
    /// Who is asked; those of `/etc/resolv.conf` where there are none.
    pub servers: Vec<SocketAddr>,
    /// What becomes of a name without an answer when a plan is loaded.
    pub at_start: AtStart,
    /// Which addresses count.
    pub family: Family,
    /// Times and sizes.
    pub limits: DnsLimits,
}

/// What becomes of a name that has no answer when a plan is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtStart {
    /// The plan is refused.
    #[default]
    Refuse,
    /// Its servers get nothing until there is one.
    Wait,
}

/// Which addresses of a name count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Those of IPv4; those of IPv6 where there is none of IPv4.
    #[default]
    Any,
    /// Those of IPv4.
    Ipv4,
    /// Those of IPv6.
    Ipv6,
    /// Those of IPv4, and behind them those of IPv6.
    Both,
}

/// What is asked about a name. It is in lower case; a dot at its end says that nothing is to be put behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lookup {
    /// Its addresses (A and AAAA, RFC 1035 and RFC 3596).
    Addresses(Arc<str>),
    /// The servers of a service (SRV, RFC 2782).
    Services(Arc<str>),
}

impl Lookup {
    /// The name.
    pub fn name(&self) -> &Arc<str> {
        let (Lookup::Addresses(name) | Lookup::Services(name)) = self;
        name
    }

    /// What it asks for, in a word.
    pub fn record(&self) -> &'static str {
        match self {
            Lookup::Addresses(_) => "address",
            Lookup::Services(_) => "service",
        }
    }
}

/// What is known of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Its addresses, at least one. What was there before stands first, in its order.
    Addresses(Vec<IpAddr>),
    /// Its servers, at least one, [in order](Member::in_order).
    Services(Vec<Member>),
}

impl Found {
    /// How much it is.
    pub fn count(&self) -> usize {
        match self {
            Found::Addresses(addresses) => addresses.len(),
            Found::Services(members) => members.len(),
        }
    }
}

/// What is known of names.
pub type Answers = HashMap<Lookup, Found>;

/// A name and a port, as the address of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    /// In lower case.
    pub name: Arc<str>,
    /// From 1 to 65535.
    pub port: u16,
}

impl Host {
    /// Where it is at the moment: the first of its addresses, which stays the first as long as it is among the answers.
    pub(crate) fn address(&self, answers: &Answers) -> Option<SocketAddr> {
        let Some(Found::Addresses(addresses)) = answers.get(&Lookup::Addresses(self.name.clone())) else {
            return None;
        };
        addresses.first().map(|address| SocketAddr::new(*address, self.port))
    }
}

/// `web.example:80`, without the dot that says that nothing is to be put behind the name.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name.strip_suffix('.').unwrap_or(&self.name), self.port)
    }
}

impl DnsSettings {
    pub(crate) fn read(section: &Section<'_>) -> DnsSettings {
        section.require_elements(
            "servers",
            "`servers` of `dns` needs at least one address",
            "name one, or leave the key out for those of `/etc/resolv.conf`",
        );
        let servers = section.parsed_list("servers", notation::socket_address);
        let settings = DnsSettings {
            servers: servers.into_iter().map(|server| server.value).collect(),
            at_start: match section.word("at_start") {
                "wait" => AtStart::Wait,
                _ => AtStart::Refuse,
            },
            family: match section.word("family") {
                "ipv4" => Family::Ipv4,
                "ipv6" => Family::Ipv6,
                "both" => Family::Both,
                _ => Family::Any,
            },
            limits: DnsLimits::read(section),
        };
        if settings.limits.ttl_ms_min > settings.limits.ttl_ms_max {
            let help = "make `ttl_ms_max` larger, or `ttl_ms_min` smaller";
            let place = if section.has("ttl_ms_min") { "ttl_ms_min" } else { "ttl_ms_max" };
            section.findings().error(section.place(place), "`ttl_ms_min` is over `ttl_ms_max`", help);
        }
        settings
    }
}

impl Plan {
    /// What has to be known of names, each once; of a service its servers are named as far as they are in the plan.
    pub fn lookups(&self) -> Vec<Lookup> {
        let mut lookups: Vec<_> = self.pools.iter().flat_map(Pool::lookups).collect();
        lookups.sort_unstable();
        lookups.dedup();
        lookups
    }

    /// The same plan with what is known of its names by now. A server of whose name nothing is known has no address.
    #[must_use]
    pub fn with_answers(&self, answers: &Answers) -> Plan {
        let pools = self.pools.iter().map(|pool| pool.with_answers(answers)).collect();
        Plan { pools, ..self.clone() }
    }
}

impl Pool {
    fn lookups(&self) -> impl Iterator<Item = Lookup> {
        let hosts = self.servers.iter().filter_map(|server| server.host.as_ref());
        let addresses = hosts.map(|host| Lookup::Addresses(host.name.clone()));
        addresses.chain(self.services.iter().map(Service::lookup))
    }

    /// Those that were written stay where they are.
    pub(crate) fn with_answers(&self, answers: &Answers) -> Pool {
        let written = self.servers.iter().filter(|server| server.service.is_none());
        let mut servers: Vec<_> = written.map(|server| server.with_answers(answers)).collect();
        self.services.iter().for_each(|service| service.join(answers, &self.servers, &mut servers));
        Pool { servers, ..self.clone() }
    }
}

impl Server {
    /// One with a name has one address at a time.
    fn with_answers(&self, answers: &Answers) -> Server {
        let Some(host) = &self.host else { return self.clone() };
        Server { address: host.address(answers), ..self.clone() }
    }
}
