//! The listening sockets: which are open, for which listener, and what a new plan changes about them.

mod inherited;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use pointsman_config::{Bind, Listener};
use pointsman_net::{Ipv6, SocketFile, bind, bind_path, is_free, is_path_free};

use crate::live::{ListenerId, Live, SocketId};

pub use inherited::{Inherited, InheritedSocket, SocketLabel};

/// An address that cannot be listened on.
#[derive(Debug)]
pub struct BindFault {
    /// The listener's name.
    pub listener: Arc<str>,
    /// The address, or the path.
    pub address: Bind,
    /// What the system says.
    pub error: io::Error,
}

impl fmt::Display for BindFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "listener `{}` cannot listen on {}: {}", self.listener, self.address, self.error)
    }
}

impl std::error::Error for BindFault {}

/// Every socket that is listened on.
#[derive(Default)]
pub(crate) struct Sockets {
    open: Vec<OpenSocket>,
    /// How many numbers were given: none is given twice.
    numbered: u32,
}

struct OpenSocket {
    number: SocketId,
    listener: ListenerId,
    /// As the plan names it: port 0 stays 0.
    asked: Bind,
    address: Bind,
    /// What each thread accepts on, for as long as anybody is to connect. Whoever looks for the owner of a port
    /// finds it by these, and a thread that had no room for its own gets it again.
    ours: Vec<OwnedFd>,
    /// Whether these are one socket that all threads have.
    is_shared: bool,
    /// Of a path. It goes when nobody is to connect any more.
    file: Option<SocketFile>,
}

/// What was bound: the place, port 0 resolved, and a socket for each thread, or for as many as there are sockets.
struct Bound {
    address: Bind,
    sockets: Vec<OwnedFd>,
    is_shared: bool,
    file: Option<SocketFile>,
}

impl Sockets {
    /// Binds what `live` asks for and is not open yet. Sockets whose listener leaves the plan and whose
    /// address another listener now asks for go to that one, with the connections that wait on them: a
    /// listener can be renamed and nobody is turned away. What is `inherited` is not bound again.
    ///
    /// # Errors
    /// The first address that cannot be listened on; nothing has changed then.
    pub(crate) fn open(
        &mut self,
        live: &Live,
        threads: usize,
        inherited: &mut Inherited,
    ) -> Result<Vec<SocketId>, BindFault> {
        let before: Vec<_> = self.open.iter().map(|socket| socket.listener).collect();
        self.hand_over(live);
        let bound = self.bind_missing(live, threads, inherited).inspect_err(|_| {
            self.open.iter_mut().zip(before).for_each(|(socket, listener)| socket.listener = listener);
        })?;
        Ok(bound.into_iter().map(|(listener, asked, bound)| self.number(listener, asked, bound)).collect())
    }

    /// Closes our side of what `live` does not ask for, and returns it.
    pub(crate) fn close(&mut self, live: &Live) -> Vec<SocketId> {
        self.open.extract_if(.., |socket| !wants(live, socket)).map(|socket| socket.number).collect()
    }

    /// Closes our side of all: once the threads have closed theirs, clients are refused.
    pub(crate) fn close_ours(&mut self) {
        for socket in &mut self.open {
            socket.ours.clear();
            socket.file = None;
        }
    }

    /// The same where another process accepts on them from now on: nobody is refused.
    pub(crate) fn leave_ours(&mut self) {
        for socket in &mut self.open {
            socket.ours.clear();
            if let Some(file) = socket.file.take() {
                file.leave();
            }
        }
    }

