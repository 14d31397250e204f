//! Buffers of a thread, handed out and taken back, so that an idle connection holds none.
//!
//! Every buffer is booked in the thread's account, on loan or kept for later, so there are never more than the
//! budget allows. Whoever must be able to go on has a part booked already, and gets that part in any case.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::rc::{Rc, Weak};

use crate::budget::{Account, Kept};

/// Room that is made in a full buffer before more is read into it.
const ROOM_BYTES_MIN: usize = 4096;

/// Buffers of one size for one thread.
#[derive(Clone, Debug)]
pub struct BufferPool(Rc<Shelf>);

#[derive(Debug)]
struct Shelf {
    buffers: RefCell<Vec<Vec<u8>>>,
    bytes: usize,
    kept_max: usize,
    /// How many were there all the time since unused ones were last let go.
    unused: Cell<usize>,
    account: Account,
}

impl BufferPool {
    /// Buffers of `bytes`, of which at most `kept_max` are kept while nobody uses them. They are booked in
    /// `account`.
    pub fn new(bytes: usize, kept_max: usize, account: &Account) -> BufferPool {
        let account = account.clone();
        let shelf = Shelf { buffers: RefCell::default(), bytes, kept_max, unused: Cell::new(0), account };
        let pool = BufferPool(Rc::new(shelf));
        let kept: Weak<Shelf> = Rc::downgrade(&pool.0);
        pool.0.account.keeps(kept);
        pool
    }

    /// An empty buffer that takes its room with the first read into it, where there is some left to book.
    pub fn take_later(&self) -> PooledBuffer {
        self.take_covered(0)
    }

    /// The same for somebody who has booked `covered_bytes` of it already: so much room it gets in any case.
    pub fn take_covered(&self, covered_bytes: usize) -> PooledBuffer {
        PooledBuffer { bytes: Vec::new(), covered: covered_bytes, booked: 0, pool: self.clone() }
    }

    /// Lets go those that nobody wanted since this was last called. Call it now and then.
    pub fn let_go_unused(&self) {
        let shelf = &*self.0;
        let kept = shelf.buffers.borrow().len();
        let unused = shelf.unused.get().min(kept);
        shelf.let_go(kept - unused);
        shelf.unused.set(kept - unused);
    }
}

impl Shelf {
    /// Lets all go but so many.
    fn let_go(&self, kept: usize) {
        let mut buffers = self.buffers.borrow_mut();
        let first = kept.min(buffers.len());
        let gone: usize = buffers.drain(first..).map(|buffer| buffer.capacity()).sum();
        self.account.put_back(gone as u64);
    }

    /// One that is kept, of which `covered` bytes are booked by somebody else from now on.
    #[inline]
    fn pop(&self, covered: usize) -> Option<Vec<u8>> {
        let mut buffers = self.buffers.borrow_mut();
        let buffer = buffers.pop()?;
        self.unused.set(self.unused.get().min(buffers.len()));
        self.account.put_back(covered.min(buffer.capacity()) as u64);
        Some(buffer)
    }

    /// Keeps a buffer of which so much is booked, unless it is of another size, or there are enough, or the rest
    /// cannot be booked.
    #[inline]
    fn keep(&self, mut buffer: Vec<u8>, booked: usize) {
        // A buffer that had to grow is let go, or one large head would be paid for until the end; one that
        // is too small would cost whoever gets it several reads.
        let is_usual = (self.bytes..=2 * self.bytes).contains(&buffer.capacity());
        let mut buffers = self.buffers.borrow_mut();
        let missing = buffer.capacity() - booked;
        if is_usual && buffers.len() < self.kept_max && self.account.take_if_free(missing as u64) {
            buffer.clear();
            buffers.push(buffer);
        } else {
            self.account.put_back(booked as u64);
        }
    }
}

impl Kept for Shelf {
    fn give_up(&self) {
        self.let_go(0);
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        self.let_go(0);
    }
}

