//! Pools and their servers: how they stand, what is set of them by hand, and which there are.

use std::collections::HashMap;
use std::sync::Arc;

use pointsman_admin::{Call, Page, Request, word};
use pointsman_config::{EditFault, EditValue, Plan, Pool, Server, ServerEdit, edit_server, version};
use pointsman_net::Clock;
use pointsman_relay::{Admission, Leaving, ServerChange, ServerShown, Switch};
use pointsman_telemetry::rfc3339;
use serde_json::{Map, Value, json};

use super::body::object;
use super::changes::{seen, upgrading};
use super::plan::{address, host};
use super::{SwitchPages, colour, findings, members};
use crate::run::history::By;
use crate::run::notice::notice;

impl SwitchPages {
    /// Every pool with its servers.
    pub(super) fn pools(&self) -> Page {
        let switch = self.switch.borrow();
        let shown = Shown::of(&switch);
        let pools: Vec<Value> =
            switch.with_plan(|plan| plan.pools.iter().map(|pool| shown.pool(pool)).collect());
        self.page(&switch, json!({ "pools": pools }))
    }

    /// One of them.
    pub(super) fn pool(&self, request: &Request) -> Page {
        let switch = self.switch.borrow();
        let shown = Shown::of(&switch);
        let pool = switch.with_plan(|plan| pool_named(plan, request.name()).map(|pool| shown.pool(pool)));
        match pool {
            Some(pool) => self.page(&switch, pool),
            None => no_server(),
        }
    }

    /// A server, with what has become of it lately.
    pub(super) fn server(&self, request: &Request) -> Page {
        let switch = self.switch.borrow();
        let [pool, server] = &request.names[..] else { return no_server() };
        let shown = Shown::of(&switch);
        let server = switch.with_plan(|plan| {
            let pool = pool_named(plan, pool)?;
            let server = pool.servers.iter().find(|known| *known.name == **server)?;
            Some(shown.server_in_full(pool, server))
        });
        match server {
            Some(server) => self.page(&switch, server),
            None => no_server(),
        }
    }

    /// What is set of a server by hand.
    pub(super) fn set_server_state(&self, request: &Request) -> Page {
        let [pool, server] = &request.names[..] else { return no_server() };
        let admission = match admission(&request.body) {
            Ok(admission) => admission,
            Err(page) => return page,
        };
        // What is handed over has been written down by then.
        if self.reloads.is_held.get() {
            return upgrading();
        }
        {
            let switch = self.switch.borrow();
            let Some(standing) = switch.server(pool, server) else { return no_server() };
            let who = request.who.as_deref().unwrap_or("-");
            let why = match request.parameter("why") {
                Some(why) => format!("set by {who}: {why}"),
                None => format!("set by {who}"),
            };
            standing.set_admission(admission, &why, switch.now_us());
            notice(&format!("server {} pool={pool} server={server} by={}", admission.name(), word(who)));
        }
        self.server(request)
    }

    /// A server more, less, or with other keys, in the configuration.
    pub(super) async fn change_server(&self, request: &Request) -> Result<Page, Page> {
        let [pool, server] = &request.names[..] else { return Err(no_server()) };
        let turn = self.turn_to_change(request).await?;
        let source = self.reloads.source.borrow().clone();
        seen(request, "configuration_version", &version(&source))?;
        let edit = edit_of(request)?;
        let edited = edit_server(&source, pool, server, &edit).map_err(|fault| {
            let status = match fault {
                EditFault::NoPool | EditFault::NoServer => 404,
                EditFault::Nameless => 422,
                EditFault::Layout => 409,
            };
            Page::problem(status, fault.to_string())
        })?;
        let draft = self.reloads.draft_configuration(&turn, edited).await;
        let draft = draft.map_err(|unfit| self.unfit(unfit, colour(request)))?;
        let path = draft.path().to_owned();
        let by = By::now(request.who.as_deref().unwrap_or("-"), request.parameter("why").unwrap_or_default());
        let reloaded = self.reloads.publish(&turn, draft, by).await;
        let reloaded = reloaded.map_err(|why| self.unpublished(&why, &path, colour(request)))?;
        Ok(self.page(
            &self.switch.borrow(),
            json!({
                "waits_for_restart": reloaded.waiting,
                "findings": findings(&reloaded.warnings),
                "text": reloaded.warnings.render(colour(request)),
            }),
        ))
    }

    /// A page with the version of the configuration.
    fn page(&self, switch: &Switch, members: Value) -> Page {
        let version = version(&self.reloads.source.borrow());
        let mut page = json!({
            "version": 1,
            "generation": switch.generation(),
            "configuration": self.configuration(),
            "configuration_version": version,
        });
        if let (Some(page), Value::Object(members)) = (page.as_object_mut(), members) {
            page.extend(members);
        }
        Page::json(&page).with_version(&version)
    }
}

fn no_server() -> Page {
    Page::problem(404, "there is no such pool or server: `/api/v1/pools` names them")
}

fn pool_named<'p>(plan: &'p Plan, name: &str) -> Option<&'p Pool> {
    plan.pools.iter().find(|pool| &*pool.name == name)
}

