//! Requests that show what a rule set does: one for each branch of its rules, and those beside its borders.

use std::collections::HashSet;
use std::sync::Arc;

use pointsman_rules::{Cause, Condition, Field, OwnedValue, Program, Rule, RuleIndex, Subject, Test, Truth};

use super::doubt::Doubt;
use super::question::{Analyst, Answer, Question, Seen, Way};
use super::states::States;
use crate::Effort;
use crate::space::{beside, has_more_borders};
use crate::wanted::{Sketch, Values};
use crate::witness::{Setting, Witness, as_shown};

/// Tests of one rule whose borders are looked at.
const TESTS_MAX: usize = 64;
/// Samples that are kept.
const SAMPLES_MAX: usize = 200_000;
/// Fields whose values are told besides those that matter.
const FIELDS_MAX: usize = 64;
/// Conditions beside a test that are to let it decide.
const SIBLINGS_MAX: usize = 256;

/// What a request is to have, so that it comes to a rule; a request with it was seen to do so.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The rule that it comes to; the one behind the last where no rule decides.
    pub rule: RuleIndex,
    /// What it shows there.
    pub why: Why,
    /// All values of some fields; without one the field is absent. Those that no field says do not matter.
    pub values: Vec<(Field, Vec<OwnedValue>)>,
    /// What further fields that rules name had there, if anything.
    pub others: Vec<(Field, Vec<OwnedValue>)>,
    /// Fields that it has not, but that requests have as a rule, or that could stand where its body is at fault.
    pub absent: Vec<Field>,
    /// What the rule's condition came to then; nothing behind the last rule.
    pub arrival: Option<Truth>,
    /// What came then of that which it shows.
    pub shown: Option<Truth>,
    /// The rule that decided it then; the one behind the last where none did. Nothing where that takes more of its body than
    /// is written.
    pub decided: Option<RuleIndex>,
    /// Why the fields of the body may have further values: it is at fault.
    pub rest: Option<Cause>,
    /// The same of the further fields.
    pub others_rest: Option<Cause>,
    /// All that its head and its connection are, whether rules name it or not.
    pub whole: Vec<(Field, Vec<OwnedValue>)>,
}

/// What would be shown, and no request was made for.
#[derive(Clone, Debug)]
pub struct Missing {
    /// The rule that it would have come to.
    pub rule: RuleIndex,
    /// What it would have shown there.
    pub why: Why,
    /// The values of the field beside whose border it would have been.
    pub values: Vec<OwnedValue>,
    /// Why there is none.
    pub unshown: Unshown,
}

/// Why there is no request that shows something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unshown {
    /// It is proved that there is none: these rules leave none, or what is asked for itself where there are none.
    Never(Vec<RuleIndex>),
    /// It is not known whether there is one.
    Unknown(Doubt),
    /// Every request that comes here has other values of the field.
    OtherHere,
    /// This rule takes those that were made.
    Stopped(RuleIndex),
    /// Requests with the values were made, and none that came to the rule.
    NotThere,
    /// None was found that has the values.
    NoRequest,
}

/// What a sample shows.
#[derive(Clone, Debug)]
pub enum Why {
    /// The rule's condition is true.
    True,
    /// It is false.
    False,
    /// It ends unknown.
    Unknown,
    /// It is true, and so is that of the rule behind it.
    TrueForNext,
    /// Its outcome is that of one of its tests, which is true.
    Holds(Box<Test>),
    /// The same, and the test is false.
    Fails(Box<Test>),
    /// A field has a value beside a border of a test.
    Beside(Box<Test>),
}

impl Why {
    /// What comes of that which a sample shows besides its rule's condition, if it shows anything.
    #[must_use]
    pub fn shown<S: Subject + ?Sized>(
        &self,
        program: &Program,
        RuleIndex(rule): RuleIndex,
        subject: &S,
    ) -> Option<Truth> {
        match self {
            Why::True | Why::False | Why::Unknown => None,
            Why::TrueForNext => {
                let next = program.rule(RuleIndex(rule.saturating_add(1)))?;
                Some(next.condition.eval(subject))
            }
            Why::Holds(test) | Why::Fails(test) | Why::Beside(test) => Some(test.eval(subject)),
        }
    }
}

