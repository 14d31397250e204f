//! The compiled rule set: what the text means, ready to be decided.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::engine::{Certificate, Engine, Sizes, number_tests};
use crate::{Decimal, Field, Group, List, Matcher, Payload, PayloadId, Place, Span, Split, pace};
use ipnet::IpNet;
use thin_vec::ThinVec;

/// A compiled rule set. Immutable; one value serves all threads.
#[derive(Debug)]
pub struct Program {
    /// The rules in order. The final `else:` is not among them.
    pub rules: Vec<Rule>,
    /// The block of the final `else:`, if there is one.
    pub fallback: Option<Rule>,
    /// What happens when a condition ends unknown.
    pub on_unknown: OnUnknown,
    /// Every target that some rule names, each once; [`TargetId`] is an index into it.
    pub targets: Vec<TargetName>,
    /// The fields of the body that the rules name, by [`PayloadId`](crate::PayloadId).
    pub payloads: Vec<Arc<Payload>>,
    /// How bodies are validated that the rules look into.
    pub validate: Validate,
    /// The conditions of the rules, made ready for many subjects.
    pub(crate) engine: Arc<Engine>,
}

impl Program {
    /// A program of these rules; whatever they jump to comes later.
    pub(crate) fn new(
        mut rules: Vec<Rule>,
        mut fallback: Option<Rule>,
        on_unknown: OnUnknown,
        targets: Vec<TargetName>,
    ) -> Program {
        number_tests(&mut rules, &mut fallback);
        let engine = Engine::new(rules.iter().chain(&fallback), on_unknown, Sizes::default());
        let (payloads, validate) = (Vec::new(), Validate::default());
        Program { rules, fallback, on_unknown, targets, payloads, validate, engine: Arc::new(engine) }
    }

    /// The same with the fields of the body that its rules name, and what they say of validation.
    pub(crate) fn with_payloads(self, payloads: Vec<Arc<Payload>>, validate: Option<Validate>) -> Program {
        let validate = validate.unwrap_or_else(|| self.validate_by_default());
        Program { payloads, validate, ..self }
    }

    /// A program without rules, which only names fields of the body at these places, in their order: for who wants to
    /// see the values of one.
    #[must_use]
    pub fn of_places(places: impl IntoIterator<Item = Place>) -> Program {
        let named = |(id, place)| Arc::new(Payload { id: PayloadId(id), spelling: "".into(), place });
        let payloads = (0..).zip(places).map(named).collect();
        Program::new(Vec::new(), None, OnUnknown::default(), Vec::new()).with_payloads(payloads, None)
    }

    /// How many rules a decision may cost.
    #[must_use]
    pub fn certificate(&self) -> &Certificate {
        &self.engine.certificate
    }
}

/// When a body that rules look into goes on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validate {
    /// As soon as it is decided; its last byte is held until the whole has proved well-formed.
    #[default]
    Stream,
    /// When the whole has proved well-formed, or as much of it as may be held.
    Full,
}

/// Index of a target in [`Program::targets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetId(pub u32);

/// Position of a rule in [`Program::rules`]; the fallback's is `rules.len()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleIndex(pub u32);

/// A pool, or one server of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetName {
    /// The pool. For a bare server name whose pool is unknown (no configuration): that name.
    pub pool: Box<str>,
    /// The server inside it, if the rule names one.
    pub server: Option<Box<str>>,
}

impl fmt::Display for TargetName {
    /// `pool.server`, or the pool alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            None => f.write_str(&self.pool),
            Some(server) => write!(f, "{}.{server}", self.pool),
        }
    }
}

/// One rule: a condition and two blocks.
///
/// What a decision needs of the rule that took it lies in one line of the cache, in front: the label and `then` down to
/// what it awaits.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Rule {
    /// The label, or `#3` (its position, from 1) where it has none, or `else`.
    pub label: Box<str>,
    /// Taken when the condition is true.
    pub then: Block,
    /// Taken when it is false.
    pub otherwise: Block,
    /// Where it stands in the source.
    pub span: Span,
    /// What must hold for `then`.
    pub condition: Condition,
}

impl Rule {
    /// Where its two blocks may send a request.
    pub fn targets(&self) -> impl Iterator<Item = TargetId> + '_ {
        [&self.then, &self.otherwise].into_iter().flat_map(|block| {
            let (one, several) = match &block.exit {
                Exit::Terminal(Terminal::RouteTo { target, .. }) => (Some(*target), [].as_slice()),
                Exit::Terminal(Terminal::Split(split)) => (None, &*split.shares),
                Exit::Next | Exit::Goto(_) | Exit::Terminal(_) => (None, [].as_slice()),
            };
            one.into_iter().chain(several.iter().map(|share| share.target))
        })
    }
}

impl Drop for Rule {
    /// To drop many takes long.
    fn drop(&mut self) {
        pace::step();
    }
}

