//! `cargo xtask soak`: the switch under mixed load for some minutes, with flat memory and no wrong answer.
//!
//! Good clients look at every byte they get; beside them are slow, broken and hostile ones, servers that die,
//! a changed rule every few seconds, and a reader of the access log, which must tell all of it. Everything runs on the loopback of this machine and ends with the
//! command.

mod access_log;
mod behaviour;
mod client;
mod load;
mod samples;
mod server;
mod site;
mod tally;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lexopt::{Arg, ValueExt};

use crate::failure::{Because, Failure, Result};
use crate::packages::{self, Tool};
use crate::project::Project;
pub(crate) use access_log::read_log;
use access_log::{Counted, Counts};
use client::Client;
use load::Load;
use samples::Samples;
use site::Site;
use tally::Tally;

const TOOLS: &[Tool] = &[
    Tool { program: "wrk", package: "wrk" },
    Tool { program: "curl", package: "curl" },
    Tool { program: "openssl", package: "openssl" },
    Tool { program: "setpriv", package: "util-linux" },
];

/// How long descriptors may take to come back once nobody asks for anything: longer than every idle limit.
const CALM_MAX: Duration = Duration::from_secs(60);
/// How long the log's reader may take once the switch has ended.
const READ_MAX: Duration = Duration::from_secs(10);
/// How often the state of the load is printed.
const TELL_EVERY: usize = 30;

/// How long, and with which binary.
pub(crate) struct Options {
    minutes: f64,
    build: bool,
}

