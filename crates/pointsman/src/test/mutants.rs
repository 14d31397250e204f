//! `pointsman test --mutate`: the small mistakes in rules that their tests would not notice.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use pointsman_analysis::{Effort, RuleSide, differences};
use pointsman_rules::{Colour, Diagnostic, Lines, Mutant, MutantKind, Mutants, Program, TestCase, draw};
use serde_json::{Value, json};

use super::coverage::percent;
use super::suite::Suite;
use super::trial;
use crate::check::plural;
use crate::explain::report::shown;

/// So many survivors of a rule set are shown to people; programs see all.
const SHOWN_MAX: usize = 100;

/// Of so many survivors of a rule set it is asked whether they mean the same as the rules, with so many steps each.
const COMPARED_MAX: usize = 200;
const COMPARED_STEPS: u64 = 5_000_000;

/// Characters of what stands in the place of something.
const BECOMES_CHARS_MAX: usize = 80;

/// What became of the mutants of some rule sets.
pub(super) struct Mutation {
    sets: Vec<Mutated>,
}

/// What became of the mutants of one rule set.
struct Mutated {
    name: String,
    source: Arc<str>,
    /// How many there are, tried or not.
    total: usize,
    killed: usize,
    /// No rule sets: what they jump to would come before them, for instance.
    not_compiled: usize,
    /// Proved to decide every request as the rules do: no test could notice.
    same: usize,
    survivors: Vec<Survivor>,
}

/// A mutant that passes every test.
struct Survivor {
    mutant: Mutant,
    rule: String,
    /// The label of the rule behind it.
    next: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Killed,
    Survived,
    NotCompiled,
}

impl Mutation {
    /// Tries at most so many mutants of each rule set against its tests, which all pass.
    pub(super) fn of(suites: &[Suite], mutants_max: usize) -> Mutation {
        Mutation { sets: suites.iter().map(|suite| mutated(suite, mutants_max)).collect() }
    }

    fn killed(&self) -> usize {
        self.sets.iter().map(|set| set.killed).sum()
    }

    fn survived(&self) -> usize {
        self.sets.iter().map(|set| set.survivors.len()).sum()
    }

    fn tried(&self) -> usize {
        self.killed() + self.survived()
    }

    fn not_compiled(&self) -> usize {
        self.sets.iter().map(|set| set.not_compiled).sum()
    }

    fn same(&self) -> usize {
        self.sets.iter().map(|set| set.same).sum()
    }

    fn not_tried(&self) -> usize {
        let total: usize = self.sets.iter().map(|set| set.total).sum();
        total - self.tried() - self.not_compiled() - self.same()
    }

    fn percent(&self) -> usize {
        percent(self.killed(), self.tried())
    }

    /// Whether less than so many percent of the mutants were killed, and the sentence that says so.
    pub(super) fn falls_under(&self, wanted: u8) -> Option<String> {
        let is_under = self.killed() * 100 < self.tried() * usize::from(wanted);
        is_under.then(|| format!("{} % of the mutants are killed, and {wanted} % are wanted", self.percent()))
    }

    /// For people: every survivor under its line, and how many there were.
    pub(super) fn text(&self, colour: Colour) -> String {
        let mut text = String::from("\n");
        for set in &self.sets {
            let findings: Vec<_> = set.survivors.iter().take(SHOWN_MAX).map(Survivor::finding).collect();
            text.push_str(&draw(&findings, &set.name, &set.source, colour));
            if let Some(more @ 1..) = set.survivors.len().checked_sub(SHOWN_MAX) {
                text.push_str(&format!("and {more} more of {}\n\n", set.name));
            }
        }
        let tried = plural(self.tried(), "mutant");
        text.push_str(&format!("{} of {tried} killed ({} %)\n", self.killed(), self.percent()));
        for (count, what) in [
            (self.same(), "proved to decide as the rules do, and not counted"),
            (self.not_tried(), "not tried"),
            (self.not_compiled(), "no rule sets, and not counted"),
        ] {
            if count > 0 {
                text.push_str(&format!("  {count} more {what}\n"));
            }
        }
        text
    }

    /// `12 mutants: 10 killed, 2 survived`
    pub(super) fn summary(&self) -> String {
        let tried = plural(self.tried(), "mutant");
        format!("{tried}: {} killed, {} survived", self.killed(), self.survived())
    }

    /// For programs.
    pub(super) fn to_json(&self) -> Value {
        let survivors: Vec<_> = self.sets.iter().flat_map(Mutated::survivors_to_json).collect();
        json!({
            "killed": self.killed(),
            "survived": self.survived(),
            "percent": self.percent(),
            "same": self.same(),
            "not_tried": self.not_tried(),
            "not_compiled": self.not_compiled(),
            "survivors": survivors,
        })
    }
}

impl Mutated {
    fn survivors_to_json(&self) -> Vec<Value> {
        let lines = Lines::of(&self.source);
        let survivors = self.survivors.iter().map(|survivor| {
            let Survivor { mutant, rule, .. } = survivor;
            let span = mutant.span;
            let (line, column) = lines.position(span.start);
            json!({
                "rules": self.name,
                "rule": rule,
                "kind": mutant.kind.word(),
                "span": { "start": span.start, "end": span.end, "line": line, "column": column },
                "was": self.source.get(span.start as usize..span.end as usize),
                "becomes": mutant.becomes,
                "message": survivor.message(),
            })
        });
        survivors.collect()
    }
}

