//! An agent: it waits for a controller, and puts load where that says, as far as its operator allows it.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pointsman_tls::CertificateFiles;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::errand::Errand;
use super::link::{ERRAND_BYTES_MAX, HELLO_BYTES_MAX, Link, Lost, Message, Versions, shake};
use super::{Allowed, GREETING_MAX, PROTOCOL};
use crate::bell::Bell;
use crate::ceiling::before_null_servers;
use crate::clock::{SECOND_NS, now_ns};
use crate::request::Requests;
use crate::run::Ready;
use crate::{Fault, Plan, Progress};

/// Connections that have not shown a certificate yet; more are closed unheard.
const STRANGERS_MAX: usize = 32;
/// How long a controller waits for the one before it to be gone.
const SEAT_WAIT_MAX: Duration = Duration::from_secs(1);
/// A controller that asks for nothing for so long is taken for gone.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// How soon what the load's thread says is passed on.
const LOOK: Duration = Duration::from_millis(20);
/// No load begins later than so long behind the word that it does.
const START_MAX_NS: u64 = 60 * SECOND_NS;
/// Behind a failure to accept a connection: mostly there is no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How an agent is started.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// Where it waits; port 0: any that is free.
    pub listen: SocketAddr,
    /// Its own certificate.
    pub certificate: CertificateFiles,
    /// A PEM file of the authorities that controllers' certificates must come from.
    pub ca: PathBuf,
    /// Where load may go.
    pub allowed: Vec<Allowed>,
}

/// One that listens.
pub struct Agent {
    listener: TcpListener,
    shared: Arc<Shared>,
}

