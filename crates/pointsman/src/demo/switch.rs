//! The switch of the demo: this very program, started again as a child.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::Stop;
use super::event::{Event, Events, Teller, tell_lines};

/// A running switch. It is killed when it is dropped.
pub(super) struct RunningSwitch {
    child: Child,
    pub(super) addresses: Addresses,
}

/// Where the switch listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) tls: SocketAddr,
    pub(super) plain: SocketAddr,
    pub(super) admin: SocketAddr,
}

impl RunningSwitch {
    /// Starts the switch and waits until it is ready.
    pub(super) fn start(config: &Path, teller: Teller, events: &mut Events) -> Result<RunningSwitch, Stop> {
        let program = std::env::current_exe().map_err(Stop::because("cannot find this program again"))?;
        let mut command = Command::new(program);
        command.args(["demo", "--switch"]).arg(config);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C goes to the demo alone, which then clears away in order.
        command.process_group(0);
        let mut child = command.spawn().map_err(Stop::because("cannot start the switch"))?;
        if let (Some(log), Some(said)) = (child.stdout.take(), child.stderr.take()) {
            tell_lines(log, teller.clone(), Event::Logged, None);
            tell_lines(said, teller, Event::Said, Some(Event::Ended));
        }
        // From here on an error drops, and so kills, the child.
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let addresses = Addresses { tls: nowhere, plain: nowhere, admin: nowhere };
        let mut switch = RunningSwitch { child, addresses };
        switch.addresses = wait_until_ready(events)?;
        Ok(switch)
    }
}

impl Drop for RunningSwitch {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to kill.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn wait_until_ready(events: &mut Events) -> Result<Addresses, Stop> {
    let mut said = Vec::new();
    let ready = events.wait_for("the switch's `ready`", |event| {
        if let Event::Said(line) = event {
            said.push(line.clone());
        }
        said.last().is_some_and(|line| line.starts_with("ready ")).then_some(())
    });
    let told = |stop| match stop {
        Stop::Failed(message) if !said.is_empty() => Stop::Failed(format!("{message}\n{}", said.join("\n"))),
        stop => stop,
    };
    ready.map_err(told)?;
    addresses(&said)
        .ok_or_else(|| Stop::Failed(format!("the switch does not say where it listens\n{}", said.join("\n"))))
}

fn addresses(said: &[String]) -> Option<Addresses> {
    Some(Addresses {
        tls: address(said, "listening name=shop ")?,
        plain: address(said, "listening name=plain ")?,
        admin: address(said, "admin ")?,
    })
}

/// The address in the line that begins so.
fn address(said: &[String], start: &str) -> Option<SocketAddr> {
    let line = said.iter().find(|line| line.starts_with(start))?;
    line.split(' ').find_map(|word| word.strip_prefix("address="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let mut said: Vec<String> = [
            "listening name=shop address=127.0.0.1:43121 tls=true",
            "listening name=plain address=127.0.0.1:43122 tls=false",
            "admin address=127.0.0.1:41000",
            "ready threads=4",
        ]
        .map(str::to_owned)
        .into();
        let found = addresses(&said).expect("all are there");
        assert_eq!((found.tls.port(), found.plain.port(), found.admin.port()), (43121, 43122, 41000));
        said.remove(1);
        assert_eq!(addresses(&said), None);
    }
}