/// A buffer on loan from its pool. While it is empty and waits to be read into it holds no room.
#[derive(Debug)]
pub struct PooledBuffer {
    bytes: Vec<u8>,
    /// What of its room somebody else has booked.
    covered: usize,
    /// What of its room is booked for it.
    booked: usize,
    pool: BufferPool,
}

impl Deref for PooledBuffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for PooledBuffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl PooledBuffer {
    /// What is in it, with its room. It is empty then, and can be filled again.
    pub fn take(&mut self) -> PooledBuffer {
        let empty = self.pool.take_covered(self.covered);
        std::mem::replace(self, empty)
    }

    /// Gives the room back early. The buffer is empty then.
    pub fn release(&mut self) {
        if self.bytes.capacity() == 0 {
            return;
        }
        let bytes = std::mem::take(&mut self.bytes);
        let booked = std::mem::take(&mut self.booked);
        debug_assert!(booked + self.covered >= bytes.capacity(), "it grew unasked to {}", bytes.capacity());
        self.pool.0.keep(bytes, booked);
    }

    /// The same while nothing is in it.
    pub fn release_if_empty(&mut self) {
        if self.bytes.is_empty() {
            self.release();
        }
    }

    /// Makes sure that there is room to read into. False where none could be booked.
    #[inline]
    pub fn make_room(&mut self) -> bool {
        self.refill() && (self.bytes.len() < self.bytes.capacity() || self.grow(ROOM_BYTES_MIN))
    }

    /// Makes sure that there is room for `more_bytes`, which can be appended then. False where none could be
    /// booked.
    #[inline]
    pub fn reserve(&mut self, more_bytes: usize) -> bool {
        self.refill() && (self.bytes.capacity() - self.bytes.len() >= more_bytes || self.grow(more_bytes))
    }

    #[inline]
    fn refill(&mut self) -> bool {
        if self.bytes.capacity() > 0 {
            return true;
        }
        let shelf = &*self.pool.0;
        match shelf.pop(self.covered) {
            Some(buffer) => {
                self.booked = buffer.capacity().saturating_sub(self.covered);
                self.bytes = buffer;
                true
            }
            None => self.allocate(),
        }
    }

    #[cold]
    fn allocate(&mut self) -> bool {
        let shelf = &*self.pool.0;
        let uncovered = shelf.bytes.saturating_sub(self.covered);
        let bytes = match shelf.account.take(uncovered as u64) {
            true => shelf.bytes,
            false => self.covered,
        };
        self.bytes = Vec::with_capacity(bytes);
        self.booked = bytes.saturating_sub(self.covered);
        bytes > 0
    }

