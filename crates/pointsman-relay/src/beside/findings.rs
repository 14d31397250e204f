//! What a dry-run has found: each thread counts by itself, and who asks adds up.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pointsman_rules::{Contrast, Said, Way};
use pointsman_telemetry::{Counter, OwnLines};

/// Kinds of differences that are told apart; more are counted. As many as a replay tells apart.
const GROUPS_MAX: usize = 1_000;
/// Requests that are kept of each kind.
const SAMPLES_MAX: usize = 3;
/// Bytes of each text of them.
const SAMPLE_BYTES_MAX: usize = 200;
/// Characters of a label, and of what is said of an outcome, which may have a whole page in it.
const TEXT_CHARS_MAX: usize = 500;
/// So many of them stand before the first that differs, where that comes late.
const ALIKE_CHARS: usize = 100;

/// Why two decisions cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Untold {
    /// The candidate's rules need more of the body than the live ones.
    Body,
    /// The candidate has no such listener.
    NoListener,
    /// It reads something else there.
    Protocol,
}

/// What all threads have found.
pub(crate) struct Findings {
    listeners: Box<[Arc<str>]>,
    threads: Mutex<Vec<Arc<OfThread>>>,
    /// Nothing is counted any more.
    is_over: AtomicBool,
}

/// What one thread has found, which alone adds to it.
struct OfThread {
    /// By listener.
    counts: Box<[OwnLines<Counts>]>,
    /// Locked for a new kind of difference, and by who reads.
    groups: Mutex<Vec<Arc<Group>>>,
}

/// Where one thread counts. To count takes no lock, but for the first of a kind.
pub(super) struct Tally {
    found: Arc<OfThread>,
    /// The same groups as are found, for the thread alone.
    groups: Vec<Arc<Group>>,
    by_kind: HashMap<Arc<Kind>, u32>,
}

#[derive(Default)]
struct Counts {
    same: Counter,
    other_rule: Counter,
    changed: Counter,
    /// By the reason.
    untold: [Counter; UNTOLD],
    /// Of `other_rule` and `changed`: those that are in no group.
    ungrouped: Counter,
}

const UNTOLD: usize = Untold::Protocol as usize + 1;

/// What decisions have in common that differ alike.
#[derive(PartialEq, Eq, Hash)]
struct Kind {
    listener: usize,
    is_outcome: bool,
    then: Way,
    now: Way,
}

/// Decisions that differ alike.
struct Group {
    kind: Arc<Kind>,
    count: Counter,
    samples: Mutex<Vec<DryRunSample>>,
}

/// What a pair of decisions comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Same,
    /// The group, if there is room for one.
    OtherRule(Option<u32>),
    Changed(Option<u32>),
}

/// How many decisions were compared, and what they came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DryRunCounts {
    /// The same rule, and the same comes of it.
    pub same: u64,
    /// Another rule, and the same comes of it.
    pub other_rule: u64,
    /// Something else comes of it.
    pub changed: u64,
    /// The candidate's rules need more of the body than is read for those that serve.
    pub needs_body: u64,
    /// The candidate has no such listener.
    pub no_listener: u64,
    /// The candidate's listener reads another protocol.
    pub other_protocol: u64,
    /// Of those that differ: too many kinds to be told apart.
    pub ungrouped: u64,
}

/// Decisions that differ alike.
#[derive(Clone, Debug)]
pub struct DryRunGroup {
    /// The name of the listener.
    pub listener: Arc<str>,
    /// Whether something else comes of them; otherwise another rule decides, and the same comes of it.
    pub is_outcome: bool,
    /// What serves.
    pub then: Way,
    /// What the candidate says.
    pub now: Way,
    /// How many.
    pub count: u64,
    /// The first of them, as far as they are kept.
    pub samples: Vec<DryRunSample>,
}

/// A request, or a connection, that is decided otherwise, with no more than the access log shows of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DryRunSample {
    /// Microseconds since 1970.
    pub unix_us: u64,
    /// Who sent it, where that has an address.
    pub client: Option<IpAddr>,
    /// Absent of a connection, as what follows.
    pub method: Option<String>,
    /// Absent where the request names none.
    pub host: Option<String>,
    /// In normal form.
    pub path: Option<String>,
    /// Where the access log has it.
    pub query: Option<String>,
}

