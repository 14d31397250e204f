//! Signals, asked for at each tick.
//!
//! The kernel may run what hears a signal on any thread, and threads may have descriptor tables of their own: a
//! pipe to write to would be somebody's connection there. So a signal sets a flag and touches no descriptor.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
use signal_hook::flag;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP
    HangUp,
    /// SIGTERM
    Terminate,
    /// SIGINT
    Interrupt,
    /// SIGUSR2
    Upgrade,
}

/// The signals of this process, heard instead of obeyed. Several of a kind that come together count once.
#[derive(Clone, Debug)]
pub struct Signals([(Signal, Arc<AtomicBool>); 4]);

impl Signals {
    /// From here on they are heard.
    ///
    /// # Errors
    /// What the system says where it does not let them be heard.
    pub fn listen() -> io::Result<Signals> {
        let heard = |signal, number| {
            let came = Arc::new(AtomicBool::new(false));
            flag::register(number, came.clone())?;
            io::Result::Ok((signal, came))
        };
        // In the order in which they count when several are there.
        Ok(Signals([
            heard(Signal::Terminate, SIGTERM)?,
            heard(Signal::Interrupt, SIGINT)?,
            heard(Signal::HangUp, SIGHUP)?,
            heard(Signal::Upgrade, SIGUSR2)?,
        ]))
    }

    /// The next one that has come, if there is one. Costs nothing: ask at each tick.
    pub fn take(&self) -> Option<Signal> {
        self.0.iter().find(|(_, came)| came.swap(false, Ordering::Relaxed)).map(|(signal, _)| *signal)
    }
}

#[cfg(test)]
mod tests {
    use signal_hook::low_level::raise;

    use super::*;

    #[test]
    fn signals_are_heard_once_a_kind_whichever_thread_gets_them() {
        let signals = Signals::listen().expect("signals");
        assert_eq!(signals.take(), None);
        raise(SIGHUP).expect("a signal");
        let other = std::thread::spawn(|| {
            raise(SIGTERM).expect("a signal");
            raise(SIGTERM).expect("a signal");
        });
        other.join().expect("it ended");
        let heard = [signals.take(), signals.take(), signals.take()];
        assert_eq!(heard, [Some(Signal::Terminate), Some(Signal::HangUp), None]);
    }
}
