//! Figures for people: as many digits as tell something, and a unit.

/// How often a second.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        0.0 => "0".to_owned(),
        rate if rate < 0.05 => "<0.1".to_owned(),
        rate if rate < 99.95 => format!("{rate:.1}"),
        rate => count(rate),
    }
}

/// How many.
pub(crate) fn count(count: f64) -> String {
    let steps = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e5, "k")];
    match steps.into_iter().find(|(least, _)| count >= *least) {
        // From 100 000 on, so that five digits are said in full.
        Some((least, "k")) => format!("{:.1}k", count / (least / 100.0)),
        Some((least, unit)) => format!("{:.1}{unit}", count / least),
        None => format!("{count:.0}"),
    }
}

/// How many bytes a second.
pub(crate) fn bytes_per_s(bytes: f64) -> String {
    let steps = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match steps.into_iter().find(|(least, _)| bytes >= *least) {
        Some((least, unit)) => format!("{:.1} {unit}/s", bytes / least),
        None => format!("{bytes:.0} B/s"),
    }
}

/// How long a request took.
pub(crate) fn duration(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(seconds) if seconds < 0.001 => format!("{:.0} us", seconds * 1e6),
        Some(seconds) if seconds < 0.1 => format!("{:.1} ms", seconds * 1e3),
        Some(seconds) if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.1} s"),
    }
}

/// How long the switch has run.
pub(crate) fn age(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => format!("{s:.0} s"),
        s if s < 3600.0 => format!("{:.0} min", (s / 60.0).floor()),
        s if s < 86_400.0 => format!("{:.0} h {:.0} min", (s / 3600.0).floor(), (s % 3600.0 / 60.0).floor()),
        s => format!("{:.0} d {:.0} h", (s / 86_400.0).floor(), (s % 86_400.0 / 3600.0).floor()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_few_digits() {
        let check = |said: &[String], expected: &[&str]| assert_eq!(said, expected);
        check(
            &[0.0, 0.01, 0.5, 99.9, 100.4, 12_345.0].map(rate),
            &["0", "<0.1", "0.5", "99.9", "100", "12345"],
        );
        check(
            &[0.0, 99_999.0, 123_456.0, 2.5e6, 3e9, 4e12].map(count),
            &["0", "99999", "123.5k", "2.5M", "3.0G", "4.0T"],
        );
        check(
            &[0.0, 999.0, 1500.0, 2.5e6, 3e9].map(bytes_per_s),
            &["0 B/s", "999 B/s", "1.5 kB/s", "2.5 MB/s", "3.0 GB/s"],
        );
        let times = [None, Some(0.000_064), Some(0.0021), Some(0.5), Some(2.0)];
        check(&times.map(duration), &["-", "64 us", "2.1 ms", "500 ms", "2.0 s"]);
        check(&[3.0, 119.0, 7_300.0, 200_000.0].map(age), &["3 s", "1 min", "2 h 1 min", "2 d 7 h"]);
    }
}
