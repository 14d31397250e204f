//! What is said of a rule set.

use std::sync::Arc;

use pointsman_rules::{Block, Condition, Exit, Program, Rule, RuleIndex, Severity, Span};

use super::doubt::{Doubt, InDoubt, by_doubt};
use super::equals::Equals;
use super::onward::Onward;
use super::question::{Analyst, Answer, Question, Way};
use super::rooms::{Rooms, Standing};
use super::states::States;
use crate::Effort;
use crate::witness::{Setting, Witness};

/// So many rules are named in a sentence, then counted.
const NAMED_MAX: usize = 5;

/// What kind of finding it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// No request gets to a rule, or none that does makes its condition true, because of rules before it.
    Unreachable,
    /// A condition that no request makes true.
    Contradiction,
    /// A rule without which every request is decided alike.
    Redundant,
    /// Two rules that take some requests both, neither all of the other's, and act differently.
    Conflict,
    /// An else block that never runs.
    DeadElse,
    /// A rule that a `goto` names, and that no request gets to.
    DeadGotoTarget,
    /// A request that only the final `else` or the default pool takes.
    Gap,
    /// A narrower rule before a broader one that acts differently.
    Exception,
    /// A redirect that leads back to the rule that it comes from.
    RedirectLoop,
    /// It was not settled with the steps that there were, or no request could be made.
    Unknown,
    /// A request that an assertion says there is none of.
    AssertionRefuted,
    /// The same as [`Code::Unknown`], of an assertion.
    AssertionUnknown,
}

impl Code {
    /// As users read it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Code::Unreachable => "unreachable",
            Code::Contradiction => "contradiction",
            Code::Redundant => "redundant",
            Code::Conflict => "conflict",
            Code::DeadElse => "dead else",
            Code::DeadGotoTarget => "dead goto target",
            Code::Gap => "gap",
            Code::Exception => "exception",
            Code::RedirectLoop => "redirect loop",
            Code::Unknown => "unknown",
            Code::AssertionRefuted => "assertion refuted",
            Code::AssertionUnknown => "assertion unknown",
        }
    }

    pub(super) fn severity(self) -> Severity {
        match self {
            Code::AssertionRefuted => Severity::Error,
            Code::AssertionUnknown
            | Code::Unreachable
            | Code::Contradiction
            | Code::Redundant
            | Code::Conflict
            | Code::DeadElse
            | Code::RedirectLoop
            | Code::DeadGotoTarget => Severity::Warning,
            Code::Gap | Code::Exception | Code::Unknown => Severity::Note,
        }
    }
}

/// Something that was proved, or could not be.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What kind it is.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The rule that it is about; of a [`Code::Gap`] the one behind the last.
    pub rule: RuleIndex,
    /// The rules that prove it, or that it is about, too; in their order.
    pub others: Vec<RuleIndex>,
    /// Where it is shown.
    pub span: Span,
    /// What it is, in a sentence.
    pub message: String,
    /// Why it is so, or what to do about it.
    pub help: Option<String>,
    /// A request that shows it.
    pub witness: Option<Witness>,
    /// One of the same client before it, without which that would not be so.
    pub before: Option<Witness>,
    /// Of what is unknown, why it is.
    pub doubts: Vec<InDoubt>,
}

/// What there is to say of a program where a listener has this setting. With the steps used up, what is left is said to be
/// unknown.
#[must_use]
pub fn findings(program: &Arc<Program>, setting: &Setting, effort: Effort) -> Vec<Finding> {
    let mut report = Report::new(program, setting, effort);
    let mut live = Vec::new();
    for (index, rule) in (0..).zip(&program.rules) {
        if report.look_at(index, rule) {
            live.push(index);
        }
    }
    report.look_at_the_rest();
    let rooms = report.rooms(Standing::True);
    report.look_for_redundant(&live, &rooms);
    report.look_for_pairs(&live, &rooms, None);
    report.own_up();
    report.findings
}

/// Findings as they are made.
pub(super) struct Report<'p> {
    pub(super) program: &'p Arc<Program>,
    pub(super) analyst: Analyst<'p>,
    pub(super) findings: Vec<Finding>,
    /// Rules of equal conditions, once some rule could not be settled.
    equals: Option<Equals>,
    /// What the requests of rules that are reached show.
    pub(super) onward: Onward,
    /// Rules of which it was not settled whether they are ever reached.
    unsettled: Vec<(u32, Doubt)>,
    /// The same of else blocks.
    unsettled_else: Vec<(u32, Doubt)>,
    /// Rules of which it was not settled whether they change anything.
    pub(super) unsettled_redundant: Vec<(u32, Doubt)>,
}

