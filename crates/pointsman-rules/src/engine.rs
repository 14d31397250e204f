//! Conditions made ready for many subjects: tests that rules share are asked once, tests of one field together,
//! and rules that cannot hold are passed over.
//!
//! It says what the plain interpreter in `eval.rs` says, only sooner; property tests hold it to that.

mod formula;
mod group;
mod sharing;

use self::formula::{Claim, Formula};
use self::group::Group;
use self::sharing::Sharing;
use crate::{Exit, Op, Rule, RuleIndex, Subject, Test, Truth, Truths};

/// The conditions of a program's rules, the fallback's among them.
#[derive(Debug)]
pub(crate) struct Engine {
    /// One a rule, in their order, and so are the lines.
    leads: Vec<Lead>,
    lines: Vec<Line>,
    /// The further guards of all lines, one line's behind another's.
    guards: Vec<Guard>,
    /// The tests with the first numbers, in the order of these.
    groups: Vec<Group>,
    /// The tests behind them.
    lone: Vec<Test>,
    lone_from: u32,
    /// How many tests, the first ones, are remembered once they were asked.
    remembered: usize,
}

/// All that it takes to pass over a rule that is known to be false, near at hand: of a long list this is most of
/// what a decision looks at.
#[derive(Debug)]
struct Lead {
    /// The first guard, or [`Lead::NONE`].
    claim: Claim,
    /// Where the walk goes when that is false: beyond all rules that follow with the same lead.
    past: RuleIndex,
    /// The second guard, or [`Lead::NONE`]: what tells rules of the same lead apart.
    second: Claim,
}

/// The rest of a rule's condition.
#[derive(Debug)]
struct Line {
    lead: Option<Guard>,
    guards_start: u32,
    guards_end: u32,
    /// The parts that are no guards, each with its place.
    rest: Vec<(u32, Formula)>,
    /// Nothing happens when it is false.
    is_silent: bool,
}

/// A claim that a condition is false without: a part of an "and" at its top.
#[derive(Clone, Copy, Debug)]
struct Guard {
    claim: Claim,
    /// Its place in the "and"; of several unknown parts the first is the cause.
    place: u32,
}

/// Up to this many rules, with nothing to remember from one to the next, the plain interpreter is faster.
const PLAIN_RULES_MAX: usize = 16;

impl Engine {
    /// The engine for these rules.
    pub(crate) fn new<'r>(rules: impl Iterator<Item = &'r Rule> + Clone) -> Engine {
        let sharing = Sharing::of(rules.clone().map(|rule| &rule.condition));
        let lone_from = sharing.groups.last().map_or(0, |group| group.tests.end);
        let effort = |guard: &Guard| match guard.claim.test.checked_sub(lone_from) {
            None => 0,
            Some(lone) => effort(&sharing.lone[lone as usize].op),
        };
        let (mut lines, mut guards) = (Vec::new(), Vec::new());
        for rule in rules {
            let formula = Formula::new(&rule.condition, &|test| sharing.number(test));
            lines.push(Line::new(rule, formula, effort, &mut guards));
        }
        let leads = leads(&lines, &guards);
        let Sharing { groups, lone, remembered, .. } = sharing;
        Engine { leads, lines, guards, groups, lone, lone_from, remembered }
    }

    /// Whether it would save nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.remembered == 0 && self.lines.len() <= PLAIN_RULES_MAX
    }

    /// Makes `truths` ready for a subject that nothing is known of.
    pub(crate) fn begin(&self, truths: &mut Truths) {
        truths.forget(self.remembered);
    }

    /// The first rule from `from` on that does not simply do nothing because it is false, and what its condition
    /// comes to.
    pub(crate) fn next<S: Subject + ?Sized>(
        &self,
        from: RuleIndex,
        subject: &S,
        truths: &mut Truths,
    ) -> Option<(RuleIndex, Truth)> {
        let mut at = from;
        loop {
            at = self.pass(at, truths.known());
            let line = self.lines.get(at.0 as usize)?;
            let truth = self.eval(line, subject, truths);
            if truth != Truth::False || !line.is_silent {
                return Some((at, truth));
            }
            at = RuleIndex(at.0 + 1);
        }
    }

    /// The first rule from `at` on that is not known to be false by its first guards.
    fn pass(&self, mut at: RuleIndex, known: &[Option<Truth>]) -> RuleIndex {
        while let Some(lead) = self.leads.get(at.0 as usize) {
            let fails = |claim: Claim| match known.get(claim.test as usize) {
                Some(Some(Truth::False)) => matches!(claim.fails, Truth::False),
                Some(Some(Truth::True)) => matches!(claim.fails, Truth::True),
                _ => false,
            };
            if fails(lead.claim) {
                at = lead.past;
            } else if fails(lead.second) {
                at = RuleIndex(at.0 + 1);
            } else {
                break;
            }
        }
        at
    }

    fn eval<S: Subject + ?Sized>(&self, line: &Line, subject: &S, truths: &mut Truths) -> Truth {
        let mut result = Truth::True;
        let mut cause_place = u32::MAX;
        let mut and = |truth: Truth, place: u32| {
            // One that passes is kept before any that does not.
            let place = if truth.is_unread() { 0 } else { place };
            if matches!(truth, Truth::Unknown(_)) && (place < cause_place || truth.is_unread()) {
                (result, cause_place) = (truth, place);
            }
            truth == Truth::False
        };
        for guard in line.lead.iter().chain(line.further(&self.guards)) {
            if and(guard.claim.of(self.truth(guard.claim.test, subject, truths)), guard.place) {
                return Truth::False;
            }
        }
        for (place, part) in &line.rest {
            if and(part.eval(&mut |test| self.truth(test, subject, truths)), *place) {
                return Truth::False;
            }
        }
        result
    }

    #[inline]
    fn truth<S: Subject + ?Sized>(&self, test: u32, subject: &S, truths: &mut Truths) -> Truth {
        match truths.of(test) {
            Some(known) => known,
            None => self.ask(test, subject, truths),
        }
    }

    /// Asks a test for the first time, and with it the others of its group.
    fn ask<S: Subject + ?Sized>(&self, test: u32, subject: &S, truths: &mut Truths) -> Truth {
        if let Some(lone) = test.checked_sub(self.lone_from) {
            let truth = self.lone[lone as usize].eval(subject);
            truths.learn(test, truth);
            return truth;
        }
        let group = &self.groups[self.groups.partition_point(|group| group.tests.end <= test)];
        group.decide(subject, truths.group(group.tests.clone()));
        truths.of(test).unwrap_or(Truth::False)
    }
}

