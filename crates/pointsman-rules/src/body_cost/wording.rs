//! Costs as sentences.

use super::{Blame, BodyCost, Extent, Reach, Why};
use crate::{Program, RuleIndex};

impl BodyCost<'_> {
    /// What the rule is called; `no rule` for a request that none decides.
    #[must_use]
    pub fn name<'p>(&self, program: &'p Program) -> &'p str {
        label(program, self.rule)
    }

    /// How much of a body it takes, and why the most of it.
    #[must_use]
    pub fn sentence(&self, program: &Program) -> String {
        let (earliest, latest) = (self.earliest.phrase(), self.latest.phrase());
        let because =
            self.latest.because(program).map(|because| format!(", because {because}")).unwrap_or_default();
        if self.earliest.reach == self.latest.reach && earliest == latest {
            return format!("{latest}{because}");
        }
        format!("{earliest}; at worst {latest}{because}")
    }
}

impl Extent<'_> {
    /// `up to a value of xml.a`
    #[must_use]
    pub fn phrase(&self) -> String {
        let field = self.blame.map(|blame| blame.field.to_string()).unwrap_or_default();
        let others = if self.others { " and values of other fields" } else { "" };
        match (self.reach, self.blame.map(|blame| blame.why)) {
            (Reach::Head, _) => "the head".to_owned(),
            (Reach::Value, Some(Why::FittingValue)) => {
                format!("up to a value of `{field}` that fits{others}")
            }
            (Reach::Value, Some(Why::UnfittingValue)) => {
                format!("up to a value of `{field}` that does not fit{others}")
            }
            (Reach::Value, _) => format!("up to the first value of `{field}`{others}"),
            (Reach::Scope, _) => format!("up to where `{field}` can have no more values"),
            (Reach::Body, _) => "the whole body".to_owned(),
        }
    }

    /// Why so much, where it is more than a value, and what would take less.
    #[must_use]
    pub fn because(&self, program: &Program) -> Option<String> {
        let blame = self.blame.filter(|_| self.reach > Reach::Value)?;
        let advice = match blame.why {
            Why::NoneFits | Why::AllFit | Why::Once => {
                format!("; `first({})` would not", blame.field)
            }
            _ => String::new(),
        };
        Some(format!("{}{advice}", blame.sentence(program)))
    }
}

impl Blame<'_> {
    fn sentence(&self, program: &Program) -> String {
        let (rule, field) = (label(program, self.rule), self.field);
        let comes = if self.holds { "true" } else { "false" };
        match self.why {
            Why::NoneFits if self.holds => format!("{rule} negates `{field}`"),
            Why::NoneFits => format!("{rule} is false only when no value of `{field}` fits"),
            Why::AllFit => format!("{rule} is {comes} only when every value of `{field}` fits"),
            Why::MayBeAbsent if self.span.is_none() => {
                format!("{rule} waits for `{field}`, also when it is absent")
            }
            Why::MayBeAbsent => format!("{rule} is {comes}, too, when `{field}` is absent"),
            Why::Absent => format!("{rule} is {comes} only when `{field}` is absent"),
            Why::Once => format!("{rule} asks whether `{field}` comes twice"),
            Why::Count => format!("{rule} counts `{field}`"),
            Why::Size => format!("{rule} asks for `{field}`, which the head need not announce"),
            Why::FirstValue | Why::FittingValue | Why::UnfittingValue => format!("{rule} asks for `{field}`"),
        }
    }
}

fn label(program: &Program, rule: RuleIndex) -> &str {
    program.rule(rule).map_or("no rule", |rule| &rule.label)
}
