//! A change of protocol that a request asks for, and what else it has to be then.

use pointsman_rules::Field;

use super::joined::Case;
use super::of_field::needs_value;
use super::related::{Mattering, asked, made_up, numbers};
use super::{Trial, Try};
use crate::Effort;
use crate::logic::lemmas::Lemma;
use crate::logic::states::States;
use crate::space::{Solved, solve};
use crate::wanted::{Asked, Values, Wanted};

impl<'p> Trial<'_, 'p> {
    /// With other protocols than WebSocket, of which anything may be asked, or what such a request never is.
    pub(super) fn change(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        if !case.why.fields.contains(&Field::Upgrade) {
            return None;
        }
        let protocols = self.mattering(case, &Field::Upgrade);
        let (first, _) = *protocols.first()?;
        let lemma = match self.all_but(&protocols, r#"upgrade == "websocket""#, Wanted::False, effort)? {
            Ok(values) => {
                let is_new = !case.sketch.fields.contains(&(&first.field, values.clone()));
                let others = vec![(&first.field, values)];
                let tried = is_new
                    .then(|| self.with_other_values(case.sketch, &[&Field::Upgrade], others, effort))
                    .flatten();
                if tried.is_some() {
                    return tried;
                }
                None
            }
            Err(of_websocket) => self.never_of_websocket(case, of_websocket, effort),
        };
        let lemma = lemma.or_else(|| self.never_in_http10(case, &protocols, effort))?;
        self.never(lemma);
        Some(Try::Again)
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
        let methods = self.mattering(case, &Field::Method);
        if let Some(Err(others)) = self.all_but(&methods, r#"method == "GET""#, Wanted::True, effort) {
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

    /// HTTP/1.0 knows no change of protocol.
    fn never_in_http10(
        &mut self,
        case: &Case<'_, 'p>,
        protocols: &[Mattering<'p>],
        effort: &mut Effort,
    ) -> Option<Lemma> {
        let (test, states) = protocols.iter().find(|(test, states)| needs_value(test, *states))?;
        let versions = self.mattering(case, &Field::Version);
        let of_others = self.all_but(&versions, r#"version == "1.0""#, Wanted::False, effort)?.err()?;
        Some([of_others, vec![(test.number(), *states)]].concat())
    }

    /// What matters of a field.
    fn mattering(&self, case: &Case<'_, 'p>, field: &Field) -> Vec<Mattering<'p>> {
        let own = |(test, states): &Mattering<'p>| test.field == *field && states.wanted().is_some();
        case.matters.each().filter(own).collect()
    }

    /// Values of a field that satisfy some tests and one more, or those of the tests that leave none. Nothing where there are
    /// no tests, or it is not known.
    fn all_but(
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