/// What the walk passes over rules by. Rules of one run often ask the same first: they are passed over together.
fn leads(lines: &[Line], guards: &[Guard]) -> Vec<Lead> {
    let mut leads: Vec<Lead> = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate().rev() {
        // What is not silent is never passed over.
        let claim_of =
            |guard: Option<Guard>| guard.filter(|_| line.is_silent).map_or(Lead::NONE, |guard| guard.claim);
        let claim = claim_of(line.lead);
        let second = claim_of(line.further(guards).first().copied());
        let past = match leads.last() {
            Some(following) if following.claim == claim => following.past,
            _ => RuleIndex(offset(index + 1)),
        };
        leads.push(Lead { claim, past, second });
    }
    leads.reverse();
    leads
}

impl Lead {
    /// Of a test that there is none of, so that nothing is ever known of it.
    const NONE: Claim = Claim { test: u32::MAX, fails: Truth::False };
}

impl Line {
    /// Adds its guards to `guards`, those that take little effort first: which is asked first changes nothing
    /// about what a condition comes to.
    fn new(rule: &Rule, formula: Formula, effort: impl Fn(&Guard) -> u8, guards: &mut Vec<Guard>) -> Line {
        let parts = match formula {
            Formula::And(parts) => parts,
            Formula::Constant(true) => Vec::new(),
            other => vec![other],
        };
        let (mut own, mut rest) = (Vec::new(), Vec::new());
        for (place, part) in (0..).zip(parts) {
            match part {
                Formula::Claim(claim) => own.push(Guard { claim, place }),
                part => rest.push((place, part)),
            }
        }
        own.sort_by_key(effort);
        let mut own = own.into_iter();
        let lead = own.next();
        let guards_start = offset(guards.len());
        guards.extend(own);
        Line {
            lead,
            guards_start,
            guards_end: offset(guards.len()),
            rest,
            is_silent: rule.otherwise.effects.is_empty() && matches!(rule.otherwise.exit, Exit::Next),
        }
    }

    /// Its guards behind the lead.
    fn further<'g>(&self, guards: &'g [Guard]) -> &'g [Guard] {
        &guards[self.guards_start as usize..self.guards_end as usize]
    }
}

/// How much work a test of no group is, roughly: a regex is asked only when nothing cheaper says no.
fn effort(op: &Op) -> u8 {
    match op {
        Op::Matches(_) => 3,
        Op::Contains(_) | Op::Like(_) | Op::In(_) => 2,
        _ => 1,
    }
}

