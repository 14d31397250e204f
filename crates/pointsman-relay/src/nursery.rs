//! Where threads with descriptor tables of their own come from that a new plan adds.
//!
//! Such a table begins as a copy of that of whoever starts the thread, and nothing of the copy can be closed. The control
//! thread has opened much by then: what it has of a listener would stay open in each such table when the listener goes.
//! So a thread that has nothing to do starts them: it left the common table before the process opened anything.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use pointsman_net::{SocketReceiver, SocketSender, own_descriptor_table, socket_channel};

use crate::shard::ShardStart;
use crate::threads::{Theirs, Waiting, begin, ended, tell};

/// A thread that starts others. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Nursery {
    orders: mpsc::Sender<Order>,
    /// What they receive their sockets by comes to its table through this.
    receivers: SocketSender,
}

/// A thread that is to be started.
struct Order {
    number: usize,
    works: mpsc::Receiver<ShardStart>,
    started: mpsc::Sender<io::Result<JoinHandle<()>>>,
}

impl Nursery {
    /// Begins one, before the process opens anything. Or says why there are no tables of one's own.
    ///
    /// # Errors
    /// When the system gives no thread or no descriptor.
    pub(crate) fn begin() -> io::Result<(Option<Nursery>, Option<io::Error>)> {
        let (receivers, theirs) = socket_channel()?;
        let theirs = Arc::new(theirs);
        // Whoever opened something closes it: this goes last.
        let _ours = theirs.clone();
        let (orders, ordered) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        std::thread::Builder::new()
            .name("nursery".to_owned())
            .spawn(move || tend(theirs, &ready, &ordered))?;
        match is_ready.recv().unwrap_or_else(|_| ended())? {
            None => Ok((Some(Nursery { orders, receivers }), None)),
            refusal => Ok((None, refusal)),
        }
    }

    /// Starts a thread with a table of its own.
    ///
    /// # Errors
    /// When the system gives none, or no descriptor.
    pub(crate) fn start(&self, number: usize) -> io::Result<Waiting> {
        let (sockets, receiver) = socket_channel()?;
        let (work, works) = mpsc::channel();
        let (started, is_started) = mpsc::channel();
        self.receivers.send(number as u32, &receiver)?;
        self.orders.send(Order { number, works, started }).or_else(|_| ended())?;
        let thread = is_started.recv().unwrap_or_else(|_| ended())?;
        // Nobody could ring it in another table, nor hand it a connection.
        Ok(Waiting { number, thread, work, sockets, way: None })
    }
}

/// What the thread runs. `ready` hears why it shares its table, or why it cannot begin at all.
fn tend(
    theirs: Arc<SocketReceiver>,
    ready: &mpsc::Sender<io::Result<Option<io::Error>>>,
    ordered: &mpsc::Receiver<Order>,
) {
    if let Err(refusal) = own_descriptor_table() {
        return tell(ready, Ok(Some(refusal)));
    }
    let receivers = theirs.try_clone();
    drop(theirs);
    match receivers {
        Ok(receivers) => {
            tell(ready, Ok(None));
            ordered.iter().for_each(|order| order.carry_out(&receivers));
        }
        Err(error) => tell(ready, Err(error)),
    }
}

impl Order {
    fn carry_out(self, receivers: &SocketReceiver) {
        let Order { number, works, started } = self;
        // One whose order came to nothing may stand before it.
        let received = std::iter::from_fn(|| receivers.next()).find(|one| one.number as usize == number);
        let thread = match received.map(|received| received.socket) {
            Some(Ok(socket)) => {
                let receiver = Arc::new(SocketReceiver::received(socket));
                begin(number, Theirs { own_table: true, receiver, arrivals: None }, works)
            }
            Some(Err(error)) => Err(error),
            None => ended(),
        };
        // Should the system refuse it a table now, it shares this one with nobody who uses it.
        tell(&started, thread.map(|(thread, _)| thread));
    }
}
