//! The figures as JSON: each scenario's last run, whatever ran since.

use std::path::Path;

use serde_json::{Value, json};

use super::machine::Machine;
use super::report::Result;
use super::{LOAD_CORE, Options, PROXY_CORE, WARM_UP_SECONDS};
use crate::failure::Because;

/// Writes what was measured now, and keeps what the file says of other scenarios.
pub(super) fn write(
    file: &Path,
    machine: &Machine,
    options: &Options,
    results: &[Result],
) -> crate::failure::Result<()> {
    let settings = json!({
        "seconds": options.turns.seconds, "rounds": options.turns.rounds, "warm_up_seconds": WARM_UP_SECONDS,
        "proxy_core": PROXY_CORE, "load_core": LOAD_CORE, "rules_before": options.rules_before,
    });
    let fresh = results.iter().map(|result| {
        let mut scenario = result.json();
        scenario["machine"] = machine.json();
        scenario["settings"] = settings.clone();
        scenario
    });
    let document = merged(std::fs::read(file).ok().as_deref(), fresh.collect());
    std::fs::write(file, format!("{document:#}\n")).because(|| format!("cannot write `{}`", file.display()))
}

/// What cannot be read is replaced.
fn merged(earlier: Option<&[u8]>, fresh: Vec<Value>) -> Value {
    let earlier: Value = earlier.and_then(|text| serde_json::from_slice(text).ok()).unwrap_or_default();
    let kept = earlier["scenarios"].as_array().into_iter().flatten();
    let is_replaced = |old: &&Value| fresh.iter().any(|new| new["scenario"] == old["scenario"]);
    let kept: Vec<_> = kept.filter(|old| !is_replaced(old)).cloned().collect();
    json!({"scenarios": kept.into_iter().chain(fresh).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::merged;

    #[test]
    fn a_run_replaces_its_own_scenarios_only() {
        let of = |name: &str, figure: u32| json!({"scenario": name, "figure": figure});
        let earlier = json!({"scenarios": [of("plain3", 1), of("tls3", 1)]}).to_string();
        let expected = json!({"scenarios": [of("tls3", 1), of("plain3", 2)]});
        assert_eq!(merged(Some(earlier.as_bytes()), vec![of("plain3", 2)]), expected);
        let expected = json!({"scenarios": [of("plain3", 2)]});
        assert_eq!(merged(Some(b"{"), vec![of("plain3", 2)]), expected);
        assert_eq!(merged(None, vec![of("plain3", 2)]), expected);
    }
}
