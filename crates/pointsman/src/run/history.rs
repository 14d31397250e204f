//! Which rules have served since the switch began: as many as there is room for.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pointsman_config::RuleSet;
use pointsman_net::Clock;
use pointsman_telemetry::rfc3339;

/// Versions that are kept; more where more files serve, of each of which the last one is kept.
const VERSIONS_MAX: usize = 50;
/// Bytes of all their texts; those last ones are kept whatever their length.
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
    /// Keeps those of `sets`, which are all that serve, whose texts are not the last ones of their files.
    pub(super) fn keep(&mut self, sets: &[RuleSet], by: By) {
        let by = Arc::new(by);
        for set in sets {
            let rules_version = set.version();
            if self.last_of(&set.path).is_none_or(|last| last.rules_version != rules_version) {
                self.push(&set.path, rules_version, by.clone(), set.source.clone());
            }
        }
        self.forget(|path| sets.iter().any(|set| set.path == path));
    }

    fn push(&mut self, path: &Path, rules_version: String, by: Arc<By>, text: Arc<str>) {
        self.last += 1;
        self.text_bytes += text.len();
        self.kept.push_back(Version { number: self.last, path: path.to_owned(), rules_version, by, text });
    }

    /// The oldest go where there are too many. The last one of a file that serves stays: otherwise that file would seem to be
    /// new, and to come from whoever changes another one.
    fn forget(&mut self, serves: impl Fn(&Path) -> bool) {
        let mut at = 0;
        while self.kept.len() > VERSIONS_MAX || self.text_bytes > TEXT_BYTES_MAX {
            let Some(version) = self.kept.get(at) else { break };
            let is_last = self.last_of(&version.path).is_some_and(|last| last.number == version.number);
            if is_last && serves(&version.path) {
                at += 1;
                continue;
            }
            let gone = self.kept.remove(at);
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

    /// Both files serve.
    fn push(history: &mut History, path: &str, rules_version: &str, text: Arc<str>) {
        history.push(Path::new(path), rules_version.to_owned(), by(), text);
        history.forget(|_| true);
    }

    #[test]
    fn it_is_bounded() {
        let mut history = History::default();
        for number in 0..200 {
            push(&mut history, "a", &number.to_string(), Arc::from("x"));
        }
        let numbers: Vec<u64> = history.versions().map(|version| version.number).collect();
        assert_eq!(numbers, (151..=200).collect::<Vec<u64>>());
        assert!(history.version(150).is_none() && history.version(151).is_some());
        let long: Arc<str> = Arc::from("x".repeat(TEXT_BYTES_MAX / 2));
        for _ in 0..3 {
            push(&mut history, "a", "long", long.clone());
        }
        assert_eq!(history.versions().count(), 2, "two of them fill it");
        assert_eq!(history.text_bytes, TEXT_BYTES_MAX / 2 * 2);
        let longest: Arc<str> = Arc::from("x".repeat(TEXT_BYTES_MAX + 1));
        push(&mut history, "a", "longest", longest);
        assert_eq!(history.versions().map(|version| version.number).collect::<Vec<u64>>(), [204]);
    }

    /// Whoever changes another file often takes nothing of it.
    #[test]
    fn what_serves_keeps_its_version() {
        let mut history = History::default();
        for rules_version in ["first", "serves"] {
            push(&mut history, "b", rules_version, Arc::from("x"));
        }
        for number in 0..VERSIONS_MAX {
            push(&mut history, "a", &number.to_string(), Arc::from("x"));
        }
        let numbers: Vec<u64> = history.versions().map(|version| version.number).collect();
        assert_eq!((numbers.len(), &numbers[..2]), (VERSIONS_MAX, &[2, 4][..]));
        assert_eq!(history.last_of(Path::new("b")).map(|last| &*last.rules_version), Some("serves"));
    }
}
