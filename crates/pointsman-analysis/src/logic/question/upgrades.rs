//! A change of protocol that a request asks for, and what else it has to be then.

use std::sync::LazyLock;

use pointsman_rules::{Field, OwnedValue};

use super::joined::Case;
use super::of_field::needs_value;
use super::related::{Mattering, asked, made_up, numbers, tests_of};
use super::solving::Facts;
use super::{Trial, Try};
use crate::Effort;
use crate::logic::lemmas::Lemma;
use crate::logic::states::States;
use crate::space::{Solved, of_choices, of_fixed, solve};
use crate::wanted::{Asked, Values, Wanted};

/// What a handshake of WebSocket is (RFC 6455 section 4.2.1): a GET without a body, of version 13, with a key. Over HTTP/2 it is
/// seen as such a GET (RFC 8441 section 5).
static HANDSHAKE: LazyLock<Facts> = LazyLock::new(|| {
    let known = [
        (r#"method == "GET""#, Wanted::True),
        ("content_length > 0", Wanted::False),
        (r#"header["content-length"] matches "[1-9]""#, Wanted::False),
        (r#"header["transfer-encoding"] exists"#, Wanted::False),
        (r#"count(header["sec-websocket-version"]) == 1"#, Wanted::True),
        (r#"header["sec-websocket-version"] == "13""#, Wanted::True),
        (r#"count(header["sec-websocket-key"]) == 1"#, Wanted::True),
        (r#"header["sec-websocket-key"] matches "^[A-Za-z0-9+/]{22}==$""#, Wanted::True),
    ];
    Facts::read(&known.map(|(condition, wanted)| (condition.to_owned(), wanted))).unwrap_or_default()
});

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
            Err(of_websocket) => match self.of_websocket(case, of_websocket, effort) {
                Ok(tried) => return Some(tried),
                Err(lemma) => lemma,
            },
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

    /// With the lines of a handshake of WebSocket, where others were found, or what such a request never is. Where the switch
    /// grants no WebSocket it is a request as any other.
    fn of_websocket(
        &mut self,
        case: &Case<'_, 'p>,
        of_websocket: Lemma,
        effort: &mut Effort,
    ) -> Result<Try<'p>, Option<Lemma>> {
        let is_granted =
            |upgrades: &[Box<str>]| upgrades.iter().any(|name| name.eq_ignore_ascii_case("websocket"));
        if of_websocket.is_empty() || !is_granted(&self.analyst.setting.upgrades) {
            return Err(None);
        }
        let mut changed = Vec::new();
        for (field, found) in &case.sketch.fields {
            let facts = HANDSHAKE.of_field(field);
            let is_so = matches!(of_fixed(found.clone(), &facts), Solved::Values(_));
            if is_so {
                continue;
            }
            let own = tests_of(case.matters, field);
            let all: Vec<_> = asked(&own).chain(facts).collect();
            match solve(field, &all, &mut self.analyst.automata, effort) {
                Solved::Values(values) => changed.push((*field, values)),
                Solved::Nothing { because } => {
                    return Err(Some([of_websocket, numbers(because, &own)].concat()));
                }
                Solved::Unknown => return Err(None),
            }
        }
        if !changed.is_empty() {
            let of: Vec<&Field> = changed.iter().map(|(field, _)| *field).collect();
            if let Some(tried) = self.with_other_values(case.sketch, &of, changed, effort) {
                return Ok(tried);
            }
        }
        // Without a body all of its fields are known to be absent.
        let needs_body = |(test, states): &Mattering<'p>| {
            matches!(test.field, Field::Payload(_))
                && (needs_value(test, *states) || *states == States::UNKNOWN)
        };
        let found = case.matters.each().find(needs_body);
        Err(found.map(|(test, states)| [of_websocket, vec![(test.number(), states)]].concat()))
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
