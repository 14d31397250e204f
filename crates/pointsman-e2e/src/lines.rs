//! Lines that a process prints, to wait for without sleeping.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use crate::PATIENCE;

/// The lines of one output of a process, growing while it runs.
#[derive(Clone, Debug)]
pub struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<String>,
    ended: bool,
    /// Nobody reads on.
    held: bool,
}

impl Lines {
    /// Collects what `output` prints, on a thread of its own, to its end.
    pub fn of(output: impl Read + Send + 'static) -> Self {
        let lines = Self(Arc::default());
        let sink = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                sink.change(|state| state.lines.push(line));
                let state = sink.0.changed.wait_while(sink.lock(), |state| state.held);
                drop(state.expect("no panic under the lock"));
            }
            sink.change(|state| state.ended = true);
        });
        lines
    }

    /// Reads no more than one line, and what came with it, so that the process finds its pipe full.
    pub fn hold(&self) {
        self.change(|state| state.held = true);
    }

    /// Reads on.
    pub fn go_on(&self) {
        self.change(|state| state.held = false);
    }

    /// All lines up to now.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.lock().lines.clone()
    }

    /// All lines up to now as one text.
    #[must_use]
    pub fn text(&self) -> String {
        self.all().join("\n")
    }

    /// The first line of all that `find` makes something of.
    ///
    /// # Panics
    /// When none came in time; prints what did.
    pub fn wait_for<T>(&self, what: &str, find: impl FnMut(&str) -> Option<T>) -> T {
        self.wait_after(0, what, find)
    }

    /// The same, among the lines from number `skip` on: for what happens again.
    ///
    /// # Panics
    /// When none came in time; prints what did.
    pub fn wait_after<T>(&self, skip: usize, what: &str, mut find: impl FnMut(&str) -> Option<T>) -> T {
        let (mut next, until) = (skip, Instant::now() + PATIENCE);
        let mut state = self.lock();
        loop {
            while next < state.lines.len() {
                if let Some(found) = find(&state.lines[next]) {
                    return found;
                }
                next += 1;
            }
            let left = until.saturating_duration_since(Instant::now());
            if state.ended || left.is_zero() {
                let lines = state.lines.join("\n  ");
                drop(state);
                panic!("waited for {what}, and got only:\n  {lines}");
            }
            state = self.0.changed.wait_timeout(state, left).expect("no panic under the lock").0;
        }
    }

    /// Waits for the end of the output. False when it did not come in time.
    #[must_use]
    pub fn wait_for_end(&self) -> bool {
        let state = self.lock();
        let waited = self.0.changed.wait_timeout_while(state, PATIENCE, |state| !state.ended);
        waited.expect("no panic under the lock").0.ended
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.0.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no panic under the lock")
    }
}
