//! What ends load before its time.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::now_ns;

/// Rings once, and all who hear it stop what they do.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    has_rung: Mutex<bool>,
    rings: Condvar,
}

impl Bell {
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
