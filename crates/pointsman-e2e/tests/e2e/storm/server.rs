//! A server that can be killed, stalled, slowed and started again, at one address.

use std::io::{Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pointsman_e2e::{Origin, read_head};
use socket2::{Domain, SockRef, Socket, Type};

/// How a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Up,
    /// It waits so long before each piece that it sends.
    Slow(Duration),
    /// It takes connections and requests, and says nothing, as a process that is stopped.
    Stalled,
    /// Its connections are closed, in order or by a reset, and nobody listens.
    Dead,
}

pub(super) struct Server {
    name: String,
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

/// A look at a server.
pub(super) struct Watch {
    name: String,
    shared: Arc<Shared>,
}

impl Watch {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Since when it is up, if it is.
    pub(super) fn up_since(&self) -> Option<Instant> {
        self.shared.lock().up_since
    }
}

struct Shared {
    now: Mutex<Now>,
    changed: Condvar,
}

struct Now {
    state: State,
    /// When it last became [`State::Up`]; nothing while it is otherwise.
    up_since: Option<Instant>,
    /// A life ends with each kill: what belongs to an earlier one ends, too.
    life: u64,
    connections: Vec<Weak<TcpStream>>,
}

impl Server {
    /// One that is up.
    pub(super) fn start(name: &str) -> Self {
        let now = Now { state: State::Dead, up_since: None, life: 0, connections: Vec::new() };
        let shared = Arc::new(Shared { now: Mutex::new(now), changed: Condvar::new() });
        let mut server =
            Self { name: name.to_owned(), address: Origin::free_address(), shared, accepting: None };
        server.become_so(State::Up, false);
        server
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows others how it is.
    pub(super) fn watch(&self) -> Watch {
        Watch { name: self.name.clone(), shared: self.shared.clone() }
    }

    /// Since when it is up, if it is.
    pub(super) fn up_since(&self) -> Option<Instant> {
        self.shared.lock().up_since
    }

    pub(super) fn is(&self, state: State) -> bool {
        self.shared.lock().state == state
    }

    /// Changes it. One that dies resets its connections where `resets`, and closes them in order otherwise.
    pub(super) fn become_so(&mut self, state: State, resets: bool) {
        let was_dead = self.is(State::Dead);
        let (life, connections) = {
            let mut now = self.shared.lock();
            now.state = state;
            now.up_since = (state == State::Up).then(Instant::now);
            let mut connections = Vec::new();
            if state == State::Dead {
                now.life += 1;
                connections = std::mem::take(&mut now.connections);
            }
            (now.life, connections)
        };
        self.shared.changed.notify_all();
        if state == State::Dead {
            self.stop_listening();
            for connection in connections.iter().filter_map(Weak::upgrade) {
                end(&connection, resets);
            }
        } else if was_dead {
            self.listen(life);
        }
    }

    fn listen(&mut self, life: u64) {
        let listener = bind(self.address).expect("its own port is free again");
        let (name, shared) = (self.name.clone(), self.shared.clone());
        let accepting = move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let socket = Arc::new(socket);
                {
                    let mut now = shared.lock();
                    if now.life != life {
                        return;
                    }
                    now.connections.retain(|connection| connection.strong_count() > 0);
                    now.connections.push(Arc::downgrade(&socket));
                }
                let (name, shared) = (name.clone(), shared.clone());
                std::thread::spawn(move || serve(&name, &socket, life, &shared));
            }
        };
        self.accepting = Some(std::thread::spawn(accepting));
    }

    fn stop_listening(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        // Wakes it, so that it sees that this life is over.
        drop(TcpStream::connect(self.address));
        accepting.join().expect("it accepts only");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.become_so(State::Dead, false);
    }
}

impl Shared {
    /// Waits until a piece may be sent; false when this life is over.
    fn may_send(&self, life: u64) -> bool {
        let mut now = self.lock();
        let begun = Instant::now();
        loop {
            let waits = match now.state {
                _ if now.life != life => return false,
                State::Up => return true,
                State::Slow(delay) => match delay.checked_sub(begun.elapsed()) {
                    Some(rest) => rest,
                    None => return true,
                },
                State::Stalled | State::Dead => Duration::from_secs(3600),
            };
            now = self.changed.wait_timeout(now, waits).expect("no panic under the lock").0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().expect("no panic under the lock")
    }
}

/// Answers requests, each with what [`body`] says of its target, in pieces.
fn serve(name: &str, socket: &TcpStream, life: u64, shared: &Shared) {
    drop(socket.set_nodelay(true));
    let Ok(mut input) = socket.try_clone() else { return };
    while let Some((head, mut came)) = read_head(&mut input) {
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let wanted: usize = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok())
            .unwrap_or_default();
        let mut space = [0; 16 * 1024];
        while came.len() < wanted {
            match input.read(&mut space) {
                Ok(count @ 1..) => came.extend_from_slice(&space[..count]),
                _ => return,
            }
        }
        if say(name, (method, target), socket, &|| shared.may_send(life)).is_err() {
            return;
        }
    }
}

fn say(
    name: &str,
    (method, target): (&str, &str),
    mut socket: &TcpStream,
    may_send: &dyn Fn() -> bool,
) -> Result<()> {
    const PIECE: usize = 8 * 1024;
    let over = || std::io::Error::other("this life is over");
    let body = body(name, target);
    let is_chunked = body.len() % 2 == 1;
    let framing = match is_chunked {
        true => "Transfer-Encoding: chunked".to_owned(),
        false => format!("Content-Length: {}", body.len()),
    };
    let head = format!("HTTP/1.1 200 OK\r\nX-Server: {name}\r\n{framing}\r\n\r\n");
    may_send().then_some(()).ok_or_else(over)?;
    socket.write_all(head.as_bytes())?;
    if method == "HEAD" {
        return Ok(());
    }
    for piece in body.chunks(PIECE) {
        may_send().then_some(()).ok_or_else(over)?;
        if is_chunked {
            socket.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
        }
        socket.write_all(piece)?;
        if is_chunked {
            socket.write_all(b"\r\n")?;
        }
    }
    if is_chunked {
        socket.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}

/// What a server says to a target, `/LENGTH/NUMBER`: bytes that no other request and no other server has.
pub(super) fn body(name: &str, target: &str) -> Vec<u8> {
    let length = target.split('/').nth(1).and_then(|length| length.parse().ok()).unwrap_or(0);
    let sentence = format!("{name} {target} ");
    sentence.bytes().cycle().take(length).collect()
}

fn bind(address: SocketAddr) -> Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    Ok(socket.into())
}

/// The far end may have been quicker.
fn end(connection: &TcpStream, resets: bool) {
    if resets {
        drop(SockRef::from(connection).set_linger(Some(Duration::ZERO)));
        // Wakes who reads, and whose close is then a reset.
        drop(connection.shutdown(Shutdown::Read));
    } else {
        drop(connection.shutdown(Shutdown::Both));
    }
}
