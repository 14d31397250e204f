//! A change of protocol that a request asks for, and what else it has to be then.

use pointsman_rules::{Field, OwnedValue};

use super::joined::Case;
use super::of_field::needs_value;
use super::related::{Mattering, asked, made_up, numbers, tests_of};
use super::{Trial, Try};
use crate::Effort;
use crate::logic::lemmas::Lemma;
use crate::logic::states::States;
use crate::space::{Solved, of_choices, of_fixed, solve};
use crate::wanted::{Asked, Values, Wanted};

impl<'p> Trial<'_, 'p> {
    /// With other protocols than WebSocket, of which anything may be asked, or what such a request never is.
    pub(super) fn change(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        if !case.why.fields.contains(&Field::Upgrade) {
            return None;
        }
        let protocols = tests_of(case.matters, &Field::Upgrade);
        let (first, _) = *protocols.first()?;
        match self.granted_in_http2(case, &protocols, effort) {
            Some(Ok(values)) => {
                if let Some(tried) = self.with_protocols(case, (&first.field, values), effort) {
                    return Some(tried);
                }
            }
            Some(Err(lemma)) => {
                self.never(lemma);
                return Some(Try::Again);
            }
            None => {}
        }
        let lemma = match self.all_but(&protocols, r#"upgrade == "websocket""#, Wanted::False, effort)? {
            Ok(values) => {
                if let Some(tried) = self.with_protocols(case, (&first.field, values), effort) {
                    return Some(tried);
                }
                None
            }
            Err(of_websocket) => self.never_of_websocket(case, of_websocket, effort),
        };
        let lemma = lemma.or_else(|| self.never_in_http10(case, &protocols, effort))?;
        self.never(lemma);
        Some(Try::Again)
    }

    /// With these protocols, if they are others.
    fn with_protocols(
        &mut self,
        case: &Case<'_, 'p>,
        protocols: (&'p Field, Values),
        effort: &mut Effort,
    ) -> Option<Try<'p>> {
        if case.sketch.fields.contains(&protocols) {
            return None;
        }
        self.with_other_values(case.sketch, &[&Field::Upgrade], vec![protocols], effort)
    }

    /// What is seen in HTTP/2, where nothing else will do: one protocol that is granted, or none. Who asks for another one is
    /// refused (RFC 8441 section 4). The error is that this leaves nothing.
    fn granted_in_http2(
        &mut self,
        case: &Case<'_, 'p>,
        protocols: &[Mattering<'p>],
        effort: &mut Effort,
    ) -> Option<Result<Values, Lemma>> {
        let of_http2 = self.needs_http2(case, effort)?;
        let granted = self.analyst.setting.upgrades.iter().map(|name| Values {
            known: vec![OwnedValue::Text(name.to_ascii_lowercase().into_bytes().into())],
            rest: None,
        });
        let choices = [Values::default()].into_iter().chain(granted).collect();
        let all: Vec<_> = asked(protocols).collect();
        match of_choices(choices, &all) {
            Solved::Values(values) => Some(Ok(values)),
            Solved::Nothing { because } => Some(Err([numbers(because, protocols), of_http2].concat())),
            Solved::Unknown => None,
        }
    }

    /// What a handshake of WebSocket never is (RFC 6455 section 4.1): another method than GET, or one with a body. Over
    /// HTTP/2 it is seen as such a GET (RFC 8441 section 5). Where the switch grants no WebSocket it is a request as any other.
    fn never_of_websocket(
        &mut self,
        case: &Case<'_, 'p>,
        of_websocket: Lemma,
        effort: &mut Effort,
    ) -> Option<Lemma> {
        let is_granted =
            |upgrades: &[Box<str>]| upgrades.iter().any(|name| name.eq_ignore_ascii_case("websocket"));
        if of_websocket.is_empty() || !is_granted(&self.analyst.setting.upgrades) {
            return None;
        }
        let methods = tests_of(case.matters, &Field::Method);
        if let Some(Err(others)) = self.all_but(&methods, r#"method == "GET""#, Wanted::True, effort) {
            return Some([of_websocket, others].concat());
        }
        if let Some(others) = self.never_of_handshake(case, effort) {
            return Some([of_websocket, others].concat());
        }
        // Without a body all of its fields are known to be absent.
        let needs_body = |(test, states): &Mattering<'p>| {
            matches!(test.field, Field::Payload(_))
                && (needs_value(test, *states) || *states == States::UNKNOWN)
        };
        let (test, states) = case.matters.each().find(needs_body)?;
        Some([of_websocket, vec![(test.number(), states)]].concat())
    }

    /// What the lines of a handshake never are: the switch refuses another version than 13, and one without a key.
    fn never_of_handshake(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Lemma> {
        const KEY: &str = r#"header["sec-websocket-key"] exists"#;
        let [version, key] =
            ["sec-websocket-version", "sec-websocket-key"].map(|name| Field::Header(name.into()));
        let own = tests_of(case.matters, &version);
        let all: Vec<_> = asked(&own).collect();
        let only = Values { known: vec![OwnedValue::Text((*b"13").into())], rest: None };
        if let Solved::Nothing { because } = of_fixed(only, &all) {
            return Some(numbers(because, &own));
        }
        let keys = tests_of(case.matters, &key);
        self.all_but(&keys, KEY, Wanted::True, effort)?.err()
    }

    /// HTTP/1.0 knows no change of protocol.
    fn never_in_http10(
        &mut self,
        case: &Case<'_, 'p>,
        protocols: &[Mattering<'p>],
        effort: &mut Effort,
    ) -> Option<Lemma> {
        let (test, states) = protocols.iter().find(|(test, states)| needs_value(test, *states))?;
        let versions = tests_of(case.matters, &Field::Version);
        let of_others = self.all_but(&versions, r#"version == "1.0""#, Wanted::False, effort)?.err()?;
        Some([of_others, vec![(test.number(), *states)]].concat())
    }

    /// Values of a field that satisfy some tests and one more, or those of the tests that leave none. Nothing where there are
    /// no tests, or it is not known.
    pub(super) fn all_but(
        &mut self,
        tests: &[Mattering<'p>],
        further: &str,
        wanted: Wanted,
        effort: &mut Effort,
    ) -> Option<Result<Values, Lemma>> {
        let (first, _) = tests.first()?;
        let program = made_up(&[further])?;
        let mut all: Vec<Asked<'_>> = asked(tests).collect();
        for rule in &program.rules {
            rule.condition.each_test(&mut |test| all.push(Asked { test, wanted }));
        }
        match solve(&first.field, &all, &mut self.analyst.automata, effort) {
            Solved::Values(values) => Some(Ok(values)),
            Solved::Nothing { because } => Some(Err(numbers(because, tests))),
            Solved::Unknown => None,
        }
    }
}
