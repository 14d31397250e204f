//! What rules are written with, as an editor completes and explains it.

#[cfg(test)]
mod tests;

use crate::parser::STICKINESSES;
use crate::schema::{self, Group, Key};
use crate::{Field, FieldType, JsonStep, Payload, PayloadId, Place, Scope};

/// A word, or a form, of the language.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The word itself.
    pub name: &'static str,
    /// How it is written where it stands.
    pub spelling: &'static str,
    /// What it means, in a sentence.
    pub doc: &'static str,
}

/// An action, with what it is given.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    /// Its word.
    pub name: &'static str,
    /// What it is to a block.
    pub kind: ActionKind,
    /// With all of its arguments, as help lines show it.
    pub spelling: &'static str,
    /// In their order.
    pub parameters: &'static [Parameter],
    /// Whether it needs a request that is read.
    pub needs_request: bool,
    /// What it does, in a sentence.
    pub doc: &'static str,
}

/// What an action is to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// It decides, and ends the block.
    Terminal,
    /// It changes something, and decides nothing.
    Effect,
    /// It leads to a later rule.
    Jump,
    /// It tells the analyst what is meant.
    Remark,
}

/// What an action is given.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// What it is called.
    pub name: &'static str,
    /// What stands there.
    pub of: ParameterKind,
    /// Whether it must be there.
    pub is_required: bool,
}

/// What stands in the place of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A pool, `pool.server`, a server, or a `split` of several.
    Target,
    /// A pool.
    Pool,
    /// What clients are known by.
    Stickiness,
    /// A status code.
    Status,
    /// A text in quotes as it is.
    Text,
    /// A text in quotes, with fields in it.
    Template,
    /// A regex in quotes.
    Regex,
    /// The name of a header, in quotes.
    Header,
    /// A class of bandwidth.
    Bandwidth,
    /// A class of rates.
    Limit,
    /// A word.
    Word,
    /// The label of a rule.
    Label,
    /// Labels of rules.
    Labels,
}

/// What a condition can ask for.
#[derive(Clone, Debug)]
pub struct FieldEntry {
    /// Its name, without a key; of what is written as a path how that begins.
    pub name: &'static str,
    /// How it is written.
    pub spelling: String,
    /// Whether a key stands behind it.
    pub key: FieldKey,
    /// `text`, `integer`, `ip` or `boolean`.
    pub value_type: &'static str,
    /// Whether a request can have several values of it; with a key, where it may have one.
    pub is_many_valued: bool,
    /// When it is known.
    pub known: Known,
    /// What it is, in a sentence.
    pub doc: &'static str,
}

/// Whether a key in brackets stands behind the name of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKey {
    /// It has none.
    None,
    /// There may be one.
    Optional,
    /// There must be one.
    Required,
    /// It is a path, which stands behind the name as it is.
    Path,
}

/// When a field is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Before anything is read of a request.
    Connection,
    /// With the head of a request.
    Head,
    /// As the body is read.
    Body,
}

const fn required(name: &'static str, of: ParameterKind) -> Parameter {
    Parameter { name, of, is_required: true }
}

const fn optional(name: &'static str, of: ParameterKind) -> Parameter {
    Parameter { name, of, is_required: false }
}

const HEADER_AND_VALUE: &[Parameter] =
    &[required("name", ParameterKind::Header), required("value", ParameterKind::Template)];
const HEADER: &[Parameter] = &[required("name", ParameterKind::Header)];

const fn action(
    name: &'static str,
    kind: ActionKind,
    spelling: &'static str,
    parameters: &'static [Parameter],
    doc: &'static str,
) -> Action {
    Action { name, kind, spelling, parameters, needs_request: true, doc }
}

const fn of_any(action: Action) -> Action {
    Action { needs_request: false, ..action }
}

