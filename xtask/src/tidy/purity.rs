//! The pure crates know no runtime, no clock, no randomness, no file and no socket.

use super::tree::{SourceFile, Tree};
use super::{Finding, dependencies};

const PURE: &[&str] = &[
    "pointsman-rules",
    "pointsman-http",
    "pointsman-balance",
    "pointsman-shape",
    "pointsman-measure",
    "pointsman-view",
    "pointsman-content",
    "pointsman-analysis",
];

/// Dependencies that bring a runtime, sockets, TLS, randomness or files.
const CRATES: &[&str] =
    &["tokio", "tokio-rustls", "rustls", "mio", "socket2", "rand", "fastrand", "getrandom", "tempfile"];

/// Names of the standard library that do. Addresses (`IpAddr`, `SocketAddr`) are values and welcome.
const WORDS: &[&str] =
    &["Instant", "SystemTime", "TcpStream", "TcpListener", "UdpSocket", "UnixStream", "RandomState"];

/// The same, for modules.
const MODULES: &[&str] = &["std::fs", "std::process", "std::thread", "std::env", "std::os", "std::io"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in PURE {
        if let Some(manifest) = tree.get(&format!("crates/{name}/Cargo.toml")) {
            findings.extend(impure_dependencies(manifest));
        }
        let sources = format!("crates/{name}/src/");
        for file in tree.with_ending(".rs").filter(|file| file.path.starts_with(&sources)) {
            findings.extend(impure_words(file));
        }
    }
    findings
}

fn impure_dependencies(manifest: &SourceFile) -> impl Iterator<Item = Finding> {
    let lines = dependencies::lines_of(manifest, "[dependencies]");
    lines.filter(|(_, _, name)| CRATES.contains(name)).map(|(line, _, name)| {
        Finding::line(&manifest.path, line, format!("a pure crate does not depend on `{name}`"))
    })
}

fn impure_words(file: &SourceFile) -> impl Iterator<Item = Finding> {
    let tests = file.first_test_line();
    file.lines().take_while(move |(line, _)| *line < tests).filter_map(|(line, text)| {
        let code = text.split("//").next().unwrap_or_default();
        let mut words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let word = words.find(|word| WORDS.contains(word));
        let named = word.or_else(|| MODULES.iter().copied().find(|module| code.contains(module)))?;
        Some(Finding::line(&file.path, line, format!("a pure crate does not name `{named}`")))
    })
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;

    #[test]
    fn impurity_is_found() {
        let clean =
            "use std::net::{IpAddr, SocketAddr};\n// an Instant in a comment\n#[cfg(test)]\nuse std::fs;\n";
        assert_eq!(found(check, &[("crates/pointsman-http/src/lib.rs", clean)]).len(), 0);
        assert_eq!(found(check, &[("crates/pointsman-net/src/lib.rs", "use std::time::Instant;")]).len(), 0);
        for code in ["use std::time::Instant;", "use std::net::{IpAddr, TcpStream};", "std::fs::read(path)"] {
            assert_eq!(found(check, &[("crates/pointsman-view/src/lib.rs", code)]).len(), 1, "{code}");
        }
        let manifest = "[dependencies]\nmemchr.workspace = true\ntokio.workspace = true\n";
        let findings = found(check, &[("crates/pointsman-rules/Cargo.toml", manifest)]);
        assert_eq!(
            findings,
            ["crates/pointsman-rules/Cargo.toml:3: a pure crate does not depend on `tokio`"]
        );
        let only_in_tests = "[dependencies]\n[dev-dependencies]\ntempfile.workspace = true\n";
        assert_eq!(found(check, &[("crates/pointsman-rules/Cargo.toml", only_in_tests)]).len(), 0);
    }
}