impl DryRunCounts {
    /// How many decisions the candidate was asked for.
    #[must_use]
    pub fn decisions(&self) -> u64 {
        self.same + self.other_rule + self.changed + self.untold()
    }

    /// How many of them cannot be compared.
    #[must_use]
    pub fn untold(&self) -> u64 {
        self.needs_body + self.no_listener + self.other_protocol
    }

    /// With those of another place or time.
    #[must_use]
    pub fn plus(self, other: DryRunCounts) -> DryRunCounts {
        DryRunCounts {
            same: self.same + other.same,
            other_rule: self.other_rule + other.other_rule,
            changed: self.changed + other.changed,
            needs_body: self.needs_body + other.needs_body,
            no_listener: self.no_listener + other.no_listener,
            other_protocol: self.other_protocol + other.other_protocol,
            ungrouped: self.ungrouped + other.ungrouped,
        }
    }
}

impl Findings {
    /// Nothing yet of these listeners.
    pub(super) fn new(listeners: Box<[Arc<str>]>) -> Findings {
        Findings { listeners, threads: Mutex::default(), is_over: AtomicBool::new(false) }
    }

    /// Where another thread counts.
    pub(super) fn of_new_thread(&self) -> Tally {
        let counts = self.listeners.iter().map(|_| OwnLines::default()).collect();
        let found = Arc::new(OfThread { counts, groups: Mutex::default() });
        held(&self.threads).push(found.clone());
        Tally { found, groups: Vec::new(), by_kind: HashMap::new() }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Nothing is counted from now on, but for what a thread is about to.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// By listener, in the order of the plan.
    pub(super) fn counts(&self) -> Vec<(Arc<str>, DryRunCounts)> {
        let threads = held(&self.threads);
        let of = |number: usize| {
            let counts = threads.iter().filter_map(|thread| thread.counts.get(number));
            counts.fold(DryRunCounts::default(), |sum, counts| sum.plus(counts.now()))
        };
        self.listeners.iter().enumerate().map(|(number, name)| (name.clone(), of(number))).collect()
    }

    /// The largest groups first, those of other outcomes before those of other rules; and how many decisions are in
    /// groups for which there is no room.
    pub(super) fn groups(&self) -> (Vec<DryRunGroup>, u64) {
        let threads: Vec<Arc<OfThread>> = held(&self.threads).clone();
        let mut merged: HashMap<Arc<Kind>, DryRunGroup> = HashMap::new();
        for group in threads.iter().flat_map(|thread| held(&thread.groups).clone()) {
            let Kind { listener, is_outcome, ref then, ref now } = *group.kind;
            let known = merged.entry(group.kind.clone()).or_insert_with(|| DryRunGroup {
                listener: self.listeners[listener].clone(),
                is_outcome,
                then: then.clone(),
                now: now.clone(),
                count: 0,
                samples: Vec::new(),
            });
            known.count += group.count.get();
            known.samples.extend(held(&group.samples).iter().cloned());
        }
        let mut groups: Vec<_> = merged.into_values().filter(|group| group.count > 0).collect();
        groups.sort_by_cached_key(|group| {
            let ways = [&group.then, &group.now].map(|way| (way.rule.clone(), way.outcome.clone()));
            (!group.is_outcome, Reverse(group.count), group.listener.clone(), ways)
        });
        for group in &mut groups {
            group.samples.sort_by_key(|sample| sample.unix_us);
            group.samples.truncate(SAMPLES_MAX);
        }
        let beyond = groups.split_off(groups.len().min(GROUPS_MAX));
        (groups, beyond.iter().map(|group| group.count).sum())
    }
}

impl Tally {
    /// What two decisions at the listener of that number come to.
    pub(super) fn classify(&mut self, listener: usize, then: Said<'_, '_>, now: Said<'_, '_>) -> Class {
        let (is_outcome, (then, now)) = match Contrast::of(then, now) {
            // The live side has decided.
            Contrast::Same | Contrast::Refused => return Class::Same,
            Contrast::OtherRule(then, now) => (false, cut(then, now)),
            Contrast::Changed(then, now) => (true, cut(then, now)),
        };
        let kind = Kind { listener, is_outcome, then, now };
        let known = self.by_kind.get(&kind).copied();
        let group = known.or_else(|| (self.groups.len() < GROUPS_MAX).then(|| self.begin(kind)));
        if is_outcome { Class::Changed(group) } else { Class::OtherRule(group) }
    }

