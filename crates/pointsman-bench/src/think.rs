//! Times as people write them, and how long clients think.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::arrivals::exponential;

/// A year: nobody thinks longer, or measures.
const SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// How long a client waits behind an answer before it asks again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Think {
    /// Not at all.
    #[default]
    None,
    /// Always so long.
    Constant(Duration),
    /// So long in the mean; exponential.
    Exponential(Duration),
}

impl Think {
    /// How long this time, in nanoseconds.
    pub(crate) fn draw_ns(self, random: &mut fastrand::Rng) -> u64 {
        match self {
            Think::None => 0,
            Think::Constant(time) => time.as_nanos() as u64,
            Think::Exponential(mean) => exponential(random, mean.as_nanos() as f64) as u64,
        }
    }
}

impl FromStr for Think {
    type Err = String;

    /// `2s`, or `exp:2s` for two seconds in the mean.
    fn from_str(word: &str) -> Result<Think, String> {
        match word.strip_prefix("exp:") {
            Some(mean) => read_time(mean).map(Think::Exponential),
            None => read_time(word).map(Think::Constant),
        }
    }
}

/// Reads `500ms`, `10s`, `2m`, `1.5h`, or `10` for seconds.
///
/// # Errors
/// In words for people, when it is no time of at most a year.
pub fn read_time(word: &str) -> Result<Duration, String> {
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)];
    let read = |(unit, seconds): (&str, f64)| Some(word.strip_suffix(unit)?.parse::<f64>().ok()? * seconds);
    let seconds = units.into_iter().find_map(read).filter(|seconds| *seconds <= SECONDS_MAX);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("a time is a number with a unit such as `10s` or `500ms`, not `{word}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        for (word, ms) in [("500ms", 500), ("2", 2000), ("1.5s", 1500), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(read_time(word), Ok(Duration::from_millis(ms)));
        }
        for bad in ["", "s", "x", "-1s", "NaN", "inf", "1e300h", "400000h", "5 minutes"] {
            assert!(read_time(bad).is_err(), "{bad}");
        }
        assert_eq!("exp:20ms".parse(), Ok(Think::Exponential(Duration::from_millis(20))));
        assert!("exp:".parse::<Think>().is_err());
    }

    #[test]
    fn thinking_takes_so_long_in_the_mean() {
        let mut random = fastrand::Rng::with_seed(3);
        let second = Duration::from_secs(1);
        assert_eq!(Think::None.draw_ns(&mut random), 0);
        assert_eq!(Think::Constant(second).draw_ns(&mut random), 1_000_000_000);
        let all: u64 = (0..10_000).map(|_| Think::Exponential(second).draw_ns(&mut random)).sum();
        assert!((9_500_000_000_000..10_500_000_000_000).contains(&all), "{all}");
    }
}
