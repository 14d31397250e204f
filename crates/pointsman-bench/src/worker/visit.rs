//! Users who go through their sessions, step by step.

use std::cmp::Reverse;

use super::Worker;
use crate::connection::Job;
use crate::plan::Load;
use crate::record::BATCH_NS;

impl Worker {
    /// The user whose next step is due, a new one where a session is; and which step that is. Nothing: there is no room
    /// for another.
    pub(super) fn visit(&mut self, due_ns: u64, user: Option<u32>) -> Option<(u32, u32)> {
        let is_counted = self.given.timeline.measures(due_ns);
        let users = self.turn.users.as_mut()?;
        let sessions = self.record.sessions.as_deref_mut()?;
        let number = match user {
            Some(number) => number,
            None if users.len() < self.users_max => users.add(),
            None => {
                sessions.due += u64::from(is_counted);
                sessions.unsent += u64::from(is_counted);
                self.record.due += u64::from(is_counted);
                self.record.unsent += u64::from(is_counted);
                return None;
            }
        };
        let wanted = (number as usize + 1) * self.idle.len();
        if self.own.len() < wanted {
            self.own.resize(wanted, None);
        }
        let user = users.get(number);
        if user.due_ns.is_none() {
            sessions.due += u64::from(is_counted);
            user.begin(due_ns, is_counted, &self.given.plan, &self.given.setup);
        }
        Some((number, user.step))
    }

    /// A step has its answer, or will have none: on to the next, or to the end of the session.
    pub(super) fn step_ended(&mut self, job: &Job, is_good: bool, now: u64, at_least_ns: u64) {
        let plan = &self.given.plan;
        let (Some(number), Some(users), Some(sessions), Some(script)) =
            (job.client, &mut self.turn.users, self.record.sessions.as_deref_mut(), &plan.session)
        else {
            return;
        };
        let step = &script.steps[job.request as usize];
        if !is_good && job.is_counted {
            sessions.steps[job.request as usize].failed += 1;
        }
        let user = users.get(number);
        user.waited_ns += now.saturating_sub(job.due_ns);
        user.step += 1;
        let think_ns = step.think.unwrap_or(plan.think).draw_ns(&mut self.random);
        let next = Reverse((now + think_ns.max(at_least_ns), number));
        if is_good && (user.step as usize) < script.steps.len() {
            self.resting.push(next);
            return;
        }
        match (user.is_counted, is_good) {
            (false, _) => {}
            (true, false) => sessions.failed += 1,
            (true, true) => {
                sessions.ended += 1;
                let since_ns = user.due_ns.and_then(|due_ns| due_ns.checked_sub(self.given.timeline.from_ns));
                let at = since_ns.map(|since_ns| (since_ns / BATCH_NS) as usize);
                at.and_then(|at| sessions.ended_in.get_mut(at)).into_iter().for_each(|ended| *ended += 1);
                sessions.whole.saturating_record(now.saturating_sub(user.due_ns.unwrap_or(now)));
                sessions.waited.saturating_record(user.waited_ns);
            }
        }
        match plan.load {
            Load::Open { .. } => users.remove(number),
            Load::Closed { .. } => {
                users.renew(number);
                self.resting.push(next);
            }
        }
        self.leave(number);
    }

    /// Whoever comes next has connections of its own.
    fn leave(&mut self, user: u32) {
        let origins = self.idle.len();
        for place in user as usize * origins..(user as usize + 1) * origins {
            if let Some(number) = self.own[place].take() {
                self.close_as(number, self.given.plan.close);
            }
        }
    }
}
