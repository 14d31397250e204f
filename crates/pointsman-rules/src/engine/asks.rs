//! The tests of a program, each once, and how each is asked: by what a field's values show, or by itself.

use std::collections::HashMap;
use std::ops::Range;

use super::Sizes;
use super::names::Names;
use super::rarest;
use super::reading::{self, Reading};
use super::scale::Bounds;
use super::signs::{Sign, Signs};
use crate::evidence::Gathered;
use crate::{Condition, Field, Op, Over, Subject, Test, Truth, Truths, pace};

/// From this many signs on it pays to look at a field's values once for all of them; below, the tests by
/// themselves are faster.
const READING_SIGNS_MIN: usize = 4;

/// Or from this many places of tests in conditions on, however few signs they have: many rules can be told apart by
/// them.
const READING_PLACES_MIN: usize = 32;

/// No reading, no slot, no test.
pub(crate) const NONE: u32 = u32::MAX;

/// All that conditions ask.
#[derive(Debug)]
pub(super) struct Asks {
    /// By the number of the test.
    asks: Vec<Ask>,
    pub(super) readings: Vec<Reading>,
    pub(super) names: Names,
    /// The signs of all asks, one ask's behind another's, in ascending order.
    signs: Vec<u32>,
    runs: Vec<Run>,
    /// Those that are not decided by what values show, and all of the body.
    tests: Vec<Test>,
    /// How many tests are remembered, and how many signs there are.
    pub(super) slots: usize,
    pub(super) signs_count: usize,
}

/// One test.
#[derive(Debug)]
pub(super) struct Ask {
    /// What shows whether it may hold, or [`NONE`].
    pub(super) reading: u32,
    /// The field that it is false without, where that is found by its name, or [`NONE`].
    pub(super) name: u32,
    signs: Range<u32>,
    runs: Range<u32>,
    /// A value that shows a sign, or lies in a run, makes it true.
    pub(super) is_exact: bool,
    /// Of several values, any.
    pub(super) is_any: bool,
    pub(super) is_numeric: bool,
    /// How much work it is, roughly.
    pub(super) effort: u8,
    /// Where it is remembered, or [`NONE`]: what stands in one place only, or costs nothing, is not.
    slot: u32,
    /// The test itself, or [`NONE`].
    test: u32,
}

/// Cells of a reading that a test takes.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// The same for all tests that take the same cells of the same reading.
    pub(super) number: u32,
    pub(super) cells: Range<u32>,
    pub(super) is_one_sided: bool,
}

/// The tests of conditions by their numbers.
pub(super) struct Numbers<'r> {
    /// The first of each number, and how many places it stands in.
    pub(super) tests: Vec<(&'r Test, usize)>,
}

impl<'r> Numbers<'r> {
    pub(super) fn of(conditions: impl IntoIterator<Item = &'r Condition>) -> Numbers<'r> {
        let mut tests = Vec::<(&Test, usize)>::new();
        for condition in conditions {
            condition.each_test(&mut |test| match tests.get_mut(test.number as usize) {
                Some((_, places)) => *places += 1,
                None => tests.push((test, 1)),
            });
        }
        Numbers { tests }
    }

    /// Whether one of them is of a value in the body.
    pub(super) fn any_of_body(&self) -> bool {
        self.tests.iter().any(|(test, _)| matches!(test.field, Field::Payload(_)))
    }

    /// The first of the tests with that number.
    pub(super) fn test(&self, number: u32) -> Option<&'r Test> {
        self.tests.get(number as usize).map(|(test, _)| *test)
    }
}

impl Ask {
    /// Whether what values show is all that it needs.
    pub(super) fn is_read_off(&self) -> bool {
        self.reading != NONE && self.is_exact && self.is_any
    }
}

impl Asks {
    /// Of few rules only what is compared with plain texts is read together: anything else takes longer to set up
    /// than to ask.
    pub(super) fn new(numbers: &Numbers<'_>, is_small: bool, sizes: Sizes) -> Asks {
        let signs = pace::each(&numbers.tests).map(|(test, _)| {
            Signs::of(test).filter(|signs| !is_small || (test.over == Over::Any && signs.are_plain(test)))
        });
        let mut signs: Vec<Option<Signs>> = signs.collect();
        if !is_small {
            rarest::choose(&numbers.tests, &mut signs);
        }
        let mut asks = Asks {
            asks: Vec::with_capacity(signs.len()),
            readings: Vec::new(),
            names: if is_small { Names::default() } else { Names::new(numbers, sizes.few_names_max) },
            signs: Vec::new(),
            runs: Vec::new(),
            tests: Vec::new(),
            slots: 0,
            signs_count: 0,
        };
        for (test, places) in pace::each(&numbers.tests) {
            asks.alone(test, *places);
        }
        for members in pace::each(by_reading(&numbers.tests, &signs)) {
            let exact = members.iter().filter(|(_, signs)| signs.is_exact);
            let places: usize = exact.map(|(number, _)| numbers.tests[*number].1).sum();
            let count: usize = members.iter().map(|(_, signs)| signs.list.len()).sum();
            if count >= READING_SIGNS_MIN || (places >= READING_PLACES_MIN && !is_small) {
                asks.add_reading(&members, &numbers.tests);
            }
        }
        asks.settle(&numbers.tests);
        pace::drop_each(signs);
        asks
    }