impl Options {
    pub(crate) fn read(mut arguments: lexopt::Parser) -> Result<Self> {
        let mut options = Self { minutes: 10.0, build: true };
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("minutes") => options.minutes = arguments.value()?.parse()?,
                Arg::Long("no-build") => options.build = false,
                other => return Err(other.unexpected().into()),
            }
        }
        if !(0.5..=24.0 * 60.0).contains(&options.minutes) {
            return Err(Failure::usage("minutes go from 0.5 to 1440"));
        }
        Ok(options)
    }
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    packages::ensure(TOOLS)?;
    if options.build {
        project.build_release("pointsman")?;
        // The origin lives in this program; without optimisation it would be the bottleneck.
        project.build_release("xtask")?;
    }
    let folder = project.target().join("soak");
    // What an earlier run left behind says nothing about this one.
    if folder.exists() {
        std::fs::remove_dir_all(&folder).because(|| format!("cannot empty `{}`", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).because(|| format!("cannot make `{}`", folder.display()))?;
    let own = std::env::current_exe().because(|| "cannot find my own binary".into())?;
    let origin = project.release_binary("xtask").unwrap_or(own);
    let site = Site::start(&project.release_binary("pointsman")?, &origin, &folder)?;
    let mut soak = Soak { site, tally: Tally::default(), samples: Samples::default(), wrong: Vec::new() };
    let length = Duration::from_secs_f64(options.minutes * 60.0);
    soak.run(length, &folder)?;
    soak.verdict(length)
}

struct Soak {
    site: Site,
    tally: Tally,
    samples: Samples,
    wrong: Vec<String>,
}

impl Soak {
    fn run(&mut self, length: Duration, folder: &Path) -> Result<()> {
        let base = samples::settled_descriptors(self.site.switch.id())?;
        println!("the switch has {base} open descriptors before the load");
        let loads = Load::start_all(&self.site.ports, length, folder)?;
        let outcome = self.under_load(length, folder);
        self.samples.keep(&folder.join("samples"))?;
        outcome?;
        for load in loads {
            let name = load.name();
            self.tally.add(name, load.outcome());
        }
        self.calm_again(base);
        self.serves("after the load");
        self.ends();
        Ok(())
    }

    /// Every kind of client at once, a sample each second.
    fn under_load(&mut self, length: Duration, folder: &Path) -> Result<()> {
        let Self { site, tally, samples, .. } = self;
        let (over, started) = (AtomicBool::new(false), Instant::now());
        let (over, tally, site) = (&over, &*tally, &*site);
        std::thread::scope(|scope| {
            for (name, behave) in behaviour::ALL {
                let around = behaviour::Around { ports: &site.ports, tally, over, folder, name };
                scope.spawn(move || behave(&around));
            }
            scope.spawn(move || site.reload_until(over, tally));
            let mut outcome = Ok(());
            while started.elapsed() < length && outcome.is_ok() {
                std::thread::sleep(Duration::from_secs(1));
                outcome = samples.take(site.switch.id(), started.elapsed());
                if outcome.is_ok() && samples.count().is_multiple_of(TELL_EVERY) {
                    println!("{} {tally}", samples.latest());
                }
            }
            // Whatever happened, the others must be told, or they never end.
            over.store(true, Ordering::Relaxed);
            outcome
        })
    }

    fn calm_again(&mut self, base: usize) {
        let started = Instant::now();
        let mut left = usize::MAX;
        while started.elapsed() < CALM_MAX {
            match samples::descriptors(self.site.switch.id()) {
                Ok(now) => left = now,
                Err(failure) => return self.wrong.push(failure.to_string()),
            }
            if left <= base {
                println!("{left} open descriptors {:.0} s after the load", started.elapsed().as_secs_f64());
                return;
            }
            std::thread::sleep(Duration::from_millis(250));
        }
        self.wrong.push(format!("{left} descriptors are open {CALM_MAX:?} after the load, {base} before it"));
    }

    fn serves(&mut self, when: &str) {
        let asked = Client::connect(self.site.ports.plain).and_then(|mut client| client.get("/img/1k"));
        if let Err(problem) = asked.and_then(|answer| answer.expect_filled(200, b'x', 1024)) {
            self.wrong.push(format!("{when} the switch does not serve: {problem}"));
        }
    }

    /// What the switch counted stands in its log, too, to the last exchange.
    fn ends(&mut self) {
        let counted = self.counted();
        self.drains();
        let reader = &mut self.site.log_reader;
        let read = reader.wait_for_exit(READ_MAX).and_then(|_| Counts::read(&reader.said()));
        match (counted, read) {
            (Ok(mut counted), Some(counts)) => {
                println!("access log: {} lines, {} dropped", counts.lines(), counted.dropped);
                // The one of the drain came after the count.
                counted.exchanges += 1;
                self.wrong.extend(counts.complaints(&counted, &self.tally));
            }
            (Err(problem), _) => self.wrong.push(format!("the metrics: {problem}")),
            (_, None) => self.wrong.push("the access log was not read to its end".to_owned()),
        }
    }

    fn counted(&self) -> std::result::Result<Counted, String> {
        let failed = |label| self.site.metric_with("pointsman_tls_handshake_failures_total", label);
        let (all, timeouts) = (failed("")?, failed("reason=\"timeout\"")?);
        let lineless = failed("reason=\"closed\"")? + failed("reason=\"memory\"")?;
        let with_lines = all.saturating_sub(lineless);
        Ok(Counted {
            exchanges: self.site.metric("pointsman_requests_total")?,
            handshakes: with_lines.saturating_sub(timeouts)..=with_lines,
            dropped: self.site.metric("pointsman_access_log_dropped_lines_total")?,
        })
    }

    /// An exchange is open when the signal comes: it ends well, and then the switch does.
    fn drains(&mut self) {
        let port = self.site.ports.plain;
        let open = Client::connect(port).and_then(|mut client| {
            client.send(&client::request("/ok/slow"))?;
            client.wait_for_bytes()?;
            self.site.switch.signal("TERM")?;
            client.answer()?.expect_filled(200, b's', server::SLOW_BYTES)
        });
        if let Err(problem) = open {
            self.wrong.push(format!("the exchange that was open during the drain: {problem}"));
        }
        match self.site.switch.wait_for_exit(site::DRAIN_MAX + Duration::from_secs(10)) {
            Some(status) if status.success() => println!("drained, exit status 0"),
            Some(status) => self.wrong.push(format!("the switch ended with {status}")),
            None => self.wrong.push("the switch did not end after SIGTERM".to_owned()),
        }
    }

    fn verdict(mut self, length: Duration) -> Result<()> {
        println!("\n{}", self.tally.table());
        match self.samples.memory() {
            Some(memory) => {
                println!("{memory}");
                if length >= samples::JUDGED_FROM && !memory.is_flat() {
                    self.wrong.push("resident memory is not flat".to_owned());
                }
            }
            None => self.wrong.push("too few samples to judge memory by".to_owned()),
        }
        println!("most open descriptors: {}", self.samples.most_descriptors());
        self.wrong.extend(self.tally.complaints());
        if self.wrong.is_empty() {
            match length >= samples::JUDGED_FROM {
                true => println!("soak: fine"),
                false => println!(
                    "soak: nothing was wrong, which is an indication only: memory is judged from {} minutes on",
                    samples::JUDGED_FROM.as_secs() / 60
                ),
            }
            return Ok(());
        }
        let list: String = self.wrong.iter().map(|wrong| format!("\n  {wrong}")).collect();
        Err(Failure::new(format!(
            "the soak failed:{list}\nthe switch said:\n{}",
            self.site.switch.last_lines()
        )))
    }
}

/// A port nobody listens on now.
fn free_port() -> Result<u16> {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    Ok(taken.because(|| "cannot find a free port".into())?.port())
}