    fn begin(&mut self, kind: Kind) -> u32 {
        let number = self.groups.len() as u32;
        let kind = Arc::new(kind);
        let (count, samples) = (Counter::default(), Mutex::default());
        let group = Arc::new(Group { kind: kind.clone(), count, samples });
        self.groups.push(group.clone());
        held(&self.found.groups).push(group);
        self.by_kind.insert(kind, number);
        number
    }

    /// Counts two decisions.
    pub(super) fn count(&self, listener: usize, class: Class, sample: impl FnOnce() -> DryRunSample) {
        let Some(counts) = self.found.counts.get(listener) else { return };
        let (counter, group) = match class {
            Class::Same => return counts.same.add(1),
            Class::OtherRule(group) => (&counts.other_rule, group),
            Class::Changed(group) => (&counts.changed, group),
        };
        match group.and_then(|group| self.groups.get(group as usize)) {
            Some(group) => {
                if group.count.get() < SAMPLES_MAX as u64 {
                    held(&group.samples).push(sample());
                }
                group.count.add(1);
            }
            None => counts.ungrouped.add(1),
        }
        counter.add(1);
    }

    /// Counts a decision that cannot be compared.
    pub(super) fn cannot_tell(&self, listener: usize, why: Untold) {
        if let Some(counts) = self.found.counts.get(listener) {
            counts.untold[why as usize].add(1);
        }
    }
}

impl Counts {
    fn now(&self) -> DryRunCounts {
        let untold = |why: Untold| self.untold[why as usize].get();
        DryRunCounts {
            same: self.same.get(),
            other_rule: self.other_rule.get(),
            changed: self.changed.get(),
            needs_body: untold(Untold::Body),
            no_listener: untold(Untold::NoListener),
            other_protocol: untold(Untold::Protocol),
            ungrouped: self.ungrouped.get(),
        }
    }
}

impl DryRunSample {
    /// Of something that came then.
    pub(super) fn at(unix_us: u64) -> DryRunSample {
        DryRunSample { unix_us, ..DryRunSample::default() }
    }

    /// Of a request: its method, host, path and query.
    pub(super) fn of_request(self, client: Option<IpAddr>, texts: [Option<&[u8]>; 4]) -> DryRunSample {
        let [method, host, path, query] = texts.map(|text| text.map(beginning));
        DryRunSample { client, method, host, path, query, ..self }
    }
}

/// As far as it is kept.
fn beginning(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(SAMPLE_BYTES_MAX)]).into_owned()
}

/// Two ways as far as they are kept: from the beginning on, or where they are alike as far as that, from where they are not.
fn cut(then: Way, now: Way) -> (Way, Way) {
    let alike = then.outcome.chars().zip(now.outcome.chars()).take_while(|(then, now)| then == now).count();
    let is_late = alike >= TEXT_CHARS_MAX && then.outcome != now.outcome;
    let from = if is_late { alike - ALIKE_CHARS } else { 0 };
    let part = |way: Way| Way { rule: excerpt(way.rule, 0), outcome: excerpt(way.outcome, from) };
    (part(then), part(now))
}

/// So much of a text, from a character on.
fn excerpt(text: String, from: usize) -> String {
    let mut places = text.char_indices().map(|(at, _)| at).skip(from);
    let start = places.next().unwrap_or(text.len());
    match (from, places.nth(TEXT_CHARS_MAX - 1)) {
        (0, None) => text,
        (0, Some(end)) => format!("{}…", &text[..end]),
        (_, None) => format!("…{}", &text[start..]),
        (_, Some(end)) => format!("…{}…", &text[start..end]),
    }
}

