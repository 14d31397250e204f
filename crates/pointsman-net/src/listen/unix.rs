//! Listening on a path: a Unix socket, which is a file as long as somebody listens.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use socket2::{Domain, SockAddr, Socket, Type};

use super::BACKLOG;

/// Bytes of the longest path that a socket may have (`sun_path` of `unix(7)`, without its end).
pub const PATH_BYTES_MAX: usize = 107;

/// The file of a socket that is listened on. It is removed when this is dropped, if it is still the same one.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Its device and its number there.
    identity: (u64, u64),
}

impl SocketFile {
    /// The file of a socket that this process was handed, which is now its to remove.
    ///
    /// # Errors
    /// When it is not there any more.
    pub fn adopt(path: &Path) -> io::Result<SocketFile> {
        Ok(SocketFile { path: path.to_owned(), identity: identity(path)? })
    }

    /// Leaves the file where it is: another process has the socket now.
    pub fn leave(mut self) {
        self.path.clear();
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // Whoever comes next finds that nobody listens there, and takes its place.
            let (Ok(()) | Err(_)) = fs::remove_file(&self.path);
        }
    }
}

/// Whether a socket can be made at `path`: nothing is there, or a socket on which nobody listens.
///
/// # Errors
/// Somebody listens there, or something else is there, which is not ours to remove.
pub fn is_path_free(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "something that is no socket is there"));
        }
        Ok(_) => {}
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    match socket.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        // Also where its queue is full.
        Ok(()) | Err(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

/// Listens on `path`, with the permissions `mode`. All threads accept on the one socket: each connection is for whoever
/// takes it first. A socket that nobody listens on is replaced; ask [`is_path_free`] before.
pub fn bind_path(path: &Path, mode: u32) -> io::Result<(OwnedFd, SocketFile)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    // The file takes its permissions from the socket, less those of the process' mask: nobody gets in meanwhile.
    fchmod(&socket, Mode::from_raw_mode(mode))?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile { path: path.to_owned(), identity: identity(path)? };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    socket.listen(BACKLOG)?;
    Ok((socket.into(), file))
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    #[test]
    fn a_socket_has_its_permissions_and_goes_with_its_owner() {
        let folder = folder();
        let path = folder.path().join("a.sock");
        is_path_free(&path).expect("nothing is there");
        let (_socket, file) = bind_path(&path, 0o622).expect("a writable folder");
        assert_eq!(fs::metadata(&path).expect("it is there").mode() & 0o777, 0o622);
        assert_eq!(is_path_free(&path).expect_err("somebody listens").kind(), io::ErrorKind::AddrInUse);
        UnixStream::connect(&path).expect("it listens");
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_dead_process_left_is_replaced_and_nothing_else() {
        let folder = folder();
        let path = folder.path().join("a.sock");
        drop(UnixListener::bind(&path).expect("a writable folder"));
        is_path_free(&path).expect("nobody listens");
        let (_socket, file) = bind_path(&path, 0o600).expect("it is replaced");
        fs::remove_file(&path).expect("it is there");
        fs::write(&path, "somebody else's").expect("a writable folder");
        drop(file);
        assert!(path.exists(), "it is not ours");
        assert_eq!(is_path_free(&path).expect_err("no socket").kind(), io::ErrorKind::AlreadyExists);
    }
}
