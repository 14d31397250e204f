//! Which objects and arrays are open, a bit for each.

/// Objects and arrays within each other, up to a depth.
#[derive(Debug)]
pub(super) struct Nest {
    depth: u32,
    depth_max: u32,
    /// The innermost ones, at most 64, the last one lowest. Objects are 1.
    inner: u64,
    /// Those around them, 64 a number.
    outer: Vec<u64>,
}

impl Nest {
    pub(super) fn new(depth_max: u32) -> Nest {
        Nest { depth: 0, depth_max, inner: 0, outer: Vec::new() }
    }

    #[inline]
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether the innermost one is an object.
    #[inline]
    pub(super) fn is_object(&self) -> bool {
        self.inner & 1 == 1
    }

    /// Whether one more is within the limit.
    #[inline]
    pub(super) fn open(&mut self, is_object: bool) -> bool {
        if self.depth >= self.depth_max {
            return false;
        }
        if self.depth.is_multiple_of(u64::BITS) && self.depth > 0 {
            self.outer.push(self.inner);
        }
        self.inner = self.inner << 1 | u64::from(is_object);
        self.depth += 1;
        true
    }

    #[inline]
    pub(super) fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.inner >>= 1;
        if self.depth.is_multiple_of(u64::BITS) {
            self.inner = self.outer.pop().unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_back_in_reverse() {
        let is_object = |place: u32| place.is_multiple_of(3) || place.is_multiple_of(7);
        let mut nest = Nest::new(1000);
        for depth in [1, 2, 63, 64, 65, 127, 128, 129, 500, 1000] {
            for place in 0..depth {
                assert!(nest.open(is_object(place)), "{place}");
                assert_eq!(nest.is_object(), is_object(place), "{place}");
            }
            assert_eq!((nest.depth(), nest.open(true)), (depth, depth < 1000));
            nest.close();
            for place in (0..nest.depth()).rev() {
                assert_eq!(nest.is_object(), is_object(place), "{place} of {depth}");
                nest.close();
            }
            assert_eq!(nest.depth(), 0);
        }
        assert!(nest.outer.is_empty() && !Nest::new(0).open(true));
    }
}
