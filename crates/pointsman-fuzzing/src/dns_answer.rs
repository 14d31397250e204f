//! Answers of name servers: what is taken from one is what a slow reading finds there (RFC 1035 section 4), and no question
//! is an answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pointsman_config::Member;
use pointsman_dns::{Data, Heard, Question, Record};

pub(crate) const TOKENS: &[&str] = &[
    "\x03web\x07example\0",
    "\x05_http\x04_tcp\x01a\0",
    "\x01b\0",
    "\0\x01\0\x01",
    "\0\x05\0\x01",
    "\0\x1c\0\x01",
    "\0\x21\0\x01",
    "\0\0\x29",
    "\0\x04",
    "\0\0\0\x09",
    "\x7f\0\0\x01",
];

/// Names that stand for others one after the other, at most.
const ALIASES_MAX: usize = 8;
/// Bytes of the shortest record: a root, its type, class, time and length.
const RECORD_BYTES_MIN: usize = 11;

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    let (name, record) = asked(input).unwrap_or_else(|| ("web.example".to_owned(), Record::A));
    let id = u16::from_be_bytes([input.first().copied().unwrap_or(0), input.get(1).copied().unwrap_or(7)]);
    let Some(question) = Question::new(id, &name, record) else { return };
    let sent = question.to_bytes();
    assert_eq!(asked(&sent), Some((name.to_ascii_lowercase(), record)), "it asks what it is to");
    assert_eq!(question.read(&sent), Heard::Nothing, "a question is no answer");
    let heard = question.read(input);
    if let Heard::Found { records, .. } = &heard {
        assert!(!records.is_empty() && records.len() <= input.len() / RECORD_BYTES_MIN);
    }
    if let Heard::Alias { name: alias, .. } = &heard
        && let Some(question) = Question::new(id, alias, record)
    {
        let labels = name_at(&question.to_bytes(), 12).map(|(labels, _)| escaped(&labels));
        assert_eq!(labels.as_ref(), Some(alias), "it asks for another name");
    }
    if heard != Heard::Nothing {
        assert_eq!(Some(heard), slow(input, (id, &name, record)), "it says something else");
    }
}

/// What a message asks, where its name is one that hosts have.
fn asked(message: &[u8]) -> Option<(String, Record)> {
    let (name, end) = name_at(message, 12)?;
    let record = match number(message, end)? {
        28 => Record::Aaaa,
        33 => Record::Srv,
        _ => Record::A,
    };
    (is_plain(&name) && !name.is_empty()).then(|| (text(&name), record))
}

/// What a message says to a question; nothing where it is none that could be understood.
fn slow(message: &[u8], (id, asked, record): (u16, &str, Record)) -> Option<Heard> {
    let flags = number(message, 2)?;
    let (question, end) = name_at(message, 12)?;
    let is_answer = number(message, 0)? == id && flags & 0x8000 != 0 && number(message, 4)? == 1;
    let kind = match record {
        Record::A => 1,
        Record::Aaaa => 28,
        Record::Srv => 33,
    };
    let is_same = text(&question).eq_ignore_ascii_case(asked) && number(message, end)? == kind;
    // The highest bit is another's (RFC 6762 section 5.4).
    if !is_answer || !is_same || number(message, end + 2)? & 0x7fff != 1 {
        return None;
    }
    let mut at = end + 4;
    let mut section = |count_at: usize| -> Option<Vec<Entry>> {
        let entries = (0..number(message, count_at)?).map(|_| {
            let entry = entry(message, at)?;
            at = entry.end;
            Some(entry)
        });
        entries.collect()
    };
    let answers = section(6)?;
    section(8)?;
    section(10)?;
    Some(match flags & 0xf {
        _ if flags & 0x0200 != 0 => Heard::Truncated,
        0 => follow(message, question, &answers, kind)?,
        2 => Heard::Refused("the name server failed"),
        3 => Heard::NoName,
        5 => Heard::Refused("the name server refused"),
        _ => Heard::Refused("the name server does not understand"),
    })
}

