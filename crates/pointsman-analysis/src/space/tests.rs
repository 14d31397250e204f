//! Values by example, and against all that a small field can be.

mod brute_force;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use pointsman_rules::{Compiled, List, Members, NetworkList, OwnedValue, Targets, Test, TextList, compile};

use super::{Automata, Solved, solve};
use crate::Effort;
use crate::wanted::{Asked, Values, Wanted};

const VECTORS: &str = include_str!("../../../../testdata/analysis/space.txt");

/// The comparisons as tests of one program.
fn compiled<'t>(tests: impl IntoIterator<Item = &'t str>) -> Compiled {
    let rules: String = tests.into_iter().map(|test| format!("if ({test}) {{ reject(); }}\n")).collect();
    let pools = Targets::known::<&str, &str>([]);
    compile(&rules, &pools.with_lists(lists())).unwrap_or_else(|findings| panic!("{rules}{findings:?}"))
}

/// What tests may name: short lists, and such as have too many members to look at each.
fn lists() -> Vec<Arc<List>> {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    let four = |bits: u32| IpAddr::V4(Ipv4Addr::from_bits(bits));
    let even = (0..MANY).map(|place| four(0x1400_0000 + 2 * place)).map(|address| (address, address));
    let odd = (0..MANY).map(|place| four(0x1400_0001 + 2 * place)).map(|address| (address, address));
    let near = [("10.0.0.1", "10.0.0.1"), ("10.0.0.3", "10.255.255.255"), ("::", "::1")];
    let rest = [("0.0.0.0", "10.0.0.0"), ("10.0.0.2", "10.0.0.2"), ("11.0.0.0", "255.255.255.255")];
    let networks = |pairs: &[(&str, &str)]| {
        NetworkList::new(pairs.iter().map(|(first, last)| (address(first), address(last))))
    };
    let words: Vec<String> = (0..MANY).map(|place| format!("w{place}")).collect();
    [
        ("near", Members::Networks(networks(&near))),
        ("rest", Members::Networks(networks(&rest))),
        ("even", Members::Networks(NetworkList::new(even))),
        ("odd", Members::Networks(NetworkList::new(odd))),
        ("words", Members::Texts(TextList::new(["a", "ab", "1"].map(str::as_bytes)))),
        ("many", Members::Texts(TextList::new(words.iter().map(String::as_bytes)))),
    ]
    .map(|(name, members)| Arc::new(List { name: name.into(), members }))
    .into()
}

/// Members of a long list.
const MANY: u32 = 20_000;

fn tests(compiled: &Compiled) -> Vec<&Test> {
    let mut tests = Vec::new();
    compiled.program.rules.iter().for_each(|rule| rule.condition.each_test(&mut |test| tests.push(test)));
    tests
}

fn wanted(word: &str) -> Option<Wanted> {
    Some(match word {
        "true" => Wanted::True,
        "false" => Wanted::False,
        "unknown" => Wanted::Unknown,
        "nottrue" => Wanted::NotTrue,
        "notfalse" => Wanted::NotFalse,
        _ => return None,
    })
}

fn shown(solved: &Solved) -> String {
    match solved {
        Solved::Values(values) => format!("= {}", shown_values(values)),
        Solved::Nothing { because } => {
            because.iter().fold("nothing".to_owned(), |text, index| format!("{text} {}", index + 1))
        }
        Solved::Unknown => "gave up".to_owned(),
    }
}

fn shown_values(values: &Values) -> String {
    let mut words: Vec<String> = values.known.iter().map(shown_value).collect();
    if words.is_empty() {
        words.push("absent".to_owned());
    }
    words.extend(values.rest.map(|cause| cause.to_string()));
    words.join(" ")
}

fn shown_value(value: &OwnedValue) -> String {
    match value {
        OwnedValue::Text(text) => format!("\"{}\"", text.escape_ascii()),
        OwnedValue::Integer(integer) => integer.to_string(),
        OwnedValue::Ip(address) => address.to_string(),
        OwnedValue::Boolean(truth) => truth.to_string(),
        OwnedValue::Nothing => "null".to_owned(),
        OwnedValue::Unknown(cause) => format!("unknown ({cause})"),
    }
}

fn ask(claims: &[(Wanted, &str)], effort: &mut Effort) -> Solved {
    let compiled = compiled(claims.iter().map(|(_, test)| *test));
    let tests = tests(&compiled);
    let asked: Vec<Asked<'_>> =
        tests.iter().zip(claims).map(|(test, (wanted, _))| Asked { test, wanted: *wanted }).collect();
    let field = &tests.first().expect("one at least").field;
    solve(field, &asked, &mut Automata::default(), effort)
}

