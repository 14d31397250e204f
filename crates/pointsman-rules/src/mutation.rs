//! Rule sets with one small mistake each: tests that notice none of them say little.

mod borders;
mod conditions;

use std::collections::HashMap;

use crate::ast::{Action, ActionKind, Block, Item, Name, Rule, RuleFile, Target};
use crate::format::{spell_name, spell_rule_head};
use crate::{RuleIndex, Severity, Span};

/// A small mistake, and where it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The rule that it is in; of a final `else:` the number of the other rules.
    pub rule: RuleIndex,
    /// What is changed, for people: where it stands.
    pub span: Span,
    /// What kind of mistake it is.
    pub kind: MutantKind,
    /// What stands in its place; of two rules that change places nothing.
    pub becomes: String,
    edits: Vec<(Span, String)>,
}

/// The kinds of mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MutantKind {
    /// Another comparison: `==` and `!=`, `<` and `<=`, `under` and `startsWith`, anything else and its negation.
    Comparison,
    /// A number, an address or a network a little further on.
    Border,
    /// An entry of a list is left out.
    Entry,
    /// `&&` and `||`.
    Joint,
    /// `!` is left out.
    Negation,
    /// What follows when the condition holds, and what follows when not.
    Blocks,
    /// Another target of the set.
    Target,
    /// The rule, and the one behind it.
    Order,
    /// An effect is left out.
    Effect,
    /// The rule does nothing.
    Rule,
}

/// The mutants of a rule set.
#[derive(Clone, Debug)]
pub struct Mutants {
    /// In the order of the text.
    pub mutants: Vec<Mutant>,
    /// How many there are; more than are listed where they were too many.
    pub total: usize,
    /// The rules alone, each where it stood.
    rules: String,
}

/// The mutants of a rule set, at most so many: of more, some that are evenly spread over it. None of what cannot be read.
#[must_use]
pub fn mutants(source: &str, mutants_max: usize) -> Mutants {
    let (file, findings) = crate::parse(source);
    if findings.iter().any(|finding| finding.severity == Severity::Error) {
        return Mutants { mutants: Vec::new(), total: 0, rules: String::new() };
    }
    let mut total = 0;
    Maker::new(&file, source, |_| total += 1).file(&file);
    let (mut mutants, mut number) = (Vec::with_capacity(total.min(mutants_max)), 0);
    let place = |number: usize| number as u128 * mutants_max.min(total) as u128 / total.max(1) as u128;
    Maker::new(&file, source, |mutant| {
        // Of each stretch of the same length the first.
        if mutants_max > 0 && (number == 0 || place(number) != place(number - 1)) {
            mutants.push(mutant);
        }
        number += 1;
    })
    .file(&file);
    Mutants { mutants, total, rules: without_tests(&file, source) }
}

/// White space stands in the place of all that is no rule and no setting.
fn without_tests(file: &RuleFile, source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    for item in &file.items {
        if let Item::Test(_) | Item::Assert(_) = item {
            let span = item.span();
            text.push_str(source.get(text.len()..span.start as usize).unwrap_or_default());
            let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
            text.extend(span.of(source).bytes().map(blank));
        }
    }
    text.push_str(source.get(text.len()..).unwrap_or_default());
    text
}

impl Mutants {
    /// The rules with a mistake, without their tests.
    #[must_use]
    pub fn text(&self, mutant: &Mutant) -> String {
        let mut text = String::with_capacity(self.rules.len() + 64);
        let mut read = 0;
        for (span, instead) in &mutant.edits {
            text.push_str(self.rules.get(read..span.start as usize).unwrap_or_default());
            text.push_str(instead);
            read = span.end as usize;
        }
        text.push_str(self.rules.get(read..).unwrap_or_default());
        text
    }
}

impl Mutant {
    /// Where a rule of the set stands in the mutant.
    #[must_use]
    pub fn place_of(&self, rule: RuleIndex) -> RuleIndex {
        let next = RuleIndex(self.rule.0.saturating_add(1));
        match self.kind {
            MutantKind::Order if rule == self.rule => next,
            MutantKind::Order if rule == next => self.rule,
            _ => rule,
        }
    }
}

impl MutantKind {
    /// As a report names it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            MutantKind::Comparison => "comparison",
            MutantKind::Border => "border",
            MutantKind::Entry => "entry",
            MutantKind::Joint => "joint",
            MutantKind::Negation => "negation",
            MutantKind::Blocks => "blocks",
            MutantKind::Target => "target",
            MutantKind::Order => "order",
            MutantKind::Effect => "effect",
            MutantKind::Rule => "rule",
        }
    }
}

/// Shows one mutant after the other.
struct Maker<'a, F> {
    source: &'a str,
    /// The targets of the set, and for each the one behind it.
    targets: Vec<&'a Name>,
    places: HashMap<&'a str, usize>,
    rule: RuleIndex,
    see: F,
}

