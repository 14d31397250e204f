//! The memory that connections may take in the whole process, and what a thread has booked of it.
//!
//! A thread books in steps, so that what is shared is touched once in many requests. What it has booked and does
//! not use it keeps, two steps at most; where others look for memory in vain it gives all of that back.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a thread books at a time, where the budget is large enough.
const STEP_BYTES_MAX: u64 = 1024 * 1024;
const STEP_BYTES_MIN: u64 = 16 * 1024;
/// So many steps of every thread are in the budget at least.
const STEPS_A_THREAD: u64 = 32;

/// Bytes that connections may take together. Shared by all threads.
#[derive(Debug)]
pub struct Budget {
    bytes_max: AtomicU64,
    booked_bytes: Booked,
    step_bytes: AtomicU64,
    shortages: AtomicU64,
}

/// On lines of its own: each request reads what stands beside it in [`Budget`]. Processors fetch lines of 64 bytes by
/// twos.
#[derive(Debug)]
#[repr(align(128))]
struct Booked(AtomicU64);

impl Budget {
    /// A budget of `bytes_max` for so many threads.
    pub fn new(bytes_max: u64, threads: usize) -> Budget {
        Budget {
            bytes_max: AtomicU64::new(bytes_max),
            booked_bytes: Booked(AtomicU64::new(0)),
            step_bytes: AtomicU64::new(step_bytes(bytes_max, threads)),
            shortages: AtomicU64::new(0),
        }
    }

    /// Sets another maximum. What is booked beyond it stays booked until it is given back.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Has so many threads from now on.
    pub fn set_threads(&self, threads: usize) {
        self.step_bytes.store(step_bytes(self.bytes_max(), threads), Ordering::Relaxed);
    }

    /// How many bytes there are in all.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// How many are booked, in steps.
    pub fn booked_bytes(&self) -> u64 {
        self.booked_bytes.0.load(Ordering::Relaxed)
    }

    /// How often somebody got none.
    pub fn shortages(&self) -> u64 {
        self.shortages.load(Ordering::Relaxed)
    }

    fn step_bytes(&self) -> u64 {
        self.step_bytes.load(Ordering::Relaxed)
    }

