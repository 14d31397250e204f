//! What the process tells whoever runs it as a service: `sd_notify(3)`, datagrams to a Unix socket.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::time::{ClockId, clock_gettime};

/// The way to the service's manager.
#[derive(Debug)]
pub struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl ServiceManager {
    /// `address` as `NOTIFY_SOCKET` says it: a path, or behind `@` a name without a file.
    ///
    /// # Errors
    /// When it is none, or no descriptor is left.
    pub fn at(address: &OsStr) -> io::Result<ServiceManager> {
        let address = match address.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(address)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(ServiceManager { socket, address })
    }

    /// Says something, a line for each variable. Never waits.
    ///
    /// # Errors
    /// When nobody hears it.
    pub fn tell(&self, variables: &str) -> io::Result<()> {
        self.socket.send_to_addr(variables.as_bytes(), &self.address).map(drop)
    }
}

/// The clock that such messages are ordered by, in microseconds.
pub fn monotonic_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_a_name_are_heard_at() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("notify");
        let name = format!("pointsman-test-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).expect("a name");
        let hears = [
            (path.clone().into_os_string(), UnixDatagram::bind(&path).expect("a writable folder")),
            (format!("@{name}").into(), UnixDatagram::bind_addr(&abstract_name).expect("a free name")),
        ];
        for (address, socket) in hears {
            let manager = ServiceManager::at(&address).expect("descriptors");
            manager.tell("READY=1\n").expect("somebody is there");
            let mut heard = [0; 64];
            let bytes = socket.recv(&mut heard).expect("it was sent");
            assert_eq!(&heard[..bytes], b"READY=1\n");
        }
        let nobody = ServiceManager::at(folder.path().join("nobody").as_os_str()).expect("descriptors");
        assert!(nobody.tell("READY=1\n").is_err());
    }
}
