//! What ends load before its time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::Interrupt;
use crate::clock::now_ns;

/// Rings once, and all who hear it stop what they do.
#[derive(Debug)]
pub(crate) struct Bell {
    has_rung: Mutex<bool>,
    rings: Condvar,
    /// When nothing more is begun, by our clock: what is under way then is waited for.
    ends_ns: AtomicU64,
    interrupt: Interrupt,
}

impl Default for Bell {
    fn default() -> Bell {
        Bell::heard_with(Interrupt::default())
    }
}

impl Bell {
    /// One beside which this is heard, too, until load begins: whoever watches the load says then when it ends.
    pub(crate) fn heard_with(interrupt: Interrupt) -> Bell {
        Bell {
            has_rung: Mutex::new(false),
            rings: Condvar::new(),
            ends_ns: AtomicU64::new(u64::MAX),
            interrupt,
        }
    }

    /// From then on nothing more is begun: said before that time, so that all hear of it in theirs.
    pub(crate) fn end_at(&self, at_ns: u64) {
        self.ends_ns.fetch_min(at_ns, Ordering::Relaxed);
    }

    /// When nothing more is begun; the end of time where nobody has said.
    pub(crate) fn ends_ns(&self) -> u64 {
        self.ends_ns.load(Ordering::Relaxed)
    }

    /// Whether there will be no load at all: it has rung, or somebody wants no more of it.
    pub(crate) fn is_over(&self) -> bool {
        self.has_rung() || self.interrupt.has_come()
    }

    pub(crate) fn ring(&self) {
        *self.has_rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.rings.notify_all();
    }

    pub(crate) fn has_rung(&self) -> bool {
        *self.has_rung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until then, or until it rings: whether it has.
    pub(crate) fn wait_until(&self, until_ns: u64) -> bool {
        let mut has_rung = self.has_rung.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = now_ns();
            if *has_rung || now >= until_ns {
                return *has_rung;
            }
            let left = Duration::from_nanos(until_ns - now);
            has_rung = self.rings.wait_timeout(has_rung, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_hears_it() {
        let bell = Bell::default();
        assert!(!bell.wait_until(now_ns() + 1_000) && !bell.has_rung());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| bell.wait_until(u64::MAX));
            bell.ring();
            assert!(waits.join().expect("it ends"));
        });
        assert!(bell.has_rung() && bell.wait_until(0));
    }
}
