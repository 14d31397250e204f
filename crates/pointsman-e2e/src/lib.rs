//! Starts the real binary on port 0 and talks to it as clients and servers do.
//!
//! A test is a [`Setup`] (what the operator writes), some [`Origin`]s (the servers behind), a
//! [`Client`], and what they must see. Where only bytes matter it is a [`dialogue`] in a text file.
//!
//! Invariants: nothing here uses code of the switch, so that an error of its parser cannot hide
//! itself; nothing sleeps; every wait has the deadline [`PATIENCE`].

mod bench_agent;
mod binary;
mod browser;
mod certificates;
mod client;
pub mod dialogue;
mod figures;
mod front;
mod h2_asks;
mod h2_origin;
mod h2_windows;
pub mod h2_wire;
mod hpack;
mod lines;
mod name_server;
mod nginx;
mod null_server;
mod openssl_client;
mod openssl_server;
mod origin;
mod pattern;
mod peer;
mod process;
mod random;
mod raw_origin;
mod setup;
mod soft_token;
mod succession;
mod switch;
mod tls;
mod tls_server;
mod vectors;
mod websocket;
mod wire;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

pub use bench_agent::BenchAgent;
pub use binary::{Finished, ends, folder, installed, pointsman, program, skipped, tool, workspace};
pub use browser::Browser;
pub use certificates::{Authority, Pair, sha256_hex};
pub use client::{Client, Response, is_closed};
pub use figures::{Bound, Unit, figure, scale};
pub use front::{FRONT_NAME, Front};
pub use h2_origin::{H2Origin, H2Peer, H2Request};
pub use h2_wire::{Frame, H2Answer, H2Client, Outcome};
pub use hpack::{Decoder, Field, literal};
pub use lines::Lines;
pub use name_server::{Manner, NameServer};
pub use nginx::{Nginx, installed_nginx_passes};
pub use null_server::NullServer;
pub use openssl_client::{OpensslClient, Seen};
pub use openssl_server::OpensslServer;
pub use origin::{Exchange, Origin, Request, Then, echo, ok};
pub use pattern::Pattern;
pub use peer::{Peer, axe_script, peers_installed, run_peer, run_schemathesis, without_netlink};
pub use process::{descriptors_of, descriptors_of_this_process};
pub use random::Random;
pub use raw_origin::{RawOrigin, read_head};
pub use setup::{ADMIN_TOKEN, Setup};
pub use soft_token::SoftToken;
pub use switch::{Switch, kill};
pub use tls::TlsClient;
pub use tls_server::{Shaken, TlsServer};
pub use vectors::{Refused, read_lines, refused, testdata, unescape};
pub use websocket::websocket_accept;
pub use wire::{Body, Framing, Head, Reader, read_some};

/// How long anything may take before a test calls it a hang. Long, because machines that run tests
/// are busy; no test waits for it when all is well.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Sets a flag when it is dropped, at the end of a scope and also when the scope panics. A scope waits for its threads
/// before the panic goes on, and threads that run until a flag is set would hide it for ever.
#[derive(Debug)]
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether the switch speaks HTTP/2 with clients: what tests ask of it in HTTP/2 they ask only then. A test holds
/// this to what the binary does.
pub const SPEAKS_HTTP2: bool = true;

/// The same of WebSocket, and whatever else a client asks to upgrade to.
pub const SPEAKS_WEBSOCKET: bool = true;

/// Looks again and again until something is seen, without sleeping.
///
/// # Panics
/// When it is not seen in time.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    // Longer than for an answer: it may take a crowd, and its deadlines, to get there.
    let end = Instant::now() + 6 * PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < end, "waited for {what}");
        std::thread::yield_now();
    }
}

/// Lets time pass for others.
pub fn pause(lasts: Duration) {
    let (_silent, nothing) = channel::<()>();
    nothing.recv_timeout(lasts).unwrap_or_default();
}

/// Makes two tests of each named `fn(threads: usize)`: with one event-loop thread and with four.
#[macro_export]
macro_rules! for_threads {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            #[test]
            fn threads_1() {
                super::$name(1);
            }

            #[test]
            fn threads_4() {
                super::$name(4);
            }
        }
    )*};
}
