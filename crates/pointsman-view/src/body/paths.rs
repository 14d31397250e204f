//! Where in bodies the fields of a program stand, made ready for readers.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use pointsman_content::{
    FormNames, JsonPath, JsonPaths, JsonStep, XmlAttribute, XmlAxis, XmlName, XmlPath, XmlPaths, XmlStep,
};
use pointsman_rules::{Payload, PayloadId, Place, Program, Validate};

/// The fields of the body that a program names: built once, and read by all bodies.
#[derive(Debug)]
pub struct BodyPaths {
    pub(super) xml: Named<Arc<XmlPaths>>,
    pub(super) json: Named<JsonPaths>,
    pub(super) form: Named<FormNames>,
    pub(super) size: Option<PayloadId>,
    /// Whether bodies go on only when they have proved well-formed.
    pub(super) validates_before_sending: bool,
}

/// The fields of one kind of body.
#[derive(Debug)]
pub(super) struct Named<P> {
    pub(super) paths: P,
    /// By the place of the path among them.
    pub(super) ids: Box<[PayloadId]>,
    /// Whether a request may be refused by one of them.
    pub(super) is_refused_by: bool,
}

impl BodyPaths {
    /// Those that this program names.
    pub fn new(program: &Program) -> BodyPaths {
        let refused_by = program.rejecting_payloads();
        let (mut xml, mut json, mut form, mut size) = (Vec::new(), Vec::new(), Vec::new(), None);
        for payload in &program.payloads {
            let Payload { id, place, .. } = &**payload;
            match place {
                Place::Xml(path) => xml.push((*id, xml_path(path))),
                Place::Json(steps) => json.push((*id, json_path(steps))),
                Place::Form(name) => form.push((*id, name.clone())),
                Place::Size => size = Some(*id),
            }
        }
        BodyPaths {
            xml: Named::new(xml, &refused_by, |paths| Arc::new(XmlPaths::new(&paths))),
            json: Named::new(json, &refused_by, |paths| JsonPaths::new(&paths)),
            form: Named::new(form, &refused_by, FormNames::new),
            size,
            validates_before_sending: program.validate == Validate::Full,
        }
    }

    /// Whether there is any but `body.size`.
    pub fn names_content(&self) -> bool {
        self.content().next().is_some()
    }

    /// The fields of all kinds but `body.size`.
    pub(super) fn content(&self) -> impl Iterator<Item = PayloadId> {
        self.kinds().flat_map(|(ids, _)| ids).copied()
    }

    /// The fields of each kind, and whether a request may be refused by one of them.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&[PayloadId], bool)> {
        let BodyPaths { xml, json, form, .. } = self;
        [xml.fields(), json.fields(), form.fields()].into_iter()
    }
}

impl<P> Named<P> {
    fn new<T>(
        fields: Vec<(PayloadId, T)>,
        refused_by: &BTreeSet<PayloadId>,
        built: impl FnOnce(Vec<T>) -> P,
    ) -> Named<P> {
        let (ids, paths): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        let is_refused_by = ids.iter().any(|id| refused_by.contains(id));
        Named { paths: built(paths), ids: ids.into(), is_refused_by }
    }

    fn fields(&self) -> (&[PayloadId], bool) {
        (&self.ids, self.is_refused_by)
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
