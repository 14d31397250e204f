//! Rules by what values must show for them to hold, and the walk over those that may.
//!
//! A posting is a list of rules in their order, or a node, where a longer list is told apart by further fields. A
//! node has a branch for each reading that it asks, and a list of the rules that no reading rules out. Fields that are
//! found by their names have theirs by themselves: those of absent fields are passed over.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::asks::{Asks, offset};
use super::stabs::Stabs;
use crate::truths::{Cursor, Seen};
use crate::{PayloadId, Subject, Truths, pace};

/// Rules in ascending order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    /// The first of them.
    pub(super) least: u32,
    /// Where the list begins, or the number of a node.
    pub(super) at: u32,
    /// How long the list is; 0 for a node.
    pub(super) len: u32,
}

#[derive(Debug, Default)]
pub(super) struct Postings {
    pub(super) nodes: Vec<Node>,
    pub(super) branches: Vec<Branch>,
    pub(super) fields: Vec<NamedField>,
    /// The lists, one behind another.
    pub(super) entries: Vec<Entry>,
    /// By the numbers of a branch and of a sign, for branches whose signs have numbers far from each other.
    pub(super) by_sign: HashMap<(u32, u32), Posting, FixedState>,
}

/// A rule in a list, in as few bytes as may be: in large sets it is the lists that do not lie near at hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) rule: u32,
    /// The sign of its filter, or the first cell.
    first: u32,
    /// Behind the last cell.
    end: u32,
    /// The reading of its filter, [`Entry::NO_READING`] without one, and what kind it is.
    kind: u32,
}

/// A further test that the rule is false without, near at hand: most rules of a list fall by it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Filter {
    /// There is none.
    None,
    /// A value of the reading shows the sign.
    Sign { reading: u32, sign: u32 },
    /// A value lies in the cells; one that is no number may make the test unknown.
    Cells { reading: u32, start: u32, end: u32, is_numeric: bool },
}

impl Entry {
    const IS_WHOLE: u32 = 1 << 31;
    const IS_CELLS: u32 = 1 << 30;
    const IS_NUMERIC: u32 = 1 << 29;
    /// Readings from this number on are no filters.
    pub(super) const NO_READING: u32 = Entry::IS_NUMERIC - 1;

    /// `is_whole`: where the filter shows it, the rule is true: all else that it asks is known of whoever comes to the
    /// list.
    pub(super) fn new(rule: u32, filter: Filter, is_whole: bool) -> Entry {
        let (reading, first, end, kind) = match filter {
            Filter::None => (Entry::NO_READING, 0, 0, 0),
            Filter::Sign { reading, sign } => (reading, sign, 0, 0),
            Filter::Cells { reading, start, end, is_numeric } => {
                (reading, start, end, Entry::IS_CELLS | if is_numeric { Entry::IS_NUMERIC } else { 0 })
            }
        };
        let whole = if is_whole { Entry::IS_WHOLE } else { 0 };
        Entry { rule, first, end, kind: reading | kind | whole }
    }

    #[inline]
    fn filter(self) -> Filter {
        let reading = self.kind & Entry::NO_READING;
        if reading == Entry::NO_READING {
            return Filter::None;
        }
        if self.kind & Entry::IS_CELLS == 0 {
            return Filter::Sign { reading, sign: self.first };
        }
        let is_numeric = self.kind & Entry::IS_NUMERIC != 0;
        Filter::Cells { reading, start: self.first, end: self.end, is_numeric }
    }

    /// It asks more than the filter shows.
    pub(super) fn is_not_whole(&mut self) {
        self.kind &= !Entry::IS_WHOLE;
    }

    fn is_whole(self) -> bool {
        self.kind & Entry::IS_WHOLE != 0
    }
}

#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) always: Option<Posting>,
    /// Those of a node stand beside each other.
    pub(super) branches: Range<u32>,
    /// The fields of the head that are found by their names, in the order of their numbers.
    pub(super) of_head: Range<u32>,
    /// Those of the body, in the order of their first rules.
    pub(super) of_body: Range<u32>,
}

/// The rules of a node that are false where one field is absent.
#[derive(Debug)]
pub(super) struct NamedField {
    /// The number of its name.
    pub(super) name: u32,
    /// Of the body.
    pub(super) payload: Option<PayloadId>,
    /// The first of the rules.
    pub(super) least: u32,
    /// The last rule of this field, and of those of the body before it.
    pub(super) last: u32,
    /// Those that no reading tells apart.
    pub(super) list: Option<Posting>,
    pub(super) branches: Range<u32>,
    /// Where the fields end that it stands among.
    pub(super) end: u32,
}