#[test]
fn values_by_example() {
    let mut failed = String::new();
    for vector in VECTORS.split("\n\n") {
        let lines = vector.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let (claims, expected): (Vec<_>, Vec<_>) =
            lines.partition(|line| line.split_once(' ').is_some_and(|(word, _)| wanted(word).is_some()));
        let [expected] = expected[..] else {
            assert!(claims.is_empty(), "no answer, or two: {vector}");
            continue;
        };
        let claims = claims.iter().filter_map(|line| line.split_once(' '));
        let claims: Vec<_> = claims.filter_map(|(word, test)| Some((wanted(word)?, test))).collect();
        let found = shown(&ask(&claims, &mut Effort::new(10_000_000)));
        let answer = found.strip_prefix("= ").unwrap_or(&found);
        if !expected.strip_prefix("= ").unwrap_or(expected).split(" | ").any(|expected| expected == answer) {
            writeln!(failed, "{vector}\nis {found}\n").expect("memory takes all");
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

/// However many texts are excluded, and whether one is left.
#[test]
fn many_exclusions_are_no_work() {
    let names: Vec<String> = (0..20_000).map(|number| format!("host == \"h{number}.example\"")).collect();
    let mut claims: Vec<_> = names.iter().map(|test| (Wanted::False, test.as_str())).collect();
    claims.push((Wanted::True, "host startsWith \"h\""));
    let mut effort = Effort::new(1_000_000);
    assert_eq!(shown(&ask(&claims, &mut effort)), "= \"h\"");

    let digits: Vec<String> = (0..10_000).map(|number| format!("header[\"x\"] == \"{number:04}\"")).collect();
    let mut claims: Vec<_> = digits.iter().map(|test| (Wanted::False, test.as_str())).collect();
    claims.push((Wanted::True, "header[\"x\"] matches \"^[0-9]{4}$\""));
    let found = ask(&claims, &mut Effort::new(100_000_000));
    let Solved::Nothing { because } = found else { panic!("{found:?}") };
    assert_eq!(because.len(), claims.len());
    claims.remove(5);
    assert_eq!(shown(&ask(&claims, &mut Effort::new(100_000_000))), "= \"0005\"");
}

/// As many as there are rules, and no more work for each than to look at it a few times.
#[test]
fn many_bounds_are_little_work() {
    let ask_one_among = |tests: Vec<String>, holds: usize| {
        let wanted = |place| if place <= holds { Wanted::True } else { Wanted::False };
        let claims: Vec<_> =
            tests.iter().zip(0..).map(|(test, place)| (wanted(place), test.as_str())).collect();
        shown(&ask(&claims, &mut Effort::new(1_000_000)))
    };
    let amounts = (0..20_000).map(|number| format!("json.amount > {number}")).collect();
    assert_eq!(ask_one_among(amounts, 7000), "= \"7001\"");
    let ports = (0..20_000).map(|number| format!("srcport > {number}")).collect();
    assert_eq!(ask_one_among(ports, 7000), "= 7001");
    let networks = (0..20_000).map(|number| format!("srcip in [10.{}.{}.0/24]", number / 250, number % 250));
    assert_eq!(ask_one_among(networks.collect(), 0), "= 10.0.0.1");
    let disjoint = vec!["srcip in [10.0.0.0/8]".to_owned(), "srcip in [11.0.0.0/8]".to_owned()];
    assert_eq!(ask_one_among(disjoint, 1), "nothing 1 2");
}

/// However long a list is, what is in it, beside it and in another is found, or proved not to be.
#[test]
fn long_lists_are_little_work() {
    use Wanted::{False, True};
    for (claims, expected) in [
        (&[(True, "srcip in @even")][..], "= 20.0.0.2"),
        (&[(True, "srcip in @even"), (True, "srcip > 20.0.100.0")], "= 20.0.100.2"),
        (&[(True, "srcip in @even"), (False, "srcip in @even")], "nothing 1 2"),
        (&[(True, "srcip in @even"), (True, "srcip in @odd")], "nothing 1 2"),
        (&[(True, "srcip in @even"), (True, "srcip in [10.0.0.0/8]")], "nothing 1 2"),
        (&[(False, "srcip in @even"), (True, "srcip in [20.0.0.0/24]")], "= 20.0.0.1"),
        (
            &[(False, "srcip in @even"), (False, "srcip in @odd"), (True, "srcip in [20.0.0.0/24]")],
            "nothing 1 2 3",
        ),
        (&[(False, "srcip in @even"), (False, "srcip in @odd"), (True, "srcip in [20.0.0.0/8]")], "= 20.*"),
        (&[(True, "srcip in [@even, 10.0.0.9]"), (False, "srcip in @even")], "= 10.0.0.9"),
        (&[(True, "srcip in @near"), (False, "srcip in @rest")], "= 10.0.0.1"),
        (&[(False, "srcip in @near"), (False, "srcip in @rest")], "= 2001:db8::1"),
        (&[(True, "host in @many"), (True, "host endsWith \"77\"")], "= \"w*77\""),
        (&[(True, "host in @many"), (True, "host startsWith \"x\"")], "nothing 1 2"),
        (&[(False, "host in @many"), (True, "host startsWith \"w7\"")], "= \"w7*\""),
        (&[(True, "header[\"x\"] in @many"), (False, "header[\"x\"] in @many")], "nothing 1 2"),
    ] {
        let found = shown(&ask(claims, &mut Effort::new(1_000_000)));
        match expected.split_once('*') {
            Some((start, end)) => {
                assert!(found.starts_with(start) && found.ends_with(end), "{claims:?}: {found}")
            }
            None => assert_eq!(found, expected, "{claims:?}"),
        }
    }
}

#[test]
fn too_little_effort_is_no_answer() {
    let claims = [
        (Wanted::True, "header[\"x\"] matches \"^(ab|cd)+$\""),
        (Wanted::True, "header[\"x\"] matches \"b{2}\""),
        (Wanted::True, "count(header[\"x\"]) == 1"),
    ];
    assert_eq!(shown(&ask(&claims, &mut Effort::new(1_000_000))), "nothing 1 2 3");
    for steps in [0, 1, 10, 100] {
        assert_eq!(ask(&claims, &mut Effort::new(steps)), Solved::Unknown, "{steps}");
    }
    // What blows up says so.
    let large = [(Wanted::True, "header[\"x\"] matches \"a.{18}$\"")];
    assert_eq!(ask(&large, &mut Effort::new(100_000_000)), Solved::Unknown);
}
