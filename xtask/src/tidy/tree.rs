//! The files of the workspace as the checks see them: relative paths and texts.

use std::collections::BTreeSet;
use std::path::Path;

use crate::failure::{Because, Result};

/// Folders that hold nothing of ours.
const FOREIGN: &[&str] = &[".git", "target", "node_modules"];

/// Names of the files whose text is looked at.
const TEXTS: &[&str] = &[".rs", ".toml", ".md", ".rules", ".txt", ".sh", ".yml", ".json", ".ci/run"];

/// The workspace, read once.
#[derive(Default)]
pub(super) struct Tree {
    files: Vec<SourceFile>,
    /// Every file and folder, also those whose text is of no interest.
    paths: BTreeSet<String>,
}

/// A text file.
pub(super) struct SourceFile {
    /// Relative to the workspace, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl Tree {
    pub(super) fn load(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> Result<()> {
        let doing = || format!("cannot read the folder `{folder}`");
        for entry in std::fs::read_dir(root.join(folder)).because(doing)? {
            let entry = entry.because(doing)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type().because(doing)?;
            if kind.is_dir() && !FOREIGN.contains(&name.as_str()) {
                self.read_folder(root, &path)?;
            } else if kind.is_file() && TEXTS.iter().any(|ending| path.ends_with(ending)) {
                let bytes = std::fs::read(entry.path()).because(|| format!("cannot read `{path}`"))?;
                // Test data may be anything; what is not text is nobody's prose or code.
                if let Ok(text) = String::from_utf8(bytes) {
                    self.files.push(SourceFile { path: path.clone(), text });
                }
            }
            self.paths.insert(path);
        }
        Ok(())
    }

    /// A tree that exists only in a test.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.files.push(SourceFile { path: (*path).to_owned(), text: (*text).to_owned() });
            let folders = path.match_indices('/').map(|(end, _)| path[..end].to_owned());
            tree.paths.extend(folders.chain([(*path).to_owned()]));
        }
        tree
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    pub(super) fn with_ending(&self, ending: &str) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(move |file| file.path.ends_with(ending))
    }

    pub(super) fn get(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn holds(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// The folders under `crates/` that are crates.
    pub(super) fn crates(&self) -> BTreeSet<&str> {
        self.files
            .iter()
            .filter_map(|file| file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"))
            .filter(|name| !name.contains('/'))
            .collect()
    }
}

impl SourceFile {
    /// Lines with their numbers, from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// The line from which on a Rust file is tests: they stand last, in a module of their own.
    pub(super) fn first_test_line(&self) -> usize {
        let is_test = self.path.contains("/tests/") || self.path.starts_with("crates/pointsman-e2e/");
        if is_test {
            return 1;
        }
        self.lines().find(|(_, text)| text.trim() == "#[cfg(test)]").map_or(usize::MAX, |(line, _)| line)
    }
}
