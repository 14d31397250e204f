//! An upgrade, in the process that is to be replaced: it starts its own binary again, hands it what it listens on, and
//! goes on as before until that says that it is ready.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pointsman_admin::Serving;
use pointsman_config::Plan;
use pointsman_net::{Line, PARCEL_SOCKETS_MAX};
use pointsman_relay::{Giving, Switch};

use super::legacy::{
    END, Keys, PREDECESSOR, READY, STICKY_CLIENTS, admin_text, server_text, socket_text, tickets_text,
};
use super::notice::{self, notice};

/// How this process was started.
pub(super) struct Program {
    binary: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    /// By its own path, not by what runs: of that a package may have put a newer one in its place.
    pub(super) fn of_this_process() -> io::Result<Program> {
        let mut arguments = std::env::args_os();
        let first = PathBuf::from(arguments.next().unwrap_or_default());
        let binary = match first.components().count() {
            0 => std::env::current_exe()?,
            // It was looked for in the folders of PATH, and will be again.
            1 => first,
            _ => std::path::absolute(first)?,
        };
        Ok(Program { binary, arguments: arguments.collect() })
    }
}

/// All that upgrades need, and the one that is under way.
pub(super) struct Succession {
    pub(super) program: Program,
    pub(super) keys: Keys,
    /// What the new process is to serve, too.
    pub(super) admin: Option<Serving>,
    pub(super) under_way: Option<Successor>,
}

impl Succession {
    /// Starts a new process, where none is on its way. What cannot be is said.
    pub(super) fn begin(&mut self, switch: &Switch) {
        if self.is_under_way() {
            return notice::warn("upgrade refused: one is under way");
        }
        match Successor::start(self, switch) {
            Ok(successor) => self.under_way = Some(successor),
            Err(error) => notice::error(&format!("upgrade failed: {error}")),
        }
    }

    /// Whether a process has been started that is not ready.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// The number of that process, if it serves by now. Where it will not, that is said, and this one goes on.
    pub(super) fn ready(&mut self) -> Option<u32> {
        let successor = self.under_way.as_mut()?;
        match successor.look() {
            Progress::Begins => None,
            Progress::Ready => {
                notice(&format!("upgraded pid={}", successor.child.id()));
                Some(successor.child.id())
            }
            Progress::Failed(why) => {
                notice::error(&format!("upgrade failed: {why}; this process goes on"));
                self.under_way = None;
                None
            }
        }
    }

    /// Whether all sticky clients have been given to the process that serves now. Nobody changes any more.
    pub(super) fn has_given_all(&mut self) -> bool {
        let giving = self.under_way.as_mut().and_then(|successor| successor.giving.as_mut());
        giving.is_none_or(Giving::finishes)
    }

    /// Ends the process that is not ready, since this one is to end.
    pub(super) fn give_up(&mut self) {
        self.under_way.take().into_iter().for_each(|mut successor| successor.end());
    }
}

/// A process that is to take the place of this one, and is not ready.
pub(super) struct Successor {
    child: Child,
    line: Line,
    /// Sticky clients, which go on a line of their own.
    giving: Option<Giving>,
    unsent: VecDeque<(String, Vec<OwnedFd>)>,
    started: Instant,
    max: Duration,
}

/// How far it is.
enum Progress {
    Begins,
    Ready,
    /// It will not be, and is gone.
    Failed(String),
}

impl Successor {
    /// Starts it.
    ///
    /// # Errors
    /// What the system says where it cannot be started; nothing has changed then.
    fn start(Succession { program, keys, admin, .. }: &Succession, switch: &Switch) -> io::Result<Successor> {
        let mut unsent = parcels(switch, keys, admin.as_ref())?;
        let giving = give_sticky_clients(switch, &mut unsent)?;
        let (line, theirs) = Line::pair()?;
        let child = Command::new(&program.binary)
            .args(&program.arguments)
            .env(PREDECESSOR, std::process::id().to_string())
            .stdin(Stdio::from(theirs))
            .spawn()
            .map_err(|error| io::Error::other(format!("`{}`: {error}", program.binary.display())))?;
        let max = Duration::from_millis(switch.with_plan(|plan| plan.upgrade_ms_max).into());
        notice(&format!("upgrade begins pid={}", child.id()));
        Ok(Successor { child, line, giving, unsent, started: Instant::now(), max })
    }

    /// Hands over more, where there is more, and looks how far it is.
    fn look(&mut self) -> Progress {
        self.send();
        if self.line.receive().is_ok_and(|parcel| parcel.text == READY.as_bytes()) {
            return Progress::Ready;
        }
        match self.child.try_wait() {
            Ok(Some(status)) => Progress::Failed(format!("the new process ended: {status}")),
            Ok(None) if self.started.elapsed() >= self.max => {
                self.end();
                Progress::Failed(format!("the new process was not ready in {} ms", self.max.as_millis()))
            }
            Ok(None) | Err(_) => Progress::Begins,
        }
    }

    /// Ends it.
    fn end(&mut self) {
        // One that has ended meanwhile needs no end.
        let (Ok(()) | Err(_)) = self.child.kill();
        let (Ok(_) | Err(_)) = self.child.wait();
    }

    fn send(&mut self) {
        while let Some((text, sockets)) = self.unsent.front() {
            let sockets: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
            match self.line.send(text.as_bytes(), &sockets) {
                Ok(()) => drop(self.unsent.pop_front()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Its end says why, or that it does not come.
                Err(_) => self.unsent.clear(),
            }
        }
    }
}

/// Begins to give sticky clients, where any are remembered. What they are taken by goes right behind the keys.
fn give_sticky_clients(
    switch: &Switch,
    parcels: &mut VecDeque<(String, Vec<OwnedFd>)>,
) -> io::Result<Option<Giving>> {
    if !switch.remembers_clients() {
        return Ok(None);
    }
    let (line, theirs) = Line::pair()?;
    parcels.insert(1, (STICKY_CLIENTS.to_owned(), vec![theirs]));
    switch.give_sticky_clients(line).map(Some)
}

/// All that is handed over, in order.
fn parcels(
    switch: &Switch,
    keys: &Keys,
    admin: Option<&Serving>,
) -> io::Result<VecDeque<(String, Vec<OwnedFd>)>> {
    let mut parcels = VecDeque::from([(keys.to_text(), Vec::new())]);
    parcels.extend(switch.with_plan(tickets));
    for (label, sockets) in switch.listening_sockets() {
        for some in sockets.chunks(PARCEL_SOCKETS_MAX) {
            let clones = some.iter().map(|socket| socket.try_clone()).collect::<io::Result<_>>()?;
            parcels.push_back((socket_text(&label), clones));
        }
    }
    if let Some(admin) = admin {
        parcels.push_back((admin_text(&admin.asked().to_string()), vec![admin.socket()?]));
    }
    parcels.extend(switch.by_hand().iter().map(|set| (server_text(set), Vec::new())));
    parcels.push_back((END.to_owned(), Vec::new()));
    Ok(parcels)
}

/// The keys of the listeners' tickets.
fn tickets(plan: &Plan) -> Vec<(String, Vec<OwnedFd>)> {
    let listeners = plan.listeners.iter().filter_map(|listener| Some((listener, listener.tls.as_ref()?)));
    let secrets = listeners.map(|(listener, tls)| (listener, tls.ticket_secrets()));
    let own = secrets.filter(|(_, secrets)| !secrets.is_empty());
    own.map(|(listener, secrets)| (tickets_text(&listener.name, &secrets), Vec::new())).collect()
}
