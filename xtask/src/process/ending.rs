//! What we have started ends with us when a signal ends us.
//!
//! The kernel kills most of it by itself, for it is told to (`setpriv --pdeathsig`). It forgets that where a program becomes
//! another user, as Apache does.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{emulate_default_handler, pipe};

use crate::failure::{Because, Result};

/// Processes that run, none of which has been waited for: their numbers are nobody else's.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Who runs; nobody ends while it is held.
pub(super) fn running() -> MutexGuard<'static, BTreeSet<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on SIGINT, SIGTERM and SIGHUP end what runs, and then us.
pub(super) fn hear_signals() -> Result<()> {
    static HEARD: Once = Once::new();
    let mut heard = Ok(());
    HEARD.call_once(|| heard = hear().because(|| "cannot hear signals".into()));
    heard
}

fn hear() -> std::io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let (mut comes, tells) = UnixStream::pair()?;
        pipe::register(signal, tells)?;
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            if comes.read_exact(&mut [0]).is_ok() {
                end_all(signal);
            }
        })?;
    }
    Ok(())
}

/// The lock is kept, so that nobody starts anything meanwhile.
fn end_all(signal: i32) {
    let running = running();
    let pids: Vec<Pid> = running.iter().filter_map(|id| Pid::from_raw(i32::try_from(*id).ok()?)).collect();
    // Who has ended already is as it should be.
    for pid in &pids {
        let (Ok(()) | Err(_)) = kill_process(*pid, Signal::KILL);
    }
    for pid in pids {
        let (Ok(_) | Err(_)) = waitpid(Some(pid), WaitOptions::empty());
    }
    // It ends us, as the signal would have done unheard.
    let (Ok(()) | Err(_)) = emulate_default_handler(signal);
}
