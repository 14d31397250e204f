//! Our own switch, set up as its peers are: one thread, no access log, metrics on.

use std::fmt::Write;

use super::Ports;
use super::lineup::Certificate;
use super::scenario::{POOLS, PREFIXES, Rules, Scenario, TENANT, tenant_rules};

/// The configuration; its rules stand beside it in `bench.rules`.
pub(super) fn configuration(origin: &Ports, port: u16, certificate: Option<&Certificate>) -> String {
    let fallback = POOLS[POOLS.len() - 1];
    let mut text = format!(
        "threads = 1\nwatch_ms = 0\n\n[[listener]]\nname = \"bench\"\nbind = \"127.0.0.1:{port}\"\n\
         rules = \"bench.rules\"\npool = \"{fallback}\"\n"
    );
    if let Some(files) = certificate {
        // The files stand beside the configuration, and its paths are relative to it.
        let [certificate, key] =
            [&files.certificate, &files.key].map(|path| path.file_name().unwrap_or_default());
        let (certificate, key) = (certificate.display(), key.display());
        writeln!(text, "tls = {{ certificate = \"{certificate}\", key = \"{key}\", min_version = \"1.3\", tickets = false }}")
            .expect("a string takes all");
    }
    for (pool, port) in POOLS.iter().zip(origin) {
        write!(text, "\n[pool.{pool}]\nservers = [\"127.0.0.1:{port}\"]\n").expect("a string takes all");
    }
    text.push_str("\n[admin]\nbind = \"127.0.0.1:0\"\n");
    text
}

pub(super) fn rules(scenario: &Scenario) -> String {
    let mut text = String::new();
    match scenario.rules {
        Rules::Prefixes => {
            for (prefix, pool) in PREFIXES.iter().zip(POOLS) {
                writeln!(text, "if (path startsWith \"{prefix}\") {{ routeTo({pool}); }}")
                    .expect("a string takes all");
            }
        }
        Rules::Hundred => {
            for rule in tenant_rules() {
                let (pool, prefix, tenant) = (POOLS[rule.pool], rule.prefix, rule.tenant);
                let header = format!("header[\"{TENANT}\"] == \"{tenant}\"");
                writeln!(text, "if (path startsWith \"{prefix}\" && {header}) {{ routeTo({pool}); }}")
                    .expect("a string takes all");
            }
        }
    }
    text
}
