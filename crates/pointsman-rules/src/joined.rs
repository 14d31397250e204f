//! Rules of several programs in one, so that their conditions and blocks can be compared.

use std::collections::HashMap;
use std::sync::Arc;

use crate::engine::{Engine, Sizes, number_tests};
use crate::{
    Block, Condition, Effect, Exit, Field, HeaderEdit, OnUnknown, Payload, PayloadId, Piece, Place, Program,
    Rule, RuleIndex, Span, Stickiness, TargetId, TargetName, Template, Terminal, pace,
};

impl Program {
    /// All rules of some programs, those of the next behind those of the one before; the final `else:` is a rule among
    /// them. The last of each is one more, without a condition and without an action: it stands for what no rule decides.
    ///
    /// Tests that ask the same have the same number, and blocks that do the same are equal, whichever program they are
    /// from. It is there to be compared: what it decides is what none of them does.
    #[must_use]
    pub fn joined(programs: &[&Program]) -> Program {
        let mut joint = Joint::default();
        for program in programs {
            joint.add(program);
        }
        let Joint { mut rules, targets, payloads, .. } = joint;
        number_tests(&mut rules, &mut None);
        // Where each rule is visited, nothing is planned ahead.
        let sizes = Sizes { plain_rules_max: usize::MAX, ..Sizes::default() };
        let engine = Engine::new(rules.iter(), OnUnknown::default(), sizes);
        let (on_unknown, validate, engine) = (OnUnknown::default(), Default::default(), Arc::new(engine));
        Program { rules, fallback: None, on_unknown, targets, payloads, validate, engine }
    }
}

#[derive(Default)]
struct Joint {
    rules: Vec<Rule>,
    targets: Vec<TargetName>,
    target_ids: HashMap<TargetName, TargetId>,
    payloads: Vec<Arc<Payload>>,
    payload_ids: HashMap<Place, PayloadId>,
}

/// What the names of one program are in all of them.
struct Names {
    targets: Vec<TargetId>,
    payloads: Vec<Arc<Payload>>,
    /// How many rules stand before its own.
    before: u32,
}

impl Joint {
    fn add(&mut self, program: &Program) {
        let names = Names {
            targets: program.targets.iter().map(|name| self.target(name)).collect(),
            payloads: program.payloads.iter().map(|payload| self.payload(payload)).collect(),
            before: u32::try_from(self.rules.len()).unwrap_or(u32::MAX),
        };
        self.rules.reserve_exact(program.rules.len() + 2);
        for rule in pace::each(program.rules.iter().chain(&program.fallback)) {
            let mut rule = rule.clone();
            names.give_condition(&mut rule.condition);
            names.give_block(&mut rule.then);
            names.give_block(&mut rule.otherwise);
            self.rules.push(rule);
        }
        self.rules.push(Rule {
            label: "".into(),
            then: Block::default(),
            otherwise: Block::default(),
            span: Span::default(),
            condition: Condition::Always,
        });
    }

    fn target(&mut self, name: &TargetName) -> TargetId {
        if let Some(id) = self.target_ids.get(name) {
            return *id;
        }
        let id = TargetId(u32::try_from(self.targets.len()).unwrap_or(u32::MAX));
        self.targets.push(name.clone());
        self.target_ids.insert(name.clone(), id);
        id
    }

    fn payload(&mut self, payload: &Payload) -> Arc<Payload> {
        let known = self.payload_ids.get(&payload.place).and_then(|id| self.payloads.get(id.0 as usize));
        if let Some(known) = known {
            return known.clone();
        }
        let id = PayloadId(u32::try_from(self.payloads.len()).unwrap_or(u32::MAX));
        let payload = Arc::new(Payload { id, ..payload.clone() });
        self.payload_ids.insert(payload.place.clone(), id);
        self.payloads.push(payload.clone());
        payload
    }
}

impl Names {
    fn give_condition(&self, condition: &mut Condition) {
        match condition {
            Condition::Always => {}
            Condition::Not(inner) => self.give_condition(inner),
            Condition::And(parts) | Condition::Or(parts) => {
                parts.iter_mut().for_each(|part| self.give_condition(part));
            }
            Condition::Test(test) => self.give_field(&mut test.field),
        }
    }

