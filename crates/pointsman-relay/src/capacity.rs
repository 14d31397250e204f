//! How many requests a server may have at a time, and who waits for one of them to end.
//!
//! Only servers with `connections_max` are counted here. The count is exact over all threads: a place is taken by one
//! compare-and-swap, and given back by a guard ([`crate::in_flight::InFlight`]). Who waits stands in the queue of the
//! pool, which is locked only while somebody does. A place that is given back goes to the first who wants it, without
//! being free in between: nobody who comes later gets it.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use pointsman_balance::WaitingLine;
use pointsman_telemetry::OwnLines;

/// The places of a server.
#[derive(Debug, Default)]
pub(crate) struct Capacity(OwnLines<Places>);

#[derive(Debug, Default)]
struct Places {
    taken: AtomicU32,
    /// 0: as many as there are.
    max: AtomicU32,
}

impl Capacity {
    /// How many places there are from now on; 0: no bound. What is taken beyond that is given back as it ends.
    pub(crate) fn set_max(&self, max: u32) {
        self.0.max.store(max, Ordering::SeqCst);
    }

    /// Whether nobody gets a place now.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        is_full(self.0.taken.load(Ordering::SeqCst), self.0.max.load(Ordering::SeqCst))
    }

    /// Takes a place. False where none is free.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        let max = self.0.max.load(Ordering::SeqCst);
        let more = |taken| (!is_full(taken, max)).then_some(taken + 1);
        self.0.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    fn give_back(&self) {
        let before = self.0.taken.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a place is given back that nobody had");
    }

    /// Whether more are taken than there are: a reload has made them fewer.
    fn is_over(&self) -> bool {
        let max = self.0.max.load(Ordering::SeqCst);
        max != 0 && self.0.taken.load(Ordering::SeqCst) > max
    }
}

fn is_full(taken: u32, max: u32) -> bool {
    max != 0 && taken >= max
}

/// A server, as the line knows it.
#[derive(Clone, Debug)]
struct Wanted(Arc<Capacity>);

impl PartialEq for Wanted {
    fn eq(&self, other: &Wanted) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Those who wait for a place at a server of a pool, on all threads.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// How many they are: looked at by whoever gives a place back.
    waiting: OwnLines<AtomicUsize>,
    line: Mutex<WaitingLine<Wanted, Waker>>,
}

/// What came of joining a queue.
pub(crate) enum Joined {
    /// There was a place at this server meanwhile.
    Place(Arc<Capacity>),
    Waits(Ticket),
    /// There are as many as may wait.
    QueueFull,
}

/// A place in the queue, for as long as it is waited.
#[derive(Debug)]
pub(crate) struct Ticket {
    queue: Arc<Queue>,
    number: u64,
}

impl Queue {
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Gives back a place that was taken, to whoever waits for it.
    #[inline]
    pub(crate) fn give_back(&self, server: &Arc<Capacity>) {
        if self.len() > 0 {
            return self.pass_on(server);
        }
        server.give_back();
        // Who has joined since may have looked for a place before there was this one.
        if self.len() > 0 {
            self.serve(server);
        }
    }

    /// Waits for a place at one of these servers, behind all others who do, if they are fewer than `max`.
    pub(crate) fn join(self: &Arc<Self>, wants: Vec<Arc<Capacity>>, max: u32) -> Joined {
        let mut line = self.line();
        if line.len() >= max as usize {
            return Joined::QueueFull;
        }
        // Said before it is looked: whoever gives a place back meanwhile either sees this, or is seen.
        self.waiting.store(line.len() + 1, Ordering::SeqCst);
        let mut woken = Vec::new();
        for server in wants.iter().filter(|server| !server.is_full()) {
            self.serve_in(&mut line, server, &mut woken);
            if server.take() {
                let server = server.clone();
                self.leave(line, woken);
                return Joined::Place(server);
            }
        }
        let number = line.join(wants.into_iter().map(Wanted).collect(), Waker::noop().clone());
        self.leave(line, woken);
        Joined::Waits(Ticket { queue: self.clone(), number })
    }

