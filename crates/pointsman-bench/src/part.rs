//! What the threads of one machine came to, and what the parts of several machines are together.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::little::Little;
use crate::outcome::{Generator, Outcome, ThreadUse, Void, nothing_measured, voids};
use crate::record::{LOOKS_A_BATCH, Record};
use crate::run::seconds_of;
use crate::server_watch::Served;
use crate::worker::batches;
use crate::{Machine, Plan};

/// What was interrupted sooner than after a second is no result.
const INTERRUPTED_BATCHES_MIN: usize = 10;

/// One machine's share in a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) machine: Machine,
    pub(crate) began_unix_s: u64,
    /// Measured.
    pub(crate) seconds: f64,
    pub(crate) record: Record,
    pub(crate) generator: Generator,
}

impl Part {
    /// What came of the plan, where this is all of it.
    pub(crate) fn outcome(mut self, plan: Plan, server: Served) -> Outcome {
        let negotiated = std::mem::take(&mut self.record.agreements).into_sorted();
        let mut voids = voids(&plan, &self.record, &negotiated);
        let was_interrupted = plan.interrupt.has_come() && !self.is_whole(&plan);
        if self.is_whole(&plan) {
            voids.extend(nothing_measured(&self.record));
        }
        if was_interrupted && self.record.batches.len() < INTERRUPTED_BATCHES_MIN {
            let sentence = format!("it was interrupted {}, which is too soon for a result", how_far(&self));
            voids.push(Void { code: "interrupted", sentence });
        }
        let (server, server_unknown) = match server {
            Some(Ok(server)) => (Some(server), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        Outcome {
            plan,
            addresses: self.addresses,
            machine: self.machine,
            began_unix_s: self.began_unix_s,
            seconds: self.seconds,
            record: self.record,
            negotiated,
            generator: self.generator,
            server,
            server_unknown,
            voids,
            ceiling: None,
            agents: Vec::new(),
            lost: Vec::new(),
            was_interrupted,
        }
    }

    /// Without what was measured behind so many tenths of a second.
    pub(crate) fn cut_to(&mut self, batches: usize) {
        self.record.cut_to(batches);
        self.seconds = seconds_of(self.record.batches.len());
    }

    /// Whether it is one of this plan, or the beginning of one: other records cannot be added to it.
    pub(crate) fn is_of(&self, plan: &Plan) -> bool {
        let (record, nothing) = (&self.record, Record::new(batches(plan)));
        let steps = |record: &Record| record.sessions.as_ref().map(|sessions| sessions.steps.len());
        record.batches.len() <= nothing.batches.len()
            && record.looks.len() == record.batches.len() * LOOKS_A_BATCH
            && record.statuses.len() == nothing.statuses.len()
            && record.failed_statuses.len() == nothing.failed_statuses.len()
            && record.classes.len() == plan.classes.len()
            && record.classes.iter().all(|class| class.batches.len() == record.batches.len())
            && record.sessions.iter().all(|sessions| sessions.ended_in.len() == record.batches.len())
            && steps(record) == plan.session.as_ref().map(|script| script.steps.len())
            && self.generator.threads.len() == plan.threads
    }

    /// Whether it has all of the plan's time.
    pub(crate) fn is_whole(&self, plan: &Plan) -> bool {
        self.record.batches.len() == batches(plan)
    }

    /// All of them, which have measured as long as each other, as if one machine had done it: records are added, of the rest
    /// the worst or the sum. None of none.
    pub(crate) fn together(parts: &[Part], plan: &Plan) -> Option<Part> {
        let (first, others) = parts.split_first()?;
        let mut all = first.clone();
        for part in others {
            all.record.merge(part.record.clone());
            let (ours, theirs) = (&mut all.generator, &part.generator);
            ours.threads.extend(theirs.threads.iter().copied());
            ours.seconds = ours.seconds.max(theirs.seconds);
            // What one of them does not know nobody knows.
            ours.stolen = both(ours.stolen, theirs.stolen, f64::max);
            ours.segments_resent = both(ours.segments_resent, theirs.segments_resent, u64::saturating_add);
            ours.syns_resent = both(ours.syns_resent, theirs.syns_resent, u64::saturating_add);
            ours.descriptors_max = ours.descriptors_max.min(theirs.descriptors_max);
            ours.descriptors_most = both(ours.descriptors_most, theirs.descriptors_most, u64::max);
            ours.ports = ours.ports.min(theirs.ports);
            ours.ports_most = both(ours.ports_most, theirs.ports_most, u64::max);
            // Agents on the server's machine see the same sockets there.
            let seen = [ours.listening, theirs.listening].into_iter().flatten();
            ours.listening = seen.max_by_key(|listening| listening.drops);
            let news = part.addresses.iter().filter(|address| !first.addresses.contains(address));
            all.addresses.extend(news);
        }
        all.addresses.sort_unstable();
        all.addresses.dedup();
        all.machine = Machine::together(parts.iter().map(|part| &part.machine));
        let work = all.generator.threads.iter().flatten().map(ThreadUse::work).sum();
        all.generator.little = Little::of(&all.record, all.seconds, plan.timeout.as_secs_f64(), work);
        Some(all)
    }
}

/// How far it was when it was interrupted.
fn how_far(part: &Part) -> String {
    match part.record.batches.len() {
        0 => "before the measured time began".to_owned(),
        _ => format!("{:.1} s into the measured time", part.seconds),
    }
}

fn both<T>(ours: Option<T>, theirs: Option<T>, of: impl FnOnce(T, T) -> T) -> Option<T> {
    ours.zip(theirs).map(|(ours, theirs)| of(ours, theirs))
}
