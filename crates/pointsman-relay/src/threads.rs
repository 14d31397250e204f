//! The threads of a switch before there is a switch: each with a descriptor table of its own, where it can be had,
//! and an event loop.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use pointsman_net::{
    Arrivals, EventLoop, SocketReceiver, SocketSender, own_descriptor_table, socket_channel,
};

use crate::hand_over::{HANDS_OVER_MIN, HandOver};
use crate::shard::{Equipment, ShardStart, run};

/// Threads that wait for a switch. They end when they are dropped.
#[derive(Debug)]
pub struct Threads {
    all: Vec<Waiting>,
    refusal: Option<io::Error>,
}

/// A thread that waits for its work.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) thread: JoinHandle<()>,
    pub(crate) work: mpsc::Sender<ShardStart>,
    pub(crate) sockets: SocketSender,
}

impl Threads {
    /// Starts `count` threads. Call it before the process opens anything: what is open is open in each table of
    /// its own, too, and stays so. `own_tables`: whether they get one; without, or where the system refuses, they
    /// share the caller's.
    ///
    /// # Errors
    /// When the system gives no thread or event loop.
    pub fn start(count: usize, own_tables: bool) -> io::Result<Threads> {
        let mut threads = Threads { all: Vec::with_capacity(count), refusal: None };
        let (ways, arrivals): (Vec<_>, Vec<_>) = ways(count)?.into_iter().unzip();
        let (ways, arrivals) = (Arc::new(ways), Arc::new(arrivals));
        for number in 0..count {
            let (sockets, receiver) = socket_channel()?;
            let receiver = Arc::new(receiver);
            let (work, works) = mpsc::channel();
            let (ready, is_ready) = mpsc::channel();
            let theirs = Theirs {
                number,
                own_table: own_tables,
                receiver: receiver.clone(),
                ways: ways.clone(),
                arrivals: arrivals.clone(),
            };
            let name = format!("shard-{number}");
            let thread = std::thread::Builder::new()
                .name(name)
                .spawn(move || wait_for_work(theirs, &ready, &works))?;
            let ended = || Err(io::Error::other("a thread ended before it began"));
            let refusal = is_ready.recv().unwrap_or_else(|_| ended())?;
            threads.refusal = threads.refusal.or(refusal);
            threads.all.push(Waiting { thread, work, sockets });
        }
        Ok(threads)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Why they share a descriptor table, where they were to have their own.
    pub fn table_refusal(&self) -> Option<&io::Error> {
        self.refusal.as_ref()
    }

    pub(crate) fn into_waiting(self) -> Vec<Waiting> {
        self.all
    }
}

/// The ways by which threads hand connections over: to each, and where it receives.
fn ways(threads: usize) -> io::Result<Vec<(SocketSender, SocketReceiver)>> {
    match threads {
        0..HANDS_OVER_MIN => Ok(Vec::new()),
        _ => (0..threads).map(|_| socket_channel()).collect(),
    }
}

/// What a thread begins with. Whoever started it has opened what it receives by, and is to close that.
struct Theirs {
    number: usize,
    own_table: bool,
    receiver: Arc<SocketReceiver>,
    /// Open in each table under the same number, and closed when no thread uses them any more.
    ways: Arc<Vec<SocketSender>>,
    arrivals: Arc<Vec<SocketReceiver>>,
}

impl Theirs {
    /// The same sockets in the table of this thread.
    fn equip(&self, has_own_table: bool) -> io::Result<Equipment> {
        let event_loop = EventLoop::new()?;
        let hand_over = match self.arrivals.get(self.number) {
            None => None,
            Some(receiver) => {
                let receiver = receiver.try_clone()?;
                let arrivals = event_loop.run(async { Arrivals::new(receiver) })?;
                Some(HandOver::new(self.ways.clone(), arrivals))
            }
        };
        Ok(Equipment { event_loop, sockets: self.receiver.try_clone()?, hand_over, has_own_table })
    }
}

/// What the thread runs. `ready` hears why it shares its table, or why it cannot begin at all.
fn wait_for_work(
    theirs: Theirs,
    ready: &mpsc::Sender<io::Result<Option<io::Error>>>,
    works: &mpsc::Receiver<ShardStart>,
) {
    let refusal = if theirs.own_table { own_descriptor_table().err() } else { None };
    let has_own_table = theirs.own_table && refusal.is_none();
    let equipment = theirs.equip(has_own_table);
    drop(theirs);
    match equipment {
        Ok(equipment) => {
            tell(ready, Ok(refusal));
            // None comes where the switch could not start.
            if let Ok(start) = works.recv() {
                run(equipment, start);
            }
        }
        Err(error) => tell(ready, Err(error)),
    }
}

fn tell<T>(to: &mpsc::Sender<T>, what: T) {
    // Whoever started the thread waits for this, or has given up and ends the process.
    let (Ok(()) | Err(_)) = to.send(what);
}
