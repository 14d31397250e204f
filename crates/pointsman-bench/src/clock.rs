//! The time of this machine since it started, in nanoseconds: what timers of the kernel count by, too.

use rustix::time::{ClockId, Timespec, clock_gettime};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// The monotonic clock.
#[inline]
pub fn now_ns() -> u64 {
    whole_ns(clock_gettime(ClockId::Monotonic))
}

/// CPU time of this thread.
pub fn thread_cpu_ns() -> u64 {
    whole_ns(clock_gettime(ClockId::ThreadCPUTime))
}

/// CPU time of all threads of this process, those that have ended included.
pub fn process_cpu_ns() -> u64 {
    whole_ns(clock_gettime(ClockId::ProcessCPUTime))
}

/// Neither clock is ever negative.
fn whole_ns(time: Timespec) -> u64 {
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}
