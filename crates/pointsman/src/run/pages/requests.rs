//! Requests that stand out: the slowest, and those that failed.

use pointsman_admin::{Page, Request};
use pointsman_net::Clock;
use pointsman_telemetry::{FAILED_MINUTES, OUTLIER_MINUTES, Outlier, rfc3339};
use serde_json::{Value, json};

use super::SwitchPages;

impl SwitchPages {
    /// The slowest of the last minutes and the latest that failed. Who sent what is for those who are known.
    pub(super) fn requests(&self, request: &Request) -> Page {
        let now_us = self.switch.borrow().now_us();
        let began_unix_us = Clock::start().unix_us().saturating_sub(now_us);
        let is_known = request.who.is_some();
        let outliers = self.metrics.outliers(now_us);
        let shown = |outliers: &[Outlier]| -> Vec<Value> {
            outliers.iter().map(|outlier| shown(outlier, began_unix_us, is_known)).collect()
        };
        Page::dense_json(&json!({
            "version": 1,
            "names_requests": is_known,
            "slowest_s": OUTLIER_MINUTES * 60,
            "slowest": shown(&outliers.slowest),
            "failed_s": FAILED_MINUTES * 60,
            "failed": shown(&outliers.failed),
        }))
    }
}

fn shown(outlier: &Outlier, began_unix_us: u64, is_known: bool) -> Value {
    let known = |text: &Option<Box<str>>| text.clone().filter(|_| is_known);
    json!({
        "when": rfc3339(began_unix_us + outlier.at_us),
        "listener": outlier.listener,
        "rule": outlier.rule,
        "pool": outlier.pool,
        "server": outlier.server,
        "status": (outlier.status != 0).then_some(outlier.status),
        "error": outlier.error,
        "total_us": outlier.total_us,
        "decided_us": outlier.decided_us,
        "queued_us": outlier.queued_us,
        "connected_us": outlier.connected_us,
        "first_byte_us": outlier.first_byte_us,
        "tries": outlier.tries,
        "request_bytes": outlier.request_bytes,
        "response_bytes": outlier.response_bytes,
        "client": known(&outlier.client),
        "method": known(&outlier.method),
        "host": known(&outlier.host),
        "path": known(&outlier.path),
        "query": known(&outlier.query),
    })
}
