//! Buffers of a thread, handed out and taken back, so that an idle connection holds none.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

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
}

impl BufferPool {
    /// Buffers of `bytes`, of which at most `kept_max` are kept while nobody uses them.
    pub fn new(bytes: usize, kept_max: usize) -> BufferPool {
        BufferPool(Rc::new(Shelf { buffers: RefCell::default(), bytes, kept_max }))
    }

    /// An empty buffer with room. It goes back when it is dropped.
    pub fn take(&self) -> PooledBuffer {
        let mut buffer = self.take_later();
        buffer.refill();
        buffer
    }

    /// An empty buffer that takes its room with the first read into it.
    pub fn take_later(&self) -> PooledBuffer {
        PooledBuffer { bytes: Vec::new(), pool: self.clone() }
    }
}

/// A buffer on loan from its pool. While it is empty and waits to be read into it holds no room.
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
    /// Gives the room back early. The buffer is empty then.
    pub fn release(&mut self) {
        if self.bytes.capacity() == 0 {
            return;
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        let shelf = &*self.pool.0;
        let mut buffers = shelf.buffers.borrow_mut();
        // A buffer that had to grow is let go, or one large head would be paid for until the end; one that
        // is too small would cost whoever gets it several reads.
        let is_usual = (shelf.bytes..=2 * shelf.bytes).contains(&bytes.capacity());
        if is_usual && buffers.len() < shelf.kept_max {
            bytes.clear();
            buffers.push(bytes);
        }
    }

    /// The same while nothing is in it.
    pub fn release_if_empty(&mut self) {
        if self.bytes.is_empty() {
            self.release();
        }
    }

    /// Makes sure that there is room to read into.
    #[inline]
    pub fn make_room(&mut self) {
        self.refill();
        if self.bytes.len() == self.bytes.capacity() {
            self.bytes.reserve(ROOM_BYTES_MIN);
        }
    }

    /// Makes sure that there is room, after [`PooledBuffer::release`].
    #[inline]
    pub fn refill(&mut self) {
        if self.bytes.capacity() == 0 {
            let shelf = &*self.pool.0;
            let shelved = shelf.buffers.borrow_mut().pop();
            self.bytes = shelved.unwrap_or_else(|| Vec::with_capacity(shelf.bytes));
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
