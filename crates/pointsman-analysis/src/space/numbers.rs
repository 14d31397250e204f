//! Numbers of which one fulfils claims if any does.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use pointsman_rules::{Decimal, Entry, Op, Order, Truth};

use super::claim::Claim;

/// Zeros that are written out to find a number beside another.
const ZEROS_MAX: usize = 500;

/// Ports and lengths that are seen every day.
const NICE: [u64; 5] = [80, 443, 8080, 50_000, 100];

/// Whole numbers of a range: nice ones first, then all at a bound. Between two bounds all are alike.
pub(super) fn integers(claims: &[Claim<'_>], range: RangeInclusive<u64>) -> Vec<u64> {
    let mut beside = BTreeSet::from([0, 1, 2, *range.end()]);
    for bound in bounds(claims) {
        let whole = whole_part(bound);
        beside.extend([whole.saturating_sub(1), whole, whole.saturating_add(1)]);
    }
    // No connection has the port 0.
    let has_zero = beside.remove(&0);
    let numbers = NICE.into_iter().chain(beside).chain(has_zero.then_some(0));
    numbers.filter(|number| range.contains(number)).collect()
}

/// The numbers as texts: each bound, and one beyond each. Nothing in the place of one that would be too long.
pub(super) fn texts(claims: &[Claim<'_>]) -> Vec<Option<String>> {
    let bounds = bounds(claims);
    let mut texts = Vec::with_capacity(2 * bounds.len() + 1);
    let mut below = None;
    for bound in bounds {
        texts.extend([between(below, Some(bound)), spelled(bound)]);
        below = Some(bound);
    }
    // Above the last bound first: amounts that are asked for are rather large than negative.
    texts.push(between(below, None));
    texts.reverse();
    texts
}

/// The claims that leave the least room, one from below and one from above: what a number outside of it fails. Only with
/// these, [`integers`] and [`texts`] are enough to say that no number fulfils all.
pub(super) fn narrowest<'p>(claims: &[Claim<'p>]) -> Vec<Claim<'p>> {
    let room = Room::of(claims);
    let ends = [room.low, room.high].into_iter().flatten();
    ends.filter_map(|(_, place)| claims.get(place).copied()).collect()
}

/// Between which bounds, themselves perhaps among it, numbers may be; each with the place of its claim.
#[derive(Default)]
struct Room<'p> {
    low: Option<(&'p Decimal, usize)>,
    high: Option<(&'p Decimal, usize)>,
}

impl<'p> Room<'p> {
    fn of(claims: &[Claim<'p>]) -> Room<'p> {
        let mut room = Room::default();
        for (place, claim) in claims.iter().enumerate() {
            let holds = match (claim.truths.has(Truth::True), claim.truths.has(Truth::False)) {
                (true, false) => true,
                (false, true) => false,
                _ => continue,
            };
            let (bound, is_low) = match (&claim.test.op, holds) {
                (Op::NumberOrder(Order::Greater | Order::GreaterOrEqual, bound), holds) => (bound, holds),
                (Op::NumberOrder(Order::Less | Order::LessOrEqual, bound), holds) => (bound, !holds),
                _ => continue,
            };
            if is_low && room.low.is_none_or(|(low, _)| low < bound) {
                room.low = Some((bound, place));
            } else if !is_low && room.high.is_none_or(|(high, _)| bound < high) {
                room.high = Some((bound, place));
            }
        }
        room
    }
}

/// The bounds that matter, in order: those in the room that some claims leave, or where they leave none, those from one
/// of its ends to the other.
fn bounds<'p>(claims: &[Claim<'p>]) -> Vec<&'p Decimal> {
    let mut bounds = all_bounds(claims);
    let room = Room::of(claims);
    let (mut low, mut high) = (room.low.map(|(low, _)| low), room.high.map(|(high, _)| high));
    if low.zip(high).is_some_and(|(low, high)| high < low) {
        std::mem::swap(&mut low, &mut high);
    }
    bounds.retain(|bound| low.is_none_or(|low| low <= *bound) && high.is_none_or(|high| *bound <= high));
    bounds.sort();
    bounds.dedup();
    bounds
}

/// Nothing where the text is too long to be a number.
fn spelled(number: &Decimal) -> Option<String> {
    Some(number.to_string()).filter(|text| text.parse().is_ok_and(|read: Decimal| read == *number))
}

fn all_bounds<'p>(claims: &[Claim<'p>]) -> Vec<&'p Decimal> {
    let mut bounds = Vec::new();
    for claim in claims {
        match &claim.test.op {
            Op::NumberEquals(number) | Op::NumberDiffers(number) | Op::NumberOrder(_, number) => {
                bounds.push(number);
            }
            Op::In(entries) => entries.iter().for_each(|entry| match entry {
                Entry::Number(number) => bounds.push(number),
                Entry::NumberRange { from, to, .. } => bounds.extend([from, to]),
                _ => {}
            }),
            _ => {}
        }
    }
    bounds
}