/// Whether some request makes a rule's condition true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Some does.
    Reached,
    /// None does: these rules leave none, or its own condition where there are none.
    Never(Vec<RuleIndex>),
    /// It is not known.
    Unknown(Doubt),
}

/// What there is to show.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Rule by rule.
    pub samples: Vec<Sample>,
    /// Of every rule, the final `else:` among them.
    pub reach: Vec<Reach>,
    /// Rule by rule, what no request was made for, but for conditions that cannot be true with a rule's own. Up to so many
    /// as there may be samples.
    pub missing: Vec<Missing>,
    /// Rules that have more tests, or more borders, than are looked at.
    pub partly: Vec<RuleIndex>,
    /// Whether the steps were used up, or room for samples was, so that there may be more to show.
    pub is_cut: bool,
}

/// Requests for each rule where a listener has this setting, each seen to come to its rule: its condition true, false and
/// unknown, each test by itself deciding it, and values beside the borders of the tests.
#[must_use]
pub fn samples(program: &Arc<Program>, setting: &Setting, effort: Effort) -> Samples {
    let analyst = Analyst::new(program, setting, effort);
    let fields = fields(program);
    let mut sampler = Sampler { program, analyst, fields, samples: Samples::default() };
    let rules = program.rules.iter().chain(&program.fallback);
    for (index, rule) in (0..).zip(rules) {
        sampler.look_at(index, rule);
    }
    if program.fallback.is_none() {
        let end = u32::try_from(program.rules.len()).unwrap_or(u32::MAX);
        let (answer, sketch) = sampler.ask(end, States::TRUE, &[]);
        if let Answer::Yes(witness) = answer {
            sampler.add(end, Why::True, &sketch, &witness);
        }
    }
    sampler.samples.is_cut |= sampler.analyst.is_used_up();
    sampler.samples
}

struct Sampler<'p> {
    program: &'p Arc<Program>,
    analyst: Analyst<'p>,
    /// Those that rules name.
    fields: Vec<&'p Field>,
    samples: Samples,
}

impl<'p> Sampler<'p> {
    fn look_at(&mut self, index: u32, rule: &'p Rule) {
        let (answer, sketch) = self.ask(index, States::TRUE, &[]);
        let is_true = matches!(answer, Answer::Yes(_));
        let reach = match answer {
            Answer::Yes(witness) => {
                self.add(index, Why::True, &sketch, &witness);
                Reach::Reached
            }
            Answer::No(_) if self.analyst.is_never_true(index) => Reach::Never(Vec::new()),
            Answer::No(others) => Reach::Never(others.into_iter().map(RuleIndex).collect()),
            Answer::Unknown(doubt) => Reach::Unknown(doubt),
        };
        self.samples.reach.push(reach);
        if matches!(rule.condition, Condition::Always) {
            return;
        }
        let mut sides = Sides { is_true: is_true.then_some(sketch), is_false: None };
        let (answer, sketch) = self.ask(index, States::FALSE, &[]);
        sides.is_false = matches!(answer, Answer::Yes(_)).then(|| sketch.clone());
        self.keep(index, Why::False, answer, &sketch);
        let (answer, sketch) = self.ask(index, States::UNKNOWN, &[]);
        self.keep_unless_never(index, Why::Unknown, answer, &sketch);
        if let Some(next) = self.program.rules.get(index as usize + 1) {
            let also = [(&next.condition, States::TRUE)];
            let (answer, sketch) = self.ask(index, States::TRUE, &also);
            self.keep_unless_never(index, Why::TrueForNext, answer, &sketch);
        }
        let mut pivots = Vec::new();
        collect(&rule.condition, States::TRUE, &mut Vec::new(), &mut pivots);
        let (mut tests, mut has_more) = (0_usize, false);
        rule.condition.each_test(&mut |test| {
            tests += 1;
            has_more |= has_more_borders(test);
        });
        if has_more || tests > pivots.len() {
            self.samples.partly.push(RuleIndex(index));
        }
        for pivot in pivots {
            self.look_beside(index, &pivot, &sides);
        }
    }