fn mutated(suite: &Suite, mutants_max: usize) -> Mutated {
    let source = suite.files.first().map(|file| file.source.clone()).unwrap_or_default();
    let mutants = pointsman_rules::mutants(&source, mutants_max);
    let cases: Vec<_> = suite.files.iter().flat_map(|file| &file.cases).collect();
    let fates = fates(suite, &mutants, &cases);
    let count = |wanted| fates.iter().filter(|fate| **fate == wanted).count();
    let (killed, not_compiled) = (count(Fate::Killed), count(Fate::NotCompiled));
    let label = |index| suite.program.rule(index).map(|rule| rule.label.to_string()).unwrap_or_default();
    let total = mutants.total;
    let survived = mutants.mutants.iter().zip(fates).filter(|(_, fate)| *fate == Fate::Survived);
    let survived: Vec<_> = survived.map(|(mutant, _)| mutant).collect();
    let is_same: Vec<_> =
        survived.iter().take(COMPARED_MAX).map(|mutant| decides_alike(suite, &mutants, mutant)).collect();
    let same = is_same.iter().filter(|is_same| **is_same).count();
    let different = survived.into_iter().zip(is_same.into_iter().chain(std::iter::repeat(false)));
    let survivors = different.filter(|(_, is_same)| !is_same).map(|(mutant, _)| Survivor {
        rule: label(mutant.rule),
        next: label(pointsman_rules::RuleIndex(mutant.rule.0 + 1)),
        mutant: mutant.clone(),
    });
    let survivors = survivors.collect();
    Mutated { name: suite.name.clone(), total, killed, not_compiled, same, survivors, source }
}

/// Whether it is proved that a mutant decides every request as the rules do.
fn decides_alike(suite: &Suite, mutants: &Mutants, mutant: &Mutant) -> bool {
    let text = mutants.text(mutant);
    let compiled = pointsman_rules::compile_for(&text, &suite.targets, suite.place.protocol.scope());
    let Ok(compiled) = compiled else { return false };
    let program = Arc::new(compiled.program);
    let setting = suite.place.known();
    let [old, new] = [&suite.program, &program]
        .map(|program| RuleSide { program, default_pool: setting.default_pool.as_deref() });
    differences(old, new, &setting, Effort::new(COMPARED_STEPS)).decide_alike()
}

/// What becomes of each, on as many threads as there are processors.
fn fates(suite: &Suite, mutants: &Mutants, cases: &[&TestCase]) -> Vec<Fate> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = mutants.mutants.len().div_ceil(threads).max(1);
    let fates_of = |some: &[Mutant]| -> Vec<Fate> {
        some.iter().map(|mutant| fate(suite, mutants, mutant, cases)).collect()
    };
    thread::scope(|scope| {
        let shares: Vec<_> =
            mutants.mutants.chunks(share).map(|some| (some, scope.spawn(move || fates_of(some)))).collect();
        // A thread that has failed leaves its share to this one, which fails likewise, and says why.
        shares.into_iter().flat_map(|(some, work)| work.join().unwrap_or_else(|_| fates_of(some))).collect()
    })
}

fn fate(suite: &Suite, mutants: &Mutants, mutant: &Mutant, cases: &[&TestCase]) -> Fate {
    let text = mutants.text(mutant);
    let compiled = pointsman_rules::compile_for(&text, &suite.targets, suite.place.protocol.scope());
    let Ok(compiled) = compiled else { return Fate::NotCompiled };
    let program: &Program = &compiled.program;
    let is_killed = cases.iter().any(|case| {
        !trial::still_passes(case, &suite.place, &suite.program, program, |rule| mutant.place_of(rule))
    });
    if is_killed { Fate::Killed } else { Fate::Survived }
}

impl Survivor {
    fn finding(&self) -> Diagnostic {
        Diagnostic::warning(self.mutant.span, self.message())
    }

    fn message(&self) -> String {
        let rule = &self.rule;
        match self.mutant.kind {
            MutantKind::Rule => format!("no test notices that {rule} is missing"),
            MutantKind::Entry => format!("no test of {rule} notices that this entry is missing"),
            MutantKind::Effect => format!("no test of {rule} notices that this effect is missing"),
            MutantKind::Order => format!("no test notices that {rule} and {} change places", self.next),
            MutantKind::Blocks => format!("no test notices that the two blocks of {rule} change places"),
            MutantKind::Comparison
            | MutantKind::Border
            | MutantKind::Joint
            | MutantKind::Negation
            | MutantKind::Target => {
                let becomes: String = self.mutant.becomes.chars().take(BECOMES_CHARS_MAX).collect();
                let cut = if becomes.len() < self.mutant.becomes.len() { "…" } else { "" };
                format!("no test notices `{}{cut}` in {rule}", shown(becomes.as_bytes()))
            }
        }
    }
}
