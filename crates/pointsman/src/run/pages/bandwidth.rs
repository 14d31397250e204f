//! Classes of bandwidth: what they may have, and what they had.

use pointsman_admin::Page;
use pointsman_config::{BandwidthClass, Direction};
use pointsman_telemetry::BandwidthCounts;
use serde_json::{Value, json};

use super::SwitchPages;

impl SwitchPages {
    /// The classes of the plan, each behind that which it borrows of.
    pub(super) fn bandwidth(&self) -> Page {
        let counts = self.metrics.bandwidth_counts();
        let switch = self.switch.borrow();
        let classes: Vec<Value> = switch.with_plan(|plan| {
            plan.bandwidth.iter().map(|class| shown(class, &plan.bandwidth, &counts)).collect()
        });
        Page::dense_json(&json!({ "version": 1, "at_us": switch.now_us(), "classes": classes }))
    }
}

fn shown(class: &BandwidthClass, all: &[BandwidthClass], counts: &[BandwidthCounts]) -> Value {
    let one_way = |direction: &str| {
        let is_it =
            |counts: &&BandwidthCounts| *counts.class == *class.name && *counts.direction == *direction;
        counts
            .iter()
            .find(is_it)
            .map(|counts| json!({ "bytes": counts.bytes, "waits": counts.waits, "waiting": counts.waiting }))
    };
    json!({
        "name": &*class.name,
        "parent": class.parent.and_then(|parent| all.get(parent)).map(|parent| &*parent.name),
        "direction": match class.direction {
            Direction::Both => "both",
            Direction::ToClient => "to-client",
            Direction::ToServer => "to-server",
        },
        "guaranteed_bytes_per_second": class.guaranteed_bytes_per_second,
        "ceiling_bytes_per_second": class.ceiling_bytes_per_second,
        "burst_bytes": class.burst_bytes,
        "to_client": one_way("to-client"),
        "to_server": one_way("to-server"),
    })
}
