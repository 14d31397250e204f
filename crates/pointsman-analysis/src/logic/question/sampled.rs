//! Requests as the fields and values that they were made for.

use pointsman_rules::{
    Cause, Condition, DecidedBy, Field, NameKind, Outcome, OwnedValue, ProxyValue, RuleIndex, Subject, Truth,
};
use pointsman_view::RequestView;

use super::{Analyst, Answer, Question, Trial};
use crate::logic::misses::values;
use crate::logic::samples::{Unshown, Why};
use crate::logic::states::States;
use crate::logic::walk::Passage;
use crate::wanted::{Sketch, Values};
use crate::witness::{Witness, realisable, realise, with_all_values, with_subject};

/// What the rules saw of a request.
#[derive(Debug, Default)]
pub(crate) struct Seen<'p> {
    /// What the condition of the rule that it came to is; nothing behind the last rule.
    pub(crate) arrival: Option<Truth>,
    /// What came of that which it shows.
    pub(crate) shown: Option<Truth>,
    /// The rule that decides it, as [`Sample`](crate::Sample) has it.
    pub(crate) decided: Option<RuleIndex>,
    /// Some fields with all their values.
    pub(crate) values: Vec<(&'p Field, Values)>,
}

/// Times that fields which no request has beside another one are left out.
const LEFT_OUT_MAX: usize = 3;

/// What there is of requests besides header lines.
const WHOLE: [Field; 24] = [
    Field::Url,
    Field::Method,
    Field::Version,
    Field::Scheme,
    Field::TlsVersion,
    Field::TlsCipher,
    Field::TlsAlpn,
    Field::TlsSni,
    Field::TlsResumed,
    Field::TlsClientSubject,
    Field::TlsClientSan,
    Field::TlsClientFingerprint,
    Field::TlsClientCertificate,
    Field::Proxy(ProxyValue::Alpn),
    Field::Proxy(ProxyValue::Authority),
    Field::Proxy(ProxyValue::UniqueId),
    Field::Proxy(ProxyValue::AwsVpceId),
    Field::Proxy(ProxyValue::AzureLinkId),
    Field::SrcIp,
    Field::SrcPort,
    Field::DstIp,
    Field::DstPort,
    Field::ClientIp,
    Field::Upgrade,
];

/// A request takes so many steps, as one that answers a question does.
const REQUEST_STEPS: u64 = super::REQUEST_STEPS;

