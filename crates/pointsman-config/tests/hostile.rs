//! No text makes loading panic, and no error is without a place and a sentence.

use std::fs;
use std::path::Path;

use pointsman_config::{Colour, Plan};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

const EVERYTHING: &str = include_str!("../../../testdata/config/everything.toml");

/// Bits of configurations, whole and broken.
const FRAGMENTS: &[&str] = &[
    "[[listener]]\n",
    "[listener.tls]\n",
    "[listener.limits]\n",
    "[[listener.tls.certificates]]\n",
    "[pool.a]\n",
    "[pool]\n",
    "[[pool.a.servers]]\n",
    "[admin]\n",
    "[access_log]\n",
    "[[pool]]\n",
    "[listener]\n",
    "[[",
    "]]",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\"\"\"",
    "=",
    ",",
    ".",
    "\n",
    "\r\n",
    "#",
    "\\u00e9",
    "\u{feff}",
    "é",
    "\0",
    "name",
    "bind",
    "pool",
    "rules",
    "servers",
    "weight",
    "tls",
    "limits",
    "client_auth",
    "alpn",
    "address",
    "name = \"a\"\n",
    "bind = \"127.0.0.1:80\"\n",
    "bind = []\n",
    "pool = \"a\"\n",
    "pool.a.servers = [\"[::1]:1\"]\n",
    "servers = [\"127.0.0.1:1\", { address = \"127.0.0.1:2\", weight = 2 }]\n",
    "threads = 4\n",
    "rules = \"/\"\n",
    "tls = { certificate = \"/\", key = \"/\" }\n",
    "sticky_key = \"é\"\n",
    "trusted_proxies = [\"::/0\"]\n",
    "-1",
    "0",
    "0x7f",
    "1.5",
    "99999999999999999999",
    "true",
    "1979-05-27",
    "nan",
    "1_000",
];

proptest! {
    // What fails is written down as a vector, not as a seed.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        load(text.as_bytes())?;
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        load(&bytes)?;
    }

    #[test]
    fn any_fragments(fragments in prop::collection::vec(prop::sample::select(FRAGMENTS), 0..40)) {
        load(fragments.concat().as_bytes())?;
    }

    #[test]
    fn any_damage(
        at in any::<prop::sample::Index>(),
        cut in 0_usize..12,
        patch in prop::sample::select(FRAGMENTS),
    ) {
        let mut bytes = EVERYTHING.replace("localhost", "127.0.0.1").into_bytes();
        let start = at.index(bytes.len());
        let end = bytes.len().min(start + cut);
        bytes.splice(start..end, patch.bytes());
        // What is left of an address may read as a host name.
        prop_assume!(!hosts_in(&bytes));
        load(&bytes)?;
    }
}

fn load(content: &[u8]) -> TestCaseResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pointsman.toml");
    fs::write(&path, content)?;
    match Plan::load(&path, None) {
        Ok(loaded) => prop_assert!(!loaded.warnings.has_errors()),
        Err(problems) => {
            prop_assert!(problems.has_errors());
            prop_assert!(!problems.render(Colour::Never).is_empty());
            for (file, diagnostic) in problems.diagnostics() {
                let (start, end) = (diagnostic.span.start as usize, diagnostic.span.end as usize);
                prop_assert!(Path::new(&file.name) == path);
                prop_assert!(file.source.get(start..end).is_some(), "{diagnostic:?}");
                prop_assert!(!diagnostic.message.is_empty());
            }
        }
    }
    Ok(())
}

/// Whether something in the text may read as a host name with a port.
fn hosts_in(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let is_host = |host: &str| host.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    text.split('"')
        .filter_map(|quoted| quoted.rsplit_once(':'))
        .any(|(host, port)| is_host(host) && is_port(port))
}
