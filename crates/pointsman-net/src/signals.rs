//! Signals, asked for at each tick.
//!
//! The kernel may run what hears a signal on any thread, and threads may have descriptor tables of their own: a
//! pipe to write to would be somebody's connection there. So a signal sets a flag and touches no descriptor.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ};
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
    /// SIGUSR1
    Reopen,
    /// SIGUSR2
    Upgrade,
}

/// Keeps limits of the system from ending this process by a signal. Call it before files are written.
///
/// A write beyond the limit on file size (RLIMIT_FSIZE) then fails as one to a full disk does. Beyond the soft limit on
/// processor time (RLIMIT_CPU) the process runs on until the hard one ends it. SIGPIPE is ignored by the standard
/// library.
///
/// # Errors
/// What the system says where it does not let them be heard.
pub fn survive_limits() -> io::Result<()> {
    // A signal that is ignored would be ignored by programs that this one starts as well; one that is heard is not.
    for number in [SIGXFSZ, SIGXCPU] {
        flag::register(number, Arc::default())?;
    }
    Ok(())
}

/// Signals that operators send to a running switch, which would end a process that is about to become one.
///
/// A log rotation or a reload need not wait for the end of the start.
#[derive(Clone, Debug)]
pub struct EarlySignals([(Signal, Arc<AtomicBool>); 3]);

impl EarlySignals {
    /// Listens from here on.
    ///
    /// # Errors
    /// What the system says where it does not let them be heard.
    pub fn listen() -> io::Result<EarlySignals> {
        Ok(EarlySignals([
            heard(Signal::HangUp, SIGHUP)?,
            heard(Signal::Reopen, SIGUSR1)?,
            heard(Signal::Upgrade, SIGUSR2)?,
        ]))
    }

    /// Listens to those that end the process, too. Until then they end it by themselves.
    ///
    /// # Errors
    /// What the system says where it does not let them be heard.
    pub fn and_ends(self) -> io::Result<Signals> {
        let [hang_up, reopen, upgrade] = self.0;
        let (terminate, interrupt) = (heard(Signal::Terminate, SIGTERM)?, heard(Signal::Interrupt, SIGINT)?);
        // In the order in which they count when several are there.
        Ok(Signals([terminate, interrupt, hang_up, reopen, upgrade]))
    }
}

fn heard(signal: Signal, number: i32) -> io::Result<(Signal, Arc<AtomicBool>)> {
    let came = Arc::new(AtomicBool::new(false));
    flag::register(number, came.clone())?;
    Ok((signal, came))
}

/// The signals of this process, heard instead of obeyed. Several of a kind that come together count once.
#[derive(Clone, Debug)]
pub struct Signals([(Signal, Arc<AtomicBool>); 5]);

impl Signals {
    /// From here on they are heard.
    ///
    /// # Errors
    /// What the system says where it does not let them be heard.
    pub fn listen() -> io::Result<Signals> {
        EarlySignals::listen()?.and_ends()
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
        raise(SIGUSR1).expect("a signal");
        assert_eq!([signals.take(), signals.take()], [Some(Signal::Reopen), None]);
        survive_limits().expect("signals");
        [SIGXFSZ, SIGXCPU].into_iter().for_each(|number| raise(number).expect("a signal"));
    }
}
