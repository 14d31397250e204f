//! nginx for a scenario, its rules in order.

use std::fmt::Write;
use std::path::Path;

use super::Ports;
use super::lineup::Certificate;
use super::scenario::{POOLS, PREFIXES, Rules, Scenario, TENANT, tenant_rules};

/// One process, no log unless asked for, kept-alive connections to the servers, buffers that hold a whole 1 KiB answer.
pub(super) fn configuration(
    scenario: &Scenario,
    origin: &Ports,
    port: u16,
    certificate: Option<&Certificate>,
    log: Option<&Path>,
    folder: &Path,
) -> String {
    let folder = folder.display();
    // Lines are put together before they are written, as ours are.
    let log = log.map_or("off".to_owned(), |path| format!("{} combined buffer=64k", path.display()));
    let (maps, locations) = rules(scenario.rules);
    let pools: String = POOLS
        .iter()
        .zip(origin)
        .map(|(pool, port)| format!("  upstream {pool} {{ server 127.0.0.1:{port}; keepalive 256; keepalive_requests 1000000000; }}\n"))
        .collect();
    let http2 = if scenario.is_http2() { " http2" } else { "" };
    let (ssl, tls) = certificate.map_or_else(Default::default, |files| (" ssl", tls(files)));
    format!(
        "daemon off;\nmaster_process off;\nworker_processes 1;\n\
         pid {folder}/nginx.pid;\nerror_log stderr warn;\n\
         events {{ worker_connections 4096; multi_accept on; }}\n\
         http {{\n  access_log {log};\n  server_tokens off;\n  tcp_nodelay on;\n  keepalive_requests 1000000000;\n  \
         client_body_temp_path {folder}/body;\n  proxy_temp_path {folder}/proxy;\n  \
         fastcgi_temp_path {folder}/fastcgi;\n  uwsgi_temp_path {folder}/uwsgi;\n  scgi_temp_path {folder}/scgi;\n\
         {pools}{maps}  server {{\n    listen 127.0.0.1:{port}{ssl}{http2} backlog=1024;\n{tls}    \
         proxy_http_version 1.1;\n    proxy_set_header Connection \"\";\n    proxy_set_header Host $http_host;\n    \
         proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n    \
         proxy_buffers 16 16k;\n    proxy_max_temp_file_size 0;\n{locations}  }}\n}}\n"
    )
}

/// The `map` blocks and the locations.
fn rules(rules: Rules) -> (String, String) {
    let fallback = POOLS[POOLS.len() - 1];
    match rules {
        Rules::Prefixes => {
            let known = PREFIXES.iter().zip(POOLS);
            let all = known.map(|(prefix, pool)| (*prefix, pool)).chain([("/", fallback)]);
            let locations =
                all.map(|(prefix, pool)| format!("    location {prefix} {{ proxy_pass http://{pool}; }}\n"));
            (String::new(), locations.collect())
        }
        // Locations know no order but that of their lengths; a map over both, tried in order, keeps it.
        Rules::Tenants(count) => {
            let header = TENANT.replace('-', "_");
            let mut map = format!("  map \"$http_{header}:$uri\" $chosen {{\n    default {fallback};\n");
            for rule in tenant_rules(count) {
                let pool = POOLS[rule.pool];
                writeln!(map, "    \"~^{}:{}\" {pool};", rule.tenant, rule.prefix)
                    .expect("a string takes all");
            }
            map.push_str("  }\n");
            (map, "    location / { proxy_pass http://$chosen; }\n".to_owned())
        }
        // A location for each prefix, found in a tree, and a map for its tenants, found in a hash.
        Rules::TenantsLookedUp(count) => {
            let header = TENANT.replace('-', "_");
            let rules: Vec<_> = tenant_rules(count).collect();
            let (mut maps, mut locations) = (String::new(), String::new());
            for (number, of_prefix) in rules.chunk_by(|one, other| one.prefix == other.prefix).enumerate() {
                let tenants =
                    of_prefix.iter().map(|rule| format!("    {} {};\n", rule.tenant, POOLS[rule.pool]));
                let tenants: String = tenants.collect();
                writeln!(
                    maps,
                    "  map $http_{header} $chosen{number} {{\n    default {fallback};\n{tenants}  }}"
                )
                .expect("a string takes all");
                let prefix = &of_prefix[0].prefix;
                writeln!(locations, "    location {prefix} {{ proxy_pass http://$chosen{number}; }}")
                    .expect("a string takes all");
            }
            writeln!(locations, "    location / {{ proxy_pass http://{fallback}; }}")
                .expect("a string takes all");
            (maps, locations)
        }
    }
}

fn tls(files: &Certificate) -> String {
    format!(
        "    ssl_certificate {};\n    ssl_certificate_key {};\n    ssl_protocols TLSv1.3;\n    \
         ssl_ecdh_curve X25519;\n    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;\n    \
         ssl_buffer_size 16k;\n    ssl_session_tickets off;\n    ssl_session_cache off;\n",
        files.certificate.display(),
        files.key.display()
    )
}
