//! Pipes through which bodies pass from socket to socket inside the kernel, never through our memory.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use crate::Tcp;

/// What a pipe is asked to hold. The kernel gives less where an unprivileged user has many
/// (`fs.pipe-user-pages-soft`), and then it holds less.
const PIPE_BYTES: usize = 1024 * 1024;

/// The pipes of one thread: as many as are open at a time, and as many as are kept for later.
#[derive(Clone, Debug)]
pub struct Pipes(Rc<Shelf>);

#[derive(Debug)]
struct Shelf {
    pipes: RefCell<Vec<Ends>>,
    open: Cell<u32>,
    open_max: Cell<u32>,
    /// The fewest that lay here since [`Pipes::close_unused`] last looked.
    unused: Cell<usize>,
}

#[derive(Debug)]
struct Ends {
    reader: OwnedFd,
    writer: OwnedFd,
}

/// A pipe on loan. Dropped empty it goes back; with something in it, it is closed.
#[derive(Debug)]
pub struct Pipe {
    /// Absent only while it is dropped.
    ends: Option<Ends>,
    held_bytes: usize,
    shelf: Rc<Shelf>,
}

impl Pipes {
    /// At most `open_max` at a time.
    pub fn new(open_max: u32) -> Pipes {
        Pipes(Rc::new(Shelf {
            pipes: RefCell::default(),
            open: Cell::new(0),
            open_max: Cell::new(open_max),
            unused: Cell::new(0),
        }))
    }

    /// From now on at most so many; those that are there stay.
    pub fn set_open_max(&self, open_max: u32) {
        self.0.open_max.set(open_max);
    }

    /// An empty pipe, if there is one to be had: one that is kept, or a new one where `may_open` says that there
    /// are descriptors for it.
    pub fn take(&self, may_open: impl FnOnce() -> bool) -> Option<Pipe> {
        let shelf = &self.0;
        let mut pipes = shelf.pipes.borrow_mut();
        let shelved = pipes.pop();
        shelf.unused.set(shelf.unused.get().min(pipes.len()));
        drop(pipes);
        let ends = match shelved {
            Some(ends) => ends,
            None if shelf.open.get() < shelf.open_max.get() && may_open() => {
                let (reader, writer) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).ok()?;
                shelf.open.set(shelf.open.get() + 1);
                // A smaller one serves too.
                let (Ok(_) | Err(_)) = fcntl_setpipe_size(&writer, PIPE_BYTES);
                Ends { reader, writer }
            }
            None => return None,
        };
        Some(Pipe { ends: Some(ends), held_bytes: 0, shelf: shelf.clone() })
    }

    /// Closes as many as were never wanted since this was last called. Call it now and then.
    pub fn close_unused(&self) {
        let Shelf { pipes, open, unused, .. } = &*self.0;
        let mut pipes = pipes.borrow_mut();
        let kept = pipes.len() - unused.get().min(pipes.len());
        open.set(open.get() - (pipes.len() - kept) as u32);
        pipes.truncate(kept);
        unused.set(kept);
    }

    /// Closes what is kept for later: its descriptors are wanted for something else. Says how many it were.
    pub fn close_kept(&self) -> usize {
        let kept = std::mem::take(&mut *self.0.pipes.borrow_mut()).len();
        self.0.open.set(self.0.open.get() - kept as u32);
        kept
    }
}

impl Pipe {
    /// Whether something is in it.
    pub fn is_holding(&self) -> bool {
        self.held_bytes > 0
    }

