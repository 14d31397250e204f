//! One thread's ear: counts each event, and writes the lines of the access log and the spans of traces.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::access_log::AccessLog;
use crate::common_line::push_common_line;
use crate::event::{Counts, Event, Exchange};
use crate::exchange_line::push_line;
use crate::family::{ListenerSlot, RuleMetrics};
use crate::metrics::Metrics;
use crate::outcomes::{Outcome, Outcomes, STATUS};
use crate::outliers::Lookout;
use crate::queue::{Lines, Queue};
use crate::span::push_spans;
use crate::style::{LogForm, LogStyle, Sampler};
use crate::timestamp::{Timestamps, WallBase};
use crate::trace::{TraceContext, Tracer};
use crate::traces::Traces;

/// Lines are handed over when there are more bytes of them than this.
const HAND_OVER_BYTES: usize = 32 * 1024;

/// Hears the events of one thread. It belongs to that thread, which the compiler sees to: it can be sent to
/// another one, but not shared with it.
#[derive(Debug)]
pub struct Recorder {
    thread: usize,
    metrics: Arc<Metrics>,
    log: Option<RefCell<LineBuffer>>,
    traces: Option<RefCell<SpanBuffer>>,
    lookout: Lookout,
    /// Whether somebody looks at the requests that stand out.
    is_watched: Cell<bool>,
}

/// Where a recorder writes what it hears, besides counting.
#[derive(Clone, Debug, Default)]
pub struct Sinks {
    /// Lines.
    pub log: Option<AccessLog>,
    /// Spans.
    pub traces: Option<Traces>,
}

#[derive(Debug)]
struct LineBuffer {
    lines: Lines,
    style: LogStyle,
    sampler: Sampler,
    timestamps: Timestamps,
    queue: Arc<Queue>,
}

#[derive(Debug)]
struct SpanBuffer {
    spans: Lines,
    tracer: Tracer,
    base: WallBase,
    queue: Arc<Queue>,
}

impl Recorder {
    pub(crate) fn new(thread: usize, metrics: Arc<Metrics>, sinks: &Sinks, base: WallBase) -> Recorder {
        let log = sinks.log.as_ref().map(|log| RefCell::new(LineBuffer::new(log, thread, base)));
        let traces = sinks.traces.as_ref().map(|traces| RefCell::new(SpanBuffer::new(traces, base)));
        // A cell makes the type unshareable even without a log, which the counters rely on.
        let lookout = Lookout::new(metrics.shelf(thread));
        Recorder { thread, metrics, log, traces, lookout, is_watched: Cell::new(false) }
    }

