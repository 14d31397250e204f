//! The threads of a switch before there is a switch: each with a descriptor table of its own, where it can be had,
//! and an event loop.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use pointsman_net::{
    Arrivals, Bell, EventLoop, SocketReceiver, SocketSender, own_descriptor_table, socket_channel,
};

use crate::hand_over::HandOver;
use crate::nursery::Nursery;
use crate::shard::{Equipment, ShardStart, run};

/// Threads that wait for a switch. They end when they are dropped.
#[derive(Debug)]
pub struct Threads {
    all: Vec<Waiting>,
    /// What starts others, where threads have tables of their own.
    nursery: Option<Nursery>,
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
        let ways = (0..count).map(|_| Way::new()).collect::<io::Result<Vec<_>>>()?;
        let (mut nursery, mut refusal) = match own_tables {
            true => Nursery::begin()?,
            false => (None, None),
        };
        let own_table = nursery.is_some();
        let mut all = Vec::with_capacity(count);
        for (number, way) in ways.into_iter().enumerate() {
            let (waiting, refused) = Waiting::start(number, way, own_table)?;
            refusal = refusal.or(refused);
            all.push(waiting);
        }
        if refusal.is_some() {
            nursery = None;
        }
        Ok(Threads { all, nursery, refusal })
    }

    /// Starts others beside those that serve already: from the nursery, each with a table of its own, or where there is
    /// none, all with the caller's. Then those that serve share it, too, and can hand connections over.
    ///
    /// # Errors
    /// As [`Threads::start`].
    pub(crate) fn start_more(numbers: Vec<usize>, nursery: Option<&Nursery>) -> io::Result<Vec<Waiting>> {
        let start = |number| match nursery {
            Some(nursery) => nursery.start(number),
            None => Waiting::start(number, Way::new()?, false).map(|(waiting, _)| waiting),
        };
        numbers.into_iter().map(start).collect()
    }

    /// Why they share a descriptor table, where they were to have their own.
    pub fn table_refusal(&self) -> Option<&io::Error> {
        self.refusal.as_ref()
    }

    pub(crate) fn into_parts(self) -> (Vec<Waiting>, Option<Nursery>) {
        (self.all, self.nursery)
    }
}

impl Waiting {
    /// Starts a thread from the caller's table, and says why it shares that where it was to have its own.
    fn start(number: usize, way: Way, own_table: bool) -> io::Result<(Waiting, Option<io::Error>)> {
        let arrivals = Some((Arc::new(way.receiver), way.bell));
        let (sockets, receiver) = socket_channel()?;
        let (work, works) = mpsc::channel();
        let theirs = Theirs { own_table, receiver: Arc::new(receiver), arrivals };
        let (thread, refusal) = begin(number, theirs, works)?;
        Ok((Waiting { number, thread, work, sockets, way: Some(way.sender) }, refusal))
    }
}

/// Starts a thread, and waits until it has what it needs in its table. Also says why it shares the caller's, where it was to
/// have its own.
pub(crate) fn begin(
    number: usize,
    theirs: Theirs,
    works: mpsc::Receiver<ShardStart>,
) -> io::Result<(JoinHandle<()>, Option<io::Error>)> {
    let (ready, is_ready) = mpsc::channel();
    // Whoever opened something closes it: this goes last.
    let _ours = theirs.clone();
    let thread = std::thread::Builder::new()
        .name(format!("shard-{number}"))
        .spawn(move || wait_for_work(theirs, &ready, &works))?;
    let refusal = is_ready.recv().unwrap_or_else(|_| ended())?;
    Ok((thread, refusal))
}

/// What a thread says that says nothing.
pub(crate) fn ended<T>() -> io::Result<T> {
    Err(io::Error::other("a thread ended before it began"))
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
#[derive(Clone)]
pub(crate) struct Theirs {
    pub(crate) own_table: bool,
    pub(crate) receiver: Arc<SocketReceiver>,
    pub(crate) arrivals: Option<(Arc<SocketReceiver>, Bell)>,
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

pub(crate) fn tell<T>(to: &mpsc::Sender<T>, what: T) {
    // Whoever started the thread waits for this, or has given up and ends the process.
    let (Ok(()) | Err(_)) = to.send(what);
}