    /// Twice the room, or as much as is needed.
    #[cold]
    fn grow(&mut self, more_bytes: usize) -> bool {
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        let needed = length + more_bytes;
        for wanted in [needed.max(2 * capacity), needed] {
            let missing = wanted.saturating_sub(self.covered + self.booked);
            if self.pool.0.account.take(missing as u64) {
                self.booked += missing;
                self.bytes.reserve_exact(wanted - length);
                return true;
            }
        }
        false
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::budget::Budget;

    fn pool(bytes: usize, kept_max: usize) -> BufferPool {
        BufferPool::new(bytes, kept_max, &Account::unlimited())
    }

    fn taken(pool: &BufferPool) -> PooledBuffer {
        let mut buffer = pool.take_later();
        assert!(buffer.make_room());
        buffer
    }

    #[test]
    fn a_buffer_comes_back_empty_unless_it_grew() {
        let pool = pool(16, 2);
        let mut first = taken(&pool);
        first.extend_from_slice(b"left over");
        let at = first.as_ptr();
        drop(first);
        let mut again = taken(&pool);
        assert!(again.is_empty());
        assert_eq!(again.as_ptr(), at);
        assert!(again.reserve(1024));
        again.extend_from_slice(&[0; 1024]);
        drop(again);
        let mut other = taken(&pool);
        assert_eq!(other.capacity(), 16);
        other.push(1);
        other.release();
        assert_eq!((other.len(), other.capacity()), (0, 0));
        assert!(other.make_room());
        assert_eq!((other.len(), other.capacity()), (0, 16));
    }

    /// A budget of 400 KiB, which is booked in steps of 16, and pools of 16 and 64 KiB.
    struct Small {
        budget: Arc<Budget>,
        account: Account,
        heads: BufferPool,
        bodies: BufferPool,
    }

    const KIB: usize = 1024;

    impl Small {
        fn new() -> Small {
            let budget = Arc::new(Budget::new(400 * KIB as u64, 1));
            let account = Account::new(budget.clone());
            let heads = BufferPool::new(16 * KIB, 8, &account);
            let bodies = BufferPool::new(64 * KIB, 8, &account);
            Small { budget, account, heads, bodies }
        }

        fn in_use(&self) -> u64 {
            self.account.settle();
            self.budget.booked_bytes()
        }
    }

    #[test]
    fn every_buffer_is_booked_and_what_is_kept_is_given_up_first() {
        let small = Small::new();
        let all: Vec<_> = (0..25).map(|_| taken(&small.heads)).collect();
        assert!(!small.heads.take_later().make_room(), "there were 25 in 400 KiB");
        assert!(!small.bodies.take_later().make_room());
        drop(all);
        assert_eq!(small.budget.booked_bytes() / (16 * KIB as u64), 9, "8 are kept, and a step");
        let six: Vec<_> = (0..6).map(|_| taken(&small.bodies)).collect();
        assert_eq!(small.heads.0.buffers.borrow().len(), 0, "given up for the sixth");
        drop(six);
        assert_eq!(small.in_use(), 0, "somebody found none: nothing is kept");
    }

    #[test]
    fn what_is_covered_is_there_in_any_case() {
        let small = Small::new();
        let _all = small.account.book(400 * KIB as u64).expect("it is empty");
        let mut body = small.bodies.take_covered(16 * KIB);
        assert!(body.make_room());
        assert_eq!(body.capacity(), 16 * KIB, "less than the usual");
        body.extend_from_slice(&[7; 16 * KIB]);
        assert!(!body.make_room() && !body.reserve(1));
        assert_eq!(body.len(), 16 * KIB, "what it has it keeps");
        body.clear();
        assert!(body.make_room());
        assert_eq!(small.budget.booked_bytes(), 400 * KIB as u64);
    }

    #[test]
    fn what_is_covered_is_not_booked_twice() {
        let small = Small::new();
        let mut head = small.heads.take_covered(16 * KIB);
        assert!(head.make_room());
        assert_eq!(small.in_use(), 0);
        head.release();
        assert_eq!(small.in_use(), 16 * KIB as u64, "now nobody covers it");
        assert!(head.make_room());
        assert_eq!(small.in_use(), 0);
        assert!(head.reserve(20 * KIB));
        assert_eq!((head.capacity(), small.in_use()), (32 * KIB, 16 * KIB as u64));
        drop(head);
        assert_eq!(small.in_use(), 32 * KIB as u64, "it is kept as it is");
    }

    #[test]
    fn a_buffer_grows_by_what_there_is() {
        let small = Small::new();
        let mut head = taken(&small.heads);
        head.extend_from_slice(&[7; 16 * KIB]);
        let _rest = small.account.book(380 * KIB as u64).expect("there is so much");
        assert!(head.make_room());
        assert_eq!(head.capacity(), 20 * KIB, "not twice as much");
        head.extend_from_slice(&[7; 4 * KIB]);
        assert!(!head.make_room());
    }

    #[test]
    fn those_that_nobody_wants_are_let_go() {
        let small = Small::new();
        drop((0..8).map(|_| taken(&small.heads)).collect::<Vec<_>>());
        small.heads.let_go_unused();
        assert_eq!(small.heads.0.buffers.borrow().len(), 8, "they were used a moment ago");
        drop((taken(&small.heads), taken(&small.heads)));
        small.heads.let_go_unused();
        assert_eq!(small.heads.0.buffers.borrow().len(), 2);
        small.heads.let_go_unused();
        assert_eq!((small.heads.0.buffers.borrow().len(), small.in_use()), (0, 0));
    }
}
