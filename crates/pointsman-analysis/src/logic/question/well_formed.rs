//! Fields that by themselves have values, and no request has: what a parser takes is less.

use pointsman_rules::{Field, Place};

use super::of_field::needs_value;
use super::related::{asked, made_up, numbers, tests_of};
use super::{Trial, Try};
use crate::Effort;
use crate::logic::world::Matters;
use crate::space::{Solved, solve};
use crate::wanted::{Asked, Sketch, Wanted};

impl<'p> Trial<'_, 'p> {
    /// The sketch with a value that a parser takes, where not any may stand.
    pub(super) fn well_formed(
        &mut self,
        sketch: &Sketch<'p>,
        matters: &Matters<'p>,
        field: &Field,
        effort: &mut Effort,
    ) -> Option<Try<'p>> {
        let own = tests_of(matters, field);
        let (first, _) = own.first()?;
        let Grammars { tried, whole } = grammars(field)?;
        let mut nowhere = None;
        let all = tried.iter().map(|tried| (*tried, false)).chain(whole.map(|whole| (whole, true)));
        for (conditions, is_all) in all {
            let further = made_up(conditions)?;
            let mut all: Vec<_> = asked(&own).collect();
            for rule in &further.rules {
                rule.condition.each_test(&mut |test| all.push(Asked { test, wanted: Wanted::True }));
            }
            match solve(field, &all, &mut self.analyst.automata, effort) {
                // It stands there already, and what is wrong is something else.
                Solved::Values(values) if sketch.fields.contains(&(&first.field, values.clone())) => {}
                Solved::Values(values) => {
                    let kept = sketch.fields.iter().filter(|(other, _)| *other != field).cloned();
                    let changed = Sketch { fields: kept.chain([(&first.field, values)]).collect() };
                    match self.realised(&changed, effort) {
                        Ok(tried) => return tried,
                        Err(why) if why.fields.as_slice() == std::slice::from_ref(field) => {}
                        Err(why) => match self.relate(&changed, matters, &why, effort) {
                            Some(Try::Nowhere(why)) => nowhere = Some(why),
                            Some(tried) => return Some(tried),
                            None => nowhere = Some(why),
                        },
                    }
                }
                Solved::Nothing { because } if is_all => {
                    let (test, states) = own.iter().find(|(test, states)| needs_value(test, *states))?;
                    self.never([numbers(because, &own), vec![(test.number(), *states)]].concat());
                    return Some(Try::Again);
                }
                Solved::Nothing { .. } | Solved::Unknown => {}
            }
        }
        nowhere.map(Try::Nowhere)
    }
}

/// What values of a field may be, where it has some.
struct Grammars {
    /// In the order in which they are tried.
    tried: &'static [&'static [&'static str]],
    /// All of it, where it is known: there is no request with another one.
    whole: Option<&'static [&'static str]>,
}

/// Nothing where any may stand.
fn grammars(field: &Field) -> Option<Grammars> {
    Some(match field {
        Field::Url => Grammars { tried: &[&[ODD_IN_QUERY], &[SAFE_URL]], whole: None },
        Field::Path => Grammars { tried: &[&[SAFE_PATH]], whole: None },
        Field::Payload(payload) if payload.place == Place::Size => {
            Grammars { tried: &[], whole: Some(&["body.size > 0"]) }
        }
        Field::Header(name) => match &**name {
            // A long one has room for whatever else is to stand in the body.
            "content-length" => Grammars {
                tried: &[
                    &[ONE_LENGTH, r#"header["content-length"] matches "^(0|[1-9][0-9]{0,14})$""#],
                    &[ONE_LENGTH, r#"header["content-length"] matches "^[1-9][0-9]{2,14}$""#],
                ],
                whole: Some(&[ONE_LENGTH, r#"header["content-length"] matches "^[0-9]{1,18}$""#]),
            },
            "transfer-encoding" => Grammars {
                tried: &[],
                whole: Some(&[
                    r#"count(header["transfer-encoding"]) == 1"#,
                    r#"lower(header["transfer-encoding"]) == "chunked""#,
                ]),
            },
            // Another expectation is refused, and so are two (RFC 9110 section 10.1.1).
            "expect" => Grammars {
                tried: &[],
                whole: Some(&[
                    r#"count(header["expect"]) == 1"#,
                    r#"lower(header["expect"]) == "100-continue""#,
                ]),
            },
            _ => return None,
        },
        _ => return None,
    })
}

const ONE_LENGTH: &str = r#"count(header["content-length"]) == 1"#;

/// What may be taken for a dot segment stands behind the question mark.
const ODD_IN_QUERY: &str = r#"url matches "^(?:(?i:https?)://[^/?]+)?/[^%;?]*[?]""#;
/// Segments are empty or begin with what is no dot, no code and no `;`, and hold no codes of slashes, of `%`, or of bytes that
/// some take for a dot: nobody takes one for a dot segment, however often it is decoded.
const SAFE_URL: &str = r#"url matches "^(?:(?i:https?)://[^/?]+)?(?:/(?:[^%;?/.](?:[^%?/]|%(?i:0[1-9A-F]|2[0-46-9A-E]|5[0-9ABD-F]|C[2-9A-F]|[1346-9ABDEF][0-9A-F]))*)?)+(?:[?]|$)""#;
const SAFE_PATH: &str = r#"path matches "^(?:/(?:[^%;/.](?:[^%/]|%(?i:0[1-9A-F]|2[0-46-9A-E]|5[0-9ABD-F]|C[2-9A-F]|[1346-9ABDEF][0-9A-F]))*)?)+$""#;
