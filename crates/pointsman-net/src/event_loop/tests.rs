//! Tasks take turns, and other threads wake them.

use super::*;

fn event_loop() -> EventLoop {
    EventLoop::new().expect("descriptors")
}

/// Lets the others go first, so many times.
async fn step_back(times: usize) {
    let mut left = times;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn tasks_take_turns_and_an_aborted_one_ends() {
    let order = Rc::new(RefCell::new(Vec::new()));
    event_loop().run(async {
        let say = |what: &'static str, turns| {
            let order = order.clone();
            spawn(async move {
                for _ in 0..turns {
                    order.borrow_mut().push(what);
                    step_back(1).await;
                }
            })
        };
        let endless = say("endless", usize::MAX);
        let two = say("two", 2);
        while order.borrow().len() < 5 {
            step_back(1).await;
        }
        endless.abort();
        // It has ended by itself; another task may have its place.
        let other = say("other", 1);
        two.abort();
        step_back(2).await;
        drop(other);
    });
    let order = order.borrow();
    assert_eq!(order[..4], ["endless", "two", "endless", "two"]);
    assert_eq!(order.last(), Some(&"other"));
}

#[test]
fn a_task_that_aborts_itself_takes_nobody_elses_place() {
    for ends in [false, true] {
        let ran = Rc::new(Cell::new(false));
        let own = Rc::new(RefCell::new(None::<Task>));
        event_loop().run(async {
            let (itself, after) = (own.clone(), ran.clone());
            let task = spawn(async move {
                if let Some(task) = itself.take() {
                    task.abort();
                }
                spawn(async move { after.set(true) });
                if !ends {
                    std::future::pending::<()>().await;
                }
            });
            own.replace(Some(task));
            while !ran.get() {
                step_back(1).await;
            }
        });
    }
}

#[test]
fn another_thread_wakes_a_task() {
    wakes_from_another_thread(&event_loop());
    let event_loop = EventLoop::with_bell(Bell::new().expect("descriptors")).expect("descriptors");
    (0..100).for_each(|_| wakes_from_another_thread(&event_loop));
}

/// Nothing else ends a wait here, if it lasts: without the bell this takes longer than a minute.
#[test]
fn a_bell_ends_the_wait_at_once() {
    const ROUNDS: u32 = 4000;
    let event_loop = EventLoop::with_bell(Bell::new().expect("descriptors")).expect("descriptors");
    let began_us = process_us();
    let (waker_of, wakers) = std::sync::mpsc::channel::<Waker>();
    let ringing = std::thread::spawn(move || wakers.into_iter().for_each(Waker::wake));
    event_loop.run(async {
        for _ in 0..ROUNDS {
            let mut is_sent = false;
            std::future::poll_fn(|context| {
                if std::mem::replace(&mut is_sent, true) {
                    return Poll::Ready(());
                }
                waker_of.send(context.waker().clone()).expect("it listens");
                Poll::Pending
            })
            .await;
        }
    });
    drop(waker_of);
    ringing.join().expect("it ended");
    let us = process_us() - began_us;
    assert!(us < u64::from(ROUNDS) * WAIT_US_MAX / 2, "{us} µs");
}

fn wakes_from_another_thread(event_loop: &EventLoop) {
    let shared = Arc::new(Mutex::new((false, None::<Waker>)));
    let theirs = shared.clone();
    let thread = std::thread::spawn(move || {
        loop {
            let mut state = theirs.lock().expect("whole");
            if let Some(waker) = state.1.take() {
                state.0 = true;
                waker.wake();
                return;
            }
            drop(state);
            std::thread::yield_now();
        }
    });
    event_loop.run(std::future::poll_fn(|context| {
        let mut state = shared.lock().expect("whole");
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(context.waker().clone());
        Poll::Pending
    }));
    thread.join().expect("it ended");
}

#[test]
fn what_tasks_hold_is_dropped_with_the_loop_and_may_spawn() {
    struct Spawns(Rc<Cell<u32>>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            if self.0.get() < 3 {
                let next = Spawns(self.0.clone());
                spawn(async move { drop(next) });
            }
        }
    }
    let dropped = Rc::new(Cell::new(0));
    let event_loop = event_loop();
    event_loop.run(async {
        let held = Spawns(dropped.clone());
        spawn(async move {
            std::future::pending::<()>().await;
            drop(held);
        });
    });
    assert_eq!(dropped.get(), 0);
    drop(event_loop);
    assert_eq!(dropped.get(), 3);
}
