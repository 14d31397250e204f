//! The certificates of listeners and pools: shown, and replaced. Keys are never shown, nor kept anywhere but in their files.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use pointsman_admin::{Page, Request, word};
use pointsman_config::version;
use pointsman_telemetry::rfc3339;
use pointsman_tls::CertificateFacts;
use serde_json::{Value, json};

use super::changes::seen;
use super::{SwitchPages, colour, findings, members};
use crate::run::certificates::{Shown, Unreplaced, shown_certificates};
use crate::run::history::By;
use crate::run::notice::notice;
use crate::run::publishing::Unfit;

impl SwitchPages {
    /// All of them.
    pub(super) fn certificates(&self) -> Page {
        let shown = self.switch.borrow().with_plan(shown_certificates);
        let certificates: Vec<Value> = shown.iter().map(certificate).collect();
        Page::json(&json!({ "version": 1, "certificates": certificates }))
    }

    /// One of them.
    pub(super) fn certificate(&self, id: &str) -> Page {
        self.certificate_with(id, json!({}))
    }

    /// Another one in its place.
    pub(super) async fn replace_certificate(&self, request: &Request) -> Result<Page, Page> {
        let turn = self.turn_to_change(request).await?;
        let old = self.certificate_of(request.name()).ok_or_else(no_certificate)?;
        seen(request, "fingerprint", &old.facts.fingerprint)?;
        let who = request.who.as_deref().unwrap_or("-");
        let by = By::now(who, request.parameter("why").unwrap_or_default());
        let replaced = self.reloads.replace_certificate(&turn, &old, &request.body, by).await;
        let reloaded = replaced.map_err(|why| self.unreplaced(why, request))?;
        let Shown { facts: new, .. } = self.certificate_of(request.name()).ok_or_else(no_certificate)?;
        notice(&format!(
            "certificate replaced file={} fingerprint={} by={}",
            new.file.display(),
            new.fingerprint,
            word(who)
        ));
        let gone: Vec<&String> = old.facts.names.iter().filter(|name| !new.names.contains(name)).collect();
        let done = json!({
            "generation": reloaded.generation,
            "names_gone": gone,
            "findings": findings(&reloaded.warnings),
            "text": reloaded.warnings.render(colour(request)),
        });
        Ok(self.certificate_with(request.name(), done))
    }

    fn unreplaced(&self, why: Unreplaced, request: &Request) -> Page {
        let colour = colour(request);
        match why {
            Unreplaced::Changed(path) => self.unfit(Unfit::Changed(path), colour),
            Unreplaced::Wrong(errors) => {
                let said: Vec<String> = errors
                    .iter()
                    .map(|error| match error.help() {
                        Some(help) => format!("{error}; {help}"),
                        None => error.to_string(),
                    })
                    .collect();
                Page::problem(422, format!("nothing has changed: {}", said.join("; ")))
            }
            Unreplaced::Unwritable(error) => {
                Page::problem(500, format!("nothing has changed: the files cannot be written: {error}"))
            }
            Unreplaced::Refused(refused) => self.refused(&refused, colour),
        }
    }

    fn certificate_of(&self, id: &str) -> Option<Shown> {
        let shown = self.switch.borrow().with_plan(shown_certificates);
        shown.into_iter().find(|shown| id_of(&shown.facts) == id)
    }

    fn certificate_with(&self, id: &str, more: Value) -> Page {
        let Some(shown) = self.certificate_of(id) else { return no_certificate() };
        let mut page = members(certificate(&shown));
        page.insert("version".to_owned(), json!(1));
        page.extend(members(more));
        Page::json(&Value::Object(page)).with_version(&shown.facts.fingerprint)
    }
}

fn no_certificate() -> Page {
    Page::problem(404, "there is no such certificate: `/api/v1/certificates` names them")
}

/// What it is called: by its files, whatever stands in them.
fn id_of(facts: &CertificateFacts) -> String {
    const LETTERS: usize = 16;
    let mut id = version(&format!("{}\n{}", facts.file.display(), facts.key_file.display()));
    id.truncate(LETTERS);
    id
}

fn certificate(shown: &Shown) -> Value {
    let Shown { facts, .. } = shown;
    let names = |shown: &[Arc<str>]| shown.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let now = SystemTime::now();
    let concerns: Vec<String> = facts.warnings(now).iter().map(ToString::to_string).collect();
    json!({
        "id": id_of(facts),
        "listeners": names(&shown.listeners),
        "pools": names(&shown.pools),
        "admin": shown.is_of_admin,
        "names": facts.names,
        "subject": facts.subject,
        "issuer": facts.issuer,
        "not_before": when(facts.not_before),
        "not_after": when(facts.not_after),
        "days_left": facts.days_left(now),
        "key": facts.key_kind,
        "fingerprint": facts.fingerprint,
        "chain": facts.chain,
        "file": facts.file.display().to_string(),
        "key_file": facts.key_file.display().to_string(),
        "concerns": concerns,
    })
}

fn when(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    rfc3339(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