/// A condition in three-valued logic.
#[derive(Clone, Debug)]
pub enum Condition {
    /// Holds always: an unconditional block.
    Always,
    /// Kleene's not.
    Not(Box<Condition>),
    /// Kleene's and.
    And(Vec<Condition>),
    /// Kleene's or.
    Or(Vec<Condition>),
    /// A comparison.
    Test(Test),
}

impl Condition {
    /// Shows the tests that it is made of, from left to right.
    pub fn each_test<'c>(&'c self, see: &mut impl FnMut(&'c Test)) {
        match self {
            Condition::Always => {}
            Condition::Not(inner) => inner.each_test(see),
            Condition::And(parts) | Condition::Or(parts) => parts.iter().for_each(|part| part.each_test(see)),
            Condition::Test(test) => see(test),
        }
    }

    /// Whether some of the tests that it is made of is such.
    pub fn any_test(&self, is_such: &impl Fn(&Test) -> bool) -> bool {
        match self {
            Condition::Always => false,
            Condition::Not(inner) => inner.any_test(is_such),
            Condition::And(parts) | Condition::Or(parts) => parts.iter().any(|part| part.any_test(is_such)),
            Condition::Test(test) => is_such(test),
        }
    }
}

/// A comparison of a field.
#[derive(Clone, Debug)]
pub struct Test {
    /// Where it stands in the source.
    pub span: Span,
    /// Which test of its program it is; tests that ask the same are one.
    pub(crate) number: u32,
    /// What is compared.
    pub field: Field,
    /// Which of its values must satisfy `op`.
    pub over: Over,
    /// Whether `lower(field)` was written.
    pub fold_case: bool,
    /// The comparison. With [`Over::Count`] it is a number comparison against the count.
    pub op: Op,
}

/// Which values of a many-valued field a comparison speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Over {
    /// Some value (Kleene's or); false when absent.
    Any,
    /// Every value (Kleene's and); false when absent.
    All,
    /// The first value.
    First,
    /// The only value; a second one makes the comparison unknown.
    Once,
    /// How many there are.
    Count,
}

/// What one value is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `exists`.
    Exists,
    /// `== true`, `!= false`, or a bare boolean field.
    IsTrue,
    /// `== false`.
    IsFalse,
    /// `== "text"`.
    TextEquals(Box<[u8]>),
    /// `!= "text"`.
    TextDiffers(Box<[u8]>),
    /// `< <= > >=` against text: by bytes.
    TextOrder(Order, Box<[u8]>),
    /// `contains "text"`.
    Contains(Box<[u8]>),
    /// `startsWith "text"`.
    StartsWith(Box<[u8]>),
    /// `endsWith "text"`.
    EndsWith(Box<[u8]>),
    /// `like "pattern"` with `*` and `?`.
    Like(Box<[u8]>),
    /// `matches "regex"`: unanchored, over bytes.
    Matches(Matcher),
    /// `under "/prefix"`: on a segment border.
    Under(Box<[u8]>),
    /// `== 5`.
    NumberEquals(Decimal),
    /// `!= 5`.
    NumberDiffers(Decimal),
    /// `< <= > >=` against a number.
    NumberOrder(Order, Decimal),
    /// `== 10.0.0.1`, `== 10.0.0.0/8`.
    IpIn(IpNet),
    /// `!= 10.0.0.1`.
    IpNotIn(IpNet),
    /// `< <= > >=` against an address of the same family; false for the other family.
    IpOrder(Order, IpAddr),
    /// `in [ … ]`: at least one entry takes the value.
    In(Vec<Entry>),
}

/// One entry of an `in` list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// A text.
    Text(Box<[u8]>),
    /// A number.
    Number(Decimal),
    /// An address or network.
    Network(IpNet),
    /// `a..b` (inclusive) or `(a..b)` (exclusive) over numbers.
    NumberRange {
        /// Lower bound.
        from: Decimal,
        /// Upper bound.
        to: Decimal,
        /// Whether the bounds themselves are left out.
        exclusive: bool,
    },
    /// The same over addresses of one family.
    IpRange {
        /// Lower bound.
        from: IpAddr,
        /// Upper bound.
        to: IpAddr,
        /// Whether the bounds themselves are left out.
        exclusive: bool,
    },
    /// The same over text, by bytes.
    TextRange {
        /// Lower bound.
        from: Box<[u8]>,
        /// Upper bound.
        to: Box<[u8]>,
        /// Whether the bounds themselves are left out.
        exclusive: bool,
    },
    /// `@name`: what is in that list.
    List(Arc<List>),
}

/// An order comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// The actions of one branch.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Block {
    /// Where the walk goes from here.
    pub exit: Exit,
    /// Collected on the way, committed with the terminal action that is reached.
    pub effects: ThinVec<Effect>,
    /// The fields of the body that its texts and its stickiness name: it runs when the first value of each is known.
    pub awaits: ThinVec<Field>,
    /// The rules that this one may conflict with, as it says.
    pub allows: ThinVec<RuleIndex>,
}

