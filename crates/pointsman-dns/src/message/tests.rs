//! What answers say to a question, and that nothing else does.

use proptest::prelude::*;
use simple_dns::ResourceRecord;
use simple_dns::rdata::{A, AAAA, CNAME, SRV};

use super::*;

/// `name ttl address`, `name ttl =other` or `name ttl >priority,weight,port,target`, each a record; a class of its own
/// behind `!`.
fn record(line: &str) -> ResourceRecord<'_> {
    let words: Vec<_> = line.split(' ').collect();
    let [name, ttl, data] = words[..] else { panic!("{line}") };
    let (data, class) = data.strip_prefix('!').map_or((data, CLASS::IN), |data| (data, CLASS::CH));
    let data = match (data.strip_prefix('=').or(data.strip_prefix('>')), data.parse()) {
        (Some(service), _) if data.starts_with('>') => RData::SRV(srv(service)),
        (Some(other), _) => RData::CNAME(CNAME(Name::new_unchecked(other))),
        (None, Ok(IpAddr::V4(a))) => RData::A(A { address: a.into() }),
        (None, Ok(IpAddr::V6(a))) => RData::AAAA(AAAA { address: a.into() }),
        (None, Err(error)) => panic!("{line}: {error}"),
    };
    ResourceRecord::new(Name::new_unchecked(name), class, ttl.parse().expect("a number"), data)
}

fn srv(text: &str) -> SRV<'_> {
    let (numbers, target) = text.rsplit_once(',').expect("a target");
    let numbers: Vec<u16> = numbers.split(',').map(|number| number.parse().expect("a number")).collect();
    let [priority, weight, port] = numbers[..] else { panic!("{text}") };
    SRV { priority, weight, port, target: Name::new_unchecked(target) }
}

fn question() -> Question {
    Question::new(7, "Web.Example.", Record::A).expect("a name")
}

