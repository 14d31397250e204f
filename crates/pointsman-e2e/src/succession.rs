//! Upgrades: a running switch that starts its binary again, which takes its place.

use crate::{Setup, Switch, until};

impl Switch {
    /// Sends SIGUSR2 and waits until a new process serves, which is the one that this stands for from then on. The one
    /// before it may still drain.
    ///
    /// # Panics
    /// When none does; prints what they said.
    pub fn upgrade(&mut self) {
        let said = self.errors().all().len();
        self.signal("USR2");
        self.follows_after(said);
    }

    /// Waits until a new process serves that was begun otherwise, the first one, and stands for it from then on.
    ///
    /// # Panics
    /// When none does.
    pub fn follows_upgrade(&mut self) {
        self.follows_after(0);
    }

    fn follows_after(&mut self, said: usize) {
        let line = self.errors().wait_after(said, "`upgraded pid=`", |line| {
            line.starts_with("upgraded pid=").then(|| line.to_owned())
        });
        let number = line["upgraded pid=".len()..].parse().expect("the number of a process");
        self.follow(number);
    }

    /// The same with other files.
    pub fn upgrade_to(&mut self, setup: &Setup) {
        setup.write(self.folder());
        self.upgrade();
    }

    /// Waits for the end of all processes but the one that serves.
    pub fn wait_for_predecessors(&mut self) {
        let replaced = self.errors().all().iter().filter(|line| line.starts_with("upgraded pid=")).count();
        until("the end of the processes before it", || {
            let lines = self.errors().all();
            let ended =
                lines.iter().filter(|line| *line == "drained" || line.starts_with("drain cut")).count();
            (ended >= replaced).then_some(())
        });
    }
}
