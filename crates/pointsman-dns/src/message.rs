//! Messages of DNS (RFC 1035 section 4): the question that is asked, and what an answer says to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pointsman_config::Member;
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, RCODE, TYPE, header_buffer};

/// How often a name may stand for another one before it stands for nothing.
pub(crate) const ALIASES_MAX: usize = 8;

/// Bytes of a message's header, and the fewest that a question and a record have.
const HEADER_BYTES: usize = 12;
const QUESTION_BYTES_MIN: usize = 5;
const RECORD_BYTES_MIN: usize = 11;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// Addresses of IPv4.
    A,
    /// Addresses of IPv6 (RFC 3596); an IPv4-mapped one counts as IPv4.
    Aaaa,
    /// Servers of a service (SRV, RFC 2782).
    Srv,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// An address.
    Address(IpAddr),
    /// A server of a service; none where it is said that there is none, or where no host has its name.
    Member(Option<Member>),
}

/// A question to a name server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    id: u16,
    name: String,
    record: Record,
}

/// What a message says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing: it answers another question, or is none of DNS.
    Nothing,
    /// That it does not fit: it is to be asked for over TCP.
    Truncated,
    /// That the server does not say, and why.
    Refused(&'static str),
    /// That there is no such name.
    NoName,
    /// That the name has no such record.
    Empty,
    /// That another name is meant, of which it says nothing.
    Alias {
        /// In lower case.
        name: String,
        /// How long that holds.
        ttl_s: u32,
    },
    /// Its records.
    Found {
        /// At least one.
        records: Vec<Data>,
        /// How long they hold: the least of what they say, and of what the names say that lead to them.
        ttl_s: u32,
    },
}

impl Question {
    /// A question for the records of a name. `None`: no name can be written so.
    pub fn new(id: u16, name: &str, record: Record) -> Option<Question> {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        // An alias may lead to any bytes. Those that text escapes, or cannot have, no host has, and they would be asked for
        // as others.
        let is_written = name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        let well_formed = !name.is_empty() && is_written && name.split('.').all(|label| !label.is_empty());
        (well_formed && Name::new(&name).is_ok()).then_some(Question { id, name, record })
    }

    /// As it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut packet = Packet::new_query(self.id);
        packet.set_flags(PacketFlag::RECURSION_DESIRED);
        packet.questions.push(simple_dns::Question::new(
            Name::new_unchecked(&self.name),
            self.record.kind().into(),
            CLASS::IN.into(),
            false,
        ));
        // What was a name can be written.
        packet.build_bytes_vec().unwrap_or_default()
    }

    /// What a message says to it.
    pub fn read(&self, message: &[u8]) -> Heard {
        if !holds_its_records(message) {
            return Heard::Nothing;
        }
        let Ok(packet) = Packet::parse(message) else { return Heard::Nothing };
        if !self.is_answered_by(&packet) {
            return Heard::Nothing;
        }
        // Of what EDNS adds to the code nothing was asked for (RFC 6891 section 7).
        match header_buffer::rcode(message).unwrap_or(RCODE::Reserved) {
            _ if packet.has_flags(PacketFlag::TRUNCATION) => Heard::Truncated,
            RCODE::NoError => self.records(&packet),
            RCODE::NameError => Heard::NoName,
            RCODE::ServerFailure => Heard::Refused("the name server failed"),
            RCODE::Refused => Heard::Refused("the name server refused"),
            _ => Heard::Refused("the name server does not understand"),
        }
    }

    fn is_answered_by(&self, packet: &Packet<'_>) -> bool {
        let [question] = packet.questions.as_slice() else { return false };
        packet.id() == self.id
            && packet.has_flags(PacketFlag::RESPONSE)
            && question.qname == Name::new_unchecked(&self.name)
            && question.qtype == QTYPE::TYPE(self.record.kind())
            && question.qclass == QCLASS::CLASS(CLASS::IN)
    }

    /// The records of the name, or of that which it stands for. Others in the message are nothing to it.
    fn records(&self, packet: &Packet<'_>) -> Heard {
        let mut name = Name::new_unchecked(&self.name);
        let mut ttl_s = u32::MAX;
        let mut aliases = 0;
        loop {
            let own = packet.answers.iter().filter(|record| record.name == name && record.class == CLASS::IN);
            let mut records = Vec::new();
            let mut alias = None;
            for record in own {
                let found = self.record.of(&record.rdata);
                if let RData::CNAME(to) = &record.rdata
                    && alias.is_none()
                {
                    alias = Some((to.0.clone(), record.ttl));
                } else if let Some(found) = found {
                    ttl_s = ttl_s.min(seconds(record.ttl));
                    records.push(found);
                }
            }
            if !records.is_empty() {
                return Heard::Found { records, ttl_s };
            }
            match alias {
                Some((to, ttl)) if aliases < ALIASES_MAX => (name, ttl_s) = (to, ttl_s.min(seconds(ttl))),
                Some(_) => return Heard::Empty,
                None if aliases == 0 => return Heard::Empty,
                None => return Heard::Alias { name: name.to_string().to_ascii_lowercase(), ttl_s },
            }
            aliases += 1;
        }
    }
}

impl Record {
    fn kind(self) -> TYPE {
        match self {
            Record::A => TYPE::A,
            Record::Aaaa => TYPE::AAAA,
            Record::Srv => TYPE::SRV,
        }
    }

    fn of(self, data: &RData<'_>) -> Option<Data> {
        match (self, data) {
            (Record::A, RData::A(a)) => Some(Data::Address(Ipv4Addr::from(a.address).into())),
            (Record::Aaaa, RData::AAAA(aaaa)) => {
                Some(Data::Address(Ipv6Addr::from(aaaa.address).to_canonical()))
            }
            (Record::Srv, RData::SRV(srv)) => {
                let numbers = (srv.priority, srv.weight, srv.port);
                Some(Data::Member(Member::new(numbers, &srv.target.to_string())))
            }
            _ => None,
        }
    }
}

/// A time with the highest bit set counts as none (RFC 2181 section 8).
fn seconds(ttl: u32) -> u32 {
    if ttl > i32::MAX as u32 { 0 } else { ttl }
}

/// Whether a message is long enough for what it says it has, so that no room is taken for more.
fn holds_its_records(message: &[u8]) -> bool {
    let count = |at: usize| {
        message.get(at..at + 2).map_or(0, |bytes| usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    };
    let records = count(6) + count(8) + count(10);
    message.len() >= HEADER_BYTES + count(4) * QUESTION_BYTES_MIN + records * RECORD_BYTES_MIN
}

#[cfg(test)]
mod tests;
