//! A timer wheel: when is which slot due? Knows no clock; time is an argument, in ticks.

use std::task::Waker;

use slab::Slab;

use crate::Elapsed;

/// Buckets of one turn. Later deadlines wait a turn and are filed again.
const BUCKETS: u64 = 1024;
const NEVER: u64 = u64::MAX;
/// The end of a list of entries.
const NONE: u32 = u32::MAX;

/// Deadlines of one thread.
///
/// A slot is filed where its deadline falls and left there when the deadline moves later: it is
/// looked at when its bucket comes up, and filed anew. So moving a deadline, which every request
/// does several times, is one store. What was filed once is filed again without taking memory: buckets have none of
/// their own, and the tables have their sizes once as many deadlines were open as ever are.
#[derive(Debug)]
pub(crate) struct Wheel {
    slots: Slab<Slot>,
    /// The first entry of each bucket; each entry knows the next one.
    buckets: Vec<u32>,
    entries: Vec<Entry>,
    /// The first entry that is in no bucket.
    free: u32,
    now: u64,
}

#[derive(Debug)]
struct Entry {
    slot: u32,
    next: u32,
}

#[derive(Debug)]
struct Slot {
    due: u64,
    /// The tick that was heard last when the deadline was set.
    armed: u64,
    /// The tick of the slot's earliest entry in the buckets; other entries of it are stale.
    filed: u64,
    expired: Option<Elapsed>,
    idle: bool,
    waker: Waker,
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        Wheel {
            slots: Slab::new(),
            buckets: vec![NONE; BUCKETS as usize],
            entries: Vec::new(),
            free: NONE,
            now: 0,
        }
    }

    pub(crate) fn insert(&mut self) -> usize {
        self.slots.insert(Slot {
            due: NEVER,
            armed: 0,
            filed: NEVER,
            expired: None,
            idle: false,
            waker: Waker::noop().clone(),
        })
    }

    pub(crate) fn remove(&mut self, slot: usize) {
        self.slots.remove(slot);
    }

    /// Sets the deadline of `slot` to `ticks` from now and what to wake then.
    pub(crate) fn arm(&mut self, slot: usize, ticks: u64, idle: bool, waker: &Waker) {
        // Two more than asked: the current tick is partly over, the next may have begun unheard, and a
        // deadline is never early.
        let due = self.now + ticks + 2;
        let entry = &mut self.slots[slot];
        entry.due = due;
        entry.armed = self.now;
        entry.idle = idle;
        entry.expired = None;
        entry.waker.clone_from(waker);
        if due < entry.filed {
            self.file(slot, due);
        }
    }

    /// Tells the slot's waiter again where its waker has changed.
    pub(crate) fn refresh(&mut self, slot: usize, waker: &Waker) {
        self.slots[slot].waker.clone_from(waker);
    }

    /// So many ticks passed unheard. What was set since the last one that was heard may have begun at their end, and
    /// falls due so much later.
    pub(crate) fn forgive(&mut self, ticks: u64) {
        if ticks == 0 {
            return;
        }
        let now = self.now;
        for (_, slot) in self.slots.iter_mut().filter(|(_, slot)| slot.armed == now && slot.due != NEVER) {
            slot.due += ticks;
        }
    }

    pub(crate) fn disarm(&mut self, slot: usize) {
        self.slots[slot].due = NEVER;
        self.slots[slot].idle = false;
    }

    pub(crate) fn expired(&self, slot: usize) -> Option<Elapsed> {
        self.slots[slot].expired
    }

    fn file(&mut self, slot: usize, due: u64) {
        let at = due.min(self.now + BUCKETS - 1);
        self.slots[slot].filed = at;
        let first = &mut self.buckets[(at % BUCKETS) as usize];
        let entry = Entry { slot: slot as u32, next: *first };
        match self.entries.get_mut(self.free as usize) {
            Some(unused) => {
                *first = self.free;
                self.free = unused.next;
                *unused = entry;
            }
            None => {
                *first = self.entries.len() as u32;
                self.entries.push(entry);
            }
        }
    }

    /// Empties the bucket of a tick in front of `behind`, a list of entries that are looked at next.
    fn take_bucket(&mut self, tick: u64, behind: &mut u32) {
        let mut at = std::mem::replace(&mut self.buckets[(tick % BUCKETS) as usize], NONE);
        while let Some(entry) = self.entries.get_mut(at as usize) {
            let next = std::mem::replace(&mut entry.next, *behind);
            *behind = std::mem::replace(&mut at, next);
        }
    }

    /// Takes the first entry off a list and says whose it is.
    fn free_first(&mut self, list: &mut u32) -> Option<usize> {
        let entry = self.entries.get_mut(*list as usize)?;
        let next = std::mem::replace(&mut entry.next, self.free);
        self.free = std::mem::replace(list, next);
        Some(entry.slot as usize)
    }

    /// Moves time on to `now` and returns what is to be woken.
    pub(crate) fn advance(&mut self, now: u64) -> Vec<Waker> {
        let mut woken = Vec::new();
        // After a long stall one turn visits every bucket.
        let first = (self.now + 1).max(now.saturating_sub(BUCKETS - 1));
        // All of them before any is filed anew, which may be where one of these ticks was.
        let mut behind = NONE;
        for tick in first..=now {
            self.take_bucket(tick, &mut behind);
        }
        self.now = now;
        while let Some(slot) = self.free_first(&mut behind) {
            let Some(entry) = self.slots.get_mut(slot) else { continue };
            if entry.filed > now {
                continue;
            }
            entry.filed = NEVER;
            if entry.due == NEVER {
                continue;
            }
            if entry.due > now {
                let due = entry.due;
                self.file(slot, due);
            } else {
                woken.push(entry.expire(Elapsed::Time));
            }
        }
        woken
    }

    /// What is to be woken by deadlines that are still to come.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Waker> {
        self.slots.iter().filter(|(_, slot)| slot.due != NEVER).map(|(_, slot)| &slot.waker)
    }

    /// Lets every wait that is idle end now.
    pub(crate) fn expire_idle(&mut self) -> Vec<Waker> {
        let idle = self.slots.iter_mut().filter(|(_, slot)| slot.idle);
        idle.map(|(_, slot)| slot.expire(Elapsed::Ended)).collect()
    }
}

