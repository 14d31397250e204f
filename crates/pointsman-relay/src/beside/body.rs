//! What looks into a body for a candidate, as far as it is read for the live rules.

use pointsman_config::Listener;
use pointsman_http::{BodyReader, RequestHead};
use pointsman_rules::{Cause, Decision, Evidence, Truths};
use pointsman_view::{Inspection, RequestView};

use crate::ahead::Judge;
use crate::decide::request_decision;
use crate::memory::Buffers;

/// Looks into a body for the fields that the candidate's rules name. It holds nothing of it, and asks for nothing.
pub(crate) struct BodyBeside {
    judge: Judge,
    body: BodyReader,
    read_bytes: u64,
    /// More would be beyond what the candidate's listener holds.
    hold_bytes_max: u64,
    /// It looks at nothing more.
    is_closed: bool,
}

impl BodyBeside {
    /// For the request with this head, which was parsed from `received`. Nothing where there is no memory for it, or
    /// the listener's rules name nothing of a body.
    pub(crate) fn new(
        listener: &Listener,
        head: &RequestHead,
        received: &[u8],
        buffers: &Buffers,
    ) -> Option<BodyBeside> {
        let (program, paths) = (listener.program.as_deref()?, listener.body_paths.as_ref()?);
        let evidence = Evidence::new(program);
        let inspection = Inspection::new(evidence, paths.clone(), head, received, &listener.body_options);
        Some(BodyBeside {
            judge: Judge::new(inspection, buffers.inspection()?)?,
            body: BodyReader::new(head.framing()),
            read_bytes: 0,
            hold_bytes_max: listener.body_limits.hold_bytes_max.into(),
            is_closed: false,
        })
    }

    /// What the candidate's rules say of the request with this head, as far as its body is known.
    pub(crate) fn decision<'l>(
        &self,
        listener: &'l Listener,
        view: RequestView<'_>,
        truths: &mut Truths,
    ) -> Decision<'l> {
        let inspection = &self.judge.inspection;
        let body = view.with_body(inspection.evidence());
        request_decision(listener, &body, inspection.other_readings(), truths)
    }

    /// Whether it has looked at anything.
    pub(crate) fn has_looked(&self) -> bool {
        self.read_bytes > 0
    }

    /// Looks into bytes that came, with what frames them. What is not the body's is left alone.
    pub(crate) fn look(&mut self, bytes: &[u8]) {
        if self.is_closed || self.body.is_done() {
            return;
        }
        let left = self.hold_bytes_max.saturating_sub(self.read_bytes);
        let within = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        // What is wrong with the framing the live side refuses; without memory it stays unknown what the rest says.
        match self.judge.follow(&mut self.body, &bytes[..within], &mut 0) {
            Ok(fed) => self.read_bytes += fed.used as u64,
            Err(_) => self.is_closed = true,
        }
        if !self.is_closed && !self.body.is_done() && self.read_bytes >= self.hold_bytes_max {
            self.judge.inspection.give_up(Cause::Limit);
            self.is_closed = true;
        }
    }
}