/// What one reading says about the rules of a node.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) reading: u32,
    /// All of its rules, for values that rule none of them out.
    pub(super) all: Posting,
    pub(super) has_signs: bool,
    /// By the number of the sign, from the first one on. Empty where the postings stand elsewhere.
    pub(super) near_signs: Vec<Option<Posting>>,
    pub(super) first_sign: u32,
    pub(super) stabs: Stabs,
    /// Some of its rules are unknown of a value that is no number, and that is not the same as false.
    pub(super) heeds_no_number: bool,
    /// The same of a second value.
    pub(super) heeds_second: bool,
}

impl Drop for Branch {
    fn drop(&mut self) {
        pace::step();
    }
}

/// Ends of cursors that are at no list yet.
const AT_NODE: u32 = u32::MAX;
const AT_BRANCH: u32 = u32::MAX - 1;
const AT_FIELD: u32 = u32::MAX - 2;

/// So many entries of a list are looked at ahead of their turn.
const AHEAD_MAX: u32 = 32;

/// A walk over the rules that may hold for one subject.
pub(super) struct Walk<'w, S: ?Sized> {
    pub(super) postings: &'w Postings,
    pub(super) asks: &'w Asks,
    pub(super) subject: &'w S,
}

impl Postings {
    /// Sets a walk at its beginning.
    pub(super) fn begin(&self, truths: &mut Truths) {
        if !self.nodes.is_empty() {
            truths.cursors.push(Reverse(Cursor { least: 0, at: 0, end: AT_NODE }));
        }
    }

    fn of_sign(&self, number: u32, sign: u32) -> Option<Posting> {
        let branch = &self.branches[number as usize];
        if branch.near_signs.is_empty() {
            return self.by_sign.get(&(number, sign)).copied();
        }
        let place = sign.checked_sub(branch.first_sign)?;
        branch.near_signs.get(place as usize).copied().flatten()
    }
}

