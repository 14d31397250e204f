//! What happens while the demo runs, in one queue: what the switch logs and says, and signals.

use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel as unbounded, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use pointsman_net::{EventLoop, Signals, Timers};

use super::Stop;

/// Something that happened.
#[derive(Debug)]
pub(super) enum Event {
    /// A line of the switch's access log.
    Logged(String),
    /// A line of the switch's standard error.
    Said(String),
    /// The switch has ended.
    Ended,
    /// Ctrl-C, or another signal that asks for the end.
    Interrupted,
}

pub(super) type Teller = SyncSender<Event>;

/// Events that may wait. A switch that logs faster than a terminal scrolls waits, and then drops lines.
const EVENTS_MAX: usize = 1024;

/// How long anything may take that usually takes milliseconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The receiving end of the queue.
pub(super) struct Events(Receiver<Event>);

pub(super) fn channel() -> (Teller, Events) {
    let (teller, events) = sync_channel(EVENTS_MAX);
    (teller, Events(events))
}

impl Events {
    /// The next event, however long it takes.
    pub(super) fn next(&mut self) -> Result<Event, Stop> {
        // Signals are listened for to the end, so a teller is always there.
        self.0.recv().map_err(|_| Stop::Interrupted)
    }

    /// The first thing that `find` makes of an event, within [`PATIENCE`]. An end or an interrupt stops the
    /// wait; other events are passed over.
    pub(super) fn wait_for<T>(
        &mut self,
        what: &str,
        mut find: impl FnMut(&Event) -> Option<T>,
    ) -> Result<T, Stop> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.0.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Event::Interrupted) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(Stop::Interrupted);
                }
                Ok(Event::Ended) => return Err(Stop::Failed(format!("the switch ended before {what}"))),
                Ok(event) => {
                    if let Some(found) = find(&event) {
                        return Ok(found);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Stop::Failed(format!("{what} did not come within {} s", PATIENCE.as_secs())));
                }
            }
        }
    }
}

/// Tells of every line of an output, on a thread of its own, to its end.
pub(super) fn tell_lines(
    output: impl Read + Send + 'static,
    teller: Teller,
    event: fn(String) -> Event,
    at_end: Option<Event>,
) {
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if teller.send(event(line)).is_err() {
                return;
            }
        }
        if let Some(event) = at_end {
            // Nobody waits any more when the demo itself has ended.
            drop(teller.send(event));
        }
    });
}

/// From now on the signals that ask for the end are events, so that everything is cleared away first.
pub(super) fn listen_for_signals(teller: Teller) -> Result<(), Stop> {
    let (started, starts) = unbounded();
    thread::spawn(move || {
        let listening = EventLoop::new().and_then(|event_loop| Ok((event_loop, Signals::listen()?)));
        let (event_loop, signals) = match listening {
            Ok(listening) => listening,
            Err(error) => return drop(started.send(Err(error))),
        };
        drop(started.send(Ok(())));
        event_loop.run(Timers::default().run(|| match signals.take() {
            Some(_) if teller.send(Event::Interrupted).is_err() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }));
    });
    let listening = starts.recv().unwrap_or_else(|_| Err(std::io::Error::other("its thread ended")));
    listening.map_err(Stop::because("cannot listen for signals"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_events() {
        let (teller, mut events) = channel();
        tell_lines(&b"one\ntwo\n"[..], teller, Event::Said, Some(Event::Ended));
        let second = events.wait_for("two", |event| match event {
            Event::Said(line) if line == "two" => Some(line.clone()),
            _ => None,
        });
        assert_eq!(second.expect("it comes"), "two");
        assert!(
            matches!(events.wait_for("three", |_| Some(())), Err(Stop::Failed(message)) if message.contains("three"))
        );
        assert!(matches!(events.next(), Err(Stop::Interrupted)));
    }
}
