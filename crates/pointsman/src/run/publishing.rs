//! Rules and configurations that are put in the place of others at run time: they serve at once, and stand in their file.
//!
//! Invariant: what serves and what stands on disk are the same before and after; docs/adr/0023 says why.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pointsman_config::{Instead, Loaded, Plan, Problems, RuleSet, changed_file};
use tempfile::NamedTempFile;

use super::aside::giving_way;
use super::history::By;
use super::reloads::{Refused, Reloaded, Reloads};

/// Another text for a file, and the plan that it would make.
pub(super) struct Draft {
    pub(super) loaded: Loaded,
    path: PathBuf,
    text: String,
    /// What stands in the file, and serves.
    before: Arc<str>,
}

impl Draft {
    /// The file that the text is for.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Why rules cannot be put in the place of others.
pub(super) enum Unfit {
    NoListener,
    /// The listener names no rules file.
    NoRules,
    /// What stands on disk is not what serves.
    Changed(PathBuf),
    /// The configuration with these rules is wrong.
    Wrong(Problems),
}

/// Why they were not.
pub(super) enum Unpublished {
    Unwritable(io::Error),
    Refused(String),
    /// Sockets are being handed over to another process.
    Upgrading,
}

impl Reloads {
    /// The rules of a listener that serves: nothing where it has none.
    pub(super) fn rules_of(&self, listener: &str) -> Result<RuleSet, Unfit> {
        let switch = self.switch.borrow();
        let program =
            switch.with_plan(|plan| plan.listener_named(listener).map(|found| found.program.clone()));
        let program = program.ok_or(Unfit::NoListener)?.ok_or(Unfit::NoRules)?;
        let sets = self.rule_sets.borrow();
        let set = sets.iter().find(|set| Arc::ptr_eq(&set.program, &program));
        set.cloned().ok_or(Unfit::NoRules)
    }

    /// What other rules would make of the configuration, as it stands on disk and serves.
    pub(super) fn draft(&self, listener: &str, text: String) -> Result<Draft, Unfit> {
        let path = self.rules_of(listener)?.path;
        self.draft_at(path, text)
    }

    /// The same for a rules file.
    pub(super) fn draft_at(&self, path: PathBuf, text: String) -> Result<Draft, Unfit> {
        let before =
            self.rule_sets.borrow().iter().find(|set| set.path == path).map(|set| set.source.clone());
        self.draft_of(path, text, before.ok_or(Unfit::NoRules)?)
    }

    /// The same for the configuration itself.
    pub(super) fn draft_configuration(&self, text: String) -> Result<Draft, Unfit> {
        let before = self.source.borrow().clone();
        self.draft_of(self.config.clone(), text, before)
    }

    fn draft_of(&self, path: PathBuf, text: String, before: Arc<str>) -> Result<Draft, Unfit> {
        if let Some(changed) = changed_file(&self.files.borrow()) {
            return Err(Unfit::Changed(changed.to_owned()));
        }
        let (config, instead) = (self.config(), Instead { path: &path, text: &text });
        let loaded = self
            .switch
            .borrow()
            .with_plan(|plan| giving_way(|| Plan::load_instead(config, Some(plan), instead)))
            .map_err(Unfit::Wrong)?;
        Ok(Draft { loaded, path, text, before })
    }

    /// Writes the text to its file, and lets it serve.
    pub(super) fn publish(&self, draft: Draft, by: By) -> Result<Reloaded, Unpublished> {
        self.is_free().map_err(|_| Unpublished::Upgrading)?;
        let Draft { loaded, path, text, before } = draft;
        write(&path, text.as_bytes()).map_err(Unpublished::Unwritable)?;
        self.take(loaded, by).map_err(|refused| {
            let fault = match refused {
                Refused::System(fault) => fault,
                // Nothing begins one in between.
                Refused::Upgrading => String::new(),
                Refused::Files(problems) => problems
                    .diagnostics()
                    .next()
                    .map_or_else(String::new, |(_, finding)| finding.message.clone()),
            };
            match write(&path, before.as_bytes()) {
                Ok(()) => Unpublished::Refused(fault),
                Err(error) => Unpublished::Refused(format!(
                    "{fault}; and `{}` has the new text, for it could not be written back: {error}",
                    path.display()
                )),
            }
        })
    }
}

/// Writes a file in one step: whoever reads it sees the old text or the new one, also after a crash.
pub(super) fn write(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    // A link stays, and what it leads to is written.
    let target = path.canonicalize()?;
    let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let old = fs::metadata(&target)?;
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(text.as_ref())?;
    new.as_file().set_permissions(old.permissions())?;
    keep_owner(new.as_file(), &old);
    new.as_file().sync_all()?;
    new.persist(&target)?;
    File::open(folder)?.sync_all()
}

/// Only root may give files away; elsewhere the file is of the one who writes it.
fn keep_owner(new: &File, old: &fs::Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let (Ok(()) | Err(_)) = fchown(new, Some(old.uid()), Some(old.gid()));
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_keeps_its_mode_and_a_link_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").expect("a writable folder");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("it is ours");
        symlink("real", &link).expect("a writable folder");
        write(&link, "new").expect("a writable folder");
        assert_eq!(fs::read_to_string(&real).expect("it is there"), "new");
        assert_eq!(fs::metadata(&real).expect("it is there").mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 2, "nothing else is left");
        assert!(write(&folder.path().join("none"), "new").is_err());
    }
}
