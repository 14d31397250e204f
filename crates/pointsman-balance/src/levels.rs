//! Which servers of a pool are looked at: those of the own zone first, backups last and in their order, and all where too
//! few are healthy.

/// Where a server stands among those of its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// In the zone of the switch, or in none.
    Local,
    /// In another zone.
    Distant,
    /// It serves when no other can, and no backup of a lower rank.
    Backup(u16),
}

impl Level {
    /// That of a server which is written as a backup. Before it come the ranks of servers that are none, but stand behind
    /// others of their service.
    pub const WRITTEN_BACKUP: Level = Level::Backup(Level::WRITTEN_RANK);

    const WRITTEN_RANK: u16 = 1 << 15;

    /// Whether it serves only when others cannot.
    pub fn is_backup(self) -> bool {
        matches!(self, Level::Backup(_))
    }

    /// Tells levels apart.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Level::Local => 0,
            Level::Distant => 1,
            Level::Backup(rank) => 2 + u32::from(rank),
        }
    }

    /// The level of a server that serves when those of this level cannot, behind so many other ranks of such servers.
    #[must_use]
    pub fn behind(self, rank: u16) -> Level {
        match (self, rank) {
            (Level::Backup(first), rank) => Level::Backup(first.saturating_add(rank)),
            (primary, 0) => primary,
            (Level::Local | Level::Distant, rank) => Level::Backup(rank.min(Level::WRITTEN_RANK) - 1),
        }
    }
}

/// How a server is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Somebody has set it so that it gets nothing: it does not count at all.
    Withdrawn,
    /// It does not answer as it should.
    Unhealthy,
    /// It is healthy.
    Healthy,
}

/// The levels of a pool.
#[derive(Clone, Debug)]
pub struct Levels {
    /// One for each server, in the order of the pool.
    pub levels: Box<[Level]>,
    /// The own zone serves alone while so many percent of its servers are healthy.
    pub zone_threshold_percent: u32,
    /// Where fewer than so many percent of all but the backups are healthy, health is not looked at.
    pub panic_threshold_percent: u32,
}

/// What is open to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Healthy servers of the own zone.
    Zone,
    /// Healthy servers, but no backups.
    Primaries,
    /// Healthy backups of one rank.
    Backups(u16),
    /// All but the backups, healthy or not.
    Panic,
}

/// So many servers.
#[derive(Default)]
struct Count {
    /// That may serve at all.
    all: u64,
    healthy: u64,
    /// That are healthy, and have not failed this request.
    left: u64,
}

impl Levels {
    /// What is open to a request, which some servers may have failed already.
    ///
    /// Those of other zones are asked when too few of the own zone are healthy or none of them is left; backups when none
    /// of the others is left, and of these the lowest rank of which one is. Failures of this request say nothing of how many are healthy.
    pub fn open(&self, condition: impl Fn(usize) -> Condition, has_failed: impl Fn(usize) -> bool) -> Open {
        let [mut zone, mut primaries] = [(); 2].map(|()| Count::default());
        let mut backups: Option<u16> = None;
        for (at, level) in self.levels.iter().enumerate() {
            let condition = condition(at);
            if condition == Condition::Withdrawn {
                continue;
            }
            let is_healthy = condition == Condition::Healthy;
            let count = |counts: &mut Count| {
                counts.all += 1;
                counts.healthy += u64::from(is_healthy);
                counts.left += u64::from(is_healthy && !has_failed(at));
            };
            match level {
                Level::Backup(rank) if is_healthy && !has_failed(at) => {
                    backups = Some(backups.map_or(*rank, |lowest| lowest.min(*rank)));
                }
                Level::Backup(_) => {}
                Level::Distant => count(&mut primaries),
                Level::Local => {
                    count(&mut primaries);
                    count(&mut zone);
                }
            }
        }
        let reaches = |count: &Count, percent: u32| count.healthy * 100 >= u64::from(percent) * count.all;
        let is_panic = !reaches(&primaries, self.panic_threshold_percent);
        match backups {
            _ if is_panic && (primaries.healthy > 0 || backups.is_none()) => Open::Panic,
            _ if zone.left > 0 && reaches(&zone, self.zone_threshold_percent) => Open::Zone,
            Some(rank) if primaries.left == 0 => Open::Backups(rank),
            Some(_) | None => Open::Primaries,
        }
    }

