//! What the rules of a set mean together: which are never reached, which conflict, what no rule decides, whether what is
//! asserted of them holds, and what another set decides differently. Whatever is said here is proved: by a request that the
//! rules were asked about, or by the rules that leave none.
//!
//! Invariant: nothing here reads a clock, a socket or a file. Work is counted in steps ([`Effort`]); where they are used
//! up, nothing is said.

mod earliest;
mod effort;
mod logic;
mod space;
mod wanted;
mod witness;

pub use earliest::{Asking, Content, Needed, Reading, Spoilt, Unread, Wrong};
pub use effort::Effort;
pub use logic::{
    Barred, Broken, Change, Code, Decider, Difference, Differences, Doubt, Doubted, DoubtedTests, Finding,
    Holds, InDoubt, Miss, Missed, Misses, Missing, Proof, Reach, RuleSide, Sample, Samples, Undecided,
    Unshown, Why, differences, findings, findings_about, misses, prove, rule_names, rules_in, samples,
};
pub use space::is_server_name;
pub use witness::{
    Agreed, AgreedTls, ClientCertificates, Ends, ExplainOptions, Handshakes, Hosts, HttpVersion, NeverAgreed,
    OddFields, Odds, Padding, Proxy, ProxyHeader, Setting, WRITTEN_BODY_BYTES_MAX, Witness, is_certificate,
    is_fingerprint, server_name, usual_client, usual_method,
};
