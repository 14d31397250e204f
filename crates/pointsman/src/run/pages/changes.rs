//! What all changes of files have in common: who has seen what they change, and what stands against it.

use std::path::Path;

use pointsman_admin::{Page, Pages, Request};
use pointsman_config::Colour;
use serde_json::{Map, json};

use super::{SwitchPages, drains, wrong};
use crate::run::publishing::{Unfit, Unpublished};
use crate::run::reloads::{BROKE_OFF, Refused, Unready};
use crate::run::turns::Turn;

/// Whether whoever asks has seen the version that serves, which `key` names in the answer that they have not.
pub(super) fn seen(request: &Request, key: &str, version: &str) -> Result<(), Page> {
    let problem = |status, detail| {
        let member = Map::from_iter([(key.to_owned(), json!(version))]);
        Page::problem_with(status, detail, member).with_version(version)
    };
    match request.if_match.as_deref() {
        Some(given) if matches(given, version) => Ok(()),
        Some(_) => Err(problem(412, "another version serves than `If-Match` says: read it, and change that")),
        None => {
            Err(problem(428, "`If-Match` must say which version is to be changed: the `ETag` of what serves"))
        }
    }
}

/// Nothing may change while sockets are being handed over.
pub(super) fn upgrading() -> Page {
    Page::problem(503, "an upgrade is under way: ask again when it is over")
}

/// Nothing may change.
pub(super) fn unready(why: Unready) -> Page {
    match why {
        Unready::Upgrading => upgrading(),
        Unready::Draining => drains(),
    }
}

impl SwitchPages {
    /// Waits for a turn to change something, or to have it read, for who may still ask for it by then.
    pub(super) async fn turn(&self, request: &Request) -> Result<Turn, Page> {
        let Some(turn) = self.reloads.turns.take_if_few() else {
            return Err(Page::problem(
                503,
                "too many changes wait already: ask again when some of them are done",
            ));
        };
        self.reloads.drain.or_begins(turn.comes()).await.ok_or_else(drains)?;
        request.credentials.check(self.settings().as_deref())?;
        Ok(turn)
    }

    /// The same for what is to last, which may be refused by then.
    pub(super) async fn turn_to_change(&self, request: &Request) -> Result<Turn, Page> {
        let turn = self.turn(request).await?;
        match self.reloads.is_free() {
            Ok(()) => Ok(turn),
            Err(refused) => Err(self.refused(&refused, Colour::Never)),
        }
    }

    /// A plan was not taken.
    pub(super) fn refused(&self, refused: &Refused, colour: Colour) -> Page {
        match refused {
            Refused::Files(problems) => wrong(problems, colour, &self.configuration()),
            Refused::Unready(why) => unready(*why),
            Refused::System(fault) => Page::problem(422, format!("nothing has changed: {fault}")),
        }
    }

    /// Nothing was written, or not for long.
    pub(super) fn unpublished(&self, why: &Unpublished, path: &Path, colour: Colour) -> Page {
        match why {
            Unpublished::Unwritable(error) => {
                let detail = format!("nothing has changed: `{}` cannot be written: {error}", path.display());
                Page::problem(500, detail)
            }
            Unpublished::Unready(why) => unready(*why),
            Unpublished::Changed(_) => Page::problem(409, why.sentence()),
            Unpublished::Refused(fault) => Page::problem(422, format!("nothing has changed: {fault}")),
            Unpublished::Wrong(problems) => wrong(problems, colour, &self.configuration()),
        }
    }

    pub(super) fn unfit(&self, unfit: Unfit, colour: Colour) -> Page {
        match unfit {
            Unfit::NoListener => Page::problem(404, "there is no such listener: `/api/v1/plan` names them"),
            Unfit::NoRules => {
                Page::problem(409, "the listener has no rules: name a file with `rules` in the configuration")
            }
            Unfit::Changed(path) => Page::problem(409, Unpublished::Changed(path).sentence()),
            Unfit::Wrong(problems) => wrong(&problems, colour, &self.configuration()),
            Unfit::BrokeOff => Page::problem(500, BROKE_OFF),
        }
    }
}

/// Whether `If-Match` names a version (RFC 9110 section 13.1.1).
fn matches(given: &str, version: &str) -> bool {
    given
        .split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')) == Some(version))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn versions_are_named_in_quotes() {
        for (given, expected) in [
            ("\"ab\"", true),
            ("*", true),
            ("\"cd\", \"ab\"", true),
            ("\"cd\"", false),
            ("ab", false),
            ("W/\"ab\"", false),
            ("", false),
        ] {
            assert_eq!(matches(given, "ab"), expected, "{given}");
        }
    }
}
