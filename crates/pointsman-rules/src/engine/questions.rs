//! What a program asks of the values in bodies: so that each value is looked at when it comes, and need not be kept.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::asks::{Asks, NONE, Numbers, offset};
use crate::{Field, Over, PayloadId, pace};

/// By field, by test and by reading.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    /// By [`PayloadId`].
    fields: Vec<OfField>,
    /// By the number of the test: where it is noted what its values came to, or [`NONE`].
    places: Vec<u32>,
    /// By the number of the reading: where it is noted what its values showed, or [`NONE`].
    gathered: Vec<u32>,
    pub(crate) tests_count: usize,
    pub(crate) readings_count: usize,
    /// Some reading looks for texts anywhere in a value, for which it needs room.
    pub(crate) any_contained: bool,
}

/// What is asked of each value of a field.
#[derive(Debug, Default)]
pub(crate) struct OfField {
    /// The readings, each with its place.
    pub(crate) readings: Vec<(u32, u32)>,
    /// The tests that no reading decides, each with its place. Those that speak of the first value alone, or of how
    /// many there are, are not among them.
    pub(crate) tests: Vec<(u32, u32)>,
    /// Of these, the tests that no value satisfies but one that shows such a sign: for any other they need not be asked.
    pub(crate) hinted: HashMap<u32, Vec<(u32, u32)>, FixedState>,
    /// All tests that are hinted at.
    pub(crate) all_hinted: Vec<(u32, u32)>,
}

impl Drop for OfField {
    fn drop(&mut self) {
        pace::step();
    }
}

impl Questions {
    pub(super) fn new(numbers: &Numbers<'_>, asks: &Asks) -> Questions {
        let mut questions = Questions { gathered: vec![NONE; asks.readings.len()], ..Questions::default() };
        for (number, reading) in (0..).zip(&asks.readings) {
            let Field::Payload(payload) = &reading.field else { continue };
            let place = offset(questions.readings_count);
            questions.readings_count += 1;
            questions.gathered[number as usize] = place;
            questions.any_contained |= reading.looks_anywhere();
            questions.field(payload.id).readings.push((number, place));
        }
        questions.places = vec![NONE; numbers.tests.len()];
        for (number, (test, _)) in (0..).zip(pace::each(&numbers.tests)) {
            let Field::Payload(payload) = &test.field else { continue };
            if !matches!(test.over, Over::Any | Over::All) || asks.ask(number).is_read_off() {
                continue;
            }
            let place = offset(questions.tests_count);
            questions.tests_count += 1;
            questions.places[number as usize] = place;
            let of_field = questions.field(payload.id);
            match asks.hints(asks.ask(number)) {
                Some(signs) => {
                    of_field.all_hinted.push((number, place));
                    for sign in signs {
                        of_field.hinted.entry(*sign).or_default().push((number, place));
                    }
                }
                None => of_field.tests.push((number, place)),
            }
        }
        questions
    }

    fn field(&mut self, payload: PayloadId) -> &mut OfField {
        let place = payload.0 as usize;
        if self.fields.len() <= place {
            self.fields.resize_with(place + 1, OfField::default);
        }
        &mut self.fields[place]
    }

    pub(crate) fn of(&self, payload: PayloadId) -> Option<&OfField> {
        self.fields.get(payload.0 as usize)
    }

    pub(crate) fn place(&self, test: u32) -> u32 {
        self.places.get(test as usize).copied().unwrap_or(NONE)
    }

    pub(crate) fn gathered(&self, reading: u32) -> u32 {
        self.gathered.get(reading as usize).copied().unwrap_or(NONE)
    }
}
