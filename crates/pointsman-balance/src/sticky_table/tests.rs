//! The table beside a map, full and with room.

use std::collections::HashMap;
use std::hash::Hasher;

use proptest::collection::vec;
use proptest::prelude::*;
use siphasher::sip::SipHasher13;

use super::*;

const IDLE_S_MAX: u32 = 100;

/// As clients are hashed.
pub(super) fn client(number: u32) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write_u32(number);
    hasher.finish()
}

pub(super) fn put(table: &StickyTable, client: u64, server: u32, now_s: u32) {
    table.put(client, server, Whereabouts::Away, now_s);
}

/// The server of a client that comes.
pub(super) fn see(table: &StickyTable, client: u64, now_s: u32) -> Option<u32> {
    let kept = table.server_of(client, now_s)?;
    if kept.is_due {
        put(table, client, kept.server, now_s);
    }
    Some(kept.server)
}

#[derive(Clone, Debug)]
enum Step {
    Put(u32, u32),
    Ask(u32),
    Pass(u32),
    Forget(u32),
}

fn steps(clients: u32) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..clients, 0u32..4).prop_map(|(client, server)| Step::Put(client, server)),
        4 => (0..clients).prop_map(Step::Ask),
        2 => (0u32..IDLE_S_MAX / 2).prop_map(Step::Pass),
        1 => (0u32..4).prop_map(Step::Forget),
    ];
    vec(step, 0..200)
}

/// Runs the steps over a table and a map of server and last use, and holds one to the other.
fn check(table: &StickyTable, steps: &[Step], is_roomy: bool) -> Result<(), TestCaseError> {
    let mut map: HashMap<u32, (u32, u32)> = HashMap::new();
    let mut now_s = 0;
    for step in steps {
        map.retain(|_, (_, used_s)| now_s - *used_s <= IDLE_S_MAX);
        match *step {
            Step::Put(number, server) => {
                put(table, client(number), server, now_s);
                map.insert(number, (server, now_s));
            }
            Step::Ask(number) => {
                let (found, known) = (see(table, client(number), now_s), map.get_mut(&number));
                match known {
                    Some((server, used_s)) if found.is_some() || is_roomy => {
                        prop_assert_eq!(found, Some(*server));
                        if now_s - *used_s > IDLE_S_MAX / 16 {
                            *used_s = now_s;
                        }
                    }
                    // It had to make room; or it never was there.
                    _ => prop_assert_eq!(found, None),
                }
            }
            Step::Pass(seconds) => now_s += seconds,
            Step::Forget(server) => {
                let forgotten = table.forget(|entry| entry.server == server, now_s);
                let before = map.len();
                map.retain(|_, (kept, _)| *kept != server);
                prop_assert!(forgotten == before - map.len() || !is_roomy && forgotten < before);
            }
        }
        map.retain(|_, (_, used_s)| now_s - *used_s <= IDLE_S_MAX);
        let entries: Vec<_> = table.entries(now_s).collect();
        prop_assert!(entries.len() <= map.len());
        prop_assert!(entries.len() == map.len() || !is_roomy);
    }
    Ok(())
}

proptest! {
    #[test]
    fn it_is_a_map_where_there_is_room(steps in steps(8)) {
        check(&StickyTable::new(4096, IDLE_S_MAX), &steps, true)?;
    }

    /// Each entry names the server that its client was given, and a table never has more entries than room.
    #[test]
    fn without_room_it_forgets_and_errs_never(steps in steps(60)) {
        let table = StickyTable::new(16, IDLE_S_MAX);
        check(&table, &steps, false)?;
        prop_assert!(table.entries(0).count() <= 16);
    }
}

#[test]
fn the_one_that_was_idle_longest_makes_room() {
    // One set, twice.
    let table = StickyTable::new(4, IDLE_S_MAX);
    (0..4).for_each(|number| put(&table, client(number), number, number));
    assert_eq!(see(&table, client(0), 20), Some(0));
    put(&table, client(9), 9, 21);
    let mut left: Vec<_> = table.entries(21).map(|entry| entry.server).collect();
    left.sort_unstable();
    assert_eq!(left, [0, 2, 3, 9]);
}

#[test]
fn a_client_that_comes_stays_and_one_that_does_not_is_forgotten() {
    let table = StickyTable::new(64, IDLE_S_MAX);
    put(&table, client(1), 7, 0);
    put(&table, client(2), 8, 0);
    assert!((0..50).all(|look| see(&table, client(1), look * 60) == Some(7)));
    assert_eq!(see(&table, client(2), IDLE_S_MAX + 1), None);
    assert_eq!(see(&table, client(1), 49 * 60 + IDLE_S_MAX + 7), None);
    assert_eq!(table.entries(49 * 60 + IDLE_S_MAX + 7).count(), 0);
}

