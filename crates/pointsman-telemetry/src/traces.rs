//! Spans of exchanges on their way to a collector: a thread that sends what the event loops hand over, in requests of
//! OTLP's JSON (`ExportTraceServiceRequest`), and the bounded queue between.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::json::push_string;
use crate::metrics::Metrics;
use crate::queue::{Lines, Queue, Work};
use crate::style::Sample;

/// How long spans wait for others, so that there is not a request for each.
const GATHER_MAX: Duration = Duration::from_secs(1);

/// More bytes of spans than this go at once.
const BATCH_BYTES: usize = 256 * 1024;

/// How long it waits before it tries again, each time.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

/// What is traced, and as what.
#[derive(Clone, Debug)]
pub struct TraceSettings {
    /// How many of the exchanges that nobody has decided about are sampled.
    pub sample: Sample,
    /// The name of the service.
    pub service: String,
    /// The version of the program.
    pub version: &'static str,
    /// Ids are drawn from it; never the same in two processes.
    pub seed: u64,
}

/// Why a request to the collector failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFault {
    /// It may do another time.
    Again,
    /// The same will never do.
    Never,
}

/// Where spans go. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Traces(Arc<Sink>);

#[derive(Debug)]
struct Sink {
    sample: Sample,
    seed: u64,
    /// Recorders that have begun, of threads that have ended, too.
    begun: AtomicU64,
    queue: Arc<Queue>,
}