struct Shared {
    tls: Arc<ServerConfig>,
    allowed: Vec<Allowed>,
    strangers: AtomicUsize,
    /// Who has the agent to itself.
    seat: Mutex<Option<SocketAddr>>,
    is_free: Condvar,
    tell: Box<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl Agent {
    /// Reads the files and listens. `tell` hears a line of each controller that comes, is refused, or goes.
    ///
    /// # Errors
    /// When a file is of no use, or the address is taken.
    pub fn bind(
        settings: AgentSettings,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Agent, Fault> {
        let tls = Arc::new(server_config(&settings)?);
        let listen = settings.listen;
        let listener = TcpListener::bind(listen)
            .map_err(|error| Fault::io(&format!("cannot listen on {listen}"), &error))?;
        let shared = Shared {
            tls,
            allowed: settings.allowed,
            strangers: AtomicUsize::new(0),
            seat: Mutex::new(None),
            is_free: Condvar::new(),
            tell: Box::new(tell),
        };
        Ok(Agent { listener, shared: Arc::new(shared) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves controllers, one after the other, until the process ends.
    pub fn serve(self) -> ! {
        loop {
            match self.listener.accept() {
                Ok((socket, from)) => self.shared.clone().greet(socket, from),
                Err(_) => std::thread::sleep(ACCEPT_PAUSE),
            }
        }
    }
}

/// TLS 1.3 for whoever shows a certificate of the authority, and nothing that outlives a connection.
fn server_config(settings: &AgentSettings) -> Result<ServerConfig, Fault> {
    let certificates = |path: &PathBuf| {
        let all: Result<Vec<_>, _> =
            CertificateDer::pem_file_iter(path).and_then(|certificates| certificates.collect());
        match all {
            Ok(all) if all.is_empty() => {
                Err(Fault::new(format!("`{}` holds no certificate", path.display())))
            }
            Ok(all) => Ok(all),
            Err(error) => Err(Fault::new(format!("cannot read `{}`: {error}", path.display()))),
        }
    };
    let wrong = |what: &PathBuf, error: &dyn fmt::Display| {
        Fault::new(format!("`{}` is of no use: {error}", what.display()))
    };
    let CertificateFiles { certificate, key, .. } = &settings.certificate;
    let chain = certificates(certificate)?;
    let own_key = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| Fault::new(format!("cannot read a key from `{}`: {error}", key.display())))?;
    let mut roots = RootCertStore::empty();
    for authority in certificates(&settings.ca)? {
        roots.add(authority).map_err(|error| wrong(&settings.ca, &error))?;
    }
    let provider = Arc::new(default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| wrong(&settings.ca, &error))?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .and_then(|builder| builder.with_client_cert_verifier(verifier).with_single_cert(chain, own_key));
    let mut config = config.map_err(|error| wrong(certificate, &error))?;
    config.alpn_protocols = vec![PROTOCOL.as_bytes().to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

impl Shared {
    /// On a thread of its own: nobody else waits for whoever is slow.
    fn greet(self: Arc<Self>, socket: TcpStream, from: SocketAddr) {
        if self.strangers.fetch_add(1, Ordering::Relaxed) >= STRANGERS_MAX {
            self.strangers.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let shared = self.clone();
        let spawned = std::thread::Builder::new().name("controller".to_owned()).spawn(move || {
            let shaken = shared.shake_hands(socket);
            shared.strangers.fetch_sub(1, Ordering::Relaxed);
            let served = shaken.map_err(Lost::from).and_then(|mut link| shared.serve(&mut link, from));
            match served {
                Ok(()) | Err(Lost::Closed) => {}
                Err(lost) => (shared.tell)(&format!("{from}: {lost}")),
            }
        });
        if spawned.is_err() {
            self.strangers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn shake_hands(&self, mut socket: TcpStream) -> io::Result<Link> {
        let mut connection = ServerConnection::new(self.tls.clone()).map_err(io::Error::other)?;
        shake(&mut connection, &mut socket, Instant::now() + GREETING_MAX)?;
        let own = socket.try_clone()?;
        Link::new(Box::new(StreamOwned::new(connection, socket)), own, HELLO_BYTES_MAX)
    }

    /// A controller with a certificate, until it goes.
    fn serve(&self, link: &mut Link, from: SocketAddr) -> Result<(), Lost> {
        let Message::Hello(theirs) = link.expect(GREETING_MAX)? else {
            return Err(Lost::Broken("it does not speak as a controller does".to_owned()));
        };
        let own = Versions::own();
        if let Err(fault) = own.same_as(&theirs, "the controller", "this agent") {
            (self.tell)(&format!("{from}: {fault}"));
            return link.send(&Message::Failed(fault));
        }
        let seat = match self.take_seat(from) {
            Ok(seat) => seat,
            Err(other) => {
                let fault = Fault::new(format!("it works for another controller, {other}"));
                return link.send(&Message::Failed(fault));
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        link.send(&Message::Welcome { versions: own, cores })?;
        link.trust(ERRAND_BYTES_MAX);
        (self.tell)(&format!("{from}: the controller is here"));
        let ended = self.obey(link);
        drop(seat);
        (self.tell)(&format!("{from}: the controller is gone"));
        ended
    }

    fn obey(&self, link: &mut Link) -> Result<(), Lost> {
        loop {
            match link.wait(IDLE_MAX)? {
                Message::Errand(errand) => self.run_errand(link, *errand)?,
                Message::Beat => {}
                _ => return Err(Lost::out_of_turn()),
            }
        }
    }

    /// Does it on another thread, while this one stays with the controller: when that is lost, load ends.
    fn run_errand(&self, link: &mut Link, errand: Errand) -> Result<(), Lost> {
        let bell = Arc::new(Bell::default());
        let (say, said) = channel();
        let (start, started) = channel();
        link.listen();
        std::thread::scope(|scope| {
            let (work_bell, last) = (bell.clone(), say.clone());
            let worker = scope.spawn(move || {
                let done = self.work(errand, &started, &work_bell, &say);
                // Where nobody listens the controller is lost.
                let (Ok(()) | Err(_)) = last.send(done.unwrap_or_else(Message::Failed));
            });
            let attended = attend(link, (start, &*bell), &said);
            bell.ring();
            // That it broke off was noticed above.
            let (Ok(()) | Err(_)) = worker.join();
            attended
        })
    }

    fn work(
        &self,
        errand: Errand,
        started: &Receiver<u64>,
        bell: &Arc<Bell>,
        say: &Sender<Message>,
    ) -> Result<Message, Fault> {
        let folder =
            tempfile::tempdir().map_err(|error| Fault::io("cannot keep the files of the plan", &error))?;
        let ceiling = errand.ceiling.clone();
        let (plan, place) = errand.unpack(folder.path())?;
        let may = |requests: &Requests| allow(&self.allowed, &plan, requests);
        if let Some(before) = ceiling {
            plan.check()?;
            // The server may be asked how long its answers are.
            may(&Requests::new(&plan)?)?;
            (self.tell)("load on null servers of this machine");
            return before_null_servers(&plan, place, &before).map(Message::Ceiling);
        }
        let ready = Ready::new(&plan, place, bell, &may)?;
        let gone = || Fault::new("the controller is gone");
        say.send(Message::Ready).map_err(|_| gone())?;
        let begin_ns = started.recv().map_err(|_| gone())?;
        check_start(begin_ns, now_ns())?;
        (self.tell)(&format!(
            "load on {} for {:.1} s",
            plan.targets[0].url,
            (plan.warm_up + plan.time).as_secs_f64()
        ));
        let mut observe = |progress: &Progress| {
            // Where nobody listens the bell rings.
            let (Ok(()) | Err(_)) = say.send(Message::Progress(*progress));
        };
        let (part, _) = ready.carry_out(begin_ns, &mut observe)?;
        Ok(Message::Done(Box::new(part)))
    }

    fn take_seat(&self, from: SocketAddr) -> Result<Seat<'_>, SocketAddr> {
        let wait = self.is_free.wait_timeout_while(self.seated(), SEAT_WAIT_MAX, |seat| seat.is_some());
        let (mut seat, _) = wait.unwrap_or_else(PoisonError::into_inner);
        match *seat {
            Some(other) => Err(other),
            None => {
                *seat = Some(from);
                Ok(Seat(self))
            }
        }
    }

    fn seated(&self) -> MutexGuard<'_, Option<SocketAddr>> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of the one controller; free again when it is dropped.
struct Seat<'a>(&'a Shared);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        *self.0.seated() = None;
        self.0.is_free.notify_one();
    }
}

/// Each place that the plan goes to, by the address that its connections will have.
fn allow(allowed: &[Allowed], plan: &Plan, requests: &Requests) -> Result<(), Fault> {
    (0..plan.targets.len()).try_for_each(|at| {
        let request = requests.get(at);
        let address = requests.origins[request.origin].address;
        Allowed::check(allowed, &plan.targets[at].url.host, address.ip())
    })
}

/// Whether load can begin then.
fn check_start(begin_ns: u64, now_ns: u64) -> Result<(), Fault> {
    match (now_ns.saturating_sub(begin_ns), begin_ns.saturating_sub(now_ns)) {
        (0, to_come_ns) if to_come_ns <= START_MAX_NS => Ok(()),
        (0, _) => Err(Fault::new("the start is more than a minute away")),
        (late_ns, _) => {
            let late = Duration::from_nanos(late_ns);
            Err(Fault::new(format!("the start was {late:?} ago when it was told of it")))
        }
    }
}

/// Passes on what either side says, until all is done.
fn attend(
    link: &mut Link,
    (start, bell): (Sender<u64>, &Bell),
    said: &Receiver<Message>,
) -> Result<(), Lost> {
    let mut start = Some(start);
    loop {
        match link.attend(LOOK)? {
            Some(Message::Ping) => link.send(&Message::Pong { now_ns: now_ns() })?,
            Some(Message::Start { begin_ns }) if start.is_some() => {
                // Where it has failed before, that is what it says next.
                let (Ok(()) | Err(_)) = start.take().map_or(Ok(()), |start| start.send(begin_ns));
            }
            Some(Message::Cut) => bell.ring(),
            Some(Message::End { at_ns }) => bell.end_at(at_ns),
            Some(_) => return Err(Lost::out_of_turn()),
            None => {}
        }
        loop {
            match said.recv_timeout(Duration::ZERO) {
                Ok(message) => {
                    let is_last =
                        matches!(message, Message::Done(_) | Message::Ceiling(_) | Message::Failed(_));
                    link.send(&message)?;
                    if is_last {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Lost::Broken("the generator broke off".to_owned()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{link, sockets};
    use super::*;

    /// What comes of these words of a controller, and when load began, if it did.
    fn attended(words: &[Message]) -> (Result<(), Lost>, Option<u64>, Bell) {
        let (near, far) = sockets();
        let (mut near, mut far, bell) = (link(near), link(far), Bell::default());
        words.iter().for_each(|word| near.send(word).expect("it listens"));
        let ((start, started), (_say, said)) = (channel(), channel());
        drop(near);
        let ended = attend(&mut far, (start, &bell), &said);
        (ended, started.try_recv().ok(), bell)
    }

    #[test]
    fn load_begins_once_and_ends_when_it_is_cut() {
        let start = || Message::Start { begin_ns: 5 };
        let (ended, began, bell) = attended(&[start()]);
        assert_eq!((ended, began, bell.has_rung()), (Err(Lost::Closed), Some(5), false));
        let (ended, began, bell) = attended(&[start(), Message::Beat, Message::Cut]);
        assert_eq!((ended, began, bell.has_rung()), (Err(Lost::Closed), Some(5), true));
        for words in [[start(), start()], [start(), Message::Ready]] {
            let (ended, began, _) = attended(&words);
            assert!(matches!(ended, Err(Lost::Broken(_))) && began == Some(5), "{ended:?}");
        }
    }

    #[test]
    fn load_begins_soon_or_not_at_all() {
        assert_eq!(check_start(100, 100), Ok(()));
        assert_eq!(check_start(100 + START_MAX_NS, 100), Ok(()));
        let said = |begin_ns, now_ns| check_start(begin_ns, now_ns).expect_err("no start").to_string();
        assert_eq!(said(100, 1_000_100), "the start was 1ms ago when it was told of it");
        assert_eq!(said(u64::MAX, 1), "the start is more than a minute away");
    }
}
