//! One event enum; metrics and the access log are readers of it.
//!
//! [`Metrics`] is the registry, one for the process. Each event-loop thread takes one [`Recorder`] from it
//! and tells it each [`Event`]; names stand behind handles ([`ListenerMetrics`], [`RuleMetrics`],
//! [`ServerMetrics`]) that are looked up once, when a plan is built. [`Metrics::render`] writes what
//! Prometheus reads. [`AccessLog`] is a thread that writes the lines which the recorders hand over, [`Traces`] one that
//! sends their spans. [`Outliers`] are requests that stand out. What else
//! one thread counts and others read is a [`Counter`] too, on lines of its own ([`OwnLines`]). The calendar is
//! here, and so is what answers say of the time ([`DateLine`]).
//!
//! Invariants:
//! - A counter has one writer, so counting is a load and a store, without a locked instruction.
//! - Nothing here reads a clock or waits on an event-loop thread: times are arguments, and a log that cannot
//!   keep up loses lines, which are counted.

mod access_log;
mod agreed;
mod common_line;
mod date_line;
mod event;
mod exchange_line;
mod exposition;
mod family;
mod histogram;
mod hits;
mod json;
mod line_file;
mod metrics;
mod names;
mod notes;
mod outcomes;
mod outliers;
mod queue;
mod recorder;
mod slots;
mod span;
mod style;
mod timestamp;
mod trace;
mod traces;

pub use access_log::{AccessLog, LogTarget, LogTrouble, end_cut_line};
pub use agreed::{Handshake, TlsGroup, TlsSession, TlsVersion};
pub use date_line::DateLine;
pub use event::{Counts, Event, Exchange, HandshakeFailure, Hedge, Mirrored, Query, Refusal, ServerFailure};
pub use family::{BandwidthMetrics, LimitMetrics, ListenerMetrics, RuleMetrics, ServerMetrics};
pub use line_file::{Cut, LineFile, Written};
pub use metrics::{
    BandwidthCounts, BufferBytes, Durations, HandshakeCounts, ListenerCounts, Metrics, OTHER_RULES,
    OutcomeCounts, RuleCounts, ServerNow, StandingNow, duration_bounds_us,
};
pub use names::{NameNow, render_names};
pub use notes::{Notes, Topic};
pub use outliers::{FAILED_MINUTES, OUTLIER_MINUTES, Outlier, Outliers};
pub use recorder::{Recorder, Sinks};
pub use slots::{ByThread, Counter, OwnLines};
pub use style::{LogForm, LogStyle, Sample};
pub use timestamp::{WallBase, rfc3339};
pub use trace::TraceContext;
pub use traces::{ExportFault, TraceSettings, Traces};