    /// A test by itself. Of what is shared [`Asks::settle`] says where it is remembered.
    fn alone(&mut self, test: &Test, places: usize) {
        self.asks.push(Ask {
            reading: NONE,
            name: if test.over == Over::Count { NONE } else { self.names.number(&test.field) },
            signs: 0..0,
            runs: 0..0,
            is_exact: false,
            is_any: test.over == Over::Any,
            is_numeric: false,
            effort: effort(test),
            slot: if places > 1 { 0 } else { NONE },
            test: NONE,
        });
    }

    fn add_reading(&mut self, members: &[(usize, &Signs)], tests: &[(&Test, usize)]) {
        let mut known: HashMap<&Sign, u32> = HashMap::with_capacity(members.len());
        let mut order: Vec<(&Sign, u32)> = Vec::with_capacity(members.len());
        let mut all_bounds: Vec<&Bounds> = Vec::new();
        for sign in pace::each(members.iter().flat_map(|(_, signs)| &signs.list)) {
            match sign {
                Sign::Within(bounds) => all_bounds.push(bounds),
                sign => {
                    let next = offset(self.signs_count + order.len());
                    if *known.entry(sign).or_insert(next) == next {
                        order.push((sign, next));
                    }
                }
            }
        }
        let Some((first, _)) = members.first() else { return };
        let identity = reading::Identity::of(tests[*first].0);
        let reading = Reading::new(identity, order.iter().copied(), &all_bounds);
        self.signs_count += order.len();
        for (number, signs) in pace::each(members) {
            let (signs_start, runs_start) = (self.signs.len(), self.runs.len());
            for sign in &signs.list {
                match (sign, &reading.scale) {
                    (Sign::Within(bounds), Some(scale)) => {
                        let cells = scale.run(bounds);
                        let is_one_sided = scale.is_one_sided(&cells);
                        self.runs.push(Run { number: 0, cells, is_one_sided });
                    }
                    (Sign::Within(_), None) => {}
                    (sign, _) => self.signs.extend(known.get(sign)),
                }
            }
            self.signs[signs_start..].sort_unstable();
            let ask = &mut self.asks[*number];
            ask.reading = offset(self.readings.len());
            ask.signs = offset(signs_start)..offset(self.signs.len());
            ask.runs = offset(runs_start)..offset(self.runs.len());
            (ask.is_exact, ask.is_numeric) = (signs.is_exact, signs.is_numeric);
            if signs.is_exact && ask.is_any {
                ask.effort = 0;
            }
        }
        self.readings.push(reading);
    }

    /// Numbers runs and slots, and keeps the tests that are still needed.
    fn settle(&mut self, tests: &[(&Test, usize)]) {
        let mut runs: HashMap<(u32, Range<u32>), u32> = HashMap::with_capacity(self.runs.len());
        for (ask, (test, _)) in pace::each(self.asks.iter_mut().zip(tests)) {
            for run in &mut self.runs[ask.runs.start as usize..ask.runs.end as usize] {
                let next = offset(runs.len());
                run.number = *runs.entry((ask.reading, run.cells.clone())).or_insert(next);
            }
            let is_read_off = ask.is_read_off();
            if is_read_off {
                ask.slot = NONE;
            }
            // Of a body a test may be asked alone, too.
            if is_read_off && !matches!(test.field, Field::Payload(_)) {
                continue;
            }
            ask.test = offset(self.tests.len());
            self.tests.push((*test).clone());
            if ask.slot != NONE {
                ask.slot = offset(self.slots);
                self.slots += 1;
            }
        }
    }

    pub(super) fn ask(&self, number: u32) -> &Ask {
        &self.asks[number as usize]
    }

    /// How many signs and runs stand in tests.
    pub(super) fn places(&self) -> usize {
        self.signs.len() + self.runs.len()
    }

    pub(super) fn signs(&self, ask: &Ask) -> &[u32] {
        &self.signs[ask.signs.start as usize..ask.signs.end as usize]
    }

    /// The signs of which a value must show one for a test of any value to hold, where it is asked by itself then.
    pub(super) fn hints(&self, ask: &Ask) -> Option<&[u32]> {
        let reading = self.readings.get(ask.reading as usize)?;
        let signs = self.signs(ask);
        // That a value is there is shown by all of them together.
        let is_by_value = !reading.present.is_some_and(|present| signs.contains(&present));
        let is_hinted = ask.is_any && !ask.is_exact && self.runs(ask).is_empty() && is_by_value;
        is_hinted.then_some(signs)
    }

    pub(super) fn runs(&self, ask: &Ask) -> &[Run] {
        &self.runs[ask.runs.start as usize..ask.runs.end as usize]
    }

    /// Whether nothing is worth remembering from one test to the next.
    pub(super) fn is_idle(&self) -> bool {
        self.slots == 0 && self.readings.is_empty()
    }

