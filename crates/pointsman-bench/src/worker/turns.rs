//! Whose turn it is: who is heard of, and who was not read to the end.

use std::io;

use super::Worker;
use crate::poller::Ready;

/// Of those that were not read to the end so many have a turn before the kernel is asked again what has come: however many send
/// without end, the others wait for no more of them than that.
const UNREAD_A_ROUND: usize = 4;

impl Worker {
    /// Waits for what is ready, until something is due; not at all where there is something to read anyhow. Says until when it
    /// waited.
    pub(super) fn wait(&mut self, now: u64, due_ns: u64, ready: &mut Vec<Ready>) -> io::Result<u64> {
        let due_ns = if self.unread.is_empty() { due_ns } else { now };
        self.poller.wait(now, due_ns, ready)?;
        for edge in ready.iter_mut().filter(|edge| self.poller.is_of_now(edge)) {
            // Who waits for a turn to read is not given others by edges.
            edge.readable &= !self.connections.get(edge.number).is_some_and(|waiting| waiting.is_unread);
        }
        for next in self.unread.drain(..self.unread.len().min(UNREAD_A_ROUND)) {
            if self.poller.is_of_now(&next)
                && let Some(connection) = self.connections.get_mut(next.number)
            {
                connection.is_unread = false;
                ready.push(next);
            }
        }
        Ok(due_ns)
    }

    /// There may be more to read there, which no edge tells. It waits for its turn once: whoever is read does not wait.
    pub(super) fn turn_again(&mut self, ready: Ready) {
        self.connections[ready.number].is_unread = true;
        self.unread.push_back(ready.unread());
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::super::account::tests::worker_at;
    use crate::clock::now_ns;
    use crate::connection::Job;

    /// Edges come all the time while somebody sends.
    #[test]
    fn who_sends_without_end_has_one_turn_a_round() {
        const TURN_BYTES: u64 = 256 * 1024;
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut worker = worker_at(listener.local_addr().expect("its address").port());
        let job = Job::new(0);
        worker.count_begun(&job);
        worker.open(0, &[job], now_ns());
        let (mut peer, _) = listener.accept().expect("a connection");
        std::thread::spawn(move || {
            let piece = [b'x'; 100_000];
            let mut sent = peer.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while sent.is_ok() {
                sent = peer.write_all(&piece);
            }
            peer.read(&mut [0])
        });
        let mut ready = Vec::new();
        let mut rounds = 0;
        while worker.bytes < 200 * TURN_BYTES {
            let (before, now) = (worker.bytes, now_ns());
            worker.wait(now, now + 1_000_000_000, &mut ready).expect("a poller");
            ready.drain(..).for_each(|ready| worker.on_ready(ready, now));
            assert!(worker.bytes - before <= TURN_BYTES, "{} in round {rounds}", worker.bytes - before);
            assert!(worker.unread.len() <= 1, "{}", worker.unread.len());
            rounds += 1;
        }
        assert!(rounds >= 200, "{rounds}");
    }
}