    /// Both outcomes of a test that decides its condition, and the values beside its borders.
    fn look_beside(&mut self, index: u32, pivot: &Pivot<'p>, sides: &Sides<'p>) {
        let mut bases = Vec::new();
        for states in [States::TRUE, States::FALSE] {
            let also: Vec<_> = pivot.siblings.iter().copied().chain([(pivot.condition, states)]).collect();
            let (answer, sketch) = self.ask(index, States::ALL, &also);
            let test = Box::new(pivot.test.clone());
            let why = if states == States::TRUE { Why::Holds(test) } else { Why::Fails(test) };
            let side = if states == pivot.makes_true { &sides.is_true } else { &sides.is_false };
            if matches!(answer, Answer::Yes(_)) {
                bases.push(sketch.clone());
            }
            // What a side that is never taken leaves out is told with it.
            match side {
                Some(_) => self.keep(index, why, answer, &sketch),
                None => self.keep_unless_never(index, why, answer, &sketch),
            }
        }
        bases.extend([&sides.is_true, &sides.is_false].into_iter().flatten().cloned());
        if bases.is_empty() {
            return;
        }
        for known in beside(pivot.test) {
            let why = Why::Beside(Box::new(pivot.test.clone()));
            match self.analyst.with_values(&bases, &pivot.test.field, known.clone(), index) {
                Ok((changed, witness)) => self.add(index, why, &changed, &witness),
                Err(unshown) => self.miss(index, why, known, unshown),
            }
        }
    }

    /// What came of a question about a rule.
    fn keep(&mut self, rule: u32, why: Why, answer: Answer, sketch: &Sketch<'p>) {
        match answer {
            Answer::Yes(witness) => self.add(rule, why, sketch, &witness),
            Answer::No(others) => {
                let others = others.into_iter().map(RuleIndex).collect();
                self.miss(rule, why, Vec::new(), Unshown::Never(others));
            }
            Answer::Unknown(doubt) => self.miss(rule, why, Vec::new(), Unshown::Unknown(doubt)),
        }
    }

    /// The same where nobody expects that there is such a request.
    fn keep_unless_never(&mut self, rule: u32, why: Why, answer: Answer, sketch: &Sketch<'p>) {
        if !matches!(answer, Answer::No(_)) {
            self.keep(rule, why, answer, sketch);
        }
    }

    fn miss(&mut self, rule: u32, why: Why, values: Vec<OwnedValue>, unshown: Unshown) {
        if self.samples.missing.len() >= SAMPLES_MAX {
            self.samples.is_cut = true;
            return;
        }
        self.samples.missing.push(Missing { rule: RuleIndex(rule), why, values, unshown });
    }

