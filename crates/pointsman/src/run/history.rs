//! Which rules have served since the switch began: as many as there is room for.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pointsman_config::RuleSet;
use pointsman_net::Clock;
use pointsman_telemetry::rfc3339;

/// Versions that are kept.
const VERSIONS_MAX: usize = 50;
/// Bytes of all their texts; the newest is kept whatever its length.
const TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Who changed something, when and why.
pub(super) struct By {
    pub(super) who: String,
    /// As RFC 3339 writes it.
    pub(super) when: String,
    pub(super) why: String,
}

impl By {
    /// Somebody, now.
    pub(super) fn now(who: &str, why: &str) -> By {
        let when = rfc3339(Clock::start().unix_us());
        By { who: who.to_owned(), when, why: why.to_owned() }
    }
}

/// Rules that serve, or have.
pub(super) struct Version {
    /// Counts from 1.
    pub(super) number: u64,
    pub(super) path: PathBuf,
    /// What [`RuleSet::version`] says of them.
    pub(super) rules_version: String,
    pub(super) by: Arc<By>,
    pub(super) text: Arc<str>,
}

/// The versions, oldest first.
#[derive(Default)]
pub(super) struct History {
    kept: VecDeque<Version>,
    last: u64,
    text_bytes: usize,
}

impl History {
    /// Keeps those of `sets` whose texts are not the last ones of their files.
    pub(super) fn keep(&mut self, sets: &[RuleSet], by: By) {
        let by = Arc::new(by);
        for set in sets {
            let rules_version = set.version();
            if self.last_of(&set.path).is_none_or(|last| last.rules_version != rules_version) {
                self.push(&set.path, rules_version, by.clone(), set.source.clone());
            }
        }
    }

    fn push(&mut self, path: &Path, rules_version: String, by: Arc<By>, text: Arc<str>) {
        self.last += 1;
        self.text_bytes += text.len();
        self.kept.push_back(Version { number: self.last, path: path.to_owned(), rules_version, by, text });
        while self.kept.len() > VERSIONS_MAX || self.kept.len() > 1 && self.text_bytes > TEXT_BYTES_MAX {
            let gone = self.kept.pop_front();
            self.text_bytes -= gone.map_or(0, |gone| gone.text.len());
        }
    }

    fn last_of(&self, path: &Path) -> Option<&Version> {
        self.kept.iter().rev().find(|version| version.path == path)
    }

    /// Oldest first.
    pub(super) fn versions(&self) -> impl DoubleEndedIterator<Item = &Version> {
        self.kept.iter()
    }

    /// The version of that number, if it is still kept.
    pub(super) fn version(&self, number: u64) -> Option<&Version> {
        self.kept.iter().find(|version| version.number == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by() -> Arc<By> {
        Arc::new(By { who: "me".to_owned(), when: String::new(), why: String::new() })
    }

    #[test]
    fn it_is_bounded() {
        let mut history = History::default();
        for number in 0..200 {
            history.push(Path::new("a"), number.to_string(), by(), Arc::from("x"));
        }
        let numbers: Vec<u64> = history.versions().map(|version| version.number).collect();
        assert_eq!(numbers, (151..=200).collect::<Vec<u64>>());
        assert!(history.version(150).is_none() && history.version(151).is_some());
        let long: Arc<str> = Arc::from("x".repeat(TEXT_BYTES_MAX / 2));
        for _ in 0..3 {
            history.push(Path::new("b"), "long".to_owned(), by(), long.clone());
        }
        assert_eq!(history.versions().count(), 2, "two of them fill it");
        assert_eq!(history.text_bytes, TEXT_BYTES_MAX / 2 * 2);
        let longest: Arc<str> = Arc::from("x".repeat(TEXT_BYTES_MAX + 1));
        history.push(Path::new("b"), "longest".to_owned(), by(), longest);
        assert_eq!(history.versions().map(|version| version.number).collect::<Vec<u64>>(), [204]);
    }
}