impl<'p> Report<'p> {
    pub(super) fn new(program: &'p Arc<Program>, setting: &'p Setting, effort: Effort) -> Report<'p> {
        Report {
            program,
            analyst: Analyst::new(program, setting, effort),
            findings: Vec::new(),
            equals: None,
            onward: Onward::default(),
            unsettled: Vec::new(),
            unsettled_else: Vec::new(),
            unsettled_redundant: Vec::new(),
        }
    }

    /// What each condition leaves of the values of fields.
    pub(super) fn rooms(&mut self, standing: Standing) -> Vec<Rooms<'p>> {
        let program = self.program;
        program.rules.iter().map(|rule| Rooms::of(&rule.condition, standing, &mut self.analyst)).collect()
    }

    /// Says whether some request makes its condition true.
    pub(super) fn look_at(&mut self, index: u32, rule: &Rule) -> bool {
        let answer = self.ask(index, States::TRUE);
        let is_live = matches!(answer, Answer::Yes(_));
        match answer {
            Answer::Yes(witness) => {
                self.look_on(index, &witness);
                self.look_for_loop(index, &witness);
            }
            Answer::Unknown(doubt) => match self.equal_before(index) {
                Some(first) => {
                    self.add_never_true(index, &[first]);
                    return false;
                }
                None => self.unsettled.push((index, doubt)),
            },
            Answer::No(others) if others.is_empty() || self.analyst.is_never_true(index) => {
                let message = format!("the condition of {} is never true", self.name(index));
                self.add(Code::Contradiction, index, &[], message, None);
            }
            // Whether it is never true whatever rules stand before it was not settled.
            Answer::No(_) if self.analyst.is_used_up() => {
                self.unsettled.push((index, self.analyst.used_up()));
            }
            Answer::No(others) => {
                self.never_true(index, others);
                return false;
            }
        }
        if is_empty(&rule.otherwise) || matches!(rule.condition, Condition::Always) {
            return is_live;
        }
        match self.ask(index, States::FALSE) {
            Answer::Yes(witness) => self.look_for_loop(index, &witness),
            Answer::Unknown(doubt) => self.unsettled_else.push((index, doubt)),
            Answer::No(others) => {
                let message = format!("the else block of {} never runs", self.name(index));
                let help = match others.as_slice() {
                    [] => "its condition is never false".to_owned(),
                    others => {
                        format!("{} {} no request that could get there", self.names(others), leave(others))
                    }
                };
                self.add(Code::DeadElse, index, &others, message, Some(help));
            }
        }
        is_live
    }

    /// A rule of which some request could make the condition true, if `others` let it.
    fn never_true(&mut self, index: u32, others: Vec<u32>) {
        match self.ask(index, States::ALL) {
            Answer::No(others) => {
                let is_target = self.analyst.walk.is_target(index);
                let code = if is_target { Code::DeadGotoTarget } else { Code::Unreachable };
                let message = format!("no request gets to {}", self.name(index));
                let help = format!("{} {} none", self.names(&others), leave(&others));
                self.add(code, index, &others, message, Some(help));
            }
            _ => self.add_never_true(index, &others),
        }
    }

    fn add_never_true(&mut self, index: u32, others: &[u32]) {
        let message = format!("no request that gets to {} makes its condition true", self.name(index));
        let help = format!("{} {} none that does", self.names(others), leave(others));
        self.add(Code::Unreachable, index, others, message, Some(help));
    }

    /// The rule before one that has the same condition and takes all that makes it true.
    fn equal_before(&mut self, index: u32) -> Option<u32> {
        let (program, walk) = (self.program, &self.analyst.walk);
        self.equals.get_or_insert_with(|| Equals::of(program, walk)).before(index)
    }

    /// What no rule decides.
    pub(super) fn look_at_the_rest(&mut self) {
        let end = u32::try_from(self.program.rules.len()).unwrap_or(u32::MAX);
        match self.ask(end, States::TRUE) {
            Answer::Unknown(doubt) => self.unsettled.push((end, doubt)),
            Answer::Yes(witness) => {
                let taker = match self.program.fallback {
                    Some(_) => "only the final `else` takes this request",
                    None => "no rule decides this request: the default pool takes it",
                };
                self.look_for_loop(end, &witness);
                self.add(Code::Gap, end, &[], taker.to_owned(), None);
                if let Some(finding) = self.findings.last_mut() {
                    finding.witness = Some(*witness);
                }
            }
            Answer::No(others) if self.program.fallback.is_some() => {
                let message = "no request gets to the final `else`".to_owned();
                let help = format!("{} {} none", self.names(&others), leave(&others));
                self.add(Code::Unreachable, end, &others, message, Some(help));
            }
            Answer::No(_) => {}
        }
    }

    /// What could not be settled.
    pub(super) fn own_up(&mut self) {
        let rules = std::mem::take(&mut self.unsettled);
        self.own_up_to(rules, "is ever reached", "are ever reached");
        let rules = std::mem::take(&mut self.unsettled_else);
        self.own_up_to(rules, "ever takes its else block", "ever take their else blocks");
        let rules = std::mem::take(&mut self.unsettled_redundant);
        self.own_up_to(rules, "changes anything", "change anything");
    }

    /// Those of one doubt together.
    fn own_up_to(&mut self, rules: Vec<(u32, Doubt)>, one: &str, many: &str) {
        for in_doubt in by_doubt(rules) {
            let rules: Vec<u32> = in_doubt.rules.iter().map(|rule| rule.0).collect();
            let Some((first, others)) = rules.split_first() else { continue };
            let what = if others.is_empty() { one } else { many };
            let message = format!("it is unknown whether {} {what}", self.names(&rules));
            let finding = self.finding(Code::Unknown, *first, others, message, None);
            self.findings.push(Finding { doubts: vec![in_doubt], ..finding });
        }
    }

    pub(super) fn ask(&mut self, rule: u32, states: States) -> Answer {
        self.analyst.ask(Question { rule, states, removed: None, way: Way::Walk })
    }

    pub(super) fn add(
        &mut self,
        code: Code,
        rule: u32,
        others: &[u32],
        message: String,
        help: Option<String>,
    ) {
        self.findings.push(self.finding(code, rule, others, message, help));
    }

    pub(super) fn finding(
        &self,
        code: Code,
        rule: u32,
        others: &[u32],
        message: String,
        help: Option<String>,
    ) -> Finding {
        Finding {
            code,
            severity: code.severity(),
            rule: RuleIndex(rule),
            others: others.iter().map(|other| RuleIndex(*other)).collect(),
            span: self.span(rule),
            message,
            help,
            witness: None,
            before: None,
            doubts: Vec::new(),
        }
    }

    /// Of its condition, if it has one. What is behind the last rule is shown at that.
    fn span(&self, rule: u32) -> Span {
        let rule = self.program.rule(RuleIndex(rule)).or(self.program.rules.last());
        let Some(rule) = rule else { return Span::default() };
        let mut tests: Option<Span> = None;
        rule.condition.each_test(&mut |test| {
            let so_far = tests.unwrap_or(test.span);
            tests =
                Some(Span { start: so_far.start.min(test.span.start), end: so_far.end.max(test.span.end) });
        });
        tests.unwrap_or(rule.span)
    }

    pub(super) fn name(&self, rule: u32) -> String {
        rule_name(self.program, rule)
    }

    pub(super) fn names(&self, rules: &[u32]) -> String {
        let rules: Vec<_> = rules.iter().copied().map(RuleIndex).collect();
        rule_names(self.program, &rules)
    }
}