    /// Counts an event. With the access log off this is a few additions, without allocation or clock.
    #[inline]
    pub fn hear(&self, event: &Event<'_>) {
        let thread = self.thread;
        match *event {
            Event::ConnectionOpened(listener) => listener.slots.of(thread).opened.add(1),
            Event::ConnectionClosed(listener) => listener.slots.of(thread).closed.add(1),
            Event::HandedOver(listener) => listener.slots.of(thread).handed_over.add(1),
            Event::TunnelOpened(listener) => listener.slots.of(thread).tunnels_opened.add(1),
            Event::TunnelClosed(listener) => listener.slots.of(thread).tunnels_closed.add(1),
            Event::WaitBegan(listener) => listener.slots.of(thread).waits_began.add(1),
            Event::WaitEnded(listener) => listener.slots.of(thread).waits_ended.add(1),
            Event::Held(listener, bytes) => listener.slots.of(thread).held_bytes.add(bytes),
            Event::Released(listener, bytes) => listener.slots.of(thread).released_bytes.add(bytes),
            Event::Handshake(listener, handshake) => {
                let slot = listener.slots.of(thread);
                slot.handshakes[handshake.session as usize].add(1);
                slot.tls_versions[handshake.version as usize].add(1);
                slot.tls_groups[handshake.group as usize].add(1);
            }
            Event::HandshakeFailed(listener, why) => {
                listener.slots.of(thread).handshake_failures[why as usize].add(1);
            }
            Event::NoRequest(exchange) => self.log(exchange),
            Event::Refused(listener, why) => listener.slots.of(thread).refusals[why as usize].add(1),
            Event::ServerFailed(server, how) => server.slots.of(thread).failures[how as usize].add(1),
            Event::Retried(server) => server.slots.of(thread).retries.add(1),
            Event::Mirrored(listener, what) => listener.slots.of(thread).mirrored[what as usize].add(1),
            Event::RetryRefused(server) => server.slots.of(thread).retries_refused.add(1),
            Event::Hedged(server, what) => server.slots.of(thread).hedges[what as usize].add(1),
            Event::IdleAdded(server) => server.slots.of(thread).idle_added.add(1),
            Event::IdleRemoved(server) => server.slots.of(thread).idle_removed.add(1),
            Event::Shaped(class, bytes) => class.slots.of(thread).bytes.add(bytes.into()),
            Event::ShapedWait(class) => class.slots.of(thread).waits.add(1),
            Event::ShapedWaitEnded(class) => class.slots.of(thread).waits_ended.add(1),
            Event::Limited(limit) => limit.slots.of(thread).limited.add(1),
            Event::Decided(rule) => rule.hit(thread),
            Event::Done(exchange) => self.done(exchange),
            Event::Counted(counts) => self.count(counts),
        }
    }

    /// Whether lines or spans are written, or somebody looks: only then are the facts of [`crate::Exchange`] wanted that no
    /// counter needs.
    #[inline]
    pub fn wants_facts(&self) -> bool {
        self.is_writing() || self.is_watched.get()
    }

    /// Whether [`Event::Done`] is to tell of this exchange: lines or spans are written, or it stands out. Otherwise
    /// [`Event::Counted`] says all that is wanted.
    #[inline]
    pub fn wants_exchange(&self, counts: &Counts<'_>) -> bool {
        self.is_writing() || self.lookout.sees(counts)
    }

    #[inline]
    fn is_writing(&self) -> bool {
        self.log.is_some() || self.traces.is_some()
    }

    /// Whether lines are written.
    #[inline]
    pub fn is_logging(&self) -> bool {
        self.log.is_some()
    }

    /// Whether exchanges are traced.
    #[inline]
    pub fn is_tracing(&self) -> bool {
        self.traces.is_some()
    }

    /// What an exchange has of the trace that the field `traceparent` of its request names, or of a new one; nothing
    /// where none is traced. Whether it is sampled is up to the client only where it is believed.
    pub fn begin_trace(&self, traceparent: Option<&[u8]>, is_believed: bool) -> Option<TraceContext> {
        self.traces.as_ref().map(|traces| traces.borrow_mut().tracer.begin(traceparent, is_believed))
    }

