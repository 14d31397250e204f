//! Requests that are sent once more, because a server has said that it did not look at them.

use super::Worker;
use crate::connection::Job;
use crate::record::ErrorKind;

impl Worker {
    /// A request that a server did not look at, by its own words, is sent again, once (RFC 9113 section 8.7). It is still
    /// late when it would have been.
    pub(super) fn send_refused(&mut self, job: Job, now: u64) {
        if job.is_again {
            return self.fail(job, ErrorKind::Refused, now);
        }
        let job = self.again(Job { is_again: true, ..job });
        let waits = self.assign(job);
        self.to_send_again.extend(waits);
    }

    fn again(&mut self, job: Job) -> Job {
        self.record.sent_again += u64::from(job.is_counted);
        Job { sent_ns: 0, first_byte_ns: 0, payload_bytes: 0, ..job }
    }

    /// Opens another connection for the rest of a pipeline.
    pub(super) fn send_again(&mut self, origin: usize, jobs: &mut Vec<Job>, now: u64) {
        for job in &mut *jobs {
            *job = self.again(*job);
        }
        self.open(origin, jobs, now);
        jobs.clear();
    }

    /// Sends what waits for a connection, where there is room by now. False: there is not enough.
    pub(super) fn serve_again(&mut self) -> bool {
        while let Some(job) = self.to_send_again.pop_front() {
            if let Some(job) = self.assign(job) {
                self.to_send_again.push_front(job);
                return false;
            }
        }
        true
    }

    /// Ends what waits for a connection for too long.
    pub(super) fn end_late_again(&mut self, begun_by_ns: u64, now: u64) {
        while let Some(at) = self.to_send_again.iter().position(|job| job.begun_ns <= begun_by_ns) {
            let late = self.to_send_again.remove(at);
            late.into_iter().for_each(|job| self.fail(job, ErrorKind::Timeout, now));
        }
    }
}