impl Traces {
    /// Starts the thread that gives requests to `export`, which may block.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn open(
        settings: TraceSettings,
        metrics: &Metrics,
        export: impl FnMut(&[u8]) -> Result<(), ExportFault> + Send + 'static,
    ) -> io::Result<Traces> {
        let queue = Arc::new(Queue::new(metrics.span_counters()));
        let head = head(&settings);
        let exporter = Exporter { head, export, queue: queue.clone() };
        // Not joined: a collector may hang for as long as it is waited for.
        drop(thread::Builder::new().name("traces".to_owned()).spawn(|| exporter.run())?);
        Ok(Traces(Arc::new(Sink {
            sample: settings.sample,
            seed: settings.seed,
            begun: AtomicU64::new(0),
            queue,
        })))
    }

    /// Sends what was handed over, once, and ends. Waits at most `max`, and no longer than until `cut` says so. Returns
    /// the spans that are still not sent.
    pub fn close(&self, max: Duration, cut: impl FnMut() -> bool) -> u64 {
        self.0.queue.close();
        self.0.queue.wait_for_end(max, cut)
    }

    pub(crate) fn sample(&self) -> Sample {
        self.0.sample
    }

    /// What a recorder draws its ids from; never the same twice.
    pub(crate) fn next_seed(&self) -> u64 {
        self.0.seed.wrapping_add(self.0.begun.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.0.queue
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// What stands before the spans of a request.
fn head(settings: &TraceSettings) -> Vec<u8> {
    let mut head =
        br#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"#
            .to_vec();
    push_string(&mut head, settings.service.as_bytes());
    head.extend_from_slice(br#"}}]},"scopeSpans":[{"scope":{"name":"pointsman","version":"#);
    push_string(&mut head, settings.version.as_bytes());
    head.extend_from_slice(br#"},"spans":["#);
    head
}

const TAIL: &[u8] = b"]}]}]}";

/// The thread's side.
struct Exporter<E> {
    head: Vec<u8>,
    export: E,
    queue: Arc<Queue>,
}

impl<E: FnMut(&[u8]) -> Result<(), ExportFault>> Exporter<E> {
    fn run(mut self) {
        loop {
            let Work { full, mut closed, .. } = self.queue.take(None);
            let mut batch = Batch::default();
            let until = Instant::now() + GATHER_MAX;
            let mut more = full;
            while !more.is_empty() {
                for lines in more {
                    batch.add(&lines);
                    self.queue.give_back(Lines { count: 0, ..lines });
                    if batch.spans.len() > BATCH_BYTES {
                        self.send(&mut batch);
                    }
                }
                if closed {
                    break;
                }
                let next = self.queue.take(Some(until));
                (more, closed) = (next.full, closed || next.closed);
            }
            self.send(&mut batch);
            // Nothing is taken in after closing, so nothing is left.
            if closed {
                return;
            }
        }
    }

    /// Sends what there is, or gives it up.
    fn send(&mut self, batch: &mut Batch) {
        if batch.count == 0 {
            return;
        }
        batch.spans.pop();
        let body = [&self.head, batch.spans.as_slice(), TAIL].concat();
        let has_gone = self.try_often(&body);
        let counters = &self.queue.counters;
        let counter = if has_gone { &counters.written_lines } else { &counters.dropped_lines };
        counter.fetch_add(batch.count, Ordering::Relaxed);
        self.queue.give_back(Lines { bytes: Vec::new(), count: batch.count });
        *batch = Batch::default();
    }

    fn try_often(&mut self, body: &[u8]) -> bool {
        let mut pauses = PAUSES.into_iter();
        loop {
            let Err(fault) = (self.export)(body) else { return true };
            self.queue.counters.write_errors.fetch_add(1, Ordering::Relaxed);
            let pause = pauses.next().filter(|_| fault == ExportFault::Again);
            if pause.is_none_or(|pause| self.queue.closes_within(pause)) {
                return false;
            }
        }
    }
}

impl<E> Drop for Exporter<E> {
    fn drop(&mut self) {
        self.queue.has_ended();
    }
}

/// Spans for one request, each with a comma behind.
#[derive(Default)]
struct Batch {
    spans: Vec<u8>,
    count: u64,
}

impl Batch {
    fn add(&mut self, lines: &Lines) {
        self.spans.extend_from_slice(&lines.bytes);
        self.count += lines.count;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn settings() -> TraceSettings {
        TraceSettings { sample: Sample::ALL, service: "a \"shop\"".to_owned(), version: "1", seed: 7 }
    }

    fn lines(text: &str, count: u64) -> Lines {
        Lines { bytes: text.as_bytes().to_vec(), count }
    }

    fn counts(metrics: &Metrics) -> [u64; 3] {
        let counters = metrics.span_counters();
        [&counters.written_lines, &counters.dropped_lines, &counters.write_errors]
            .map(|counter| counter.load(Ordering::Relaxed))
    }

    #[test]
    fn spans_go_together() {
        let metrics = Metrics::new(1, "0", std::time::UNIX_EPOCH);
        let (said, heard) = mpsc::channel();
        let export = move |body: &[u8]| {
            said.send(body.to_vec()).unwrap();
            Ok(())
        };
        let traces = Traces::open(settings(), &metrics, export).unwrap();
        traces.queue().hand_over(&mut lines("{\"a\":1},{\"a\":2},", 2));
        traces.queue().hand_over(&mut lines("{\"a\":3},", 1));
        assert_eq!(traces.close(Duration::MAX, || false), 0);
        let bodies: Vec<serde_json::Value> =
            heard.iter().map(|body| serde_json::from_slice(&body).expect("JSON")).collect();
        let of_service = &bodies[0]["resourceSpans"][0];
        let name = &of_service["resource"]["attributes"][0]["value"]["stringValue"];
        assert_eq!(name, "a \"shop\"");
        let spans = bodies.iter().map(|body| &body["resourceSpans"][0]["scopeSpans"][0]["spans"]);
        let all: Vec<_> = spans.flat_map(|spans| spans.as_array().expect("a list")).collect();
        assert_eq!(all.iter().map(|span| &span["a"]).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(counts(&metrics), [3, 0, 0]);
    }

    #[test]
    fn what_will_never_do_is_given_up_at_once() {
        let metrics = Metrics::new(1, "0", std::time::UNIX_EPOCH);
        let traces = Traces::open(settings(), &metrics, |_| Err(ExportFault::Never)).unwrap();
        traces.queue().hand_over(&mut lines("{},", 1));
        assert_eq!(traces.close(Duration::MAX, || false), 0);
        assert_eq!(counts(&metrics), [0, 1, 1]);
    }

    /// Who closes does not wait for a second try.
    #[test]
    fn at_the_end_there_is_one_try() {
        let metrics = Metrics::new(1, "0", std::time::UNIX_EPOCH);
        let traces = Traces::open(settings(), &metrics, |_| Err(ExportFault::Again)).unwrap();
        traces.queue().hand_over(&mut lines("{},", 1));
        assert_eq!(traces.close(Duration::MAX, || false), 0);
        let [sent, dropped, failures] = counts(&metrics);
        assert_eq!((sent, dropped), (0, 1));
        assert!((1..=2).contains(&failures));
    }
}
