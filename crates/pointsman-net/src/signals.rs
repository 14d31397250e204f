//! Signals as something to wait for.

use std::io;
use std::os::unix::net::UnixStream;

use rustix::buffer::spare_capacity;
use rustix::net::RecvFlags;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::event_loop::register;
use crate::reactor::{Source, Writing};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP
    HangUp,
    /// SIGTERM
    Terminate,
    /// SIGINT
    Interrupt,
}

/// The signals of this process, heard instead of obeyed. Several of a kind that come together count once.
#[derive(Debug)]
pub struct Signals([(Signal, Source, UnixStream); 3]);

impl Signals {
    /// From here on they are heard. Must be called on an event loop.
    pub fn listen() -> io::Result<Signals> {
        let heard = |signal, number| {
            let (ours, theirs) = UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            pipe::register(number, theirs)?;
            io::Result::Ok((signal, register(&ours, Writing::HasRoom)?, ours))
        };
        // In the order in which they count when several are there.
        Ok(Signals([
            heard(Signal::Terminate, SIGTERM)?,
            heard(Signal::Interrupt, SIGINT)?,
            heard(Signal::HangUp, SIGHUP)?,
        ]))
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            let mut came = Vec::with_capacity(64);
            for (signal, source, stream) in &self.0 {
                let room = came.capacity();
                let read = source.poll_read(context, room, || {
                    Ok(rustix::net::recv(stream, spare_capacity(&mut came), RecvFlags::empty())?.0)
                });
                if let std::task::Poll::Ready(Ok(1..)) = read {
                    return std::task::Poll::Ready(*signal);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventLoop;

    #[test]
    fn a_signal_is_heard() {
        EventLoop::new().expect("descriptors").run(async {
            let mut signals = Signals::listen().expect("descriptors");
            signal_hook::low_level::raise(SIGHUP).expect("a signal");
            assert_eq!(signals.next().await, Signal::HangUp);
        });
    }
}