/// Every action; the parser knows no others.
pub(crate) const ACTIONS: &[Action] = &[
    of_any(action(
        "routeTo",
        ActionKind::Terminal,
        "routeTo(target, stickiness)",
        &[required("target", ParameterKind::Target), optional("stickiness", ParameterKind::Stickiness)],
        "Sends the request to a pool or a server, or to shares of several: `routeTo(split(90: stable, 10: canary))`.",
    )),
    of_any(action(
        "reject",
        ActionKind::Terminal,
        "reject(status, \"reason\")",
        &[optional("status", ParameterKind::Status), optional("reason", ParameterKind::Text)],
        "Answers with an error, 400 to 599, and 403 where none is given; `reject(reset)` resets the connection.",
    )),
    of_any(action(
        "discard",
        ActionKind::Terminal,
        "discard()",
        &[],
        "Closes the connection without an answer.",
    )),
    action(
        "redirect",
        ActionKind::Terminal,
        "redirect(status, \"template\")",
        &[required("status", ParameterKind::Status), required("location", ParameterKind::Template)],
        "Answers with 301, 302, 303, 307 or 308 and that Location.",
    ),
    action(
        "respond",
        ActionKind::Terminal,
        "respond(status, \"body\")",
        &[required("status", ParameterKind::Status), required("body", ParameterKind::Template)],
        "Answers with that text, status 200 to 599.",
    ),
    action(
        "setHeader",
        ActionKind::Effect,
        "setHeader(\"name\", \"value\")",
        HEADER_AND_VALUE,
        "Replaces all lines of a request header by one.",
    ),
    action(
        "addHeader",
        ActionKind::Effect,
        "addHeader(\"name\", \"value\")",
        HEADER_AND_VALUE,
        "Adds a line of a request header.",
    ),
    action(
        "removeHeader",
        ActionKind::Effect,
        "removeHeader(\"name\")",
        HEADER,
        "Removes all lines of a request header.",
    ),
    action(
        "setResponseHeader",
        ActionKind::Effect,
        "setResponseHeader(\"name\", \"value\")",
        HEADER_AND_VALUE,
        "Replaces all lines of a header of the answer by one.",
    ),
    action(
        "addResponseHeader",
        ActionKind::Effect,
        "addResponseHeader(\"name\", \"value\")",
        HEADER_AND_VALUE,
        "Adds a line of a header to the answer.",
    ),
    action(
        "removeResponseHeader",
        ActionKind::Effect,
        "removeResponseHeader(\"name\")",
        HEADER,
        "Removes all lines of a header of the answer.",
    ),
    action(
        "rewritePath",
        ActionKind::Effect,
        "rewritePath(\"regex\", \"replacement\")",
        &[required("regex", ParameterKind::Regex), required("replacement", ParameterKind::Text)],
        "Replaces every match in the path that goes to the server; `$1` and `${name}` are groups, `$$` is a dollar sign.",
    ),
    of_any(action(
        "bandwidth",
        ActionKind::Effect,
        "bandwidth(class)",
        &[required("class", ParameterKind::Bandwidth)],
        "What is sent both ways waits until that class has room for it; of several the last one holds.",
    )),
    action(
        "limitRate",
        ActionKind::Effect,
        "limitRate(class)",
        &[required("class", ParameterKind::Limit)],
        "Takes one of the requests that the class gives; where there is none left the answer is 429.",
    ),
    action(
        "mirror",
        ActionKind::Effect,
        "mirror(pool)",
        &[required("pool", ParameterKind::Pool)],
        "Sends a copy of the request to that pool, too, and its answer nowhere.",
    ),
    of_any(action(
        "tag",
        ActionKind::Effect,
        "tag(name)",
        &[required("name", ParameterKind::Word)],
        "Writes a word into the access log.",
    )),
    of_any(action(
        "goto",
        ActionKind::Jump,
        "goto LABEL",
        &[required("label", ParameterKind::Label)],
        "Goes on at a later rule.",
    )),
    of_any(action(
        "allow",
        ActionKind::Remark,
        "allow conflict(LABEL)",
        &[required("labels", ParameterKind::Labels)],
        "Nothing happens: `check` is told that those rules before it are meant to decide otherwise.",
    )),
];

/// Every operator between a field and a value, with the types of fields that it goes with.
pub const OPERATORS: &[(Word, &[&str])] = &[
    (word("==", "FIELD == VALUE", "The value is equal."), ANY),
    (word("!=", "FIELD != VALUE", "The value is another one; false where the field is absent."), ANY),
    (word("<", "FIELD < VALUE", "The value is less."), ORDERED),
    (word("<=", "FIELD <= VALUE", "The value is less or equal."), ORDERED),
    (word(">", "FIELD > VALUE", "The value is greater."), ORDERED),
    (word(">=", "FIELD >= VALUE", "The value is greater or equal."), ORDERED),
    (word("exists", "FIELD exists", "There is a value."), ANY),
    (
        word(
            "in",
            "FIELD in [VALUE, FROM..TO, @LIST]",
            "A value, a network, a range or a list takes the value.",
        ),
        ORDERED,
    ),
    (word("contains", "FIELD contains \"TEXT\"", "The text has this one in it."), TEXTS),
    (word("startsWith", "FIELD startsWith \"TEXT\"", "The text begins so."), TEXTS),
    (word("endsWith", "FIELD endsWith \"TEXT\"", "The text ends so."), TEXTS),
    (
        word(
            "like",
            "FIELD like \"*.gif\"",
            "The pattern fits the whole text; `*` is any text, `?` is one byte.",
        ),
        TEXTS,
    ),
    (word("matches", "FIELD matches \"REGEX\"", "The regex is found in the text."), TEXTS),
    (word("under", "FIELD under \"/api\"", "The path is this one or lies below it."), TEXTS),
];

const ANY: &[&str] = &["text", "integer", "ip", "boolean"];
const ORDERED: &[&str] = &["text", "integer", "ip"];
const TEXTS: &[&str] = &["text"];

/// What stands around a field.
pub const FUNCTIONS: &[Word] = &[
    word("all", "all(FIELD)", "Every value satisfies it; false where the field is absent."),
    word("first", "first(FIELD)", "The first value alone counts."),
    word("once", "once(FIELD)", "The only value counts; a second one makes it unknown."),
    word("count", "count(FIELD)", "How many values there are, as a number."),
    word("lower", "lower(FIELD)", "ASCII capitals are folded."),
    word(
        "atoi",
        "atoi(FIELD)",
        "An older spelling, which says nothing: the literal says that a number is meant.",
    ),
];

