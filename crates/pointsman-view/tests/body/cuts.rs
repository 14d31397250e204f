//! However a body is cut, the same becomes known of it.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::case::cases;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_pieces_say_the_same(case in select(cases()), cuts in vec(any::<Index>(), 0..6)) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(case.body.len() + 1)).collect();
        cuts.sort_unstable();
        let mut inspection = case.inspection();
        let mut from = 0;
        for to in cuts.into_iter().chain([case.body.len()]) {
            inspection.feed(&case.body[from..to]);
            from = to;
        }
        inspection.finish();
        prop_assert_eq!(case.known(&inspection), case.expected);
    }

    /// Nothing that comes makes it panic, and nothing that was known changes.
    #[test]
    fn whatever_comes_what_is_known_stays(
        case in select(cases()),
        changes in vec((any::<Index>(), any::<u8>()), 0..4),
        piece in 1usize..40,
    ) {
        let mut body = case.body.clone();
        for (place, byte) in changes {
            if let Some(changed) = body.get_mut(place.index(case.body.len().max(1))) {
                *changed = byte;
            }
        }
        let mut inspection = case.inspection();
        let mut known = case.known(&inspection);
        for content in body.chunks(piece) {
            inspection.feed(content);
            let now = case.known(&inspection);
            for (before, now) in known.iter().zip(&now) {
                let is_known = !before.contains("(not read yet)") && !before.ends_with("?not read yet");
                prop_assert!(!is_known || before == now, "{} became {}", before, now);
            }
            known = now;
        }
        inspection.finish();
        prop_assert!(case.known(&inspection).iter().all(|field| !field.contains("not read yet")));
    }
}
