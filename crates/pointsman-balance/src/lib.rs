//! Who gets this request: algorithms, weights and stickiness, with time and randomness as arguments.
//!
//! Invariant: nothing here reads a clock, draws a random number or does input and output.

mod algorithm;
mod breaker;
mod by_hash;
mod cookie;
mod health;
mod levels;
mod maglev;
mod picker;
mod response_time;
mod retry_budget;
mod sticky;
mod sticky_choice;
mod sticky_passing;
mod sticky_table;
mod waiting_line;

pub use algorithm::Algorithm;
pub use breaker::{Breaker, BreakerLimits, ejected_max};
pub use by_hash::{ByHash, HashMethod, Hashed, LoadFactor};
pub use cookie::{ClientId, ClientIds, ROUTE_COOKIE_BYTES, RouteCookie};
pub use health::{ProbeRow, Probed, Thresholds, probe_wait_ms};
pub use levels::{Condition, Level, Levels, Open, takes_at_its_start};
pub use maglev::Maglev;
pub use picker::Picker;
pub use response_time::ResponseTime;
pub use retry_budget::{RETRY_WINDOW_S, RetryBudget, SecondCount};
pub use sticky::{StickyHash, rendezvous};
pub use sticky_choice::{StickyServers, sticky_number};
pub use sticky_passing::PASSED_ENTRY_BYTES;
pub use sticky_table::{Kept, STICKY_ENTRY_BYTES, StickyEntry, StickyTable, Whereabouts};
pub use waiting_line::WaitingLine;
