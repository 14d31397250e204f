//! Claims made up, against all values that a small field can have.

use pointsman_rules::{Cause, OwnedValue};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::claim::Claim;
use super::{Automata, Solved, compiled, shown, solve, tests};
use crate::Effort;
use crate::wanted::{Asked, Values, Wanted};

const EFFORT: u64 = 3_000_000;

/// A comparison without its operand.
#[derive(Clone, Debug)]
enum Asks {
    /// Of texts, so that `lower` may stand before it.
    Text(String),
    Other(String),
}

fn short() -> impl Strategy<Value = String> {
    select(vec!["", "a", "b", "ab", "ba", "A", "aB", "1", "12"]).prop_map(str::to_owned)
}

fn of_texts() -> impl Strategy<Value = Asks> {
    let regexes = vec!["a", "^a", "b$", "^(a|b)+$", "ab*a", "^.$", "[^a]", "(?i)A", "^(ab)*$", "^$", "a.b"];
    prop_oneof![
        short().prop_map(|text| Asks::Text(format!("== \"{text}\""))),
        short().prop_map(|text| Asks::Text(format!("!= \"{text}\""))),
        (select(vec!["<", "<=", ">", ">="]), short())
            .prop_map(|(order, text)| Asks::Text(format!("{order} \"{text}\""))),
        (select(vec!["contains", "startsWith", "endsWith"]), short())
            .prop_map(|(operator, text)| Asks::Text(format!("{operator} \"{text}\""))),
        "[ab*?]{0,3}".prop_map(|pattern| Asks::Text(format!("like \"{pattern}\""))),
        select(regexes).prop_map(|regex| Asks::Text(format!("matches \"{regex}\""))),
        (short(), short()).prop_map(|(one, other)| Asks::Text(format!("in [\"{one}\", \"{other}\"]"))),
        Just(Asks::Text("in [\"a\"..\"b\", \"q\"]".to_owned())),
        Just(Asks::Text("in @words".to_owned())),
        Just(Asks::Other("exists".to_owned())),
    ]
}

fn of_numbers() -> impl Strategy<Value = Asks> {
    let number = || select(vec!["0", "1", "1.5", "2", "12", "-1"]);
    prop_oneof![
        (select(vec!["==", "!=", "<", "<=", ">", ">="]), number())
            .prop_map(|(order, number)| Asks::Other(format!("{order} {number}"))),
        number().prop_map(|number| Asks::Other(format!("in [{number}, 1..2]"))),
        Just(Asks::Other("exists".to_owned())),
    ]
}

fn of_addresses() -> impl Strategy<Value = Asks> {
    let address = || select(vec!["10.0.0.0", "10.0.0.1", "10.0.0.2", "255.255.255.255", "::", "::1"]);
    let networks = vec!["10.0.0.0/31", "10.0.0.0/30", "0.0.0.0/0", "::/127", "::/0"];
    prop_oneof![
        (select(vec!["==", "!=", "<", "<=", ">", ">="]), address())
            .prop_map(|(order, address)| Asks::Other(format!("{order} {address}"))),
        (select(networks), address())
            .prop_map(|(network, address)| Asks::Other(format!("in [{network}, {address}]"))),
        Just(Asks::Other("in [(10.0.0.0..10.0.0.2)]".to_owned())),
        select(vec!["@near", "@rest", "[@near, 10.0.0.2]", "@even", "[@odd, 10.0.0.1]"])
            .prop_map(|lists| Asks::Other(format!("in {lists}"))),
    ]
}

/// One claim about a field: what is asked of its values, and over which of them.
fn claim(
    field: &'static str,
    asks: impl Strategy<Value = Asks> + 'static,
) -> impl Strategy<Value = (Wanted, String)> {
    let over = select(vec!["", "", "", "all", "first", "once", "lower"]);
    let wanted = select(vec![
        Wanted::True,
        Wanted::True,
        Wanted::False,
        Wanted::False,
        Wanted::Unknown,
        Wanted::NotTrue,
        Wanted::NotFalse,
    ]);
    let compared = (over, asks).prop_map(move |(over, asks)| match (over, asks) {
        ("", Asks::Text(asks) | Asks::Other(asks)) | ("lower", Asks::Other(asks)) => {
            format!("{field} {asks}")
        }
        (over, Asks::Text(asks) | Asks::Other(asks)) => format!("{over}({field}) {asks}"),
    });
    let counted = (select(vec!["==", "!=", "<", ">"]), 0..4)
        .prop_map(move |(order, count)| format!("count({field}) {order} {count}"));
    (wanted, prop_oneof![5 => compared, 1 => counted])
}

/// All lists of up to so many of the values, each perhaps with a fault behind it.
fn lists(values: &[OwnedValue], longest: usize, may_fault: bool) -> Vec<Values> {
    let mut lists: Vec<Vec<OwnedValue>> = vec![vec![]];
    let mut last = lists.clone();
    for _ in 0..longest {
        last = last
            .iter()
            .flat_map(|list| values.iter().map(|value| [&list[..], std::slice::from_ref(value)].concat()))
            .collect();
        lists.extend(last.iter().cloned());
    }
    let rests: &[Option<Cause>] = if may_fault { &[None, Some(Cause::Encoding)] } else { &[None] };
    let with_rest =
        |known: Vec<OwnedValue>| rests.iter().map(move |rest| Values { known: known.clone(), rest: *rest });
    lists.into_iter().flat_map(with_rest).collect()
}

