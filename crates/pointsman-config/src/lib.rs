//! What the operator wrote, with spans (`Spec`), and what it means, immutable ([`Plan`]).
//!
//! A configuration is read once, checked whole, and lowered once; nothing later re-checks it. Every error
//! of every file is reported together, with its place in the source.
//!
//! Invariant: files are touched only while a plan is loaded or they are looked at for changes, never on the way of a
//! request; and names are not looked up here at all.

mod access_log;
mod admin;
mod balancing;
mod bandwidth;
mod binds;
mod candidate;
mod dns;
mod edit;
mod findings;
mod health;
mod idle_keys;
mod keys;
mod limits;
mod lists;
mod load;
mod log_level;
mod lower;
mod notation;
mod plan;
mod pool_tls;
mod problems;
mod protocol;
mod rate_limits;
mod reading;
mod reference;
mod retries;
mod rules;
mod section;
mod server_spec;
mod service;
mod settings;
mod spec;
mod stickiness;
mod syntax;
mod tls;
mod tls_spec;
mod tokens;
mod traces;
mod trailers;
mod watch;

pub use access_log::{AccessLog, LogDestination};
pub use admin::{Admin, AdminClient, AdminUse};
pub use balancing::{Balancing, HashBalancing};
pub use bandwidth::{BandwidthClass, Direction};
pub use candidate::{OpenEnd, limit_keys, named_fields, open_end};
pub use dns::{Answers, AtStart, DnsSettings, Family, Found, Host, Lookup};
pub use edit::{EditFault, EditValue, ServerEdit, edit_server};
pub use health::{Asks, BodyTest, HealthCheck, HttpProbe};
pub use limits::{BodyLimits, DnsLimits, ListenerLimits, PoolLimits};
pub use load::Loaded;
pub use log_level::LogLevel;
pub use lower::Instead;
pub use plan::{
    Bind, EncodedSlash, ForwardedMode, Http2, Listener, Misdirected, OddNames, OnDown, Pipeline, Plan, Pool,
    PoolIndex, ProxyProtocol, ProxyVersion, Server, ServerIndex, ServerProtocol, StickyScope, Target,
};
pub use problems::{FileProblems, Problems};
pub use protocol::Protocol;
pub use rate_limits::RateLimit;
pub use reading::{bounded, reason, text, version};
pub use reference::reference;
pub use retries::{RetryCause, RetryPolicy};
pub use rules::RuleSet;
pub use service::{Member, Service};
pub use settings::{ChangedSetting, Owner, Settings};
pub use tokens::Tokens;
pub use traces::{Endpoint, Traces};
pub use watch::{WatchedFile, changed, changed_file};
// Whoever shows problems says whether they may have colours.
pub use pointsman_rules::Colour;
