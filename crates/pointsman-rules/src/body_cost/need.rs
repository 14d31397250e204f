//! What a condition needs of a body to come to true, or to false.

use crate::payload::{JsonStep, Place, XmlPath};
use crate::{Block, Condition, Field, Op, Over, Payload, Program, Span, Test, Truth, Value};

/// What a body is: fields of the other kinds are absent, which its head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Xml,
    Json,
    Form,
    /// Nothing that is read.
    Other,
}

impl Kind {
    /// Those that a program asks for, each once.
    pub(super) fn of(program: &Program) -> Vec<Kind> {
        let mut kinds: Vec<_> = program.payloads.iter().filter_map(|payload| payload.kind()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        if kinds.is_empty() { vec![Kind::Other] } else { kinds }
    }

    /// Whether such a body can have values of a field.
    pub(super) fn has(self, field: &Field) -> bool {
        match field {
            Field::Payload(payload) => payload.kind().is_none_or(|kind| kind == self),
            _ => false,
        }
    }
}

/// How far a body must be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Not at all.
    Head,
    /// Up to where a value ends, or to the root's tag where that shows that there is none.
    Value,
    /// To where no more values can come: the end of the element or object that holds them.
    Scope,
    /// To its end.
    Body,
}

/// Why a test needs so much of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The first value says it.
    FirstValue,
    /// A value that fits says it.
    FittingValue,
    /// A value that does not fit says it, under `all`.
    UnfittingValue,
    /// No value may fit.
    NoneFits,
    /// Every value must fit, under `all`.
    AllFit,
    /// There may be no value, which is known where none can come any more.
    MayBeAbsent,
    /// There may be no value at all.
    Absent,
    /// There may be a second value, under `once`.
    Once,
    /// All values are counted.
    Count,
    /// How long the body is; the head may say it.
    Size,
}

/// A part of a body, and the test that asks for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need<'p> {
    pub(super) reach: Reach,
    pub(super) blame: Option<(&'p Field, Option<Span>, Why)>,
    /// Values of other fields, too.
    pub(super) others: bool,
}

/// What is needed at the least and at the most.
#[derive(Clone, Debug)]
pub(super) struct Needs<'p> {
    pub(super) earliest: Need<'p>,
    /// Where those of its fields have a value that need not have one.
    pub(super) latest: Need<'p>,
    /// What else, where one of them has none.
    pub(super) absent: Vec<Need<'p>>,
}

impl<'p> Needs<'p> {
    pub(super) const HEAD: Needs<'p> = Needs::both(Need { reach: Reach::Head, blame: None, others: false });