    /// Books `bytes`, unless there are fewer left.
    fn book(&self, bytes: u64) -> bool {
        let max = self.bytes_max();
        let fits = |booked: u64| booked.checked_add(bytes).filter(|sum| *sum <= max);
        self.booked_bytes.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.booked_bytes.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What a thread books at a time.
fn step_bytes(bytes_max: u64, threads: usize) -> u64 {
    let step_bytes = bytes_max / (STEPS_A_THREAD * threads.max(1) as u64);
    step_bytes.clamp(STEP_BYTES_MIN, STEP_BYTES_MAX)
}

/// What is kept for later and can be given up.
pub(crate) trait Kept {
    /// Gives it up: what was booked for it goes back to the account.
    fn give_up(&self);
}

/// One thread's account with the budget.
#[derive(Clone)]
pub struct Account(Rc<Ledger>);

struct Ledger {
    budget: Arc<Budget>,
    /// Booked, and not in use.
    free_bytes: Cell<u64>,
    /// What of it is in use, kept for later, and given up where it runs short.
    kept: RefCell<Vec<Weak<dyn Kept>>>,
    shortages_seen: Cell<u64>,
}

/// Bytes that are booked for as long as this lives.
#[derive(Debug)]
pub struct Booking {
    account: Account,
    bytes: u64,
}

impl Account {
    /// An account with `budget`.
    pub fn new(budget: Arc<Budget>) -> Account {
        let shortages_seen = Cell::new(budget.shortages());
        Account(Rc::new(Ledger {
            budget,
            free_bytes: Cell::new(0),
            kept: RefCell::default(),
            shortages_seen,
        }))
    }

    /// An account with a budget of its own that is never used up.
    pub fn unlimited() -> Account {
        Account::new(Arc::new(Budget::new(u64::MAX, 1)))
    }

    /// Books `bytes`; where there are too few, what is kept is given up first. `None`: there are still too few.
    pub fn book(&self, bytes: u64) -> Option<Booking> {
        self.take(bytes).then(|| Booking { account: self.clone(), bytes })
    }

    /// The same for somebody who can wait: nothing that is kept is given up for it, and nobody hears of a shortage.
    pub fn book_if_free(&self, bytes: u64) -> Option<Booking> {
        self.take_if_free(bytes).then(|| Booking { account: self.clone(), bytes })
    }

    /// Gives back what is not in use: all of it where somebody found none since the last time or the budget has
    /// become smaller than what is booked, else down to a whole step. Call it now and then.
    pub fn settle(&self) {
        let Ledger { budget, free_bytes, shortages_seen, .. } = &*self.0;
        let shortages = budget.shortages();
        let is_short = shortages_seen.replace(shortages) != shortages;
        if is_short || budget.booked_bytes() > budget.bytes_max() {
            self.give_up_kept();
            budget.give_back(free_bytes.take());
            return;
        }
        let free = free_bytes.get();
        let left = free % budget.step_bytes();
        budget.give_back(free - left);
        free_bytes.set(left);
    }

    /// Whether somebody found none since the last [`Account::settle`].
    pub fn is_short(&self) -> bool {
        self.0.budget.shortages() != self.0.shortages_seen.get()
    }

    pub(crate) fn keeps(&self, kept: Weak<dyn Kept>) {
        self.0.kept.borrow_mut().push(kept);
    }

    /// Takes `bytes` into use; where there are too few, what is kept is given up first.
    #[inline]
    pub(crate) fn take(&self, bytes: u64) -> bool {
        self.take_if_free(bytes) || self.take_from_kept(bytes)
    }

    /// The same, and nothing is given up for it.
    #[inline]
    pub(crate) fn take_if_free(&self, bytes: u64) -> bool {
        let free = self.0.free_bytes.get();
        if bytes <= free {
            self.0.free_bytes.set(free - bytes);
            return true;
        }
        self.take_from_budget(bytes)
    }

    /// Takes them out of use.
    #[inline]
    pub(crate) fn put_back(&self, bytes: u64) {
        let Ledger { budget, free_bytes, .. } = &*self.0;
        let free = free_bytes.get() + bytes;
        free_bytes.set(free);
        let step_bytes = budget.step_bytes();
        if free > 2 * step_bytes {
            // One step stays: who takes and puts back by turns must not come to the budget each time.
            budget.give_back(free - step_bytes);
            free_bytes.set(step_bytes);
        }
    }

    #[cold]
    fn take_from_budget(&self, bytes: u64) -> bool {
        let Ledger { budget, free_bytes, .. } = &*self.0;
        let missing = bytes - free_bytes.get();
        let steps = missing.div_ceil(budget.step_bytes()).saturating_mul(budget.step_bytes());
        for booked in [steps, missing] {
            if budget.book(booked) {
                free_bytes.set(free_bytes.get() + booked - bytes);
                return true;
            }
        }
        false
    }

    #[cold]
    fn take_from_kept(&self, bytes: u64) -> bool {
        self.give_up_kept();
        let is_taken = self.take_if_free(bytes);
        if !is_taken {
            self.0.budget.shortages.fetch_add(1, Ordering::Relaxed);
        }
        is_taken
    }

    fn give_up_kept(&self) {
        let mut kept = self.0.kept.borrow_mut();
        kept.retain(|kept| kept.upgrade().inspect(|kept| kept.give_up()).is_some());
    }
}

/// The account ends with its thread.
impl Drop for Ledger {
    fn drop(&mut self) {
        self.budget.give_back(self.free_bytes.get());
    }
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("free_bytes", &self.0.free_bytes.get()).finish_non_exhaustive()
    }
}

impl Booking {
    /// Books so many bytes more. False where there are too few: what was booked stays so.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let is_taken = self.account.take(bytes);
        self.bytes += if is_taken { bytes } else { 0 };
        is_taken
    }

