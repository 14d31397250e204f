//! Classes of `limitRate`: how many requests may come, and who shares a bucket of them.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use pointsman_rules::{Field, Program};
use pointsman_shape::Rate;

use crate::Listener;
use crate::findings::{Findings, Spanned};
use crate::notation::{self, Refusal};
use crate::section::Section;

const SECOND_NS: u64 = 1_000_000_000;

/// How many requests of a class may come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Unique among classes.
    pub name: Arc<str>,
    /// Requests with the same first value of this field share a bucket; all do where it is absent.
    pub key: Option<Field>,
    /// How many.
    pub rate: Rate,
    /// Buckets that there is room for.
    pub keys_max: u32,
    /// What a request that is too much is answered with.
    pub status: u16,
}

/// A class as written.
pub(crate) struct RateLimitSpec {
    pub(crate) name: Spanned<String>,
    pub(crate) limit: RateLimit,
}

impl RateLimitSpec {
    pub(crate) fn read((name, section): (Spanned<String>, Section<'_>)) -> Self {
        if let Err(refusal) = notation::name(&name.value) {
            section.findings().error(name.span, refusal.message, refusal.help);
        }
        let key = section.parsed("key", field).map(|key| key.value);
        if key.is_none() && section.has("keys_max") && !section.has("key") {
            let message = "`keys_max` has no effect without `key`: all requests share one bucket";
            section.findings().warning(section.place("keys_max"), message, "leave it out, or set `key`");
        }
        let limit = RateLimit {
            name: name.value.as_str().into(),
            key,
            rate: rate(&section),
            keys_max: section.number("keys_max").unwrap_or(1),
            status: section.number("status").unwrap_or(429),
        };
        Self { name, limit }
    }
}

/// Says which classes no rule limits by.
pub(crate) fn note_idle(specs: &[RateLimitSpec], listeners: &[Listener], findings: &Findings<'_>) {
    let programs = listeners.iter().filter_map(|listener| listener.program.as_deref());
    let named: HashSet<&str> = programs.flat_map(Program::limit_classes).collect();
    for RateLimitSpec { name, .. } in specs.iter().filter(|spec| !named.contains(spec.name.value.as_str())) {
        let message = format!("nothing is limited by the class `{}`", name.value);
        let help = format!("a rule limits by it with `limitRate({});`", name.value);
        findings.note(name.span, message, help);
    }
}

fn rate(section: &Section<'_>) -> Rate {
    let count =
        |name| section.has(name).then(|| section.number::<u32>(name)).flatten().and_then(NonZeroU32::new);
    let (per_second, per_minute) = (count("per_second"), count("per_minute"));
    match (section.has("per_second"), section.has("per_minute")) {
        (true, true) => section.findings().error(
            section.place("per_minute"),
            "a class has `per_second` or `per_minute`, and not both",
            "write two classes, and name both in a rule",
        ),
        (false, false) => {
            section.missing("a class needs `per_second` or `per_minute`", "say how many requests may come");
        }
        _ => {}
    }
    let one = NonZeroU32::MIN;
    // As many at once as come in a second.
    let usual = per_second.or_else(|| NonZeroU32::new(per_minute?.get() / 60)).unwrap_or(one);
    let burst = count("burst").unwrap_or(usual);
    match per_second {
        Some(per_second) => Rate::new(per_second, SECOND_NS, burst),
        None => Rate::new(per_minute.unwrap_or(one), 60 * SECOND_NS, burst),
    }
}

fn field(text: &str) -> Result<Field, Refusal> {
    Field::of_head(text).map_err(|(message, help)| Refusal { message, help })
}