/// What stands at the top of a rule set.
pub const SETTINGS: &[Word] = &[
    word(
        "on_unknown",
        "on_unknown reject;",
        "A request is refused where a condition ends unknown; this is the default.",
    ),
    word("on_unknown", "on_unknown skip;", "A rule whose condition ends unknown is passed over."),
    word("on_unknown", "on_unknown routeTo(TARGET);", "A request goes there where a condition ends unknown."),
    word("validate", "validate stream;", "A body goes on its way as soon as it is decided."),
    word("validate", "validate full;", "A body goes on its way when the whole of it has proved well-formed."),
    word("namespace", "namespace p = \"uri\";", "What a prefix in paths into XML stands for."),
];

/// What else a rule set is made of.
pub const KEYWORDS: &[Word] = &[
    word("if", "LABEL: if (CONDITION) { ACTIONS }", "A rule; the first one that decides, decides."),
    word(
        "else",
        "else: ACTION",
        "What happens where the condition is false, or, as the last rule, where no rule decides.",
    ),
    word(
        "test",
        "test \"NAME\" { … expect LABEL -> TARGET }",
        "A request, and what the rules are to do with it.",
    ),
    word(
        "assert",
        "assert \"NAME\": never (CONDITION) -> TARGET;",
        "What is to hold of all requests; `check` proves it.",
    ),
];

const fn word(name: &'static str, spelling: &'static str, doc: &'static str) -> Word {
    Word { name, spelling, doc }
}

/// What clients can be known by, where rules are of this scope.
#[must_use]
pub fn stickinesses(scope: Scope) -> Vec<Word> {
    let is_known = |name: &str| match name {
        "STICKY_ON_COOKIE" => scope.has_requests(),
        "STICKY_ON_TLS_SESSION" => scope != Scope::Connections,
        _ => true,
    };
    let known = STICKINESSES.iter().filter(|(name, _)| is_known(name));
    known.map(|(name, doc)| word(name, name, doc)).collect()
}

/// The actions that rules of this scope can name.
#[must_use]
pub fn actions(scope: Scope) -> Vec<Action> {
    ACTIONS.iter().filter(|action| scope.has_requests() || !action.needs_request).copied().collect()
}

/// The fields that rules of this scope can name.
#[must_use]
pub fn fields(scope: Scope) -> Vec<FieldEntry> {
    let entries = schema::ENTRIES.iter().filter(|entry| entry.group != Group::Mail);
    let named = entries.filter_map(|entry| {
        let key = match entry.key {
            Key::None => FieldKey::None,
            Key::Optional => FieldKey::Optional,
            Key::Required => FieldKey::Required,
        };
        let spelling = match entry.key {
            Key::Required => format!("{}[\"name\"]", entry.name),
            Key::None | Key::Optional => entry.name.to_owned(),
        };
        Some(FieldEntry::of(entry.name, spelling, key, &keyed(entry)?, entry.doc))
    });
    let paths = PATHS.iter().map(|(name, spelling, doc)| {
        let place = Place::Json([JsonStep::Each].into());
        FieldEntry::of(name, (*spelling).to_owned(), FieldKey::Path, &in_body(place), doc)
    });
    let all = named.chain(paths);
    all.filter(|entry| scope.has_requests() || entry.is_known_in(scope)).collect()
}

/// What is named by where it stands in a body.
const PATHS: &[(&str, &str, &str)] = &[
    (
        "xml.",
        "xml.PATH",
        "The text of elements or attributes in a body of XML: `xml.order/item[2]/@id`, `xml.//price`.",
    ),
    ("json.", "json.PATH", "Values in a body of JSON: `json.order.items[0].price`, `json[\"a b\"][*]`."),
];

/// The field of a name, with some key where it can have one: so it says whether there may be many.
fn keyed(entry: &schema::Entry) -> Option<Field> {
    let key = (entry.key != Key::None).then_some("name");
    match schema::resolve(entry.name, key, |_| None).ok()? {
        schema::Resolved::Head(field) => Some(field),
        schema::Resolved::Payload(_, place) => Some(in_body(place)),
    }
}

fn in_body(place: Place) -> Field {
    Field::Payload(Payload { id: PayloadId(0), spelling: "".into(), place }.into())
}

impl FieldEntry {
    fn of(
        name: &'static str,
        spelling: String,
        key: FieldKey,
        field: &Field,
        doc: &'static str,
    ) -> FieldEntry {
        let value_type = match field.value_type() {
            FieldType::Text => "text",
            FieldType::Integer => "integer",
            FieldType::Ip => "ip",
            FieldType::Boolean => "boolean",
        };
        let known = match field {
            Field::Payload(_) => Known::Body,
            field if Scope::Hellos.has(field) || field.is_of_tls() => Known::Connection,
            _ => Known::Head,
        };
        FieldEntry { name, spelling, key, value_type, is_many_valued: field.is_many_valued(), known, doc }
    }

    fn is_known_in(&self, scope: Scope) -> bool {
        schema::plain(self.name).is_some_and(|field| scope.has(&field))
    }
}
