//! What a rule set means: text and schema in, a function from subject to decision out.
//!
//! Invariant: nothing here knows HTTP, a clock, a socket or a file.

mod decimal;
mod diagnostic;
mod field;
mod program;
mod subject;

pub use decimal::Decimal;
pub use diagnostic::{Diagnostic, Severity, Span};
pub use field::{Field, FieldType};
pub use program::*;
pub use subject::{Subject, Value};
