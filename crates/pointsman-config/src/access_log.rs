//! The access log: from its table to where lines go, what they look like, and which requests leave one.

use std::path::{Path, PathBuf};
use std::{fs, io};

use pointsman_telemetry::{LogForm, LogStyle, Sample};

use crate::findings::{Findings, Spanned};
use crate::lower::Outside;
use crate::notation;
use crate::section::Section;

/// Where the access log goes, and what stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where lines are written.
    pub destination: LogDestination,
    /// What lines look like, and which requests leave one.
    pub style: LogStyle,
}

/// Where the access log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogDestination {
    /// To standard output.
    StandardOutput,
    /// To the end of a file.
    File(PathBuf),
}

/// The table as written.
pub(crate) struct AccessLogSpec {
    /// `-` is standard output. Absent only where that was reported.
    path: Option<Spanned<String>>,
    style: LogStyle,
    /// Whether lines have the queries.
    pub(crate) query: bool,
}

impl AccessLogSpec {
    pub(crate) fn read(section: &Section<'_>) -> AccessLogSpec {
        let form = match section.word("format") {
            "common" => LogForm::Common,
            "combined" => LogForm::Combined,
            _ => LogForm::Json,
        };
        let sample = section.parsed("sample", notation::sample).map_or(Sample::ALL, |sample| sample.value);
        if form == LogForm::Json && section.has("details") {
            let help = "JSON lines say all; it belongs to `common` and `combined`";
            section.findings().error(
                section.place("details"),
                "`details` has no use with this `format`",
                help,
            );
        }
        AccessLogSpec {
            path: section.parsed("path", notation::path),
            style: LogStyle { form, details: section.flag("details"), sample },
            query: section.flag("query"),
        }
    }

    pub(crate) fn lower(
        &self,
        folder: &Path,
        outside: Outside<'_>,
        findings: &Findings<'_>,
    ) -> Option<AccessLog> {
        let destination = destination(self.path.as_ref()?, folder, outside, findings);
        Some(AccessLog { destination, style: self.style })
    }
}

fn destination(
    written: &Spanned<String>,
    folder: &Path,
    outside: Outside<'_>,
    findings: &Findings<'_>,
) -> LogDestination {
    if written.value == "-" {
        return LogDestination::StandardOutput;
    }
    let path = folder.join(&written.value);
    if let Outside::Texts { .. } = outside {
        return LogDestination::File(path);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Somebody else may be allowed to look where this process is not, so other errors say nothing.
    let is_missing = match fs::metadata(folder) {
        Ok(found) => !found.is_dir(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if is_missing {
        let message = format!("there is no folder `{}` for the access log", folder.display());
        findings.error(written.span, message, "make it: the switch makes only the file");
    }
    LogDestination::File(path)
}