impl<S: Subject + ?Sized> Walk<'_, S> {
    /// The first rule from `from` on that may be anything but false. Asked again from the same rule on, it says the
    /// same.
    pub(super) fn next(&self, from: u32, truths: &mut Truths) -> Option<Cursor> {
        loop {
            let top = truths.cursors.peek_mut()?;
            let Reverse(cursor) = *top;
            let is_list = cursor.end < AT_FIELD;
            if is_list && cursor.least >= from {
                return Some(cursor);
            }
            PeekMut::pop(top);
            match cursor.end {
                AT_NODE => self.enter(cursor.at, from, truths),
                AT_BRANCH => self.branch_off(cursor.at, from, truths),
                AT_FIELD => self.field_of_body(cursor.at, from, truths),
                end => self.place(cursor.at, end, from, truths),
            }
        }
    }

    fn enter(&self, node: u32, from: u32, truths: &mut Truths) {
        let Some(node) = self.postings.nodes.get(node as usize) else { return };
        if let Some(always) = node.always {
            self.add(always, from, truths);
        }
        self.branches(node.branches.clone(), truths);
        if !node.of_head.is_empty() {
            self.fields_of_head(node.of_head.clone(), from, truths);
        }
        if !node.of_body.is_empty() && (self.subject.evidence().is_some() || !self.subject.is_without_body())
        {
            let fields = self.fields(&node.of_body);
            let passed = fields.partition_point(|field| field.last < from);
            self.next_of_body(node.of_body.start + offset(passed), node.of_body.end, truths);
        }
    }

    fn branches(&self, numbers: Range<u32>, truths: &mut Truths) {
        for number in numbers {
            let least = self.postings.branches[number as usize].all.least;
            truths.cursors.push(Reverse(Cursor { least, at: number, end: AT_BRANCH }));
        }
    }

    fn fields(&self, range: &Range<u32>) -> &[NamedField] {
        &self.postings.fields[range.start as usize..range.end as usize]
    }

    /// All fields that the subject has.
    fn fields_of_head(&self, range: Range<u32>, from: u32, truths: &mut Truths) {
        self.asks.names.find(self.subject, truths);
        let fields = self.fields(&range);
        for place in 0..truths.names.len() {
            let name = truths.names[place];
            if let Ok(found) = fields.binary_search_by_key(&name, |field| field.name) {
                self.field(&fields[found], from, truths);
            }
        }
    }

    fn field(&self, field: &NamedField, from: u32, truths: &mut Truths) {
        if let Some(list) = field.list {
            self.add(list, from, truths);
        }
        self.branches(field.branches.clone(), truths);
    }

    /// A field of the body whose turn it is, and a cursor for the next one.
    fn field_of_body(&self, at: u32, from: u32, truths: &mut Truths) {
        let Some(field) = self.postings.fields.get(at as usize) else { return };
        self.field(field, from, truths);
        self.next_of_body(at + 1, field.end, truths);
    }

    /// Sets a cursor at the first field that is not absent: of a body of which nothing is read, that is the first one.
    fn next_of_body(&self, at: u32, end: u32, truths: &mut Truths) {
        let evidence = self.subject.evidence();
        let is_absent = |payload| evidence.is_some_and(|evidence| evidence.is_absent(payload));
        let mut fields = (at..end).zip(self.fields(&(at..end)));
        if let Some((at, field)) = fields.find(|(_, field)| !field.payload.is_some_and(is_absent)) {
            truths.cursors.push(Reverse(Cursor { least: field.least, at, end: AT_FIELD }));
        }
    }

    fn branch_off(&self, number: u32, from: u32, truths: &mut Truths) {
        let branch = &self.postings.branches[number as usize];
        self.asks.read(branch.reading, self.subject, truths);
        let Some(seen) = truths.seen(branch.reading).cloned() else { return };
        if branch.is_open(&seen) {
            self.add(branch.all, from, truths);
            return;
        }
        if branch.has_signs {
            for place in 0..truths.sight.signs(&seen).len() {
                let sign = truths.sight.signs(&seen)[place];
                if let Some(posting) = self.postings.of_sign(number, sign) {
                    self.add(posting, from, truths);
                }
            }
        }
        for place in 0..truths.sight.cells(&seen).len() {
            let cell = truths.sight.cells(&seen)[place];
            branch.stabs.of(cell).for_each(|posting| self.add(*posting, from, truths));
        }
    }

    fn add(&self, posting: Posting, from: u32, truths: &mut Truths) {
        let Posting { least, at, len } = posting;
        match len {
            0 => truths.cursors.push(Reverse(Cursor { least, at, end: AT_NODE })),
            _ => self.place(at, at + len, from, truths),
        }
    }

    /// Sets a cursor at the first entry of a list that belongs to a rule from `from` on and is not filtered out.
    fn place(&self, at: u32, end: u32, from: u32, truths: &mut Truths) {
        let Some(rest) = self.postings.entries.get(at as usize..end as usize) else { return };
        let passed = match rest.first() {
            Some(first) if first.rule >= from => 0,
            _ => rest.partition_point(|entry| entry.rule < from),
        };
        for (entry, ahead) in rest[passed..].iter().zip(0..) {
            if ahead == AHEAD_MAX || self.passes(entry.filter(), truths) {
                let at = at + offset(passed) + ahead;
                truths.cursors.push(Reverse(Cursor { least: entry.rule, at, end }));
                return;
            }
        }
    }

    /// Whether the rule at a cursor is known to be true without a further look at it.
    pub(super) fn is_true(&self, cursor: Cursor, truths: &Truths) -> bool {
        let entry = self.postings.entries.get(cursor.at as usize);
        entry.is_some_and(|entry| entry.is_whole() && entry.filter().is_shown(truths))
    }

    /// Whether a rule may hold as far as its filter says.
    fn passes(&self, filter: Filter, truths: &mut Truths) -> bool {
        let (Filter::Sign { reading, .. } | Filter::Cells { reading, .. }) = filter else { return true };
        self.asks.read(reading, self.subject, truths);
        let is_numeric = matches!(filter, Filter::Cells { is_numeric: true, .. });
        let is_unknown =
            |seen: &Seen| seen.unknown.is_some() || (is_numeric && seen.unknown_number.is_some());
        filter.is_shown(truths) || truths.seen(reading).is_some_and(is_unknown)
    }
}

impl Filter {
    fn is_shown(self, truths: &Truths) -> bool {
        match self {
            Filter::None => true,
            Filter::Sign { reading, sign } => {
                truths.seen(reading).is_some_and(|seen| truths.sight.shows(seen, sign))
            }
            Filter::Cells { reading, start, end, .. } => {
                let lies_within =
                    |seen| truths.sight.cells(seen).iter().any(|cell| (start..end).contains(cell));
                truths.seen(reading).is_some_and(lies_within)
            }
        }
    }
}

impl Branch {
    /// Whether what was seen does not say which rules may hold.
    fn is_open(&self, seen: &Seen) -> bool {
        seen.unknown.is_some()
            || (self.heeds_no_number && seen.unknown_number.is_some())
            || (self.heeds_second && seen.values > 1)
    }
}
