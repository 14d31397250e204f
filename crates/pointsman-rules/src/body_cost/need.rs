//! What a condition needs of a body to come to true, or to false.

use crate::payload::{JsonStep, Place, XmlPath};
use crate::{Condition, Field, Op, Over, Payload, Program, Span, Test, Truth, Value};

/// What a body is: fields of the other kinds are absent, which its head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
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
    /// Up to a value, or to where none can come any more.
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs<'p> {
    pub(super) earliest: Need<'p>,
    pub(super) latest: Need<'p>,
}

impl<'p> Needs<'p> {
    pub(super) const HEAD: Needs<'p> = Needs::both(Need { reach: Reach::Head, blame: None, others: false });

    pub(super) const fn both(need: Need<'p>) -> Needs<'p> {
        Needs { earliest: need, latest: need }
    }

    /// What two parts need that both have to be settled.
    fn and(self, other: Needs<'p>) -> Needs<'p> {
        Needs { earliest: self.earliest.longer(other.earliest), latest: self.latest.longer(other.latest) }
    }

    /// The same where one of them settles it, whichever that is.
    fn or(self, other: Needs<'p>) -> Needs<'p> {
        Needs { earliest: self.earliest.shorter(other.earliest), latest: self.latest.longer(other.latest) }
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
    /// What must be read of a body of a kind for it to be true, or to be false; nothing if it never is. The nesting was bounded when the text
    /// was read.
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
            Field::Payload(payload) if kind.has(&self.field) => Some(self.needs_of(payload, holds)),
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

    fn needs_of<'p>(&'p self, payload: &Payload, holds: bool) -> Needs<'p> {
        let need =
            |reach, why| Need { reach, blame: Some((&self.field, Some(self.span), why)), others: false };
        if payload.place == Place::Size {
            let announced = Need { reach: Reach::Head, blame: None, others: false };
            return Needs { earliest: announced, latest: need(Reach::Body, Why::Size) };
        }
        let is_absence = self.op == Op::Exists && !holds;
        let (reach, why) = match self.over {
            Over::Any | Over::All | Over::First | Over::Once if is_absence => (payload.scope(), Why::Absent),
            _ if !payload.is_many_valued() => (Reach::Value, Why::FirstValue),
            Over::Any if self.op == Op::Exists => (Reach::Value, Why::FirstValue),
            Over::Any if holds => (Reach::Value, Why::FittingValue),
            Over::Any => (payload.scope(), Why::NoneFits),
            Over::All if holds => (payload.scope(), Why::AllFit),
            Over::All => (Reach::Value, Why::UnfittingValue),
            Over::First => (Reach::Value, Why::FirstValue),
            Over::Once => (payload.scope(), Why::Once),
            Over::Count => (payload.scope(), Why::Count),
        };
        Needs::both(need(reach, why))
    }
}

impl Payload {
    /// What a body with values of it is; nothing if it may be anything.
    fn kind(&self) -> Option<Kind> {
        match &self.place {
            Place::Xml(_) => Some(Kind::Xml),
            Place::Json(_) => Some(Kind::Json),
            Place::Form(_) => Some(Kind::Form),
            Place::Size => None,
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
    /// whose tag says all that there is.
    fn ends_early(&self) -> bool {
        let is_one = |at: usize| {
            self.steps.get(at).is_some_and(|step| !step.is_any_depth && (at == 0 || step.position.is_some()))
        };
        let one = (0..self.steps.len()).take_while(|at| is_one(*at)).count();
        match &self.attribute {
            Some((_, false)) if one == self.steps.len() => true,
            Some(_) => one > 1,
            None if one == self.steps.len() => one > 2,
            None => one > 1,
        }
    }
}
