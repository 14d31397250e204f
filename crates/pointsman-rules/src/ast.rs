//! What a rule file says, as written: every name unresolved, every place known.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{Claim, Ending, Order, Over, Side, Span};

/// A rule file. Older spellings have become the modern ones already.
#[derive(Clone, Debug, Default)]
pub struct RuleFile {
    /// Settings, rules and tests in the order of the text.
    pub items: Vec<Item>,
    /// Every comment, in order.
    pub comments: Vec<Comment>,
}

/// From `#` to the end of its line.
#[derive(Clone, Copy, Debug)]
pub struct Comment {
    /// With the `#`, without the line break.
    pub span: Span,
}

/// What can stand at the outermost level.
#[derive(Clone, Debug)]
pub enum Item {
    /// `validate stream;`
    Setting(Setting),
    /// `R1: if (…) { … }`
    Rule(Box<Rule>),
    /// `else: …`; its rule has no condition.
    Fallback(Box<Rule>),
    /// `test "name" { … }`
    Test(Box<TestCase>),
    /// `assert "name": never (…) -> target;`
    Assert(Box<Assertion>),
}

/// A word and where it stands.
#[derive(Clone, Debug)]
pub struct Name {
    /// The word, without quotes.
    pub text: Box<str>,
    /// Where.
    pub span: Span,
}

/// A quoted text.
#[derive(Clone, Debug)]
pub struct Quoted {
    /// What it means, escapes resolved.
    pub text: Box<str>,
    /// With its quotes.
    pub span: Span,
}

/// A line at the top of the file.
#[derive(Clone, Debug)]
pub struct Setting {
    /// With the semicolon.
    pub span: Span,
    /// What is set.
    pub kind: SettingKind,
}

/// What is set.
#[derive(Clone, Debug)]
pub enum SettingKind {
    /// `on_unknown reject;`
    OnUnknownReject,
    /// `on_unknown skip;`
    OnUnknownSkip,
    /// `on_unknown routeTo(pool);`
    OnUnknownRouteTo(Name),
    /// `validate stream;`
    ValidateStream,
    /// `validate full;`
    ValidateFull,
    /// `namespace p = "uri";`
    Namespace(Name, Quoted),
}

/// One rule.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// All of it.
    pub span: Span,
    /// The label, if it has one.
    pub label: Option<Name>,
    /// What stands in `if (…)`; `None` for an unconditional block.
    pub condition: Option<Condition>,
    /// Taken when it holds.
    pub then: Block,
    /// After `else`.
    pub otherwise: Option<Block>,
}

/// Actions in braces, or one without.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// With its braces.
    pub span: Span,
    /// In order.
    pub actions: Vec<Action>,
}

/// One action.
#[derive(Clone, Debug)]
pub struct Action {
    /// With the semicolon.
    pub span: Span,
    /// The first word.
    pub word: Span,
    /// What it does.
    pub kind: ActionKind,
}

/// What an action does.
#[derive(Clone, Debug)]
pub enum ActionKind {
    /// `routeTo(target, stickiness)`
    RouteTo(Target, Option<Sticky>),
    /// `reject(status, reason)`
    Reject(Option<Status>, Option<Quoted>),
    /// `reject(reset)`
    Reset,
    /// `discard()`
    Discard,
    /// `redirect(status, template)`
    Redirect(Status, Quoted),
    /// `respond(status, body)`
    Respond(Status, Quoted),
    /// `goto LABEL`
    Goto(Name),
    /// `setHeader(name, value)`, `setResponseHeader(name, value)`
    SetHeader(Side, Quoted, Quoted),
    /// `addHeader(name, value)`, `addResponseHeader(name, value)`
    AddHeader(Side, Quoted, Quoted),
    /// `removeHeader(name)`, `removeResponseHeader(name)`
    RemoveHeader(Side, Quoted),
    /// `rewritePath(regex, replacement)`
    RewritePath(Quoted, Quoted),
    /// `bandwidth(class)`
    Bandwidth(Name),
    /// `limitRate(class)`
    LimitRate(Name),
    /// `mirror(pool)`
    Mirror(Name),
    /// `tag(name)`
    Tag(Name),
    /// `allow conflict(R1, R2)`
    AllowConflict(Vec<Name>),
}

