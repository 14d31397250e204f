//! Buffers of a thread, handed out and taken back, so that an idle connection holds none.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// Buffers of one size for one thread.
#[derive(Clone, Debug)]
pub struct BufferPool {
    shelf: Rc<RefCell<Vec<Vec<u8>>>>,
    bytes: usize,
    kept_max: usize,
}

impl BufferPool {
    /// Buffers of `bytes`, of which at most `kept_max` are kept while nobody uses them.
    pub fn new(bytes: usize, kept_max: usize) -> BufferPool {
        BufferPool { shelf: Rc::default(), bytes, kept_max }
    }

    /// An empty buffer. It goes back when it is dropped.
    pub fn take(&self) -> PooledBuffer {
        let mut buffer = PooledBuffer { bytes: Vec::new(), pool: self.clone() };
        buffer.refill();
        buffer
    }
}

/// A buffer on loan from its pool.
#[derive(Debug)]
pub struct PooledBuffer {
    bytes: Vec<u8>,
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
    /// Gives the room back early. The buffer is empty then; [`PooledBuffer::refill`] comes before the next read.
    pub fn release(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        let mut shelf = self.pool.shelf.borrow_mut();
        // A buffer that had to grow is let go, or one large head would be paid for until the end; one that
        // is too small would cost whoever gets it several reads.
        let is_usual = (self.pool.bytes..=2 * self.pool.bytes).contains(&bytes.capacity());
        if is_usual && shelf.len() < self.pool.kept_max {
            bytes.clear();
            shelf.push(bytes);
        }
    }

    /// Makes sure that there is room, after [`PooledBuffer::release`].
    pub fn refill(&mut self) {
        if self.bytes.capacity() == 0 {
            let shelved = self.pool.shelf.borrow_mut().pop();
            self.bytes = shelved.unwrap_or_else(|| Vec::with_capacity(self.pool.bytes));
        }
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_empty_unless_it_grew() {
        let pool = BufferPool::new(16, 2);
        let mut first = pool.take();
        first.extend_from_slice(b"left over");
        let at = first.as_ptr();
        drop(first);
        let mut again = pool.take();
        assert!(again.is_empty());
        assert_eq!(again.as_ptr(), at);
        again.extend_from_slice(&[0; 1024]);
        drop(again);
        let mut other = pool.take();
        assert_eq!(other.capacity(), 16);
        other.push(1);
        other.release();
        assert_eq!((other.len(), other.capacity()), (0, 0));
        other.refill();
        assert_eq!((other.len(), other.capacity()), (0, 16));
        other.release();
        other.push(1);
        drop(other);
        assert_eq!(pool.take().capacity(), 16, "a small buffer is not kept");
    }
}