    fn ask(&mut self, rule: u32, states: States, also: &[(&'p Condition, States)]) -> (Answer, Sketch<'p>) {
        let question = Question { rule, states, removed: None, way: Way::Walk };
        self.analyst.sample(question, also)
    }

    fn add(&mut self, rule: u32, why: Why, sketch: &Sketch<'p>, witness: &Witness) {
        if self.samples.samples.len() >= SAMPLES_MAX {
            self.samples.is_cut = true;
            return;
        }
        let is_said = |field: &Field| sketch.fields.iter().any(|(said, _)| *said == field);
        // Whatever rules name, a request without a host is one of HTTP/1.0, and who sends it may be the client.
        let needed = [Some(&Field::Host), self.fields.contains(&&Field::ClientIp).then_some(&Field::SrcIp)];
        let needed = needed.into_iter().flatten().filter(|field| !self.fields.contains(field));
        let fields = self.fields.iter().copied().chain(needed);
        let others: Vec<_> = fields.filter(|field| !is_said(field)).collect();
        // What stands in a body of no media type is unknown to some rules, and to others it is absent.
        let said = sketch.fields.iter().map(|(field, _)| *field).filter(|field| is_of_body(field));
        let all: Vec<_> = said.chain(others).collect();
        let rule = RuleIndex(rule);
        let Seen { arrival, shown, decided, values: seen } = self.analyst.seen(witness, rule, &why, &all);
        let (said, seen): (Vec<_>, Vec<_>) = seen.into_iter().partition(|(field, _)| is_said(field));
        // Of a body of which only the head is written nobody needs to know more.
        let fault = |(_, values): &(&Field, Values)| values.rest.filter(|cause| *cause != Cause::Unread);
        let values = sketch.fields.iter().map(|(field, values)| {
            let rest = said.iter().filter(|(of_body, _)| of_body == field).find_map(fault);
            (*field, Values { rest: values.rest.or(rest), ..as_shown(field, values) })
        });
        let values: Vec<_> = values.collect();
        let rest = values.iter().find_map(fault);
        let others_rest = seen.iter().find_map(fault);
        let is_at_fault = rest.or(others_rest).is_some();
        let none = values.iter().chain(&seen).filter(|(field, values)| {
            *values == Values::default() && (is_usual(field) || is_of_body(field) && is_at_fault)
        });
        let absent = none.map(|(field, _)| (*field).clone()).collect();
        let is_told = |field: &Field| *field == Field::SrcIp || self.fields.contains(&field);
        let some = seen.iter().filter(|(field, values)| !values.known.is_empty() && is_told(field));
        let known = |(field, values): &(&Field, Values)| ((*field).clone(), values.known.clone());
        let (values, others) = (values.iter().map(known).collect(), some.map(known).collect());
        let whole = self.analyst.whole(witness);
        let sample =
            Sample { rule, why, values, others, absent, arrival, shown, decided, rest, others_rest, whole };
        self.samples.samples.push(sample);
    }
}

/// Those that rules name, up to so many.
fn fields(program: &Program) -> Vec<&Field> {
    let (mut fields, mut known) = (Vec::new(), HashSet::new());
    for rule in &program.rules {
        rule.condition.each_test(&mut |test| {
            if fields.len() < FIELDS_MAX && known.insert(&test.field) {
                fields.push(&test.field);
            }
        });
    }
    fields
}

fn is_of_body(field: &Field) -> bool {
    matches!(field, Field::Payload(_))
}

/// Whether requests have it as a rule, so that it says something where one does not.
fn is_usual(field: &Field) -> bool {
    match field {
        Field::Header(name) => &**name == "host",
        field => matches!(field, Field::Host | Field::TlsSni | Field::TlsAlpn),
    }
}

/// A test, and what the conditions beside it have to come to for its outcome to be that of the whole.
struct Pivot<'p> {
    condition: &'p Condition,
    test: &'p Test,
    siblings: Vec<(&'p Condition, States)>,
    /// What it comes to where the whole is true.
    makes_true: States,
}

/// Requests that make a rule's condition true and false, where there are some.
struct Sides<'p> {
    is_true: Option<Sketch<'p>>,
    is_false: Option<Sketch<'p>>,
}

/// The tests of a condition, whose depth the parser bounds.
fn collect<'p>(
    condition: &'p Condition,
    makes_true: States,
    siblings: &mut Vec<(&'p Condition, States)>,
    pivots: &mut Vec<Pivot<'p>>,
) {
    if pivots.len() >= TESTS_MAX || siblings.len() > SIBLINGS_MAX {
        return;
    }
    let (parts, neutral) = match condition {
        Condition::Always => return,
        Condition::Not(inner) => return collect(inner, makes_true.negated(), siblings, pivots),
        Condition::Test(test) => {
            pivots.push(Pivot { condition, test, siblings: siblings.clone(), makes_true });
            return;
        }
        Condition::And(parts) => (parts, States::TRUE),
        Condition::Or(parts) => (parts, States::FALSE),
    };
    let outer = siblings.len();
    for (place, part) in parts.iter().enumerate() {
        let others = parts.iter().enumerate().filter(|(other, _)| *other != place);
        siblings.extend(others.map(|(_, other)| (other, neutral)));
        collect(part, makes_true, siblings, pivots);
        siblings.truncate(outer);
    }
}
