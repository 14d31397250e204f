//! The whole way of a connection, from accept to the last byte of the answer.
//!
//! Start reading at `session.rs`: one function shows the way of a request. [`Threads`] start
//! first of all; [`Switch`] sets them to work, publishes a new plan to them, and drains them.
//!
//! Invariant: a request writes nothing that another thread reads, but slots of its own thread (`load.rs`,
//! `retry_budget.rs`, `beside/findings.rs`, and `slots.rs` of `pointsman-telemetry`), the buckets of classes that a rule limits it by
//! (`limit.rs`), the places of a server that may have only so many requests (`capacity.rs`), and where each sticky
//! client stays (`sticky_clients.rs`, `sticky_targets.rs`).
//!
//! Invariant: nothing in relay parses. Heads and bodies are `pointsman-http`'s, fields are
//! `pointsman-view`'s, decisions are `pointsman-rules`'.

mod accept;
mod admission;
mod ahead;
mod answer;
mod bandwidth;
mod beside;
mod capacity;
mod chance;
mod choice;
mod commit;
mod crew;
mod decide;
mod ejection;
mod exchange;
mod facts;
mod failed_handshake;
mod fault;
mod flow;
mod hand_over;
mod handshake_rate;
mod hash_tables;
mod header;
mod hedge;
mod history;
mod hold;
mod http2;
mod in_flight;
mod learned;
mod limit;
mod live;
mod load;
mod local;
mod memory;
mod mirror;
mod named_servers;
mod nursery;
mod onward;
mod pick;
mod pipeline;
mod plain_request;
mod pool_state;
mod presence;
mod probe;
mod prober;
mod proxy_header;
mod pump;
mod queued;
mod reach;
mod response_fault;
mod response_time;
mod rest;
mod retry;
mod retry_budget;
mod servers;
mod session;
mod session_learning;
mod shard;
mod shared;
mod shortage;
mod sockets;
mod standing;
mod sticky_clients;
mod sticky_passing;
mod sticky_targets;
mod stream;
mod switch;
mod threads;
mod through;
mod trailers;
mod transport;
mod tunnel;
mod turn;
mod turn_away;
mod undecided;
mod upgrade;
mod upload;
mod verdict;

pub use beside::{
    DryRunCounts, DryRunEnd, DryRunEnded, DryRunFound, DryRunGoesOn, DryRunGroup, DryRunLimits, DryRunSample,
};
pub use history::{ServerChange, ServerState};
pub use prober::{HealthChange, HealthNews};
pub use servers::{ByHand, Leaving, ServerGlance, ServerShown};
pub use shared::Capacity;
pub use sockets::{BindFault, Inherited, InheritedSocket, SocketLabel};
pub use standing::{Admission, Health, Newcomer, ProbeCounts, ProbeOutcome, Standing};
pub use sticky_clients::{StickyClient, StickyCounts, StickyPage};
pub use sticky_passing::Giving;
pub use switch::{Address, Shortages, Start, StartFault, Switch, Unheld};
pub use threads::Threads;
