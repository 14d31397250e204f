//! Places in a body of which one has all values of the other: `json.a[*]` those of `json.a[0]`, `xml.a//c` those of `xml.a/b/c`.
//! Values that were found for each by itself are put together.

use pointsman_rules::{Field, JsonStep, OwnedValue, Place};

use super::joined::{Case, DEPTH_MAX};
use super::places::values_with;
use super::related::{asked, tests_of};
use super::{Trial, Try};
use crate::Effort;
use crate::space::{Solved, of_fixed};
use crate::wanted::{Sketch, Values};

impl<'p> Trial<'_, 'p> {
    /// With the values of both at the place that covers the other one. Nothing where that leads no further.
    pub(super) fn share(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        if self.depth == DEPTH_MAX {
            return None;
        }
        let of = |wanted: &Field| case.sketch.fields.iter().find(|(field, _)| *field == wanted);
        let fields = &case.why.fields;
        for (one, all) in fields.iter().flat_map(|one| fields.iter().map(move |all| (one, all))) {
            let (Field::Payload(inner), Field::Payload(outer)) = (one, all) else { continue };
            if values_with(&outer.place, &inner.place).is_none() {
                continue;
            }
            let (Some((_, own)), Some((field, old))) = (of(one), of(all)) else { continue };
            let tests = tests_of(case.matters, all);
            let asked: Vec<_> = asked(&tests).collect();
            for known in lists(&own.known, &old.known, index(&outer.place, &inner.place)) {
                let values = Values { known, rest: old.rest };
                let is_new = values != *old && effort.take(asked.len() as u64);
                if !is_new || !matches!(of_fixed(values.clone(), &asked), Solved::Values(_)) {
                    continue;
                }
                let kept = case.sketch.fields.iter().filter(|(other, _)| other != field).cloned();
                let changed = Sketch { fields: kept.chain([(*field, values)]).collect() };
                if let Some(tried) = self.shared(&changed, case, effort) {
                    return Some(tried);
                }
            }
        }
        None
    }

    /// What becomes of the changed sketch. Where there is still no request it may be for another two of its fields.
    fn shared(&mut self, changed: &Sketch<'p>, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        let why = match self.realised(changed, effort) {
            Ok(tried) => return tried,
            Err(why) if why.fields == case.why.fields => return None,
            Err(why) => why,
        };
        self.depth += 1;
        let tried = self.relate(changed, case.matters, &why, effort);
        self.depth -= 1;
        tried.filter(|tried| !matches!(tried, Try::Nowhere(_)))
    }
}

/// The values of one place among those of the other, at its index, before them, and behind them up to there.
fn lists(own: &[OwnedValue], all: &[OwnedValue], index: usize) -> Vec<Vec<OwnedValue>> {
    /// More than these are not made up.
    const INDEX_MAX: usize = 64;
    let Some(last) = own.last().filter(|_| index <= INDEX_MAX) else { return Vec::new() };
    let others: Vec<_> = all.iter().filter(|value| !own.contains(value)).cloned().collect();
    let (before, behind) = others.split_at(index.min(others.len()));
    let up_to_there = vec![last.clone(); (index + 1).saturating_sub(others.len())];
    let mut lists = vec![[&others[..], &up_to_there].concat()];
    if before.len() == index {
        lists.insert(0, [before, own, behind].concat());
    }
    lists.push([own, &others].concat());
    lists
}

/// At which place in a list something stands, of which the other place has all.
fn index(all: &Place, one: &Place) -> usize {
    let found = match (all, one) {
        (Place::Json(all), Place::Json(one)) => {
            all.iter().zip(one.iter()).find_map(|(all, one)| match (all, one) {
                (JsonStep::Each, JsonStep::Index(index)) => Some(*index),
                _ => None,
            })
        }
        (Place::Xml(_), Place::Xml(one)) => {
            one.steps.iter().rev().find_map(|step| step.position).map(|position| position.saturating_sub(1))
        }
        _ => None,
    };
    found.map_or(0, |index| usize::try_from(index).unwrap_or(usize::MAX))
}