    /// Whether a server in this condition is among what is open.
    #[must_use]
    pub fn admits(&self, open: Open, at: usize, condition: Condition) -> bool {
        let level = self.levels[at];
        let is_healthy = condition == Condition::Healthy;
        match open {
            Open::Zone => is_healthy && level == Level::Local,
            Open::Primaries => is_healthy && !level.is_backup(),
            Open::Backups(rank) => is_healthy && level == Level::Backup(rank),
            Open::Panic => condition != Condition::Withdrawn && !level.is_backup(),
        }
    }
}

/// Whether a server that came up a while ago takes a request: its part of those that it would get grows evenly, from a
/// tenth to all in `slow_start_us`. The same `draw` gets the same answer until that changes for good.
#[must_use]
pub fn takes_at_its_start(up_us: u64, slow_start_us: u64, draw: u64) -> bool {
    const WHOLE: u128 = 1000;
    if up_us >= slow_start_us {
        return true;
    }
    let part = WHOLE / 10 + (WHOLE - WHOLE / 10) * u128::from(up_us) / u128::from(slow_start_us);
    u128::from(draw) % WHOLE < part
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// `l`ocal, `d`istant and `b`ackup servers, `c` and `e` backups of the ranks 1 and 2; an upper-case letter is healthy, `.` behind it: has failed this request,
    /// `-`: withdrawn.
    fn open(pool: &str, zone_threshold_percent: u32, panic_threshold_percent: u32) -> (Open, String) {
        let mut servers: Vec<(Level, Condition, bool)> = Vec::new();
        for letter in pool.chars() {
            let level = match letter.to_ascii_lowercase() {
                'l' => Level::Local,
                'd' => Level::Distant,
                'b' => Level::Backup(0),
                'c' => Level::Backup(1),
                'e' => Level::Backup(2),
                '.' | '-' => {
                    let last = servers.last_mut().expect("a letter before it");
                    if letter == '.' {
                        last.2 = true;
                    } else {
                        last.1 = Condition::Withdrawn;
                    }
                    continue;
                }
                _ => panic!("no `{letter}`"),
            };
            let is_up = letter.is_ascii_uppercase();
            servers.push((level, if is_up { Condition::Healthy } else { Condition::Unhealthy }, false));
        }
        let levels = Levels {
            levels: servers.iter().map(|(level, ..)| *level).collect(),
            zone_threshold_percent,
            panic_threshold_percent,
        };
        let open = levels.open(|at| servers[at].1, |at| servers[at].2);
        let admitted = |at: &usize| levels.admits(open, *at, servers[*at].1) && !servers[*at].2;
        let admitted = (0..servers.len()).filter(admitted).map(|at| at.to_string()).collect();
        (open, admitted)
    }

    #[test]
    fn levels_open_one_after_the_other() {
        for (pool, zone, panic, expected, admitted) in [
            // The own zone, while enough of it is healthy.
            ("LLD", 70, 0, Open::Zone, "01"),
            ("LlD", 70, 0, Open::Primaries, "02"),
            ("LlD", 50, 0, Open::Zone, "0"),
            ("LLl-D", 100, 0, Open::Zone, "01"),
            ("llD", 0, 0, Open::Primaries, "2"),
            ("L.L.D", 70, 0, Open::Primaries, "2"),
            ("DD", 70, 0, Open::Primaries, "01"),
            // Backups, when no other is left.
            ("LB", 70, 0, Open::Zone, "0"),
            ("lB", 70, 0, Open::Backups(0), "1"),
            ("L.B", 70, 0, Open::Backups(0), "1"),
            ("L-B", 70, 0, Open::Backups(0), "1"),
            ("lDB", 70, 0, Open::Primaries, "1"),
            ("lb", 70, 0, Open::Primaries, ""),
            // Of backups the lowest rank, as long as one of it is left.
            ("lCBB", 70, 0, Open::Backups(0), "23"),
            ("lCbE", 70, 0, Open::Backups(1), "1"),
            ("lCB.E", 70, 0, Open::Backups(1), "1"),
            ("lC-bE", 70, 0, Open::Backups(2), "3"),
            ("CE", 70, 0, Open::Backups(1), "0"),
            ("llE", 70, 50, Open::Backups(2), "2"),
            // All, where too few are healthy; but a healthy backup is better than none.
            ("Llll", 70, 50, Open::Panic, "0123"),
            ("LLll", 70, 50, Open::Primaries, "01"),
            ("llll", 70, 50, Open::Panic, "0123"),
            ("l-lL", 70, 50, Open::Primaries, "2"),
            ("llB", 70, 50, Open::Backups(0), "2"),
            ("llb", 70, 50, Open::Panic, "01"),
            ("LllB", 70, 50, Open::Panic, "012"),
            ("L.ll", 70, 50, Open::Panic, "12"),
            ("llB.", 70, 50, Open::Panic, "01"),
            ("", 70, 50, Open::Primaries, ""),
        ] {
            assert_eq!(open(pool, zone, panic), (expected, admitted.to_owned()), "{pool} {zone} {panic}");
        }
    }

    const LEVELS: [Level; 5] =
        [Level::Local, Level::Distant, Level::Backup(0), Level::Backup(1), Level::Backup(2)];

    /// All ranks of what is no backup come before all of what is one.
    #[test]
    fn ranks_stand_one_behind_the_other() {
        let behind = |level: Level| [0, 1, 2, u16::MAX].map(|rank| level.behind(rank));
        let [first, second, last] = [0, 1, (1 << 15) - 1].map(Level::Backup);
        assert_eq!(behind(Level::Local), [Level::Local, first, second, last]);
        assert_eq!(behind(Level::Distant), [Level::Distant, first, second, last]);
        let backups = [1 << 15, (1 << 15) + 1, (1 << 15) + 2, u16::MAX].map(Level::Backup);
        assert_eq!(behind(Level::WRITTEN_BACKUP), backups);
        assert_eq!(backups[0], Level::WRITTEN_BACKUP);
    }

    #[test]
    fn a_start_is_a_straight_line_from_a_tenth() {
        let part = |up_us| (0..1000).filter(|draw| takes_at_its_start(up_us, 10_000, *draw)).count();
        assert_eq!([0, 2500, 5000, 9999, 10_000, u64::MAX].map(part), [100, 325, 550, 999, 1000, 1000]);
        assert!((0..1000).all(|draw| takes_at_its_start(0, 0, draw)));
    }

    proptest! {
        /// Whoever is healthy is found, whatever the levels and thresholds.
        #[test]
        fn a_healthy_server_is_always_found(
            pool in vec((0usize..5, 0usize..3, any::<bool>()), 0..8),
            zone_threshold_percent in 0u32..101,
            panic_threshold_percent in 0u32..101,
        ) {
            let condition = |at: usize| [Condition::Withdrawn, Condition::Unhealthy, Condition::Healthy][pool[at].1];
            let failed = |at: usize| pool[at].2;
            let levels = Levels {
                levels: pool.iter().map(|(level, ..)| LEVELS[*level]).collect(),
                zone_threshold_percent,
                panic_threshold_percent,
            };
            let open = levels.open(condition, failed);
            let is_left = |at: usize| condition(at) == Condition::Healthy && !failed(at);
            let is_found = (0..pool.len()).any(|at| levels.admits(open, at, condition(at)) && !failed(at));
            let is_panic = open == Open::Panic;
            prop_assert!(is_found || is_panic || !(0..pool.len()).any(is_left));
            if let Open::Backups(rank) = open {
                let is_lower = |level: Level| matches!(level, Level::Backup(lower) if lower < rank) || !level.is_backup();
                prop_assert!(!(0..pool.len()).any(|at| is_left(at) && is_lower(LEVELS[pool[at].0])));
            }
            let withdrawn = (0..pool.len()).filter(|at| condition(*at) == Condition::Withdrawn);
            prop_assert!(withdrawn.into_iter().all(|at| !levels.admits(open, at, condition(at))));
        }

        #[test]
        fn who_takes_a_draw_goes_on_taking_it(up_us in 0u64..10_000, later_us in 0u64..10_000, draw: u64) {
            let takes = |up_us| takes_at_its_start(up_us, 10_000, draw);
            prop_assert!(!takes(up_us) || takes(up_us + later_us));
        }
    }
}
