//! What the admin listener shows and does.

mod bandwidth;
mod body;
mod certificate_metrics;
mod certificates;
mod changes;
mod dry_run;
mod log_level;
mod plan;
mod questions;
mod requests;
mod rules;
mod servers;
mod sticky;
mod traffic;
mod vocabulary;

use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::future::Future;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use pointsman_admin::{Audit, Call, Page, Pages, Request};
use pointsman_config::{Admin, Colour, Loaded, Plan, Problems};
use pointsman_net::Clock;
use pointsman_relay::{StickyCounts, Switch};
use pointsman_rules::{Diagnostic, Lines, Severity};
use pointsman_telemetry::{BufferBytes, LineFile, Metrics, Topic, render_names, rfc3339};
use serde_json::{Map, Value, json};

use self::changes::upgrading;
use self::dry_run::Begun;
use super::aside::{Aside, Undone};
use super::enquiries::Enquiries;
use super::history::By;
use super::notice;
use super::reloads::{Fixed, Refused, Reloads};
use crate::diff;
use crate::replay::stand::Rules;

/// The pages of the admin listener.
pub(super) struct SwitchPages {
    pub(super) switch: Rc<RefCell<Switch>>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) reloads: Rc<Reloads>,
    pub(super) aside: Aside,
    /// What is looked at for those who are known, and for those who only read.
    pub(super) enquiries: Enquiries,
    pub(super) enquiries_of_strangers: Enquiries,
    /// What was asked for of the last dry-run.
    pub(super) begun: RefCell<Option<Begun>>,
    /// When this process began.
    pub(super) began: String,
}

impl Pages for SwitchPages {
    fn settings(&self) -> Option<Arc<Admin>> {
        self.switch.borrow().with_plan(|plan| plan.admin.clone())
    }

    fn answer(self: Rc<Self>, request: Request) -> Pin<Box<dyn Future<Output = Page>>> {
        Box::pin(async move {
            if !is_lasting(request.call) {
                return self.done(request).await;
            }
            // What waits, or is being read, would be refused behind that, if the switch were still there.
            self.reloads.drain.or_begins(self.done(request)).await.unwrap_or_else(drains)
        })
    }

    fn note(&self, line: &dyn Fn() -> String) {
        self.reloads.levels.notes.note(Topic::Admin, line);
    }

    fn audit(&self, audit: &Audit<'_>) {
        notice::always(&audit.to_string());
        let Some(path) = self.settings().and_then(|admin| admin.audit_log.clone()) else { return };
        let line = format!("{}\n", audit.to_json(&rfc3339(Clock::start().unix_us())));
        if let Err(error) = append(&path, &line) {
            notice::error(&format!("audit log not written path={}: {error}", path.display()));
        }
    }
}

impl SwitchPages {
    /// Does what is asked.
    async fn done(&self, request: Request) -> Page {
        let serves = !self.reloads.drain.has_begun();
        match request.call {
            Call::Metrics => self.metrics(),
            Call::Health if serves => Page::plain(200, "ok"),
            Call::Health => Page::plain(503, "draining"),
            call if !serves && is_lasting(call) => drains(),
            Call::Reload if request.says("dry_run") => self.dry_run(colour(&request)).await,
            Call::Reload => either(self.reload(&request).await),
            Call::Plan => self.plan(),
            Call::Traffic => self.traffic(),
            Call::Requests => self.requests(&request),
            Call::Rules => self.rules(request.name()),
            Call::PublishRules => either(self.publish_rules(request).await),
            Call::ValidateRules => either(self.validate_rules(request).await),
            Call::CompareRules => either(self.compare_rules(request).await),
            Call::CheckRules | Call::Check => either(self.check_rules(request).await),
            Call::ExplainRules | Call::Explain => either(self.explain(request).await),
            Call::FormatRules => either(self.format_rules(request).await),
            Call::Vocabulary => self.vocabulary(request.name()),
            Call::BeginDryRun => self.begin_dry_run(&request).await,
            Call::BeginDryRunOfRules => either(self.begin_dry_run_of_rules(request).await),
            Call::DryRun => self.found(&request),
            Call::EndDryRun => self.end_dry_run(&request),
            Call::Versions => self.versions(),
            Call::Version => either(self.version(&request)),
            Call::CompareVersion => either(self.compare_version(request).await),
            Call::RestoreVersion => either(self.restore_version(&request).await),
            Call::Pools => self.pools(),
            Call::Pool => self.pool(&request),
            Call::Server => self.server(&request),
            Call::SetServerState => self.set_server_state(&request),
            Call::PutServer | Call::ChangeServer | Call::RemoveServer => {
                either(self.change_server(&request).await)
            }
            Call::Bandwidth => self.bandwidth(),
            Call::Certificates => self.certificates(),
            Call::Certificate => self.certificate(request.name()),
            Call::ReplaceCertificate => either(self.replace_certificate(&request).await),
            Call::StickyClients => self.sticky_clients(&request),
            // What is remembered is on its way to another process: it would come back there.
            Call::ForgetStickyClients | Call::ForgetStickyClient | Call::ForgetStickyTargets
                if self.reloads.is_held.get() =>
            {
                upgrading()
            }
            Call::ForgetStickyClients => self.forget_sticky_clients(&request),
            Call::ForgetStickyClient => self.forget_sticky_client(&request),
            Call::ForgetStickyTargets => self.forget_sticky_targets(),
            Call::LogLevel => self.log_level(),
            Call::SetLogLevel => self.set_log_level(&request),
            // The listener has answered them.
            Call::OpenApi | Call::Access => Page::problem(404, "nothing is there"),
        }
    }