/// A status code as written.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// The number; 0 where it is none.
    pub code: u16,
    /// Where.
    pub span: Span,
}

/// Where a `routeTo` sends.
#[derive(Clone, Debug)]
pub enum Target {
    /// A pool, `pool.server`, or a server.
    Named(Name),
    /// `split(90: stable, 10: canary)`
    Split(Span, Vec<Share>),
}

/// One part of a `split`.
#[derive(Clone, Debug)]
pub struct Share {
    /// In percent, as written.
    pub percent: Name,
    /// Who gets it.
    pub target: Name,
}

/// A stickiness as written.
#[derive(Clone, Debug)]
pub struct Sticky {
    /// Where.
    pub span: Span,
    /// Which.
    pub kind: StickyKind,
}

/// The stickinesses.
#[derive(Clone, Debug)]
pub enum StickyKind {
    /// `NON_STICKY`
    None,
    /// `STICKY_ON_IP`
    Ip,
    /// `STICKY_ON_IP_PORT`
    IpPort,
    /// `STICKY_ON_COOKIE`
    Cookie,
    /// `STICKY_ON_TLS_SESSION`
    TlsSession,
    /// `STICKY_ON(field)`
    Field(FieldRef),
}

/// A condition as written.
#[derive(Clone, Debug)]
pub enum Condition {
    /// `!…`
    Not(Span, Box<Condition>),
    /// `… && …`, at least two.
    And(Vec<Condition>),
    /// `… || …`, at least two.
    Or(Vec<Condition>),
    /// `(…)`
    Group(Span, Box<Condition>),
    /// A comparison.
    Test(Comparison),
    /// Could not be read; an error says why.
    Broken(Span),
}

/// A comparison as written.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// All of it.
    pub span: Span,
    /// What is compared.
    pub operand: Operand,
    /// With what.
    pub predicate: Predicate,
}

/// A field with what is said about its values.
#[derive(Clone, Debug)]
pub struct Operand {
    /// With `all(…)`, `lower(…)` and the like.
    pub span: Span,
    /// The field.
    pub field: FieldRef,
    /// Which values count.
    pub over: Over,
    /// Whether `lower(…)` was written.
    pub fold_case: bool,
}

/// A field by its modern name; perhaps no such field exists.
#[derive(Clone, Debug)]
pub struct FieldRef {
    /// With its key.
    pub span: Span,
    /// `path`, `tls.sni`, `header`, or a whole `xml.` or `json.` path.
    pub name: Box<str>,
    /// What stands in brackets.
    pub key: Option<Quoted>,
}

/// The right side of a comparison.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// Nothing: a boolean field by itself.
    Bare,
    /// `exists`
    Exists,
    /// `== literal`
    Equals(Literal),
    /// `!= literal`
    Differs(Literal),
    /// `< literal` and the other three
    Ordered(Order, Literal),
    /// `contains "…"` and its kin
    Text(TextOperator, Quoted),
    /// `in […]`
    In {
        /// With the brackets.
        span: Span,
        /// In order.
        entries: Vec<Entry>,
        /// Whether it is one range, or the name of a list, that stands without square brackets.
        bare: bool,
    },
}

/// Operators between text and text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOperator {
    /// `contains`
    Contains,
    /// `startsWith`
    StartsWith,
    /// `endsWith`
    EndsWith,
    /// `like`
    Like,
    /// `matches`
    Matches,
    /// `under`
    Under,
}

/// One entry of an `in` list.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A value or a network.
    Value(Literal),
    /// `a..b` or `(a..b)`
    Range {
        /// With its brackets.
        span: Span,
        /// Lower bound.
        from: Literal,
        /// Upper bound.
        to: Literal,
        /// Whether it stands in round brackets: the bounds are left out.
        exclusive: bool,
    },
    /// `@name`, without the `@`; its place is with it.
    List(Name),
}

