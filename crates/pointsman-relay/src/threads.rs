//! The threads of a switch before there is a switch: each with a descriptor table of its own, where it can be had,
//! and an event loop.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use pointsman_net::{
    Arrivals, Bell, EventLoop, SocketReceiver, SocketSender, own_descriptor_table, socket_channel,
};

use crate::hand_over::HandOver;
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
    pub(crate) number: usize,
    pub(crate) thread: JoinHandle<()>,
    pub(crate) work: mpsc::Sender<ShardStart>,
    pub(crate) sockets: SocketSender,
    /// By which other threads hand connections over to it, where they can.
    pub(crate) way: Option<SocketSender>,
}

impl Threads {
    /// Starts `count` threads. Call it before the process opens anything: what is open is open in each table of
    /// its own, too, and stays so. `own_tables`: whether they get one; without, or where the system refuses, they
    /// share the caller's.
    ///
    /// # Errors
    /// When the system gives no thread or event loop.
    pub fn start(count: usize, own_tables: bool) -> io::Result<Threads> {
        // All ways first: so each is open under the same number in every table.
        let ways = (0..count).map(|_| Way::new().map(Some)).collect::<io::Result<_>>()?;
        Threads::start_numbered((0..count).collect(), ways, own_tables)
    }

    /// Starts others beside those that serve already. They share the caller's descriptor table. `takes_over`: whether
    /// those that serve share it, too, and so can hand connections over.
    ///
    /// # Errors
    /// As [`Threads::start`].
    pub(crate) fn start_more(numbers: Vec<usize>, takes_over: bool) -> io::Result<Threads> {
        let way = |_| takes_over.then(Way::new).transpose();
        let ways = numbers.iter().map(way).collect::<io::Result<_>>()?;
        Threads::start_numbered(numbers, ways, false)
    }

    fn start_numbered(numbers: Vec<usize>, ways: Vec<Option<Way>>, own_tables: bool) -> io::Result<Threads> {
        let mut threads = Threads { all: Vec::with_capacity(numbers.len()), refusal: None };
        for (number, way) in numbers.into_iter().zip(ways) {
            let (way, arrivals) = way.map(|way| (way.sender, (Arc::new(way.receiver), way.bell))).unzip();
            let (sockets, receiver) = socket_channel()?;
            let receiver = Arc::new(receiver);
            let (work, works) = mpsc::channel();
            let (ready, is_ready) = mpsc::channel();
            let theirs =
                Theirs { own_table: own_tables, receiver: receiver.clone(), arrivals: arrivals.clone() };
            let name = format!("shard-{number}");
            let thread = std::thread::Builder::new()
                .name(name)
                .spawn(move || wait_for_work(theirs, &ready, &works))?;
            let ended = || Err(io::Error::other("a thread ended before it began"));
            let refusal = is_ready.recv().unwrap_or_else(|_| ended())?;
            threads.refusal = threads.refusal.or(refusal);
            threads.all.push(Waiting { number, thread, work, sockets, way });
        }
        Ok(threads)
    }

    /// Why they share a descriptor table, where they were to have their own.
    pub fn table_refusal(&self) -> Option<&io::Error> {
        self.refusal.as_ref()
    }

    pub(crate) fn into_waiting(self) -> Vec<Waiting> {
        self.all
    }
}

/// How others reach a thread: what they hand connections over by, and what ends its wait for sockets.
struct Way {
    sender: SocketSender,
    receiver: SocketReceiver,
    bell: Bell,
}

impl Way {
    fn new() -> io::Result<Way> {
        let (sender, receiver) = socket_channel()?;
        Ok(Way { sender, receiver, bell: Bell::new()? })
    }
}

/// What a thread begins with. Whoever started it has opened what it receives by, and is to close that.
struct Theirs {
    own_table: bool,
    receiver: Arc<SocketReceiver>,
    arrivals: Option<(Arc<SocketReceiver>, Bell)>,
}

impl Theirs {
    /// The same sockets in the table of this thread.
    fn equip(&self, has_own_table: bool) -> io::Result<Equipment> {
        let event_loop = match &self.arrivals {
            // Not all threads would ring the right one.
            None => EventLoop::new()?,
            Some((_, bell)) => EventLoop::with_bell(bell.clone())?,
        };
        let hand_over = match &self.arrivals {
            None => None,
            Some((receiver, _)) => {
                let receiver = receiver.try_clone()?;
                let arrivals = event_loop.run(async { Arrivals::new(receiver) })?;
                Some(HandOver::new(arrivals))
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
