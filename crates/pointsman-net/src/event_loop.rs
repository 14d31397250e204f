//! The event loop under each thread.

use std::future::Future;
use std::io;

use tokio::runtime::{Builder, LocalRuntime};

/// How many tasks run between two looks at the sockets. tokio's default of 61 costs a system call
/// each time; at 1000 a full thread asks the kernel once for each batch that it has finished.
const TASKS_BETWEEN_POLLS: u32 = 1000;

/// One thread's event loop. It stays on the thread that made it.
#[derive(Debug)]
pub struct EventLoop {
    runtime: LocalRuntime,
}

impl EventLoop {
    /// A new event loop for this thread.
    pub fn new() -> io::Result<EventLoop> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .event_interval(TASKS_BETWEEN_POLLS)
            .build_local(Default::default())?;
        Ok(EventLoop { runtime })
    }

    /// Runs `future` and everything it spawns until it ends.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

/// Something that runs beside its spawner on the same thread.
#[derive(Debug)]
pub struct Task(tokio::task::JoinHandle<()>);

impl Task {
    /// Ends it where it waits.
    pub fn abort(&self) {
        self.0.abort();
    }
}

/// Runs `future` beside the caller on this thread's event loop.
pub fn spawn(future: impl Future<Output = ()> + 'static) -> Task {
    Task(tokio::task::spawn_local(future))
}
