//! A run: mutants are made, sent through the switch and judged by what the readers read.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::bytes;
use super::client::{Connections, Response};
use super::dice::Dice;
use super::findings::{Finding, Findings};
use super::mutations::{self, Step};
use super::readers::Reader;
use super::reading::Reading;
use super::request::Request;
use super::rules::{RULES, Rule};
use super::site::Site;

/// Requests in flight: a thread of ours for each.
const THREADS: usize = 12;
/// One mutant of so many also goes straight to its reader.
const DIRECT_EVERY: usize = 8;
/// How often a run tells how far it is.
const TELL_EVERY: Duration = Duration::from_secs(30);
/// Requests that one finding may cost until it is as short as it gets.
const SHRINK_REQUESTS_MAX: usize = 400;

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// 403, which only the rules answer with.
    Refused,
    /// Another response of the switch, such as 400 or 415.
    Bad,
    /// Nothing but a close.
    Closed,
    /// A response of the reader: a value that the rule should have met, if it read one.
    Read(Option<String>),
    /// The reader refused it.
    ReaderRefused,
}

/// How far a run is to go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) mutants: u64,
    pub(super) seed: u64,
    pub(super) time_max: Option<Duration>,
}

/// Counts of a rule before a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) refused: u64,
    pub(super) bad: u64,
    pub(super) closed: u64,
    pub(super) read: u64,
    pub(super) reader_refused: u64,
    /// Sent to the reader straight, and those in which it read what the rule forbids.
    pub(super) direct: u64,
    pub(super) direct_forbidden: u64,
}

/// What a run has found.
#[derive(Default)]
pub(super) struct Results {
    pub(super) counts: BTreeMap<(&'static str, &'static str), Counts>,
    pub(super) findings: Findings,
    pub(super) mutants: u64,
    pub(super) errors: BTreeMap<String, u64>,
}

/// A mutant before it is bytes: what is cut down first.
struct Mutant<'a> {
    rule: usize,
    reader: &'a Reader,
    /// Before the draft and behind the steps.
    drafting: Dice,
    steps: Vec<Step>,
    flips_bytes: Option<Dice>,
}

