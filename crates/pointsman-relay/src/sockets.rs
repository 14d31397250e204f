//! The listening sockets: which are open, for which listener, who accepts on them, and what a new plan changes about that.

mod inherited;
mod owners;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use pointsman_config::{Bind, Listener};
use pointsman_net::{Ipv6, SocketFile, bind, bind_beside, bind_path, is_free, is_path_free};

use crate::live::{ListenerId, Live, SocketId};

pub use inherited::{Inherited, InheritedSocket, SocketLabel};

use owners::owners;

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
    /// What threads accept on, for as long as anybody is to connect. Whoever looks for the owner of a port finds it by
    /// this, and a thread that had no room for its own gets it again.
    ours: Option<OwnedFd>,
    /// Whether all threads accept on it. Of the other kind there are as many on one address as there are threads, or
    /// more, and each has one owner.
    is_shared: bool,
    /// Who accepts on it.
    threads: Vec<usize>,
    /// Of a path. It goes when nobody is to connect any more.
    file: Option<SocketFile>,
}

/// What was bound: the place, port 0 resolved, and the sockets there.
struct Bound {
    address: Bind,
    sockets: Vec<OwnedFd>,
    is_shared: bool,
    file: Option<SocketFile>,
}

/// A socket on which another thread is to accept.
pub(crate) struct Move {
    pub(crate) socket: SocketId,
    /// Who is not to, from then on, where that thread stays.
    pub(crate) from: Option<usize>,
    pub(crate) to: usize,
}

impl Sockets {
    /// Binds what `live` asks for and is not open yet, also where these are more threads. Sockets whose listener leaves
    /// the plan and whose address another listener now asks for go to that one, with the connections that wait on them: a
    /// listener can be renamed and nobody is turned away. What is `inherited` is not bound again. Nobody accepts on what
    /// is new before [`Sockets::share_out`].
    ///
    /// # Errors
    /// The first address that cannot be listened on; nothing has changed then.
    pub(crate) fn open(
        &mut self,
        live: &Live,
        threads: usize,
        inherited: &mut Inherited,
    ) -> Result<(), BindFault> {
        let before: Vec<_> = self.open.iter().map(|socket| socket.listener).collect();
        self.hand_over(live);
        let bound = self.bind_missing(live, threads, inherited).inspect_err(|_| {
            self.open.iter_mut().zip(before).for_each(|(socket, listener)| socket.listener = listener);
        })?;
        bound.into_iter().for_each(|(listener, asked, bound)| self.number(listener, asked, bound));
        Ok(())
    }

    /// Gives each of these threads its sockets, and says what is another thread's now.
    pub(crate) fn share_out(&mut self, team: &[usize]) -> Vec<Move> {
        let mut moves = Vec::new();
        for socket in self.open.iter_mut().filter(|socket| socket.is_shared) {
            let new = team.iter().filter(|thread| !socket.threads.contains(thread));
            moves.extend(new.map(|&to| Move { socket: socket.number, from: None, to }));
            socket.threads = team.to_vec();
        }
        for at in 0..self.open.len() {
            let (listener, address) = (self.open[at].listener, self.open[at].address.clone());
            let is_here = |socket: &OpenSocket| {
                !socket.is_shared && socket.listener == listener && socket.address == address
            };
            // Each address at its first socket.
            if !is_here(&self.open[at]) || self.open[..at].iter().any(is_here) {
                continue;
            }
            let here = || self.open.iter().filter(|socket| is_here(socket));
            let owners =
                owners(&here().map(|socket| socket.threads.first().copied()).collect::<Vec<_>>(), team);
            for (socket, to) in self.open.iter_mut().filter(|socket| is_here(socket)).zip(owners) {
                let from = socket.threads.first().copied();
                if from != Some(to) {
                    let from = from.filter(|from| team.contains(from));
                    moves.push(Move { socket: socket.number, from, to });
                    socket.threads = vec![to];
                }
            }
        }
        moves
    }

    /// Closes our side of what `live` does not ask for, and returns it.
    pub(crate) fn close(&mut self, live: &Live) -> Vec<SocketId> {
        self.open.extract_if(.., |socket| !wants(live, socket)).map(|socket| socket.number).collect()
    }

