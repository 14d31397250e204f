//! HAProxy for a scenario, its rules in order.

use std::fmt::Write;
use std::path::Path;

use super::Ports;
use super::lineup::Certificate;
use super::scenario::{POOLS, PREFIXES, Rules, Scenario, TENANT, TenantRule, tenant_rules};

/// One thread, no log, kept-alive connections shared by all clients; splice for large answers.
pub(super) fn configuration(
    scenario: &Scenario,
    origin: &Ports,
    port: u16,
    certificate: Option<&Certificate>,
    folder: &Path,
) -> String {
    let mut text = String::from("global\n  nbthread 1\n  maxconn 4000\n");
    let bind = match certificate {
        Some(files) => {
            text.push_str("  ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256\n");
            text.push_str(
                "  ssl-default-bind-curves X25519\n  \
                 ssl-default-bind-options ssl-min-ver TLSv1.3 no-tls-tickets\n  \
                 tune.ssl.cachesize 0\n",
            );
            format!(" ssl crt {}", files.both.display())
        }
        None => String::new(),
    };
    let speech = match (scenario.is_http2(), certificate) {
        (false, _) => "",
        (true, Some(_)) => " alpn h2",
        (true, None) => " proto h2",
    };
    text.push_str(
        "defaults\n  mode http\n  http-reuse always\n  option forwardfor\n  \
         timeout connect 3s\n  timeout client 60s\n  timeout server 60s\n",
    );
    if scenario.answer == "1m" {
        text.push_str("  option splice-response\n");
    }
    write!(text, "frontend bench\n  bind 127.0.0.1:{port}{bind}{speech}\n{}", rules(scenario.rules, folder))
        .expect("a string takes all");
    for (pool, port) in POOLS.iter().zip(origin) {
        write!(text, "backend {pool}\n  server one 127.0.0.1:{port}\n").expect("a string takes all");
    }
    text
}

/// The file that stands beside the configuration.
pub(super) const MAP: &str = "haproxy.map";

/// The content of [`MAP`].
pub(super) fn map(rules: usize) -> String {
    let line = |rule: TenantRule| {
        format!("{}:{} {}\n", rule.prefix.trim_matches('/'), rule.tenant, POOLS[rule.pool])
    };
    tenant_rules(rules).map(line).collect()
}

fn rules(rules: Rules, folder: &Path) -> String {
    let fallback = POOLS[POOLS.len() - 1];
    let mut text = String::new();
    match rules {
        Rules::Prefixes => {
            for (prefix, pool) in PREFIXES.iter().zip(POOLS) {
                writeln!(text, "  use_backend {pool} if {{ path_beg {prefix} }}")
                    .expect("a string takes all");
            }
        }
        Rules::TenantsLookedUp(_) => {
            let map = folder.join(MAP);
            write!(
                text,
                "  http-request set-var(txn.tenant) req.hdr({TENANT})\n  \
                 use_backend %[path,field(2,/),concat(:,txn.tenant),map_str({},{fallback})]\n",
                map.display()
            )
            .expect("a string takes all");
        }
        Rules::Tenants(count) => {
            for rule in tenant_rules(count) {
                let (pool, prefix, tenant) = (POOLS[rule.pool], rule.prefix, rule.tenant);
                let header = format!("{{ req.hdr({TENANT}) -m str {tenant} }}");
                writeln!(text, "  use_backend {pool} if {{ path_beg {prefix} }} {header}")
                    .expect("a string takes all");
            }
        }
    }
    writeln!(text, "  default_backend {fallback}").expect("a string takes all");
    text
}
