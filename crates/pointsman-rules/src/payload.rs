//! Fields of the body: where in it their values stand.

use std::fmt;

/// Index of a field of the body in [`crate::Program::payloads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PayloadId(pub u32);

/// A field of the body, by the name rules give it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Payload {
    /// Its place among those that the program names.
    pub id: PayloadId,
    /// As the rules spell it.
    pub spelling: Box<str>,
    /// Where its values stand.
    pub place: Place,
}

/// Where values stand in a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// `xml.PATH`
    Xml(XmlPath),
    /// `json.PATH`
    Json(Box<[JsonStep]>),
    /// `form["name"]`
    Form(Box<str>),
    /// `body.size`: its bytes, without what carries them.
    Size,
}

/// A path into an XML document, from its root.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct XmlPath {
    /// The elements on the way; none where an attribute of any element is meant.
    pub steps: Box<[XmlStep]>,
    /// The attribute at its end, and whether it may be at any depth below the last step.
    pub attribute: Option<(XmlName, bool)>,
}

/// One element on the way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct XmlStep {
    /// At any depth below the element before it (`//`), not only its child.
    pub is_any_depth: bool,
    /// What it is called.
    pub name: XmlName,
    /// Which of its parent's elements of that name, from 1.
    pub position: Option<u32>,
}

/// The name of an element or attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct XmlName {
    /// The URI of its namespace; `None`: of any or none.
    pub namespace: Option<Box<str>>,
    /// Without a prefix.
    pub local: Box<str>,
}

/// One step into a JSON document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JsonStep {
    /// `.name`, `["name"]`
    Member(Box<str>),
    /// `[0]`
    Index(u32),
    /// `[*]`: every element.
    Each,
}

impl Payload {
    /// Whether a body can have several values of it.
    pub(crate) fn is_many_valued(&self) -> bool {
        match &self.place {
            Place::Xml(path) => !path.is_one(),
            Place::Json(steps) => steps.contains(&JsonStep::Each),
            Place::Form(_) => true,
            Place::Size => false,
        }
    }
}

impl Place {
    /// Whether every value of the other place is one of this, whatever the body. Where it says no, it may be so all the
    /// same.
    #[must_use]
    pub fn covers(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Xml(path), Place::Xml(other)) => path.covers(other),
            (Place::Json(steps), Place::Json(others)) => {
                let covers = |(step, other): (&JsonStep, &JsonStep)| {
                    step == other || (*step == JsonStep::Each && matches!(other, JsonStep::Index(_)))
                };
                steps.len() == others.len() && steps.iter().zip(others).all(covers)
            }
            _ => self == other,
        }
    }
}

impl Place {
    /// Whether no body has a value here: a document has one root.
    #[must_use]
    pub fn is_nowhere(&self) -> bool {
        let Place::Xml(path) = self else { return false };
        let root = path.steps.first().filter(|step| !step.is_any_depth);
        root.and_then(|root| root.position).is_some_and(|position| position > 1)
    }

    /// Whether something stands here only where something stands at the other place: items of a list, or elements of one
    /// name, have those of lower numbers before them.
    #[must_use]
    pub fn stands_behind(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Xml(path), Place::Xml(other)) => {
                let (Some((last, lead)), Some((before, others))) =
                    (path.steps.split_last(), other.steps.split_last())
                else {
                    return false;
                };
                let is_alike = lead == others
                    && (last.is_any_depth, &last.name) == (before.is_any_depth, &before.name)
                    && path.attribute.is_none()
                    && other.attribute.is_none();
                // The first of its name stands where any does.
                is_alike
                    && before
                        .position
                        .is_some_and(|before| last.position.map_or(before == 1, |at| at > before))
            }
            (Place::Json(steps), Place::Json(others)) => match (&steps[..], &others[..]) {
                ([lead @ .., JsonStep::Index(at)], [others @ .., JsonStep::Index(before)]) => {
                    lead == others && at > before
                }
                ([lead @ .., JsonStep::Each], [others @ .., JsonStep::Index(0)]) => lead == others,
                _ => false,
            },
            _ => false,
        }
    }
}

impl XmlPath {
    fn covers(&self, other: &XmlPath) -> bool {
        let covers_attribute = match (&self.attribute, &other.attribute) {
            (Some((name, any_depth)), Some((other, other_depth))) => {
                name == other && (*any_depth || !other_depth)
            }
            (None, None) => true,
            _ => false,
        };
        // So many of the other steps that these, from the first one on, lead as far.
        let mut reached = vec![false; other.steps.len() + 1];
        if let Some(start) = reached.first_mut() {
            *start = true;
        }
        for step in &self.steps {
            let mut next = vec![false; reached.len()];
            let mut is_below = false;
            for ((other, is_reached), next) in other.steps.iter().zip(&reached).zip(next.iter_mut().skip(1)) {
                is_below |= *is_reached;
                let is_there = if step.is_any_depth { is_below } else { *is_reached && !other.is_any_depth };
                *next = is_there && step.covers(other);
            }
            reached = next;
        }
        covers_attribute && reached.last().is_some_and(|is_reached| *is_reached)
    }

    /// Whether there is one place for it: a document has one root, and a position one element.
    fn is_one(&self) -> bool {
        let is_one =
            |(at, step): (usize, &XmlStep)| !step.is_any_depth && (at == 0 || step.position.is_some());
        self.steps.iter().enumerate().all(is_one) && self.attribute.as_ref().is_none_or(|(_, any)| !any)
    }
}

impl XmlStep {
    fn covers(&self, other: &XmlStep) -> bool {
        let covers_name = self.name.local == other.name.local
            && (self.name.namespace.is_none() || self.name.namespace == other.name.namespace);
        // Positions count the elements of one name.
        covers_name
            && (self.position.is_none() || (self.position == other.position && self.name == other.name))
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelling)
    }
}