impl Slot {
    fn expire(&mut self, why: Elapsed) -> Waker {
        self.due = NEVER;
        self.idle = false;
        self.expired = Some(why);
        self.waker.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fired(wheel: &mut Wheel, now: u64, slots: &[usize]) -> Vec<bool> {
        wheel.advance(now);
        slots.iter().map(|&slot| wheel.expired(slot).is_some()).collect()
    }

    #[test]
    fn a_deadline_is_never_early_and_at_most_two_ticks_late() {
        let mut wheel = Wheel::new();
        let slot = wheel.insert();
        wheel.arm(slot, 3, false, Waker::noop());
        assert_eq!(fired(&mut wheel, 4, &[slot]), [false]);
        assert_eq!(fired(&mut wheel, 5, &[slot]), [true]);
    }

    #[test]
    fn a_stall_is_forgiven_once_and_to_those_who_began_in_it() {
        let mut wheel = Wheel::new();
        let (before, within, idle) = (wheel.insert(), wheel.insert(), wheel.insert());
        wheel.arm(before, 10, false, Waker::noop());
        wheel.advance(1);
        wheel.arm(within, 10, false, Waker::noop());
        for now in [5, 9] {
            wheel.forgive(3);
            wheel.advance(now);
        }
        assert_eq!(fired(&mut wheel, 11, &[before, within, idle]), [false; 3]);
        assert_eq!(fired(&mut wheel, 12, &[before, within, idle]), [true, false, false]);
        assert_eq!(fired(&mut wheel, 15, &[within, idle]), [false, false]);
        assert_eq!(fired(&mut wheel, 16, &[within, idle]), [true, false]);
    }

    #[test]
    fn a_deadline_that_moved_fires_at_its_new_time_only() {
        let mut wheel = Wheel::new();
        let later = wheel.insert();
        let sooner = wheel.insert();
        wheel.arm(later, 5, false, Waker::noop());
        wheel.arm(sooner, 500, false, Waker::noop());
        wheel.advance(3);
        wheel.arm(later, 50, false, Waker::noop());
        wheel.arm(sooner, 2, false, Waker::noop());
        assert_eq!(fired(&mut wheel, 7, &[later, sooner]), [false, true]);
        assert_eq!(fired(&mut wheel, 54, &[later]), [false]);
        assert_eq!(fired(&mut wheel, 55, &[later]), [true]);
    }

    #[test]
    fn deadlines_beyond_one_turn_and_after_a_stall_fire() {
        let mut wheel = Wheel::new();
        let far = wheel.insert();
        wheel.arm(far, 5 * BUCKETS, false, Waker::noop());
        for now in 1..=5 * BUCKETS + 1 {
            wheel.advance(now);
        }
        assert!(wheel.expired(far).is_none());
        wheel.advance(5 * BUCKETS + 2);
        assert_eq!(wheel.expired(far), Some(Elapsed::Time));
        wheel.arm(far, 10, false, Waker::noop());
        assert_eq!(fired(&mut wheel, 100 * BUCKETS, &[far]), [true]);
    }

    #[test]
    fn what_was_filed_once_takes_no_more_memory() {
        let mut wheel = Wheel::new();
        let slots: Vec<usize> = (0..10).map(|_| wheel.insert()).collect();
        for now in 1..=3 * BUCKETS {
            for &slot in &slots {
                wheel.disarm(slot);
                wheel.arm(slot, 20 + slot as u64, false, Waker::noop());
            }
            assert!(wheel.advance(now).is_empty());
        }
        // One each that is in force, and one that was looked at too early and is not.
        assert!(wheel.entries.len() <= 2 * slots.len(), "{}", wheel.entries.len());
        assert_eq!(fired(&mut wheel, 4 * BUCKETS, &slots), [true; 10]);
        assert!(wheel.buckets.iter().all(|first| *first == NONE));
    }

    #[test]
    fn a_disarmed_or_removed_slot_stays_silent() {
        let mut wheel = Wheel::new();
        let (kept, removed) = (wheel.insert(), wheel.insert());
        wheel.arm(kept, 1, true, Waker::noop());
        wheel.arm(removed, 1, true, Waker::noop());
        wheel.disarm(kept);
        wheel.remove(removed);
        assert!(wheel.advance(10).is_empty());
        assert!(wheel.expire_idle().is_empty());
        assert!(wheel.expired(kept).is_none());
    }

    #[test]
    fn draining_ends_idle_waits_only() {
        let mut wheel = Wheel::new();
        let (idle, busy) = (wheel.insert(), wheel.insert());
        wheel.arm(idle, 100, true, Waker::noop());
        wheel.arm(busy, 100, false, Waker::noop());
        assert_eq!(wheel.expire_idle().len(), 1);
        assert_eq!((wheel.expired(idle), wheel.expired(busy)), (Some(Elapsed::Ended), None));
    }
}
