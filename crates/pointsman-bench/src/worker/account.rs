//! What a thread writes down of its requests, and what it shows of itself.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use super::Worker;
use crate::clock::{SECOND_NS, now_ns};
use crate::connection::Job;
use crate::record::{BATCH_NS, ErrorKind, LOOK_NS};

/// How long a client waits behind a failure before it asks again, so that a server that refuses is not stormed.
const BACK_OFF_NS: u64 = SECOND_NS / 100;

impl Worker {
    pub(super) fn write_down(&mut self, now: u64) {
        let measured = self.given.timeline.measures(now);
        let (bytes, sent) = (std::mem::take(&mut self.turn.bytes), std::mem::take(&mut self.turn.bytes_sent));
        let payload = std::mem::take(&mut self.turn.payload);
        if std::mem::take(&mut self.turn.has_stray) {
            self.failed += 1;
            if measured {
                self.record.errors[ErrorKind::Malformed as usize] += 1;
                self.batch(now).failed += 1;
            }
        }
        self.bytes += bytes;
        if measured {
            let batch = self.batch(now);
            batch.bytes += bytes;
            batch.payload += payload;
            self.record.bytes_sent += sent;
        }
        if let Some(connect_ns) = self.turn.connect_ns.take()
            && measured
        {
            self.record.connect.saturating_record(connect_ns);
        }
        if let Some((shake_ns, negotiated)) = self.turn.shaken.take() {
            self.record.agreed(negotiated);
            if measured {
                self.record.handshake.saturating_record(shake_ns);
                self.record.handshakes[negotiated.kind as usize] += 1;
                self.batch(now).handshakes[negotiated.kind as usize] += 1;
            }
        }
    }

    /// The tenth of the measured time that this moment of it is in.
    fn batch(&mut self, now: u64) -> &mut crate::Batch {
        let index = self.batch_at(now);
        &mut self.record.batches[index]
    }

    fn batch_at(&self, now: u64) -> usize {
        ((now - self.given.timeline.from_ns) / BATCH_NS) as usize
    }

    pub(super) fn count_due(&mut self, job: &Job) {
        if job.is_counted {
            self.record.due += job.counted();
            self.batch(job.due_ns).due += job.counted();
        }
    }

    pub(super) fn finish(&mut self, job: Job, status: u16, now: u64) {
        self.under_way -= 1;
        self.answered += 1;
        let response_ns = now.saturating_sub(job.due_ns);
        let class = self.given.requests.get(job.request as usize).class.map(usize::from);
        if self.given.timeline.measures(now) {
            let batch = self.batch(now);
            batch.completed += 1;
            batch.response_ns += response_ns;
            if let Some(class) = class {
                let at = self.batch_at(now);
                let batch = &mut self.record.classes[class].batches[at];
                batch.completed += 1;
                batch.bytes += job.answer_bytes;
            }
        }
        let is_failure = match class {
            Some(class) => !self.given.plan.classes[class].takes(status),
            None => self.given.plan.is_failure(job.request, status),
        };
        if job.is_counted {
            let record = &mut self.record;
            record.answered += 1;
            record.answered_kept += u64::from(job.is_kept);
            record.answered_pipelined += u64::from(job.is_pipelined);
            record.answered_over_tls += u64::from(self.given.requests.is_over_tls(job.request as usize));
            record.response.saturating_record(response_ns);
            record.service.saturating_record(now - job.begun_ns);
            record.first_byte.saturating_record(job.first_byte_ns.saturating_sub(job.sent_ns));
            record.statuses[usize::from(status).min(599)] += 1;
            record.failed_statuses[usize::from(status).min(599)] += u64::from(is_failure);
            if let Some(class) = class {
                record.classes[class].response.saturating_record(response_ns);
            }
        }
        if is_failure {
            self.count_failure(&job, ErrorKind::Status, now);
        } else {
            if self.given.timeline.measures(now) {
                self.batch(now).right += 1;
            }
            if job.is_counted {
                self.record.had_body(job.payload_bytes);
            }
        }
        if let Some(sessions) = self.record.sessions.as_deref_mut().filter(|_| job.is_counted) {
            let step = &mut sessions.steps[job.request as usize];
            step.answered += 1;
            step.response.saturating_record(response_ns);
        }
        self.rest(
            &job,
            !is_failure,
            now,
            if is_failure && self.turn.users.is_some() { BACK_OFF_NS } else { 0 },
        );
    }

    fn count_failure(&mut self, job: &Job, kind: ErrorKind, now: u64) {
        self.failed += 1;
        if job.is_counted {
            self.record.errors[kind as usize] += 1;
            if let Some(class) = self.given.requests.get(job.request as usize).class {
                self.record.classes[usize::from(class)].failed += 1;
            }
        }
        if self.given.timeline.measures(now) {
            self.batch(now).failed += 1;
        }
    }

