//! `pointsman bench` before a server, on the core of the load: it ends with us, and not behind its time.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::Value;

use super::contender::Contender;
use super::search::Mode;
use super::{LOAD_CORE, Options};
use crate::failure::{Because, Failure, Result};
use crate::peers::{Place, Precedence};
use crate::process::{Process, Start};

/// A command, and where what it says and finds goes.
pub(super) struct Bench<'a> {
    binary: &'a Path,
    precedence: Precedence,
    words: Vec<OsString>,
    log: PathBuf,
    file: PathBuf,
}

impl<'a> Bench<'a> {
    /// `bench load` or `bench find`; figures go to a file, and what is said to one beside it.
    pub(super) fn new(
        what: &str,
        (binary, contender, mode): (&'a Path, &Contender, &Mode),
        options: &Options,
        file: PathBuf,
    ) -> Self {
        // Where there is a throttle there is the right to go first as well: what else happens on the machine is not to make
        // requests late.
        let precedence = match mode.share_percent(options) {
            100 => Precedence::Usual,
            _ => Precedence::First,
        };
        let mut bench = Self { binary, precedence, words: Vec::new(), log: file.with_extension("log"), file };
        bench.add(&["bench", what, &contender.url(), "--insecure", "--threads", "1", "--tls-version", "1.3"]);
        bench.add(&["--suites", "TLS_AES_128_GCM_SHA256", "--groups", "X25519"]);
        bench.add(mode.words());
        bench.add(&["--save"]);
        bench.words.push((&bench.file).into());
        bench
    }

    pub(super) fn add(&mut self, words: &[&str]) {
        self.words.extend(words.iter().map(OsString::from));
    }

    /// How it ended, which it does within so many milliseconds, and what it said.
    pub(super) fn run(&self, within_ms: u32) -> Result<(ExitStatus, String)> {
        let start = Start { name: "the bench", program: self.binary, arguments: &self.words, log: &self.log };
        let place = Place { cores: &[LOAD_CORE], precedence: self.precedence };
        let mut process = Process::start_through(&start, &place.through())?;
        let status = process.wait_for_exit(Duration::from_millis(within_ms.into()));
        let said = process.last_lines();
        match status {
            Some(status) => Ok((status, said)),
            None => Err(Failure::new(format!("{} has not ended after {within_ms} ms\n{said}", self.shown()))),
        }
    }

    /// The run that it saved.
    pub(super) fn saved(&self) -> Result<Value> {
        let doing = || format!("cannot read `{}`", self.file.display());
        let text = std::fs::read_to_string(&self.file).because(doing)?;
        let document: Value = serde_json::from_str(&text).because(doing)?;
        Ok(document["runs"][0].clone())
    }

    /// As messages have it.
    pub(super) fn shown(&self) -> String {
        let words = self.words.iter().map(|word| word.to_string_lossy());
        format!("`pointsman {}`", words.collect::<Vec<_>>().join(" "))
    }
}
