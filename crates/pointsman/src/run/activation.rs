//! Sockets that systemd listens on for the switch (`LISTEN_FDS`): each belongs to the listener of its address.
//!
//! A number in the environment is a claim. It is believed where it is about this process (sd_listen_fds(3)), and of descriptors
//! that came with it: those that this process has opened itself would have two owners.

use std::env;
use std::os::fd::OwnedFd;

use listenfd::ListenFd;
use pointsman_relay::{Inherited, InheritedSocket};
use rustix::fs::OFlags;

use super::notice;

/// All that were given. What is no listening socket of streams is said to be of no use.
///
/// # Errors
/// With what to say, where they are more than a process can have: each would be looked at.
pub(super) fn sockets(descriptors_max: Option<u64>) -> Result<Inherited, String> {
    if !is_for_us() {
        return Ok(Inherited::new(Vec::new()));
    }
    let count = env::var("LISTEN_FDS").ok().and_then(|count| count.parse::<u64>().ok());
    if let (Some(count), Some(max)) = (count, descriptors_max)
        && count > max
    {
        return Err(format!("LISTEN_FDS={count}: this process can have {max} descriptors"));
    }
    let first = env::var("LISTEN_FDS_FIRST_FD").ok().and_then(|first| first.parse().ok()).unwrap_or(FIRST);
    let mut given = ListenFd::from_env();
    let mut sockets = Vec::new();
    for number in 0..given.len() {
        let taken = came_with_us(first + number).then(|| socket(&mut given, number)).flatten();
        match taken {
            Some(socket) => sockets.push(InheritedSocket { label: None, socket }),
            None => notice::warn(&format!(
                "warning: the socket {number} of LISTEN_FDS is of no use: no stream listens there"
            )),
        }
    }
    Ok(Inherited::new(sockets))
}

/// The first descriptor that systemd gives.
const FIRST: usize = 3;

/// Whether the variables are about this process. Those of another one are what its children find in their environment.
fn is_for_us() -> bool {
    let pid = env::var_os("LISTEN_PID").filter(|pid| !pid.is_empty());
    if pid.is_none() && env::var_os("LISTEN_FDS").is_some_and(|count| !count.is_empty()) {
        let own = std::process::id();
        notice::warn(&format!(
            "warning: LISTEN_FDS is of no use without LISTEN_PID, and no socket is taken\n\
             help: who hands sockets over sets LISTEN_PID to the process that they are for, which is {own} here"
        ));
    }
    pid.and_then(|pid| pid.to_str()?.parse().ok()) == Some(std::process::id())
}

/// Whether a descriptor was open when this program began. What it opens itself ends with the next one (`O_CLOEXEC`), and
/// what has come through the begin of a program cannot be marked so.
fn came_with_us(descriptor: usize) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/thread-self/fdinfo/{descriptor}")) else {
        return false;
    };
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & OFlags::CLOEXEC.bits() == 0)
}

fn socket(given: &mut ListenFd, number: usize) -> Option<OwnedFd> {
    let tcp = given.take_tcp_listener(number).ok().flatten().map(OwnedFd::from);
    tcp.or_else(|| given.take_unix_listener(number).ok().flatten().map(OwnedFd::from))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::came_with_us;

    #[test]
    fn what_is_opened_here_did_not_come_with_us() {
        let own = std::fs::File::open("/dev/null").expect("it is there");
        assert!(!came_with_us(own.as_raw_fd().try_into().expect("a number")));
        assert!(!came_with_us(usize::MAX));
        // Standard error was open before.
        assert!(came_with_us(2));
    }
}
