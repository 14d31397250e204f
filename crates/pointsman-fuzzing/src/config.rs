//! Configurations: text becomes a plan that holds together, or every error has its place; no file is touched.

use pointsman_config::{Loaded, Plan, Problems};
use pointsman_rules::Exit;

use crate::rules::in_place;

pub(crate) const TOKENS: &[&str] = &[
    "[[listener]]\n",
    "[listener.tls]\n",
    "[listener.limits]\n",
    "[[listener.tls.certificates]]\n",
    "[pool.a]\n",
    "[pool.standard]\n",
    "[[pool.a.servers]]\n",
    "[admin]\n",
    "[access_log]\n",
    "[",
    "]",
    "[[",
    "]]",
    "{ ",
    " }",
    "\"",
    "'",
    "\"\"\"",
    " = ",
    ", ",
    ".",
    "\n",
    "\r\n",
    "# c\n",
    "\\u00e9",
    "\u{feff}",
    "é",
    "\u{1}",
    "name = \"a\"\n",
    "bind = \"127.0.0.1:80\"\n",
    "bind = \"127.0.0.1:0\"\n",
    "bind = []\n",
    "pool = \"a\"\n",
    "rules = \"r.rules\"\n",
    "servers = [\"127.0.0.1:1\", { address = \"127.0.0.1:2\", weight = 2 }]\n",
    "servers = [\"a.example:80\"]\n",
    "threads = 4\n",
    "drain_ms_max = 1\n",
    "watch_ms = 0\n",
    "balance = \"round-robin\"\n",
    "tls = { certificate = \"c\", key = \"k\" }\n",
    "client_auth = \"required\"\n",
    "client_ca = \"ca\"\n",
    "sticky_key = \"000102030405060708090a0b0c0d0e0f\"\n",
    "trusted_proxies = [\"::/0\"]\n",
    "x_forwarded = \"off\"\n",
    "merge_slashes = true\n",
    "access_log = { path = \"-\" }\n",
    "head_bytes_max = 4096\n",
    "tries_max = 0\n",
    "-1",
    "0",
    "0x7f",
    "1_000",
    "1.5",
    "99999999999999999999",
    "true",
    "nan",
    "1979-05-27",
    "\0",
    "else: routeTo(a);\n",
    "else: tag(\"x\");\n",
    "tag(\"x\");",
    "if (path under \"/a\") { routeTo(a); }\n",
    "routeTo(standard.big);\n",
];

/// Panics where a property does not hold. What follows a NUL byte, which TOML cannot hold, is what every rules
/// file that the configuration names has in it.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (source, rules) = text.split_once('\0').unwrap_or((&text, ""));
    let read = Plan::from_texts(source, rules);
    match &read {
        Ok(loaded) => {
            assert!(!loaded.warnings.has_errors());
            shown(&loaded.warnings);
            holds_together(&loaded.plan);
            says_the_same_with_a_comment(&loaded.plan, source, rules);
        }
        Err(problems) => {
            assert!(problems.has_errors());
            shown(problems);
        }
    }
    let again = Plan::from_texts(source, rules);
    assert_eq!(outcome(&again), outcome(&read), "the same text says the same twice");
}

fn outcome(read: &Result<Loaded, Problems>) -> String {
    match read {
        Ok(loaded) => format!("{:?}", loaded.plan),
        Err(problems) => {
            format!("{:?}", problems.diagnostics().map(|(_, finding)| finding).collect::<Vec<_>>())
        }
    }
}

fn shown(problems: &Problems) {
    for file in problems.files() {
        in_place(&file.diagnostics, &file.source);
    }
}

/// Whatever a plan names is in it, so that nothing has to look again.
fn holds_together(plan: &Plan) {
    assert!(!plan.listeners.is_empty(), "nobody could connect");
    for pool in &plan.pools {
        assert!(!pool.servers.is_empty());
        assert!(pool.servers.iter().all(|server| (1..=1000).contains(&server.weight)));
    }
    assert_unique(plan.pools.iter().map(|pool| &*pool.name));
    assert_unique(plan.listeners.iter().map(|listener| &*listener.name));
    for listener in &plan.listeners {
        assert!(!listener.binds.is_empty());
        let fallback = listener.program.as_ref().and_then(|program| program.fallback.as_ref());
        let decides = fallback.is_some_and(|rule| matches!(rule.then.exit, Exit::Terminal(_)));
        assert!(decides || listener.default_pool.is_some(), "a request that nothing takes");
        if let Some(pool) = listener.default_pool {
            assert!(!plan.pool(pool).name.is_empty());
        }
        let named = listener.program.as_ref().map_or(0, |program| program.targets.len());
        assert_eq!(listener.targets.len(), named);
        for target in &listener.targets {
            let pool = plan.pool(target.pool);
            assert!(target.server.is_none_or(|server| !pool.server(server).name.is_empty()));
        }
    }
}

fn assert_unique<'n>(names: impl Iterator<Item = &'n str>) {
    let mut names: Vec<_> = names.collect();
    let there = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), there, "two of one name");
}

fn says_the_same_with_a_comment(plan: &Plan, source: &str, rules: &str) {
    let commented = format!("# first\n{source}\n# last");
    // A byte-order mark may stand only first.
    if !source.starts_with('\u{feff}') {
        let again = Plan::from_texts(&commented, rules).expect("comments change nothing");
        assert_eq!(format!("{:?}", again.plan), format!("{plan:?}"));
    }
}
