//! Our own switch, set up as its peers are: one thread, no access log unless asked for, metrics on.

use std::fmt::Write;
use std::path::Path;

use super::Ports;
use super::lineup::Certificate;
use super::scenario::{POOLS, PREFIXES, Rules, TENANT, TenantRule, tenant_rules};

/// The configuration of a process; its rules stand beside it in `bench.rules`.
pub(super) fn configuration(
    origin: &Ports,
    port: u16,
    threads: usize,
    certificate: Option<&Certificate>,
    log: Option<&Path>,
) -> String {
    let fallback = POOLS[POOLS.len() - 1];
    let mut text = format!(
        "threads = {threads}\nwatch_ms = 0\n\n[[listener]]\nname = \"bench\"\nbind = \"127.0.0.1:{port}\"\n\
         rules = \"bench.rules\"\npool = \"{fallback}\"\n"
    );
    if let Some(files) = certificate {
        let (certificate, key) = (files.certificate.display(), files.key.display());
        writeln!(text, "tls = {{ certificate = \"{certificate}\", key = \"{key}\", min_version = \"1.3\", tickets = false }}")
            .expect("a string takes all");
    }
    for (pool, port) in POOLS.iter().zip(origin) {
        write!(text, "\n[pool.{pool}]\nservers = [\"127.0.0.1:{port}\"]\n").expect("a string takes all");
    }
    if let Some(path) = log {
        write!(text, "\n[access_log]\npath = \"{}\"\n", path.display()).expect("a string takes all");
    }
    text.push_str("\n[admin]\nbind = \"127.0.0.1:0\"\n");
    text
}

/// `before` further rules stand before them that take no request.
pub(super) fn rules(rules: Rules, before: usize) -> String {
    let mut text = String::new();
    for TenantRule { prefix, tenant, .. } in tenant_rules(before) {
        let header = format!("header[\"{TENANT}\"] == \"other-{tenant}\"");
        writeln!(text, "if (path startsWith \"{prefix}\" && {header}) {{ routeTo({}); }}", POOLS[0])
            .expect("a string takes all");
    }
    match rules {
        Rules::Prefixes => {
            for (prefix, pool) in PREFIXES.iter().zip(POOLS) {
                writeln!(text, "if (path startsWith \"{prefix}\") {{ routeTo({pool}); }}")
                    .expect("a string takes all");
            }
        }
        Rules::Tenants(count) | Rules::TenantsLookedUp(count) => {
            for rule in tenant_rules(count) {
                let (pool, prefix, tenant) = (POOLS[rule.pool], rule.prefix, rule.tenant);
                let header = format!("header[\"{TENANT}\"] == \"{tenant}\"");
                writeln!(text, "if (path startsWith \"{prefix}\" && {header}) {{ routeTo({pool}); }}")
                    .expect("a string takes all");
            }
        }
    }
    text
}
