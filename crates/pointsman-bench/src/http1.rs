//! Requests and answers of one connection in HTTP/1.1: in order, one behind the other.

use std::collections::VecDeque;

use pointsman_http::AnswerTo;

use crate::connection::{Job, Turn};
use crate::follow::{Answered, Follow, Malformed, are_last_words};
use crate::record::ErrorKind;

/// What is under way on a connection. It is used again for the next one.
#[derive(Debug, Default)]
pub(crate) struct Http1 {
    follow: Follow,
    /// In the order in which they are sent; those that are not sent yet stand behind the others.
    jobs: VecDeque<Job>,
    /// There is no answer behind those that have come.
    ends: bool,
    /// The server has said so in the last of them (RFC 9112 section 9.6).
    has_had_last: bool,
    /// An answer has come.
    has_answered: bool,
}

impl Http1 {
    /// Ready for another connection.
    pub(crate) fn reset(&mut self) {
        self.follow.reset();
        self.jobs.clear();
        (self.ends, self.has_had_last, self.has_answered) = (false, false, false);
    }

    /// Puts a request behind the others; [`Http1::write`] sends it.
    pub(crate) fn ask(&mut self, job: Job) {
        self.jobs.push_back(job);
    }

    /// Appends the requests that are not sent yet to the turn's output.
    pub(crate) fn write(&mut self, now_ns: u64, turn: &mut Turn) {
        for (place, job) in self.jobs.iter_mut().enumerate().filter(|(_, job)| job.sent_ns == 0) {
            job.sent_ns = now_ns;
            job.is_pipelined |= place > 0;
            match &mut turn.users {
                Some(users) => users.write(job, &turn.requests, &mut turn.out, &mut turn.random),
                None => {
                    let request = turn.requests.get(job.request as usize);
                    request.write(&mut turn.out, job.number, &mut turn.random);
                }
            }
        }
    }

    /// Takes what has come; answers that are whole are in the turn.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], now_ns: u64, turn: &mut Turn) -> Result<(), Malformed> {
        self.follow.keeps_cookies = turn.users.is_some();
        while !bytes.is_empty() {
            let Some(job) = self.jobs.front_mut() else {
                // The answer before was longer than it said: it is none. Where that one has been counted, what comes is;
                // unless it is a server's last words to who was idle for too long.
                match turn.done.pop() {
                    Some((job, _)) => turn.failed.push((job, ErrorKind::Malformed)),
                    None => turn.has_stray |= self.has_answered && !are_last_words(bytes),
                }
                return Err(Malformed);
            };
            if job.first_byte_ns == 0 {
                job.first_byte_ns = now_ns;
            }
            let is_head = turn.requests.get(job.request as usize).is_head;
            let to = if is_head { AnswerTo::Head } else { AnswerTo::Other };
            let (used, answered) = self.follow.feed(bytes, to)?;
            let payload = std::mem::take(&mut self.follow.payload);
            turn.payload += payload;
            job.payload_bytes += payload;
            bytes = &bytes[used..];
            if let Some(answered) = answered {
                self.has_answered = true;
                self.ends |= !answered.keeps_alive;
                self.has_had_last = self.ends;
                job.is_kept &= answered.keeps_alive;
                job.answer_bytes = answered.bytes;
                if let Some(users) = &mut turn.users {
                    users.hear(job, &turn.requests, self.follow.cookies.drain(..));
                }
                turn.done.extend(self.jobs.pop_front().map(|job| (job, answered.status)));
                if self.ends {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The server sends no more: that may be the end of an answer.
    pub(crate) fn end(&mut self, turn: &mut Turn) {
        self.ends = true;
        if let Some(answered) = self.follow.end() {
            let Answered { status, bytes: answer_bytes, .. } = answered;
            let ended = self.jobs.pop_front().map(|job| Job { is_kept: false, answer_bytes, ..job });
            turn.done.extend(ended.map(|job| (job, status)));
        }
    }

    /// Whether the server has said which answer is the last, and that one has come.
    pub(crate) fn has_had_last(&self) -> bool {
        self.has_had_last
    }

    /// Whether the server takes another request behind these.
    pub(crate) fn goes_on(&self) -> bool {
        !self.ends
    }

    /// Requests under way.
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// The one that is under way for longest.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        self.jobs.front().map(|job| job.begun_ns)
    }

    /// All that is under way, which will have no answer.
    pub(crate) fn give_up(&mut self) -> impl Iterator<Item = Job> {
        self.jobs.drain(..)
    }
}