impl Block {
    /// Whether nothing comes of it but that the walk goes on.
    pub(crate) fn is_empty(&self) -> bool {
        self.effects.is_empty() && matches!(self.exit, Exit::Next)
    }
}

/// Where the walk goes after a block.
#[derive(Clone, Debug, Default)]
pub enum Exit {
    /// To the next rule.
    #[default]
    Next,
    /// Forward to a rule.
    Goto(RuleIndex),
    /// Nowhere: it is decided.
    Terminal(Terminal),
}

/// An action that decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// `routeTo(target, stickiness)`.
    RouteTo {
        /// The pool or server.
        target: TargetId,
        /// How a client stays with a server of it.
        sticky: Stickiness,
    },
    /// `routeTo(split(90: stable, 10: canary), stickiness)`
    Split(Box<Split>),
    /// `reject(status, reason)`; 403 where no status is given.
    Reject {
        /// HTTP status, 400 to 599.
        status: u16,
        /// Text of the answer's body.
        reason: Option<Box<str>>,
    },
    /// `reject(reset)`: the connection is reset; over HTTP/2 the stream is.
    Reset,
    /// `discard()`: the connection closes without an answer.
    Discard,
    /// `redirect(status, template)`.
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// The Location.
        location: Template,
    },
    /// `respond(status, body)`.
    Respond {
        /// HTTP status, 200 to 599.
        status: u16,
        /// The answer's plain-text body.
        body: Template,
    },
}

/// How clients stay with a server inside the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stickiness {
    /// `NON_STICKY`.
    None,
    /// `STICKY_ON_IP`: by `clientip`.
    Ip,
    /// `STICKY_ON_IP_PORT`: the rest of this client connection.
    IpPort,
    /// `STICKY_ON_COOKIE`: by the switch's own cookie.
    Cookie,
    /// `STICKY_ON_TLS_SESSION`: by the TLS session, over all connections that resume it; not sticky without TLS. Where TLS is
    /// not ended here, by what its server calls the session.
    TlsSession,
    /// `STICKY_ON(field)`: by the field's first value; not sticky where it is absent.
    Field(Field),
}

/// An action that changes the request or the answer, committed with the terminal action.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// `setHeader`, `addHeader`, `removeHeader` and the same with `Response`.
    Header {
        /// Whose header.
        side: Side,
        /// Lower-case name.
        name: Box<str>,
        /// What is done with it.
        edit: HeaderEdit,
    },
    /// `rewritePath(regex, replacement)`: the forwarded path; `$1` names a group.
    RewritePath {
        /// What is searched, over the normal form of the path.
        regex: Matcher,
        /// What takes its place, all matches.
        replacement: Box<[u8]>,
    },
    /// `tag(name)`: a word in the access log.
    Tag(Box<str>),
    /// `limitRate(class)`: takes a token of the class; where there is none, that is what the request comes to.
    LimitRate(Box<str>),
    /// `bandwidth(class)`: what the request and its answer send is sent within what the class gets.
    Bandwidth(Box<str>),
    /// `mirror(pool)`: a copy of the request goes to that pool, and its answer nowhere.
    Mirror(Box<str>),
}

impl Effect {
    /// Whether it is committed where the request is refused because a condition ended unknown, too: no action decides
    /// then that the others could go with, and the access log says all the same what was seen on the way.
    #[must_use]
    pub fn is_committed_with_refusal(&self) -> bool {
        matches!(self, Effect::Tag(_))
    }
}

/// Request or answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The request, on its way to the server.
    Request,
    /// The answer, on its way to the client.
    Response,
}

/// What is done with a header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HeaderEdit {
    /// Replaces every line of that name by one.
    Set(Template),
    /// Adds a line.
    Add(Template),
    /// Takes every line of that name away.
    Remove,
}

/// A text with fields in it: `https://${host}${path}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Template(pub Vec<Piece>);

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Piece {
    /// Literal bytes.
    Literal(Box<[u8]>),
    /// The first value of a field; nothing where it is absent.
    Field(Field),
    /// A group of the condition's regex.
    Group(Box<Group>),
}

/// What a condition that ends unknown does to the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnknown {
    /// Refused; the status follows from the cause.
    #[default]
    Reject,
    /// Neither block runs.
    Skip,
    /// Goes to this target.
    RouteTo(TargetId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_decision_needs_of_a_rule_is_one_line_of_the_cache() {
        let behind = std::mem::offset_of!(Rule, then.awaits) + size_of::<ThinVec<Field>>();
        assert!(std::mem::offset_of!(Rule, label) == 0 && behind <= align_of::<Rule>());
    }
}