    fn metrics(&self) -> Page {
        let mut text = String::new();
        let switch = self.switch.borrow();
        let budget = switch.budget();
        let buffers = BufferBytes { booked: budget.booked_bytes(), max: budget.bytes_max() };
        self.metrics.render(buffers, &|pool, server| switch.server_now(pool, server), &mut text);
        render_names(&self.reloads.names.now(), &mut text);
        let StickyCounts { home, away, targets } = switch.sticky_counts();
        for (name, help, clients) in [
            ("pointsman_sticky_clients", "Sticky clients that are remembered with a server.", home + away),
            (
                "pointsman_sticky_exceptions",
                "Those of them that stay with another server than their hash says.",
                away,
            ),
            ("pointsman_sticky_targets", "Sticky clients that are remembered with a target.", targets),
        ] {
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {clients}\n"));
        }
        let help = "Requests that wait until a server of their pool has fewer than its connections_max.";
        let name = "pointsman_pool_queued_requests";
        text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} gauge\n"));
        for (pool, requests) in switch.queued() {
            text.push_str(&format!("{name}{{pool=\"{pool}\"}} {requests}\n"));
        }
        dry_run::metrics(&switch, &mut text);
        switch.with_plan(|plan| certificate_metrics::render(plan, SystemTime::now(), &mut text));
        Page::metrics(text)
    }

    async fn reload(&self, request: &Request) -> Result<Page, Page> {
        let colour = colour(request);
        let by = By::now(request.who.as_deref().unwrap_or("-"), "the files were read again");
        self.reloads.reopen_log();
        let turn = self.turn(request).await?;
        match self.reloads.reload(&turn, by).await {
            Ok(reloaded) => Ok(Page::json(&json!({
                "version": 1,
                "generation": reloaded.generation,
                "configuration": self.configuration(),
                "waits_for_restart": reloaded.waiting,
                "findings": findings(&reloaded.warnings),
                "text": reloaded.warnings.render(colour),
            }))),
            Err(Refused::System(fault)) => {
                let members =
                    members(json!({ "configuration": self.configuration(), "findings": [], "text": "" }));
                Err(Page::problem_with(422, fault, members))
            }
            Err(refused) => Err(self.refused(&refused, colour)),
        }
    }

    /// What the rules on disk decide otherwise.
    async fn dry_run(&self, colour: Colour) -> Page {
        let running = self.switch.borrow().with_plan(Rules::of);
        let (config, fixed) = (self.reloads.config().to_owned(), self.reloads.fixed.clone());
        let configuration = self.configuration();
        let compared = self.aside.run(move || {
            let loaded = match Plan::check_only(&config) {
                Ok(loaded) => loaded,
                Err(problems) => return wrong(&problems, colour, &configuration),
            };
            let mut compared = compare(&running, &loaded, colour);
            compared["configuration"] = json!(configuration);
            compared["waits_for_restart"] = json!(fixed.differing(&Fixed::of(&loaded.plan)));
            Page::json(&compared)
        });
        compared.await.unwrap_or_else(undone)
    }

    /// The path of what is read, from wherever one asks.
    fn configuration(&self) -> String {
        let config = self.reloads.config();
        config.canonicalize().unwrap_or_else(|_| config.to_owned()).display().to_string()
    }
}

