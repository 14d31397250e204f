//! From a name as it was written to what it stands for.

use std::net::IpAddr;

use pointsman_config::{DnsSettings, Family, Found, Lookup, Member};
use pointsman_net::Timers;

use crate::ask::{Fault, ask};
use crate::message::{ALIASES_MAX, Data, Heard, Record};
use crate::system::{System, known_addresses};

/// How long what stands in a file of the system holds.
const FILE_TTL_S: u32 = 10;

/// What a name stands for, and how long.
pub(crate) struct Answer<T> {
    pub(crate) found: T,
    pub(crate) ttl_s: u32,
}

/// How names are looked up, as far as it is the same for all.
pub(crate) struct Tools {
    pub(crate) timers: Timers,
    pub(crate) settings: DnsSettings,
}

impl Tools {
    /// What is to be known of a name. `before` is what was known of it.
    pub(crate) async fn look_up(
        &self,
        lookup: &Lookup,
        before: Option<&Found>,
    ) -> Result<Answer<Found>, Fault> {
        let limits = &self.settings.limits;
        match lookup {
            Lookup::Addresses(name) => {
                let before = match before {
                    Some(Found::Addresses(addresses)) => &addresses[..],
                    Some(Found::Services(_)) | None => &[],
                };
                let Answer { found, ttl_s } = self.addresses(name).await?;
                let found = in_order(before, &found, limits.addresses_max as usize);
                Ok(Answer { found: Found::Addresses(found), ttl_s })
            }
            Lookup::Services(name) => {
                let Answer { found, ttl_s } = self.members(name).await?;
                let found = Member::in_order(found, limits.members_max as usize);
                Ok(Answer { found: Found::Services(found), ttl_s })
            }
        }
    }

    /// The addresses of a name as it was written.
    async fn addresses(&self, name: &str) -> Result<Answer<Vec<IpAddr>>, Fault> {
        let known = self.of_family(known_addresses(name));
        if !known.is_empty() {
            return Ok(Answer { found: known, ttl_s: FILE_TTL_S });
        }
        let system = self.system();
        let addresses_of = async |candidate: &str| self.addresses_of(&system, candidate).await;
        first_known(system.candidates(name), addresses_of).await
    }

    /// The servers of a service as its name was written, at least one.
    async fn members(&self, name: &str) -> Result<Answer<Vec<Member>>, Fault> {
        let system = self.system();
        let members_of = async |candidate: &str| {
            let Answer { found, ttl_s } = self.records(&system, candidate, Record::Srv).await?;
            let members = found.into_iter().filter_map(|data| match data {
                Data::Member(member) => member,
                Data::Address(_) => None,
            });
            match members.collect::<Vec<_>>() {
                found if found.is_empty() => Err(Fault::Empty),
                found => Ok(Answer { found, ttl_s }),
            }
        };
        first_known(system.candidates(name), members_of).await
    }

    fn system(&self) -> System {
        match self.settings.servers.as_slice() {
            [] => System::read(),
            servers => System::with_servers(servers),
        }
    }

    /// Those that count.
    fn of_family(&self, addresses: Vec<IpAddr>) -> Vec<IpAddr> {
        let (mut first, mut second): (Vec<_>, Vec<_>) = addresses.into_iter().partition(IpAddr::is_ipv4);
        match self.settings.family {
            Family::Any if first.is_empty() => second,
            Family::Any | Family::Ipv4 => first,
            Family::Ipv6 => second,
            Family::Both => {
                first.append(&mut second);
                first
            }
        }
    }

    /// The addresses of a whole name. Nobody knows what is missing in half an answer, so of two questions both must be
    /// answered.
    async fn addresses_of(&self, system: &System, name: &str) -> Result<Answer<Vec<IpAddr>>, Fault> {
        match self.settings.family {
            Family::Ipv4 => self.addresses_in(system, name, Record::A).await,
            Family::Ipv6 => self.addresses_in(system, name, Record::Aaaa).await,
            Family::Any => match self.addresses_in(system, name, Record::A).await {
                Err(Fault::Empty) => self.addresses_in(system, name, Record::Aaaa).await,
                outcome => outcome,
            },
            Family::Both => {
                let first = self.addresses_in(system, name, Record::A).await;
                let second = match first {
                    Ok(_) | Err(Fault::Empty) => self.addresses_in(system, name, Record::Aaaa).await,
                    Err(fault) => return Err(fault),
                };
                match (first, second) {
                    (Ok(mut first), Ok(second)) => {
                        first.found.extend(second.found);
                        Ok(Answer { ttl_s: first.ttl_s.min(second.ttl_s), ..first })
                    }
                    (Ok(only), Err(Fault::Empty)) => Ok(only),
                    (_, second) => second,
                }
            }
        }
    }

    async fn addresses_in(
        &self,
        system: &System,
        name: &str,
        record: Record,
    ) -> Result<Answer<Vec<IpAddr>>, Fault> {
        let Answer { found, ttl_s } = self.records(system, name, record).await?;
        let addresses = found.into_iter().filter_map(|data| match data {
            Data::Address(address) => Some(address),
            Data::Member(_) => None,
        });
        Ok(Answer { found: addresses.collect(), ttl_s })
    }

    /// The records of a name, or of the one that it stands for.
    async fn records(&self, system: &System, name: &str, record: Record) -> Result<Answer<Vec<Data>>, Fault> {
        let mut name = name.to_owned();
        let mut holds_s = u32::MAX;
        for _ in 0..=ALIASES_MAX {
            let answer_ms = self.settings.limits.answer_ms_max;
            match ask(&self.timers, &system.servers, (&name, record), answer_ms).await? {
                Heard::Found { records, ttl_s } => {
                    return Ok(Answer { found: records, ttl_s: ttl_s.min(holds_s) });
                }
                Heard::Alias { name: meant, ttl_s } => (name, holds_s) = (meant, holds_s.min(ttl_s)),
                Heard::NoName => return Err(Fault::NoName),
                Heard::Empty => return Err(Fault::Empty),
                Heard::Refused(why) => return Err(Fault::Refused(why)),
                Heard::Nothing | Heard::Truncated => return Err(Fault::Malformed),
            }
        }
        Err(Fault::Aliases)
    }
}

/// What is known of the first of these names of which anything is; why nothing is of the first where nothing is of any.
async fn first_known<T>(
    candidates: Vec<String>,
    known_of: impl AsyncFn(&str) -> Result<Answer<T>, Fault>,
) -> Result<Answer<T>, Fault> {
    let mut why = None;
    for candidate in candidates {
        match known_of(&candidate).await {
            Err(fault @ (Fault::NoName | Fault::Empty)) => {
                why.get_or_insert(fault);
            }
            outcome => return outcome,
        }
    }
    Err(why.unwrap_or(Fault::NoName))
}

/// What is there now, each once: first what was there before, in its order, so that only what really changes does.
fn in_order<T: Clone + PartialEq>(before: &[T], now: &[T], count_max: usize) -> Vec<T> {
    let stays = before.iter().filter(|known| now.contains(known));
    let comes = now.iter().enumerate().filter(|(at, new)| !before.contains(new) && !now[..*at].contains(new));
    stays.chain(comes.map(|(_, new)| new)).take(count_max).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_keeps_its_place() {
        for (before, now, expected) in [
            ("", "ba", "ba"),
            ("ab", "ba", "ab"),
            ("abc", "dcc", "cd"),
            ("ab", "ede", "ed"),
            ("ab", "fedcb", "bfe"),
        ] {
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            assert_eq!(in_order(&letters(before), &letters(now), 3), letters(expected), "{before} {now}");
        }
    }
}
