//! Whether two automata take a text in common: of thousands of pairs it is told before any of them is asked about.

use super::Table;
use crate::Effort;

/// Of two automata with more pairs of states it is not said.
const PLACES_MAX: usize = 1 << 16;

/// So many pairs of classes are looked at in the time of a step.
const LOOKS_OF_A_STEP: usize = 4;

impl Table {
    /// Whether some text is taken by both. Nothing where there are too many states, or too few steps.
    pub(super) fn meets(&self, other: &Table, effort: &mut Effort) -> Option<bool> {
        let places =
            self.states.len().checked_mul(other.states.len()).filter(|places| *places <= PLACES_MAX)?;
        let classes = self.classes_with(other);
        let steps = classes.len().div_ceil(LOOKS_OF_A_STEP) as u64;
        let mut is_known = vec![false; places];
        let mut open = vec![(Table::START, Table::START)];
        if self.state(Table::START).takes && other.state(Table::START).takes {
            return Some(true);
        }
        while let Some((one, two)) = open.pop() {
            if !effort.take(steps) {
                return None;
            }
            for (own, its) in &classes {
                let to = (self.behind(one, *own), other.behind(two, *its));
                let states = [self.state(to.0), other.state(to.1)];
                if states.iter().any(|state| !state.may_take) {
                    continue;
                }
                if states.iter().all(|state| state.takes) {
                    return Some(true);
                }
                let place = to.0 as usize * other.states.len() + to.1 as usize;
                if is_known.get_mut(place).is_some_and(|known| !std::mem::replace(known, true)) {
                    open.push(to);
                }
            }
        }
        Some(false)
    }

    /// What classes a byte can have here and there.
    fn classes_with(&self, other: &Table) -> Vec<(usize, usize)> {
        let mut is_known = vec![false; self.stride * other.stride];
        let both = self.classes.iter().zip(&other.classes);
        let both = both.map(|(one, other)| (usize::from(*one), usize::from(*other)));
        let is_new = |(one, two): &(usize, usize)| {
            let known = is_known.get_mut(one * other.stride + two);
            known.is_some_and(|known| !std::mem::replace(known, true))
        };
        both.filter(is_new).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::of_regex;
    use super::*;

    #[track_caller]
    fn check(one: &str, other: &str, expected: bool) {
        let [first, second] = [one, other].map(|regex| of_regex(regex).expect("it is small"));
        let mut effort = Effort::new(1_000_000);
        assert_eq!(first.meets(&second, &mut effort), Some(expected), "{one} {other}");
        assert_eq!(second.meets(&first, &mut effort), Some(expected), "{other} {one}");
    }

    #[test]
    fn texts_in_common_are_found() {
        check("^/a", "/b$", true);
        check("^/a$", "^/b$", false);
        check("", "^$", true);
        check("^[a-z]{2}(-[A-Z]{2})?/name/?$", "^name/(new|edit|[0-9]+)$", false);
        check("^[a-z]{2}/name/?$", "^[a-z]+/nam", true);
        check("/one/", "^/api/v[0-9]+/two/", true);
        check("/one/", "^/api/v[0-9]+/two/[0-9]+$", false);
        check("^(?i)AB", "^ab$", true);
        check("^[^/]*$", "/", false);
        check("^(aa)*$", "^a(aa)*$", false);
        check("^[\\x80-\\xff]+$", "^[\\x00-\\x80]$", true);
    }

    #[test]
    fn too_much_is_not_settled() {
        let [first, second] =
            ["^(a{300}|b)*c$", "^(b{300}|a)*c$"].map(|regex| of_regex(regex).expect("it is small"));
        assert_eq!(first.meets(&second, &mut Effort::new(1_000_000)), None);
        let [first, second] = ["a{20}", "b{20}"].map(|regex| of_regex(regex).expect("it is small"));
        assert_eq!(first.meets(&second, &mut Effort::new(2)), None);
    }
}
