//! SIGINT and SIGTERM while something is measured: the first ends it, and what there is by then is told; the second ends at once.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pointsman_bench::Interrupt;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::{WRONG_USE, say};

/// Shells say so of a program that a signal has ended: this and the signal's number.
const BY_SIGNAL: u8 = 128;

/// Runs a command that measures, and that such a signal ends with what it has.
pub(super) fn interruptible(
    arguments: Vec<OsString>,
    command: fn(Vec<OsString>, &Interrupt) -> ExitCode,
) -> ExitCode {
    let (came, which) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let [int, term] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let heard = [(SIGINT, &int, &term), (SIGTERM, &term, &int)]
        .into_iter()
        .try_for_each(|(signal, own, other)| hear(signal, (own, other), (&came, &which)));
    if let Err(error) = heard {
        return say(&mut io::stderr(), &format!("error: cannot hear signals: {error}\n"), WRONG_USE);
    }
    let status = command(arguments, &Interrupt::by(came));
    match which.load(Ordering::SeqCst) {
        0 => status,
        signal => {
            let name = if signal == SIGINT as usize { "SIGINT" } else { "SIGTERM" };
            let told = if status == ExitCode::from(WRONG_USE) {
                ""
            } else {
                ": what had been measured by then is told"
            };
            let words = format!("interrupted by {name}{told}\n");
            say(&mut io::stderr(), &words, BY_SIGNAL + signal as u8)
        }
    }
}

/// Two of different kinds may be heard at the same time, on two threads: each says that it is there before it looks for the other.
fn hear(
    signal: i32,
    (own, other): (&Arc<AtomicBool>, &Arc<AtomicBool>),
    (came, which): (&Arc<AtomicBool>, &Arc<AtomicUsize>),
) -> io::Result<()> {
    let status = i32::from(BY_SIGNAL) + signal;
    // In this order: the first of its kind finds that none has come.
    flag::register_conditional_shutdown(signal, status, own.clone())?;
    flag::register(signal, own.clone())?;
    flag::register_usize(signal, which.clone(), signal as usize)?;
    flag::register(signal, came.clone())?;
    flag::register_conditional_shutdown(signal, status, other.clone())?;
    Ok(())
}
