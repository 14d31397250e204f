//! When certificates end, for `/metrics`: those that are shown, and the authorities that peers' come from.

use std::fmt::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use pointsman_config::Plan;
use pointsman_tls::{Acceptor, AuthorityFacts, CertificateFacts};

const DAY_S: i64 = 24 * 60 * 60;

/// A certificate and where it is used.
struct Use<'a> {
    /// `listener`, `pool` or `admin`.
    place: &'static str,
    name: &'a str,
    /// `own` or `authority`.
    role: &'static str,
    file: &'a Path,
    subject: &'a str,
    fingerprint: &'a str,
    not_after: SystemTime,
}

/// Appends both gauges.
pub(super) fn render(plan: &Plan, now: SystemTime, text: &mut String) {
    let uses = uses(plan);
    for (name, help, value) in [
        (
            "pointsman_certificate_not_after_seconds",
            "End of a certificate or, of an own one, of its chain, in seconds since 1970.",
            seconds as fn(SystemTime, SystemTime) -> i64,
        ),
        (
            "pointsman_certificate_days_left",
            "Whole days until then; negative where it has expired.",
            days_left as fn(SystemTime, SystemTime) -> i64,
        ),
    ] {
        write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n").expect("a string takes all text");
        for used in &uses {
            text.push_str(name);
            used.labels(text);
            writeln!(text, " {}", value(used.not_after, now)).expect("a string takes all text");
        }
    }
}

fn uses(plan: &Plan) -> Vec<Use<'_>> {
    let mut uses = Vec::new();
    for listener in &plan.listeners {
        uses.extend(listener.tls.iter().flat_map(|tls| of_acceptor("listener", &listener.name, tls)));
    }
    for pool in &plan.pools {
        uses.extend(pool.certificate.iter().map(|facts| own("pool", &pool.name, facts)));
        uses.extend(pool.authorities.iter().map(|facts| authority("pool", &pool.name, facts)));
    }
    let admin = plan.admin.iter().filter_map(|admin| admin.tls.as_ref());
    uses.extend(admin.flat_map(|tls| of_acceptor("admin", "admin", tls)));
    // A file may hold a certificate twice, and a series may stand there once.
    let mut seen = std::collections::HashSet::new();
    uses.retain(|used| seen.insert((used.place, used.name, used.role, used.file, used.fingerprint)));
    uses
}

fn of_acceptor<'a>(place: &'static str, name: &'a str, tls: &'a Acceptor) -> impl Iterator<Item = Use<'a>> {
    let shown = tls.certificates().iter().map(move |facts| own(place, name, facts));
    shown.chain(tls.authorities().iter().map(move |facts| authority(place, name, facts)))
}

fn own<'a>(place: &'static str, name: &'a str, facts: &'a CertificateFacts) -> Use<'a> {
    let CertificateFacts { file, subject, fingerprint, not_after, .. } = facts;
    Use { place, name, role: "own", file, subject, fingerprint, not_after: *not_after }
}

fn authority<'a>(place: &'static str, name: &'a str, facts: &'a AuthorityFacts) -> Use<'a> {
    let AuthorityFacts { file, subject, fingerprint, not_after } = facts;
    Use { place, name, role: "authority", file, subject, fingerprint, not_after: *not_after }
}

impl Use<'_> {
    fn labels(&self, text: &mut String) {
        let file = self.file.to_string_lossy();
        let labels = [
            (self.place, self.name),
            ("role", self.role),
            ("file", &file),
            ("subject", self.subject),
            ("fingerprint", self.fingerprint),
        ];
        for (index, (label, value)) in labels.into_iter().enumerate() {
            text.push(if index == 0 { '{' } else { ',' });
            text.push_str(label);
            text.push_str("=\"");
            for letter in value.chars() {
                match letter {
                    '\\' => text.push_str("\\\\"),
                    '"' => text.push_str("\\\""),
                    '\n' => text.push_str("\\n"),
                    other => text.push(other),
                }
            }
            text.push('"');
        }
        text.push('}');
    }
}

fn seconds(time: SystemTime, _: SystemTime) -> i64 {
    let whole = |time: std::time::Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => whole(since),
        Err(before) => -whole(before.duration()),
    }
}

fn days_left(end: SystemTime, now: SystemTime) -> i64 {
    seconds(end, now).saturating_sub(seconds(now, now)).div_euclid(DAY_S)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn days_are_whole_and_negative_behind_the_end() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        for (seconds, expected) in [(0, 0), (86_399, 0), (86_400, 1), (30 * 86_400 + 5, 30)] {
            assert_eq!(days_left(now + Duration::from_secs(seconds), now), expected);
        }
        assert_eq!(days_left(now - Duration::from_secs(1), now), -1);
        assert_eq!(days_left(UNIX_EPOCH - Duration::from_secs(86_400), UNIX_EPOCH), -1);
    }

    #[test]
    fn labels_are_escaped() {
        let file = Path::new("a\"b\\c");
        let (place, name, role, fingerprint) = ("pool", "p", "own", "00");
        let used = Use { place, name, role, file, subject: "CN=a\\,b", fingerprint, not_after: UNIX_EPOCH };
        let mut text = String::new();
        used.labels(&mut text);
        assert_eq!(text, r#"{pool="p",role="own",file="a\"b\\c",subject="CN=a\\,b",fingerprint="00"}"#);
    }
}
