//! Trailers: which of them pass, towards servers and towards clients.
//!
//! Rules decide by the header. A server that merges trailers into the header would read another value than they did.

use std::rc::Rc;

use pointsman_config::Listener;
use pointsman_http::{
    Cut, Framing, HeaderKind, RequestHead, Trailers, announced, is_kept_from_clients, is_kept_from_servers,
    names_read_alike, retain_lines,
};

use crate::learned::OfAnswer;

/// Trailers of a listener's requests.
#[derive(Debug, Default)]
pub(crate) struct RequestTrailers {
    allowed: Box<[Box<str>]>,
    /// Fields that the rules read or change.
    used: Box<[Box<str>]>,
}

/// Filter for the trailers of one body.
#[derive(Debug, Default)]
pub(crate) enum TrailerFilter {
    /// No trailer passes.
    #[default]
    Nothing,
    /// Trailers of a request that are allowed by name pass.
    Named(Rc<RequestTrailers>),
    /// Trailers of a gRPC request pass, but for those that the rules use.
    Grpc(Rc<RequestTrailers>),
    /// Trailers of a response pass, but for those that its edits take away.
    Response(Option<Box<OfAnswer>>),
}

impl RequestTrailers {
    pub(crate) fn new(listener: &Listener) -> RequestTrailers {
        let boxed = |names: &[Box<str>]| names.to_vec().into_boxed_slice();
        RequestTrailers { allowed: boxed(&listener.trailers), used: boxed(&listener.named_fields) }
    }
}

impl TrailerFilter {
    /// The filter of a request. gRPC is a protocol over HTTP/2; what calls itself gRPC over HTTP/1 is something else.
    pub(crate) fn of_request(
        of_listener: &Rc<RequestTrailers>,
        framing: Framing,
        is_grpc: bool,
    ) -> TrailerFilter {
        match framing {
            Framing::Chunked if is_grpc => TrailerFilter::Grpc(of_listener.clone()),
            Framing::Chunked if !of_listener.allowed.is_empty() => TrailerFilter::Named(of_listener.clone()),
            _ => TrailerFilter::Nothing,
        }
    }

    /// The filter on the heap, if anything passes it: most requests have no trailers, and an idle connection has no room to
    /// spare.
    pub(crate) fn boxed(self) -> Option<Box<TrailerFilter>> {
        (!matches!(self, TrailerFilter::Nothing)).then(|| Box::new(self))
    }

    /// Treatment of trailers by the reader of the body.
    pub(crate) fn treatment(&self) -> Trailers {
        match self {
            TrailerFilter::Nothing => Trailers::Drop,
            TrailerFilter::Named(_) | TrailerFilter::Grpc(_) | TrailerFilter::Response(_) => {
                Trailers::SetAside
            }
        }
    }

    /// Whether a trailer of this name passes.
    pub(crate) fn passes(&self, name: &[u8]) -> bool {
        match self {
            TrailerFilter::Nothing => false,
            TrailerFilter::Named(names) => is_named(&names.allowed, name),
            TrailerFilter::Grpc(names) => !is_kept_from_servers(name) && !is_named(&names.used, name),
            TrailerFilter::Response(of_answer) => {
                let is_taken_away =
                    of_answer.as_ref().is_some_and(|of_answer| of_answer.edits.takes_away(name));
                !is_kept_from_clients(name) && !is_taken_away
            }
        }
    }

    /// Leaves in `cut` the lines that pass.
    pub(crate) fn apply(&self, cut: &mut Cut) {
        cut.retain(|name| self.passes(name));
    }

    /// Leaves in `lines`, whole field lines, those that pass.
    pub(crate) fn retain(&self, lines: &mut Vec<u8>) {
        if !lines.is_empty() {
            retain_lines(lines, |name| self.passes(name));
        }
    }

    /// Drops a Trailer line that announces what does not pass.
    pub(crate) fn drop_announcements(&self, head: &mut RequestHead, received: &[u8]) {
        for line in head.lines_mut().iter_mut().filter(|line| line.kind == HeaderKind::Trailer) {
            line.dropped |= !announced(line.value(received)).all(|name| self.passes(name));
        }
    }
}

fn is_named(names: &[Box<str>], name: &[u8]) -> bool {
    names.iter().any(|known| names_read_alike(known.as_bytes(), name))
}