/// What is answered: what was done, or why it was not.
fn either(answer: Result<Page, Page>) -> Page {
    answer.unwrap_or_else(|refusal| refusal)
}

fn drains() -> Page {
    Page::problem(503, "the switch drains")
}

/// Whether a call changes what is to last.
fn is_lasting(call: Call) -> bool {
    match call {
        Call::Reload
        | Call::PublishRules
        // It would see nothing any more.
        | Call::BeginDryRun
        | Call::BeginDryRunOfRules
        | Call::RestoreVersion
        | Call::SetServerState
        | Call::PutServer
        | Call::ChangeServer
        | Call::RemoveServer
        | Call::ReplaceCertificate => true,
        Call::Metrics
        | Call::Health
        | Call::OpenApi
        | Call::Access
        | Call::Traffic
        | Call::Requests
        | Call::StickyClients
        | Call::ForgetStickyClients
        | Call::ForgetStickyClient
        | Call::ForgetStickyTargets
        | Call::Plan
        | Call::Rules
        | Call::ValidateRules
        | Call::CompareRules
        | Call::CheckRules
        | Call::Check
        | Call::ExplainRules
        | Call::Explain
        | Call::FormatRules
        | Call::Vocabulary
        | Call::CompareVersion
        | Call::DryRun
        | Call::EndDryRun
        | Call::Versions
        | Call::Version
        | Call::Pools
        | Call::Pool
        | Call::Server
        | Call::Bandwidth
        | Call::Certificates
        | Call::Certificate
        | Call::LogLevel
        | Call::SetLogLevel => false,
    }
}

/// Appends a line, whole or not at all. What is no file, such as a pipe that nobody reads, could hold everything up.
fn append(path: &Path, line: &str) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("it is no regular file"));
    }
    let file = OpenOptions::new().create(true).append(true).mode(0o640).open(path)?;
    LineFile::appending(file).write(line.as_bytes()).cut.map_or(Ok(()), |cut| Err(cut.error))
}

/// What another plan decides otherwise than what serves; it takes seconds.
fn compare(running: &Rules, new: &Loaded, colour: Colour) -> Value {
    let report = diff::compared(running, &Rules::of(&new.plan));
    json!({
        "version": 1,
        "dry_run": true,
        "verdict": report.verdict(),
        "summary": report.summary(),
        "difference": report.to_json(),
        "difference_text": report.text(colour),
        "findings": findings(&new.warnings),
        "text": new.warnings.render(colour),
    })
}

/// No comparison was made.
fn undone(why: Undone) -> Page {
    match why {
        Undone::Busy => Page::problem(409, "another comparison is going on: ask again when it has ended"),
        Undone::NoThread(error) => Page::problem(503, format!("no thread for a comparison: {error}")),
        Undone::BrokeOff => Page::problem(500, "the comparison broke off, which is an error of the switch"),
    }
}

fn colour(request: &Request) -> Colour {
    if request.says("colour") { Colour::Ansi } else { Colour::Never }
}

/// A configuration that cannot be used.
fn wrong(problems: &Problems, colour: Colour, configuration: &str) -> Page {
    let found = json!({
        "configuration": configuration,
        "findings": findings(problems),
        "text": problems.render(colour),
    });
    Page::problem_with(422, "the configuration cannot be used, and nothing has changed", members(found))
}

fn members(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Everything that is wrong or odd, each with its place.
fn findings(problems: &Problems) -> Vec<Value> {
    let files = problems.files().iter().flat_map(|file| {
        let lines = Lines::of(&file.source);
        file.diagnostics.iter().map(move |finding| finding_to_json(&file.name, &lines, finding))
    });
    files.collect()
}

fn finding_to_json(file: &str, lines: &Lines<'_>, finding: &Diagnostic) -> Value {
    let (line, column) = lines.position(finding.span.start);
    let severity = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    json!({
        "severity": severity,
        "file": file,
        "line": line,
        "column": column,
        "message": finding.message,
        "help": finding.help,
    })
}
