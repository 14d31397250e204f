//! What no request is at once, because the codec refuses it or writes it otherwise: conditions over several fields, each of which
//! may be true by itself.

use std::sync::LazyLock;

use pointsman_rules::{Condition, Field, Program, Test};

use super::joined::Case;
use super::of_field::fails_without_value;
use super::related::{Mattering, asked, made_up, numbers};
use super::{Trial, Try};
use crate::Effort;
use crate::logic::lemmas::Lemma;
use crate::logic::world::Matters;
use crate::space::{Solved, of_fixed};
use crate::wanted::{Asked, Values, Wanted};
use crate::witness::{Says, is_of_handshake};

/// What is never true at once.
#[derive(Debug)]
struct Exclusion {
    /// Conditions of one test, each of another field, and what they come to.
    parts: &'static [(&'static str, bool)],
    holds: Holds,
}

/// At which listeners it is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Everywhere,
    /// Where nobody is believed who speaks for somebody else.
    OfStrangers,
    /// Where no connection may change to another protocol.
    WithoutUpgrades,
}

const fn never(parts: &'static [(&'static str, bool)]) -> Exclusion {
    Exclusion { parts, holds: Holds::Everywhere }
}

const fn never_of_strangers(parts: &'static [(&'static str, bool)]) -> Exclusion {
    Exclusion { parts, holds: Holds::OfStrangers }
}

const fn never_without_upgrades(parts: &'static [(&'static str, bool)]) -> Exclusion {
    Exclusion { parts, holds: Holds::WithoutUpgrades }
}

const NAMES_UPGRADE: &str = r#"header["connection"] matches "(?i)(?:^|,)[ \t]*upgrade[ \t]*(?:,|$)""#;

