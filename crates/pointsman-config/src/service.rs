//! Services: names whose records (SRV, RFC 2782) say which servers there are.
//!
//! A pool has the servers that were written first, and behind them those that its services have at the moment. While none
//! is known of a service, it stands there itself, as a server without an address.

use std::fmt;
use std::sync::Arc;

use pointsman_balance::Level;
use pointsman_tls::Connector;

use crate::notation::is_host_name;
use crate::{Answers, Found, Host, Lookup, Server};

/// A weight that a server may have at most; those of records are made smaller in proportion.
const WEIGHT_MAX: u32 = 1000;

/// A name that stands for as many servers as its records say, and what holds for each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// In lower case.
    pub name: Arc<str>,
    /// Requests that each server may have at a time; 0: no limit.
    pub connections_max: u32,
    /// When those of the lowest priority value are asked.
    pub level: Level,
    /// Speaks TLS to them; plain HTTP when absent.
    pub tls: Option<Connector>,
}

/// A server of a service, as a record names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Those of the least value serve, the others when they cannot.
    pub priority: u16,
    /// Its share, beside those of the same priority.
    pub weight: u16,
    /// Where it listens: a whole name, with a dot at its end.
    pub host: Host,
}

impl Member {
    /// What a record says. `None`: it names no server, as one whose target is the root does (RFC 2782), or a target that
    /// no host has.
    pub fn new((priority, weight, port): (u16, u16, u16), target: &str) -> Option<Member> {
        let target = target.strip_suffix('.').unwrap_or(target).to_ascii_lowercase();
        let is_whole = target.split('.').all(|label| !label.is_empty());
        let is_target = port != 0 && is_whole && is_host_name(&target);
        let host = is_target.then(|| Host { name: format!("{target}.").into(), port })?;
        Some(Member { priority, weight, host })
    }

    /// What its address is looked up by.
    pub fn lookup(&self) -> Lookup {
        Lookup::Addresses(self.host.name.clone())
    }

    /// The members in the order in which they serve, each place once, and at most so many.
    pub fn in_order(mut members: Vec<Member>, count_max: usize) -> Vec<Member> {
        members.sort_unstable();
        let mut seen = std::collections::HashSet::new();
        members.retain(|member| seen.insert(member.host.clone()));
        members.truncate(count_max);
        members
    }
}

/// `web1.example:8080/10/5`, with the priority and the weight.
impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.host, self.priority, self.weight)
    }
}

impl Service {
    /// What its records are looked up by.
    pub fn lookup(&self) -> Lookup {
        Lookup::Services(self.name.clone())
    }

    /// Its servers as far as their addresses are known, behind those that are there; of one name the first stays. Where
    /// there is none, itself. `old` are those of before.
    pub(crate) fn join(&self, answers: &Answers, old: &[Server], servers: &mut Vec<Server>) {
        let members = match answers.get(&self.lookup()) {
            Some(Found::Services(members)) => &members[..],
            Some(Found::Addresses(_)) | None => &[],
        };
        let before = servers.len();
        let mut priorities: Vec<u16> = Vec::new();
        for member in members {
            let Some(address) = member.host.address(answers) else { continue };
            if priorities.last() != Some(&member.priority) {
                priorities.push(member.priority);
            }
            let name = member.host.to_string();
            if servers.iter().any(|known| *known.name == *name) {
                continue;
            }
            servers.push(Server {
                tls: self.tls_to(old.iter().find(|known| *known.name == *name)),
                name: name.into(),
                address: Some(address),
                host: Some(member.host.clone()),
                weight: weight(member, members),
                level: self.level.behind(u16::try_from(priorities.len() - 1).unwrap_or(u16::MAX)),
                ..self.without_members()
            });
        }
        if servers.len() == before {
            servers.push(self.without_members());
        }
    }

    /// Each has sessions of its own, and keeps them.
    fn tls_to(&self, old: Option<&Server>) -> Option<Connector> {
        let own = self.tls.as_ref()?;
        let kept = old.and_then(|old| old.tls.as_ref()).filter(|old| *old == own);
        Some(kept.cloned().unwrap_or_else(|| own.apart()))
    }

    fn without_members(&self) -> Server {
        Server {
            name: self.name.clone(),
            address: None,
            host: None,
            service: Some(self.name.clone()),
            weight: 1,
            connections_max: self.connections_max,
            level: self.level,
            tls: self.tls.clone(),
        }
    }
}

