//! Classes in virtual time: bodies that ask, wait as long as they are told, and are late as timers are.

use proptest::prelude::*;

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

/// A body that a class is asked for: by whom, how late its timer is each time, and from when to when it sends.
#[derive(Clone, Copy, Debug)]
struct Sender {
    class: usize,
    late_ns: u64,
    from_ns: u64,
    until_ns: u64,
    /// What its client takes in a second.
    takes_bytes_per_second: u64,
}

fn busy(class: usize) -> Sender {
    Sender { class, late_ns: 50_000_000, from_ns: 0, until_ns: u64::MAX, takes_bytes_per_second: u64::MAX }
}

fn tree(rates: &[ClassRates]) -> Tree {
    let states: Vec<_> = rates.iter().map(|_| Arc::default()).collect();
    Tree::new(rates, &states, 0)
}

fn class(parent: Option<usize>, guaranteed: u64, ceiling: Option<u64>) -> ClassRates {
    let burst_bytes = ceiling.map_or(0, |ceiling| ceiling / 5).max(BURST_BYTES_MIN);
    ClassRates {
        parent,
        guaranteed_bytes_per_second: guaranteed,
        ceiling_bytes_per_second: ceiling,
        burst_bytes,
    }
}

/// What was sent: when, by which class, how much.
fn run(tree: &Tree, senders: &[Sender], until_ns: u64) -> Vec<(u64, usize, u64)> {
    let mut due: Vec<u64> = senders.iter().map(|sender| sender.from_ns).collect();
    let mut sent = Vec::new();
    while let Some((index, &now_ns)) = due.iter().enumerate().min_by_key(|(_, due)| **due) {
        if now_ns >= until_ns {
            break;
        }
        let sender = senders[index];
        due[index] = match tree.take(sender.class, PIECE_BYTES, now_ns) {
            _ if now_ns >= sender.until_ns => u64::MAX,
            Ok(grant) => {
                sent.push((now_ns, sender.class, u64::from(grant.bytes)));
                tree.settle(grant, grant.bytes, now_ns);
                let took = u128::from(grant.bytes) * u128::from(SECOND_NS);
                now_ns + (took / u128::from(sender.takes_bytes_per_second)) as u64 + 1000
            }
            Err(wait_ns) => now_ns + wait_ns.clamp(1, 200_000_000) + sender.late_ns,
        };
    }
    sent
}

/// Bytes per second of a class from one second to another.
fn rate(sent: &[(u64, usize, u64)], class: usize, (from_s, to_s): (u64, u64)) -> f64 {
    let seconds = from_s * SECOND_NS..to_s * SECOND_NS;
    let of = sent.iter().filter(|(at_ns, of, _)| *of == class && seconds.contains(at_ns));
    of.map(|(_, _, bytes)| *bytes).sum::<u64>() as f64 / (to_s - from_s) as f64
}

/// Asserts that from the tenth second on each class gets its rate, within 5 %.
fn check(rates: &[ClassRates], senders: &[Sender], expected: &[(usize, f64)]) {
    let sent = run(&tree(rates), senders, 40 * SECOND_NS);
    let all: Vec<_> = (0..rates.len()).map(|class| rate(&sent, class, (10, 40)) as u64).collect();
    for (class, expected) in expected {
        let got = rate(&sent, *class, (10, 40));
        assert!(
            (got - expected).abs() <= expected * 0.05,
            "class {class}: {got} and not {expected} in {all:?}"
        );
    }
}

const M: u64 = 1_000_000;

fn thirds() -> [ClassRates; 4] {
    let top = class(None, 0, Some(10 * M));
    [top, class(Some(0), M, None), class(Some(0), 2 * M, None), class(Some(0), 7 * M, None)]
}

#[test]
fn who_is_busy_gets_what_is_guaranteed() {
    check(&thirds(), &[busy(1), busy(2), busy(3)], &[(1, 1e6), (2, 2e6), (3, 7e6)]);
    let many = [busy(1), busy(1), busy(1), busy(2), busy(3), busy(3)];
    check(&thirds(), &many, &[(1, 1e6), (2, 2e6), (3, 7e6)]);
}

#[test]
fn what_one_leaves_the_others_share_by_their_guarantees() {
    check(&thirds(), &[busy(1), busy(2)], &[(1, 10e6 / 3.0), (2, 20e6 / 3.0)]);
    check(&thirds(), &[busy(1), busy(3)], &[(1, 1.25e6), (3, 8.75e6)]);
    check(&thirds(), &[busy(1)], &[(1, 10e6)]);
    let slow = Sender { takes_bytes_per_second: M, ..busy(3) };
    check(&thirds(), &[busy(1), busy(2), slow], &[(1, 3e6), (2, 6e6), (3, 1e6)]);
}

