//! What systemd, or what else runs the switch as a service, is told of it. Nothing where nobody asked (`NOTIFY_SOCKET`).

use std::time::{Duration, Instant};

use pointsman_net::{ServiceManager, monotonic_us};

use super::notice;

/// The service that this process is.
pub(super) struct Service {
    manager: Option<ServiceManager>,
    /// How often it wants to hear that the process is alive.
    watchdog: Option<Duration>,
    heard: Instant,
}

impl Service {
    /// What the environment says. `is_successor`: the process that was asked to give signs of life is the one before.
    pub(super) fn of_this_process(is_successor: bool) -> Service {
        let address = std::env::var_os("NOTIFY_SOCKET").filter(|address| !address.is_empty());
        let manager = address.and_then(|address| match ServiceManager::at(&address) {
            Ok(manager) => Some(manager),
            Err(error) => {
                notice::warn(&format!("warning: `NOTIFY_SOCKET` is of no use: {error}"));
                None
            }
        });
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let own = u64::from(std::process::id());
        let is_meant = is_successor || number("WATCHDOG_PID").is_none_or(|asked| asked == own);
        let watchdog = number("WATCHDOG_USEC").filter(|&us| is_meant && us > 0).map(Duration::from_micros);
        Service { manager, watchdog, heard: Instant::now() }
    }

    pub(super) fn is_ready(&self, threads: usize) {
        self.tell(&format!("READY=1\nSTATUS=serving with {threads} threads\n"));
    }

    pub(super) fn reloads(&self) {
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=reloading\n", monotonic_us()));
    }

    /// The reload is over, whatever came of it.
    pub(super) fn has_reloaded(&self, is_refused: bool) {
        let status = if is_refused { "serving; the last reload was refused, see the log" } else { "serving" };
        self.tell(&format!("READY=1\nSTATUS={status}\n"));
    }

    /// Another process is the service from now on.
    pub(super) fn is_replaced(&mut self, successor: u32) {
        self.tell(&format!("MAINPID={successor}\nSTATUS=serving, upgraded\n"));
        // What this one says is that one's no more.
        self.manager = None;
    }

    pub(super) fn stops(&self) {
        self.tell("STOPPING=1\nSTATUS=draining\n");
    }

    /// Gives a sign of life, where one is due. Call it as often as the control thread looks at anything.
    pub(super) fn lives(&mut self) {
        if self.watchdog.is_some_and(|every| self.heard.elapsed() >= every / 3) {
            self.heard = Instant::now();
            self.tell("WATCHDOG=1\n");
        }
    }

    fn tell(&self, variables: &str) {
        // A manager that does not listen has no use for it, and the switch goes on.
        let (Ok(()) | Err(_)) = self.manager.as_ref().map_or(Ok(()), |manager| manager.tell(variables));
    }
}
