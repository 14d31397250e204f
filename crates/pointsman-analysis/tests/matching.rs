//! Regexes of rules match what they say, with the features that this crate has its dependencies built with (docs/adr/0064).

use pointsman_rules::{Condition, Op, Program, Targets, Truth, Value, compile};
use proptest::prelude::*;
use regex_automata::nfa::thompson::{self, pikevm::PikeVM};
use regex_automata::util::syntax;

fn program(regex: &str) -> Program {
    let rules = format!("if (host matches \"{regex}\") {{ reject(); }}");
    compile(&rules, &Targets::Any).unwrap_or_else(|wrong| panic!("{rules}\n{wrong:?}")).program
}

/// What the engine says of some texts.
fn matched(regex: &str, texts: &[String]) -> Vec<bool> {
    let program = program(regex);
    let Some(Condition::Test(test)) = program.rules.first().map(|rule| &rule.condition) else {
        panic!("it is one test");
    };
    assert!(matches!(test.op, Op::Matches(_)));
    texts.iter().map(|text| test.holds(Value::Text(text.as_bytes())) == Truth::True).collect()
}

/// The same of all states of the NFA, one after the other.
fn by_states(regex: &str, texts: &[String]) -> Vec<bool> {
    let machine = PikeVM::builder()
        .syntax(syntax::Config::new().unicode(false).utf8(false).dot_matches_new_line(true))
        .thompson(thompson::Config::new().utf8(false))
        .build(regex)
        .expect("a regex");
    let mut cache = machine.create_cache();
    texts.iter().map(|text| machine.is_match(&mut cache, text.as_bytes())).collect()
}

#[test]
fn what_is_searched_from_its_end_or_its_middle() {
    for (regex, text, expected) in [
        (r"[a-z]{2}/[^/]*\.php", "/shop/x.php", true),
        (r"[A-Za-z]+/[^/]*\((compatible|bot)", "Mozilla/5.0 (compatible; Googlebot)", true),
        ("[a-z]/[^/]*/", "/shop/x", false),
        (r"[^.]+\.[^.]*\.[a-z]+", "shop.example", false),
        // It took for ever.
        ("[a-z]=[^=]*(=[^=]*=[^=]*)*;", "a=b", false),
    ] {
        assert_eq!(matched(regex, &[text.to_owned()]), [expected], "{regex} {text}");
    }
}

/// Classes that wait for one byte, and literals that stand behind them.
fn regexes() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("[^/]*"),
        Just("[^=]*"),
        Just("[a-z]"),
        Just("[a-z]+"),
        Just("/"),
        Just("="),
        Just("ab"),
        Just("(=[^=]*)*"),
        Just("(/[^/]*)?"),
        Just("(a|b/)"),
        Just(";"),
        Just(".*"),
    ];
    prop::collection::vec(part, 1..6).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn regexes_match_as_their_states_do(
        regex in regexes(),
        texts in prop::collection::vec("[ab/=;]{0,12}", 1..24),
    ) {
        prop_assert_eq!(matched(&regex, &texts), by_states(&regex, &texts), "{} {:?}", regex, texts);
    }
}