/// Whoever held it left it whole.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use pointsman_rules::DefaultPool;

    use super::*;

    fn refused(why: &str) -> Said<'_, '_> {
        Said::Refused(why)
    }

    fn decided(decision: &pointsman_rules::Decision<'_>, pool: &str, see: impl FnOnce(Said<'_, '_>)) {
        see(Said::Decided { program: None, decision, default_pool: DefaultPool::Named(pool) });
    }

    fn nobody<'r>() -> pointsman_rules::Decision<'r> {
        let (by, outcome) = (pointsman_rules::DecidedBy::Nothing, pointsman_rules::Outcome::DefaultPool);
        pointsman_rules::Decision { by, outcome, effects: Default::default() }
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_counted_is_not() {
        let findings = Findings::new([Arc::from("shop")].into());
        let mut tallies = [findings.of_new_thread(), findings.of_new_thread()];
        let decision = nobody();
        let sample = |at| {
            move || {
                let long = [b'x'; 10_000];
                DryRunSample::at(at).of_request(None, [Some(&long), Some(&long), Some(&long), Some(&long)])
            }
        };
        for (thread, tally) in tallies.iter_mut().enumerate() {
            for request in 0..3 * GROUPS_MAX {
                // Each thread has kinds that the other one has, too.
                let pool = (request / 2 + thread * GROUPS_MAX / 2).to_string().repeat(TEXT_CHARS_MAX);
                let mut class = Class::Same;
                decided(&decision, &pool, |then| class = tally.classify(0, then, refused("no")));
                tally.count(0, class, sample(request as u64));
            }
            tally.count(0, Class::Same, || panic!("what is the same is not shown"));
            tally.cannot_tell(0, Untold::Body);
        }
        let counts = findings.counts();
        let (name, counts) = (&counts[0].0, counts[0].1);
        assert_eq!((&**name, counts.same, counts.needs_body), ("shop", 2, 2));
        assert_eq!(counts.changed, 6 * GROUPS_MAX as u64);
        assert_eq!(counts.decisions(), 6 * GROUPS_MAX as u64 + 4);
        let (groups, beyond) = findings.groups();
        assert_eq!(groups.len(), GROUPS_MAX);
        let grouped: u64 = groups.iter().map(|group| group.count).sum();
        assert_eq!(grouped + beyond + counts.ungrouped, counts.changed);
        assert!(groups[0].count > groups[GROUPS_MAX - 1].count, "the largest come first");
        for group in &groups {
            assert!(group.samples.len() <= SAMPLES_MAX && !group.samples.is_empty());
            assert!(group.then.outcome.chars().count() <= TEXT_CHARS_MAX + 2);
            let path = group.samples[0].path.as_ref().expect("it has one");
            assert_eq!(path.len(), SAMPLE_BYTES_MAX);
        }
    }

    #[test]
    fn what_differs_late_is_shown_from_there_on() {
        let way = |rule: &str, outcome: String| Way { rule: rule.to_owned(), outcome };
        let check = |then: &str, now: &str, expected: [&str; 2]| {
            let (then, now) = cut(way("R1", then.to_owned()), way("R2", now.to_owned()));
            assert_eq!([&*then.outcome, &*now.outcome], expected);
        };
        check("a", "b", ["a", "b"]);
        let page = |end: &str| "ü".repeat(TEXT_CHARS_MAX) + end;
        let beginning = page("…");
        check(&page(""), "b", [&page(""), "b"]);
        check(&page("x"), &page("x"), [&*beginning, &*beginning]);
        check(&page("x"), "b", [&*beginning, "b"]);
        let kept = "ü".repeat(ALIKE_CHARS);
        check(&page("x"), &page("y"), [&*format!("…{kept}x"), &*format!("…{kept}y")]);
        check(&page("x"), &page(""), [&*format!("…{kept}x"), &*format!("…{kept}")]);
        let long = "z".repeat(TEXT_CHARS_MAX);
        let (long_label, _) = cut(way(&page("x"), String::new()), way("R2", String::new()));
        assert_eq!(long_label.rule, beginning);
        let cut_off = format!("…{kept}x{}…", "z".repeat(TEXT_CHARS_MAX - ALIKE_CHARS - 1));
        check(&page(&format!("x{long}")), &page("y"), [&*cut_off, &*format!("…{kept}y")]);
    }

    #[test]
    fn it_adds_up_what_all_threads_have() {
        let findings = Findings::new([Arc::from("a"), Arc::from("b")].into());
        let mut tallies = [findings.of_new_thread(), findings.of_new_thread()];
        let decision = nobody();
        for tally in &mut tallies {
            for listener in [0, 1, 1] {
                let mut class = Class::Same;
                decided(&decision, "pool", |then| class = tally.classify(listener, then, refused("no")));
                tally.count(listener, class, || DryRunSample::at(7));
            }
        }
        let (groups, beyond) = findings.groups();
        let seen: Vec<_> = groups.iter().map(|group| (&*group.listener, group.count)).collect();
        assert_eq!((seen, beyond), (vec![("b", 4), ("a", 2)], 0));
        assert!(!findings.is_over());
        findings.end();
        assert!(findings.is_over());
    }
}