impl<'a, F: FnMut(Mutant)> Maker<'a, F> {
    fn new(file: &'a RuleFile, source: &'a str, see: F) -> Self {
        let (mut targets, mut places) = (Vec::new(), HashMap::new());
        let rules = file.items.iter().filter_map(|item| match item {
            Item::Rule(rule) | Item::Fallback(rule) => Some(&**rule),
            _ => None,
        });
        let actions = rules.flat_map(blocks).flat_map(|block| &block.actions);
        for target in actions.filter_map(target_of) {
            places.entry(&*target.text).or_insert_with(|| {
                targets.push(target);
                targets.len() - 1
            });
        }
        Maker { source, targets, places, rule: RuleIndex(0), see }
    }

    fn file(mut self, file: &'a RuleFile) {
        let mut before: Option<&Rule> = None;
        for item in &file.items {
            match item {
                Item::Rule(rule) => {
                    if let Some(before) = before.replace(rule) {
                        if does_something(before) && does_something(rule) {
                            self.swap(before, rule);
                        }
                        self.rule.0 += 1;
                    }
                    self.rule(rule, spell_rule_head(rule) + "{}");
                }
                Item::Fallback(rule) => {
                    if before.take().is_some() {
                        self.rule.0 += 1;
                    }
                    self.rule(rule, String::new());
                }
                Item::Setting(_) | Item::Test(_) | Item::Assert(_) => {}
            }
        }
    }

    /// The mutants of a rule; the last one has `nothing` in its place.
    fn rule(&mut self, rule: &'a Rule, nothing: String) {
        if !does_something(rule) {
            return;
        }
        if let Some(condition) = &rule.condition {
            self.condition(condition);
        }
        for action in blocks(rule).flat_map(|block| &block.actions) {
            let Some(target) = target_of(action) else { continue };
            let place = self.places.get(&*target.text).map_or(0, |place| place + 1);
            let other = self.targets.get(place).or(self.targets.first());
            if let Some(other) = other.filter(|other| other.text != target.text) {
                let becomes = spell_name(other);
                self.show(MutantKind::Target, target.span, becomes);
            }
        }
        for block in blocks(rule) {
            for action in block.actions.iter().filter(|action| is_effect(action)) {
                // A block without braces is its action.
                let is_braced = block.span.of(self.source).starts_with('{');
                self.show(MutantKind::Effect, action.span, if is_braced { "" } else { "{}" }.to_owned());
            }
        }
        if let Some(otherwise) = &rule.otherwise {
            let texts = [rule.then.span.of(self.source), otherwise.span.of(self.source)];
            let edits = vec![(rule.then.span, texts[1].to_owned()), (otherwise.span, texts[0].to_owned())];
            let span = rule.then.span.to(otherwise.span);
            let becomes = format!("{} else {}", texts[1], texts[0]);
            self.show_edits(MutantKind::Blocks, span, becomes, edits);
        }
        self.show(MutantKind::Rule, rule.span, nothing);
    }

    /// Two rules change places.
    fn swap(&mut self, first: &Rule, second: &Rule) {
        let text = |rule: &Rule| rule.span.of(self.source).to_owned();
        let edits = vec![(first.span, text(second)), (second.span, text(first))];
        self.show_edits(MutantKind::Order, first.span.to(second.span), String::new(), edits);
    }

    fn show(&mut self, kind: MutantKind, span: Span, becomes: String) {
        let edits = vec![(span, becomes.clone())];
        self.show_edits(kind, span, becomes, edits);
    }

    fn show_edits(&mut self, kind: MutantKind, span: Span, becomes: String, edits: Vec<(Span, String)>) {
        (self.see)(Mutant { rule: self.rule, span, kind, becomes, edits });
    }
}

fn blocks(rule: &Rule) -> impl Iterator<Item = &Block> {
    std::iter::once(&rule.then).chain(&rule.otherwise)
}

/// Whether a test can see anything of a rule.
fn does_something(rule: &Rule) -> bool {
    let mut actions = blocks(rule).flat_map(|block| &block.actions);
    actions.any(|action| !matches!(action.kind, ActionKind::AllowConflict(_)))
}

fn is_effect(action: &Action) -> bool {
    match action.kind {
        ActionKind::SetHeader(..)
        | ActionKind::AddHeader(..)
        | ActionKind::RemoveHeader(..)
        | ActionKind::RewritePath(..)
        | ActionKind::Tag(_) => true,
        ActionKind::RouteTo(..)
        | ActionKind::Reject(..)
        | ActionKind::Reset
        | ActionKind::Discard
        | ActionKind::Redirect(..)
        | ActionKind::Respond(..)
        | ActionKind::Goto(_)
        | ActionKind::Bandwidth(_)
        | ActionKind::LimitRate(_)
        | ActionKind::Mirror(_)
        | ActionKind::AllowConflict(_) => false,
    }
}

fn target_of(action: &Action) -> Option<&Name> {
    match &action.kind {
        ActionKind::RouteTo(Target::Named(name), _) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
