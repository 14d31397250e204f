//! Wall-clock times of log lines, from monotonic ones, as RFC 3339 or the Common Log Format write them.

/// Two readings of the same moment, which tie the monotonic clock to the wall's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallBase {
    /// Microseconds since 1970-01-01T00:00:00Z.
    pub unix_us: u64,
    /// Microseconds on the scale of the event loops.
    pub monotonic_us: u64,
}

impl WallBase {
    /// The wall's time at a monotonic time, which may lie before the base.
    pub(crate) fn unix_us(self, now_us: u64) -> u64 {
        match now_us.checked_sub(self.monotonic_us) {
            Some(later) => self.unix_us.saturating_add(later),
            None => self.unix_us.saturating_sub(self.monotonic_us - now_us),
        }
    }
}

/// Writes times, and remembers the last second: most lines share it with the line before.
#[derive(Debug)]
pub(crate) struct Timestamps {
    base: WallBase,
    form: TimeForm,
    second: u64,
    text: [u8; LENGTH_MAX],
}

/// How a time is written, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeForm {
    /// As in `2026-11-21T02:17:54.123Z` (RFC 3339).
    Rfc3339,
    /// As in `21/Nov/2026:02:17:54 +0000`, in the Common Log Format.
    CommonLog,
}

impl TimeForm {
    fn pattern(self) -> &'static [u8] {
        match self {
            TimeForm::Rfc3339 => b"0000-00-00T00:00:00.000Z",
            TimeForm::CommonLog => b"00/Jan/0000:00:00:00 +0000",
        }
    }
}

/// A time of the wall as RFC 3339 writes it: microseconds since 1970-01-01T00:00:00Z.
pub fn rfc3339(unix_us: u64) -> String {
    let mut timestamps = Timestamps::new(WallBase { unix_us, monotonic_us: 0 }, TimeForm::Rfc3339);
    String::from_utf8_lossy(timestamps.at(0)).into_owned()
}

/// Of the longest form.
const LENGTH_MAX: usize = 26;

/// As dates in HTTP and in logs name them.
pub(crate) const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// 9999-12-31T23:59:59Z: the form has four digits for the year.
pub(crate) const SECOND_MAX: u64 = 253_402_300_799;

impl Timestamps {
    pub(crate) fn new(base: WallBase, form: TimeForm) -> Timestamps {
        let mut timestamps = Timestamps { base, form, second: 0, text: [0; LENGTH_MAX] };
        let pattern = form.pattern();
        timestamps.text[..pattern.len()].copy_from_slice(pattern);
        timestamps.write_second(0);
        timestamps
    }

    /// Ties the clocks anew.
    pub(crate) fn set_base(&mut self, base: WallBase) {
        self.base = base;
    }

    /// The wall's time at a monotonic time.
    pub(crate) fn at(&mut self, now_us: u64) -> &[u8] {
        let unix_us = self.base.unix_us(now_us);
        let second = (unix_us / 1_000_000).min(SECOND_MAX);
        if second != self.second {
            self.write_second(second);
        }
        if self.form == TimeForm::Rfc3339 {
            digits(&mut self.text[20..23], unix_us / 1_000 % 1_000);
        }
        &self.text[..self.form.pattern().len()]
    }

    fn write_second(&mut self, second: u64) {
        self.second = second;
        let (year, month, day) = date(second / 86_400);
        let time = match self.form {
            TimeForm::Rfc3339 => {
                digits(&mut self.text[0..4], year);
                digits(&mut self.text[5..7], month);
                digits(&mut self.text[8..10], day);
                11
            }
            TimeForm::CommonLog => {
                digits(&mut self.text[0..2], day);
                self.text[3..6].copy_from_slice(MONTHS[month as usize - 1]);
                digits(&mut self.text[7..11], year);
                12
            }
        };
        let in_day = second % 86_400;
        digits(&mut self.text[time..time + 2], in_day / 3_600);
        digits(&mut self.text[time + 3..time + 5], in_day / 60 % 60);
        digits(&mut self.text[time + 6..time + 8], in_day % 60);
    }
}

/// The last digits of a number, with leading zeros.
pub(crate) fn digits(out: &mut [u8], mut number: u64) {
    for place in out.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Year, month and day of a count of days since 1970-01-01, in the Gregorian calendar.
///
/// The year is counted from March, so that the leap day is its last, in eras of 400 years, which all have
/// the same length. The method is Howard Hinnant's `civil_from_days`.
pub(crate) fn date(days: u64) -> (u64, u64, u64) {
    const ERA_DAYS: u64 = 146_097;
    /// From 0000-03-01 to 1970-01-01.
    const TO_1970: u64 = 719_468;
    let days = days + TO_1970;
    let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March have 31, 30, 31, 30, 31 days, twice over: 153 days in five.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(unix_ms: u64, expected: &str) {
        let mut timestamps = Timestamps::new(WallBase { unix_us: 0, monotonic_us: 0 }, TimeForm::Rfc3339);
        assert_eq!(std::str::from_utf8(timestamps.at(unix_ms * 1_000)), Ok(expected));
    }

    #[test]
    fn known_dates() {
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_399_999, "2000-02-28T23:59:59.999Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(951_868_800_000, "2000-03-01T00:00:00.000Z");
        check(1_000_000_000_000, "2001-09-09T01:46:40.000Z");
        check(1_735_689_599_001, "2024-12-31T23:59:59.001Z");
        check(1_795_227_474_123, "2026-11-21T02:17:54.123Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
        check(253_402_300_799_000, "9999-12-31T23:59:59.000Z");
        check(253_402_300_800_000, "9999-12-31T23:59:59.000Z");
    }

    #[test]
    fn known_dates_of_the_common_log_format() {
        let base = WallBase { unix_us: 0, monotonic_us: 0 };
        let mut timestamps = Timestamps::new(base, TimeForm::CommonLog);
        for (unix_s, expected) in [
            (0, "01/Jan/1970:00:00:00 +0000"),
            (951_782_400, "29/Feb/2000:00:00:00 +0000"),
            (971_211_336, "10/Oct/2000:20:55:36 +0000"),
            (1_735_689_599, "31/Dec/2024:23:59:59 +0000"),
        ] {
            assert_eq!(std::str::from_utf8(timestamps.at(unix_s * 1_000_000)), Ok(expected));
        }
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let (mut year, mut month, mut day) = date(0);
        for days in 1..146_097 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (_, last) if last == length => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
            assert_eq!(date(days), (year, month, day));
        }
    }

    #[test]
    fn the_base_ties_both_clocks() {
        let base = WallBase { unix_us: 1_795_227_474_123_000, monotonic_us: 5_000_000 };
        let mut timestamps = Timestamps::new(base, TimeForm::Rfc3339);
        assert_eq!(timestamps.at(5_000_000), b"2026-11-21T02:17:54.123Z");
        assert_eq!(timestamps.at(5_001_999), b"2026-11-21T02:17:54.124Z");
        assert_eq!(timestamps.at(4_000_000), b"2026-11-21T02:17:53.123Z");
        assert_eq!(timestamps.at(6_000_000), b"2026-11-21T02:17:55.123Z");
    }
}