impl<'p> Analyst<'p> {
    /// The answer to a question where other conditions are to come to something, too; where it is a yes, with the values
    /// that the request was made for.
    pub(crate) fn sample(
        &mut self,
        question: Question,
        also: &[(&'p Condition, States)],
    ) -> (Answer, Sketch<'p>) {
        let mut effort = self.effort.part(super::QUESTION_STEPS);
        effort.take(also.len() as u64);
        let trial = Trial { is_of_values: true, ..Trial::of(self, question, also, &[]) };
        let sampled = trial.run(&mut effort);
        self.effort.give_back(effort);
        sampled
    }

    /// One of some sketches with other values of one field, where a request with them still comes to the rule.
    pub(crate) fn with_values(
        &mut self,
        sketches: &[Sketch<'p>],
        field: &'p Field,
        known: Vec<OwnedValue>,
        rule: u32,
    ) -> Result<(Sketch<'p>, Witness), Unshown> {
        let values = Values { known, rest: None };
        if self.setting.choices(field).is_some_and(|choices| !choices.contains(&values)) {
            return Err(Unshown::OtherHere);
        }
        let alone = Sketch { fields: vec![(field, values.clone())] };
        let mut unshown = Unshown::NoRequest;
        for sketch in sketches {
            match self.with_values_of_one(sketch, field, &values, rule) {
                Err(Unshown::NoRequest) => {}
                Err(why) => unshown = why,
                found => return found,
            }
        }
        if !self.effort.take(REQUEST_STEPS) {
            return Err(Unshown::Unknown(self.used_up()));
        }
        let is_there_one = unshown == Unshown::NoRequest && realisable(&alone, self.setting).is_some();
        Err(if is_there_one { Unshown::NotThere } else { unshown })
    }

    fn with_values_of_one(
        &mut self,
        sketch: &Sketch<'p>,
        field: &'p Field,
        values: &Values,
        rule: u32,
    ) -> Result<(Sketch<'p>, Witness), Unshown> {
        let asked = self.same(field);
        let mut changed = sketch.clone();
        for (other, old) in &mut changed.fields {
            if self.same(other) == asked {
                old.clone_from(values);
            }
        }
        if !changed.fields.iter().any(|(other, _)| *other == field) {
            changed.fields.push((field, values.clone()));
        }
        let mut arrived = None;
        for _ in 0..LEFT_OUT_MAX {
            if !self.effort.take(REQUEST_STEPS) {
                return arrived.ok_or_else(|| Unshown::Unknown(self.used_up()));
            }
            // What other fields are may follow from this one.
            let left_out = match realise(&changed, self.setting, &mut self.effort) {
                Err(why) => why.fields,
                Ok(witness) => {
                    if let Err(unshown) = self.arrives(&witness, rule) {
                        return arrived.ok_or(unshown);
                    }
                    let unknown = self.unknown_in_body(&changed, &witness);
                    if unknown.is_empty() {
                        return Ok((changed, witness));
                    }
                    arrived = arrived.or_else(|| Some((changed.clone(), witness)));
                    unknown
                }
            };
            let before = changed.fields.len();
            changed.fields.retain(|(other, _)| self.same(other) == asked || !left_out.contains(other));
            if changed.fields.len() == before {
                break;
            }
        }
        arrived.ok_or(Unshown::NoRequest)
    }

    /// Whether a request comes to a rule, and why not.
    fn arrives(&mut self, witness: &Witness, rule: u32) -> Result<(), Unshown> {
        let (program, walk, truths) = (self.program, &self.walk, &mut self.truths);
        let passage = with_subject(program, &self.paths, witness, self.setting, |subject| {
            walk.follow(program, subject, rule, None, truths)
        });
        match passage.flatten() {
            Some(Passage::Arrived(_)) => Ok(()),
            Some(Passage::Stopped { by, .. }) => Err(Unshown::Stopped(RuleIndex(by))),
            None => Err(Unshown::NoRequest),
        }
    }

    /// Fields that are not known to rules, since nothing says what the body is, and that a sketch says are absent; with them,
    /// those that could say it.
    fn unknown_in_body(&mut self, sketch: &Sketch<'p>, witness: &Witness) -> Vec<Field> {
        let none = sketch
            .fields
            .iter()
            .filter(|(field, values)| matches!(field, Field::Payload(_)) && *values == Values::default());
        let none: Vec<&Field> = none.map(|(field, _)| *field).collect();
        if none.is_empty() {
            return Vec::new();
        }
        let seen = self.shown(witness, &none).unwrap_or_default();
        let unknown = none.into_iter().zip(seen).filter(|(_, seen)| seen.rest == Some(Cause::Encoding));
        let mut fields: Vec<Field> = unknown.map(|(field, _)| field.clone()).collect();
        if !fields.is_empty() {
            fields.extend([Field::ContentType, Field::Header("content-type".into())]);
        }
        fields
    }

    /// All that a test can say of a request but its body, whether rules name it or not: fields with their values, without
    /// one where it is usual that there is one.
    pub(crate) fn whole(&mut self, witness: &Witness) -> Vec<(Field, Vec<OwnedValue>)> {
        self.effort.take(REQUEST_STEPS);
        let seen = with_all_values(self.program, &self.paths, witness, self.setting, |subject| {
            let mut fields = WHOLE.to_vec();
            fields.push(Field::Header("host".into()));
            subject.each_name(NameKind::Header, &mut |name| {
                let name = String::from_utf8_lossy(name).to_ascii_lowercase();
                let line = Field::Header(name.into());
                if !fields.contains(&line) {
                    fields.push(line);
                }
            });
            let all = fields.into_iter().map(|field| {
                let known = values(subject, &field).known;
                (field, known)
            });
            let is_tls = witness.connection().tls.is_some();
            let may_be_none = |field: &Field| match field {
                Field::TlsSni | Field::TlsAlpn => is_tls,
                Field::Header(_) => true,
                _ => false,
            };
            all.filter(|(field, values)| !values.is_empty() || may_be_none(field)).collect()
        });
        seen.unwrap_or_default()
    }

    /// What the rules see of some fields of a request that came to a rule, and of what it shows there.
    pub(crate) fn seen(
        &mut self,
        witness: &Witness,
        rule: RuleIndex,
        why: &Why,
        fields: &[&'p Field],
    ) -> Seen<'p> {
        self.effort.take(REQUEST_STEPS + fields.len() as u64);
        let (program, end) = (self.program, RuleIndex(self.walk.len()));
        let truths = &mut self.truths;
        let mut decided = |subject: &RequestView<'_>| {
            let decision = program.decide(subject, truths);
            match (decision.by, decision.outcome) {
                (_, Outcome::Waits) => None,
                (DecidedBy::Rule { index, .. }, _) => Some(index),
                (DecidedBy::Nothing, _) => Some(end),
            }
        };
        let seen = with_all_values(program, &self.paths, witness, self.setting, |subject| Seen {
            arrival: program.rule(rule).map(|rule| rule.truth(subject)),
            shown: why.shown(program, rule, subject),
            decided: decided(subject),
            values: fields.iter().map(|field| (*field, values(subject, field))).collect(),
        });
        seen.unwrap_or_default()
    }

    /// All values of fields of a request.
    pub(crate) fn shown(&mut self, witness: &Witness, fields: &[&'p Field]) -> Option<Vec<Values>> {
        self.effort.take(REQUEST_STEPS + fields.len() as u64);
        with_all_values(self.program, &self.paths, witness, self.setting, |subject| {
            fields.iter().map(|field| values(subject, field)).collect()
        })
    }
}
