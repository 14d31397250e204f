//! Rules at run time: shown, checked, compared, published, restored.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use pointsman_admin::{Page, Request};
use pointsman_config::{Colour, RuleSet};
use pointsman_telemetry::{Durations, OutcomeCounts, RuleCounts};
use serde_json::{Map, Value, json};

use super::changes::seen;
use super::{SwitchPages, colour, compare, findings, undone};
use crate::replay::stand::Rules;
use crate::run::aside::let_go;
use crate::run::history::{By, History, Version};
use crate::run::publishing::Draft;
use crate::run::turns::Turn;

impl SwitchPages {
    /// The rules of a listener as they serve.
    pub(super) fn rules(&self, listener: &str) -> Page {
        let set = match self.reloads.rules_of(listener) {
            Ok(set) => set,
            Err(unfit) => return self.unfit(unfit, Colour::Never),
        };
        let mut rules = self.metrics.rules_of(listener);
        // In the order of the text, and behind them what no rule decided.
        let labels = set.program.rules.iter().map(|rule| &*rule.label);
        let places: HashMap<&str, usize> = labels.zip(0..).collect();
        rules.sort_by_key(|counts| places.get(&*counts.rule).copied().unwrap_or(usize::MAX));
        let rules = rules.into_iter().map(|RuleCounts { rule, hits, outcomes }| {
            let mut shown = outcomes_json(outcomes);
            (shown["rule"], shown["hits"]) = (json!(rule), json!(hits));
            shown
        });
        let version = set.version();
        let shown = json!({
            "version": 1,
            "listener": listener,
            "listeners": self.listeners_of(&set),
            "file": set.name,
            "rules_version": version,
            "text": &*set.source,
            "rules": rules.collect::<Vec<_>>(),
            "other": outcomes_json(self.metrics.other_rules_of(listener)),
        });
        Page::json(&shown).with_version(&version)
    }

    /// Other rules in their place, if those are still what the client thinks.
    pub(super) async fn publish_rules(&self, mut request: Request) -> Result<Page, Page> {
        let dry_run = request.says("dry_run");
        let turn = match dry_run {
            true => self.turn(&request).await?,
            false => self.turn_to_change(&request).await?,
        };
        let unfit = |unfit| self.unfit(unfit, colour(&request));
        let version = self.reloads.rules_of(request.name()).map_err(unfit)?.version();
        if !dry_run || request.if_match.is_some() {
            seen(&request, "rules_version", &version)?;
        }
        let draft = self.draft(&turn, &mut request).await?;
        Ok(match dry_run {
            true => self.compared(turn, draft, &request).await,
            false => {
                self.published(&turn, draft, &request, request.parameter("why").unwrap_or_default()).await
            }
        })
    }

    /// What is wrong with rules.
    pub(super) async fn validate_rules(&self, mut request: Request) -> Result<Page, Page> {
        let turn = self.turn(&request).await?;
        let draft = self.draft(&turn, &mut request).await?;
        let shown = json!({
            "version": 1,
            "findings": findings(&draft.loaded.warnings),
            "text": draft.loaded.warnings.render(colour(&request)),
        });
        let_go(draft);
        Ok(Page::json(&shown))
    }

    /// What rules would decide otherwise.
    pub(super) async fn compare_rules(&self, mut request: Request) -> Result<Page, Page> {
        let turn = self.turn(&request).await?;
        let draft = self.draft(&turn, &mut request).await?;
        Ok(self.compared(turn, draft, &request).await)
    }

    /// What the rules in a request's body would make of the configuration.
    pub(super) async fn draft(&self, turn: &Turn, request: &mut Request) -> Result<Draft, Page> {
        let text = text_of(request)?;
        let draft = self.reloads.draft(turn, request.name(), text).await;
        draft.map_err(|unfit| self.unfit(unfit, colour(request)))
    }

    /// Which rules have served, the newest first.
    pub(super) fn versions(&self) -> Page {
        let history = self.reloads.history.borrow();
        let versions: Vec<Value> = history.versions().rev().map(|version| self.shown(version)).collect();
        Page::json(&json!({ "version": 1, "versions": versions }))
    }

    /// One of them with its text.
    pub(super) fn version(&self, request: &Request) -> Result<Page, Page> {
        let history = self.reloads.history.borrow();
        let version = version_of(&history, request.name(), request.parameter("of"))?;
        let mut shown = self.shown(version);
        shown["version"] = json!(1);
        shown["text"] = json!(&*version.text);
        Ok(Page::json(&shown))
    }

