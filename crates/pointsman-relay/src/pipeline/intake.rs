//! What has come of a connection's next requests, and which of them may be on its way beside those before it.

use std::io::ErrorKind;
use std::task::{Context, Poll};

use pointsman_http::{Framing, Unfinished, Version};
use pointsman_net::PooledBuffer;

use crate::decide::head_limits;
use crate::fault::Fault;
use crate::memory::{Buffers, is_out_of_memory};
use crate::session::Session;
use crate::transport::Transport;

/// The request at the start of what has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Its head is not whole.
    More,
    /// It has so many bytes, and may be on its way beside others.
    Beside {
        bytes: usize,
        /// Whether the connection ends behind its answer.
        is_last: bool,
    },
    /// It waits until all before it are answered, and those behind it wait for it.
    Alone {
        /// Whether it is one at all, as far as its head goes.
        is_request: bool,
    },
}

/// Bytes of requests that no exchange has taken.
pub(crate) struct Intake {
    pub(crate) received: PooledBuffer,
    /// What was found at their start, if that was looked for.
    next: Option<Next>,
    unfinished: Unfinished,
    /// Whether they came when no answer was due.
    pub(crate) was_awaited: bool,
    /// Whether nothing is taken any more.
    pub(crate) is_over: bool,
    /// Whether the client has said that it sends nothing more.
    pub(crate) has_ended: bool,
    /// Why what comes next has lost its beginning.
    pub(crate) fault: Option<Fault>,
}

/// What a look for more came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Nothing,
    Something,
    /// The connection broke.
    Broken,
}

impl Intake {
    pub(crate) fn new(buffers: &Buffers) -> Intake {
        Intake {
            received: buffers.request(),
            next: None,
            unfinished: Unfinished::default(),
            was_awaited: false,
            is_over: false,
            has_ended: false,
            fault: None,
        }
    }

    /// Begins with other bytes.
    pub(crate) fn set(&mut self, received: PooledBuffer, was_awaited: bool) {
        self.received = received;
        self.was_awaited = was_awaited;
        self.forget();
    }

    /// More has come behind it.
    pub(crate) fn grew(&mut self) {
        self.next = None;
    }

    fn forget(&mut self) {
        self.next = None;
        self.unfinished = Unfinished::default();
    }

    /// Looks at the head that has come. What its session says of it later is the same: it reads the same bytes.
    pub(crate) fn next<C: Transport>(&mut self, session: &Session<C>) -> Next {
        if let Some(next) = self.next {
            return next;
        }
        let next = self.look(session);
        self.next = Some(next);
        next
    }

    fn look<C: Transport>(&mut self, session: &Session<C>) -> Next {
        let local = session.shard.local();
        let Some((listener, _)) = local.live.listener(session.listener_id) else {
            return Next::Alone { is_request: false };
        };
        let head = &mut session.shard.scratch.borrow_mut().request;
        match head.parse_on(&self.received, &mut self.unfinished, &head_limits(listener)) {
            Err(_) => return Next::Alone { is_request: false },
            Ok(false) => return Next::More,
            Ok(true) => {}
        }
        let asks_to_upgrade = head.lines().iter().any(|line| line.is_named(b"upgrade", &self.received));
        let may_overlap = head.version() == Version::Http11
            && head.method().is_safe()
            && head.framing() == Framing::None
            && !asks_to_upgrade;
        match may_overlap {
            true => {
                let is_last = !head.keeps_alive() || session.is_last_but_one(listener);
                Next::Beside { bytes: head.head_bytes(), is_last }
            }
            false => Next::Alone { is_request: true },
        }
    }

    /// Cuts off a request of so many bytes. `None`: there is no memory for a buffer of its own.
    pub(crate) fn cut_off(&mut self, bytes: usize, buffers: &Buffers) -> Option<PooledBuffer> {
        let request = match bytes < self.received.len() {
            false => self.received.take(),
            true => {
                let mut request = buffers.request();
                if !request.reserve(bytes) {
                    return None;
                }
                request.extend_from_slice(&self.received[..bytes]);
                self.received.drain(..bytes);
                request
            }
        };
        self.forget();
        Some(request)
    }

    /// Reads more, if there is something.
    pub(crate) fn poll_read<C: Transport>(
        &mut self,
        context: &mut Context<'_>,
        session: &mut Session<C>,
    ) -> Came {
        let Poll::Ready(read) = session.io.poll_read_into(context, &mut self.received) else {
            return Came::Nothing;
        };
        match &read {
            Ok(1..) => self.grew(),
            Ok(0) => self.has_ended = true,
            Err(_) if is_out_of_memory(&read) => {
                self.fault = Some(Fault::Memory);
                self.is_over = true;
            }
            // Without TLS' own word it may have been cut off, but it has ended.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => self.has_ended = true,
            Err(_) => return Came::Broken,
        }
        Came::Something
    }
}
