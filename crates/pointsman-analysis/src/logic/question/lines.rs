//! What Connection says: lines that it names, which no rule sees, and in HTTP/2 another protocol.

use pointsman_rules::{Field, OwnedValue};

use super::joined::Case;
use super::of_field::needs_value;
use super::related::{asked, tests_of};
use super::{Trial, Try};
use crate::Effort;
use crate::space::{Solved, of_fixed};
use crate::wanted::{Values, Wanted};

impl<'p> Trial<'_, 'p> {
    /// With a Connection line that does not name a field that is needed. Where it has to, the field is not seen.
    pub(super) fn unnamed(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        let connection = Field::Header("connection".into());
        if !case.why.fields.contains(&connection) {
            return None;
        }
        let own = tests_of(case.matters, &connection);
        let (first, _) = own.first()?;
        for field in case.why.fields.iter().filter(|field| **field != connection) {
            let Some(names_it) = names(field) else { continue };
            match self.all_but(&own, &names_it, Wanted::False, effort) {
                Some(Ok(values)) => {
                    let others = vec![(&first.field, values)];
                    let tried = self.with_other_values(case.sketch, &[&connection], others, effort);
                    if tried.is_some() {
                        return tried;
                    }
                }
                Some(Err(lemma)) => {
                    let others = tests_of(case.matters, field);
                    let needed = others.iter().find(|(test, states)| needs_value(test, *states));
                    if let Some((test, states)) = needed {
                        self.never([lemma, vec![(test.number(), *states)]].concat());
                        return Some(Try::Again);
                    }
                }
                None => {}
            }
        }
        None
    }
}

impl<'p> Trial<'_, 'p> {
    /// In HTTP/2 Connection stands for a CONNECT that asks for a protocol which is granted (RFC 8441 section 5).
    pub(super) fn tunnelled(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        static UPGRADE: Field = Field::Upgrade;
        let connection = Field::Header("connection".into());
        if !case.why.fields.contains(&connection) || case.sketch.fields.iter().any(|(of, _)| **of == UPGRADE)
        {
            return None;
        }
        self.needs_http2(case, effort)?;
        let own = tests_of(case.matters, &connection);
        let (first, _) = own.first()?;
        let one = |text: &[u8]| Values { known: vec![OwnedValue::Text(text.into())], rest: None };
        let asked: Vec<_> = asked(&own).collect();
        let Solved::Values(says) = of_fixed(one(b"Upgrade"), &asked) else { return None };
        let granted = self.analyst.setting.upgrades.iter();
        granted.map(|name| name.to_ascii_lowercase()).find_map(|name| {
            let values = vec![(&first.field, says.clone()), (&UPGRADE, one(name.as_bytes()))];
            self.with_other_values(case.sketch, &[&connection], values, effort)
        })
    }
}

/// The condition that Connection names a field. Nothing of what it cannot hide.
fn names(field: &Field) -> Option<String> {
    let Field::Header(name) = field else { return None };
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    // These options are no names of fields.
    let is_option = matches!(&**name, "close" | "keep-alive");
    (is_plain && !is_option)
        .then(|| format!(r#"header["connection"] matches "(?i)(?:^|,)[ \t]*{name}[ \t]*(?:,|$)""#))
}
