//! Says when descriptors or memory run out and when there are some again: two lines, however often it happens
//! in between.

/// Looks without news after which a shortage is over: five seconds.
const QUIET_LOOKS: u32 = 20;

/// What was said of the present shortage.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    seen: u64,
    /// How many there had been when the present one began, and how often there was no news since.
    present: Option<(u64, u32)>,
}

impl Shortage {
    /// Looks at how often there was none to be had; gives a line where one is due.
    pub(super) fn look(&mut self, count: u64) -> Option<String> {
        let has_news = std::mem::replace(&mut self.seen, count) != count;
        match (&mut self.present, has_news) {
            (None, false) => None,
            (None, true) => {
                self.present = Some((count, 0));
                Some(
                    "out of descriptors or memory: what is idle is given up, new clients are refused"
                        .to_owned(),
                )
            }
            (Some((_, quiet)), true) => {
                *quiet = 0;
                None
            }
            (Some((before, quiet)), false) => {
                *quiet += 1;
                let line = format!("descriptors and memory again shortages={}", count - *before + 1);
                (*quiet >= QUIET_LOOKS).then(|| {
                    self.present = None;
                    line
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_at_its_start_and_one_at_its_end() {
        let mut shortage = Shortage::default();
        assert_eq!(shortage.look(0), None);
        assert!(shortage.look(1).is_some_and(|line| line.starts_with("out of descriptors")));
        assert_eq!(shortage.look(500), None);
        for _ in 1..QUIET_LOOKS {
            assert_eq!(shortage.look(500), None);
        }
        assert_eq!(shortage.look(500).as_deref(), Some("descriptors and memory again shortages=500"));
        assert_eq!(shortage.look(500), None);
        assert!(shortage.look(501).is_some());
    }
}
