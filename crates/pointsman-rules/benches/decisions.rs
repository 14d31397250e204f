//! What a decision costs in sets of many sizes, and what it costs to compile the largest.
//!
//! `cargo bench -p pointsman-rules`. All sets are asked in turns, so that what else the machine does falls on all of
//! them; ratios say more than times. It ends with 1 where a ratio is beyond its bound.
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

mod sets;

use std::fs;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pointsman_rules::{Program, Targets, Truths, compile};
use sets::{Request, Set};

/// Requests that are timed together: one by itself is as short as reading the clock.
const BATCH: usize = 8;
const TURNS: usize = 24;
/// The plain interpreter takes so much longer that it gets fewer.
const PLAIN_BATCHES: usize = 1;

struct Row {
    name: &'static str,
    program: Program,
    requests: Vec<Request>,
    truths: Truths,
    by_engine: Vec<Duration>,
    plainly: Vec<Duration>,
}

fn main() -> ExitCode {
    let sets = [
        Set::hosts("3 hosts", 3),
        Set::hosts("100 hosts", 100),
        Set::mixed("1,000 mixed", 1_000),
        Set::mixed("20,000 mixed", 20_000),
        Set::skewed("20,000 skewed", 20_000),
        Set::patterns("2,000 patterns", 2_000),
        Set::regexes("5,000 regexes", 5_000),
        Set::names("20,000 names", 20_000),
        Set::mixed("100,000 mixed", 100_000),
    ];
    let mut rows: Vec<Row> = sets.into_iter().map(Row::new).collect();
    for row in &rows {
        row.agrees();
    }
    for _ in 0..TURNS {
        rows.iter_mut().for_each(Row::turn);
    }
    rows.iter_mut().for_each(Row::say);
    let median = |name: &str| {
        let row = rows.iter().find(|row| row.name == name);
        row.map_or((1.0, 1.0), |row| (nanoseconds(&row.by_engine, 50), nanoseconds(&row.plainly, 50)))
    };
    let small = median("1,000 mixed").0;
    let large = median("20,000 mixed");
    let mut is_fine = true;
    let mut bound = |what: &str, ratio: f64, holds: bool| {
        println!("{what:<44} {ratio:>9.2} {}", if holds { "" } else { "BEYOND ITS BOUND" });
        is_fine &= holds;
    };
    let ratio = large.0 / small;
    bound("20,000 mixed to 1,000 mixed", ratio, ratio <= 2.0);
    let ratio = median("100,000 mixed").0 / small;
    bound("100,000 mixed to 1,000 mixed", ratio, ratio <= 3.0);
    let ratio = median("20,000 skewed").0 / small;
    bound("20,000 skewed to 1,000 mixed", ratio, ratio <= 4.0);
    let ratio = median("20,000 names").0 / small;
    bound("20,000 names to 1,000 mixed", ratio, ratio <= 2.0);
    let ratio = median("5,000 regexes").0 / small;
    bound("5,000 regexes to 1,000 mixed", ratio, ratio <= 3.0);
    let ratio = large.1 / large.0;
    bound("interpreter to engine at 20,000 mixed", ratio, ratio >= 50.0);
    if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Row {
    fn new(set: Set) -> Row {
        let started = Instant::now();
        let compiled = compile(&set.source, &Targets::Any);
        let took = started.elapsed();
        let program = compiled.map(|compiled| compiled.program).unwrap_or_else(|findings| {
            panic!("{}: {:?}", set.name, findings.first());
        });
        let seconds = took.as_secs_f64();
        println!("{:<16} compiled in {seconds:.2} s, {}", set.name, peak_memory());
        let (by_engine, plainly) = (Vec::new(), Vec::new());
        Row { name: set.name, program, requests: set.requests, truths: Truths::default(), by_engine, plainly }
    }

    /// What is compared says the same.
    fn agrees(&self) {
        let mut truths = Truths::default();
        for request in self.requests.iter().take(200) {
            let decided = self.program.decide(request, &mut truths).by;
            assert_eq!(decided, self.program.decide_plainly(request).by, "{}: {request:?}", self.name);
        }
    }

    /// All requests once, so that what they need is near at hand, as it is under load; then once more, timed. The
    /// interpreter comes last, for it leaves nothing where it was.
    fn turn(&mut self) {
        for request in &self.requests {
            black_box(self.program.decide(request, &mut self.truths));
        }
        for batch in self.requests.chunks_exact(BATCH) {
            let started = Instant::now();
            for request in batch {
                black_box(self.program.decide(black_box(request), &mut self.truths));
            }
            self.by_engine.push(started.elapsed());
        }
        let batches = self.requests.chunks_exact(BATCH).cycle().skip(self.plainly.len());
        for batch in batches.take(PLAIN_BATCHES) {
            let started = Instant::now();
            for request in batch {
                black_box(self.program.decide_plainly(black_box(request)));
            }
            self.plainly.push(started.elapsed());
        }
    }

    fn say(&mut self) {
        self.by_engine.sort_unstable();
        self.plainly.sort_unstable();
        let [half, most] = [50, 99].map(|percent| nanoseconds(&self.by_engine, percent));
        let plainly = nanoseconds(&self.plainly, 50);
        println!("{:<16} p50 {half:>7.0} ns  p99 {most:>7.0} ns  plainly {plainly:>9.0} ns", self.name);
    }
}

/// Of one decision, by the sorted times of batches.
fn nanoseconds(sorted: &[Duration], percent: usize) -> f64 {
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).map_or(0.0, |batch| batch.as_secs_f64() * 1e9 / BATCH as f64)
}

/// The most memory that the process has had so far, as Linux tells.
fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(String::new, |peak| format!("at most {} so far", peak.trim()))
}
