//! The header line `Date`, written once a second.

use std::cell::Cell;

use crate::timestamp::{MONTHS, SECOND_MAX, date, digits};

/// The line `Date` of one thread's answers, as RFC 9110 section 5.6.7 writes times, with its CRLF.
#[derive(Debug)]
pub struct DateLine {
    second: Cell<u64>,
    line: Cell<[u8; LENGTH]>,
}

/// As in `Date: Sat, 21 Nov 2026 02:17:54 GMT`, and the CRLF.
const LENGTH: usize = 37;

impl DateLine {
    /// The line at so many microseconds since 1970-01-01T00:00:00Z.
    pub fn at(unix_us: u64) -> DateLine {
        let second = second(unix_us);
        DateLine { second: Cell::new(second), line: Cell::new(written(second)) }
    }

    /// The wall's time is so many microseconds since 1970 now. Costs a division where the second is the same.
    pub fn set_time(&self, unix_us: u64) {
        let second = second(unix_us);
        if second != self.second.replace(second) {
            self.line.set(written(second));
        }
    }

    /// The line at the time that was set last.
    #[inline]
    pub fn line(&self) -> [u8; LENGTH] {
        self.line.get()
    }
}

fn second(unix_us: u64) -> u64 {
    (unix_us / 1_000_000).min(SECOND_MAX)
}

fn written(second: u64) -> [u8; LENGTH] {
    /// 1970-01-01 was a Thursday.
    const WEEKDAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
    let days = second / 86_400;
    let (year, month, day) = date(days);
    let in_day = second % 86_400;
    let mut line = *b"Date: Thu, 00 Jan 0000 00:00:00 GMT\r\n";
    line[6..9].copy_from_slice(WEEKDAYS[(days % 7) as usize]);
    digits(&mut line[11..13], day);
    line[14..17].copy_from_slice(MONTHS[month as usize - 1]);
    digits(&mut line[18..22], year);
    digits(&mut line[23..25], in_day / 3_600);
    digits(&mut line[26..28], in_day / 60 % 60);
    digits(&mut line[29..31], in_day % 60);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(second: u64, expected: &str) {
        let line = DateLine::at(second * 1_000_000).line();
        assert_eq!(std::str::from_utf8(&line), Ok(format!("Date: {expected}\r\n").as_str()));
    }

    #[test]
    fn known_dates() {
        check(0, "Thu, 01 Jan 1970 00:00:00 GMT");
        // The example of RFC 9110.
        check(784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT");
        check(951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT");
        check(1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT");
        check(1_795_227_474, "Sat, 21 Nov 2026 02:17:54 GMT");
        check(253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT");
        check(253_402_300_800, "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn the_line_follows_the_clock_both_ways() {
        let line = DateLine::at(5_999_999);
        line.set_time(6_000_000);
        assert_eq!(line.line(), *b"Date: Thu, 01 Jan 1970 00:00:06 GMT\r\n");
        line.set_time(4_000_000);
        assert_eq!(line.line(), *b"Date: Thu, 01 Jan 1970 00:00:04 GMT\r\n");
    }
}
