//! N against N − 1 clients: whether one client less sees the same server, and the smallest number that does.

use super::{Colour, Measure, Reason};
use crate::Random;
use crate::statistics::{Interval, ratio_of_samples};

/// A ratio that is known less well than this says nothing.
const HALF_WIDTH_MAX: f64 = 0.05;

/// What one client less reached at the same total rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FewerClients {
    /// How many clients there were with all.
    pub clients: u32,
    /// What one less achieved by what all achieved.
    pub ratio: Interval,
}

impl FewerClients {
    /// Whether the result does not hang on the number of clients; None where the ratio is not known well enough.
    pub fn in_control(&self) -> Option<bool> {
        // What is less for certain is less, however wide the interval, and what is more is no less.
        match (self.ratio.high < 1.0, self.ratio.low > 1.0) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            _ => (self.ratio.half_width_share() <= HALF_WIDTH_MAX).then_some(true),
        }
    }

    pub(super) fn reason(&self) -> Option<Reason> {
        let Interval { estimate, low, high } = self.ratio;
        let what = format!(
            "with one client less of {} the rate is {estimate:.3} ({low:.3} to {high:.3}) of this",
            self.clients
        );
        let (colour, text) = match self.in_control() {
            Some(true) if low > 1.0 => (Colour::Amber, format!("{what}: fewer clients reach more")),
            Some(true) => return None,
            Some(false) => (Colour::Red, format!("{what}: the clients are what limits it")),
            None => (Colour::Amber, format!("{what}: that is too wide to say whether they are enough")),
        };
        Some(Reason { colour, measure: Measure::FewerClients, text })
    }
}

/// Compares the rates achieved in trials with all `clients` with those in trials with one less; each is known to
/// `one_per_s`, what one answer of a trial is a second. None where there are fewer than four of either, and where
/// nothing was achieved.
pub fn fewer_clients(
    clients: u32,
    with_all: &[f64],
    with_one_less: &[f64],
    one_per_s: f64,
    random: &mut Random,
) -> Option<FewerClients> {
    let ratio = ratio_of_samples(with_all, with_one_less, random)?;
    // Trials that came to the same are not the same: each could have been one answer apart.
    let most = with_all.iter().copied().fold(0.0, f64::max);
    let apart = 2.0 * one_per_s / most;
    Some(FewerClients { clients, ratio: ratio.widened((ratio.low - apart).max(0.0), ratio.high + apart) })
}

/// Finds the smallest number of clients that sees what all see: the third method of SURFnet's test bench. One is taken
/// away first, which says whether all are enough; then the number is halved, or the middle taken, until the smallest
/// that is enough and the greatest that is not are neighbours.
#[derive(Clone, Debug)]
pub struct SmallestNumber {
    all: u32,
    with_all: Vec<f64>,
    one_per_s: f64,
    enough: u32,
    too_few: u32,
    /// Whether those are known to be too few: none are.
    is_known: bool,
}

impl SmallestNumber {
    /// Begins with the rates that all `clients` achieved in a few trials, in which one answer is `one_per_s`.
    pub fn new(clients: u32, with_all: Vec<f64>, one_per_s: f64) -> Self {
        Self { all: clients, with_all, one_per_s, enough: clients, too_few: 0, is_known: true }
    }

    /// With how many clients the next trials are to be made, at the same total rate; None at the end.
    pub fn next(&self) -> Option<u32> {
        let is_first = self.enough == self.all;
        let next =
            if is_first { self.all.saturating_sub(1) } else { u32::midpoint(self.too_few, self.enough) };
        (self.enough > self.too_few + 1).then_some(next)
    }

    /// Says what those that [`next`](Self::next) named achieved. Compared is always with all, so that small losses do not
    /// add up; a ratio that is too wide to say anything counts as too few.
    pub fn saw(&mut self, rates: &[f64], random: &mut Random) -> Option<FewerClients> {
        let tried = self.next()?;
        let compared = fewer_clients(self.all, &self.with_all, rates, self.one_per_s, random);
        if compared.is_some_and(|compared| compared.in_control() == Some(true)) {
            self.enough = tried;
        } else {
            self.too_few = tried;
            self.is_known = compared.is_some_and(|compared| compared.in_control() == Some(false));
        }
        compared
    }

    /// The smallest number that is known to be enough; [`is_known`](Self::is_known) says whether it is known that less are not.
    pub fn smallest(&self) -> u32 {
        self.enough
    }

    /// Whether one client less than the [`smallest`](Self::smallest) is known to be too few, and not only not known to be enough.
    pub fn is_known(&self) -> bool {
        self.next().is_none() && self.is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates of eight trials of a server of 1,000/s with clients of 300/s each.
    fn rates(clients: u32, random: &mut Random) -> Vec<f64> {
        let reached = (f64::from(clients) * 300.0).min(1_000.0);
        (0..8).map(|_| reached * (1.0 + 0.01 * random.normal())).collect()
    }

    #[test]
    fn four_clients_of_300_are_needed_for_1_000() {
        let right = (0..100)
            .filter(|seed| {
                let mut random = Random::new(*seed);
                let mut search = SmallestNumber::new(6, rates(6, &mut random), 0.1);
                while let Some(clients) = search.next() {
                    let seen = rates(clients, &mut random);
                    search.saw(&seen, &mut random);
                }
                search.smallest() == 4 && search.is_known()
            })
            .count();
        // Five and four must be "the same", each right in 19 of 20 runs; two and three are far off.
        assert!(right >= 85, "{right} of 100");
    }

    #[test]
    fn too_few_clients_are_red_and_a_wide_ratio_amber() {
        let mut random = Random::new(1);
        let (three, two) = (rates(3, &mut random), rates(2, &mut random));
        let starved = fewer_clients(3, &three, &two, 0.1, &mut random).expect("eight trials each");
        assert_eq!(starved.in_control(), Some(false));
        assert_eq!(starved.reason().map(|reason| reason.colour), Some(Colour::Red));
        let wide = FewerClients { clients: 3, ratio: Interval { estimate: 1.0, low: 0.8, high: 1.2 } };
        assert_eq!(wide.reason().map(|reason| reason.colour), Some(Colour::Amber));
        let more = FewerClients { clients: 8, ratio: Interval { estimate: 1.03, low: 1.02, high: 1.2 } };
        let said = more.reason().expect("they are one too many");
        assert_eq!((more.in_control(), said.colour), (Some(true), Colour::Amber));
        let mut unclear = SmallestNumber::new(3, rates(3, &mut random), 0.1);
        assert!(!unclear.is_known(), "nothing is tried yet");
        unclear.saw(&[], &mut random);
        assert_eq!((unclear.next(), unclear.smallest(), unclear.is_known()), (None, 3, false));
        assert_eq!(SmallestNumber::new(1, vec![], 0.1).next(), None);
        assert_eq!(SmallestNumber::new(0, vec![], 0.1).next(), None);
    }

    #[test]
    fn rates_that_are_an_answer_apart_are_the_same() {
        for (less, expected) in [(4999.9, Some(true)), (5000.1, Some(true)), (4990.0, Some(false))] {
            let mut random = Random::new(1);
            let compared = fewer_clients(8, &[5000.0; 6], &[less; 6], 0.1, &mut random).expect("six each");
            assert_eq!(compared.in_control(), expected, "{less}: {compared:?}");
            assert_eq!(compared.reason().is_none(), expected == Some(true), "{less}: {compared:?}");
        }
    }
}
