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
            // Behind the answer that is the last none comes to what is left.
            let Some(job) = self.jobs.front_mut().filter(|_| !self.ends) else {
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
                self.answered(answered, turn);
            }
        }
        Ok(())
    }

    /// The oldest has its answer.
    fn answered(&mut self, answered: Answered, turn: &mut Turn) {
        let Some(mut job) = self.jobs.pop_front() else { return };
        job.is_kept &= answered.keeps_alive;
        job.answer_bytes = answered.bytes;
        if let Some(users) = &mut turn.users {
            users.hear(&job, &turn.requests, self.follow.cookies.drain(..));
        }
        turn.done.push((job, answered.status));
    }

    /// The server sends no more: that may be the end of an answer.
    pub(crate) fn end(&mut self, turn: &mut Turn) {
        self.ends = true;
        if let Some(answered) = self.follow.end() {
            self.answered(answered, turn);
            // An answer that goes on to the end is the last: none could follow.
            self.has_had_last = true;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::request::Requests;
    use crate::{Body, Load, Plan, Target, Url};

    fn turn() -> Turn {
        let url = Url::parse("http://127.0.0.1:9/").expect("a URL");
        let target = Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Body::None };
        let plan = Plan::new(vec![target], Load::Closed { clients: 1 });
        Turn::new(Arc::new(Requests::new(&plan).expect("good")), fastrand::Rng::with_seed(1))
    }

    /// A pipeline of three requests.
    fn piped(turn: &mut Turn) -> Http1 {
        let mut http1 = Http1::default();
        (0..3).for_each(|_| http1.ask(Job::new(0)));
        http1.write(1, turn);
        http1
    }

    /// A pipeline of three is answered so, in pieces of every size: as many answers are right, as many are malformed, the
    /// rest is left, and whether what comes may stand there.
    #[track_caller]
    fn check(came: &str, (right, malformed): (usize, usize), is_good: bool) {
        for size in 1..=came.len() {
            let mut turn = turn();
            let mut http1 = piped(&mut turn);
            let mut pieces = came.as_bytes().chunks(size);
            let fed = pieces.try_for_each(|piece| http1.feed(piece, 2, &mut turn));
            assert_eq!(fed.is_ok(), is_good, "{came} in pieces of {size}");
            assert_eq!(
                (turn.done.len(), turn.failed.len()),
                (right, malformed),
                "{came} in pieces of {size}"
            );
            assert!(turn.failed.iter().all(|(_, kind)| *kind == ErrorKind::Malformed) && !turn.has_stray);
            let left: Vec<Job> = http1.give_up().collect();
            assert_eq!(left.len(), 3 - right - malformed, "{came} in pieces of {size}");
            assert!(left.iter().all(|job| job.first_byte_ns == 0 || !http1.has_had_last()), "{left:?}");
        }
    }

    #[test]
    fn an_answer_is_as_long_as_it_says_whatever_becomes_of_its_connection() {
        let more = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let last = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
        let to_its_end = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok";
        for (came, expected, is_good) in [
            (more.to_owned(), (1, 0), true),
            (last.to_owned(), (1, 0), true),
            (format!("{more}{last}"), (2, 0), true),
            (format!("{last}<p>the rest of the page"), (0, 1), false),
            (format!("{more}{last}<p>"), (1, 1), false),
            // It has said that it answers no more.
            (format!("{last}{more}"), (0, 1), false),
            (format!("{more}{more}{more}"), (3, 0), true),
            (format!("{more}{more}{more}<p>"), (2, 1), false),
            (format!("{more}{more}{last}<p>"), (2, 1), false),
            (format!("{more}{to_its_end}{last}"), (1, 0), true),
        ] {
            check(&came, expected, is_good);
        }
    }

    /// What stands in a pipeline behind an answer that goes on to the end of its connection is left to another one; behind an
    /// end without such an answer it is not.
    #[test]
    fn an_answer_to_the_end_of_its_connection_is_the_last() {
        for (came, right, is_left) in [
            ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok", 1, true),
            ("HTTP/1.0 200 OK\r\n\r\nok", 1, true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 1, false),
            ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok", 0, false),
            ("HTTP/1.1 200 OK\r\n", 0, false),
        ] {
            let mut turn = turn();
            let mut http1 = piped(&mut turn);
            http1.feed(came.as_bytes(), 2, &mut turn).expect("so far it is good");
            http1.end(&mut turn);
            assert_eq!((turn.done.len(), http1.has_had_last()), (right, is_left), "{came}");
            assert_eq!((http1.goes_on(), http1.len()), (false, 3 - right), "{came}");
        }
    }
}