/// An answer to the question, with these records.
fn answer<'a>(lines: &'a [&'a str]) -> Packet<'a> {
    let mut packet = Packet::new_reply(7);
    let asked = Name::new_unchecked("wEb.example");
    packet.questions.push(simple_dns::Question::new(asked, TYPE::A.into(), CLASS::IN.into(), false));
    packet.answers = lines.iter().copied().map(record).collect();
    packet
}

fn bytes(packet: &Packet<'_>) -> Vec<u8> {
    packet.build_bytes_vec_compressed().expect("it can be written")
}

fn found(addresses: &[&str], ttl_s: u32) -> Heard {
    Heard::Found {
        records: addresses.iter().map(|text| Data::Address(text.parse().expect("an address"))).collect(),
        ttl_s,
    }
}

#[test]
fn the_question_is_what_was_asked() {
    let sent = question().to_bytes();
    let packet = Packet::parse(&sent).expect("well-formed");
    assert_eq!(packet.id(), 7);
    assert!(packet.has_flags(PacketFlag::RECURSION_DESIRED) && !packet.has_flags(PacketFlag::RESPONSE));
    let asked = &packet.questions[0];
    assert_eq!((asked.qname.to_string(), asked.qtype), ("web.example".to_owned(), QTYPE::TYPE(TYPE::A)));
    for name in ["", ".", "a..b", "a\\.b", "a\\\\b", "a b", "\u{fffd}", &"a".repeat(64), &"a.".repeat(130)] {
        assert_eq!(Question::new(7, name, Record::A), None, "{name}");
    }
}

#[test]
fn answers() {
    let chain: Vec<_> = (0..20).map(|at| format!("a{at} 9 =a{}", at + 1)).collect();
    let mut long: Vec<_> = chain.iter().map(String::as_str).collect();
    long.push("web.example 9 =a0");
    let alias = |name: &str, ttl_s| Heard::Alias { name: name.to_owned(), ttl_s };
    for (lines, expected) in [
        (&["web.example 5 192.0.2.1", "WEB.example 4 192.0.2.2"][..], found(&["192.0.2.1", "192.0.2.2"], 4)),
        // The most that a time can be, and what counts as none.
        (&["web.example 2147483647 192.0.2.1"], found(&["192.0.2.1"], 2_147_483_647)),
        (&["web.example 2147483648 192.0.2.1"], found(&["192.0.2.1"], 0)),
        // In any order, and what is of other names, kinds and classes left out.
        (
            &["b 7 192.0.2.1", "web.example 3 =B", "c 1 192.0.2.9", "b 1 ::1", "b 1 !192.0.2.8"],
            found(&["192.0.2.1"], 3),
        ),
        (&["web.example 3 =b", "b 2 =C.example"], alias("c.example", 2)),
        (&[], Heard::Empty),
        (&["web.example 5 ::1"], Heard::Empty),
        (&["other.example 5 192.0.2.1"], Heard::Empty),
        (&["web.example 3 =b", "b 3 =web.example"], Heard::Empty),
        (&long, Heard::Empty),
    ] {
        assert_eq!(question().read(&bytes(&answer(lines))), expected, "{lines:?}");
    }
    let ipv6 = Question::new(7, "web.example", Record::Aaaa).expect("a name");
    let mut six = answer(&["web.example 5 2001:db8::1"]);
    six.questions[0].qtype = TYPE::AAAA.into();
    assert_eq!(ipv6.read(&bytes(&six)), found(&["2001:db8::1"], 5));
}

#[test]
fn servers_of_a_service() {
    let services = Question::new(7, "web.example", Record::Srv).expect("a name");
    let member = |numbers, target| Data::Member(Some(Member::new(numbers, target).expect("a server")));
    for (lines, expected) in [
        (
            &[
                "web.example 9 >1,2,80,One.example",
                "web.example 8 >65535,0,81,two.example",
                "web.example 7 192.0.2.1",
            ][..],
            Heard::Found {
                records: vec![member((1, 2, 80), "one.example"), member((65535, 0, 81), "two.example")],
                ttl_s: 8,
            },
        ),
        (
            &["web.example 9 =b", "b 3 >0,0,1,c"],
            Heard::Found { records: vec![member((0, 0, 1), "c")], ttl_s: 3 },
        ),
        // There is none, said outright; and what no host is called.
        (
            &["web.example 9 >0,0,0,.", "web.example 9 >0,0,80,a/b"],
            Heard::Found { records: vec![Data::Member(None), Data::Member(None)], ttl_s: 9 },
        ),
        (&["web.example 9 192.0.2.1"], Heard::Empty),
    ] {
        let mut answer = answer(lines);
        answer.questions[0].qtype = TYPE::SRV.into();
        assert_eq!(services.read(&bytes(&answer)), expected, "{lines:?}");
    }
}

#[test]
fn what_the_header_says() {
    let mut packet = answer(&["web.example 5 192.0.2.1"]);
    packet.set_flags(PacketFlag::TRUNCATION);
    assert_eq!(question().read(&bytes(&packet)), Heard::Truncated);
    packet.remove_flags(PacketFlag::TRUNCATION);
    for (code, expected) in [
        (RCODE::NameError, Heard::NoName),
        (RCODE::ServerFailure, Heard::Refused("the name server failed")),
        (RCODE::Refused, Heard::Refused("the name server refused")),
        (RCODE::NotImplemented, Heard::Refused("the name server does not understand")),
    ] {
        *packet.rcode_mut() = code;
        assert_eq!(question().read(&bytes(&packet)), expected, "{code:?}");
    }
}

#[test]
fn other_messages_are_no_answer() {
    let good = answer(&["web.example 5 192.0.2.1"]);
    assert_ne!(question().read(&bytes(&good)), Heard::Nothing);
    let spoilt: [fn(&mut Packet<'_>); 7] = [
        |packet| packet.set_id(8),
        |packet| packet.remove_flags(PacketFlag::RESPONSE),
        |packet| packet.questions.clear(),
        |packet| packet.questions.push(packet.questions[0].clone()),
        |packet| packet.questions[0].qname = Name::new_unchecked("web.example.org"),
        |packet| packet.questions[0].qtype = TYPE::AAAA.into(),
        |packet| packet.questions[0].qclass = CLASS::CH.into(),
    ];
    for (at, spoil) in spoilt.iter().enumerate() {
        let mut packet = good.clone();
        spoil(&mut packet);
        assert_eq!(question().read(&bytes(&packet)), Heard::Nothing, "{at}");
    }
    // Sixty thousand records in no room: none is taken for them either.
    let mut boasting = bytes(&good);
    boasting[8..10].copy_from_slice(&[0xff; 2]);
    assert_eq!(question().read(&boasting), Heard::Nothing);
    assert_eq!(question().read(&[]), Heard::Nothing);
}

proptest! {
    /// Nothing panics, and no more is found than there is room for.
    #[test]
    fn any_bytes_are_read(message in proptest::collection::vec(any::<u8>(), 0..600)) {
        let length = message.len();
        if let Heard::Found { records, .. } = question().read(&message) {
            prop_assert!(records.len() <= length / RECORD_BYTES_MIN);
        }
    }

    /// The same for answers that were good but for a few bytes, or their end.
    #[test]
    fn spoilt_answers_are_read(
        spoilt in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        end in any::<prop::sample::Index>(),
    ) {
        let lines = ["web.example 5 =b", "b 5 =c.example", "c.example 4 192.0.2.1", "c.example 4 192.0.2.2"];
        let mut message = bytes(&answer(&lines));
        for (at, byte) in spoilt {
            let at = at.index(message.len());
            message[at] = byte;
        }
        message.truncate(end.index(message.len()) + 1);
        let heard = question().read(&message);
        if let Heard::Found { records, .. } = heard {
            prop_assert!(records.len() <= lines.len());
        }
    }
}