    /// A request will have no answer.
    pub(super) fn fail(&mut self, job: Job, kind: ErrorKind, now: u64) {
        self.under_way -= 1;
        self.count_failure(&job, kind, now);
        if kind == ErrorKind::Timeout && job.is_counted {
            self.record.response.saturating_record(now.saturating_sub(job.due_ns));
        }
        self.rest(&job, false, now, BACK_OFF_NS);
    }

    /// A client of a closed loop asks again in a while, once it has all that it asked for.
    fn rest(&mut self, job: &Job, is_good: bool, now: u64, at_least_ns: u64) {
        if self.turn.users.is_some() {
            return self.step_ended(job, is_good, now, at_least_ns);
        }
        let Some(client) = job.client.filter(|_| job.is_last) else { return };
        let think_ns = self.given.plan.think.draw_ns(&mut self.random);
        self.resting.push(Reverse((now + think_ns.max(at_least_ns), client)));
    }

    /// A request, or a pipeline of them, is begun now.
    pub(super) fn count_begun(&mut self, job: &Job) {
        self.under_way += u64::from(job.pipeline);
        if job.held_ns == 0 {
            self.turned_to(job, job.begun_ns);
        } else if job.is_counted {
            let held_ns = job.begun_ns.saturating_sub(job.held_ns);
            self.record.held.saturating_record_n(held_ns, u64::from(job.pipeline));
        }
        if job.is_counted {
            self.record.begun += u64::from(job.pipeline);
            // Of sessions only their beginnings are arrivals: a step behind comes when the one before has its answer.
            if self.turn.users.is_none() || job.request == 0 {
                self.record.gaps.saw(job.begun_ns);
            }
        }
    }

    /// There is no connection for what is due, and there may be no other: it waits, and that is no lag of ours.
    pub(super) fn hold_back(&mut self, job: Job) {
        let now = now_ns();
        self.turned_to(&job, now);
        self.record.held_back += job.counted();
        self.backlog.push_back(Job { held_ns: now, ..job });
    }

    fn turned_to(&mut self, job: &Job, now: u64) {
        let lag_ns = now.saturating_sub(job.due_ns);
        self.lag_ns = self.lag_ns.max(lag_ns);
        if job.is_counted {
            self.record.lag.saturating_record_n(lag_ns, u64::from(job.pipeline));
        }
    }

    /// The measured time begins: what of the warm-up has no answer is told.
    pub(super) fn end_warm_up(&mut self) {
        self.warms_up = false;
        let waiting: u64 = self.backlog.iter().map(|job| u64::from(job.pipeline)).sum();
        self.record.left_waiting = waiting;
        self.record.left_of_warm_up = self.under_way + waiting;
    }

    /// Looks how many requests the connections hold: none of the times that are kept of them has a part in it.
    pub(super) fn look(&mut self, now: u64) {
        let Some(since_ns) = now.checked_sub(self.given.timeline.from_ns) else { return };
        let until = (since_ns / LOOK_NS + 1).min(self.record.looks.len() as u64) as usize;
        if self.looked >= until {
            return;
        }
        let held = self.connections.iter().map(|(_, connection)| connection.under_way() as u64).sum();
        // Who was held up has looked once for all the time since.
        self.record.looks[self.looked..until].fill(held);
        self.looked = until;
    }

    /// When the next look is: at any moment of the next time that has one, for arrivals may be as regular as looks.
    pub(super) fn next_look_ns(&mut self, now: u64) -> u64 {
        let begin_ns = self.given.timeline.from_ns % LOOK_NS;
        let last_ns = now.saturating_sub(begin_ns) / LOOK_NS * LOOK_NS + begin_ns;
        last_ns + LOOK_NS + self.moments.u64(..LOOK_NS)
    }

    /// Shows how things are to whoever looks.
    pub(super) fn show(&mut self) {
        let gauges = &*self.given.gauges;
        for (gauge, value) in [
            (&gauges.answered, self.answered),
            (&gauges.failed, self.failed),
            (&gauges.bytes, self.bytes),
            (&gauges.under_way, self.under_way),
            (&gauges.connections, self.connections.len() as u64),
        ] {
            gauge.store(value, Ordering::Relaxed);
        }
        gauges.lag_ns.fetch_max(std::mem::take(&mut self.lag_ns), Ordering::Relaxed);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::request::Requests;
    use crate::worker::{Assignment, Timeline};
    use crate::{Body, Load, Plan, Target, Url};

    /// A thread whose measured time is the second behind this one.
    const FROM_NS: u64 = SECOND_NS;

    fn worker() -> Worker {
        worker_at(1)
    }

    pub(in crate::worker) fn worker_at(port: u16) -> Worker {
        let url = Url::parse(&format!("http://127.0.0.1:{port}/")).expect("a URL");
        let target = Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Body::None };
        let mut plan = Plan::new(vec![target], Load::Closed { clients: 1 });
        (plan.warm_up, plan.time) = (Duration::from_secs(1), Duration::from_secs(1));
        let given = Assignment {
            timeline: Timeline::of(&plan, FROM_NS - SECOND_NS),
            requests: Arc::new(Requests::new(&plan).expect("an address")),
            plan: Arc::new(plan),
            setup: crate::users::setup([None].into_iter(), crate::plan::Handshakes::Keep),
            gauges: Arc::default(),
            bell: Arc::default(),
            index: 0,
            threads: 1,
            numbered: 0,
        };
        Worker::new(given).expect("a descriptor")
    }

