//! Fields that rules tell apart by names of their own, where these are many: a request has few of them, and what is
//! asked of the others is false without being asked.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use super::asks::{NONE, Numbers};
use crate::{Field, NameKind, Over, PayloadId, Subject, Truths, pace};

/// The fields that are found by the names that a subject has, with numbers of their own.
#[derive(Debug, Default)]
pub(super) struct Names {
    headers: OfKind,
    query_params: OfKind,
    cookies: OfKind,
    payloads: HashMap<PayloadId, u32, FixedState>,
    by_number: HashMap<u32, PayloadId, FixedState>,
    count: u32,
}

/// Those of one kind.
#[derive(Debug, Default)]
struct OfKind {
    /// The hash is a fixed one: subjects only look for names, and no subject adds any.
    numbers: HashMap<Box<[u8]>, u32, FixedState>,
    name_bytes_max: usize,
}

impl Names {
    /// Of kinds of more than `few_max` fields.
    pub(super) fn new(numbers: &Numbers<'_>, few_max: usize) -> Names {
        let mut names = Names::default();
        // How many there are is known of an absent field, too.
        let tests = pace::each(&numbers.tests).map(|(test, _)| test).filter(|test| test.over != Over::Count);
        for test in tests {
            names.add(&test.field);
        }
        for of_kind in [&mut names.headers, &mut names.query_params, &mut names.cookies] {
            if of_kind.numbers.len() <= few_max {
                *of_kind = OfKind::default();
            }
        }
        if names.payloads.len() <= few_max {
            names.payloads = HashMap::default();
        }
        names.by_number = names.payloads.iter().map(|(payload, number)| (*number, *payload)).collect();
        names
    }

    fn add(&mut self, field: &Field) {
        let next = self.count;
        let number = match field {
            Field::Payload(payload) => *self.payloads.entry(payload.id).or_insert(next),
            field => {
                let Some((kind, name)) = name_of(field) else { return };
                let of_kind = self.of_kind_mut(kind);
                of_kind.name_bytes_max = of_kind.name_bytes_max.max(name.len());
                *of_kind.numbers.entry(name.into()).or_insert(next)
            }
        };
        self.count += u32::from(number == next);
    }

    /// The number of a field, or [`NONE`].
    pub(super) fn number(&self, field: &Field) -> u32 {
        let number = match field {
            Field::Payload(payload) => self.payloads.get(&payload.id),
            field => name_of(field).and_then(|(kind, name)| self.of_kind(kind).numbers.get(name)),
        };
        number.copied().unwrap_or(NONE)
    }

    /// The field of the body that has this number.
    pub(super) fn payload(&self, number: u32) -> Option<PayloadId> {
        self.by_number.get(&number).copied()
    }

    /// The numbers of the head's fields that a subject may have, in ascending order; they are found once.
    pub(super) fn find<S: Subject + ?Sized>(&self, subject: &S, truths: &mut Truths) {
        if truths.has_names {
            return;
        }
        let found = &mut truths.names;
        found.clear();
        for kind in [NameKind::Header, NameKind::QueryParam, NameKind::Cookie] {
            let of_kind = self.of_kind(kind);
            if of_kind.numbers.is_empty() {
                continue;
            }
            let mut lower: SmallVec<[u8; 64]> = SmallVec::new();
            let is_told = subject.each_name(kind, &mut |name| {
                if name.len() > of_kind.name_bytes_max {
                    return;
                }
                let number = match kind {
                    NameKind::Header => {
                        lower.clear();
                        lower.extend_from_slice(name);
                        lower.make_ascii_lowercase();
                        of_kind.numbers.get(&*lower)
                    }
                    NameKind::QueryParam | NameKind::Cookie => of_kind.numbers.get(name),
                };
                found.extend(number);
            });
            if !is_told {
                found.extend(of_kind.numbers.values());
            }
        }
        found.sort_unstable();
        found.dedup();
        truths.has_names = true;
    }

    fn of_kind(&self, kind: NameKind) -> &OfKind {
        match kind {
            NameKind::Header => &self.headers,
            NameKind::QueryParam => &self.query_params,
            NameKind::Cookie => &self.cookies,
        }
    }

    fn of_kind_mut(&mut self, kind: NameKind) -> &mut OfKind {
        match kind {
            NameKind::Header => &mut self.headers,
            NameKind::QueryParam => &mut self.query_params,
            NameKind::Cookie => &mut self.cookies,
        }
    }
}

impl Drop for OfKind {
    fn drop(&mut self) {
        pace::drop_each(self.numbers.drain());
    }
}

fn name_of(field: &Field) -> Option<(NameKind, &[u8])> {
    match field {
        Field::Header(name) => Some((NameKind::Header, name.as_bytes())),
        Field::QueryParam(key) => Some((NameKind::QueryParam, key)),
        Field::Cookie(name) => Some((NameKind::Cookie, name.as_bytes())),
        _ => None,
    }
}
