//! A request on its way to a server, from when the server was picked.

use std::rc::Rc;
use std::sync::Arc;

use crate::capacity::{Capacity, Queue};
use crate::local::LocalServer;

/// Counts a request on its way to a server, and has its place there where those are bounded. Both end with it.
pub(crate) struct InFlight(Rc<LocalServer>);

/// The places of a server that has so many and no more, and who waits for them.
#[derive(Clone, Debug)]
pub(crate) struct Bounded {
    pub(crate) capacity: Arc<Capacity>,
    pub(crate) queue: Arc<Queue>,
}

impl InFlight {
    /// `None`: the server has as many as it may have.
    #[inline]
    pub(crate) fn begin(server: &Rc<LocalServer>) -> Option<InFlight> {
        match &server.bounded {
            Some(Bounded { capacity, .. }) if !capacity.take() => None,
            _ => Some(InFlight::with_place(server)),
        }
    }

    /// For one that has a place already, where the server's are bounded.
    pub(crate) fn with_place(server: &Rc<LocalServer>) -> InFlight {
        server.load.begin();
        InFlight(server.clone())
    }

    pub(crate) fn server(&self) -> &Rc<LocalServer> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.load.end();
        if let Some(Bounded { capacity, queue }) = &self.0.bounded {
            queue.give_back(capacity);
        }
    }
}