pub(super) fn run(site: &Site, extent: Extent) -> Results {
    let (next, results) = (AtomicU64::new(0), Mutex::new(Results::default()));
    let started = Instant::now();
    let is_over = || extent.time_max.is_some_and(|longest| started.elapsed() >= longest);
    let told = Mutex::new(started);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut connections = Connections::default();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= extent.mutants || is_over() {
                        break;
                    }
                    one(site, extent.seed, index, &mut connections, &results);
                    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                    if told.elapsed() >= TELL_EVERY {
                        *told = Instant::now();
                        let results = results.lock().unwrap_or_else(PoisonError::into_inner);
                        println!(
                            "{} mutants, {} groups of findings",
                            results.mutants,
                            results.findings.len()
                        );
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn one(site: &Site, seed: u64, index: u64, connections: &mut Connections, results: &Mutex<Results>) {
    let mut dice = Dice::new(seed, index);
    let Some(mutant) = Mutant::choose(site, &mut dice) else { return };
    let Some(port) = site.port(mutant.rule, mutant.reader.kind) else { return };
    let request = mutant.request();
    let rule = &RULES[mutant.rule];
    let outcome = sent(connections, port, &request, rule, mutant.reader);
    let direct = dice
        .one_in(DIRECT_EVERY)
        .then(|| sent(connections, mutant.reader.port, &request, rule, mutant.reader));
    let key = (rule.name, mutant.reader.kind.name());
    let finding = match &outcome {
        Ok(Outcome::Read(Some(_))) => shrunk(&mutant, port, connections, results),
        _ => None,
    };
    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
    results.mutants += 1;
    results.counts.entry(key).or_default().add(&outcome, direct.as_ref());
    if let Err(error) = &outcome {
        *results.errors.entry(format!("{} before {}: {error}", key.0, key.1)).or_default() += 1;
    }
    if let Some(finding) = finding {
        results.findings.add(finding);
    }
}

impl<'a> Mutant<'a> {
    fn choose(site: &'a Site, dice: &mut Dice) -> Option<Self> {
        let weights = site.readers.iter().map(|reader| reader.kind.weight());
        let mut at = dice.below(weights.clone().sum());
        let reader = site.readers.iter().find(|reader| {
            let is_it = at < reader.kind.weight();
            at = at.saturating_sub(reader.kind.weight());
            is_it
        })?;
        let fitting: Vec<usize> =
            (0..RULES.len()).filter(|rule| reader.kind.reads(RULES[*rule].name)).collect();
        let rule = *dice.pick(&fitting);
        let drafting = Dice::new(dice.next(), 0);
        let steps = mutations::steps(RULES[rule].areas, dice);
        let flips_bytes = dice.one_in(4).then(|| Dice::new(dice.next(), 1));
        Some(Self { rule, reader, drafting, steps, flips_bytes })
    }

    fn request(&self) -> Request {
        let draft = RULES[self.rule].draft(&mut self.drafting.clone());
        let mut request = mutations::applied(draft, &self.steps).request();
        if let Some(dice) = &self.flips_bytes {
            bytes::mutate(&mut request, &mut dice.clone());
        }
        request
    }

    /// Names of the mutations that are left.
    fn kinds(&self) -> String {
        let names =
            self.steps.iter().map(|step| step.mutation.name).chain(self.flips_bytes.iter().map(|_| "bytes"));
        let names: Vec<_> = names.collect();
        if names.is_empty() { "plain".to_owned() } else { names.join(" + ") }
    }
}

/// Fewer mutations, then, where the group is new, fewer bytes: whatever still reaches the reader with a forbidden value.
fn shrunk(
    mutant: &Mutant<'_>,
    port: u16,
    connections: &mut Connections,
    results: &Mutex<Results>,
) -> Option<Finding> {
    let rule = &RULES[mutant.rule];
    let mut fails = |request: &Request| match sent(connections, port, request, rule, mutant.reader) {
        Ok(Outcome::Read(found)) => found,
        _ => None,
    };
    let mut least = Mutant {
        steps: mutant.steps.clone(),
        flips_bytes: mutant.flips_bytes.clone(),
        drafting: mutant.drafting.clone(),
        ..*mutant
    };
    let whole = least.flips_bytes.take();
    if fails(&least.request()).is_none() {
        least.flips_bytes = whole;
    }
    let mut at = 0;
    while at < least.steps.len() {
        let step = least.steps.remove(at);
        if fails(&least.request()).is_none() {
            least.steps.insert(at, step);
            at += 1;
        }
    }
    let mut request = least.request();
    // What cannot be repeated depends on what came before it on the connection: told, but not cut down.
    let read = fails(&request)?;
    let mut finding = Finding {
        rule: rule.name,
        reader: mutant.reader.kind.name(),
        kinds: least.kinds(),
        read,
        request: Vec::new(),
        has_own_connection: false,
    };
    if results.lock().unwrap_or_else(PoisonError::into_inner).findings.knows(&finding) {
        return Some(finding);
    }
    let mut left = SHRINK_REQUESTS_MAX;
    'shorter: while left > 0 {
        for smaller in bytes::smaller(&request) {
            left = left.saturating_sub(1);
            if let Some(read) = fails(&smaller) {
                (request, finding.read) = (smaller, read);
                continue 'shorter;
            }
            if left == 0 {
                break 'shorter;
            }
        }
        break;
    }
    (finding.request, finding.has_own_connection) = (request.bytes(), request.needs_own_connection());
    Some(finding)
}

/// Sends a request to the switch, or straight to a reader.
fn sent(
    connections: &mut Connections,
    port: u16,
    request: &Request,
    rule: &Rule,
    reader: &Reader,
) -> io::Result<Outcome> {
    sent_bytes(connections, port, &request.bytes(), request.needs_own_connection(), rule, reader)
}

pub(super) fn sent_bytes(
    connections: &mut Connections,
    port: u16,
    bytes: &[u8],
    alone: bool,
    rule: &Rule,
    reader: &Reader,
) -> io::Result<Outcome> {
    let responses = if alone {
        Connections::all(port, bytes)?
    } else {
        connections.one(port, bytes)?.into_iter().collect()
    };
    let outcomes =
        responses.iter().map(|response| judged(response, rule, reader)).collect::<io::Result<Vec<_>>>()?;
    // Of several requests in one mutant the first that was passed and should not have been counts.
    let found = outcomes.iter().find(|outcome| matches!(outcome, Outcome::Read(Some(_))));
    Ok(found.or(outcomes.first()).cloned().unwrap_or(Outcome::Closed))
}

fn judged(response: &Response, rule: &Rule, reader: &Reader) -> io::Result<Outcome> {
    if !response.is_reading {
        return Ok(match response.status {
            403 => Outcome::Refused,
            // These come from the reader's own server, or of what it did not answer.
            404.. | 300..400 if response.status != 413 && response.status != 415 => Outcome::ReaderRefused,
            _ => Outcome::Bad,
        });
    }
    let reading = match reader.mark.as_str() {
        "" => Reading::of_json(&response.body),
        mark => Reading::marked(&response.body, mark),
    };
    let reading = reading.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("not a reading: {}", String::from_utf8_lossy(&response.body)),
        )
    })?;
    Ok(Outcome::Read(rule.forbids.found(&reading)))
}

impl Counts {
    fn add(&mut self, outcome: &io::Result<Outcome>, direct: Option<&io::Result<Outcome>>) {
        match outcome {
            Ok(Outcome::Refused) => self.refused += 1,
            Ok(Outcome::Bad) => self.bad += 1,
            Ok(Outcome::Closed) | Err(_) => self.closed += 1,
            Ok(Outcome::Read(_)) => self.read += 1,
            Ok(Outcome::ReaderRefused) => self.reader_refused += 1,
        }
        self.direct += u64::from(direct.is_some());
        self.direct_forbidden += u64::from(matches!(direct, Some(Ok(Outcome::Read(Some(_))))));
    }
}
