//! The access log: from its table to where lines go, what they look like, and which requests leave one.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::findings::{Findings, Spanned};
use crate::lower::Outside;
use crate::notation;
use crate::section::Section;

/// Where the access log goes, and what stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where lines are written.
    pub destination: LogDestination,
    /// What a line looks like.
    pub format: LogFormat,
    /// Whether lines of the common and the combined format go on with what JSON lines say beyond them.
    pub details: bool,
    /// How many of the requests that went well leave a line.
    pub sample: Share,
}

/// Where the access log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogDestination {
    /// To standard output.
    StandardOutput,
    /// To the end of a file.
    File(PathBuf),
}

/// What a line of the access log looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object.
    Json,
    /// The Common Log Format of NCSA httpd, as Apache and nginx write it.
    Common,
    /// The same, with the fields `Referer` and `User-Agent`.
    Combined,
}

/// A share of many, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u32);

/// The table as written.
pub(crate) struct AccessLogSpec {
    /// `-` is standard output. Absent only where that was reported.
    path: Option<Spanned<String>>,
    format: LogFormat,
    details: bool,
    sample: Share,
    /// Whether lines have the queries.
    pub(crate) query: bool,
}

impl Share {
    /// Every one.
    pub const ALL: Share = Share(1_000_000);

    /// A share of so many millionths; more than all is all.
    pub fn per_million(millionths: u32) -> Share {
        Share(millionths.min(Self::ALL.0))
    }

    /// In millionths, at most 1,000,000.
    pub fn millionths(self) -> u32 {
        self.0
    }
}

impl AccessLogSpec {
    pub(crate) fn read(section: &Section<'_>) -> AccessLogSpec {
        let format = match section.word("format") {
            "common" => LogFormat::Common,
            "combined" => LogFormat::Combined,
            _ => LogFormat::Json,
        };
        if format == LogFormat::Json && section.has("details") {
            let help = "JSON lines say all; it belongs to `common` and `combined`";
            section.findings().error(
                section.place("details"),
                "`details` has no use with this `format`",
                help,
            );
        }
        AccessLogSpec {
            path: section.parsed("path", notation::path),
            format,
            details: section.flag("details"),
            sample: section.parsed("sample", notation::share).map_or(Share::ALL, |share| share.value),
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
        let AccessLogSpec { format, details, sample, .. } = *self;
        Some(AccessLog { destination, format, details, sample })
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