    /// Takes in what can be read from `from`, at most `bytes_max`; 0 is the end. Only for an empty pipe.
    /// [`io::ErrorKind::InvalidInput`] says that this connection must be read otherwise.
    pub fn poll_fill(
        &mut self,
        context: &Context<'_>,
        from: &Tcp,
        bytes_max: u64,
    ) -> Poll<io::Result<usize>> {
        debug_assert_eq!(self.held_bytes, 0, "whether it is full or the socket empty could not be told");
        let Some(Ends { writer, .. }) = &self.ends else { return Poll::Ready(Ok(0)) };
        // `splice` does not get past an urgent byte, and says only that nothing is there.
        if from.had_urgent_data() {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        let bytes = bytes_max.min(PIPE_BYTES as u64) as usize;
        // Less than was asked for does not mean that the kernel has no more: only it can say so.
        let filled = from.source().poll_read(context, 0, || splice(from, None, writer, None, bytes, FLAGS));
        if let Poll::Ready(Ok(bytes)) = filled {
            self.held_bytes = bytes;
        }
        filled
    }

    /// Hands over what `to` takes. Never 0 bytes.
    pub fn poll_empty(&mut self, context: &Context<'_>, to: &Tcp) -> Poll<io::Result<usize>> {
        let Some(Ends { reader, .. }) = &self.ends else { return Poll::Ready(Ok(0)) };
        let held = self.held_bytes;
        let emptied = to.poll_write_by(context, 0, || splice(reader, None, to, None, held, FLAGS));
        if let Poll::Ready(Ok(bytes)) = emptied {
            self.held_bytes -= bytes;
        }
        emptied
    }
}

const FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);

impl Drop for Pipe {
    fn drop(&mut self) {
        match self.ends.take() {
            Some(ends) if self.held_bytes == 0 => self.shelf.pipes.borrow_mut().push(ends),
            _ => self.shelf.open.set(self.shelf.open.get() - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;
    use crate::{EventLoop, connect};

    fn peer(work: impl FnOnce(TcpStream) + Send + 'static) -> (SocketAddr, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        (address, std::thread::spawn(move || work(listener.accept().expect("connected").0)))
    }

    #[test]
    fn bytes_pass_in_order_and_the_pipe_comes_back() {
        let sent: Vec<u8> = (0..5_000_000_u32).map(|number| (number / 7) as u8).collect();
        let expected = sent.clone();
        let (from, source) = peer(move |mut stream| stream.write_all(&sent).expect("open"));
        let (to, sink) = peer(move |mut stream| {
            let mut received = Vec::new();
            stream.read_to_end(&mut received).expect("open");
            assert!(received == expected, "{} bytes", received.len());
        });
        EventLoop::new().expect("descriptors").run(async {
            let (from, to) = (connect(from).await.expect("there"), connect(to).await.expect("there"));
            let pipes = Pipes::new(1);
            let mut pipe = pipes.take(|| true).expect("one");
            assert!(pipes.take(|| true).is_none(), "two are too many");
            loop {
                let filled = std::future::poll_fn(|context| pipe.poll_fill(context, &from, u64::MAX));
                if filled.await.expect("open") == 0 {
                    break;
                }
                while pipe.is_holding() {
                    std::future::poll_fn(|context| pipe.poll_empty(context, &to)).await.expect("open");
                }
            }
            drop(pipe);
            assert!(pipes.take(|| false).is_some(), "one is kept");
        });
        source.join().expect("it ended well");
        sink.join().expect("it ended well");
    }

    #[test]
    fn a_pipe_with_something_in_it_is_not_used_again() {
        let (from, source) = peer(|mut stream| stream.write_all(b"secret").expect("open"));
        EventLoop::new().expect("descriptors").run(async {
            let from = connect(from).await.expect("there");
            let pipes = Pipes::new(1);
            let mut pipe = pipes.take(|| true).expect("one");
            let filled = std::future::poll_fn(|context| pipe.poll_fill(context, &from, 3)).await;
            assert_eq!(filled.expect("open"), 3, "no more than was asked for");
            drop(pipe);
            let again = pipes.take(|| true).expect("another one");
            assert!(!again.is_holding());
            let mut bytes = [0; 3];
            let ends = again.ends.as_ref().expect("open");
            assert_eq!(rustix::io::read(&ends.reader, &mut bytes), Err(rustix::io::Errno::AGAIN));
            drop(again);
            pipes.close_unused();
            assert_eq!(pipes.0.open.get(), 1, "it was used a moment ago");
            pipes.close_unused();
            assert_eq!(pipes.0.open.get(), 0);
            assert!(pipes.take(|| false).is_none(), "none is kept, and there is nothing for a new one");
            drop(pipes.take(|| true));
            assert_eq!(pipes.close_kept(), 1);
            assert_eq!(pipes.0.open.get(), 0);
        });
        source.join().expect("it ended well");
    }
}