    fn give_block(&self, block: &mut Block) {
        block.awaits.iter_mut().for_each(|field| self.give_field(field));
        block.allows.clear();
        for effect in &mut block.effects {
            if let Effect::Header { edit: HeaderEdit::Set(template) | HeaderEdit::Add(template), .. } = effect
            {
                self.give_template(template);
            }
        }
        match &mut block.exit {
            Exit::Goto(RuleIndex(index)) => *index = index.saturating_add(self.before),
            Exit::Next | Exit::Terminal(Terminal::Reject { .. } | Terminal::Reset | Terminal::Discard) => {}
            Exit::Terminal(Terminal::RouteTo { target, sticky }) => {
                self.give_target(target);
                self.give_stickiness(sticky);
            }
            Exit::Terminal(Terminal::Split(split)) => {
                split.shares.iter_mut().for_each(|share| self.give_target(&mut share.target));
                self.give_stickiness(&mut split.sticky);
            }
            Exit::Terminal(
                Terminal::Redirect { location: template, .. } | Terminal::Respond { body: template, .. },
            ) => self.give_template(template),
        }
    }

    fn give_target(&self, target: &mut TargetId) {
        *target = self.targets.get(target.0 as usize).copied().unwrap_or(*target);
    }

    fn give_stickiness(&self, sticky: &mut Stickiness) {
        if let Stickiness::Field(field) = sticky {
            self.give_field(field);
        }
    }

    fn give_template(&self, template: &mut Template) {
        for piece in &mut template.0 {
            match piece {
                Piece::Field(field) => self.give_field(field),
                Piece::Group(group) => {
                    group.sources.iter_mut().for_each(|source| self.give_field(&mut source.field));
                }
                Piece::Literal(_) => {}
            }
        }
    }

    fn give_field(&self, field: &mut Field) {
        if let Field::Payload(payload) = field
            && let Some(named) = self.payloads.get(payload.id.0 as usize)
        {
            *payload = named.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Targets, compile};

    fn program(source: &str) -> Program {
        compile(source, &Targets::Any).unwrap_or_else(|wrong| panic!("{source}{wrong:?}")).program
    }

    fn tests(rule: &Rule) -> Vec<u32> {
        let mut numbers = Vec::new();
        rule.condition.each_test(&mut |test| numbers.push(test.number()));
        numbers
    }

    #[test]
    fn what_is_the_same_in_two_programs_is_equal_in_one() {
        let old = program(
            "if (json.a > 1 && path == \"/\") { routeTo(a, STICKY_ON(json.b)); }\n\
             if (host == \"h\") { goto last; }\nlast: { setHeader(\"x\", \"${json.b}\"); }\nelse: routeTo(b);\n",
        );
        let new = program(
            "if (json.c == 2) { routeTo(b); }\n\
             if (json.a > 1 && path == \"/\") { setHeader(\"x\", \"${json.b}\"); routeTo(a, STICKY_ON(json.b)); }\n",
        );
        let joint = Program::joined(&[&old, &new]);
        assert_eq!(joint.rules.len(), 4 + 1 + 2 + 1);
        let rule = |index: usize| &joint.rules[index];
        assert_eq!(tests(rule(0)), tests(rule(6)));
        assert_ne!(tests(rule(0)), tests(rule(5)));
        let end = |index: usize| match &rule(index).then.exit {
            Exit::Terminal(terminal) => terminal,
            other => panic!("{other:?} does not decide"),
        };
        assert_eq!(end(0), end(6));
        assert_eq!(end(3), end(5));
        assert_ne!(end(0), end(5));
        assert_eq!(rule(2).then.effects, rule(6).then.effects);
        assert!(matches!(rule(1).then.exit, Exit::Goto(RuleIndex(2))));
        let ids: Vec<_> = joint.payloads.iter().map(|payload| payload.id.0).collect();
        assert_eq!(ids, [0, 1, 2]);
    }

    #[test]
    fn shares_are_the_same_however_they_are_written() {
        let end = |source: &str| {
            let joint = Program::joined(&[&program("{ routeTo(split(50: b, 50: a)); }"), &program(source)]);
            let same = format!("{:?}", joint.rules[0].then.exit) == format!("{:?}", joint.rules[2].then.exit);
            same.then_some(joint.targets.len())
        };
        assert_eq!(end("{ routeTo(split(50.00: a, 0: c, 50: b)); }"), Some(2));
        assert_eq!(end("{ routeTo(split(50: a, 50: b), STICKY_ON_IP); }"), None);
        assert_eq!(end("{ routeTo(split(51: a, 49: b)); }"), None);
        assert_eq!(end("{ routeTo(split(50: a, 50: c)); }"), None);
    }

    #[test]
    fn jumps_lead_to_rules_of_their_own_program() {
        let one = program("if (path == \"/\") { goto last; }\nlast: { discard(); }\n");
        let joint = Program::joined(&[&one, &one]);
        assert!(matches!(joint.rules[3].then.exit, Exit::Goto(RuleIndex(4))));
    }
}
