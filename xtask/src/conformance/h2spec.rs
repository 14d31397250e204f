//! h2spec: some 150 cases of RFC 9113 and RFC 7541 against a server of HTTP/2.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Because, Failure, Result};
use crate::packages::{self, Tool};
use crate::project::{Project, succeed};

const TOOLS: &[Tool] =
    &[Tool { program: "go", package: "golang-go" }, Tool { program: "timeout", package: "coreutils" }];
/// How long a case waits for what must come. Machines that run tests are busy.
const CASE_SECONDS: &str = "5";
/// How long all cases together may take, when most of them fail.
const RUN_SECONDS: &str = "900";

/// The program, built.
pub(super) struct H2spec(PathBuf);

/// What became of the cases.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) passed: usize,
    pub(super) skipped: usize,
    /// Which, and what came of each.
    pub(super) failed: Vec<String>,
}

impl H2spec {
    /// Builds it of the module in `xtask/h2spec`, which pins it and what it stands on by their hashes.
    pub(super) fn installed(project: &Project) -> Result<Self> {
        packages::ensure(TOOLS)?;
        let binary = project.target().join("h2spec");
        if !binary.is_file() {
            println!("== building h2spec");
            let mut go = Command::new(packages::located("go")?);
            go.current_dir(project.root().join("xtask/h2spec")).args(["build", "-mod=readonly", "-o"]);
            succeed(go.arg(&binary).arg("github.com/summerwind/h2spec/cmd/h2spec"))?;
        }
        Ok(Self(binary))
    }

    /// Runs all cases against a server; its report goes to a file.
    pub(super) fn run(
        &self,
        server: SocketAddr,
        is_tls: bool,
        is_strict: bool,
        file: &Path,
    ) -> Result<Report> {
        // What an earlier run left behind says nothing about this one.
        drop(std::fs::remove_file(file));
        let mut command = Command::new("timeout");
        command.args(["--foreground", RUN_SECONDS]).arg(&self.0).args(["--timeout", CASE_SECONDS]);
        command.args(["--host", &server.ip().to_string(), "--port", &server.port().to_string()]);
        if is_tls {
            command.args(["--tls", "--insecure"]);
        }
        if is_strict {
            command.arg("--strict");
        }
        command.arg("--junit-report").arg(file);
        // It fails where a case does; where it fails for another reason there is no report.
        let output = command.output().because(|| "cannot run h2spec".into())?;
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let report = Report::read(&text).filter(|report| report != &Report::default());
        report.ok_or_else(|| {
            let said = String::from_utf8_lossy(&output.stdout);
            Failure::new(format!("h2spec made no report: {}\n{}", output.status, said.trim_end()))
        })
    }
}

impl Report {
    /// Of JUnit's XML as h2spec writes it.
    fn read(text: &str) -> Option<Self> {
        let mut report = Self::default();
        for case in text.split("<testcase ").skip(1) {
            let (case, _) = case.split_once("</testcase>")?;
            let (attributes, outcome) = case.split_once('>')?;
            let attribute = |name: &str| {
                let (_, value) = attributes.split_once(&format!("{name}=\""))?;
                Some(plain(value.split_once('"')?.0))
            };
            if outcome.contains("<skipped") {
                report.skipped += 1;
            } else if outcome.contains("<error") || outcome.contains("<failure") {
                let lines: Vec<_> = outcome.lines().map(|line| plain(without_tags(line).trim())).collect();
                let lines: Vec<_> =
                    lines.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
                // What was expected stands before what came, a line each.
                let (seen, expected) = lines.split_last()?;
                let expected = expected.join(", or ");
                let place = format!("{}: {}", attribute("package")?, attribute("classname")?);
                report.failed.push(format!("{place}: {seen} instead of {expected}"));
            } else {
                report.passed += 1;
            }
        }
        Some(report)
    }
}

fn without_tags(line: &str) -> String {
    let mut text = String::new();
    for piece in line.split('<') {
        text.push_str(piece.split_once('>').map_or(piece, |(_, behind)| behind));
    }
    text
}

/// Text with XML's five characters as they are.
fn plain(text: &str) -> String {
    let pairs =
        [("&lt;", "<"), ("&gt;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&quot;", "\""), ("&amp;", "&")];
    pairs.iter().fold(text.to_owned(), |text, (written, meant)| text.replace(written, meant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junit_is_read() {
        let text = "<testsuites>\n<testsuite name=\"1\" tests=\"3\">\n\
             <testcase package=\"generic/1\" classname=\"Sends a preface\" time=\"0.0002\"></testcase>\n\
             <testcase package=\"http2/8.1\" classname=\"omits &#34;:path&#34;\" time=\"2.1\">\n\
             <error>GOAWAY Frame\nConnection closed\nDATA Frame (length:6)</error>\n</testcase>\n\
             <testcase package=\"hpack/2\" classname=\"x\" time=\"0\">\n<skipped></skipped>\n</testcase>\n\
             </testsuite>\n</testsuites>";
        let failed =
            "http2/8.1: omits \":path\": DATA Frame (length:6) instead of GOAWAY Frame, or Connection closed";
        let report = Report { passed: 1, skipped: 1, failed: vec![failed.to_owned()] };
        assert_eq!(Report::read(text), Some(report));
        assert_eq!(Report::read("<testsuites></testsuites>"), Some(Report::default()));
        assert_eq!(Report::read("<testcase package=\"a\""), None);
    }
}
