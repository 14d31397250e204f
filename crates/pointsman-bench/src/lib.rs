//! Load on a server, and an account of whether its figures can be believed.
//!
//! [`run`] carries out a [`Plan`] and says what came of it in an [`Outcome`]: an open loop, whose requests are due at
//! times that do not depend on the answers, or a closed one of so many clients. Each request has two clocks: from when
//! it was due, and from when it was sent. What was not sent is counted; handshakes are of the kind that was asked for,
//! or the run is void.
//!
//! Invariants:
//! - A thread of the generator shares nothing with another while it runs but its own counters for the progress line.
//! - A request on an open connection takes no memory from the heap.
//! - A run's own figures decide whether it is a result: its handshakes ([`Outcome::voids`]) and what the generator measured
//!   of itself ([`Outcome::verdict`]); none is left out in silence.

mod agents;
mod arrivals;
mod bell;
mod bulk;
mod ceiling;
mod classes;
pub mod clock;
mod compare;
mod connection;
mod crew;
mod fault;
mod find;
mod follow;
mod gaps;
mod http1;
mod http2;
mod interrupt;
mod jar;
mod json;
mod judge;
mod ladder;
mod little;
mod machine;
mod negotiated;
mod null;
mod numbers;
mod outcome;
mod packed;
mod part;
mod plan;
mod poller;
mod probe;
mod process;
mod provenance;
mod quiet;
mod record;
mod report;
mod request;
mod run;
mod script;
mod self_watch;
mod server_watch;
mod session_record;
mod sessions;
mod shares;
mod source;
mod speech;
mod think;
mod transport;
mod url;
mod users;
mod worker;
mod workload;

pub use agents::{AGENT_PORT, Agent, AgentSettings, Agents, AgentsSettings, Allowed, Clock};
pub use bulk::{Bulk, Bulked, Haul, Hauled, Row, SIZE_BYTES_MAX, SIZE_PLACE, Series, Way, haul};
pub use ceiling::{Ceiling, ceiling, ceiling_of};
pub use classes::{Class, ClassBatch, ClassRecord};
pub use compare::{Bout, Compare, Compared, Fought, Quantity, Weighed, contest};
pub use fault::Fault;
pub use find::{Counted, Cut, CutBy, Ending, Find, Found, Sight, Tried, find, verdict_of_trial};
pub use gaps::Gaps;
pub use http2::frames::Broken;
pub use http2::hpack::Decoder as FieldBlocks;
pub use interrupt::{Interrupt, mark_interrupted};
pub use ladder::{Climbed, Ladder, Rung, Top, climb};
pub use little::Little;
pub use machine::Machine;
pub use negotiated::{Agreements, Kind, Negotiated, count_of, unlike_pinned};
pub use null::{Manner, NullServer, NullTls, Service};
pub use numbers::Numbers;
pub use outcome::{AgentOutcome, Generator, Listening, LostAgent, Outcome, ServerUse, ThreadUse, Void};
pub use plan::{Arrivals, Body, Close, Handshakes, Load, Plan, Protocol, Target};
pub use pointsman_tls::Offer;
pub use probe::advice;
pub use process::{Spent, Time, ticks_per_second};
pub use provenance::{provenance, texts};
pub use record::{Batch, ErrorKind, Record, Times};
pub use report::{NotRun, OrderOutcome, ladder, ladder_csv, orders};
pub use run::{Progress, run, run_whole};
pub use script::{Script, Step};
pub use self_watch::{Look, SelfWatch, ThreadAccount, ThreadWatch};
pub use session_record::{SessionRecord, StepRecord};
pub use sessions::Sessions;
pub use shares::{ShareOutcome, Shares};
pub use source::Sources;
pub use think::{Think, read_time};
pub use url::{Scheme, Url};
