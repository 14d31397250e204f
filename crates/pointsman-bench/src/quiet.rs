//! Whether this machine has its cores to itself, as a thread sees it that wants one: what others of the host take is in no
//! account while nobody asks for it.

use std::time::{Duration, Instant};

use crate::Interrupt;
use crate::clock::now_ns;

/// How long it is looked.
const WINDOW: Duration = Duration::from_millis(100);
/// Between two looks at the clock there is more where the thread was off its core.
const GONE_NS: u64 = 100_000;
/// So much of the time may be gone: what makes no result amber for stolen time.
const GONE_SHARE_MAX: f64 = 0.01;
/// So many looks in a row are to say so.
const LOOKS: u32 = 3;
/// Between looks, so that a core is not kept busy for this alone.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits until the machine is quiet, and says how long that took; no longer than `longest`, or until somebody wants no more
/// of it.
pub(crate) fn wait_for_quiet(longest: Duration, interrupt: &Interrupt) -> Duration {
    let began = Instant::now();
    let mut quiet = 0;
    while quiet < LOOKS && began.elapsed() < longest && !interrupt.has_come() {
        let until = Instant::now() + WINDOW;
        let share = gone_share(std::iter::from_fn(|| (Instant::now() < until).then(now_ns)));
        quiet = if share <= GONE_SHARE_MAX { quiet + 1 } else { 0 };
        if quiet < LOOKS {
            std::thread::sleep(PAUSE);
        }
    }
    began.elapsed()
}

/// How much of the time between the first and the last look at a clock its reader was gone.
fn gone_share(looks: impl Iterator<Item = u64>) -> f64 {
    let (mut first, mut last, mut gone) = (None, None, 0);
    for now in looks {
        first.get_or_insert(now);
        let since = now - last.replace(now).unwrap_or(now);
        gone += if since > GONE_NS { since } else { 0 };
    }
    let all = last.zip(first).map_or(0, |(last, first): (u64, u64)| last - first);
    gone as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn who_was_gone_sees_it_by_the_clock() {
        let steady = (0..1_000).map(|at| at * 1_000);
        assert_eq!(gone_share(steady.clone()), 0.0);
        // A tenth of the time in one piece, and in none that anybody notices.
        let once = steady.clone().chain((0..1_000).map(|at| 1_200_000 + at * 1_000));
        let share = gone_share(once);
        assert!((0.09..0.11).contains(&share), "{share}");
        assert_eq!(gone_share((0..100).map(|at| at * 90_000)), 0.0);
        assert_eq!((gone_share(std::iter::empty()), gone_share(std::iter::once(7))), (0.0, 0.0));
    }

    #[test]
    fn it_is_waited_no_longer_than_somebody_wants() {
        let ended = Interrupt::by(Arc::new(AtomicBool::new(true)));
        let usual = Interrupt::default();
        assert!(wait_for_quiet(Duration::from_secs(600), &ended) < Duration::from_secs(60));
        assert!(wait_for_quiet(Duration::from_millis(300), &usual) < Duration::from_secs(60));
    }
}
