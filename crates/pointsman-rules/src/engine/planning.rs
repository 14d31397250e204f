//! How rules are put into postings: each by the test that leaves the fewest others beside it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

use super::asks::{Ask, Asks, NONE, offset};
use super::formula::Formula;
use super::postings::{Branch, Entry, Filter, NamedField, Node, Posting, Postings};
use super::reading::{PAYLOAD_COST, Reading};
use super::stabs::Stabs;
use crate::{Truth, pace};

/// So many fields after one another.
const DEPTH_MAX: usize = 8;

/// What it takes to ask a rule whose field is there, roughly, in sixteenths of what it takes to find it.
const NAME_COST: u64 = 32;

/// Places in lists for each place of a sign in a condition: rules of many signs stand in many lists. What does not
/// fit is left in long ones.
const PLACES_FACTOR: usize = 24;

/// A rule as the postings see it.
pub(super) struct Candidate<'f> {
    pub(super) formula: &'f Formula,
    /// Nothing happens when it is false.
    pub(super) is_silent: bool,
    /// It decides when it is true.
    pub(super) decides: bool,
}

/// What is known of every subject that comes to a list.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// Some value shows them.
    signs: Vec<u32>,
    /// Of these readings a value lies in a run of the rule.
    readings: Vec<u32>,
    /// These fields are not absent.
    names: Vec<u32>,
    /// Tests that say so, for people.
    pub(super) tests: Vec<u32>,
}

/// Rules of a node that is still to be made.
struct Task {
    node: usize,
    rules: Vec<u32>,
    known: Known,
}

/// The rules of one node by what tells them apart.
#[derive(Default)]
struct Bundles {
    readings: BTreeMap<u32, Bundle>,
    /// Of tests that no reading helps with, by the name of their field: one of them, and the rules.
    names: BTreeMap<u32, (u32, Vec<u32>)>,
}

/// The rules of one branch.
#[derive(Default)]
struct Bundle {
    all: Vec<u32>,
    signs: BTreeMap<u32, (u32, Vec<u32>)>,
    runs: Vec<(Range<u32>, u32)>,
    run_test: u32,
    is_numeric: bool,
}

type Features = HashMap<Feature, u32>;

/// How often something stands in the conditions of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Feature {
    Sign(u32),
    Run(u32),
    OneSided(u32),
    Reading(u32),
    Name(u32),
}

/// The rules of one field that is found by its name.
#[derive(Default)]
struct OfField {
    /// Those that no reading tells apart, and one of the tests that they ask.
    list: Option<(u32, Vec<u32>)>,
    readings: Vec<(u32, Bundle)>,
}

/// A list that was not told apart further, although it is long.
pub(super) struct LongList {
    pub(super) rules: Vec<u32>,
    pub(super) known: Known,
}

pub(super) struct Planner<'f> {
    candidates: Vec<Candidate<'f>>,
    asks: &'f Asks,
    heeds_unknown: bool,
    list_rules_max: usize,
    pub(super) postings: Postings,
    /// Of the branches, in their order: the signs and their postings.
    pub(super) signs: Vec<Vec<(u32, Posting)>>,
    /// By where a list begins: how many of its rules are asked at most. Where nothing stands, all of them.
    pub(super) asked: HashMap<u32, u32>,
    pub(super) long: Vec<LongList>,
    tasks: VecDeque<Task>,
    places_left: usize,
}