/// A value as written.
#[derive(Clone, Debug)]
pub struct Literal {
    /// Where.
    pub span: Span,
    /// Which.
    pub kind: LiteralKind,
}

/// The kinds of values.
#[derive(Clone, Debug)]
pub enum LiteralKind {
    /// `"text"`
    Text(Box<str>),
    /// `99.95`, as written.
    Number(Box<str>),
    /// `10.0.0.1`
    Address(IpAddr),
    /// `10.0.0.0/8`
    Network(IpNet),
    /// `true`
    Boolean(bool),
}

/// `test "name" { request … expect R1 -> fast }`
#[derive(Clone, Debug)]
pub struct TestCase {
    /// All of it.
    pub span: Span,
    /// What it is called.
    pub name: Quoted,
    /// What the request is: fields and their values.
    pub request: Vec<Given>,
    /// Why the rest of its body is never known: the cause in `body unknown(…)`.
    pub rest: Option<Name>,
    /// The rule that decides, `else`, or `default` where none does.
    pub decider: Name,
    /// What it decides; nothing only behind `default`.
    pub outcome: Option<ExpectedOutcome>,
    /// All that is done besides; nothing where the test does not say.
    pub effects: Option<Vec<ExpectedEffect>>,
}

/// An effect that a test expects, with its values as they come out.
#[derive(Clone, Debug)]
pub enum ExpectedEffect {
    /// Of a header, or a tag.
    Action(Action),
    /// `rewritePath("/new")`: the path that comes of it.
    Path(Quoted),
}

/// A field of a test's request, with one value.
#[derive(Clone, Debug)]
pub struct Given {
    /// The field.
    pub field: FieldRef,
    /// The value.
    pub value: GivenValue,
}

/// A value of a test's request.
#[derive(Clone, Debug)]
pub enum GivenValue {
    /// As in a condition.
    Literal(Literal),
    /// `null`: JSON's, an object or an array.
    Null(Span),
    /// `absent`: there is none.
    Absent(Span),
}

/// What a test expects to be decided.
#[derive(Clone, Debug)]
pub enum ExpectedOutcome {
    /// A pool, `pool.server`, or a server.
    Target(Name),
    /// `split`
    Split(Span),
    /// `reject`, `reject(403)`
    Reject(Option<Status>),
    /// `reject(reset)`
    Reset(Span),
    /// `discard`
    Discard(Span),
    /// `redirect`, `redirect(301)`
    Redirect(Option<Status>),
    /// `respond`, `respond(200)`
    Respond(Option<Status>),
    /// `unknown`, `unknown(not a number)`
    Unknown(Span, Option<Name>),
}

/// `assert "name": never (condition) -> target;`
#[derive(Clone, Debug)]
pub struct Assertion {
    /// All of it.
    pub span: Span,
    /// What it is called.
    pub name: Quoted,
    /// `never` or `always`.
    pub claim: Claim,
    /// The requests it speaks of.
    pub condition: Condition,
    /// Where they get to.
    pub destination: Destination,
}

/// Where an assertion or a question says that requests get to.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A pool, `pool.server`, or a server.
    Target(Name),
    /// `reject`, `discard`, `redirect`, `respond` or `default`
    Ending(Span, Ending),
}

/// `can <condition> reach <target>?`
#[derive(Clone, Debug)]
pub struct Question {
    /// All of it.
    pub span: Span,
    /// The requests it speaks of.
    pub condition: Condition,
    /// Where they may get to.
    pub destination: Destination,
}

impl Item {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Item::Setting(setting) => setting.span,
            Item::Rule(rule) | Item::Fallback(rule) => rule.span,
            Item::Test(test) => test.span,
            Item::Assert(assertion) => assertion.span,
        }
    }
}

impl Condition {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Condition::Not(span, _) | Condition::Group(span, _) | Condition::Broken(span) => *span,
            Condition::And(parts) | Condition::Or(parts) => match (parts.first(), parts.last()) {
                (Some(first), Some(last)) => Span { start: first.span().start, end: last.span().end },
                _ => Span::default(),
            },
            Condition::Test(test) => test.span,
        }
    }
}
