//! A candidate that is asked beside what serves, and what it would decide otherwise.

use pointsman_admin::{Page, Request, word};
use pointsman_config::{Colour, Loaded, Plan, Problems};
use pointsman_relay::{
    DryRunCounts, DryRunEnd, DryRunFound, DryRunGoesOn, DryRunGroup, DryRunLimits, DryRunSample, Switch,
};
use pointsman_telemetry::rfc3339;
use serde_json::{Value, json};

use super::changes::{seen, upgrading};
use super::{SwitchPages, colour, drains, findings, undone, wrong};
use crate::explain::report::shown;
use crate::replay::report::{CANNOT_BE_TOLD, Row, changes, summary, way_json};
use crate::run::history::By;
use crate::run::notice::{ended_dry_runs, notice};

/// How long one lasts where nobody says it.
const SECONDS: u64 = 60;

/// What was asked for.
pub(in crate::run) struct Begun {
    /// The first since the start is 1.
    number: u64,
    /// No other one has it, nor has one of another process, which counts anew.
    id: String,
    by: By,
    /// The listener whose rules the candidate has others for; absent where it is what stands on disk.
    rules_of: Option<String>,
    seconds: u64,
    decisions_max: Option<u64>,
    /// What is odd about the candidate.
    warnings: Problems,
}

impl SwitchPages {
    /// Begins one with the files on disk.
    pub(super) async fn begin_dry_run(&self, request: &Request) -> Page {
        if let Err(page) = self.may_begin() {
            return page;
        }
        let config = self.reloads.config().to_owned();
        match self.aside.run(move || Plan::check_only(&config)).await {
            Ok(Ok(loaded)) => match self.may_begin() {
                Ok(()) => self.begun(loaded, request, None),
                // It was so while they were read.
                Err(page) => page,
            },
            Ok(Err(problems)) => wrong(&problems, colour(request), &self.configuration()),
            Err(why) => undone(why),
        }
    }

    /// Begins one with other rules for a listener.
    pub(super) async fn begin_dry_run_of_rules(&self, mut request: Request) -> Result<Page, Page> {
        self.may_begin()?;
        let turn = self.turn(&request).await?;
        let unfit = |unfit| self.unfit(unfit, colour(&request));
        let set = self.reloads.rules_of(request.name()).map_err(unfit)?;
        if request.if_match.is_some() {
            seen(&request, "rules_version", &set.version())?;
        }
        let draft = self.draft(&turn, &mut request).await?;
        // It was so before they were read.
        self.may_begin()?;
        Ok(self.begun(draft.loaded, &request, Some(request.name())))
    }

    fn may_begin(&self) -> Result<(), Page> {
        if self.reloads.is_held.get() {
            return Err(upgrading());
        }
        if self.reloads.drain.has_begun() {
            return Err(drains());
        }
        if self.switch.borrow_mut().is_in_dry_run() { Err(goes_on()) } else { Ok(()) }
    }

    fn begun(&self, loaded: Loaded, request: &Request, rules_of: Option<&str>) -> Page {
        let number = |name| request.parameter(name).and_then(|number| number.parse::<u64>().ok());
        let seconds = number("seconds").unwrap_or(SECONDS);
        let decisions_max = number("decisions");
        let limits = DryRunLimits { ms_max: seconds * 1000, decisions_max };
        let Loaded { plan, warnings, .. } = loaded;
        let begun = self.switch.borrow_mut().begin_dry_run(plan, limits);
        let number = match begun {
            Ok(number) => number,
            Err(DryRunGoesOn) => return goes_on(),
        };
        let by = By::now(request.who.as_deref().unwrap_or("-"), request.parameter("why").unwrap_or_default());
        ended_dry_runs(&self.switch);
        let listener = rules_of.map(|name| format!(" listener={}", word(name))).unwrap_or_default();
        notice(&format!("dry-run began n={number}{listener} seconds={seconds} by={}", word(&by.who)));
        let rules_of = rules_of.map(str::to_owned);
        let id = request.parameter("id").map_or_else(|| format!("{number}@{}", by.when), str::to_owned);
        *self.begun.borrow_mut() = Some(Begun { number, id, by, rules_of, seconds, decisions_max, warnings });
        self.found(request)
    }

    /// What it has found so far.
    pub(super) fn found(&self, request: &Request) -> Page {
        let (begun, switch) = (self.begun.borrow(), self.switch.borrow());
        match (&*begun, switch.dry_run()) {
            (Some(begun), Some(found)) => {
                let is_known = request.who.is_some();
                Page::json(&report(begun, &found, is_known, colour(request))).with_version(&begun.id)
            }
            _ => none(),
        }
    }

    /// Ends it.
    pub(super) fn end_dry_run(&self, request: &Request) -> Page {
        let Some(id) = self.begun.borrow().as_ref().map(|begun| begun.id.clone()) else { return none() };
        if request.if_match.is_some()
            && let Err(page) = seen(request, "id", &id)
        {
            return page;
        }
        self.switch.borrow_mut().end_dry_run();
        ended_dry_runs(&self.switch);
        self.found(request)
    }
}

fn goes_on() -> Page {
    Page::problem(409, "a dry-run goes on: `DELETE /api/v1/dry-run` ends it")
}

fn none() -> Page {
    Page::problem(404, "there was no dry-run since the switch began")
}