    /// How many bytes are booked.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Booking {
    fn drop(&mut self) {
        self.account.put_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    #[test]
    fn two_accounts_never_have_more_than_the_budget() {
        let budget = Arc::new(Budget::new(1000 * KIB, 1));
        let (one, other) = (Account::new(budget.clone()), Account::new(budget.clone()));
        let first = one.book(600 * KIB).expect("there is enough");
        assert!(budget.booked_bytes() >= 600 * KIB);
        assert!(other.book(500 * KIB).is_none());
        assert_eq!(budget.shortages(), 1);
        let second = other.book(300 * KIB).expect("there is enough");
        assert!(budget.booked_bytes() <= 1000 * KIB);
        drop(first);
        let third = other.book(600 * KIB).expect("it came back");
        drop((second, third));
        one.settle();
        other.settle();
        assert_eq!(budget.booked_bytes(), 0, "nothing is in use, and somebody looked for more");
    }

    #[test]
    fn the_last_byte_can_be_booked_and_no_other() {
        let budget = Arc::new(Budget::new(100 * KIB, 1));
        let (one, other) = (Account::new(budget.clone()), Account::new(budget.clone()));
        let all: Vec<_> = (0..100).map(|_| one.book(KIB).expect("one of a hundred")).collect();
        assert!(one.book(1).is_none() && other.book(1).is_none());
        assert_eq!(budget.booked_bytes(), 100 * KIB);
        drop(all);
        one.settle();
        assert!(other.book(100 * KIB).is_some());
    }

    #[test]
    fn a_booking_grows_by_what_there_is() {
        let account = Account::new(Arc::new(Budget::new(100 * KIB, 1)));
        let mut booking = account.book(60 * KIB).expect("there is enough");
        assert!(booking.grow(30 * KIB) && !booking.grow(11 * KIB));
        assert_eq!(booking.bytes(), 90 * KIB);
        drop(booking);
        assert!(account.book(100 * KIB).is_some());
    }

    #[test]
    fn who_takes_by_turns_comes_to_the_budget_once() {
        let budget = Arc::new(Budget::new(1024 * 1024 * KIB, 1));
        let account = Account::new(budget.clone());
        drop(account.book(48 * KIB));
        let booked = budget.booked_bytes();
        assert_eq!(booked, STEP_BYTES_MAX);
        for _ in 0..100 {
            let both = (account.book(900 * KIB), account.book(50 * KIB));
            assert!(both.0.is_some() && both.1.is_some());
            assert_eq!(budget.booked_bytes(), booked);
        }
        drop(account.book(20 * STEP_BYTES_MAX));
        assert_eq!(budget.booked_bytes(), STEP_BYTES_MAX, "a step is kept, not all of them");
        account.settle();
        assert_eq!(budget.booked_bytes(), 0);
    }

    #[test]
    fn a_lower_maximum_holds_for_what_comes() {
        let budget = Arc::new(Budget::new(1000 * KIB, 1));
        let account = Account::new(budget.clone());
        let held = account.book(800 * KIB).expect("there is enough");
        budget.set_bytes_max(500 * KIB);
        account.settle();
        assert_eq!(budget.booked_bytes(), 800 * KIB, "what is free goes back, what is in use stays");
        assert!(account.book(1).is_none());
        drop(held);
        account.settle();
        assert!(account.book(300 * KIB).is_some());
    }

    #[test]
    fn an_account_that_ends_leaves_nothing_booked() {
        let budget = Arc::new(Budget::new(1000 * KIB, 1));
        drop(Account::new(budget.clone()).book(10 * KIB));
        assert_eq!(budget.booked_bytes(), 0);
    }
}
