//! Takes a part of a core, so that a server has a slower one, whatever it does with its threads.
//!
//! In each millisecond it computes for its part and sleeps for the rest, before everybody else on the core (`SCHED_FIFO`): what
//! is left to a server does not hang on how many threads it has, as it would among equals.

use std::path::Path;
use std::time::{Duration, Instant};

use pointsman_bench::{Time, ticks_per_second};

use super::SERVER_CORE;
use crate::failure::{Because, Failure, Result};
use crate::peers::{Child, Place, Precedence};

/// Short beside all times that are measured.
const PERIOD: Duration = Duration::from_millis(1);
/// It ends by itself when nobody ends it.
const LONGEST: Duration = Duration::from_secs(4 * 3600);
const READY: &str = "throttling";

/// The process that does so; dropping it ends it.
pub(super) struct Throttle(Option<Running>);

struct Running {
    child: Child,
    since: Instant,
    before: Time,
}

impl Throttle {
    /// Leaves so many hundredths of the servers' core to them.
    pub(super) fn start(share_percent: u32, folder: &Path) -> Result<Self> {
        if share_percent == 100 {
            return Ok(Self(None));
        }
        let own = std::env::current_exe().because(|| "cannot find my own binary".into())?;
        let words = ["throttle".into(), share_percent.to_string().into()];
        let place = Place { cores: &[SERVER_CORE], precedence: Precedence::First };
        let mut child = Child::start("the throttle", place, &own, &words, &folder.join("throttle.log"))?;
        let started = child.wait_for_log(|said| said.contains(READY).then_some(()));
        started.map_err(|failure| {
            Failure::new(format!(
                "{failure}\nhelp: as root, or with `--share 100` and a core for each server"
            ))
        })?;
        let before = Time::of_trees(&[child.id()]).because(|| "cannot look at the throttle".into())?;
        Ok(Self(Some(Running { child, since: Instant::now(), before })))
    }

    /// What of the core it has left to others, from 0 to 1.
    pub(super) fn left(mut self) -> Result<f64> {
        let Some(running) = &mut self.0 else { return Ok(1.0) };
        running.child.expect_running()?;
        let now = Time::of_trees(&[running.child.id()]).because(|| "cannot look at the throttle".into())?;
        let spent = now.since(&running.before, ticks_per_second());
        Ok(1.0 - (spent.user + spent.system) / running.since.elapsed().as_secs_f64())
    }
}

/// The process itself.
pub(crate) fn run(mut arguments: lexopt::Parser) -> Result<()> {
    use lexopt::ValueExt;
    let share_percent: u32 = arguments.value()?.parse()?;
    if let Some(more) = arguments.next()? {
        return Err(more.unexpected().into());
    }
    if !(1..=99).contains(&share_percent) {
        return Err(Failure::usage("from 1 to 99 hundredths of a core can be left"));
    }
    let taken = PERIOD * (100 - share_percent) / 100;
    println!("{READY}");
    let started = Instant::now();
    let mut period = started;
    while started.elapsed() < LONGEST {
        while period.elapsed() < taken {
            std::hint::spin_loop();
        }
        period += PERIOD;
        match period.checked_duration_since(Instant::now()) {
            Some(rest) => std::thread::sleep(rest),
            // Who was held up takes nothing later for it.
            None => period = Instant::now(),
        }
    }
    Ok(())
}