/// The records of a name, or of that which it stands for.
fn follow(message: &[u8], asked: Vec<Vec<u8>>, answers: &[Entry], kind: u16) -> Option<Heard> {
    let (mut owner, mut ttl_s) = (asked, u32::MAX);
    for aliases in 0..=ALIASES_MAX {
        let own = answers.iter().filter(|entry| entry.owner == owner && entry.class & 0x7fff == 1);
        let own: Vec<_> = own.filter(|entry| entry.data < entry.end).collect();
        let found: Vec<_> = own.iter().filter(|entry| entry.kind == kind).collect();
        if !found.is_empty() {
            let ttl_s = found.iter().map(|entry| seconds(entry.ttl)).min()?.min(ttl_s);
            let records = found.iter().map(|entry| data(message, entry)).collect::<Option<_>>()?;
            return Some(Heard::Found { records, ttl_s });
        }
        match own.iter().find(|entry| entry.kind == 5) {
            Some(alias) => {
                (owner, ttl_s) = (name_at(message, alias.data)?.0, ttl_s.min(seconds(alias.ttl)));
            }
            None if aliases == 0 => return Some(Heard::Empty),
            None => return Some(Heard::Alias { name: escaped(&owner), ttl_s }),
        }
    }
    Some(Heard::Empty)
}

fn data(message: &[u8], entry: &Entry) -> Option<Data> {
    let bytes = &message[entry.data..entry.end];
    Some(match entry.kind {
        1 => Data::Address(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(..4)?).ok()?).into()),
        28 => {
            let address = Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(..16)?).ok()?);
            Data::Address(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4))
        }
        _ => {
            let numbers = (number(bytes, 0)?, number(bytes, 2)?, number(bytes, 4)?);
            let (target, _) = name_at(message, entry.data + 6)?;
            Data::Member(Member::new(numbers, &text(&target)).filter(|_| is_plain(&target)))
        }
    })
}

/// A record, and where its data and it itself end.
struct Entry {
    owner: Vec<Vec<u8>>,
    kind: u16,
    class: u16,
    ttl: u32,
    data: usize,
    end: usize,
}

fn entry(message: &[u8], at: usize) -> Option<Entry> {
    let (owner, at) = name_at(message, at)?;
    let ttl = u32::from(number(message, at + 4)?) << 16 | u32::from(number(message, at + 6)?);
    let data = at + 10;
    let end = data + usize::from(number(message, at + 8)?);
    let (kind, class) = (number(message, at)?, number(message, at + 2)?);
    (end <= message.len()).then_some(Entry { owner, kind, class, ttl, data, end })
}

/// The labels of a name in lower case, and where it ends.
fn name_at(message: &[u8], at: usize) -> Option<(Vec<Vec<u8>>, usize)> {
    let (mut labels, mut at, mut end) = (Vec::new(), at, None);
    for _ in 0..message.len() {
        let length = usize::from(*message.get(at)?);
        match length {
            0 => return Some((labels, end.unwrap_or(at + 1))),
            1..=63 => {
                labels.push(message.get(at + 1..=at + length)?.to_ascii_lowercase());
                at += 1 + length;
            }
            192.. => {
                end.get_or_insert(at + 2);
                at = usize::from(number(message, at)? & 0x3fff);
            }
            _ => return None,
        }
    }
    None
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([pair[0], pair[1]]))
}

/// A time with the highest bit set counts as none (RFC 2181 section 8).
fn seconds(ttl: u32) -> u32 {
    if ttl >> 31 == 1 { 0 } else { ttl }
}

fn is_plain(labels: &[Vec<u8>]) -> bool {
    labels.iter().flatten().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte))
}

/// As text has them (RFC 1035 section 5.1).
fn escaped(labels: &[Vec<u8>]) -> String {
    let escaped =
        |label: &Vec<u8>| text(std::slice::from_ref(label)).replace('\\', "\\\\").replace('.', "\\.");
    labels.iter().map(escaped).collect::<Vec<_>>().join(".")
}

fn text(labels: &[Vec<u8>]) -> String {
    labels.iter().map(|label| String::from_utf8_lossy(label)).collect::<Vec<_>>().join(".")
}
