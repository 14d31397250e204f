//! What a request costs under load: CPU time of the proxy.

use std::fs::OpenOptions;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use pointsman_bench::{Time, ticks_per_second};

use super::child::{Child, Place};
use super::lineup::{Lineup, Proxy};
use super::load::{Load, Outcome};
use super::report::{Round, Window};
use super::scenario::Scenario;
use super::{LOAD_CORE, Options, PROXY_CORE, WARM_UP_SECONDS};
use crate::failure::{Because, Failure, Result};

/// How long the last lines of an access log may take.
const LINES_MAX: Duration = Duration::from_secs(5);
/// nginx is told to put 64 KiB together, which is some six hundred lines.
const LINES_HELD_MAX: u64 = 1000;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// All rounds of a scenario: in each, one proxy after the other, each round beginning with another one.
pub(super) fn measure(
    scenario: &Scenario,
    lineup: &Lineup,
    options: &Options,
    folder: &Path,
) -> Result<Vec<Round>> {
    let proxies = lineup.setups().into_iter().map(|setup| lineup.start(setup)).collect::<Result<Vec<_>>>()?;
    let spinners =
        (0..lineup.spinners()).map(|number| start_spinner(folder, number)).collect::<Result<Vec<_>>>()?;
    let ticks_per_second = ticks_per_second();
    let mut rounds = Vec::new();
    for number in 0..options.turns.rounds {
        for place in 0..proxies.len() {
            let proxy = &proxies[(number + place) % proxies.len()];
            run(scenario, lineup, proxy, WARM_UP_SECONDS)?;
            let log = proxy.log.as_deref().map(Log::emptied).transpose()?;
            let ids = proxy.ids();
            let started = Instant::now();
            let account = || Time::of_trees(&ids).because(|| "cannot look at the proxy's processes".into());
            let before = account()?;
            let mut outcome = run(scenario, lineup, proxy, options.turns.seconds)?;
            // The window of the account is a little longer than the load: what is over is idle.
            let window = started.elapsed();
            let missing = log.map(|log| log.missing(outcome.requests)).transpose()?.unwrap_or(0);
            let spent = account()?.since(&before, ticks_per_second);
            outcome.errors += missing;
            let window = Window { length: window, threads: proxy.ports.len(), spinners: lineup.spinners() };
            let round = Round::of_load(proxy.name, &outcome, spent, window);
            println!("{:<10} round {} {round}", scenario.name, number + 1);
            rounds.push(round);
        }
    }
    drop(spinners);
    Ok(rounds)
}

/// One load generator for each port of the proxy, at the same time. A proxy on both cores gets one on each for each
/// port: what is asked from the same core is answered for less, so all its threads must be asked from both.
fn run(scenario: &Scenario, lineup: &Lineup, proxy: &Proxy, seconds: u32) -> Result<Outcome> {
    let cores: &[usize] = if proxy.ports.len() > 1 { &[PROXY_CORE, LOAD_CORE] } else { &[LOAD_CORE] };
    let generators = proxy.ports.iter().flat_map(|port| cores.iter().map(move |core| (*port, *core)));
    let count = u32::try_from(proxy.ports.len() * cores.len()).unwrap_or(1);
    let connections = proxy.connections.unwrap_or(scenario.connections) / count;
    let outcomes = std::thread::scope(|scope| {
        let runs: Vec<_> = generators
            .map(|(port, core)| {
                let load = Load {
                    scenario,
                    port,
                    core,
                    connections,
                    openssl_conf: lineup.openssl_conf(),
                    upload: lineup.upload(),
                };
                scope.spawn(move || load.run(seconds))
            })
            .collect();
        let joined =
            runs.into_iter().map(|run| run.join().map_err(|_| Failure::new("a load generator broke")));
        joined.map(|outcome| outcome.and_then(|outcome| outcome)).collect::<Result<Vec<_>>>()
    })?;
    outcomes.into_iter().reduce(Outcome::and).ok_or_else(|| Failure::new("a proxy without a port"))
}

fn start_spinner(folder: &Path, number: usize) -> Result<Child> {
    let own = std::env::current_exe().because(|| "cannot find my own binary".into())?;
    let log = folder.join(format!("spin-{number}.log"));
    Child::start("a spinner", Place::on(&[PROXY_CORE]), &own, &["spin".into()], &log)
}

/// The access log of a proxy: a line that is not written was not paid for either.
struct Log<'a> {
    path: &'a Path,
}

impl<'a> Log<'a> {
    /// The proxies append, so what was written before can be cut off under their hands.
    fn emptied(path: &'a Path) -> Result<Self> {
        let file = OpenOptions::new().write(true).open(path);
        file.and_then(|file| file.set_len(0)).because(|| format!("cannot empty `{}`", path.display()))?;
        Ok(Self { path })
    }

    /// How many lines of these requests do not come.
    fn missing(&self, requests: u64) -> Result<u64> {
        let started = Instant::now();
        loop {
            let missing = missing(requests, self.lines()?);
            if missing == 0 || started.elapsed() > LINES_MAX {
                return Ok(missing);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn lines(&self) -> Result<u64> {
        let doing = || format!("cannot read `{}`", self.path.display());
        let mut file = std::fs::File::open(self.path).because(doing)?;
        let mut piece = vec![0; 1 << 20];
        let mut lines = 0;
        loop {
            match file.read(&mut piece).because(doing)? {
                0 => return Ok(lines),
                count => lines += memchr::memchr_iter(b'\n', &piece[..count]).count() as u64,
            }
        }
    }
}

/// A buffer may hold some lines until more come; that many are not missed.
fn missing(requests: u64, lines: u64) -> u64 {
    let missing = requests.saturating_sub(lines);
    if missing > LINES_HELD_MAX { missing } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::{LINES_HELD_MAX, Log, missing};

    #[test]
    fn lines_that_are_not_there_are_missed() {
        let path = std::env::temp_dir().join(format!("access.log.{}", std::process::id()));
        std::fs::write(&path, "from before\n").expect("a temporary folder");
        let log = Log::emptied(&path).expect("it is there");
        assert_eq!(log.lines().ok(), Some(0));
        std::fs::write(&path, "x\n".repeat(995)).expect("a temporary folder");
        assert_eq!(log.lines().ok(), Some(995));
        assert_eq!(log.missing(1000).ok(), Some(0));
        assert_eq!(missing(LINES_HELD_MAX + 996, 995), LINES_HELD_MAX + 1);
        std::fs::remove_file(&path).expect("still there");
        assert!(Log::emptied(&path).is_err());
    }
}