    pub(super) const fn both(need: Need<'p>) -> Needs<'p> {
        Needs { earliest: need, latest: need, absent: Vec::new() }
    }

    /// What two parts need that both have to be settled.
    fn and(self, other: Needs<'p>) -> Needs<'p> {
        Needs { earliest: self.earliest.longer(other.earliest), ..self.at_most(other) }
    }

    /// The same where one of them settles it, whichever that is.
    fn or(self, other: Needs<'p>) -> Needs<'p> {
        Needs { earliest: self.earliest.shorter(other.earliest), ..self.at_most(other) }
    }

    fn at_most(mut self, other: Needs<'p>) -> Needs<'p> {
        self.latest = self.latest.longer(other.latest);
        self.absent.extend(other.absent);
        self
    }

    /// A value of a field, or where it has none, what shows that.
    fn may_be_absent(self, field: &'p Field, span: Option<Span>) -> Needs<'p> {
        let Field::Payload(payload) = field else { return self };
        if payload.is_absent_at_once() {
            return self;
        }
        let blame = Some((field, span, Why::MayBeAbsent));
        Needs { absent: vec![Need { reach: payload.scope(), blame, others: false }], ..self }
    }

    /// What a block needs that names fields: their first values, or that they have none.
    pub(super) fn of_block(block: &'p Block, kind: Kind) -> Needs<'p> {
        let asked = block.awaits.iter().filter(|field| kind.has(field));
        let needs = asked.map(|field| {
            let blame = Some((field, None, Why::FirstValue));
            Needs::both(Need { reach: Reach::Value, blame, others: false }).may_be_absent(field, None)
        });
        needs.fold(Needs::HEAD, Needs::and)
    }
}

impl<'p> Need<'p> {
    fn longer(self, other: Need<'p>) -> Need<'p> {
        if other.reach > self.reach {
            return other;
        }
        let differs = self.field() != other.field();
        let is_beside = other.reach == self.reach && self.reach == Reach::Value;
        Need { others: self.others || (is_beside && (other.others || differs)), ..self }
    }

    fn field(self) -> Option<&'p Field> {
        self.blame.map(|(field, ..)| field)
    }

    fn shorter(self, other: Need<'p>) -> Need<'p> {
        if other.reach < self.reach { other } else { self }
    }
}

impl Condition {
    /// What must be read of a body of a kind for it to be true, or to be false; nothing if it never is. The nesting was
    /// bounded when the text was read.
    pub(super) fn needs(&self, holds: bool, kind: Kind) -> Option<Needs<'_>> {
        match self {
            Condition::Always => holds.then_some(Needs::HEAD),
            Condition::Not(inner) => inner.needs(!holds, kind),
            Condition::And(parts) if holds => every(parts, holds, kind),
            Condition::Or(parts) if !holds => every(parts, holds, kind),
            Condition::And(parts) | Condition::Or(parts) => {
                parts.iter().filter_map(|part| part.needs(holds, kind)).reduce(Needs::or)
            }
            Condition::Test(test) => test.needs(holds, kind),
        }
    }

    /// Whether it comes to that only where a field has a value.
    pub(super) fn wants_value(&self, field: &Field, holds: bool) -> bool {
        match self {
            Condition::Always => false,
            Condition::Not(inner) => inner.wants_value(field, !holds),
            Condition::And(parts) if holds => parts.iter().any(|part| part.wants_value(field, holds)),
            Condition::Or(parts) if !holds => parts.iter().any(|part| part.wants_value(field, holds)),
            Condition::And(parts) | Condition::Or(parts) => {
                parts.iter().all(|part| part.wants_value(field, holds))
            }
            Condition::Test(test) => {
                test.field == *field && test.comes_to_when_absent() != Truth::from(holds)
            }
        }
    }

    /// The first test that a second value makes unknown, whatever comes behind it.
    pub(super) fn repeated(&self) -> Option<Need<'_>> {
        match self {
            Condition::Always => None,
            Condition::Not(inner) => inner.repeated(),
            Condition::And(parts) | Condition::Or(parts) => parts.iter().find_map(Condition::repeated),
            Condition::Test(test) => match &test.field {
                Field::Payload(payload) if test.over == Over::Once && payload.is_many_valued() => {
                    let blame = (&test.field, Some(test.span), Why::Once);
                    Some(Need { reach: Reach::Value, blame: Some(blame), others: false })
                }
                _ => None,
            },
        }
    }
}

/// All parts have to be settled so.
fn every(parts: &[Condition], holds: bool, kind: Kind) -> Option<Needs<'_>> {
    parts.iter().try_fold(Needs::HEAD, |needs, part| Some(needs.and(part.needs(holds, kind)?)))
}

impl Test {
    fn needs(&self, holds: bool, kind: Kind) -> Option<Needs<'_>> {
        match &self.field {
            Field::Payload(payload) if kind.has(&self.field) => self.needs_of(payload, holds),
            Field::Payload(_) => (self.comes_to_when_absent() == Truth::from(holds)).then_some(Needs::HEAD),
            _ => Some(Needs::HEAD),
        }
    }

    fn comes_to_when_absent(&self) -> Truth {
        match self.over {
            Over::Count => self.op.holds(Value::Integer(0), false),
            Over::Any | Over::All | Over::First | Over::Once => Truth::False,
        }
    }

    fn needs_of<'p>(&'p self, payload: &Payload, holds: bool) -> Option<Needs<'p>> {
        let need =
            |reach, why| Need { reach, blame: Some((&self.field, Some(self.span), why)), others: false };
        let both = |reach, why| Needs::both(need(reach, why));
        if payload.place == Place::Size {
            let announced = Need { reach: Reach::Head, blame: None, others: false };
            return Some(Needs { earliest: announced, ..both(Reach::Body, Why::Size) });
        }
        let is_one = !payload.is_many_valued();
        let is_so_when_absent = self.comes_to_when_absent() == Truth::from(holds);
        let value = |why| {
            let needs = both(Reach::Value, why);
            if is_so_when_absent { needs.may_be_absent(&self.field, Some(self.span)) } else { needs }
        };
        let needs = match self.over {
            Over::Count if is_one && self.op.holds(Value::Integer(1), false) == Truth::from(holds) => {
                value(Why::FirstValue)
            }
            Over::Count if is_one && !is_so_when_absent => return None,
            Over::Count if is_one => both(payload.scope(), Why::Absent),
            Over::Count => both(payload.scope(), Why::Count),
            _ if self.op == Op::Exists && !holds => both(payload.scope(), Why::Absent),
            _ if is_one => value(Why::FirstValue),
            Over::Any if self.op == Op::Exists => value(Why::FirstValue),
            Over::Any if holds => value(Why::FittingValue),
            Over::Any => both(payload.scope(), Why::NoneFits),
            Over::All if holds => both(payload.scope(), Why::AllFit),
            Over::All => value(Why::UnfittingValue),
            Over::First => value(Why::FirstValue),
            Over::Once => both(payload.scope(), Why::Once),
        };
        Some(needs)
    }
}

impl Payload {
    /// What a body with values of it is; nothing if it may be anything.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match &self.place {
            Place::Xml(_) => Some(Kind::Xml),
            Place::Json(_) => Some(Kind::Json),
            Place::Form(_) => Some(Kind::Form),
            Place::Size => None,
        }
    }

    /// Whether that it has no value is known no later than a value would be: the root's tag says it.
    fn is_absent_at_once(&self) -> bool {
        match &self.place {
            Place::Xml(path) => path.steps.len() == 1 && !self.is_many_valued(),
            Place::Json(_) | Place::Form(_) | Place::Size => false,
        }
    }

    /// Where no more values can come: at the end of the body, or of something in it that there is only one of.
    fn scope(&self) -> Reach {
        let ends_early = match &self.place {
            Place::Xml(path) => path.ends_early(),
            Place::Json(steps) => {
                let one = steps.iter().take_while(|step| **step != JsonStep::Each).count();
                // What is one value itself stands in something else.
                if one == steps.len() { one > 1 } else { one > 0 }
            }
            Place::Form(_) | Place::Size => false,
        };
        if ends_early { Reach::Scope } else { Reach::Body }
    }
}

impl XmlPath {
    /// Whether an element on the way, other than the root, is the only one of its kind; of an attribute the root, too,
    /// whose tag says all that there is, as it does of the root itself.
    fn ends_early(&self) -> bool {
        let is_one = |at: usize| {
            self.steps.get(at).is_some_and(|step| !step.is_any_depth && (at == 0 || step.position.is_some()))
        };
        let one = (0..self.steps.len()).take_while(|at| is_one(*at)).count();
        match &self.attribute {
            Some((_, false)) if one == self.steps.len() => true,
            Some(_) => one > 1,
            None if one == self.steps.len() => one != 2,
            None => one > 1,
        }
    }
}
