//! A body in content codings: of values in it none is known where one of the codings is not.

use pointsman_content::ContentDecoder;
use pointsman_rules::Field;

use super::joined::{Case, Sought};
use super::kinds::Kind;
use super::of_field::needs_value;
use super::related::{pinned, tests_of};
use super::{Trial, Try};
use crate::Effort;
use crate::logic::lemmas::Lemma;
use crate::logic::states::States;
use crate::space::Solved;

const NAME: &str = r#"header["content-encoding"]"#;
/// Those that witnesses have, the simplest first.
const KNOWN: [&str; 2] = ["^(?i:identity)$", "^(?i:gzip|x-gzip|deflate|br|zstd)$"];
/// Bytes that a body may come to, for as much as is asked here.
const DECODED_BYTES_MAX: u64 = 1;

impl<'p> Trial<'_, 'p> {
    /// With codings that are known, of which anything may be asked.
    pub(super) fn decode(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        let of_content = |field: &Field| Kind::of_field(field).is_some();
        let (field, old) = case.sketch.fields.iter().find(|(field, _)| is_coding(field))?;
        if !case.why.fields.contains(field) || !case.why.fields.iter().any(of_content) {
            return None;
        }
        for known in KNOWN {
            let mut sought = Sought::new(field, NAME, case.matters);
            sought.narrow(format!("all({NAME}) matches \"{known}\""));
            let Some(Solved::Values(values)) = self.solve_within(&sought, effort) else { continue };
            if values == *old {
                continue;
            }
            let changed = vec![(*field, values)];
            let tried = self.with_other_values(case.sketch, &[field], changed, effort);
            if tried.is_some() {
                return tried;
            }
        }
        let lemma = of_unknown(case, field)?;
        self.never(lemma);
        Some(Try::Again)
    }
}

pub(super) fn is_coding(field: &Field) -> bool {
    matches!(field, Field::Header(name) if &**name == "content-encoding")
}

/// A line with a coding that is not known, and a test that needs a value behind it.
fn of_unknown(case: &Case<'_, '_>, coding: &Field) -> Option<Lemma> {
    let (pin, texts) = pinned(&tests_of(case.matters, coding))?;
    let is_unknown = |text: &[u8]| ContentDecoder::new([text], DECODED_BYTES_MAX).is_err();
    let (test, states) =
        case.matters.each().find(|(test, states)| test.field.is_in_body() && needs_value(test, *states))?;
    let are_unknown = texts.into_iter().all(is_unknown);
    are_unknown.then(|| vec![(pin.number(), States::TRUE), (test.number(), states)])
}