/// `R1`, in backticks; a rule without a label by its number.
pub(super) fn rule_name(program: &Program, rule: u32) -> String {
    match program.rule(RuleIndex(rule)) {
        Some(_) if rule as usize == program.rules.len() => "the final `else`".to_owned(),
        Some(rule) if rule.label.starts_with('#') => format!("rule {}", rule.label),
        Some(rule) => format!("`{}`", rule.label),
        None => "the default pool".to_owned(),
    }
}

/// The same of several, of which many are only counted: `R1`, `R2` and 7 more rules.
#[must_use]
pub fn rule_names(program: &Program, rules: &[RuleIndex]) -> String {
    let named = if rules.len() > NAMED_MAX + 1 { NAMED_MAX } else { rules.len() };
    let mut names: Vec<_> = rules.iter().take(named).map(|rule| rule_name(program, rule.0)).collect();
    let last = match rules.len() - named {
        0 => names.pop().unwrap_or_default(),
        more => format!("{more} more rules"),
    };
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

fn leave(rules: &[u32]) -> &'static str {
    if rules.len() == 1 { "leaves" } else { "leave" }
}

/// Whether nothing comes of it but that the walk goes on.
pub(super) fn is_empty(block: &Block) -> bool {
    block.effects.is_empty() && matches!(block.exit, Exit::Next)
}
