//! Messages as they come from name servers, in `testdata/dns/answers.txt`.

use pointsman_dns::{Data, Heard, Question, Record};

const ANSWERS: &str = include_str!("../../../testdata/dns/answers.txt");

#[test]
fn answers() {
    let lines: Vec<_> = ANSWERS.lines().filter(|line| line.contains('|')).collect();
    assert!(lines.len() > 20);
    for line in lines {
        let [question, expected, hex] = line.split(" | ").collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (name, record) = question.split_once(' ').expect("a name and a record");
        let record = match record {
            "A" => Record::A,
            "AAAA" => Record::Aaaa,
            "SRV" => Record::Srv,
            _ => panic!("{line}"),
        };
        let question = Question::new(7, name, record).expect("a name");
        let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("hex"));
        let message: Vec<_> = pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect();
        assert_eq!(said(question.read(&message)), expected, "{line}");
    }
}

fn said(heard: Heard) -> String {
    match heard {
        Heard::Nothing => "nothing".to_owned(),
        Heard::Truncated => "truncated".to_owned(),
        Heard::Refused(why) => format!("refused: {why}"),
        Heard::NoName => "no name".to_owned(),
        Heard::Empty => "empty".to_owned(),
        Heard::Alias { name, ttl_s } => format!("alias {name} for {ttl_s} s"),
        Heard::Found { records, ttl_s } => {
            let records: Vec<_> = records.iter().map(shown).collect();
            format!("found {} for {ttl_s} s", records.join(" "))
        }
    }
}

fn shown(data: &Data) -> String {
    match data {
        Data::Address(address) => address.to_string(),
        Data::Member(Some(member)) => member.to_string(),
        Data::Member(None) => "none".to_owned(),
    }
}
