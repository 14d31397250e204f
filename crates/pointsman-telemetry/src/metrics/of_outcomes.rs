//! Families that tell what became of requests: of listeners, rules and servers alike.

use crate::exposition::{Exposition, Kind, Label, Seconds};
use crate::outcomes::{STATUS, Total};

/// What became of the requests of one of those that are told apart.
pub(super) struct Row<'a> {
    pub(super) labels: Vec<Label<'a>>,
    pub(super) total: Total,
}

pub(super) fn render_statuses(page: &mut Exposition<'_>, (name, help): (&str, &str), rows: &[Row<'_>]) {
    page.family(name, Kind::Counter, help);
    for Row { labels, total } in rows {
        for (label, count) in STATUS.into_iter().zip(total.statuses) {
            page.sample(name, &[labels, &[("status", label)][..]].concat(), count);
        }
    }
}

pub(super) fn render_durations(page: &mut Exposition<'_>, (name, help): (&str, &str), rows: &[Row<'_>]) {
    page.family(name, Kind::Histogram, help);
    let (name_of_buckets, name_of_sum, name_of_count) =
        (format!("{name}_bucket"), format!("{name}_sum"), format!("{name}_count"));
    for Row { labels, total } in rows {
        let mut count = 0;
        for (bound_us, up_to) in total.up_to() {
            count = up_to;
            let bound = bound_us.map_or("+Inf".to_owned(), |bound_us| Seconds(bound_us).to_string());
            page.sample(&name_of_buckets, &[labels, &[("le", &*bound)][..]].concat(), count);
        }
        page.sample_seconds(&name_of_sum, labels, total.sum_us);
        page.sample(&name_of_count, labels, count);
    }
}
