//! Rule sets as people write them, each with faults sown into it that are known.

mod manners;

use std::fmt::Write;

pub(crate) use self::manners::all;

/// A rule set and what is wrong with it.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) source: String,
    /// The warnings that are due, and no others: what it is, of which rule, and which rules prove it.
    pub(crate) faults: Vec<Fault>,
}

/// `unreachable`, `R7`, of `R2` and `R3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    pub(crate) code: &'static str,
    pub(crate) rule: String,
    pub(crate) others: Vec<String>,
}

impl Set {
    fn new(name: &'static str) -> Set {
        Set { name, source: String::new(), faults: Vec::new() }
    }

    /// A setting at the top.
    fn setting(mut self, setting: &str) -> Set {
        self.line(setting);
        self
    }

    fn line(&mut self, line: &str) {
        self.source.push_str(line);
        self.source.push('\n');
    }

    /// So many rules, each by its number.
    fn rules(mut self, count: usize, rule: impl Fn(usize) -> String) -> Set {
        for number in 0..count {
            self.line(&rule(number));
        }
        self
    }

    /// A rule that is as it should be.
    fn rule(mut self, rule: &str) -> Set {
        self.line(rule);
        self
    }

    /// A rule with something wrong: of its label the first word of the rule.
    fn fault(mut self, code: &'static str, rule: &str, others: &[&str]) -> Set {
        let label = rule.split(':').next().unwrap_or_default().to_owned();
        self.line(rule);
        self.due(code, &label, others)
    }

    /// Something wrong with a rule that stands there already.
    fn due(mut self, code: &'static str, rule: &str, others: &[&str]) -> Set {
        let others = others.iter().map(|&other| other.into()).collect();
        self.faults.push(Fault { code, rule: rule.to_owned(), others });
        self
    }
}

/// `if (condition) { routeTo(target); }` under a label.
fn route(label: &str, condition: &str, target: &str) -> String {
    let mut rule = String::new();
    write!(rule, "{label}: if ({condition}) {{ routeTo({target}); }}").expect("a text has room");
    rule
}
