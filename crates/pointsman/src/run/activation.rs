//! Sockets that systemd listens on for the switch (`LISTEN_FDS`): each belongs to the listener of its address.

use std::os::fd::OwnedFd;

use listenfd::ListenFd;
use pointsman_relay::{Inherited, InheritedSocket};

use super::notice;

/// All that were given. What is no listening socket of streams is said to be of no use.
pub(super) fn sockets() -> Inherited {
    let mut given = ListenFd::from_env();
    let mut sockets = Vec::new();
    for number in 0..given.len() {
        match socket(&mut given, number) {
            Some(socket) => sockets.push(InheritedSocket { label: None, socket }),
            None => notice::warn(&format!(
                "warning: the socket {number} of LISTEN_FDS is of no use: no stream listens there"
            )),
        }
    }
    Inherited::new(sockets)
}

fn socket(given: &mut ListenFd, number: usize) -> Option<OwnedFd> {
    let tcp = given.take_tcp_listener(number).ok().flatten().map(OwnedFd::from);
    tcp.or_else(|| given.take_unix_listener(number).ok().flatten().map(OwnedFd::from))
}