/// `exclusions_hold` sends the codec what each of them says is never taken so.
const EXCLUSIONS: &[Exclusion] = &[
    // A TRACE has no content (RFC 9110 section 9.3.8).
    never(&[(r#"method == "TRACE""#, true), ("content_length > 0", true)]),
    never(&[(r#"method == "TRACE""#, true), (r#"header["content-length"] matches "[1-9]""#, true)]),
    never(&[(r#"method == "TRACE""#, true), (r#"header["content-length"] > 0"#, true)]),
    never(&[(r#"method == "TRACE""#, true), (r#"header["transfer-encoding"] exists"#, true)]),
    // Hops are counted by one number (section 7.6.2).
    never(&[(r#"method in ["TRACE", "OPTIONS"]"#, true), (r#"count(header["max-forwards"]) > 1"#, true)]),
    never(&[
        (r#"method in ["TRACE", "OPTIONS"]"#, true),
        (r#"header["max-forwards"] matches "[^0-9]|^$""#, true),
    ]),
    // A length is said once, and in one way; HTTP/1.0 knows no transfer codings (RFC 9112 sections 6.1 and 6.3).
    never(&[("content_length exists", true), (r#"header["transfer-encoding"] exists"#, true)]),
    never(&[(r#"header["content-length"] exists"#, true), (r#"header["transfer-encoding"] exists"#, true)]),
    never(&[(r#"version == "1.0""#, true), (r#"header["transfer-encoding"] exists"#, true)]),
    // Only in HTTP/1.0 a request need not name its host (section 3.2).
    never(&[(r#"version == "1.0""#, false), (r#"header["host"] exists"#, false)]),
    never(&[(r#"version == "1.0""#, false), ("host exists", false)]),
    // HTTP/2 has no fields about the connection, and its cookies are one line (RFC 9113 sections 8.2.2 and 8.2.3). A body that
    // announces no length is seen as one in chunks, and a CONNECT for a protocol by a Connection that says Upgrade.
    never(&[(r#"version == "2""#, true), (r#"header["te"] exists"#, true)]),
    never(&[(r#"version == "2""#, true), (r#"header["keep-alive"] exists"#, true)]),
    never(&[(r#"version == "2""#, true), (r#"header["proxy-connection"] exists"#, true)]),
    never(&[(r#"version == "2""#, true), (r#"header["upgrade"] exists"#, true)]),
    never(&[(r#"version == "2""#, true), (r#"header["connection"] != "Upgrade""#, true)]),
    never(&[(r#"version == "2""#, true), (r#"count(header["connection"]) > 1"#, true)]),
    never_without_upgrades(&[(r#"version == "2""#, true), (r#"header["connection"] exists"#, true)]),
    never(&[(r#"version == "2""#, true), (r#"header["transfer-encoding"] != "chunked""#, true)]),
    never(&[(r#"version == "2""#, true), (r#"count(header["cookie"]) > 1"#, true)]),
    never(&[(r#"version == "2""#, true), (r#"lower(url) startsWith "http""#, true)]),
    // Connection names it, and hides it.
    never(&[("upgrade exists", true), (r#"header["upgrade"] exists"#, true)]),
    never(&[("upgrade exists", true), (NAMES_UPGRADE, false)]),
    // Who is not believed has come by the scheme that his target names (RFC 9110 section 7.4).
    never_of_strangers(&[(r#"scheme == "http""#, true), (r#"lower(url) startsWith "https:""#, true)]),
    never_of_strangers(&[(r#"scheme == "https""#, true), (r#"lower(url) startsWith "http:""#, true)]),
];

/// One of the conditions, read.
#[derive(Debug)]
pub(super) struct Part {
    program: Program,
    holds: bool,
}

impl Part {
    pub(super) fn read((condition, holds): &(&str, bool)) -> Option<Part> {
        Some(Part { program: made_up(&[condition])?, holds: *holds })
    }

    pub(super) fn test(&self) -> Option<&Test> {
        match &self.program.rules.first()?.condition {
            Condition::Test(test) => Some(test),
            _ => None,
        }
    }
}

static PARTS: LazyLock<Vec<(&'static Exclusion, Vec<Part>)>> = LazyLock::new(|| {
    let parts = |exclusion: &'static Exclusion| {
        Some((exclusion, exclusion.parts.iter().map(Part::read).collect::<Option<Vec<_>>>()?))
    };
    EXCLUSIONS.iter().filter_map(parts).collect()
});

/// What is known of a part where some tests come to what matters.
pub(super) enum Forced<'p> {
    /// It is so, because of these.
    Yes(Lemma),
    /// It need not be, with these values of a field that matters.
    No(Option<(&'p Field, Values)>),
}

impl<'p> Trial<'_, 'p> {
    /// What no request is at once, where this is asked for, or values with which it is not. Nothing where that leads no further.
    pub(super) fn exclude(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        if let Some(lemma) = self.without_content(case, effort) {
            self.never(lemma);
            return Some(Try::Again);
        }
        for (exclusion, parts) in PARTS.iter() {
            let is_in_the_way = |part: &Part| {
                let Some(test) = part.test() else { return false };
                let same = self.analyst.same(&test.field);
                case.why.fields.iter().any(|field| self.analyst.same(field) == same)
            };
            let is_so_here = match exclusion.holds {
                Holds::Everywhere => true,
                Holds::OfStrangers => self.analyst.setting.believes_nobody(),
                Holds::WithoutUpgrades => self.analyst.setting.upgrades.is_empty(),
            };
            if !is_so_here || !parts.iter().any(is_in_the_way) {
                continue;
            }
            let mut lemma = Lemma::new();
            let mut others = Vec::new();
            for part in parts {
                match part.test().map(|test| self.forced(test, part.holds, case.matters, effort)) {
                    Some(Some(Forced::Yes(because))) => lemma.extend(because),
                    Some(Some(Forced::No(values))) => others.push(values),
                    Some(None) | None => others.push(None),
                }
            }
            if others.is_empty() {
                self.never(lemma);
                return Some(Try::Again);
            }
            for (field, values) in others.into_iter().flatten() {
                let is_new = !case.sketch.fields.contains(&(field, values.clone()));
                let tried = is_new
                    .then(|| self.with_other_values(case.sketch, &[field], vec![(field, values)], effort))
                    .flatten();
                if tried.is_some() {
                    return tried;
                }
            }
        }
        None
    }

    /// Whether a test comes to something wherever what matters of its field does.
    pub(super) fn forced(
        &mut self,
        test: &Test,
        holds: bool,
        matters: &Matters<'p>,
        effort: &mut Effort,
    ) -> Option<Forced<'p>> {
        let field = self.analyst.same(&test.field);
        let otherwise = Asked { test, wanted: if holds { Wanted::NotTrue } else { Wanted::NotFalse } };
        if is_of_handshake(field) {
            return self.forced_by_handshake(otherwise, matters, effort);
        }
        let own: Vec<Mattering<'p>> = self.wanted_of(matters, |of| of == field);
        let all: Vec<_> = asked(&own).chain([otherwise]).collect();
        match self.analyst.solve_tests(field, &all, effort) {
            Solved::Values(values) => Some(Forced::No(own.first().map(|(test, _)| (&test.field, values)))),
            Solved::Nothing { because } => Some(Forced::Yes(numbers(because, &own))),
            Solved::Unknown => None,
        }
    }

    /// The same of what is agreed on before a request.
    fn forced_by_handshake(
        &mut self,
        otherwise: Asked<'_>,
        matters: &Matters<'p>,
        effort: &mut Effort,
    ) -> Option<Forced<'p>> {
        let own = self.wanted_of(matters, is_of_handshake);
        let mut lemma = Lemma::new();
        for agreed in self.analyst.setting.agreements() {
            let Says::These(said) = agreed.says(&otherwise.test.field) else { return None };
            if !effort.take(1 + own.len() as u64) {
                return None;
            }
            if matches!(of_fixed(said.clone(), &[otherwise]), Solved::Nothing { .. }) {
                continue;
            }
            let mut fails =
                own.iter().filter(|(test, states)| match (agreed.says(&test.field), states.wanted()) {
                    (Says::These(values), Some(wanted)) => {
                        matches!(of_fixed(values, &[Asked { test, wanted }]), Solved::Nothing { .. })
                    }
                    _ => false,
                });
            match fails.next() {
                Some((test, states)) => lemma.push((test.number(), *states)),
                None => {
                    let mut of_it = own.iter().map(|(test, _)| &test.field);
                    let same = self.analyst.same(&otherwise.test.field);
                    let named = of_it.find(|field| self.analyst.same(field) == same);
                    return Some(Forced::No(named.map(|field| (field, said))));
                }
            }
        }
        Some(Forced::Yes(lemma))
    }

    /// A TRACE has no content, and no more is there than is announced: all fields of a body are known to be absent.
    fn without_content(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Lemma> {
        const EMPTY: [&str; 3] =
            [r#"method == "TRACE""#, "content_length == 0", r#"header["content-length"] matches "^0+$""#];
        static EMPTY_PARTS: LazyLock<Vec<Part>> =
            LazyLock::new(|| EMPTY.iter().filter_map(|empty| Part::read(&(*empty, true))).collect());
        let is_of_body = |(test, _): &Mattering<'p>| {
            matches!(test.field, Field::Payload(_)) && case.why.fields.contains(&test.field)
        };
        let mut of_body = case.matters.each().filter(is_of_body);
        let (test, states) = of_body.find(|(test, states)| fails_without_value(test, *states))?;
        let lemma = EMPTY_PARTS.iter().find_map(|part| self.needed(part, case, effort))?;
        Some(lemma.into_iter().chain([(test.number(), states)]).collect())
    }

    /// What leaves no version but HTTP/2; nothing where there are others.
    pub(super) fn needs_http2(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Lemma> {
        static HTTP2: LazyLock<Option<Part>> = LazyLock::new(|| Part::read(&(r#"version == "2""#, true)));
        self.needed(HTTP2.as_ref()?, case, effort)
    }

    /// The tests because of which a part is as it says.
    fn needed(&mut self, part: &Part, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Lemma> {
        match self.forced(part.test()?, part.holds, case.matters, effort)? {
            Forced::Yes(lemma) => Some(lemma),
            Forced::No(_) => None,
        }
    }

    /// What matters of some fields.
    pub(super) fn wanted_of(
        &self,
        matters: &Matters<'p>,
        is_it: impl Fn(&Field) -> bool,
    ) -> Vec<Mattering<'p>> {
        let is_asked = |(test, states): &Mattering<'p>| {
            is_it(self.analyst.same(&test.field)) && states.wanted().is_some()
        };
        matters.each().filter(is_asked).collect()
    }
}

#[cfg(test)]
mod tests;
