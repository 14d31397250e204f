//! Rules and configurations that are put in the place of others at run time: they serve at once, and stand in their file.
//!
//! Invariant: what serves and what stands on disk are the same before and after; docs/adr/0023 says why.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pointsman_config::{Instead, Loaded, Plan, Problems, RuleSet, changed_file};
use tempfile::NamedTempFile;

use super::history::By;
use super::reloads::{Refused, Reloaded, Reloads, Unread, Unready};
use super::turns::Turn;

/// Another text for a file, and the plan that it would make.
pub(super) struct Draft {
    pub(super) loaded: Loaded,
    path: PathBuf,
    text: Arc<str>,
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
    /// Reading it broke off.
    BrokeOff,
}

/// Why they were not.
pub(super) enum Unpublished {
    Unwritable(io::Error),
    Refused(String),
    /// The configuration with it is wrong, which its names showed.
    Wrong(Problems),
    /// What stands on disk has changed while it was read.
    Changed(PathBuf),
    /// Nothing may change by now.
    Unready(Unready),
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

    /// What other rules would make of the configuration, as it stands on disk and serves. As with all of these, in a turn that
    /// has come.
    pub(super) async fn draft(&self, turn: &Turn, listener: &str, text: String) -> Result<Draft, Unfit> {
        let path = self.rules_of(listener)?.path;
        self.draft_at(turn, path, text).await
    }

    /// The same for a rules file.
    pub(super) async fn draft_at(&self, turn: &Turn, path: PathBuf, text: String) -> Result<Draft, Unfit> {
        let before =
            self.rule_sets.borrow().iter().find(|set| set.path == path).map(|set| set.source.clone());
        self.draft_of(turn, path, text, before.ok_or(Unfit::NoRules)?).await
    }

    /// The same for the configuration itself.
    pub(super) async fn draft_configuration(&self, turn: &Turn, text: String) -> Result<Draft, Unfit> {
        let before = self.source.borrow().clone();
        self.draft_of(turn, self.config.clone(), text, before).await
    }

    async fn draft_of(
        &self,
        turn: &Turn,
        path: PathBuf,
        text: String,
        before: Arc<str>,
    ) -> Result<Draft, Unfit> {
        if let Some(changed) = changed_file(&self.files.borrow()) {
            return Err(Unfit::Changed(changed.to_owned()));
        }
        let (config, instead, text) = (self.config.clone(), path.clone(), Arc::<str>::from(text));
        let new = text.clone();
        let read = move |plan: &Plan| {
            let instead = Instead { path: &instead, text: &new };
            Plan::load_instead(&config, Some(plan), instead)
        };
        match self.read(turn, read).await {
            Ok(loaded) => Ok(Draft { loaded, path, text, before }),
            Err(Unread::Wrong(problems)) => Err(Unfit::Wrong(problems)),
            Err(Unread::BrokeOff) => Err(Unfit::BrokeOff),
        }
    }

    /// Writes the text to its file, and lets it serve: in the turn in which it was read. What it names is looked up before: a text
    /// that does not serve does not lie on disk for longer than it takes to find that out.
    pub(super) async fn publish(&self, turn: &Turn, draft: Draft, by: By) -> Result<Reloaded, Unpublished> {
        self.is_free().map_err(Unpublished::of)?;
        let Draft { loaded, path, text, before } = draft;
        let looked_up = self.look_up(&loaded, turn).await;
        if let Some(changed) = changed_file(&self.files.borrow()) {
            return Err(Unpublished::Changed(changed.to_owned()));
        }
        write(&path, text.as_bytes()).map_err(Unpublished::Unwritable)?;
        self.take(loaded, looked_up, by).map_err(|refused| {
            let why = Unpublished::of(refused);
            match (write(&path, before.as_bytes()), why) {
                (Ok(()), why) => {
                    self.is_written_back();
                    why
                }
                (Err(error), why) => Unpublished::Refused(format!(
                    "{}; and `{}` has the new text, for it could not be written back: {error}",
                    why.sentence(),
                    path.display()
                )),
            }
        })
    }
}

impl Unpublished {
    /// A plan was not taken.
    fn of(refused: Refused) -> Unpublished {
        match refused {
            Refused::System(fault) => Unpublished::Refused(fault),
            Refused::Unready(why) => Unpublished::Unready(why),
            Refused::Files(problems) => Unpublished::Wrong(problems),
        }
    }

    /// Why, in a few words.
    pub(super) fn sentence(&self) -> String {
        match self {
            Unpublished::Unwritable(error) => error.to_string(),
            Unpublished::Refused(fault) => fault.clone(),
            Unpublished::Wrong(problems) => {
                let first = problems.diagnostics().next();
                first.map_or_else(String::new, |(_, finding)| finding.message.clone())
            }
            Unpublished::Changed(path) => {
                format!("`{}` has changed since it was read: reload first, or undo that", path.display())
            }
            Unpublished::Unready(why) => why.sentence().to_owned(),
        }
    }
}

/// Writes a file in one step: whoever reads it sees the old text or the new one, also after a crash.
pub(super) fn write(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    // A link stays, and what it leads to is written.
    let target = path.canonicalize()?;
    let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let old = fs::metadata(&target)?;
    // What somebody hands over by a pipe is not to lie on a disk.
    if !old.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
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
        let refused = write(Path::new("/dev/null"), "new").expect_err("it is a device");
        assert_eq!(refused.to_string(), "it is no regular file");
    }
}