/// A source has far fewer bytes than this has numbers.
fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fmt::Write;
    use std::ops::ControlFlow;

    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::generated::{MadeUpSubject, MadeUpValue, programs};
    use crate::{Cause, Field, Program, Targets, Value, compile};

    /// Counts how often it is asked for a field.
    struct Counted {
        subject: MadeUpSubject,
        asked: Cell<usize>,
    }

    impl Subject for Counted {
        fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
            self.asked.set(self.asked.get() + 1);
            self.subject.each(field, see);
        }

        fn unsettled(&self, field: &Field) -> Option<Cause> {
            self.subject.unsettled(field)
        }
    }

    fn program(source: &str) -> Program {
        compile(source, &Targets::Any).expect("a program").program
    }

    fn subject(fields: &[(Field, &str)]) -> MadeUpSubject {
        let fields = fields
            .iter()
            .map(|(field, text)| (field.clone(), vec![MadeUpValue::Text(text.as_bytes().to_vec())]));
        MadeUpSubject { fields: fields.collect(), unsettled: vec![] }
    }

    /// The label of the rule that decides, and how often a field was looked up for that.
    fn check(source: &str, fields: &[(Field, &str)], label: Option<&str>, asked: usize) {
        let program = program(source);
        let subject = Counted { subject: subject(fields), asked: Cell::new(0) };
        let decision = program.decide(&subject, &mut Truths::default());
        assert_eq!(decision.by.label(), label, "{source}");
        assert_eq!(subject.asked.get(), asked, "{source}");
    }

    #[test]
    fn a_field_of_many_rules_is_looked_up_once() {
        let mut source = String::new();
        for number in 0..100 {
            let (path, tenant) = (number / 10, number % 10);
            writeln!(
                source,
                "if (path startsWith \"/app{path}/\" && header[\"t\"] == \"t{tenant}\") {{ routeTo(a); }}"
            )
            .expect("a string takes all");
        }
        let tenant = Field::Header("t".into());
        check(&source, &[(Field::Path, "/app9/x"), (tenant.clone(), "t9")], Some("#100"), 2);
        check(&source, &[(Field::Path, "/app3/x"), (tenant.clone(), "t0")], Some("#31"), 2);
        check(&source, &[(Field::Path, "/app3/x"), (tenant.clone(), "none")], None, 2);
        check(&source, &[(Field::Path, "/none"), (tenant, "t0")], None, 1);
    }

    #[test]
    fn a_test_of_many_rules_is_asked_once() {
        let shared =
            "if (url matches \"x\" && path == \"/a\") { tag(a); } if (!(url matches \"x\")) { discard(); }\n";
        check(&shared.repeat(20), &[(Field::Url, "x"), (Field::Path, "/a")], None, 2);
        check(&shared.repeat(20), &[(Field::Url, "y"), (Field::Path, "/a")], Some("#2"), 2);
    }

    /// Each of these would be false if it were taken for the one before it.
    #[test]
    fn tests_that_differ_in_anything_are_not_shared() {
        let tests = [
            "host == \"a\"",
            "lower(host) == \"a\"",
            "count(host) == 1",
            "url matches \"^b\"",
            "url matches \"^A\"",
        ];
        let rules: String = tests.iter().map(|test| format!("if ({test}) {{ tag(x); }}\n")).collect();
        let program = program(&rules.repeat(2));
        let subject = subject(&[(Field::Host, "A"), (Field::Url, "A")]);
        assert_eq!(program.engine.remembered, tests.len());
        assert_eq!(program.decide(&subject, &mut Truths::default()).effects.len(), 2 * 3);
    }

    #[test]
    fn what_takes_little_effort_is_asked_first() {
        let source = "if (url matches \"x\" && host contains \"x\" && srcport == 1) { discard(); }\n";
        let engine = program(source).engine;
        let ops =
            [0, 1].map(|place| engine.guards[place].claim.test).map(|test| &engine.lone[test as usize].op);
        assert!(matches!(ops, [Op::Contains(_), Op::Matches(_)]), "{engine:?}");
    }

    #[test]
    fn rules_of_one_lead_are_passed_together() {
        let [a, b] = ["a", "b"].map(|path| format!("if (path == \"/{path}\") {{ tag({path}); }}\n"));
        let speaks = "if (path == \"/b\") { tag(b); } else { tag(c); }\n";
        let engine = program(&format!("{a}{a}{b}{b}{b}{speaks}{b}")).engine;
        let past: Vec<_> = engine.leads.iter().map(|lead| lead.past.0).collect();
        assert_eq!(past, [2, 2, 5, 5, 5, 6, 7]);
        assert_eq!(engine.leads[5].claim, Lead::NONE);
    }

    #[test]
    fn little_is_left_to_the_interpreter() {
        let three =
            "if (path == \"/a\" && host == \"x\") { discard(); } if (path == \"/b\") { discard(); }\n";
        assert!(program(three).engine.is_idle());
        assert!(!program(&three.repeat(2)).engine.is_idle());
        let many: String =
            (0..17).map(|number| format!("if (query[\"{number}\"] exists) {{ tag(a); }}\n")).collect();
        assert!(!program(&many).engine.is_idle());
    }

    /// Otherwise the comparison with the interpreter would show little.
    #[test]
    fn generated_programs_have_groups_runs_and_shared_tests() {
        let mut runner = TestRunner::deterministic();
        let (mut grouped, mut shared, mut runs) = (0, 0, 0);
        for _ in 0..200 {
            let program = programs().new_tree(&mut runner).expect("a program").current();
            let engine = &program.engine;
            grouped += usize::from(!engine.groups.is_empty());
            shared += usize::from(engine.remembered > engine.lone_from as usize);
            let is_run = |(index, lead): (usize, &Lead)| lead.past.0 as usize > index + 1;
            runs += usize::from(engine.leads.iter().enumerate().any(is_run));
        }
        assert!(grouped > 50 && shared > 10 && runs > 50, "{grouped} {shared} {runs}");
    }
}