impl<'f> Planner<'f> {
    /// `heeds_unknown`: something happens when a rule is unknown.
    pub(super) fn new(
        candidates: Vec<Candidate<'f>>,
        asks: &'f Asks,
        heeds_unknown: bool,
        list_rules_max: usize,
    ) -> Planner<'f> {
        let places = candidates.len() + asks.places();
        Planner {
            candidates,
            asks,
            heeds_unknown,
            list_rules_max,
            postings: Postings::default(),
            signs: Vec::new(),
            asked: HashMap::new(),
            long: Vec::new(),
            tasks: VecDeque::new(),
            places_left: places.saturating_mul(PLACES_FACTOR),
        }
    }

    pub(super) fn rules(&self) -> usize {
        self.candidates.len()
    }

    pub(super) fn reading(&self, number: u32) -> &Reading {
        &self.asks.readings[number as usize]
    }

    /// Puts all rules into postings.
    pub(super) fn plan(&mut self) {
        let rules = (0..offset(self.candidates.len())).collect();
        self.node(rules, Known::default());
        while let Some(task) = self.tasks.pop_front() {
            self.fill(task);
        }
    }

    fn node(&mut self, rules: Vec<u32>, known: Known) -> usize {
        let node = self.postings.nodes.len();
        self.postings.nodes.push(Node::default());
        self.tasks.push_back(Task { node, rules, known });
        node
    }

    fn fill(&mut self, task: Task) {
        let Task { node, rules, known } = task;
        let features = self.features(&rules, &known);
        let mut always = Vec::new();
        let mut bundles = Bundles::default();
        for rule in pace::each(rules) {
            let candidate = &self.candidates[rule as usize];
            let choice = candidate.formula.choice(&|test| self.score(test, &features, &known));
            match choice.filter(|_| candidate.is_silent) {
                None => always.push(rule),
                Some(choice) => choice.tests.iter().for_each(|test| self.bundle(*test, rule, &mut bundles)),
            }
        }
        let always = (!always.is_empty()).then(|| self.final_list(always, &known, &features));
        let Bundles { readings, names } = bundles;
        let mut fields: BTreeMap<u32, OfField> = BTreeMap::new();
        for (name, (test, rules)) in names {
            fields.entry(name).or_default().list = Some((test, rules));
        }
        let first = self.next_branch();
        for (reading, bundle) in readings {
            match self.asks.names.number(&self.reading(reading).field) {
                NONE => self.branch(reading, bundle, &known, &features),
                name => fields.entry(name).or_default().readings.push((reading, bundle)),
            }
        }
        let branches = first..self.next_branch();
        let (of_head, of_body) = self.fields(fields, &known, &features);
        self.postings.nodes[node] = Node { always, branches, of_head, of_body };
    }

    fn next_branch(&self) -> u32 {
        offset(self.postings.branches.len())
    }

    /// Puts the rules of fields that are found by their names where they are found: those of the head, and those of
    /// the body.
    fn fields(
        &mut self,
        fields: BTreeMap<u32, OfField>,
        known: &Known,
        features: &Features,
    ) -> (Range<u32>, Range<u32>) {
        let (mut of_head, mut of_body) = (Vec::new(), Vec::new());
        for (name, OfField { list, readings }) in pace::each(fields) {
            let rules = || {
                let of_readings = readings.iter().flat_map(|(_, bundle)| &bundle.all);
                list.iter().flat_map(|(_, rules)| rules).chain(of_readings).copied()
            };
            let (least, last) = (rules().min().unwrap_or(NONE), rules().max().unwrap_or(NONE));
            let mut known = known.clone();
            known.names.push(name);
            let first = self.next_branch();
            for (reading, bundle) in readings {
                self.branch(reading, bundle, &known, features);
            }
            let branches = first..self.next_branch();
            let list = list.map(|(test, rules)| {
                known.tests.push(test);
                self.posting(rules, known, features)
            });
            let payload = self.asks.names.payload(name);
            let of_kind = if payload.is_some() { &mut of_body } else { &mut of_head };
            of_kind.push(NamedField { name, payload, least, last, list, branches, end: 0 });
        }
        of_body.sort_by_key(|field| field.least);
        let mut last = 0;
        for field in &mut of_body {
            last = field.last.max(last);
            field.last = last;
        }
        (self.add_fields(of_head), self.add_fields(of_body))
    }

    fn add_fields(&mut self, fields: Vec<NamedField>) -> Range<u32> {
        let start = self.postings.fields.len();
        let end = offset(start + fields.len());
        self.postings.fields.extend(fields.into_iter().map(|field| NamedField { end, ..field }));
        offset(start)..end
    }

    /// Puts a rule where a test says that it belongs.
    fn bundle(&self, test: u32, rule: u32, bundles: &mut Bundles) {
        let ask = self.asks.ask(test);
        if ask.reading == NONE {
            let (_, rules) = bundles.names.entry(ask.name).or_insert_with(|| (test, Vec::new()));
            add(rules, rule);
            return;
        }
        let bundle = bundles.readings.entry(ask.reading).or_default();
        add(&mut bundle.all, rule);
        bundle.is_numeric |= ask.is_numeric;
        for sign in self.asks.signs(ask) {
            let (_, rules) = bundle.signs.entry(*sign).or_insert_with(|| (test, Vec::new()));
            add(rules, rule);
        }
        for run in self.asks.runs(ask) {
            bundle.runs.push((run.cells.clone(), rule));
            bundle.run_test = test;
        }
    }

    fn branch(&mut self, reading: u32, bundle: Bundle, known: &Known, features: &Features) {
        let Bundle { all, signs, runs, run_test, is_numeric } = bundle;
        let number = offset(self.postings.branches.len());
        let signs: Vec<(u32, Posting)> = pace::each(signs)
            .map(|(sign, (test, rules))| {
                let mut known = known.clone();
                known.signs.push(sign);
                known.tests.push(test);
                (sign, self.posting(rules, known, features))
            })
            .collect();
        let mut in_run = known.clone();
        in_run.readings.push(reading);
        in_run.tests.push(run_test);
        let stabs = Stabs::new(&runs, |rules| self.posting(rules, in_run.clone(), features));
        let all = self.list(all, &in_run, features);
        // A value may have opened it that lies in no run.
        let entries = &mut self.postings.entries[all.at as usize..(all.at + all.len) as usize];
        entries.iter_mut().for_each(Entry::is_not_whole);
        let branch = Branch {
            reading,
            all,
            has_signs: !signs.is_empty(),
            near_signs: near(&signs),
            first_sign: signs.first().map_or(0, |(sign, _)| *sign),
            stabs,
            heeds_no_number: is_numeric && self.heeds_unknown,
            heeds_second: self.asks.readings[reading as usize].is_once && self.heeds_unknown,
        };
        if branch.near_signs.is_empty() {
            let far = signs.iter().map(|(sign, posting)| ((number, *sign), *posting));
            self.postings.by_sign.extend(far);
        }
        self.signs.push(signs);
        self.postings.branches.push(branch);
    }

    /// A list, or a node where that helps.
    fn posting(&mut self, rules: Vec<u32>, known: Known, features: &Features) -> Posting {
        let is_divisible = || {
            let has_choice = |rule: &u32| {
                let formula = self.candidates[*rule as usize].formula;
                formula.choice(&|test| self.is_open(test, &known).then_some(1)).is_some()
            };
            pace::each(&rules).any(has_choice)
        };
        let depth = known.tests.len();
        if rules.len() <= self.list_rules_max
            || depth >= DEPTH_MAX
            || rules.len() > self.places_left
            || !is_divisible()
        {
            return self.final_list(rules, &known, features);
        }
        self.places_left -= rules.len();
        let least = rules.first().copied().unwrap_or(NONE);
        Posting { least, at: offset(self.node(rules, known)), len: 0 }
    }

    /// A list that is not told apart, noted where that may cost much.
    fn final_list(&mut self, rules: Vec<u32>, known: &Known, features: &Features) -> Posting {
        let posting = self.list(rules, known, features);
        if self.asked_of(posting) > self.list_rules_max {
            let start = posting.at as usize;
            let entries = &self.postings.entries[start..start + posting.len as usize];
            let rules = entries.iter().map(|entry| entry.rule).collect();
            self.long.push(LongList { rules, known: known.clone() });
        }
        posting
    }

    fn list(&mut self, rules: Vec<u32>, known: &Known, features: &Features) -> Posting {
        let at = offset(self.postings.entries.len());
        let posting = Posting { least: rules.first().copied().unwrap_or(NONE), at, len: offset(rules.len()) };
        if let Some(last) = rules.iter().position(|rule| self.is_sure(*rule, known)) {
            self.asked.insert(at, offset(last + 1));
        }
        self.places_left = self.places_left.saturating_sub(rules.len());
        for rule in pace::each(rules) {
            let (filter, test) = self.filter(rule, known, features);
            let is_whole = self.holds(rule, known, test);
            self.postings.entries.push(Entry::new(rule, filter, is_whole));
        }
        posting
    }

    /// Of the tests that a rule is false without and nothing is known of, the one that the fewest others share.
    fn filter(&self, rule: u32, known: &Known, features: &Features) -> (Filter, u32) {
        let candidate = &self.candidates[rule as usize];
        let parts = match candidate.formula {
            Formula::And(parts) if candidate.is_silent => parts.as_slice(),
            _ => return (Filter::None, NONE),
        };
        let filters = parts.iter().filter_map(|part| {
            let Formula::Claim(claim) = part else { return None };
            let ask = self.asks.ask(claim.test);
            if claim.fails != Truth::False || !ask.is_exact || !ask.is_any || ask.reading >= Entry::NO_READING
            {
                return None;
            }
            let score = self.score(claim.test, features, known)?;
            let reading = ask.reading;
            let filter = match (self.asks.signs(ask), self.asks.runs(ask)) {
                ([sign], []) => Filter::Sign { reading, sign: *sign },
                ([], [run]) => {
                    let Range { start, end } = run.cells;
                    Filter::Cells { reading, start, end, is_numeric: ask.is_numeric }
                }
                _ => return None,
            };
            (score < PAYLOAD_COST).then_some((score, (filter, claim.test)))
        });
        filters.min_by_key(|(score, _)| *score).map_or((Filter::None, NONE), |(_, filter)| filter)
    }

    /// How many rules of a list are asked at most.
    pub(super) fn asked_of(&self, list: Posting) -> usize {
        self.asked.get(&list.at).map_or(list.len, |asked| *asked) as usize
    }

    /// Whether a rule decides wherever its list is come to.
    fn is_sure(&self, rule: u32, known: &Known) -> bool {
        self.candidates[rule as usize].decides && self.holds(rule, known, NONE)
    }

    /// Whether a rule is true wherever its list is come to and one test holds.
    fn holds(&self, rule: u32, known: &Known, test: u32) -> bool {
        let candidate = &self.candidates[rule as usize];
        let parts = match candidate.formula {
            Formula::And(parts) => parts.as_slice(),
            part => std::slice::from_ref(part),
        };
        let mut runs_seen: Vec<u32> = Vec::new();
        let mut holds = |part: &Formula| match part {
            Formula::Constant(holds) => *holds,
            Formula::Claim(claim) if claim.fails == Truth::False && claim.test == test => true,
            Formula::Claim(claim) if claim.fails == Truth::False => {
                let ask = self.asks.ask(claim.test);
                // Of two runs of one reading only one is known.
                let is_in_run = self.asks.runs(ask).len() == 1
                    && known.readings.contains(&ask.reading)
                    && !runs_seen.contains(&ask.reading);
                runs_seen.push(ask.reading);
                let shows = self.asks.signs(ask).iter().any(|sign| known.signs.contains(sign));
                ask.reading != NONE && ask.is_exact && ask.is_any && (is_in_run || shows)
            }
            _ => false,
        };
        parts.iter().all(&mut holds)
    }

    fn features(&self, rules: &[u32], known: &Known) -> Features {
        let mut features = HashMap::with_capacity(rules.len());
        let mut count = |feature| *features.entry(feature).or_default() += 1;
        for rule in pace::each(rules) {
            self.candidates[*rule as usize].formula.each_claim(&mut |test| {
                if !self.is_open(test, known) {
                    return;
                }
                let ask = self.asks.ask(test);
                if ask.reading == NONE {
                    count(Feature::Name(ask.name));
                    return;
                }
                count(Feature::Reading(ask.reading));
                self.asks.signs(ask).iter().for_each(|sign| count(Feature::Sign(*sign)));
                for run in self.asks.runs(ask) {
                    count(Feature::Run(run.number));
                    if run.is_one_sided {
                        count(Feature::OneSided(ask.reading));
                    }
                }
            });
        }
        features
    }

    /// Whether a test can tell rules apart that this is known of.
    fn is_open(&self, test: u32, known: &Known) -> bool {
        let ask = self.asks.ask(test);
        let is_known = |ask: &Ask| {
            let signs = self.asks.signs(ask);
            known.signs.iter().any(|sign| signs.binary_search(sign).is_ok())
                || (!self.asks.runs(ask).is_empty() && known.readings.contains(&ask.reading))
        };
        if ask.reading == NONE {
            return ask.name != NONE && !known.names.contains(&ask.name);
        }
        !is_known(ask)
    }

    /// How many rules a value that a test is true of may find by it, and what it takes to find them: the less the
    /// better. Nothing for a test that tells none apart.
    fn score(&self, test: u32, features: &Features, known: &Known) -> Option<u64> {
        if !self.is_open(test, known) {
            return None;
        }
        let ask = self.asks.ask(test);
        let count = |feature| u64::from(features.get(&feature).copied().unwrap_or_default());
        if ask.reading == NONE {
            let of_payload = self.asks.names.payload(ask.name).map_or(0, |_| PAYLOAD_COST);
            return Some(count(Feature::Name(ask.name)) * 16 + NAME_COST + of_payload);
        }
        let signs = self.asks.signs(ask).iter().map(|sign| count(Feature::Sign(*sign)));
        let runs = self.asks.runs(ask).iter().map(|run| match run.is_one_sided {
            true => count(Feature::OneSided(ask.reading)),
            false => count(Feature::Run(run.number)),
        });
        let rules = signs.chain(runs).max().unwrap_or_default();
        // A field that few rules ask for has to be looked up for these few.
        let alone = 256 / count(Feature::Reading(ask.reading)).max(1);
        let cost = self.asks.readings[ask.reading as usize].cost();
        Some(rules * 16 + alone + cost)
    }
}

/// So many numbers for each sign are worth their room.
const NEAR_NUMBERS: usize = 4;

/// The postings of signs, which come in ascending order, by their numbers from the first one on; none where their
/// numbers are far from each other.
fn near(signs: &[(u32, Posting)]) -> Vec<Option<Posting>> {
    let (Some((first, _)), Some((last, _))) = (signs.first(), signs.last()) else { return Vec::new() };
    let numbers = (last - first) as usize + 1;
    if numbers > NEAR_NUMBERS * signs.len() {
        return Vec::new();
    }
    let mut near = vec![None; numbers];
    for (sign, posting) in signs {
        near[(sign - first) as usize] = Some(*posting);
    }
    near
}

/// Rules come in order; one may be there already.
fn add(rules: &mut Vec<u32>, rule: u32) {
    if rules.last() != Some(&rule) {
        rules.push(rule);
    }
}