/// How the servers of the switch stand, at one moment.
struct Shown {
    servers: HashMap<(Arc<str>, Arc<str>), ServerShown>,
    leaving: Vec<Leaving>,
    /// When the switch began.
    began_unix_us: u64,
}

impl Shown {
    fn of(switch: &Switch) -> Shown {
        let began_unix_us = Clock::start().unix_us().saturating_sub(switch.now_us());
        Shown { servers: switch.servers_shown(), leaving: switch.leaving(), began_unix_us }
    }

    fn pool(&self, pool: &Pool) -> Value {
        let leaving = self.leaving.iter().filter(|leaving| *leaving.pool == *pool.name);
        let leaving =
            leaving.map(|leaving| json!({ "name": leaving.server, "in_flight_requests": leaving.in_flight }));
        json!({
            "name": &*pool.name,
            "balance": pool.balancing.name(),
            "servers": pool.servers.iter().map(|server| self.server(pool, server)).collect::<Vec<_>>(),
            "leaving": leaving.collect::<Vec<_>>(),
        })
    }

    fn server(&self, pool: &Pool, server: &Server) -> Value {
        let mut shown = json!({
            "name": &*server.name,
            "address": address(server),
            "host": host(server),
            "service": server.service.as_deref(),
            "weight": server.weight,
            "tls": server.tls.is_some(),
        });
        let now = self.servers.get(&(pool.name.clone(), server.name.clone()));
        if let (Some(shown), Some(now)) = (shown.as_object_mut(), now) {
            shown.extend(self.now(now));
        }
        shown
    }

    fn now(&self, now: &ServerShown) -> Map<String, Value> {
        let now = json!({
            "state": now.state.name(),
            "since": self.when(now.since_us),
            "why": now.changes.last().map(|change| &*change.why),
            "admission": now.admission.name(),
            "health": now.health.name(),
            "in_flight_requests": now.in_flight,
            "idle_connections": now.idle_connections,
            "requests": now.requests,
            "failures": now.failures,
            "ejections": now.ejections,
            "sticky_exceptions": now.sticky_exceptions,
        });
        members(now)
    }

    fn server_in_full(&self, pool: &Pool, server: &Server) -> Value {
        let mut shown = self.server(pool, server);
        let now = self.servers.get(&(pool.name.clone(), server.name.clone()));
        let changes = now.into_iter().flat_map(|now| &now.changes).rev();
        let change = |change: &ServerChange| json!({ "when": self.when(change.at_us), "state": change.state.name(), "why": &*change.why });
        shown["pool"] = json!(&*pool.name);
        shown["changes"] = changes.map(change).collect();
        let before = now.map(|now| json!({ "since": self.when(now.before.0), "state": now.before.1.name() }));
        shown["before"] = json!(before);
        shown
    }

    fn when(&self, at_us: u64) -> String {
        rfc3339(self.began_unix_us + at_us)
    }
}

/// What a body says is to hold of a server.
fn admission(body: &[u8]) -> Result<Admission, Page> {
    let wrong = || {
        let names = Admission::ALL.map(|known| format!("\"{}\"", known.name())).join(", ");
        Page::problem(400, format!("the body is `{{\"state\": …}}` with one of {names}"))
    };
    let members = object(body).map_err(|_| wrong())?;
    let state = match (members.get("state"), members.len()) {
        (Some(Value::String(state)), 1) => state,
        _ => return Err(wrong()),
    };
    Admission::ALL.into_iter().find(|known| known.name() == state).ok_or_else(wrong)
}

fn edit_of(request: &Request) -> Result<ServerEdit, Page> {
    if request.call == Call::RemoveServer {
        return Ok(ServerEdit::Remove);
    }
    let members = object(&request.body)?;
    if members.contains_key("name") {
        return Err(Page::problem(400, "the name of a server stands in the path, and in no body"));
    }
    let edits = members.into_iter().map(|(key, value)| Ok((value_of(&key, value)?, key)));
    let edits: Vec<(Option<EditValue>, String)> = edits.collect::<Result<_, Page>>()?;
    if request.call == Call::ChangeServer {
        return Ok(ServerEdit::Merge(edits.into_iter().map(|(value, key)| (key, value)).collect()));
    }
    let keys = edits.into_iter().filter_map(|(value, key)| Some((key, value?)));
    Ok(ServerEdit::Put(keys.collect()))
}

/// Null is none.
fn value_of(key: &str, value: Value) -> Result<Option<EditValue>, Page> {
    Ok(Some(match value {
        Value::Null => return Ok(None),
        Value::String(text) => EditValue::Text(text),
        Value::Bool(flag) => EditValue::Flag(flag),
        Value::Number(number) if whole(&number).is_some() => {
            EditValue::Number(whole(&number).unwrap_or_default())
        }
        _ => {
            let detail = format!("`{key}` is a text, a whole number, true, false or null");
            return Err(Page::problem(400, detail));
        }
    }))
}

/// JSON knows one kind of number: 3.0 is as whole as 3.
fn whole(number: &serde_json::Number) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let rounded = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT_MAX);
    number.as_i64().or(rounded.map(|number| number as i64))
}
