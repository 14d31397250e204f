//! Why single probes, connections and handshakes fail, for who looks for the cause: bounded, so that hostile clients fill
//! no disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Notes of a topic that are kept from one look to the next; of more only their number is.
const NOTES_MAX: usize = 10;
/// What is kept of a note.
const NOTE_CHARS_MAX: usize = 400;

/// What a note is about. Each has room of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Connections of clients.
    Clients,
    /// Connections to servers, for requests.
    Servers,
    /// Probes of servers.
    Probes,
    /// Clients of the admin listener.
    Admin,
}

/// What all threads note, and one reads. Nothing is noted, and nothing formatted, while nobody wants it.
#[derive(Debug, Default)]
pub struct Notes {
    is_wanted: AtomicBool,
    topics: [Mutex<Kept>; Topic::ALL.len()],
}

#[derive(Debug, Default)]
struct Kept {
    lines: Vec<String>,
    left_out: u64,
}

impl Topic {
    const ALL: [(Topic, &str); 4] = [
        (Topic::Clients, "clients"),
        (Topic::Servers, "servers"),
        (Topic::Probes, "probes"),
        (Topic::Admin, "admin"),
    ];
}

impl Notes {
    /// Whether notes are wanted from now on.
    pub fn want(&self, is_wanted: bool) {
        self.is_wanted.store(is_wanted, Ordering::Relaxed);
    }

    /// Whether notes are wanted.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Notes something, where notes are wanted and there is room.
    pub fn note(&self, topic: Topic, line: impl FnOnce() -> String) {
        if !self.is_wanted() {
            return;
        }
        let mut kept = self.kept(topic);
        if kept.lines.len() >= NOTES_MAX {
            kept.left_out += 1;
            return;
        }
        let mut line = line();
        if let Some((end, _)) = line.char_indices().nth(NOTE_CHARS_MAX) {
            line.truncate(end);
        }
        kept.lines.push(line);
    }

    /// What was noted since the last look, and how much was left out of it. To be called once a second: so often there is
    /// room anew.
    pub fn take(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (topic, name) in Topic::ALL {
            let Kept { lines: of_topic, left_out } = std::mem::take(&mut *self.kept(topic));
            lines.extend(of_topic);
            if left_out > 0 {
                lines.push(format!("left out about={name} notes={left_out}"));
            }
        }
        lines
    }

    fn kept(&self, topic: Topic) -> MutexGuard<'_, Kept> {
        // What is kept is whole at any time.
        self.topics[topic as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_few_and_short_and_each_topic_has_its_own() {
        let notes = Notes::default();
        notes.note(Topic::Clients, || panic!("nobody wants it"));
        assert!(notes.take().is_empty());
        notes.want(true);
        for number in 0..100 {
            notes.note(Topic::Clients, || number.to_string());
        }
        notes.note(Topic::Probes, || "ü".repeat(10_000));
        let taken = notes.take();
        assert_eq!(taken[NOTES_MAX - 1..=NOTES_MAX], ["9", "left out about=clients notes=90"]);
        assert_eq!(taken[NOTES_MAX + 1..], ["ü".repeat(NOTE_CHARS_MAX)]);
        assert!(notes.take().is_empty());
        notes.note(Topic::Clients, || "again".to_owned());
        assert_eq!(notes.take(), ["again"]);
    }
}