fn texts(texts: &[&str]) -> Vec<OwnedValue> {
    texts.iter().map(|text| OwnedValue::Text(text.as_bytes().into())).collect()
}

/// The answer is right as far as a small world can tell.
fn check(claims: &[(Wanted, String)], world: &[Values], may_give_up: bool) -> Result<(), TestCaseError> {
    let compiled = compiled(claims.iter().map(|(_, test)| test.as_str()));
    let tests = tests(&compiled);
    let asked: Vec<Asked<'_>> =
        tests.iter().zip(claims).map(|(test, (wanted, _))| Asked { test, wanted: *wanted }).collect();
    let all: Vec<Claim<'_>> =
        asked.iter().enumerate().map(|(index, asked)| Claim::new(index, asked)).collect();
    let fulfil = |claims: &[&Claim<'_>]| {
        world.iter().find(|values| claims.iter().all(|claim| claim.takes_all(values)))
    };
    let Some(field) = tests.first().map(|test| &test.field) else { return Ok(()) };
    let solved = solve(field, &asked, &mut Automata::default(), &mut Effort::new(EFFORT));
    match &solved {
        Solved::Values(values) => {
            prop_assert!(all.iter().all(|claim| claim.takes_all(values)), "{claims:?}: {values:?}");
        }
        Solved::Nothing { because } => {
            let because: Vec<&Claim<'_>> = because.iter().filter_map(|index| all.get(*index)).collect();
            let found = fulfil(&because);
            prop_assert!(found.is_none(), "{claims:?}: {} but for {found:?}", shown(&solved));
        }
        Solved::Unknown => prop_assert!(may_give_up, "{claims:?}"),
    }
    // With hardly any effort there is the same answer, or none.
    for steps in [0, 30, 1000] {
        let hasty = solve(field, &asked, &mut Automata::default(), &mut Effort::new(steps));
        let disagrees = match (&hasty, &solved) {
            (Solved::Values(_), other) => matches!(other, Solved::Nothing { .. }),
            (Solved::Nothing { .. }, other) => matches!(other, Solved::Values(_)),
            (Solved::Unknown, _) => false,
        };
        prop_assert!(!disagrees, "{claims:?}: {hasty:?} after {steps}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 8 / 5))]

    #[test]
    fn texts_of_many_values(claims in vec(claim("header[\"x\"]", of_texts()), 1..6)) {
        let world = lists(&texts(&["", "a", "b", "A", "ab", "ba", "aba", "1", "q"]), 3, false);
        check(&claims, &world, false)?;
    }

    #[test]
    fn texts_of_one_value(claims in vec(claim("query", of_texts()), 1..6)) {
        let world = lists(&texts(&["", "a", "b", "A", "aB", "ab", "ba", "aba", "abab", "1", "12", "q"]), 1, false);
        check(&claims, &world, false)?;
    }

    #[test]
    fn numbers_of_many_values(claims in vec(claim("xml.a/b", of_numbers()), 1..6)) {
        let mut values = texts(&["x", "-2", "-1", "0", "0.5", "1", "1.25", "2", "1e1", "12", "13"]);
        values.push(OwnedValue::Unknown(Cause::Limit));
        check(&claims, &lists(&values, 2, true), false)?;
    }

    #[test]
    fn numbers_of_one_value(claims in vec(claim("json.a", of_numbers()), 1..6)) {
        let mut values = texts(&["x", "-2", "-1", "-0.5", "0", "0.5", "1", "1.25", "1.5", "1.7", "2", "5", "12", "13"]);
        values.extend([OwnedValue::Unknown(Cause::Limit), OwnedValue::Nothing, OwnedValue::Boolean(true)]);
        let mut world = lists(&values, 1, false);
        // Its value settles it, unless a fault stands in the value.
        let broken_off = vec![OwnedValue::Unknown(Cause::Malformed)];
        world.extend([Vec::new(), broken_off].map(|known| Values { known, rest: Some(Cause::Malformed) }));
        check(&claims, &world, false)?;
    }

    #[test]
    fn texts_and_numbers(claims in vec(claim("json.a[*]", prop_oneof![of_texts(), of_numbers()]), 1..6)) {
        let mut values = texts(&["", "a", "ab", "1", "12", "1.5", "-1", "1a", "true"]);
        values.extend([OwnedValue::Unknown(Cause::Limit), OwnedValue::Nothing, OwnedValue::Boolean(true)]);
        check(&claims, &lists(&values, 2, true), true)?;
    }

    #[test]
    fn whole_numbers(claims in vec(claim("srcport", of_numbers()), 1..6)) {
        let values: Vec<OwnedValue> = [0, 1, 2, 3, 11, 12, 13, 65535].map(OwnedValue::Integer).into();
        check(&claims, &lists(&values, 1, false), false)?;
    }

    #[test]
    fn addresses(claims in vec(claim("srcip", of_addresses()), 1..6)) {
        let values = ["0.0.0.0", "10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "255.255.255.255", "::", "::1", "::2", "ffff::"];
        let values: Vec<OwnedValue> =
            values.iter().map(|text| OwnedValue::Ip(text.parse().expect("an address"))).collect();
        check(&claims, &lists(&values, 1, false), false)?;
    }
}
