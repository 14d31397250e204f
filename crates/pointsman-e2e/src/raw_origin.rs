//! A server of plain sockets: for bodies too large to be recorded, and for servers that do not behave.

use std::io::Result;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use socket2::{Domain, Socket, Type};

use crate::{PATIENCE, read_some};

/// A server behind the switch that keeps nothing of what it is sent. It stops when it is dropped.
pub struct RawOrigin {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    connections: AtomicUsize,
    sockets: Mutex<Vec<TcpStream>>,
}

impl RawOrigin {
    /// Calls `serve` with each connection and its number, from 0, on a thread of its own.
    ///
    /// # Panics
    /// When no port is free.
    #[must_use]
    pub fn serving(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Self {
        let serve = Arc::new(serve);
        Self::accepting(move |socket, number, _| {
            let serve = serve.clone();
            std::thread::spawn(move || serve(socket, number));
        })
    }

    /// Takes every connection and never reads or says anything.
    ///
    /// # Panics
    /// When no port is free.
    #[must_use]
    pub fn silent() -> Self {
        Self::accepting(|socket, _, shared| shared.lock().push(socket))
    }

    fn accepting(take: impl Fn(TcpStream, usize, &Shared) + Send + 'static) -> Self {
        let listener = listen();
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared::default());
        let origin = Self { address, shared: shared.clone() };
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if shared.stop.load(Ordering::SeqCst) {
                    return;
                }
                socket.set_read_timeout(Some(PATIENCE * 6)).expect("an open socket");
                let number = shared.connections.fetch_add(1, Ordering::SeqCst);
                take(socket, number, &shared);
            }
        });
        origin
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<TcpStream>> {
        self.sockets.lock().expect("no panic under the lock")
    }
}

impl Drop for RawOrigin {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then sees the flag; if that fails it is gone already.
        drop(TcpStream::connect(self.address));
        for socket in self.shared.lock().drain(..) {
            drop(socket.shutdown(Shutdown::Both));
        }
    }
}

/// Connections that wait to be accepted by a server of a test; the kernel cuts it to `net.core.somaxconn`. The
/// 128 of the standard library overflow when a crowd arrives, and then the kernel drops an attempt to connect
/// and makes the next one after 1 and 3 seconds: with `connect_ms_max` at 3 seconds one in some thousand met a
/// 504 that was the server's doing.
const WAITING_MAX: i32 = 4096;

/// Listens on a free port of the loopback.
///
/// # Panics
/// When no port is free.
pub(crate) fn listen() -> TcpListener {
    listen_on(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port")
}

/// The same on an address, if it is free.
///
/// # Panics
/// Without a descriptor.
pub(crate) fn listen_on(address: SocketAddr) -> Option<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).expect("a descriptor");
    socket.bind(&address.into()).ok()?;
    socket.listen(WAITING_MAX).ok()?;
    Some(socket.into())
}

/// Reads to the end of a head; returns it, and what came of the body with it. Nothing when the connection ends
/// before.
#[must_use]
pub fn read_head(socket: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let (mut came, mut space) = (Vec::new(), [0; 16 * 1024]);
    loop {
        if let Some(end) = came.windows(4).position(|four| four == b"\r\n\r\n") {
            let body = came.split_off(end + 4);
            return Some((String::from_utf8_lossy(&came).into_owned(), body));
        }
        match read_some(socket, &mut space) {
            Ok(count @ 1..) => came.extend_from_slice(&space[..count]),
            _ => return None,
        }
    }
}
