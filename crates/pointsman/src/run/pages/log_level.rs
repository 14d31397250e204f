//! How much the switch says of itself: shown, and set for a while.

use pointsman_admin::{Page, Request};
use pointsman_config::LogLevel;
use serde_json::{Value, json};

use super::SwitchPages;
use super::body::object;
use super::changes::seen;

impl SwitchPages {
    /// The level that holds.
    pub(super) fn log_level(&self) -> Page {
        let levels = &self.reloads.levels;
        let (now, configured) = (levels.now().name(), levels.configured().name());
        Page::json(&json!({ "version": 1, "level": now, "configured": configured })).with_version(now)
    }

    /// Another one from now on. It says all that is to hold, so that `If-Match` is heeded only where it is given.
    pub(super) fn set_log_level(&self, request: &Request) -> Page {
        let levels = &self.reloads.levels;
        if request.if_match.is_some()
            && let Err(page) = seen(request, "level", levels.now().name())
        {
            return page;
        }
        match asked(&request.body) {
            Some(level) => {
                levels.set(level.unwrap_or(levels.configured()));
                self.log_level()
            }
            None => {
                let names = LogLevel::ALL.map(|level| format!("`{}`", level.name())).join(", ");
                Page::problem(
                    400,
                    format!("the body is {{\"level\": LEVEL}}, one of {names}, or null: as configured"),
                )
            }
        }
    }
}

/// The level that a body asks for, if it is understood; none of its own where it is to be as configured.
fn asked(body: &[u8]) -> Option<Option<LogLevel>> {
    let members = object(body).ok()?;
    if members.len() != 1 {
        return None;
    }
    match members.get("level")? {
        Value::Null => Some(None),
        level => LogLevel::named(level.as_str()?).map(Some),
    }
}
