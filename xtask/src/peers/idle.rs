//! What a connection costs that had one request and is idle: resident memory of the proxy.

use std::path::Path;
use std::time::{Duration, Instant};

use super::LOAD_CORE;
use super::child::{Child, Place};
use super::lineup::{Lineup, Proxy};
use super::report::Round;
use super::scenario::Scenario;
use crate::failure::{Because, Failure, Result};

/// How long memory may take to settle; so many looks in a row must then be the same.
const SETTLE_MAX: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(250);
const LOOKS_ALIKE: usize = 4;

/// In each round each proxy starts anew, so that none has grown in the round before.
pub(super) fn measure(
    scenario: &Scenario,
    lineup: &Lineup,
    rounds: usize,
    crowd: &Path,
    folder: &Path,
) -> Result<Vec<Round>> {
    let setups = lineup.setups();
    let mut seen = Vec::new();
    for number in 0..rounds {
        for place in 0..setups.len() {
            let proxy = lineup.start(setups[(number + place) % setups.len()])?;
            let before = settled(&proxy)?;
            let mut clients = clients(scenario, lineup, &proxy, crowd, folder)?;
            let after = settled(&proxy)?;
            clients.expect_running()?;
            drop(clients);
            if after <= before {
                let kib = (before - after) / 1024;
                return Err(Failure::new(format!(
                    "the memory of {} shrank by {kib} KiB while its clients came: what it gave back of its start hides \
                     what they cost; measure it without `--rules-before`",
                    proxy.name
                )));
            }
            let round = Round::of_memory(proxy.name, before, after, scenario.connections);
            println!("{:<10} round {} {round}", scenario.name, number + 1);
            seen.push(round);
        }
    }
    Ok(seen)
}

/// Clients that have had their answers and are silent.
fn clients(
    scenario: &Scenario,
    lineup: &Lineup,
    proxy: &Proxy,
    crowd: &Path,
    folder: &Path,
) -> Result<Child> {
    let target = format!("{}{}", scenario.folder, scenario.answer);
    let address = format!("127.0.0.1:{}", proxy.ports[0]);
    let mut words =
        vec!["crowd".into(), address.into(), target.into(), scenario.connections.to_string().into()];
    words.extend(lineup.authority().map(Into::into));
    let mut child =
        Child::start("the clients", Place::on(&[LOAD_CORE]), crowd, &words, &folder.join("clients.log"))?;
    child.wait_for_log(|text| text.starts_with("ready").then_some(()))?;
    Ok(child)
}

/// The proxy's resident memory in bytes, when it no longer changes.
fn settled(proxy: &Proxy) -> Result<u64> {
    let started = Instant::now();
    let (mut last, mut alike) = (resident(proxy)?, 1);
    while alike < LOOKS_ALIKE {
        if started.elapsed() > SETTLE_MAX {
            return Err(Failure::new(format!("the memory of {} does not settle", proxy.name)));
        }
        std::thread::sleep(LOOK_EVERY);
        let now = resident(proxy)?;
        alike = if now == last { alike + 1 } else { 1 };
        last = now;
    }
    Ok(last)
}

fn resident(proxy: &Proxy) -> Result<u64> {
    let mut sum = 0;
    for id in proxy.ids() {
        // The plain status sums up counters of each core and may be off by some dozen pages.
        let path = format!("/proc/{id}/smaps_rollup");
        let text = std::fs::read_to_string(&path).because(|| format!("cannot read `{path}`"))?;
        sum += rss(&text).ok_or_else(|| Failure::new(format!("cannot read `{path}`:\n{text}")))?;
    }
    Ok(sum)
}

/// See proc(5): `Rss:  1234 kB`.
fn rss(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::rss;

    #[test]
    fn resident_memory_is_read() {
        let text =
            "55d2a000-7ffc9000 ---p 00000000 00:00 0   [rollup]\nRss:                3284 kB\nPss: 1 kB\n";
        assert_eq!(rss(text), Some(3284 * 1024));
        assert_eq!(rss("Pss: 1 kB\n"), None);
    }
}