/// Beside the others of its priority. One of weight 0 "should have a very small chance of being selected", as the
/// selection in RFC 2782 gives it: one in so many as the others weigh together.
fn weight(member: &Member, members: &[Member]) -> u32 {
    let beside = members.iter().filter(|other| other.priority == member.priority);
    let most = beside.map(|other| u32::from(other.weight)).max().unwrap_or_default();
    let own = u32::from(member.weight);
    match most > WEIGHT_MAX {
        true => (own * WEIGHT_MAX).div_ceil(most).max(1),
        false => own.max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(text: &str) -> Member {
        let mut words = text.split(' ');
        let mut number = || words.next().and_then(|word| word.parse().ok()).expect("a number");
        let numbers = (number(), number(), number());
        Member::new(numbers, words.next().expect("a target")).expect("a server")
    }

    fn service(level: Level) -> Service {
        Service { name: "_http._tcp.a".into(), connections_max: 7, level, tls: None }
    }

    /// Every target has an address but `gone`.
    fn answers(members: &[&str]) -> Answers {
        let members = Member::in_order(members.iter().map(|text| member(text)).collect(), 8);
        let known = members.iter().filter(|member| !member.host.name.starts_with("gone"));
        let addresses = known.map(|member| (member.lookup(), Found::Addresses(vec![[192, 0, 2, 1].into()])));
        let mut answers: Answers = addresses.collect();
        answers.insert(service(Level::Local).lookup(), Found::Services(members));
        answers
    }

    /// Names, weights and levels of what stands in a pool behind a server `b:1`.
    fn joined(level: Level, members: &[&str]) -> Vec<(String, u32, Level)> {
        let written = Server { name: "b:1".into(), ..service(Level::Local).without_members() };
        let mut servers = vec![written];
        service(level).join(&answers(members), &[], &mut servers);
        let behind = servers[1..].iter();
        behind.map(|server| (server.name.to_string(), server.weight, server.level)).collect()
    }

    #[test]
    fn records_that_name_no_server() {
        for target in ["", ".", "a b", "192.0.2.1", "a..", "a/b"] {
            assert_eq!(Member::new((0, 0, 80), target), None, "{target}");
        }
        assert_eq!(Member::new((0, 0, 0), "a.example"), None);
        assert_eq!(member("1 2 80 WEB.example").to_string(), "web.example:80/1/2");
    }

    #[test]
    fn priorities_are_levels_and_weights_are_shares() {
        let b = |rank| Level::Backup(rank);
        let a = |port: u16, weight, level| (format!("a:{port}"), weight, level);
        for (level, members, expected) in [
            (
                Level::Local,
                &["20 0 3 a", "10 5 1 a", "10 0 2 a", "65535 9 4 a"][..],
                vec![a(2, 1, Level::Local), a(1, 5, Level::Local), a(3, 1, b(0)), a(4, 9, b(1))],
            ),
            (
                Level::WRITTEN_BACKUP,
                &["1 1 1 a", "2 1 2 a"],
                vec![a(1, 1, Level::WRITTEN_BACKUP), a(2, 1, Level::WRITTEN_BACKUP.behind(1))],
            ),
            // In proportion where they are more than a weight may be, and none of them nothing.
            (
                Level::Distant,
                &["0 65535 1 a", "0 1 2 a", "0 32768 3 a", "0 0 4 a"],
                vec![
                    a(4, 1, Level::Distant),
                    a(2, 1, Level::Distant),
                    a(3, 501, Level::Distant),
                    a(1, 1000, Level::Distant),
                ],
            ),
            // What stands there already, whatever is not known, and what is named twice.
            (Level::Local, &["0 0 1 b", "0 0 1 gone", "1 1 1 a", "2 2 1 a"], vec![a(1, 1, b(0))]),
            (Level::Local, &["0 0 1 gone"], vec![("_http._tcp.a".to_owned(), 1, Level::Local)]),
        ] {
            assert_eq!(joined(level, members), expected, "{members:?}");
        }
    }

    #[test]
    fn the_first_in_their_order_count() {
        let members = ["1 0 1 b", "0 0 1 c", "1 0 1 a", "0 9 1 a"].map(member).to_vec();
        let kept: Vec<_> = Member::in_order(members, 2).iter().map(Member::to_string).collect();
        assert_eq!(kept, ["c:1/0/0", "a:1/0/9"]);
    }
}
