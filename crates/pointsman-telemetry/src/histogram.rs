//! Durations in buckets whose bounds double, found without a comparison.

use crate::slots::Counter;

/// The first bucket ends at 2^6 µs, 64 µs.
const FIRST_EXPONENT: u32 = 6;

/// The last finite bucket ends at 2^26 µs, 67 s.
const LAST_EXPONENT: u32 = 26;

/// Finite buckets, and one for all that is longer.
pub(crate) const BUCKETS: usize = (LAST_EXPONENT - FIRST_EXPONENT) as usize + 2;

/// Counts of durations by bucket, and the sum of all durations.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    pub(crate) buckets: [Counter; BUCKETS],
    pub(crate) sum_us: Counter,
}

impl Histogram {
    #[inline]
    pub(crate) fn add(&self, duration_us: u64) {
        self.buckets[bucket(duration_us)].add(1);
        self.sum_us.add(duration_us);
    }
}

/// The first bucket whose bound is not below the duration.
#[inline]
fn bucket(duration_us: u64) -> usize {
    let exponent = u64::BITS - duration_us.saturating_sub(1).leading_zeros();
    (exponent.clamp(FIRST_EXPONENT, LAST_EXPONENT + 1) - FIRST_EXPONENT) as usize
}

/// The upper bound of a bucket, or none for the last.
pub(crate) fn bound_us(bucket: usize) -> Option<u64> {
    (bucket < BUCKETS - 1).then(|| 1 << (FIRST_EXPONENT as usize + bucket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        for duration_us in (0..10_000).chain([1 << 20, (1 << 20) + 1, 1 << 26, (1 << 26) + 1, u64::MAX]) {
            let expected = (0..BUCKETS)
                .find(|&bucket| bound_us(bucket).is_none_or(|bound_us| duration_us <= bound_us))
                .unwrap();
            assert_eq!(bucket(duration_us), expected, "{duration_us} µs");
        }
    }

    #[test]
    fn bounds_reach_from_64_microseconds_to_a_minute() {
        assert_eq!(bound_us(0), Some(64));
        assert_eq!(bound_us(BUCKETS - 2), Some(67_108_864));
        assert_eq!(bound_us(BUCKETS - 1), None);
    }
}
