//! What is asked about rules by those who write them: it changes nothing, and takes no turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pointsman_admin::{Call, Page, Request};
use pointsman_analysis::Effort;
use pointsman_config::{Colour, Plan};
use pointsman_rules::{Diagnostic, Lines, draw};
use serde_json::{Map, Value, json};

use super::rules::{text_of, version_of};
use super::{SwitchPages, body, colour, finding_to_json, members as object};
use crate::check::candidate::{Served, Wanted, look_at};
use crate::check::meaning::STEPS;
use crate::diff;
use crate::explain::place::Place;
use crate::explain::{Question, members, near};
use crate::replay::stand::{Rules, Stand};
use crate::run::aside::{Undone, in_a_thread};
use crate::run::enquiries::{Asker, Overtaken};
use crate::run::publishing::Unfit;

/// How long it is looked for what rules mean together, where nobody says how long, and for what a request nearly came to.
const WITHIN_MS: u64 = 1000;

/// Says whether what is looked at is of no use any more.
type Ends = Box<dyn Fn() -> bool + Send + Sync>;

impl SwitchPages {
    /// What there is to say of rules while somebody writes them, and of those that serve.
    pub(super) async fn check_rules(&self, mut request: Request) -> Result<Page, Page> {
        let served = self.served(request.name()).map_err(|unfit| self.unfit(unfit, Colour::Never))?;
        let (text, wanted) = match (request.call, request.parameter("about")) {
            (Call::Check, _) => (served.set.source.to_string(), Wanted::All),
            (_, Some("all")) => (text_of(&mut request)?, Wanted::All),
            _ => (text_of(&mut request)?, Wanted::Changed),
        };
        let within_ms = request.parameter("within_ms").and_then(|ms| ms.parse().ok()).unwrap_or(WITHIN_MS);
        let work = move |ends: Ends| {
            let end = Instant::now() + Duration::from_millis(within_ms);
            let effort = Effort::new(STEPS).until(move || ends() || Instant::now() >= end);
            Page::dense_json(&look_at(&served, &text, wanted, &effort))
        };
        self.enquire(&request, "check", work).await
    }

    /// What rules say of a request: those that serve, or others that are given.
    pub(super) async fn explain(&self, request: Request) -> Result<Page, Page> {
        let (listener, mut asked) = (request.name().to_owned(), body::object(&request.body)?);
        // By the rules that serve whoever reads may ask; others are no member there.
        let rules = match (request.call, asked.get("rules")) {
            (Call::ExplainRules, Some(Value::String(text))) => Some(text.clone()),
            (Call::ExplainRules, _) => return Err(Page::problem(400, "`rules` is the text of the rules")),
            _ => None,
        };
        if rules.is_some() {
            asked.remove("rules");
        }
        let question = question(asked)?;
        let served = match self.served(&listener) {
            // It has a default pool.
            Err(Unfit::NoRules) if rules.is_none() => None,
            served => Some(served.map_err(|unfit| self.unfit(unfit, Colour::Never))?),
        };
        let plan = self.switch.borrow().with_plan(Plan::clone);
        let work = move |ends: Ends| {
            let end = Instant::now() + Duration::from_millis(WITHIN_MS);
            let effort = near::effort().until(move || ends() || Instant::now() >= end);
            explained(&listener, question, rules, served, plan, effort)
        };
        self.enquire(&request, "explain", work).await
    }

    /// Rules in their one form.
    pub(super) async fn format_rules(&self, mut request: Request) -> Result<Page, Page> {
        let set = self.reloads.rules_of(request.name()).map_err(|unfit| self.unfit(unfit, Colour::Never))?;
        let name = set.name;
        let (text, colour) = (text_of(&mut request)?, colour(&request));
        let work = move |_| match pointsman_rules::format(&text) {
            Ok(formatted) => Page::dense_json(&json!({
                "version": 1,
                "is_changed": formatted != text,
                "text": formatted,
            })),
            Err(findings) => wrong_rules(&name, &text, &findings, colour),
        };
        self.enquire(&request, "format", work).await
    }

    /// What rules that have served decide otherwise than others that have, or do.
    pub(super) async fn compare_version(&self, request: Request) -> Result<Page, Page> {
        let history = |number: &str, of: &str| {
            let history = self.reloads.history.borrow();
            let version = version_of(&history, number, request.parameter(of))?;
            Ok::<_, Page>((version.path.clone(), version.text.clone()))
        };
        let (path, new) = history(request.name(), "of")?;
        let old = match request.parameter("from") {
            None => None,
            Some(number) => match history(number, "from_of")? {
                (other, text) if other == path => Some(text),
                _ => return Err(Page::problem(409, "the two versions are of different files")),
            },
        };
        let set = self.reloads.rule_sets.borrow().iter().find(|set| set.path == path).cloned();
        let set = set.ok_or_else(|| Page::problem(409, "no listener has rules of that file any more"))?;
        let served = Served { plan: self.switch.borrow().with_plan(Plan::clone), set };
        let colour = colour(&request);
        self.enquire(&request, "diff", move |ends| compared(&served, old, new, colour, ends)).await
    }

    /// A copy of what serves at a listener.
    fn served(&self, listener: &str) -> Result<Served, Unfit> {
        let set = self.reloads.rules_of(listener)?;
        Ok(Served { plan: self.switch.borrow().with_plan(Plan::clone), set })
    }

