//! Why something was not settled.

use pointsman_rules::{Field, RuleIndex, Test};

use crate::Effort;

/// Why something was not settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The steps were used up.
    Steps,
    /// The time was over.
    Time,
    /// There was more of it than is looked at.
    Many,
    /// Values of one field were not found with which these tests come to what is asked of them, nor was it proved that there
    /// are none.
    Values(DoubtedTests),
    /// Values were found with which these tests come to what is asked of them, and no request that has all of them.
    Request(DoubtedTests),
    /// The same of a body in content codings that would have to be longer than such bodies are made.
    Coded(DoubtedTests),
    /// A request was made, and the rules say something else of it than was found.
    Unconfirmed(DoubtedTests),
    /// An action of a rule needs these fields of the body, and it was not settled whether they are known.
    Needs(Vec<Field>),
    /// The rules are about connections and not about requests.
    NoRequests,
    /// By the rules it is settled; clients that stay with the targets of these rules may go elsewhere.
    Remembered,
}

/// What is not settled for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InDoubt {
    /// The rules that it is about; without any it is about all, or about pairs of them.
    pub rules: Vec<RuleIndex>,
    /// Why.
    pub doubt: Doubt,
}

/// A test that a doubt is about; two of a set of rules are one where they ask the same.
#[derive(Clone, Debug)]
pub struct Doubted(pub Test);

/// The tests that a doubt is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoubtedTests {
    /// The first of them, eight at most.
    pub first: Vec<Doubted>,
    /// How many more there are.
    pub more: usize,
}

/// Of more tests than these only the number is kept.
const TESTS_MAX: usize = 8;
/// So many doubts are told apart, and the kinds of more.
const GROUPS_MAX: usize = 32;

impl Doubt {
    /// Why an effort is used up.
    pub(super) fn of_used_up(effort: &Effort) -> Doubt {
        if effort.is_late() { Doubt::Time } else { Doubt::Steps }
    }

    /// The tests that it is about, the first of them.
    #[must_use]
    pub fn tests(&self) -> &[Doubted] {
        self.all_tests().map_or(&[], |tests| &tests.first)
    }

    /// How many more tests it is about.
    #[must_use]
    pub fn more_tests(&self) -> usize {
        self.all_tests().map_or(0, |tests| tests.more)
    }

    fn all_tests(&self) -> Option<&DoubtedTests> {
        match self {
            Doubt::Values(tests)
            | Doubt::Request(tests)
            | Doubt::Coded(tests)
            | Doubt::Unconfirmed(tests) => Some(tests),
            Doubt::Steps
            | Doubt::Time
            | Doubt::Many
            | Doubt::Needs(_)
            | Doubt::NoRequests
            | Doubt::Remembered => None,
        }
    }

    /// The fields that it is about, each once.
    #[must_use]
    pub fn fields(&self) -> Vec<&Field> {
        let needed = if let Doubt::Needs(fields) = self { fields.as_slice() } else { &[] };
        let mut fields: Vec<&Field> = Vec::new();
        for field in self.tests().iter().map(|doubted| &doubted.0.field).chain(needed) {
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        fields
    }

    /// Its kind alone.
    pub(super) fn kind(&self) -> Doubt {
        match self {
            Doubt::Values(_) => Doubt::Values(DoubtedTests::default()),
            Doubt::Request(_) => Doubt::Request(DoubtedTests::default()),
            Doubt::Coded(_) => Doubt::Coded(DoubtedTests::default()),
            Doubt::Unconfirmed(_) => Doubt::Unconfirmed(DoubtedTests::default()),
            Doubt::Needs(_) => Doubt::Needs(Vec::new()),
            plain => plain.clone(),
        }
    }
}

/// Rules in doubt, those of the same doubt together. Of more doubts than are told apart only the kinds are.
pub(super) fn by_doubt(all: impl IntoIterator<Item = (u32, Doubt)>) -> Vec<InDoubt> {
    let mut groups: Vec<InDoubt> = Vec::new();
    for (rule, doubt) in all {
        let is_known = groups.iter().any(|group| group.doubt == doubt);
        let doubt = if is_known || groups.len() < GROUPS_MAX { doubt } else { doubt.kind() };
        match groups.iter_mut().find(|group| group.doubt == doubt) {
            Some(group) => group.rules.push(RuleIndex(rule)),
            None => groups.push(InDoubt { rules: vec![RuleIndex(rule)], doubt }),
        }
    }
    groups
}

/// Some tests, as a doubt has them.
pub(super) fn doubted<'p>(tests: impl IntoIterator<Item = &'p Test>) -> DoubtedTests {
    let mut tests = tests.into_iter();
    let first = tests.by_ref().take(TESTS_MAX).map(|test| Doubted(test.clone())).collect();
    DoubtedTests { first, more: tests.count() }
}

impl PartialEq for Doubted {
    fn eq(&self, other: &Doubted) -> bool {
        self.0.number() == other.0.number()
    }
}

impl Eq for Doubted {}