    /// Whether lines have the fields `Referer` and `User-Agent`.
    pub fn logs_agent(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.borrow().style.wants_agent())
    }

    /// Puts what stood out where others read it, and looks whether anybody does. For the thread's tick.
    pub fn tick(&self, now_us: u64) {
        self.lookout.tick(now_us);
        self.is_watched.set(self.metrics.is_watched(now_us));
    }

    /// Hands over what is there. For the thread's tick, so that a quiet log is not a late one.
    pub fn flush(&self) {
        if let Some(log) = &self.log {
            let LineBuffer { lines, queue, .. } = &mut *log.borrow_mut();
            hand_over(lines, queue);
        }
        if let Some(traces) = &self.traces {
            let SpanBuffer { spans, queue, .. } = &mut *traces.borrow_mut();
            hand_over(spans, queue);
        }
    }

    /// Ties the clocks anew, after the wall's was set or has drifted.
    pub fn set_wall_base(&self, base: WallBase) {
        if let Some(log) = &self.log {
            log.borrow_mut().timestamps.set_base(base);
        }
        if let Some(traces) = &self.traces {
            traces.borrow_mut().base = base;
        }
    }

    fn done(&self, exchange: &Exchange<'_>) {
        self.count(&exchange.counts);
        self.log(exchange);
        if let (Some(traces), Some(trace)) = (&self.traces, exchange.trace)
            && trace.is_sampled
        {
            traces.borrow_mut().write(exchange, trace);
        }
        if self.lookout.sees(&exchange.counts) {
            self.lookout.keep(exchange);
        }
    }

    fn log(&self, exchange: &Exchange<'_>) {
        if let Some(log) = &self.log {
            log.borrow_mut().write(exchange);
        }
    }

    #[inline]
    fn count(&self, counts: &Counts<'_>) {
        let slot = counts.listener.slots.of(self.thread);
        // A status outside of 100 to 599 never leaves the switch; counted as no answer.
        let class = usize::from(counts.status / 100);
        let class = if class < STATUS.len() { class } else { 0 };
        slot.received_bytes.add(counts.request_bytes);
        slot.sent_bytes.add(counts.response_bytes);
        let outcome = Outcome { class: Some(class), duration_us: counts.duration_us() };
        let of_listener = Outcome { class: outcome.class.filter(|_| !counts.is_connection), ..outcome };
        slot.outcomes.add(of_listener);
        if let Some(server) = counts.server {
            server.slots.of(self.thread).outcomes.add(outcome);
        }
        if let Some(rule) = counts.rule {
            self.outcomes_of(rule, slot).add(outcome);
        }
    }

    /// Where what a rule decided is counted: under its name, or with others of its listener.
    #[inline]
    fn outcomes_of<'a>(&self, rule: &'a RuleMetrics, listener: &'a ListenerSlot) -> &'a Outcomes {
        let place = rule.place_or(|| self.metrics.rule_places.take().then(|| self.metrics.threads()));
        place.map_or(&listener.other_rules, |place| place.of(self.thread)).get_or_init(Box::default)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.flush();
        self.metrics.release(self.thread);
    }
}

impl LineBuffer {
    fn new(log: &AccessLog, thread: usize, base: WallBase) -> LineBuffer {
        let style = log.style();
        LineBuffer {
            lines: Lines::default(),
            style,
            // Another sequence on each thread; nothing secret hangs on it.
            sampler: Sampler::new(style.sample, base.unix_us ^ (thread as u64) << 48),
            timestamps: Timestamps::new(base, style.time_form()),
            queue: log.queue().clone(),
        }
    }

    fn write(&mut self, exchange: &Exchange<'_>) {
        if !self.sampler.takes(exchange) {
            return;
        }
        let time = self.timestamps.at(exchange.now_us);
        match self.style.form {
            LogForm::Json => push_line(&mut self.lines.bytes, time, exchange),
            LogForm::Common | LogForm::Combined => {
                push_common_line(&mut self.lines.bytes, time, exchange, &self.style);
            }
        }
        self.lines.count += 1;
        hand_over_much(&mut self.lines, &self.queue);
    }
}

impl SpanBuffer {
    fn new(traces: &Traces, base: WallBase) -> SpanBuffer {
        SpanBuffer {
            spans: Lines::default(),
            tracer: Tracer::new(traces.sample(), traces.next_seed()),
            base,
            queue: traces.queue().clone(),
        }
    }

    fn write(&mut self, exchange: &Exchange<'_>, trace: &TraceContext) {
        let ended_us = self.base.unix_us(exchange.now_us);
        self.spans.count += push_spans(&mut self.spans.bytes, ended_us, exchange, trace);
        hand_over_much(&mut self.spans, &self.queue);
    }
}

fn hand_over_much(lines: &mut Lines, queue: &Queue) {
    if lines.bytes.len() > HAND_OVER_BYTES {
        hand_over(lines, queue);
    }
}

fn hand_over(lines: &mut Lines, queue: &Queue) {
    if lines.count > 0 {
        queue.hand_over(lines);
    }
}
