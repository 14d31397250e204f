//! What is wrong with a body.

use std::fmt;

use pointsman_content::Fault;
use pointsman_rules::Cause;

/// Why fields of a body are unknown. It displays as a sentence's worth, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyFault {
    of: Part,
    fault: Fault,
}

/// Where something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// In what the head or the first byte says of the body: the place says nothing.
    Head,
    /// In its content coding; places count in what was decoded.
    Coding,
    /// In what it is.
    Xml,
    Json,
    Form,
}

impl BodyFault {
    pub(super) const fn new(of: Part, fault: Fault) -> BodyFault {
        BodyFault { of, fault }
    }

    /// The head says something of the body that is not understood.
    pub(super) const fn encoding(what: &'static str) -> BodyFault {
        BodyFault::new(Part::Head, Fault { cause: pointsman_content::Cause::Encoding, at: 0, what })
    }

    /// A name was read that servers read in several ways, too late to ask the rules about each.
    pub(super) const fn ambiguous(of: Part) -> BodyFault {
        let what = "a name that servers read in several ways, behind what decided";
        BodyFault::new(of, Fault { cause: pointsman_content::Cause::Ambiguous, at: 0, what })
    }

    /// Nothing that says what the body is came where it should.
    pub(super) const fn limit(what: &'static str) -> BodyFault {
        BodyFault::new(Part::Head, Fault { cause: pointsman_content::Cause::Limit, at: 0, what })
    }

    /// As readers have it.
    pub(super) fn fault(&self) -> Fault {
        self.fault
    }

    /// Why what was not read yet ends unknown.
    pub fn cause(&self) -> Cause {
        cause(self.fault.cause)
    }
}

/// A cause of readers as rules have it.
pub(super) fn cause(cause: pointsman_content::Cause) -> Cause {
    match cause {
        pointsman_content::Cause::Malformed => Cause::Malformed,
        pointsman_content::Cause::Ambiguous => Cause::Ambiguous,
        pointsman_content::Cause::Encoding => Cause::Encoding,
        pointsman_content::Cause::Limit => Cause::Limit,
        pointsman_content::Cause::DuplicateKey => Cause::DuplicateKey,
    }
}

impl fmt::Display for BodyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = &self.fault;
        match self.of {
            Part::Head => f.write_str(fault.what),
            Part::Coding => write!(f, "content coding: {fault}"),
            Part::Xml => write!(f, "XML: {fault}"),
            Part::Json => write!(f, "JSON: {fault}"),
            Part::Form => write!(f, "form: {fault}"),
        }
    }
}

impl std::error::Error for BodyFault {}
