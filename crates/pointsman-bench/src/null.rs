//! A server that does nothing but answer: the ceiling of a generator, and servers of known behaviour for tests.

mod http2;
mod peer;

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, ServerConnection};
use serde::{Deserialize, Serialize};
use slab::Slab;

use self::peer::{Answers, Peer};
use crate::Fault;
use crate::arrivals::exponential;
use crate::clock::{SECOND_NS, now_ns};
use crate::poller::{Poller, Ready};

/// How soon it notices that it is to end.
const LOOK_NS: u64 = SECOND_NS / 20;
/// Of those who were not read to the end so many have a turn before the kernel is asked again what has come.
const UNREAD_A_ROUND: usize = 4;
/// The listener's number among the sockets.
const LISTENER: usize = u32::MAX as usize - 1;

/// How a null server behaves. In HTTP/1.1 a request for `/bytes/N` is answered with N bytes, up to a GiB, whatever is usual.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    /// Bytes of each answer's body.
    pub body_bytes: usize,
    /// At most so many answers a second; `None`: as many as it can.
    pub capacity: Option<f64>,
    /// How it takes its time where it has a capacity.
    pub service: Service,
    /// What draws of exponential times begin with.
    pub seed: u64,
    /// Once behind so many requests it does nothing at all for so long.
    pub stall: Option<(u64, Duration)>,
    /// It ends each connection behind its answer.
    pub closes: bool,
    /// It speaks TLS.
    pub tls: Option<NullTls>,
}

/// How a server with a capacity takes its time; requests are served one after the other as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// Each the same: under Poisson arrivals M/D/1.
    #[default]
    Constant,
    /// Exponential times: M/M/1.
    Exponential,
    /// No time at all, and 503 for what comes above the capacity: a bucket of tokens that holds a tenth of a second of it.
    Limiter,
}

/// TLS of a null server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NullTls {
    /// The certificate's chain, as PEM.
    pub certificate: String,
    /// Its key, as PEM.
    pub key: String,
    /// Whether it hands out sessions that can be resumed.
    pub resumes: bool,
}

/// A server on a port of its own. It ends when it is dropped.
#[derive(Debug)]
pub struct NullServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    ends: AtomicBool,
    answered: AtomicU64,
}

impl NullServer {
    /// Listens on `address` (port 0: any that is free) and answers on one thread.
    ///
    /// # Errors
    /// When the address is taken, or certificate and key are of no use.
    pub fn start(address: SocketAddr, manner: &Manner) -> Result<NullServer, Fault> {
        let cannot = |error: io::Error| Fault::io("cannot start a null server", &error);
        let listener = TcpListener::bind(address).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let shared = Arc::new(Shared::default());
        let tls = manner.tls.as_ref().map(NullTls::config).transpose()?;
        let server = Server {
            poller: Poller::new().map_err(cannot)?,
            listener,
            tls,
            answers: Arc::new(Answers::new(manner.body_bytes as u64, manner.closes)),
            random: fastrand::Rng::with_seed(manner.seed),
            gap_ns: manner.capacity.map_or(0, |rate| (SECOND_NS as f64 / rate) as u64),
            free_ns: 0,
            tokens: 0.0,
            manner: manner.clone(),
            connections: Slab::new(),
            due: VecDeque::new(),
            unread: VecDeque::new(),
            shared: shared.clone(),
        };
        let thread = std::thread::Builder::new().name("null".to_owned()).spawn(move || server.run());
        Ok(NullServer { address, shared, thread: Some(thread.map_err(cannot)?) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests it has answered.
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Waits until it ends, which it does only when it is dropped, or broken.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            let (Ok(()) | Err(_)) = thread.join();
        }
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let (Ok(()) | Err(_)) = thread.join();
        }
    }
}

impl NullTls {
    fn config(&self) -> Result<Arc<ServerConfig>, Fault> {
        let wrong = |words: String| Fault::new(format!("cannot speak TLS with this certificate: {words}"));
        let chain =
            CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| wrong(error.to_string()))?;
        let key =
            PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|error| wrong(error.to_string()))?;
        let config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_protocol_versions(rustls::DEFAULT_VERSIONS)
                .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|error| wrong(error.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if self.resumes {
            config.ticketer =
                rustls::crypto::aws_lc_rs::Ticketer::new().map_err(|error| wrong(error.to_string()))?;
        } else {
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Arc::new(config))
    }
}

struct Server {
    poller: Poller,
    listener: TcpListener,
    manner: Manner,
    tls: Option<Arc<ServerConfig>>,
    answers: Arc<Answers>,
    random: fastrand::Rng,
    /// Of an answer in the mean, and when the next one may begin; of a limiter when its tokens were counted.
    gap_ns: u64,
    free_ns: u64,
    tokens: f64,
    connections: Slab<Peer>,
    /// Whom an answer is owed, by when. Whoever has its place by then is not confused with who had it: a place is
    /// given away again only when nothing is owed there.
    due: VecDeque<(u64, usize)>,
    /// Who was not read to the end in its turn, each once; who waits for longest is first.
    unread: VecDeque<Ready>,
    shared: Arc<Shared>,
}

