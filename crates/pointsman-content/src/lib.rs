//! Values by path out of XML, JSON and form bytes, pushed in chunks, within limits.
//!
//! A body comes as it comes: readers are fed pieces of any size and keep nothing of what they have read but where they
//! are. What a document is given to does not depend on how it was cut.
//!
//! Invariant: what a reader holds has a bound that its [`Limits`] give, whatever it is fed, and its time grows with the
//! bytes that it was fed and nothing else. Nothing here knows HTTP, rules, a clock or a socket.

mod coding;
mod fault;
mod form;
mod json;
mod limits;
mod names;
mod sink;
mod sixteen;
mod text;
mod utf8;
mod xml;

pub use coding::{Coding, ContentDecoder};
pub use fault::{Cause, Fault};
pub use form::{FormNames, FormOptions, FormReading, MultipartReader, UrlencodedReader};
pub use json::{JsonPath, JsonPaths, JsonReader, JsonStep};
pub use limits::Limits;
pub use names::{ParameterNames, fold};
pub use sink::{PathId, Sink, Value};
pub use text::{TextKind, TextPiece, TextReader};
pub use xml::{XmlAttribute, XmlAxis, XmlName, XmlPath, XmlPaths, XmlReader, XmlStep};
