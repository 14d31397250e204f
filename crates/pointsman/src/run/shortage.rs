//! Says when descriptors or memory run out, which, and when there are some again: two lines for each, however
//! often it happens in between.

use pointsman_relay::Shortages;

/// Looks without news after which a shortage is over: five seconds.
const QUIET_LOOKS: u32 = 20;

/// What can run out, and what bounds it.
#[derive(Clone, Copy, Debug)]
struct Resource {
    name: &'static str,
    limit: &'static str,
}

const DESCRIPTORS: Resource = Resource {
    name: "descriptors",
    limit: "the limit on open files (RLIMIT_NOFILE, LimitNOFILE of a unit) is reached",
};
const SYSTEM: Resource = Resource {
    name: "the system's descriptors or memory for sockets",
    limit: "see fs.file-max, fs.epoll.max_user_watches and the memory that is free",
};
const BUFFER_BYTES: Resource =
    Resource { name: "memory for clients", limit: "`buffer_bytes_max` is reached" };

/// What was said of the present shortages.
#[derive(Debug)]
pub(super) struct Watch {
    descriptors: Shortage,
    system: Shortage,
    buffer_bytes: Shortage,
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch {
            descriptors: Shortage::of(DESCRIPTORS),
            system: Shortage::of(SYSTEM),
            buffer_bytes: Shortage::of(BUFFER_BYTES),
        }
    }

    /// Looks at how often there was none to be had; gives the lines that are due.
    pub(super) fn look(&mut self, count: Shortages) -> impl Iterator<Item = String> {
        let lines = [
            self.descriptors.look(count.descriptors),
            self.system.look(count.system),
            self.buffer_bytes.look(count.buffer_bytes),
        ];
        lines.into_iter().flatten()
    }
}

/// What was said of one resource.
#[derive(Debug)]
struct Shortage {
    of: Resource,
    seen: u64,
    /// How many there had been when the present one began, and how often there was no news since.
    present: Option<(u64, u32)>,
}

impl Shortage {
    fn of(resource: Resource) -> Shortage {
        Shortage { of: resource, seen: 0, present: None }
    }

    fn look(&mut self, count: u64) -> Option<String> {
        let Resource { name, limit } = self.of;
        let has_news = std::mem::replace(&mut self.seen, count) != count;
        match (&mut self.present, has_news) {
            (None, false) => None,
            (None, true) => {
                self.present = Some((count, 0));
                Some(format!("out of {name}: {limit}; what is idle is given up, new clients are refused"))
            }
            (Some((_, quiet)), true) => {
                *quiet = 0;
                None
            }
            (Some((before, quiet)), false) => {
                *quiet += 1;
                let line = format!("{name} again shortages={}", count - *before + 1);
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
        let mut shortage = Shortage::of(DESCRIPTORS);
        assert_eq!(shortage.look(0), None);
        assert!(shortage.look(1).is_some_and(|line| line.starts_with("out of descriptors: ")));
        assert_eq!(shortage.look(500), None);
        for _ in 1..QUIET_LOOKS {
            assert_eq!(shortage.look(500), None);
        }
        assert_eq!(shortage.look(500).as_deref(), Some("descriptors again shortages=500"));
        assert_eq!(shortage.look(500), None);
        assert!(shortage.look(501).is_some());
    }

    #[test]
    fn each_resource_speaks_for_itself() {
        let mut watch = Watch::new();
        let mut look = |descriptors, system, buffer_bytes| -> Vec<String> {
            let lines = watch.look(Shortages { descriptors, system, buffer_bytes });
            lines.map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(look(0, 0, 2), ["out of memory for clients"]);
        assert_eq!(
            look(1, 1, 3),
            ["out of descriptors", "out of the system's descriptors or memory for sockets"]
        );
        assert!(look(2, 2, 4).is_empty());
    }
}
