//! The body of a request as the fields that a program names, while it is read.

mod fault;
mod hearing;
mod inspection;
mod label;
mod media_type;
mod options;
mod others;
mod paths;
mod reader;
mod sniff;

pub use fault::BodyFault;
pub use inspection::Inspection;
pub use media_type::Reads;
pub use options::{BodyKind, BodyLabel, BodyOptions};
pub use paths::BodyPaths;