    /// Has something looked at in a thread of its own, for one who may ask again before that is done.
    async fn enquire(
        &self,
        request: &Request,
        about: &'static str,
        work: impl FnOnce(Ends) -> Page + Send + 'static,
    ) -> Result<Page, Page> {
        let (who, client) = (request.who.clone(), request.parameter("client").map(str::to_owned));
        // Whoever is known has places that nobody else takes.
        let all = if who.is_some() { &self.enquiries } else { &self.enquiries_of_strangers };
        let enquiry = all.begin(Asker { who, client, about }).ok_or_else(|| {
            Page::problem(503, "too many ask at a time: ask again when some of them are answered")
        })?;
        let overtaken = |Overtaken| Page::problem(409, "the same `client` has asked again");
        enquiry.comes().await.map_err(overtaken)?;
        let (ends, has_ended) = (Box::new(enquiry.ends()), enquiry.ends());
        let page = in_a_thread(move || work(ends), enquiry).await.map_err(not_looked_at)?;
        if has_ended() { Err(overtaken(Overtaken)) } else { Ok(page) }
    }
}

/// What is asked, out of the members of a body: what is none is malformed, and what says nothing that can be is refused.
fn question(mut asked: Map<String, Value>) -> Result<Question, Page> {
    let malformed = |sentence: String| Page::problem(400, sentence);
    let mut text = |name: &str| match asked.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(malformed(format!("`{name}` is a text"))),
    };
    let request = (text("request")?, text("request_base64")?);
    let words = members::to_words(&mut asked).map_err(malformed)?;
    if let Some(name) = asked.keys().next() {
        return Err(malformed(format!("no member `{name}`: `/api/v1/openapi.json` says what there is")));
    }
    let refused = |sentence: String| Page::problem(422, sentence);
    let bytes = match request {
        (Some(_), Some(_)) => {
            return Err(refused("a request is `request` or `request_base64`, not both".to_owned()));
        }
        (Some(text), None) => Some(text.into_bytes()),
        (None, Some(text)) => {
            let bytes = STANDARD.decode(text);
            Some(bytes.map_err(|error| refused(format!("`request_base64` is no base64: {error}")))?)
        }
        (None, None) => None,
    };
    Question::read(words, bytes).map_err(refused)
}

fn explained(
    listener: &str,
    question: Question,
    rules: Option<String>,
    served: Option<Served>,
    plan: Plan,
    effort: Effort,
) -> Page {
    let plan = served.as_ref().map_or(&plan, |served| &served.plan);
    let Some(listener) = plan.listener_named(listener) else {
        return Page::problem(404, "there is no such listener: `/api/v1/plan` names them");
    };
    let place = match (&served, rules) {
        (Some(served), Some(rules)) => {
            let candidate = served.compile(rules.into());
            match served.place(listener, &candidate).filter(|_| candidate.compiles()) {
                Some(place) => place,
                None => {
                    return wrong_rules(
                        &served.set.name,
                        &candidate.source,
                        &candidate.findings,
                        Colour::Never,
                    );
                }
            }
        }
        (served, _) => {
            let mut place = Place::of_listener(listener, plan, &[]);
            if let Some(served) = served {
                place.source = served.set.source.clone();
            }
            place
        }
    };
    match question.answer(place, listener, plan, effort) {
        Ok(answer) => Page::dense_json(&answer),
        Err(sentence) => Page::problem(422, sentence),
    }
}

/// The rules of a version, at the listeners that have its file, beside other rules for them.
fn compared(served: &Served, old: Option<Arc<str>>, new: Arc<str>, colour: Colour, ends: Ends) -> Page {
    let sides = [old.unwrap_or_else(|| served.set.source.clone()), new].map(|text| served.compile(text));
    for side in &sides {
        if !side.compiles() {
            return wrong_rules(&served.set.name, &side.source, &side.findings, colour);
        }
    }
    let [old, new] = &sides;
    let [before, after] = [old, new].map(|side| {
        let stands =
            served.users().filter_map(|listener| Some(Stand { place: served.place(listener, side)? }));
        Rules { stands: stands.collect(), are_alone: false, settings: None }
    });
    let report = diff::compared_until(&before, &after, ends);
    Page::dense_json(&json!({
        "version": 1,
        "dry_run": true,
        "verdict": report.verdict(),
        "summary": report.summary(),
        "difference": report.to_json(),
        "difference_text": report.text(colour),
        "findings": findings_to_json(&served.set.name, &new.source, &new.findings),
        "text": draw(&new.findings, &served.set.name, &new.source, colour),
    }))
}

/// Rules that do not compile.
fn wrong_rules(name: &str, source: &str, findings: &[Diagnostic], colour: Colour) -> Page {
    let found = json!({
        "findings": findings_to_json(name, source, findings),
        "text": draw(findings, name, source, colour),
    });
    Page::problem_with(422, "the rules cannot be used", object(found))
}

fn findings_to_json(name: &str, source: &str, findings: &[Diagnostic]) -> Vec<Value> {
    let lines = Lines::of(source);
    findings.iter().map(|finding| finding_to_json(name, &lines, finding)).collect()
}

/// Nobody has looked.
fn not_looked_at(why: Undone) -> Page {
    match why {
        Undone::NoThread(error) => Page::problem(503, format!("no thread to look at it: {error}")),
        Undone::Busy | Undone::BrokeOff => {
            Page::problem(500, "looking at it broke off, which is an error of the switch")
        }
    }
}
