//! Where in bodies the fields of a program stand, made ready for readers.

use std::collections::{BTreeSet, HashSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use pointsman_content::{
    FormNames, JsonPath, JsonPaths, JsonStep, ParameterNames, XmlAttribute, XmlAxis, XmlName, XmlPath,
    XmlPaths, XmlStep,
};
use pointsman_rules::{Payload, PayloadId, Place, Program, Validate};

use super::label::LabelCheck;
use super::media_type::Reads;

/// The fields of the body that a program names: built once, and read by all bodies.
#[derive(Debug)]
pub struct BodyPaths {
    pub(super) xml: Named<Arc<XmlPaths>>,
    pub(super) json: Named<JsonPaths>,
    pub(super) form: Named<FormNames>,
    /// The elements that XML paths begin with.
    roots: HashSet<Box<[u8]>>,
    /// Whether the program refuses or strips: then readings matter.
    pub(super) guards: bool,
    pub(super) size: Option<PayloadId>,
    /// Whether bodies go on only when they have proved well-formed.
    pub(super) validates_before_sending: bool,
}

/// The fields of one kind of body.
#[derive(Debug)]
pub(super) struct Named<P> {
    pub(super) paths: P,
    /// By the place of the path among them.
    pub(super) fields: Box<[NamedField]>,
    /// Whether a request may be refused by one of them.
    pub(super) is_refused_by: bool,
}

/// One field of the body.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedField {
    pub(super) id: PayloadId,
    /// Whether a body is meant to have several values of it, which every server takes.
    pub(super) is_list: bool,
}

impl BodyPaths {
    /// Those that this program names.
    pub fn new(program: &Program) -> BodyPaths {
        let refused_by = program.rejecting_payloads();
        let (mut xml, mut json, mut form, mut size) = (Vec::new(), Vec::new(), Vec::new(), None);
        let mut roots = HashSet::new();
        for payload in &program.payloads {
            let Payload { id, place, .. } = &**payload;
            let field = |is_list| NamedField { id: *id, is_list };
            match place {
                Place::Xml(path) => {
                    roots.extend(path.steps.first().map(|step| step.name.local.as_bytes().into()));
                    xml.push((field(true), xml_path(path)));
                }
                Place::Json(steps) => {
                    let is_list = steps.contains(&pointsman_rules::JsonStep::Each);
                    json.push((field(is_list), json_path(steps)));
                }
                Place::Form(name) => form.push((field(false), name.clone())),
                Place::Size => size = Some(*id),
            }
        }
        let guards = program.guards();
        BodyPaths {
            xml: Named::new(xml, &refused_by, |paths| Arc::new(XmlPaths::new(&paths))),
            json: Named::new(json, &refused_by, |paths| match guards {
                true => JsonPaths::with_folded_names(&paths),
                false => JsonPaths::new(&paths),
            }),
            form: Named::new(form, &refused_by, |names| match guards {
                true => FormNames::new(names).with_other_readings(ParameterNames::COMMON),
                false => FormNames::new(names),
            }),
            roots,
            guards,
            size,
            validates_before_sending: program.validate == Validate::Full,
        }
    }

    /// What to look for in a body that its media type calls `label`, because rules refuse by fields of other kinds.
    pub(super) fn label_check(&self, label: Reads) -> Option<LabelCheck> {
        let roots = || if self.xml.is_refused_by { self.roots.clone() } else { HashSet::new() };
        LabelCheck::new(label, self.json.is_refused_by, roots)
    }

    /// Whether there is any but `body.size`.
    pub fn names_content(&self) -> bool {
        self.content().next().is_some()
    }

    /// The fields of all kinds but `body.size`.
    pub(super) fn content(&self) -> impl Iterator<Item = PayloadId> {
        self.kinds().flat_map(|(fields, _)| fields).map(|field| field.id)
    }

    /// The fields of each kind, and whether a request may be refused by one of them.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&[NamedField], bool)> {
        let BodyPaths { xml, json, form, .. } = self;
        [xml.fields(), json.fields(), form.fields()].into_iter()
    }
}

impl<P> Named<P> {
    fn new<T>(
        fields: Vec<(NamedField, T)>,
        refused_by: &BTreeSet<PayloadId>,
        built: impl FnOnce(Vec<T>) -> P,
    ) -> Named<P> {
        let (fields, paths): (Vec<NamedField>, Vec<_>) = fields.into_iter().unzip();
        let is_refused_by = fields.iter().any(|field| refused_by.contains(&field.id));
        Named { paths: built(paths), fields: fields.into(), is_refused_by }
    }

    fn fields(&self) -> (&[NamedField], bool) {
        (&self.fields, self.is_refused_by)
    }
}

fn xml_path(path: &pointsman_rules::XmlPath) -> XmlPath {
    let steps = path.steps.iter().map(|step| XmlStep {
        axis: axis(step.is_any_depth),
        name: xml_name(&step.name),
        position: step.position.and_then(NonZeroU32::new),
    });
    let attribute = path.attribute.as_ref();
    let attribute =
        attribute.map(|(name, any_depth)| XmlAttribute { axis: axis(*any_depth), name: xml_name(name) });
    XmlPath { steps: steps.collect(), attribute }
}

fn axis(is_any_depth: bool) -> XmlAxis {
    if is_any_depth { XmlAxis::Descendant } else { XmlAxis::Child }
}

fn xml_name(name: &pointsman_rules::XmlName) -> XmlName {
    XmlName { namespace: name.namespace.as_deref().map(str::to_owned), local: name.local.to_string() }
}

fn json_path(steps: &[pointsman_rules::JsonStep]) -> JsonPath {
    let step = |step: &pointsman_rules::JsonStep| match step {
        pointsman_rules::JsonStep::Member(name) => JsonStep::Member(name.clone()),
        pointsman_rules::JsonStep::Index(index) => JsonStep::Index(*index),
        pointsman_rules::JsonStep::Each => JsonStep::Every,
    };
    steps.iter().map(step).collect()
}