    /// What a test comes to.
    #[inline]
    pub(super) fn truth<S: Subject + ?Sized>(&self, number: u32, subject: &S, truths: &mut Truths) -> Truth {
        let ask = &self.asks[number as usize];
        if let Some(known) = truths.of(ask.slot) {
            return known;
        }
        let truth = self.by_reading(ask, subject, truths);
        let truth = truth.unwrap_or_else(|| self.tests[ask.test as usize].eval(subject));
        truths.learn(ask.slot, truth);
        truth
    }

    /// The same, where of a body only what this test asks is looked up, and not all that it has shown.
    pub(super) fn truth_alone<S: Subject + ?Sized>(
        &self,
        number: u32,
        subject: &S,
        truths: &mut Truths,
    ) -> Truth {
        let test = self.tests.get(self.asks[number as usize].test as usize);
        match (test.map(|test| (test, &test.field)), subject.evidence()) {
            (Some((test, Field::Payload(payload))), Some(evidence)) => evidence.truth(test, payload.id),
            _ => self.truth(number, subject, truths),
        }
    }

    /// What the values show of it, if that says enough.
    fn by_reading<S: Subject + ?Sized>(&self, ask: &Ask, subject: &S, truths: &mut Truths) -> Option<Truth> {
        if ask.reading == NONE {
            return None;
        }
        self.read(ask.reading, subject, truths);
        let seen = truths.seen(ask.reading)?;
        // With one value at most, and no more to come, it does not matter of which the test speaks.
        if !ask.is_any && (seen.values > 1 || seen.unknown.is_some()) {
            return None;
        }
        let (signs, shown) = (self.signs(ask), truths.sight.signs(seen));
        let shows = match signs.len() < shown.len() {
            true => signs.iter().any(|sign| truths.sight.shows(seen, *sign)),
            false => shown.iter().any(|sign| signs.binary_search(sign).is_ok()),
        };
        let may_hold = shows
            || self
                .runs(ask)
                .iter()
                .any(|run| truths.sight.cells(seen).iter().any(|cell| run.cells.contains(cell)));
        match (may_hold, ask.is_exact) {
            (true, true) => Some(Truth::True),
            (true, false) => None,
            (false, _) => {
                let unknown = if ask.is_numeric { seen.unknown_number } else { seen.unknown };
                Some(unknown.map_or(Truth::False, Truth::Unknown))
            }
        }
    }

    /// What the values of a body that came so far make of a test that is read off what they show.
    pub(super) fn of_gathered(&self, ask: &Ask, gathered: &Gathered) -> Truth {
        let shows = gathered.shows_any(self.signs(ask))
            || self.runs(ask).iter().any(|run| gathered.lies_in(&run.cells));
        if shows {
            return Truth::True;
        }
        gathered.unknown(ask.is_numeric).map_or(Truth::False, Truth::Unknown)
    }

    /// A test that may be asked by itself.
    pub(super) fn lone_test(&self, ask: &Ask) -> Option<&Test> {
        self.tests.get(ask.test as usize)
    }

    /// Makes a reading, if it is not made yet.
    #[inline]
    pub(super) fn read<S: Subject + ?Sized>(&self, reading: u32, subject: &S, truths: &mut Truths) {
        if truths.seen(reading).is_none() {
            let made = &self.readings[reading as usize];
            let seen = match subject.evidence() {
                Some(evidence) if matches!(made.field, Field::Payload(_)) => {
                    evidence.seen(reading, &made.field, &mut truths.sight)
                }
                _ => made.read(subject, &mut truths.sight),
            };
            truths.note(reading, seen);
        }
    }
}

impl Drop for Asks {
    fn drop(&mut self) {
        pace::drop_each(self.tests.drain(..));
    }
}

/// The tests that ask the same reading, with their numbers, in the order in which they come.
fn by_reading<'s>(tests: &[(&'s Test, usize)], signs: &'s [Option<Signs>]) -> Vec<Vec<(usize, &'s Signs)>> {
    let mut places: HashMap<reading::Identity, usize> = HashMap::new();
    let mut readings: Vec<Vec<(usize, &Signs)>> = Vec::new();
    for (number, ((test, _), signs)) in pace::each(tests.iter().zip(signs)).enumerate() {
        let Some(signs) = signs else { continue };
        let place = *places.entry(reading::Identity::of(test)).or_insert(readings.len());
        if place == readings.len() {
            readings.push(Vec::new());
        }
        readings[place].push((number, signs));
    }
    readings
}

/// How much work a test by itself is, roughly: a regex is asked only when nothing cheaper says no, and what lies in a
/// body only when nothing in the head does.
fn effort(test: &Test) -> u8 {
    let effort = match &test.op {
        Op::Matches(_) => 3,
        Op::Contains(_) | Op::Like(_) | Op::In(_) => 2,
        _ => 1,
    };
    if matches!(test.field, Field::Payload(_)) { effort + 4 } else { effort }
}

/// A source has far fewer bytes than this has numbers.
pub(super) fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