    /// Gives those who wait what is free at a server: it may have more places, or be wanted by more.
    pub(crate) fn serve(&self, server: &Arc<Capacity>) {
        let (mut line, mut woken) = (self.line(), Vec::new());
        self.serve_in(&mut line, server, &mut woken);
        self.leave(line, woken);
    }

    fn serve_in(
        &self,
        line: &mut WaitingLine<Wanted, Waker>,
        server: &Arc<Capacity>,
        woken: &mut Vec<Waker>,
    ) {
        let wanted = Wanted(server.clone());
        while line.is_wanted(&wanted) && server.take() {
            woken.extend(line.give(&wanted));
        }
    }

    /// Hands a taken place on to the first who wants it. It is free only where nobody does.
    fn pass_on(&self, server: &Arc<Capacity>) {
        let mut line = self.line();
        let next = if server.is_over() { None } else { line.give(&Wanted(server.clone())) };
        if next.is_none() {
            server.give_back();
        }
        self.leave(line, next.into_iter().collect());
    }

    /// Nobody panics while holding it, and the line is whole at any time.
    fn line(&self) -> MutexGuard<'_, WaitingLine<Wanted, Waker>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, line: MutexGuard<'_, WaitingLine<Wanted, Waker>>, woken: Vec<Waker>) {
        self.waiting.store(line.len(), Ordering::SeqCst);
        drop(line);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Ticket {
    /// Waits for the turn, and tells at which server there is a place, which is taken then. To be asked no more behind
    /// that.
    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Poll<Arc<Capacity>> {
        match self.queue.line().take(self.number, context.waker().clone()) {
            Some(Wanted(server)) => Poll::Ready(server),
            None => Poll::Pending,
        }
    }

    /// Waits for these servers from now on, and keeps its turn.
    pub(crate) fn change(&mut self, wants: Vec<Arc<Capacity>>) {
        let (mut line, mut woken) = (self.queue.line(), Vec::new());
        line.change(self.number, wants.iter().cloned().map(Wanted).collect());
        for server in wants.iter().filter(|server| !server.is_full()) {
            self.queue.serve_in(&mut line, server, &mut woken);
        }
        self.queue.leave(line, woken);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut line = self.queue.line();
        let given = line.leave(self.number);
        self.queue.leave(line, Vec::new());
        if let Some(Wanted(server)) = given {
            self.queue.give_back(&server);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::task::Wake;
    use std::thread::{Thread, park_timeout};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::chance::Chance;

    fn capacity(max: u32) -> Arc<Capacity> {
        let capacity = Arc::new(Capacity::default());
        capacity.set_max(max);
        capacity
    }

    fn waits(joined: Joined) -> Ticket {
        match joined {
            Joined::Waits(ticket) => ticket,
            Joined::Place(_) => panic!("there is a place"),
            Joined::QueueFull => panic!("the queue is full"),
        }
    }

    fn poll(ticket: &mut Ticket) -> Poll<Arc<Capacity>> {
        ticket.poll(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn places_are_counted_and_passed_on_in_turn() {
        let (server, queue) = (capacity(2), Arc::new(Queue::default()));
        assert!(server.take() && server.take() && !server.take());
        let [mut first, mut second] = [(); 2].map(|()| waits(queue.join(vec![server.clone()], 2)));
        assert!(matches!(queue.join(vec![server.clone()], 2), Joined::QueueFull));
        queue.give_back(&server);
        assert!(server.is_full(), "it is passed on, and never free");
        assert!(poll(&mut second).is_pending() && poll(&mut first).is_ready());
        queue.give_back(&server);
        // Who leaves with a place that it was given, and never knew, passes it on.
        drop(second);
        assert_eq!((queue.len(), server.is_full()), (0, false));
        assert!(server.take() && !server.take(), "one of the two is still the first one's");
    }

    #[test]
    fn fewer_places_are_left_as_requests_end_and_more_are_taken_at_once() {
        let (server, queue) = (capacity(3), Arc::new(Queue::default()));
        assert!((0..3).all(|_| server.take()));
        server.set_max(1);
        let mut ticket = waits(queue.join(vec![server.clone()], 9));
        queue.give_back(&server);
        queue.give_back(&server);
        assert!(poll(&mut ticket).is_pending(), "there is one, and it is taken");
        server.set_max(2);
        queue.serve(&server);
        assert!(poll(&mut ticket).is_ready());
        server.set_max(0);
        assert!((0..100).all(|_| server.take()), "no bound");
    }

    #[test]
    fn whoever_wants_another_server_keeps_its_turn() {
        let ([one, other], queue) = ([capacity(1), capacity(1)], Arc::new(Queue::default()));
        assert!(one.take() && other.take());
        let mut first = waits(queue.join(vec![one.clone()], 9));
        let mut second = waits(queue.join(vec![other.clone(), one.clone()], 9));
        first.change(vec![other.clone()]);
        queue.give_back(&other);
        assert!(poll(&mut second).is_pending() && poll(&mut first).is_ready());
        queue.give_back(&one);
        assert!(poll(&mut second).is_ready());
    }

    /// Wakes a thread.
    struct Unpark(Thread, AtomicBool);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.1.store(true, Ordering::SeqCst);
            self.0.unpark();
        }
    }

    /// Threads take places, wait for them, give up waiting, and change how many there are: there are never more in
    /// use than the largest bound, all come back, and nobody who waits is forgotten.
    #[test]
    fn no_place_is_lost_and_no_wake_either() {
        const MAX: u32 = 3;
        let servers = [capacity(MAX), capacity(MAX)];
        let used = [AtomicU32::new(0), AtomicU32::new(0)];
        let queue = Arc::new(Queue::default());
        let served = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (servers, used, queue, served) = (&servers, &used, &queue, &served);
                scope.spawn(move || {
                    let chance = Chance::new(thread);
                    let unpark = Arc::new(Unpark(std::thread::current(), AtomicBool::new(false)));
                    for _ in 0..4000 {
                        let draw = chance.draw();
                        let wants = match draw % 3 {
                            0 => servers.to_vec(),
                            one => vec![servers[one as usize - 1].clone()],
                        };
                        if draw >> 8 & 63 == 0 {
                            let server = &servers[(draw >> 16 & 1) as usize];
                            server.set_max((draw >> 17) as u32 % MAX + 1);
                            queue.serve(server);
                        }
                        let gives_up = draw >> 24 & 7 == 0;
                        let Some(server) = place(queue, &wants, gives_up, &unpark) else { continue };
                        let at = servers.iter().position(|known| Arc::ptr_eq(known, &server));
                        let used = &used[at.expect("one of them")];
                        assert!(used.fetch_add(1, Ordering::SeqCst) < MAX);
                        if draw >> 32 & 3 == 0 {
                            std::thread::yield_now();
                        }
                        used.fetch_sub(1, Ordering::SeqCst);
                        queue.give_back(&server);
                        served.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert!(served.load(Ordering::Relaxed) > 20_000);
        assert_eq!(queue.len(), 0);
        for server in servers {
            server.set_max(MAX);
            assert!((0..MAX).all(|_| server.take()) && !server.take(), "all places are there again");
        }
    }

    fn place(
        queue: &Arc<Queue>,
        wants: &[Arc<Capacity>],
        gives_up: bool,
        unpark: &Arc<Unpark>,
    ) -> Option<Arc<Capacity>> {
        if let Some(server) = wants.iter().find(|server| server.take()) {
            return Some(server.clone());
        }
        let mut ticket = match queue.join(wants.to_vec(), 1000) {
            Joined::Place(server) => return Some(server),
            Joined::Waits(ticket) => ticket,
            Joined::QueueFull => panic!("nobody else is there"),
        };
        let waker = Waker::from(unpark.clone());
        loop {
            unpark.1.store(false, Ordering::SeqCst);
            if let Poll::Ready(server) = ticket.poll(&Context::from_waker(&waker)) {
                return Some(server);
            }
            if gives_up {
                return None;
            }
            let until = Instant::now() + Duration::from_secs(20);
            while !unpark.1.load(Ordering::SeqCst) {
                // One that was woken before it slept does not sleep the next time.
                let left = until.saturating_duration_since(Instant::now());
                assert!(!left.is_zero(), "nobody has woken who waits");
                park_timeout(left);
            }
        }
    }
}
