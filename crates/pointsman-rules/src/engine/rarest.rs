//! Of what each test may be looked up by, what the fewest others of its reading have.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::asks::offset;
use super::literals::{choices, shortest};
use super::reading::Identity;
use super::signs::{Sign, Signs};
use crate::{Test, pace};

/// A beginning or an end that no more tests have in common is kept: values need not be searched then.
const SHARED_MAX: u64 = 8;

/// A literal of one byte is in so many more values than one of three, and one of two bytes likewise.
const OF_ONE_BYTE: u64 = 16;
const OF_TWO_BYTES: u64 = 4;

/// What a test may be looked up by.
struct Open {
    test: usize,
    reading: u32,
    choices: Vec<Signs>,
}

/// How many tests of a reading have a sign, as one of several that they may be looked up by.
type Counts<'s> = HashMap<(u32, &'s Sign), u64>;

/// Gives signs to the tests that have several to choose from.
pub(super) fn choose(tests: &[(&Test, usize)], signs: &mut [Option<Signs>]) {
    let mut readings: HashMap<Identity<'_>, u32> = HashMap::new();
    let mut open = Vec::new();
    for (number, (test, _)) in pace::each(tests).enumerate() {
        if signs.get(number).is_some_and(Option::is_some) {
            continue;
        }
        let choices = choices(test);
        if !choices.is_empty() {
            let next = offset(readings.len());
            let reading = *readings.entry(Identity::of(test)).or_insert(next);
            open.push(Open { test: number, reading, choices });
        }
    }
    let mut counts = Counts::new();
    for Open { reading, choices, .. } in pace::each(&open) {
        for sign in choices.iter().flat_map(|signs| &signs.list) {
            *counts.entry((*reading, sign)).or_default() += 1;
        }
    }
    let best: Vec<usize> = pace::each(&open).map(|open| open.best(&counts)).collect();
    pace::drop_each(counts);
    for (mut open, best) in pace::each(open.into_iter().zip(best)) {
        if let Some(place) = signs.get_mut(open.test) {
            *place = Some(open.choices.swap_remove(best));
        }
    }
}

impl Open {
    fn best(&self, counts: &Counts<'_>) -> usize {
        let places = 0..self.choices.len();
        places.min_by_key(|place| self.rank(&self.choices[*place].list, counts)).unwrap_or_default()
    }

    /// How many tests a value finds by such signs, roughly: the less the better.
    fn rank(&self, list: &[Sign], counts: &Counts<'_>) -> impl Ord + use<> {
        let count = |sign| counts.get(&(self.reading, sign)).copied().unwrap_or_default();
        // Most values show one of them only.
        let shared = list.iter().map(count).sum::<u64>().div_ceil(list.len().max(1) as u64);
        let is_at_an_end = list.iter().all(Sign::is_at_an_end);
        let found = match shortest(list) {
            _ if is_at_an_end && shared <= SHARED_MAX => 0,
            0 | 1 => shared * OF_ONE_BYTE,
            2 => shared * OF_TWO_BYTES,
            _ => shared,
        };
        (found, !is_at_an_end, Reverse(shortest(list)), list.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Numbers;
    use crate::{Targets, compile};

    /// By what the first of these conditions is looked up.
    #[track_caller]
    fn check(conditions: &[String], expected: &Sign) {
        let rules: Vec<String> =
            conditions.iter().map(|condition| format!("if ({condition}) {{ tag(a); }}\n")).collect();
        let program = compile(&rules.concat(), &Targets::Any).expect("a program").program;
        let numbers = Numbers::of(program.rules.iter().map(|rule| &rule.condition));
        let mut signs: Vec<Option<Signs>> = numbers.tests.iter().map(|_| None).collect();
        choose(&numbers.tests, &mut signs);
        let first = signs.into_iter().next().flatten().expect("signs");
        assert_eq!(first.list.as_slice(), std::slice::from_ref(expected), "{conditions:?}");
    }

    fn text(text: &str) -> Box<[u8]> {
        text.as_bytes().into()
    }

    #[test]
    fn what_many_share_tells_none_of_them_apart() {
        let many = |condition: &dyn Fn(u32) -> String| (0..40).map(condition).collect::<Vec<_>>();
        let of_api = many(&|n| format!("path matches \"^/api/v[0-9]+/name{n}/[0-9]+$\""));
        check(&of_api, &Sign::Contains(text("/name0/")));
        check(&of_api[..3], &Sign::StartsWith(text("/api/v")));
        check(&many(&|n| format!("path matches \"^/api/[0-9]+/name{n}$\"")), &Sign::EndsWith(text("/name0")));
        check(&many(&|n| format!("path matches \"/name{n}/.*gif$\"")), &Sign::Contains(text("/name0/")));
        check(&many(&|n| format!("path like \"/long/*/{n}/*\"")), &Sign::Contains(text("/0/")));
        // Those of another field do not count.
        let of_two = |n: u32| {
            let field = if n == 0 { "path" } else { "url" };
            format!("{field} matches \"^/api/v[0-9]+/name{n}\"")
        };
        check(&many(&of_two), &Sign::StartsWith(text("/api/v")));
    }

    #[test]
    fn what_is_rare_may_be_in_too_many_values() {
        let conditions: Vec<String> =
            (0..12_u8).map(|n| format!("path matches \"^/api/v[0-9]+{}\"", char::from(b'a' + n))).collect();
        check(&conditions, &Sign::StartsWith(text("/api/v")));
    }
}