#[test]
fn a_longer_time_holds_at_once() {
    let table = StickyTable::new(64, IDLE_S_MAX);
    put(&table, client(1), 7, 0);
    table.set_idle_s_max(1000);
    assert_eq!(see(&table, client(1), 900), Some(7));
}

#[test]
fn three_quarters_full_it_has_nearly_all() {
    let table = StickyTable::new(1 << 14, IDLE_S_MAX);
    let clients = 3 << 12;
    (0..clients).for_each(|number| put(&table, client(number), number, 0));
    let kept = (0..clients).filter(|&number| see(&table, client(number), 0) == Some(number)).count();
    assert!(kept > clients as usize * 97 / 100, "{kept} of {clients}");
}

/// However many come who are at home, who is away stays.
#[test]
fn who_is_at_home_makes_room() {
    let table = StickyTable::new(64, IDLE_S_MAX);
    (0..20).for_each(|number| put(&table, client(number), number, 0));
    for number in 100..10_000 {
        table.put(client(number), number, Whereabouts::Home, 1);
    }
    assert!((0..20).all(|number| see(&table, client(number), 2) == Some(number)));
    assert_eq!(table.entries(2).count(), 64);
    // Who is looked at again, and found at home, makes room, too.
    table.look_again(2, |_| Some(Whereabouts::Home));
    for number in 10_000..20_000 {
        put(&table, client(number), number, 3);
    }
    assert!((0..20).all(|number| see(&table, client(number), 4).is_none()));
}

/// Entries of clients that never came back push each other out, but no entry of a client that came back.
#[test]
fn who_has_come_back_outlives_strangers() {
    let table = StickyTable::new(1024, IDLE_S_MAX);
    (0..20).for_each(|number| put(&table, client(number), number, 0));
    assert!((0..20).all(|number| see(&table, client(number), 1) == Some(number)));
    for number in 100..10_000 {
        put(&table, client(number), number, 2);
        // What a server says is not that the client has come back.
        assert!(table.known(client(number), 2).is_some());
    }
    assert!((0..20).all(|number| see(&table, client(number), 3) == Some(number)));
    let late = (9_900..10_000).filter(|&number| see(&table, client(number), 3) == Some(number)).count();
    assert!(late > 80, "{late} of 100 that came last");
    table.look_again(3, |entry| Some(entry.whereabouts));
    (0..20).for_each(|number| put(&table, client(number), number + 1, 4));
    (10_000..20_000).for_each(|number| put(&table, client(number), number, 5));
    assert!((0..20).all(|number| see(&table, client(number), 6) == Some(number + 1)));
}

/// A table full of clients that have come back has room for new ones, and strangers take a quarter of it at most.
#[test]
fn strangers_take_a_quarter_of_a_full_table() {
    let table = StickyTable::new(1024, IDLE_S_MAX);
    for number in 0..5000 {
        put(&table, client(number), 7, 0);
        assert_eq!(see(&table, client(number), 0), Some(7));
    }
    let returned = |table: &StickyTable| table.entries(1).filter(|entry| entry.server == 7).count();
    assert_eq!(returned(&table), 1024);
    for number in 10_000..30_000 {
        put(&table, client(number), 8, 1);
        assert_eq!(table.known(client(number), 1).map(|kept| kept.server), Some(8));
    }
    assert!(returned(&table) >= 768, "{}", returned(&table));
}

#[test]
fn a_second_look_forgets_and_disturbs_nobody_else() {
    let table = StickyTable::new(64, IDLE_S_MAX);
    (0..20).for_each(|number| table.put(client(number), number, Whereabouts::Home, number));
    table.look_again(20, |entry| (entry.server % 2 == 0).then_some(Whereabouts::Away));
    let mut left: Vec<_> = table.entries(20).collect();
    left.sort_unstable_by_key(|entry| entry.server);
    let expected = (0..20).step_by(2).map(|number| StickyEntry {
        client: client(number),
        server: number,
        whereabouts: Whereabouts::Away,
        used_s: number,
        has_returned: false,
    });
    assert_eq!(left, expected.collect::<Vec<_>>());
}

#[test]
fn an_entry_takes_sixteen_bytes_and_four_are_one_line() {
    assert_eq!(STICKY_ENTRY_BYTES, 16);
    assert_eq!((size_of::<Set>(), align_of::<Set>()), (64, 64));
}