    #[test]
    fn what_is_not_open_when_the_load_begins_is_counted() {
        let counts = |worker: &Worker| {
            let record = &worker.record;
            (record.first_wanted, record.first_opened, record.first_open)
        };
        let mut refused = worker();
        refused.open_first(3).expect("a poller");
        refused.keep_open(0).expect("a poller");
        assert_eq!(counts(&refused), (3, 0, 0));
        let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut worker = worker_at(server.local_addr().expect("its address").port());
        worker.open_first(3).expect("a poller");
        let mut accepted: Vec<_> = (0..3).map(|_| server.accept().expect("a connection").0).collect();
        accepted.truncate(1);
        worker.keep_open(now_ns() + SECOND_NS / 20).expect("a poller");
        assert_eq!(counts(&worker), (3, 3, 1));
    }

    #[test]
    fn no_number_is_given_twice_by_threads_of_a_plan() {
        let mut numbers = Vec::new();
        for index in 0..3 {
            let mut worker = worker();
            (worker.given.index, worker.given.threads) = (index, 3);
            let mut jobs = Vec::new();
            for pipeline in [1, 2, 1] {
                worker.line_up(Job { pipeline, ..Job::new(0) }, 0, &mut jobs);
            }
            numbers.extend(jobs.iter().map(|job| job.number));
        }
        numbers.sort_unstable();
        assert_eq!(numbers, Vec::from_iter(1..=12));
    }

    #[test]
    fn what_is_due_is_counted_in_its_tenth_of_a_second() {
        let mut worker = worker();
        for tenth in [0, 3, 3] {
            let due_ns = FROM_NS + tenth * BATCH_NS;
            worker.count_due(&Job { due_ns, is_counted: true, ..Job::new(0) });
        }
        worker.count_due(&Job { due_ns: FROM_NS - 1, ..Job::new(0) });
        let record = &mut worker.record;
        assert_eq!((record.due, record.due_in_time()), (3, 3));
        record.cut_to(3);
        assert_eq!((record.due, record.due_in_time()), (3, 1), "a run that was ended");
    }

    /// What is counted of answers, each by when it was due, its status, and when it came, in tenths of the measured time.
    #[track_caller]
    fn check(answers: &[(i64, u16, i64)], expected: [u64; 5]) {
        let mut worker = worker();
        let ns = |tenths: i64| FROM_NS.checked_add_signed(tenths * BATCH_NS as i64).expect("a time");
        for &(due, status, came) in answers {
            let (due_ns, now) = (ns(due), ns(came));
            let is_counted = worker.given.timeline.measures(due_ns);
            let job = Job { due_ns, begun_ns: due_ns, sent_ns: due_ns, is_counted, ..Job::new(0) };
            worker.count_begun(&job);
            worker.finish(job, status, now);
        }
        let record = &worker.record;
        let failed_in_time = record.batches.iter().map(|batch| batch.failed).sum();
        let (came, right) = (record.completed_in_time(), record.right_in_time());
        let statuses = record.errors_of(ErrorKind::Status);
        assert_eq!([came, right, failed_in_time, record.answered, statuses], expected, "{answers:?}");
    }

    #[test]
    fn what_came_in_time_is_counted_whenever_it_was_due_and_what_was_due_whenever_it_came() {
        check(&[], [0; 5]);
        // In the warm-up, and over before the measured time.
        check(&[(-9, 200, -1), (-9, 503, -1)], [0; 5]);
        // Due before it, and answered at its first moment, and at its last.
        check(&[(-4, 200, 0), (-4, 200, 9)], [2, 2, 0, 0, 0]);
        check(&[(-4, 503, 0), (-4, 400, 9)], [2, 0, 2, 0, 0]);
        check(&[(0, 200, 1), (9, 399, 9), (5, 400, 6)], [3, 2, 1, 3, 1]);
        // Due in it, and answered when it was over.
        check(&[(9, 200, 10), (9, 503, 12)], [0, 0, 0, 2, 1]);
        check(&[(-1, 200, 10)], [0; 5]);
    }
}
