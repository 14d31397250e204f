//! Shows the running switch and takes changes, on a listener of its own.
//!
//! It runs on the control thread: a scrape never stands between a request and its server. What can be asked is one
//! table (`routes.rs`), who may ask it is decided in one place (`access.rs`), and what is done then is for the
//! [`Pages`] that the binary gives.

mod access;
mod answers;
mod audit;
mod console;
mod conversation;
mod openapi;
mod page;
mod places;
mod route;
mod routes;
mod shape;
mod stream;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use pointsman_config::Admin;
use pointsman_net::{
    Acceptor, Account, BufferPool, Ipv6, Task, Timers, bind, bound_to, is_bound_to, is_free, spawn,
};

use crate::conversation::{Incoming, converse};
use crate::places::Places;

pub use access::Credentials;
pub use audit::{Audit, word};
pub use page::Page;
pub use route::Call;

/// Connections served at a time. For one more, that which has been silent longest is closed.
const CONNECTIONS_MAX: usize = 64;

/// What the admin listener shows and does.
pub trait Pages {
    /// What the configuration says of the listener now; absent where the last reload took its table away: then nothing
    /// can be changed.
    fn settings(&self) -> Option<Arc<Admin>>;

    /// Does what is asked, by somebody who may.
    fn answer(self: Rc<Self>, request: Request) -> Pin<Box<dyn Future<Output = Page>>>;

    /// Notes why a client was not let in, where somebody looks for the cause.
    fn note(&self, line: &dyn Fn() -> String);

    /// Keeps what was changed, or was to be.
    fn audit(&self, audit: &Audit<'_>);
}

/// What is asked of the switch.
#[derive(Debug)]
pub struct Request {
    /// Which of the routes.
    pub call: Call,
    /// What its path names, in order.
    pub names: Vec<String>,
    /// Those parameters that were given; the route knows all of them.
    pub query: Vec<(&'static str, String)>,
    /// The version that is to be changed, in whatever quotes.
    pub if_match: Option<String>,
    /// Its body.
    pub body: Vec<u8>,
    /// The name of the token, or the subject of the client certificate; absent where somebody reads without either.
    pub who: Option<String>,
    /// What they have shown: it was enough when the request came.
    pub credentials: Credentials,
}

impl Request {
    /// The first that its path names; empty where it names nothing.
    pub fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// What a parameter says.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    /// Whether a parameter says `true`.
    pub fn says(&self, name: &str) -> bool {
        self.parameter(name) == Some("true")
    }
}

/// Where the admin listener listens.
#[derive(Debug)]
pub struct Listening {
    /// Its port resolved.
    pub address: SocketAddr,
    asked: SocketAddr,
    socket: OwnedFd,
}

/// The admin listener while it accepts.
#[derive(Debug)]
pub struct Serving {
    listening: Listening,
    accepting: Task,
}

impl Listening {
    /// Listens on `address`.
    ///
    /// # Errors
    /// What the system says where it cannot be listened on.
    pub fn on(address: SocketAddr) -> io::Result<Listening> {
        if address.port() != 0 {
            is_free(address, Ipv6::Dual)?;
        }
        let bound = bind(address, Ipv6::Dual, 1)?;
        let socket = bound.sockets.into_iter().next().ok_or(io::ErrorKind::Unsupported)?;
        Ok(Listening { address: bound.address, asked: address, socket })
    }

    /// The same with a socket that this process was given for `address`: nothing where it listens elsewhere.
    pub fn given(address: SocketAddr, socket: OwnedFd) -> Option<Listening> {
        let bound = bound_to(&socket, address).ok()?;
        let is_there = address.port() == 0 || is_bound_to(&socket, address, Ipv6::Dual);
        is_there.then_some(Listening { address: bound, asked: address, socket })
    }
}

impl Serving {
    /// The address as it was asked for: port 0 is still 0.
    pub fn asked(&self) -> SocketAddr {
        self.listening.asked
    }

    /// Another descriptor of its socket.
    ///
    /// # Errors
    /// When there is none left.
    pub fn socket(&self) -> io::Result<OwnedFd> {
        self.listening.socket.try_clone()
    }

    /// Accepts nobody any more; who is there is served on.
    pub fn stop(self) {
        self.accepting.abort();
    }
}

/// Serves `pages` from now on.
///
/// # Errors
/// What the system says where it has no room for one more socket.
pub fn serve(listening: Listening, timers: &Timers, pages: Rc<dyn Pages>) -> io::Result<Serving> {
    let acceptor = Acceptor::new(listening.socket.try_clone()?)?;
    let accepting = spawn(accept_all(acceptor, timers.clone(), pages));
    Ok(Serving { listening, accepting })
}

async fn accept_all(acceptor: Acceptor, timers: Timers, pages: Rc<dyn Pages>) {
    let buffers = BufferPool::new(16 * 1024, 4, &Account::unlimited());
    let places = Places::new(CONNECTIONS_MAX);
    let mut pause = timers.deadline();
    loop {
        let Ok(tcp) = acceptor.accept().await else {
            let elapsed = pause.within(100, std::future::pending::<()>()).await;
            debug_assert!(elapsed.is_err());
            continue;
        };
        let Ok(Some(peer)) = tcp.peer() else { continue };
        let settings = pages.settings();
        // Where nobody is known a stranger is not even listened to: it could hold the places of those who may read.
        if !peer.ip().is_loopback() && settings.as_ref().is_none_or(|admin| admin.knows_nobody()) {
            continue;
        }
        let place = places.take().await;
        let client = Incoming { tcp, peer, tls: settings.and_then(|admin| admin.tls.clone()) };
        spawn(converse(client, place, timers.clone(), pages.clone(), buffers.clone()));
    }
}
