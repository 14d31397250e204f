//! Of sets that are said to be equal the same becomes of every request, whatever stands in its body behind what decides, or twice,
//! and whatever its fields are called.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::super::super::tests::fates::{REQUESTS, TESTS, fate, keeping, sources, without};
use super::{compiled, side};
use crate::logic::difference::differences;
use crate::{Effort, Setting};

/// Another version of a rule set: one test written in the place of another, two rules that have changed places, or one left out.
fn changed(source: &str, (kind, first, second): (u8, Index, Index), test: &str) -> String {
    let labels: Vec<u32> = (0..).take(source.lines().filter(|line| line.starts_with('R')).count()).collect();
    let rule = |index: Index| index.index(labels.len()) as u32;
    match kind {
        0 => without(source, rule(first)),
        1 => {
            let (one, other) = (rule(first), rule(second));
            let mut lines: Vec<&str> = source.lines().collect();
            let at = |label| lines.iter().position(|line| line.starts_with(&format!("R{label}:")));
            let (one, other) = (at(one).expect("a rule"), at(other).expect("a rule"));
            lines.swap(one, other);
            lines.iter().map(|line| format!("{line}\n")).collect()
        }
        _ => {
            let named: Vec<&str> = TESTS.iter().copied().filter(|test| source.contains(test)).collect();
            source.replacen(named[first.index(named.len())], test, 1)
        }
    }
}

proptest! {
    #[test]
    fn of_equal_sets_the_same_becomes_of_every_request(
        old in sources(), change in (0_u8..5, any::<Index>(), any::<Index>()), test in select(TESTS), keeps in any::<bool>()
    ) {
        let new = changed(&old, change, test);
        let [before, now] = compiled((&old, &new)).expect("rules");
        let setting = if keeps { keeping(&now) } else { Setting::default() };
        let found = differences(side(&before), side(&now), &setting, Effort::new(10_000_000));
        if !found.are_none() {
            return Ok(());
        }
        for request in REQUESTS.iter() {
            let (one, other) = (fate(&before, request, keeps), fate(&now, request, keeps));
            prop_assert_eq!(one, other, "{}---\n{}{}", old, new, request);
        }
    }
}