    /// Each socket that is listened on, for another process to accept on.
    pub(crate) fn labelled(&self, live: &Live) -> Vec<(SocketLabel, &[OwnedFd])> {
        let labelled = |socket: &'_ OpenSocket| {
            let (listener, _) = live.listener(socket.listener)?;
            let (listener, asked) = (listener.name.to_string(), socket.asked.to_string());
            Some(SocketLabel { listener, asked, owns_file: socket.file.is_some() })
        };
        let different = |socket: &OpenSocket| if socket.is_shared { 1 } else { socket.ours.len() };
        let all = self.open.iter();
        all.filter_map(|socket| Some((labelled(socket)?, socket.ours.get(..different(socket))?))).collect()
    }

    /// What a thread accepts on, while it is open.
    pub(crate) fn of_thread(&self, number: SocketId, thread: usize) -> Option<&OwnedFd> {
        self.open.iter().find(|socket| socket.number == number)?.ours.get(thread)
    }

    /// Whom each socket accepts for.
    pub(crate) fn listeners(&self) -> HashMap<SocketId, ListenerId> {
        self.open.iter().map(|socket| (socket.number, socket.listener)).collect()
    }

    /// The addresses of a listener.
    pub(crate) fn of(&self, listener: ListenerId) -> Vec<Bind> {
        let mut addresses: Vec<Bind> = Vec::new();
        for socket in self.open.iter().filter(|socket| socket.listener == listener) {
            // Several rounds of sockets may have the same one.
            if !addresses.contains(&socket.address) {
                addresses.push(socket.address.clone());
            }
        }
        addresses
    }

    fn hand_over(&mut self, live: &Live) {
        // Port 0 is another port each time.
        let leaving = |socket: &&mut OpenSocket| !is_any_port(&socket.asked) && !wants(live, socket);
        for socket in self.open.iter_mut().filter(leaving) {
            let mut takers = live.listeners().filter(|(listener, _)| listener.binds.contains(&socket.asked));
            if let Some((_, taker)) = takers.next() {
                socket.listener = taker.id;
            }
        }
    }

    fn bind_missing(
        &self,
        live: &Live,
        threads: usize,
        inherited: &mut Inherited,
    ) -> Result<Vec<(ListenerId, Bind, Bound)>, BindFault> {
        let mut missing = Vec::new();
        for (listener, state) in live.listeners() {
            for asked in &listener.binds {
                if self.open.iter().any(|socket| socket.listener == state.id && socket.asked == *asked) {
                    continue;
                }
                let fault =
                    |error| BindFault { listener: listener.name.clone(), address: asked.clone(), error };
                let mut bound = inherited.take(listener, asked, threads).map_err(fault)?;
                if bound.is_empty() {
                    bound.push(self.bind(listener, asked, threads).map_err(fault)?);
                }
                missing.extend(bound.into_iter().map(|bound| (state.id, asked.clone(), bound)));
            }
        }
        Ok(missing)
    }

    fn bind(&self, listener: &Listener, asked: &Bind, threads: usize) -> io::Result<Bound> {
        match asked {
            Bind::Address(address) => {
                let ipv6 = ipv6(listener);
                // Ours is a second socket only while one listener takes an address over from another.
                let is_ours = self.open.iter().any(|socket| overlap(&socket.asked, asked));
                if address.port() != 0 && !is_ours {
                    is_free(*address, ipv6)?;
                }
                let bound = bind(*address, ipv6, threads)?;
                let address = Bind::Address(bound.address);
                Ok(Bound { address, sockets: bound.sockets, is_shared: false, file: None })
            }
            Bind::Unix(path) => {
                is_path_free(path)?;
                let (sockets, file) = bind_path(path, listener.unix_mode, threads)?;
                Ok(Bound { address: asked.clone(), sockets, is_shared: true, file: Some(file) })
            }
        }
    }

    fn number(&mut self, listener: ListenerId, asked: Bind, bound: Bound) -> SocketId {
        let number = SocketId(self.numbered);
        self.numbered += 1;
        let Bound { address, sockets, is_shared, file } = bound;
        self.open.push(OpenSocket { number, listener, asked, address, ours: sockets, is_shared, file });
        number
    }
}

fn ipv6(listener: &Listener) -> Ipv6 {
    if listener.ipv6_only { Ipv6::Only } else { Ipv6::Dual }
}

/// Whether the port is another one each time.
fn is_any_port(bind: &Bind) -> bool {
    bind.address().is_some_and(|address| address.port() == 0)
}

/// Whether sockets on these addresses would take each other's connections.
fn overlap(one: &Bind, other: &Bind) -> bool {
    let (Some(one), Some(other)) = (one.address(), other.address()) else { return false };
    one.port() == other.port()
        && (one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified())
}

fn wants(live: &Live, socket: &OpenSocket) -> bool {
    live.listener(socket.listener).is_some_and(|(listener, _)| listener.binds.contains(&socket.asked))
}