/// What is wrong with a path, and where in it.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: (u32, u32),
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

const XML_HELP: &str =
    "an XML path is `xml.purchase/item[2]/@id`; `//` is any depth, and an unusual name stands in quotes";
const JSON_HELP: &str = "a JSON path is `json.order.items[0].price`; `[*]` is every element";
const PREFIX_HELP: &str = "a prefix is declared at the top of the file: `namespace p = \"uri\";`";

/// Reads a path as the lexer cuts it. `namespace` knows the URI of a prefix.
pub(crate) fn read(path: &str, namespace: impl Fn(&str) -> Option<Box<str>>) -> Result<Place, Fault> {
    let mut walk = Walk { path, at: 0, namespace };
    if let Some(steps) = path.strip_prefix("xml.") {
        walk.at = path.len() - steps.len();
        return walk.xml().map(Place::Xml);
    }
    walk.at = "json".len();
    walk.json().map(Place::Json)
}

/// Whether it is one, whatever its prefixes mean.
pub(crate) fn check(path: &str) -> Result<(), Fault> {
    read(path, |_| Some("".into())).map(drop)
}

struct Walk<'a, N> {
    path: &'a str,
    at: usize,
    namespace: N,
}

impl<'a, N: Fn(&str) -> Option<Box<str>>> Walk<'a, N> {
    /// `step ("/" step | "//" step)*`, perhaps with `//` at its head.
    fn xml(&mut self) -> Result<XmlPath, Fault> {
        let mut steps = Vec::new();
        let mut is_any_depth = self.eat("//");
        loop {
            if steps.is_empty() && !is_any_depth && self.rest().starts_with('@') {
                return Err(self.fault("an attribute belongs to an element", XML_HELP));
            }
            let is_attribute = self.eat("@");
            let name = self.xml_name()?;
            if is_attribute {
                return match self.done() {
                    true => Ok(XmlPath { steps: steps.into(), attribute: Some((name, is_any_depth)) }),
                    false => Err(self.fault("nothing follows an attribute", XML_HELP)),
                };
            }
            let position = if self.eat("[") { Some(self.index(1, XML_HELP)?) } else { None };
            steps.push(XmlStep { is_any_depth, name, position });
            if self.done() {
                return Ok(XmlPath { steps: steps.into(), attribute: None });
            }
            is_any_depth = self.eat("//");
            if !is_any_depth && !self.eat("/") {
                return Err(self.fault("expected `/`", XML_HELP));
            }
        }
    }

    /// `name` or `prefix:name`.
    fn xml_name(&mut self) -> Result<XmlName, Fault> {
        let start = self.at;
        let name = self.name(XML_HELP)?;
        if !self.eat(":") {
            return Ok(XmlName { namespace: None, local: name.into() });
        }
        let end = self.at;
        let local = self.name(XML_HELP)?;
        let Some(uri) = (self.namespace)(name) else {
            let message = format!("the prefix `{name}` is not declared");
            return Err(Fault { at: (narrow(start), narrow(end)), message, help: PREFIX_HELP });
        };
        Ok(XmlName { namespace: Some(uri), local: local.into() })
    }

    /// `.name`, `["name"]`, `[0]` and `[*]`, at least one.
    fn json(&mut self) -> Result<Box<[JsonStep]>, Fault> {
        let mut steps = Vec::new();
        while !self.done() {
            steps.push(if self.eat(".") {
                JsonStep::Member(self.name(JSON_HELP)?.into())
            } else if self.eat("[") {
                if self.rest().starts_with('"') {
                    let name = self.name(JSON_HELP)?.into();
                    self.close(JSON_HELP)?;
                    JsonStep::Member(name)
                } else if self.eat("*") {
                    self.close(JSON_HELP)?;
                    JsonStep::Each
                } else {
                    JsonStep::Index(self.index(0, JSON_HELP)?)
                }
            } else {
                return Err(self.fault("expected `.` or `[`", JSON_HELP));
            });
        }
        Ok(steps.into())
    }

    /// A name, without its quotes.
    fn name(&mut self, help: &'static str) -> Result<&'a str, Fault> {
        let rest = self.rest();
        if let Some(inner) = rest.strip_prefix('"')
            && let Some(length @ 1..) = inner.find('"')
        {
            self.at += length + 2;
            return Ok(&inner[..length]);
        }
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(rest.len());
        if length == 0 {
            return Err(self.fault("expected a name", help));
        }
        self.at += length;
        Ok(&rest[..length])
    }

    fn index(&mut self, least: u32, help: &'static str) -> Result<u32, Fault> {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let index = match rest[..length].parse::<u32>() {
            Ok(index) if index >= least => index,
            Ok(_) => return Err(self.fault("positions count from 1", help)),
            Err(_) => return Err(self.fault("expected a position", help)),
        };
        self.at += length;
        self.close(help)?;
        Ok(index)
    }

    fn close(&mut self, help: &'static str) -> Result<(), Fault> {
        if self.eat("]") { Ok(()) } else { Err(self.fault("expected `]`", help)) }
    }

    fn eat(&mut self, text: &str) -> bool {
        let there = self.rest().starts_with(text);
        self.at += if there { text.len() } else { 0 };
        there
    }

    fn rest(&self) -> &'a str {
        &self.path[self.at..]
    }

    fn done(&self) -> bool {
        self.at == self.path.len()
    }

    fn fault(&self, message: &str, help: &'static str) -> Fault {
        let length = self.rest().chars().next().map_or(0, char::len_utf8);
        Fault { at: (narrow(self.at), narrow(self.at + length)), message: message.to_owned(), help }
    }
}

/// Paths are parts of files whose length fits.
fn narrow(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
