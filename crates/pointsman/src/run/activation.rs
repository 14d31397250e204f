//! Sockets that systemd listens on for the switch (`LISTEN_FDS`): each belongs to the listener of its address.

use std::env::{self, VarError};
use std::os::fd::OwnedFd;

use listenfd::ListenFd;
use pointsman_relay::{Inherited, InheritedSocket};

use super::notice;

/// All that were given. What is no listening socket of streams is said to be of no use.
///
/// # Errors
/// With what to say, where they are more than a process can have: each would be looked at.
pub(super) fn sockets(descriptors_max: Option<u64>) -> Result<Inherited, String> {
    if let (Some(count), Some(max)) = (count(), descriptors_max)
        && count > max
    {
        return Err(format!("LISTEN_FDS={count}: this process can have {max} descriptors"));
    }
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
    Ok(Inherited::new(sockets))
}

/// How many sockets are said to be there for this process.
fn count() -> Option<u64> {
    let is_for_us = match env::var("LISTEN_PID") {
        Err(VarError::NotPresent) => true,
        Ok(pid) => pid.is_empty() || pid.parse() == Ok(std::process::id()),
        Err(VarError::NotUnicode(_)) => false,
    };
    env::var("LISTEN_FDS").ok().filter(|_| is_for_us)?.parse().ok()
}

fn socket(given: &mut ListenFd, number: usize) -> Option<OwnedFd> {
    let tcp = given.take_tcp_listener(number).ok().flatten().map(OwnedFd::from);
    tcp.or_else(|| given.take_unix_listener(number).ok().flatten().map(OwnedFd::from))
}