    /// Closes our side of all: once the threads have closed theirs, clients are refused.
    pub(crate) fn close_ours(&mut self) {
        for socket in &mut self.open {
            socket.ours = None;
            socket.file = None;
        }
    }

    /// The same where another process accepts on them from now on: nobody is refused.
    pub(crate) fn leave_ours(&mut self) {
        for socket in &mut self.open {
            socket.ours = None;
            if let Some(file) = socket.file.take() {
                file.leave();
            }
        }
    }

    /// Each socket that is listened on, for another process to accept on.
    pub(crate) fn labelled(&self, live: &Live) -> Vec<(SocketLabel, Vec<&OwnedFd>)> {
        let mut labelled: Vec<(SocketLabel, Vec<&OwnedFd>)> = Vec::new();
        for socket in &self.open {
            let Some(((listener, _), ours)) = live.listener(socket.listener).zip(socket.ours.as_ref()) else {
                continue;
            };
            let (listener, asked) = (listener.name.to_string(), socket.asked.to_string());
            let label = SocketLabel { listener, asked, owns_file: socket.file.is_some() };
            match labelled.iter_mut().find(|(other, _)| *other == label) {
                Some((_, sockets)) => sockets.push(ours),
                None => labelled.push((label, vec![ours])),
            }
        }
        labelled
    }

    /// What a thread accepts on, while it is open.
    pub(crate) fn of_thread(&self, number: SocketId, thread: usize) -> Option<&OwnedFd> {
        let is_it = |socket: &&OpenSocket| socket.number == number && socket.threads.contains(&thread);
        self.open.iter().find(is_it)?.ours.as_ref()
    }

    /// Whom each socket accepts for.
    pub(crate) fn listeners(&self) -> HashMap<SocketId, ListenerId> {
        self.open.iter().map(|socket| (socket.number, socket.listener)).collect()
    }

    /// The addresses of a listener.
    pub(crate) fn of(&self, listener: ListenerId) -> Vec<Bind> {
        let mut addresses: Vec<Bind> = Vec::new();
        for socket in self.open.iter().filter(|socket| socket.listener == listener) {
            // Each thread has one there.
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
                let fault =
                    |error| BindFault { listener: listener.name.clone(), address: asked.clone(), error };
                let is_here = |socket: &&OpenSocket| socket.listener == state.id && socket.asked == *asked;
                let bound = match self.open.iter().find(is_here) {
                    Some(one) => {
                        let count = self.open.iter().filter(is_here).count();
                        one.bind_beside(ipv6(listener), threads.saturating_sub(count)).map_err(fault)?
                    }
                    None => match inherited.take(listener, asked, threads).map_err(fault)? {
                        Some(bound) => bound,
                        None => self.bind(listener, asked, threads).map_err(fault)?,
                    },
                };
                missing.push((state.id, asked.clone(), bound));
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
                let (socket, file) = bind_path(path, listener.unix_mode)?;
                let (address, sockets) = (asked.clone(), vec![socket]);
                Ok(Bound { address, sockets, is_shared: true, file: Some(file) })
            }
        }
    }

    fn number(&mut self, listener: ListenerId, asked: Bind, bound: Bound) {
        let Bound { address, sockets, is_shared, mut file } = bound;
        for socket in sockets {
            let number = SocketId(self.numbered);
            self.numbered += 1;
            self.open.push(OpenSocket {
                number,
                listener,
                asked: asked.clone(),
                address: address.clone(),
                ours: Some(socket),
                is_shared,
                threads: Vec::new(),
                file: file.take(),
            });
        }
    }
}

impl OpenSocket {
    /// So many more on the same address, for threads that have none there.
    fn bind_beside(&self, ipv6: Ipv6, count: usize) -> io::Result<Bound> {
        let count = if self.is_shared { 0 } else { count };
        let one = self.ours.as_ref().ok_or(io::ErrorKind::NotConnected);
        let sockets = (0..count).map(|_| bind_beside(one?, ipv6)).collect::<io::Result<_>>()?;
        Ok(Bound { address: self.address.clone(), sockets, is_shared: self.is_shared, file: None })
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