#[test]
fn a_ceiling_bounds_what_is_borrowed() {
    let mut rates = thirds();
    rates[1] = class(Some(0), M, Some(2 * M));
    check(&rates, &[busy(1)], &[(1, 2e6)]);
    check(&rates, &[busy(1), busy(2)], &[(1, 2e6), (2, 8e6)]);
}

#[test]
fn children_borrow_of_their_parent_first() {
    // Two groups of 4 and 6; in the first one of 1 and one of 3, in the other one that is guaranteed nothing.
    let rates = [
        class(None, 0, Some(10 * M)),
        class(Some(0), 4 * M, None),
        class(Some(0), 6 * M, None),
        class(Some(1), M, None),
        class(Some(1), 3 * M, None),
        class(Some(2), 0, None),
    ];
    check(&rates, &[busy(3), busy(4), busy(5)], &[(3, 1e6), (4, 3e6), (5, 6e6)]);
    check(&rates, &[busy(3), busy(5)], &[(3, 4e6), (5, 6e6)]);
    check(&rates, &[busy(5)], &[(5, 10e6)]);
}

#[test]
fn a_change_of_rates_holds_at_once() {
    let states: Vec<Arc<ClassState>> = vec![Arc::default()];
    let slow = Tree::new(&[class(None, 0, Some(10_000))], &states, 0);
    assert!(slow.take(0, PIECE_BYTES, 0).is_ok());
    let before = run(&slow, &[busy(0)], SECOND_NS);
    assert!(before.iter().map(|(.., bytes)| bytes).sum::<u64>() <= BURST_BYTES_MIN + 10_000);
    let fast = Tree::new(&[class(None, 0, Some(10 * M))], &states, SECOND_NS);
    let after = Sender { from_ns: SECOND_NS, ..busy(0) };
    let sent = run(&fast, &[after], 11 * SECOND_NS);
    assert!((rate(&sent, 0, (1, 11)) - 10e6).abs() < 5e5);
}

fn any_tree() -> impl Strategy<Value = Vec<ClassRates>> {
    let child = (0usize..4, 0u64..30, prop::option::of(1u64..40));
    prop::collection::vec(child, 1..6).prop_map(|children| {
        let mut rates = vec![class(None, 0, Some(10 * M))];
        for (parent, percent, ceiling) in children {
            let parent = parent.min(rates.len() - 1);
            let guaranteed = percent * M / 20;
            rates.push(class(Some(parent), guaranteed, ceiling.map(|ceiling| ceiling * M / 4)));
        }
        rates
    })
}

fn any_senders() -> impl Strategy<Value = Vec<Sender>> {
    let sender = (0usize..6, 0u64..75, 0u64..4, 1u64..8, prop::option::of(1u64..40));
    let senders = sender.prop_map(|(class, late_ms, from_s, for_s, takes)| Sender {
        class,
        late_ns: late_ms * 1_000_000,
        from_ns: from_s * SECOND_NS,
        until_ns: (from_s + for_s) * SECOND_NS,
        takes_bytes_per_second: takes.map_or(u64::MAX, |takes| takes * M / 4),
    });
    prop::collection::vec(senders, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// In any window no class, with those below it, gets more than its burst and what its ceiling brings.
    #[test]
    fn nobody_is_over_a_ceiling(rates in any_tree(), senders in any_senders()) {
        let tree = tree(&rates);
        let senders: Vec<_> =
            senders.into_iter().map(|sender| Sender { class: sender.class.min(rates.len() - 1), ..sender }).collect();
        let sent = run(&tree, &senders, 10 * SECOND_NS);
        for (bound, of) in rates.iter().enumerate() {
            let Some(ceiling) = of.ceiling_bytes_per_second else { continue };
            let is_below = |class: usize| {
                std::iter::successors(Some(class), |&at| rates[at].parent).any(|at| at == bound)
            };
            // The bucket as it would be by its definition: full at first, never below nothing.
            let (mut left, mut last_ns) = (of.burst_bytes as f64, 0);
            for &(at_ns, class, bytes) in sent.iter().filter(|(_, class, _)| is_below(*class)) {
                let came = (at_ns - last_ns) as f64 * ceiling as f64 / SECOND_NS as f64;
                left = (left + came).min(of.burst_bytes as f64) - bytes as f64;
                last_ns = at_ns;
                prop_assert!(left >= -1.0, "class {class} took {} too much of {bound}", -left);
            }
        }
    }

    /// What is not used is as if it had not been taken.
    #[test]
    fn what_is_given_back_can_be_taken(used in 0..PIECE_BYTES) {
        let tree = tree(&thirds());
        let mut total = 0u64;
        while let Ok(grant) = tree.take(0, PIECE_BYTES, 0) {
            tree.settle(grant, used.max(1), 0);
            total += u64::from(used.max(1));
        }
        prop_assert!(total <= 2 * M && total + u64::from(PIECE_BYTES) >= 2 * M, "{total}");
    }
}
