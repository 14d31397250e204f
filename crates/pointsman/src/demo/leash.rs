//! The switch as the demo's child: it ends when the demo does, however that ends.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

/// Runs the switch until standard input closes. The demo holds the other end, and even one that is killed
/// lets go of it.
pub(super) fn run(config: PathBuf) -> ExitCode {
    thread::spawn(|| {
        // An end and an error mean the same: nobody holds the leash.
        drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
        std::process::exit(0);
    });
    crate::run::run(vec!["--config".into(), config.into()])
}