/// Without what stands behind the point; 0 of what is less, and the greatest of what is more.
fn whole_part(number: &Decimal) -> u64 {
    if *number < Decimal::from(0) {
        return 0;
    }
    let Some(plain) = Plain::of(number) else {
        return if *number > Decimal::from(u64::MAX) { u64::MAX } else { 0 };
    };
    match plain.whole.as_slice() {
        [] => 0,
        whole => std::str::from_utf8(whole).ok().and_then(|whole| whole.parse().ok()).unwrap_or(u64::MAX),
    }
}

/// A number between two others, as short as may be, with cents rather than tenths. None of `below` or `above`: there is
/// no bound on that side.
fn between(below: Option<&Decimal>, above: Option<&Decimal>) -> Option<String> {
    let zero = Decimal::from(0);
    let is_between = |number: &Decimal| {
        below.is_none_or(|below| below < number) && above.is_none_or(|above| number < above)
    };
    if is_between(&zero) {
        return Some("0".to_owned());
    }
    // All of them have one sign, and the bound that is nearer to zero is the one to go away from.
    let (near, sign) = match below {
        Some(below) if *below >= zero => (below, ""),
        _ => (above?, "-"),
    };
    let near = Plain::of(near)?;
    let far = if sign.is_empty() { above } else { below }.and_then(Plain::of);
    let places_max = near.fraction.len().max(far.map_or(0, |far| far.fraction.len())) + 1;
    [0, 2, 1].into_iter().chain(3..=places_max.max(3)).find_map(|places| {
        let text = format!("{sign}{}", near.stepped_up(places));
        Decimal::parse(text.as_bytes()).is_ok_and(|number| is_between(&number)).then_some(text)
    })
}

/// The digits of a number without its sign, all written out.
pub(super) struct Plain {
    /// None of a number below 1.
    pub(super) whole: Vec<u8>,
    pub(super) fraction: Vec<u8>,
}

impl Plain {
    /// Nothing where it would take too many zeros.
    pub(super) fn of(number: &Decimal) -> Option<Plain> {
        let text = number.to_string();
        let text = text.trim_start_matches('-');
        let (digits, exponent) = match text.split_once('e') {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let zeros = exponent.unsigned_abs() as usize;
        if zeros > ZEROS_MAX {
            return None;
        }
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let (mut whole, mut fraction) = (whole.as_bytes().to_vec(), fraction.as_bytes().to_vec());
        if exponent >= 0 {
            let moved = zeros.min(fraction.len());
            whole.extend(fraction.drain(..moved));
            whole.resize(whole.len() + zeros - moved, b'0');
        } else {
            let moved = whole.split_off(whole.len().saturating_sub(zeros));
            let missing = zeros - moved.len();
            fraction = [vec![b'0'; missing], moved, fraction].concat();
        }
        let leading = whole.iter().take_while(|digit| **digit == b'0').count();
        whole.drain(..leading);
        Some(Plain { whole, fraction })
    }

    /// Cut off behind so many places, and one more in the last of them: greater than before.
    fn stepped_up(&self, places: usize) -> String {
        let mut digits = self.whole.clone();
        digits.extend((0..places).map(|place| self.fraction.get(place).copied().unwrap_or(b'0')));
        let nines = digits.iter().rev().take_while(|digit| **digit == b'9').count();
        let kept = digits.len() - nines;
        digits.iter_mut().skip(kept).for_each(|digit| *digit = b'0');
        match digits.iter_mut().take(kept).next_back() {
            Some(digit) => *digit += 1,
            None => digits.insert(0, b'1'),
        }
        if digits.len() <= places {
            digits = [vec![b'0'; places + 1 - digits.len()], digits].concat();
        }
        let mut text: String = digits.iter().map(|digit| char::from(*digit)).collect();
        if places > 0 {
            text.insert(digits.len() - places, '.');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_is_short() {
        for (below, above, expected) in [
            ("", "", "0"),
            ("52000", "", "52001"),
            ("52000", "52001", "52000.01"),
            ("52000", "52000.01", "52000.001"),
            ("52000.009", "52000.01", "52000.0091"),
            ("-5", "5", "0"),
            ("", "-5", "-6"),
            ("-6", "-5", "-5.01"),
            ("0", "1", "0.01"),
            ("", "0", "-1"),
            ("0", "0.0000001", "0.00000001"),
            ("9.99", "10", "9.991"),
            ("99", "", "100"),
            ("-1", "0", "-0.01"),
            ("1e30", "", "1000000000000000000000000000001"),
        ] {
            let [low, high] = [below, above].map(|text| text.parse::<Decimal>().ok());
            assert_eq!(between(low.as_ref(), high.as_ref()).as_deref(), Some(expected), "{below}..{above}");
        }
        let huge = "1e6144".parse::<Decimal>().expect("a number");
        assert_eq!(between(Some(&huge), None), None);
        assert_eq!(whole_part(&huge), u64::MAX);
    }
}
