//! What is wrong with a configuration, file by file, and how it is shown.

use std::io;
use std::path::Path;
use std::sync::Arc;

use pointsman_rules::{Colour, Diagnostic, Severity, Span, draw};

use crate::findings::Findings;
use crate::reading::reason;
use crate::watch::WatchedFile;

/// Findings about the files of one configuration.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    files: Vec<FileProblems>,
    watched: Vec<WatchedFile>,
    unreadable: bool,
}

/// Findings about one file.
#[derive(Clone, Debug)]
pub struct FileProblems {
    /// What people call it: its path as the operator would write it.
    pub name: String,
    /// Its text; empty where it could not be read.
    pub source: Arc<str>,
    /// The findings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl Problems {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether the configuration cannot be used.
    pub fn has_errors(&self) -> bool {
        self.worst() == Some(Severity::Error)
    }

    /// Whether the configuration file itself could not be read at all.
    pub fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// The worst severity among the findings.
    pub fn worst(&self) -> Option<Severity> {
        self.diagnostics().map(|(_, diagnostic)| diagnostic.severity).max()
    }

    /// The files that something was found in: the configuration first, then the rules files it names.
    pub fn files(&self) -> &[FileProblems] {
        &self.files
    }

    /// Every finding with its file.
    pub fn diagnostics(&self) -> impl Iterator<Item = (&FileProblems, &Diagnostic)> {
        self.files.iter().flat_map(|file| file.diagnostics.iter().map(move |diagnostic| (file, diagnostic)))
    }

    /// The files that were read, or looked for in vain, before the configuration was refused. A control loop
    /// watches them: the next attempt is worth making when they have changed, and not before.
    pub fn watched(&self) -> &[WatchedFile] {
        &self.watched
    }

    /// Every finding drawn under its line, an empty line after each; a sentence where there are no lines.
    pub fn render(&self, colour: Colour) -> String {
        if self.unreadable {
            return self.diagnostics().map(|(_, finding)| format!("error: {}\n", finding.message)).collect();
        }
        self.files.iter().map(|file| draw(&file.diagnostics, &file.name, &file.source, colour)).collect()
    }

    /// Adds the findings of a file.
    pub(crate) fn add(&mut self, path: &Path, source: Arc<str>, diagnostics: Vec<Diagnostic>) {
        if !diagnostics.is_empty() {
            self.files.push(FileProblems { name: path.display().to_string(), source, diagnostics });
        }
    }

    /// Adds findings about further files.
    pub(crate) fn append(&mut self, other: Problems) {
        self.files.extend(other.files);
    }

    /// The findings about one file.
    pub(crate) fn of(path: &Path, source: &str, findings: Findings<'_>) -> Self {
        let mut problems = Self::default();
        problems.add(path, Arc::from(source), findings.into_sorted());
        problems
    }

    /// That a configuration file cannot be read.
    pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> Self {
        let message = format!("cannot read `{}`: {}", path.display(), reason(error));
        Self::unreadable(path, Diagnostic::error(Span::default(), message))
    }

    /// The one finding of a configuration file that cannot be read.
    fn unreadable(path: &Path, diagnostic: Diagnostic) -> Self {
        let mut problems = Self { unreadable: true, ..Self::default() };
        problems.add(path, Arc::from(""), vec![diagnostic]);
        problems
    }

    /// The same, with the files that are to be watched.
    pub(crate) fn watching(mut self, watched: Vec<WatchedFile>) -> Self {
        self.watched = watched;
        self
    }
}