    /// Rules that have served serve again.
    pub(super) async fn restore_version(&self, request: &Request) -> Result<Page, Page> {
        let turn = self.turn_to_change(request).await?;
        let (path, text) = {
            let history = self.reloads.history.borrow();
            let version = version_of(&history, request.name(), request.parameter("of"))?;
            (version.path.clone(), version.text.to_string())
        };
        let why = match request.parameter("why") {
            Some(why) => format!("restores {}: {why}", request.name()),
            None => format!("restores {}", request.name()),
        };
        let draft = self.reloads.draft_at(&turn, path, text).await;
        let draft = draft.map_err(|unfit| self.unfit(unfit, colour(request)))?;
        // Who says what they want to be rid of is not rid of what somebody else has published since.
        if request.if_match.is_some() {
            seen(request, "rules_version", &self.version_at(draft.path()))?;
        }
        Ok(self.published(&turn, draft, request, &why).await)
    }

    async fn published(&self, turn: &Turn, draft: Draft, request: &Request, why: &str) -> Page {
        let path = draft.path().to_owned();
        let by = By::now(request.who.as_deref().unwrap_or("-"), why);
        match self.reloads.publish(turn, draft, by).await {
            Ok(reloaded) => {
                let version = self.version_at(&path);
                Page::json(&json!({
                    "version": 1,
                    "generation": reloaded.generation,
                    "rules_version": version,
                    "file": path.display().to_string(),
                    "findings": findings(&reloaded.warnings),
                    "text": reloaded.warnings.render(colour(request)),
                }))
                .with_version(&version)
            }
            Err(unpublished) => self.unpublished(&unpublished, &path, colour(request)),
        }
    }

    /// The turn ends before it: what was read changes no more, and others need not wait for what is said of it.
    async fn compared(&self, turn: Turn, draft: Draft, request: &Request) -> Page {
        let running = self.switch.borrow().with_plan(Rules::of);
        drop(turn);
        let colour = colour(request);
        let compared = self.aside.run(move || compare(&running, &draft.loaded, colour));
        match compared.await {
            Ok(compared) => Page::json(&compared),
            Err(why) => undone(why),
        }
    }

    /// The listeners that share a rules file.
    fn listeners_of(&self, set: &RuleSet) -> Vec<String> {
        let sets = self.reloads.rule_sets.borrow();
        let programs: Vec<_> =
            sets.iter().filter(|other| other.path == set.path).map(|set| &set.program).collect();
        self.switch.borrow().with_plan(|plan| {
            let uses = plan.listeners.iter().filter(|listener| {
                listener
                    .program
                    .as_ref()
                    .is_some_and(|used| programs.iter().any(|known| Arc::ptr_eq(known, used)))
            });
            uses.map(|listener| listener.name.to_string()).collect()
        })
    }

    fn version_at(&self, path: &Path) -> String {
        let sets = self.reloads.rule_sets.borrow();
        sets.iter().find(|set| set.path == *path).map(RuleSet::version).unwrap_or_default()
    }

    fn shown(&self, version: &Version) -> Value {
        json!({
            "n": version.number,
            "file": version.path.display().to_string(),
            "rules_version": version.rules_version,
            "serves": self.version_at(&version.path) == version.rules_version,
            "who": version.by.who,
            "when": version.by.when,
            "why": version.by.why,
            "bytes": version.text.len(),
        })
    }
}

/// What became of what was decided; null where that is counted elsewhere, or nothing was.
fn outcomes_json(outcomes: Option<OutcomeCounts>) -> Value {
    let Some(OutcomeCounts { responses, durations }) = outcomes else {
        return json!({ "responses": null, "durations": null });
    };
    let Durations { count, sum_us, up_to_us } = durations;
    let buckets =
        up_to_us.into_iter().map(|(up_to_us, count)| json!({ "up_to_us": up_to_us, "count": count }));
    let durations = json!({ "count": count, "sum_us": sum_us, "buckets": buckets.collect::<Vec<_>>() });
    json!({ "responses": BTreeMap::from(responses), "durations": durations })
}

/// The version of a number, and of those rules where somebody says which they have seen under it.
pub(super) fn version_of<'h>(
    history: &'h History,
    number: &str,
    of: Option<&str>,
) -> Result<&'h Version, Page> {
    let found = number.parse().ok().and_then(|number| history.version(number));
    let version = found.ok_or_else(|| {
        Page::problem(
            404,
            format!("there is no version `{number}`, or no more: `/api/v1/versions` lists them"),
        )
    })?;
    match of {
        Some(of) if of != version.rules_version => {
            let sentence = format!(
                "version {number} is of other rules than were asked for: a switch that begins anew counts anew"
            );
            let member = Map::from_iter([("rules_version".to_owned(), json!(version.rules_version))]);
            Err(Page::problem_with(404, sentence, member))
        }
        _ => Ok(version),
    }
}

pub(super) fn text_of(request: &mut Request) -> Result<String, Page> {
    let body = std::mem::take(&mut request.body);
    pointsman_config::text(body).map_err(|error| Page::problem(400, format!("the body is no text: {error}")))
}
