//! Time since the start, in whole units.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::event_loop;

/// A monotonic clock that counts from when it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_us: u64,
}

/// Microseconds since this was first asked.
pub(crate) fn process_us() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_micros() as u64
}

impl Clock {
    /// Starts at 0 now.
    pub fn start() -> Clock {
        Clock { start_us: process_us() }
    }

    /// Microseconds since the start.
    pub fn now_us(&self) -> u64 {
        process_us() - self.start_us
    }

    /// Microseconds from the start to when this round of the thread's event loop began, which is when the
    /// kernel said what is ready. Costs no look at the clock; late by what the thread has done since.
    pub fn round_us(&self) -> u64 {
        event_loop::round_us().saturating_sub(self.start_us)
    }

    /// Microseconds since 1970, as the wall's clock says now.
    pub fn unix_us(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
    }
}
