//! What metrics say of names of servers.

use std::sync::Arc;

use crate::exposition::{Exposition, Kind, Label};

/// How it stands with a name at this moment.
#[derive(Clone, Debug)]
pub struct NameNow {
    /// The name.
    pub name: Arc<str>,
    /// What is asked about it.
    pub record: &'static str,
    /// How many addresses are known of it.
    pub found: u64,
    /// Whether it could not be looked up the last time.
    pub is_failing: bool,
    /// How often it was, by what became of that.
    pub lookups: Vec<(&'static str, u64)>,
}

/// Appends what is so of names, in Prometheus' text form; nothing where there are none.
pub fn render_names(names: &[NameNow], out: &mut String) {
    if names.is_empty() {
        return;
    }
    let mut page = Exposition::new(out);
    let name = "pointsman_dns_lookups_total";
    page.family(name, Kind::Counter, "Lookups of names of servers by what became of them.");
    for now in names {
        for (outcome, count) in &now.lookups {
            let [name_label, record] = labels(now);
            page.sample(name, &[name_label, record, ("outcome", outcome)], *count);
        }
    }
    let name = "pointsman_dns_failing";
    page.family(name, Kind::Gauge, "Whether a name could not be looked up the last time.");
    for now in names {
        page.sample(name, &labels(now), u64::from(now.is_failing));
    }
    let name = "pointsman_dns_found";
    page.family(name, Kind::Gauge, "Addresses that are known of a name.");
    for now in names {
        page.sample(name, &labels(now), now.found);
    }
}

fn labels(now: &NameNow) -> [Label<'_>; 2] {
    [("name", &now.name), ("record", now.record)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_of_one_by_one() {
        let mut page = String::new();
        render_names(&[], &mut page);
        assert_eq!(page, "");
        let now = NameNow {
            name: "web.example".into(),
            record: "address",
            found: 2,
            is_failing: true,
            lookups: vec![("answered", 3), ("timeout", 1)],
        };
        render_names(&[now], &mut page);
        let samples: Vec<_> = page.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                r#"pointsman_dns_lookups_total{name="web.example",record="address",outcome="answered"} 3"#,
                r#"pointsman_dns_lookups_total{name="web.example",record="address",outcome="timeout"} 1"#,
                r#"pointsman_dns_failing{name="web.example",record="address"} 1"#,
                r#"pointsman_dns_found{name="web.example",record="address"} 2"#,
            ]
        );
    }
}