fn report(begun: &Begun, found: &DryRunFound, shows_requests: bool, colour: Colour) -> Value {
    let all = found.listeners.iter().fold(DryRunCounts::default(), |sum, (_, counts)| sum.plus(*counts));
    let listeners = found.listeners.iter().map(|(name, counts)| {
        let mut listener = counted(counts);
        listener["listener"] = json!(&**name);
        listener
    });
    let groups = found.groups.iter().map(|group| group_json(group, shows_requests));
    let mut report = counted(&all);
    let more = json!({
        "version": 1,
        "n": begun.number,
        "id": begun.id,
        "state": if found.ended.is_none() { "running" } else { "ended" },
        "ended_by": found.ended.map(DryRunEnd::name),
        "rules_of": begun.rules_of,
        "who": begun.by.who,
        "when": begun.by.when,
        "why": begun.by.why,
        "seconds": begun.seconds,
        "decisions_max": begun.decisions_max,
        "elapsed_ms": found.elapsed_ms,
        "listeners": listeners.collect::<Vec<_>>(),
        "groups": groups.collect::<Vec<_>>(),
        "ungrouped": found.ungrouped,
        "findings": findings(&begun.warnings),
        "summary": summary(all.decisions(), all.changed, all.same + all.other_rule, &[(all.untold(), CANNOT_BE_TOLD)]),
        "text": text(found, &all, shows_requests, colour),
    });
    report.as_object_mut().into_iter().for_each(|report| report.extend(super::members(more.clone())));
    report
}

fn counted(counts: &DryRunCounts) -> Value {
    json!({
        "decisions": counts.decisions(),
        "same": counts.same,
        "other_rule": counts.other_rule,
        "changed": counts.changed,
        "untold": counts.untold(),
        "untold_because": {
            "needs_body": counts.needs_body,
            "no_listener": counts.no_listener,
            "other_protocol": counts.other_protocol,
        },
    })
}

fn group_json(group: &DryRunGroup, shows_requests: bool) -> Value {
    let samples = group.samples.iter().filter(|_| shows_requests).map(|sample| {
        json!({
            "when": rfc3339(sample.unix_us),
            "client": sample.client.map(|client| client.to_string()),
            "method": sample.method,
            "host": sample.host,
            "path": sample.path,
            "query": sample.query,
        })
    });
    json!({
        "listener": &*group.listener,
        "kind": if group.is_outcome { "changed" } else { "other_rule" },
        "old": way_json(&group.then),
        "new": way_json(&group.now),
        "count": group.count,
        "samples": samples.collect::<Vec<_>>(),
    })
}

/// For people.
fn text(found: &DryRunFound, all: &DryRunCounts, shows_requests: bool, colour: Colour) -> String {
    let mut text = String::new();
    for (name, counts) in &found.listeners {
        let groups = found.groups.iter().filter(|group| group.listener == *name);
        let rows = groups.map(|group| Row {
            is_outcome: group.is_outcome,
            then: &group.then,
            now: &group.now,
            count: group.count,
            samples: group.samples.iter().filter(|_| shows_requests).map(sample_text).collect(),
        });
        let rows: Vec<_> = rows.collect();
        if found.listeners.len() > 1 && counts.changed + counts.other_rule > 0 {
            text.push_str(&format!("listener {name}\n\n"));
        }
        changes(&mut text, &rows, (counts.changed, counts.other_rule), colour);
    }
    if found.ungrouped > 0 {
        text.push_str(&format!("{} more of other kinds\n\n", found.ungrouped));
    }
    let untold = [
        (all.needs_body, "the new rules need more of the body than is read for those that serve"),
        (all.no_listener, "the new configuration has no such listener"),
        (all.other_protocol, "the new listener reads another protocol"),
    ];
    for (count, why) in untold.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!("note: cannot be told of {count}: {why}\n"));
    }
    text
}

/// `GET shop.example/cart from 192.0.2.7`
fn sample_text(sample: &DryRunSample) -> String {
    let part = |text: &Option<String>| shown(text.as_deref().unwrap_or_default().as_bytes());
    let from = sample.client.map_or_else(|| "a Unix socket".to_owned(), |client| client.to_string());
    if sample.method.is_none() {
        return format!("a connection from {from}");
    }
    let query =
        sample.query.as_ref().map(|query| format!("?{}", shown(query.as_bytes()))).unwrap_or_default();
    format!("{} {}{}{query} from {from}", part(&sample.method), part(&sample.host), part(&sample.path))
}

/// What all dry-runs since the start come to.
pub(super) fn metrics(switch: &Switch, text: &mut String) {
    let (is_going_on, counts) = switch.dry_run_counts();
    let name = "pointsman_dry_run_running";
    let help = "Whether a candidate is asked beside the rules that serve.";
    text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {}\n", u8::from(is_going_on)));
    let name = "pointsman_dry_run_decisions_total";
    let help = "Decisions that were compared with those of a candidate, by what that came to.";
    text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} counter\n"));
    let results = [
        ("same", counts.same),
        ("other_rule", counts.other_rule),
        ("changed", counts.changed),
        ("untold", counts.untold()),
    ];
    for (result, count) in results {
        text.push_str(&format!("{name}{{result=\"{result}\"}} {count}\n"));
    }
}
