//! What a rule set means: text and schema in, a function from subject to decision out.
//!
//! Invariant: nothing here knows HTTP, a clock, a socket or a file.

mod advice;
mod assertions;
pub mod ast;
mod body_cost;
mod cases;
mod committed;
mod compare;
mod compile;
mod decide;
mod decimal;
mod diagnostic;
mod engine;
mod eval;
mod evidence;
mod explain;
mod field;
mod findings;
mod format;
#[cfg(test)]
mod generated;
mod group;
mod halt;
mod joined;
mod lexer;
mod lines;
mod list;
mod mutation;
mod named;
mod network;
mod noticed;
mod older;
pub mod pace;
mod parser;
mod pattern;
mod payload;
mod program;
mod readings;
mod rejecting;
mod rewrite;
mod schema;
mod share;
pub mod spelling;
mod subject;
mod suggest;
mod template;
mod truth;
mod truths;
pub mod vocabulary;
mod wanting;
mod way;

pub use assertions::{Assertion, Assertions, Claim, Destination, Ending};
pub use body_cost::{Blame, BodyCost, Extent, Reach, Why};
pub use cases::{Expectation, ExpectedOutcome, Further, Given, TestCase, Tests};
pub use committed::Committed;
pub use compile::{Compiled, Scope, Targets, compile, compile_for, head_field};
pub use decide::{DecidedBy, Decision, Outcome};
pub use decimal::{DECIMAL_BYTES_MAX, DECIMAL_EXPONENT_MAX, Decimal, NotANumber};
pub use diagnostic::{Colour, Diagnostic, Severity, Span, draw};
pub use engine::{Certificate, Unseparated};
pub use evidence::Evidence;
pub use explain::{
    Culprit, Explanation, SHOWN_TESTS_MAX, SHOWN_VALUE_BYTES_MAX, SHOWN_VALUES_MAX, ShownValue, VisitedExit,
    VisitedRule,
};
pub(crate) use field::FieldType;
pub use field::{Field, ProxyValue};
pub use findings::Findings;
pub use format::format;
pub use group::Group;
pub use halt::Halt;
pub use lexer::tokens;
pub use lines::Lines;
pub use list::{LIST_TEXT_BYTES_MAX, List, Members, NetworkList, TextList};
pub use mutation::{Mutant, MutantKind, Mutants, mutants};
pub use named::NamedHeaders;
pub use network::unmapped;
pub use noticed::{Audience, Idle};
pub use parser::{SOURCE_BYTES_MAX, parse};
pub use pattern::Matcher;
pub use payload::{JsonStep, Payload, PayloadId, Place, XmlName, XmlPath, XmlStep};
pub use program::*;
pub use rewrite::{BadPath, REWRITTEN_PATH_BYTES_MAX, rewrite_path};
pub use share::{Share, Split};
pub use subject::{NameKind, OwnedValue, Subject, Value};
pub use suggest::Suggestions;
pub use template::ForbiddenByte;
pub use truth::{Cause, Truth};
pub use truths::Truths;
pub use way::{Contrast, DefaultPool, NO_RULE, Said, Way};