impl Server {
    fn run(mut self) {
        let mut ready: Vec<Ready> = Vec::new();
        let mut scratch = vec![0; 64 * 1024];
        if self.poller.watch_listener(&self.listener, LISTENER).is_err() {
            return;
        }
        while !self.shared.ends.load(Ordering::Relaxed) {
            let now = now_ns();
            while self.due.front().is_some_and(|(due_ns, _)| *due_ns <= now) {
                if let Some((_, number)) = self.due.pop_front() {
                    self.give(number, true);
                    self.send(number);
                }
            }
            let next_ns = self.due.front().map_or(u64::MAX, |(due_ns, _)| *due_ns);
            // There is something to read anyhow.
            let next_ns = if self.unread.is_empty() { next_ns.min(now + LOOK_NS) } else { now };
            if self.poller.wait(now, next_ns, &mut ready).is_err() {
                return;
            }
            self.give_turns(&mut ready);
            for ready in ready.drain(..) {
                match ready.number {
                    LISTENER => self.accept(),
                    number if self.poller.is_of_now(&ready) => self.serve(number, ready, &mut scratch),
                    _ => {}
                }
            }
        }
    }

    /// Who was not read to the end is among those that are ready when its turn comes, and no sooner.
    fn give_turns(&mut self, ready: &mut Vec<Ready>) {
        for edge in ready.iter_mut().filter(|edge| self.poller.is_of_now(edge)) {
            edge.readable &= !self.connections.get(edge.number).is_some_and(|waiting| waiting.is_unread);
        }
        for next in self.unread.drain(..self.unread.len().min(UNREAD_A_ROUND)) {
            if self.poller.is_of_now(&next)
                && let Some(peer) = self.connections.get_mut(next.number)
            {
                peer.is_unread = false;
                ready.push(next);
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((socket, _)) = self.listener.accept() {
            let tls = self.tls.clone().map(ServerConnection::new);
            let Ok(tls) = tls.transpose() else { continue };
            let entry = self.connections.vacant_entry();
            let set = socket.set_nonblocking(true).and_then(|()| socket.set_nodelay(true));
            if set.and_then(|()| self.poller.watch(&socket, entry.key())).is_ok() {
                entry.insert(Peer::new(socket, tls.map(Box::new), self.answers.clone()));
            }
        }
    }

    fn serve(&mut self, number: usize, ready: Ready, scratch: &mut [u8]) {
        let Some(peer) = self.connections.get_mut(number) else { return };
        let waits = peer.is_unread;
        let outcome = peer.serve(ready, scratch);
        if peer.is_unread && !waits {
            self.unread.push_back(ready.unread());
        }
        let requests = *outcome.as_ref().unwrap_or(&0);
        for _ in 0..requests {
            self.owe(number);
        }
        match outcome {
            Ok(_) => self.send(number),
            Err(_) => self.let_go(number),
        }
    }

    /// Sends what was answered, and ends the connection where nothing is to come behind it.
    fn send(&mut self, number: usize) {
        let Some(peer) = self.connections.get_mut(number) else { return };
        let is_broken = peer.flush().is_err();
        if is_broken || peer.is_over() {
            self.let_go(number);
        }
    }

    fn owe(&mut self, number: usize) {
        let begun = self.shared.answered.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some((after, lasts)) = self.manner.stall
            && begun == after
        {
            std::thread::sleep(lasts);
        }
        // An answer before it may have been the last.
        let Some(peer) = self.connections.get_mut(number).filter(|peer| !peer.is_last) else { return };
        peer.owed += 1;
        let now = now_ns();
        let time_ns = match self.manner.service {
            _ if self.gap_ns == 0 => return self.give(number, true),
            Service::Constant => self.gap_ns,
            Service::Exponential => exponential(&mut self.random, self.gap_ns as f64) as u64,
            Service::Limiter => {
                let has_token = self.takes_token(now);
                return self.give(number, has_token);
            }
        };
        self.free_ns = self.free_ns.max(now) + time_ns;
        self.due.push_back((self.free_ns, number));
    }

    fn takes_token(&mut self, now: u64) -> bool {
        let most = (SECOND_NS / 10) as f64 / self.gap_ns as f64;
        let come = now.saturating_sub(self.free_ns) as f64 / self.gap_ns as f64;
        self.tokens = (self.tokens + come).min(most.max(1.0));
        self.free_ns = now;
        let has_token = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(has_token));
        has_token
    }

    fn give(&mut self, number: usize, is_served: bool) {
        let Some(peer) = self.connections.get_mut(number) else { return };
        peer.owed -= 1;
        if !peer.is_gone && peer.answer(is_served).is_err() {
            peer.is_gone = true;
        }
        peer.is_last |= self.manner.closes;
        if peer.is_gone {
            self.let_go(number);
        }
    }

    /// The connection is of no use any more. Its place is kept while answers are owed there.
    fn let_go(&mut self, number: usize) {
        let Some(peer) = self.connections.get_mut(number) else { return };
        peer.is_gone = true;
        if peer.owed == 0 {
            peer.leave();
            self.connections.remove(number);
        }
    }
}
