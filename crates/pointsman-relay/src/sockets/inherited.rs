//! Listening sockets that were open before this process: of the one whose place it takes, or of whoever started it.

use std::io;
use std::os::fd::OwnedFd;

use pointsman_config::{Bind, Listener};
use pointsman_net::{SocketFile, adopt, bind_beside, bound_to, is_bound_to, is_bound_to_path, is_shared};

use super::{Bound, ipv6, is_any_port};

/// Sockets that nobody accepts on yet. Each listener takes those that are its own.
#[derive(Debug, Default)]
pub struct Inherited(Vec<InheritedSocket>);

/// One of them.
#[derive(Debug)]
pub struct InheritedSocket {
    /// Whose it was, where that is known.
    pub label: Option<SocketLabel>,
    /// Bound, and listened on.
    pub socket: OwnedFd,
}

/// What a socket was open for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketLabel {
    /// The listener's name.
    pub listener: String,
    /// The address or path as its configuration named it: port 0 stayed 0.
    pub asked: String,
    /// Whether the switch has made the file of it, and is to remove it.
    pub owns_file: bool,
}

impl Inherited {
    /// All that there are.
    pub fn new(sockets: Vec<InheritedSocket>) -> Inherited {
        Inherited(sockets)
    }

    /// What a listener has of it at one of its addresses, with more beside it where there are more threads.
    pub(super) fn take(
        &mut self,
        listener: &Listener,
        asked: &Bind,
        threads: usize,
    ) -> io::Result<Option<Bound>> {
        let mut taken: Vec<_> = self.0.extract_if(.., |one| one.is_for(&listener.name, asked)).collect();
        if taken.is_empty() {
            // A listener may have another name now.
            taken = self.0.extract_if(.., |one| is_at(&one.socket, listener, asked)).collect();
        }
        // What it takes has changed: these would refuse whom it is to serve, or the other way round.
        taken.retain(|one| is_any_port(asked) || is_at(&one.socket, listener, asked));
        let Some(first) = taken.first() else { return Ok(None) };
        let owns_file = first.label.as_ref().is_some_and(|label| label.owns_file);
        let file = match asked {
            Bind::Unix(path) if owns_file => Some(SocketFile::adopt(path)?),
            Bind::Unix(_) | Bind::Address(_) => None,
        };
        let address = match asked {
            Bind::Unix(_) => asked.clone(),
            Bind::Address(asked) => Bind::Address(bound_to(&first.socket, *asked)?),
        };
        let is_shared = is_shared(&first.socket)?;
        let mut sockets: Vec<_> = taken.into_iter().map(|one| one.socket).collect();
        sockets.iter().try_for_each(adopt)?;
        while !is_shared && sockets.len() < threads {
            sockets.push(bind_beside(&sockets[0], ipv6(listener))?);
        }
        Ok(Some(Bound { address, sockets, is_shared, file }))
    }
}

impl InheritedSocket {
    fn is_for(&self, name: &str, asked: &Bind) -> bool {
        self.label.as_ref().is_some_and(|label| label.listener == name && label.asked == asked.to_string())
    }
}

/// Whether a socket is where a listener is to listen, and takes what it is to take.
fn is_at(socket: &OwnedFd, listener: &Listener, asked: &Bind) -> bool {
    match asked {
        Bind::Address(address) => is_bound_to(socket, *address, ipv6(listener)),
        Bind::Unix(path) => is_bound_to_path(socket, path),
    }
}
