//! One HTML page from a document: two or more runs side by side, with charts, and nothing from the network.
//!
//! The document is JSON, so that it can be kept, drawn again and put beside others:
//!
//! ```json
//! { "schema": "pointsman-bench/1",
//!   "title": "RSA against ECDSA",
//!   "runs": [
//!     { "name": "RSA-2048", "started": "2026-11-23T03:00:00Z",
//!       "machine":  { "processor": "…", "cores": "2", "kernel": "6.1.0" },
//!       "versions": { "pointsman": "0.1.0", "aws-lc": "1.74" },
//!       "settings": { "url": "https://127.0.0.1:8443/", "seed": "7" },
//!       "verdict":  { "colour": "green", "reasons": [] },
//!       "answer":   "500 requests a second at the most",
//!       "figures":  [ { "name": "peak", "unit": "1/s", "value": 500, "low": 495, "high": 506 } ],
//!       "charts":   [ { "id": "curve", "title": "Demanded against achieved",
//!                       "x": { "label": "demanded, 1/s" }, "y": { "label": "achieved, 1/s", "log": false },
//!                       "lines": [ { "name": "achieved", "points": [[1, 1], [2, 2]], "band": [[1, 0.9, 1.1]] } ] },
//!                     { "id": "phases", "title": "…", "x": {"label": "…"}, "y": {"label": "µs"},
//!                       "categories": ["full", "resumed"], "layers": [ { "name": "server", "values": [300, 100] } ] } ],
//!       "tables":   [ { "title": "by clients", "columns": ["clients", "1/s"], "rows": [[1, 99.5], [4, null]] } ],
//!       "outcome":  { "kind": "load", "…": "…" } } ] }
//! ```
//!
//! The first four figures are drawn large. `machine`, `versions`, `settings` are texts by name, in the order of their names. `low` and `high`, `log`, `band`,
//! `stepped` (a distribution function), `scattered` (crosses and no line), `started`, `reasons`, `answer`, `outcome` and the lists may be missing. `outcome` is everything that was
//! measured, in the words of the command that did: it is kept and not looked at. What else is not known is an error, so that
//! nothing is left out in silence.

mod beside;
mod document;
mod page;
mod read;

pub use document::{Document, Figure, Run, SCHEMA};
pub use page::{escape, page};
pub use read::{BadDocument, DOCUMENT_BYTES_MAX, RUNS_MAX};
