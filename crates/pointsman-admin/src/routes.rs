//! What can be asked: one table, from which requests are told apart, and the description of the API is made.

mod looks;
mod questions;
mod versions;

use crate::answers;
use crate::route::{Answer, Body, Call, Needs, Parameter, ParameterKind, Route};
use crate::shape::Shape;

const COLOUR: Parameter = Parameter {
    name: "colour",
    kind: ParameterKind::Flag,
    doc: "Texts for people have colours for a terminal.",
};
const WHY: Parameter =
    Parameter { name: "why", kind: ParameterKind::Text, doc: "The reason, kept with the version." };
const RULES: Body = Body { shape: None, doc: "The rules as text.", bytes_max: 4 * 1024 * 1024 };
const STATE: Body = Body {
    shape: Some(&answers::STATE_ASKED),
    doc: "What is to hold from now on: `state` is `enabled`, `draining` or `disabled`.",
    bytes_max: 64 * 1024,
};
const LOG_LEVEL: Body = Body {
    shape: Some(&answers::LOG_LEVEL_ASKED),
    doc: "`level` is `error`, `warn`, `info` or `debug`; null is what the configuration says.",
    bytes_max: 64 * 1024,
};
const SERVER: Body = Body {
    shape: Some(&answers::SERVER_ASKED),
    doc: "The keys of the server as the configuration knows them (`address`, `weight`, ...), but for its name; or \
          of a service that stands for several, which is called by its name.",
    bytes_max: 64 * 1024,
};
const SERVER_CHANGES: Body = Body {
    shape: Some(&answers::SERVER_CHANGES_ASKED),
    doc: "Those keys of the server that are to be other; null takes one away (RFC 7396).",
    bytes_max: 64 * 1024,
};
const SERVER_NAME: Parameter =
    Parameter { name: "server", kind: ParameterKind::Text, doc: "Only clients of this server." };
const FROM: Parameter = Parameter {
    name: "from",
    kind: ParameterKind::Number { min: 0, max: u32::MAX },
    doc: "Where to go on: the `next` of the answer before.",
};
const MAX: Parameter = Parameter {
    name: "max",
    kind: ParameterKind::Number { min: 1, max: 1000 },
    doc: "How many to tell at most; 100 where it is left out.",
};
const SECONDS: Parameter = Parameter {
    name: "seconds",
    kind: ParameterKind::Number { min: 1, max: 86_400 },
    doc: "How long it lasts at most; 60 where it is left out.",
};
const ID: Parameter = Parameter {
    name: "id",
    kind: ParameterKind::Id,
    doc: "The `id` it is to have, which is to be unlike any other, so that whoever begins it can end it though the answer is lost; the switch makes one up where it is left out.",
};
const DECISIONS: Parameter = Parameter {
    name: "decisions",
    kind: ParameterKind::Number { min: 1, max: u32::MAX },
    doc: "How many decisions are compared before it ends; it is looked at four times a second. Where it is left out its time alone counts.",
};
const WRONG: (u16, &str) = (422, "The rules are wrong; `findings` and `text` say where.");
const CHANGED: (u16, &str) = (409, "A file has changed since it was read, or the listener has no rules.");
const DRAINS: (u16, &str) = (503, "It drains.");
/// The same of what changes something.
const NO_CHANGES: (u16, &str) = (503, "It drains, or an upgrade is under way.");
/// The same of what takes its turn for that.
const NO_TURN: (u16, &str) = (503, "It drains, an upgrade is under way, or too many changes wait.");
/// What has the configuration read, and changes nothing.
const TOO_MANY: (u16, &str) = (503, "Too many changes wait.");
const TOO_LATE: (u16, &str) =
    (504, "To read the configuration, or to wait for its turn, takes too long; nothing has changed.");
const PAIR: Body = Body {
    shape: None,
    doc: "The chain, the leaf first, and its private key, as PEM. Without a key the one that serves is kept.",
    bytes_max: 256 * 1024,
};
const NO_CERTIFICATE: (u16, &str) = (404, "There is no such certificate.");
const FINGERPRINT: &str = "The fingerprint of the certificate that serves, in quotes.";
const NO_POOL: (u16, &str) = (404, "There is no such pool, or no such server.");
const RULES_VERSION: &str = "The version of the rules that serve, in quotes; not needed with `dry_run`.";
const CONFIGURATION_VERSION: &str = "The version of the configuration that serves, in quotes.";
/// What a change of the configuration is refused for.
const CONFIGURATION_REFUSALS: &[(u16, &str)] = &[
    NO_POOL,
    (
        409,
        "A file has changed since it was read, or the configuration is written in a way that cannot be changed here.",
    ),
    (412, "Another configuration serves than `If-Match` says; `configuration_version` says which."),
    (422, "The configuration would be wrong; `findings` and `text` say where."),
    (428, "`If-Match` is missing."),
    (500, "The configuration cannot be written."),
    NO_TURN,
    TOO_LATE,
];
const NO_LISTENER: (u16, &str) = (404, "There is no such listener.");
const NO_DRY_RUN: (u16, &str) = (404, "There was none since the start.");

/// Reads something.
const fn get(path: &'static str, call: Call, answer: &'static Shape, summary: &'static str) -> Route {
    Route {
        method: "GET",
        path,
        needs: Needs::Read,
        call,
        summary,
        query: &[],
        if_match: None,
        body: None,
        answer: Answer::Json(answer),
        refusals: &[],
    }
}

/// Reads a text.
const fn text(path: &'static str, call: Call, summary: &'static str) -> Route {
    Route { answer: Answer::Text, ..get(path, call, &Shape::Text, summary) }
}

/// Changes something.
const fn change(
    method: &'static str,
    path: &'static str,
    call: Call,
    answer: &'static Shape,
    summary: &'static str,
) -> Route {
    Route { method, needs: Needs::Change, ..get(path, call, answer, summary) }
}

pub(crate) static ROUTES: &[Route] = &[
    text("/metrics", Call::Metrics, "Metrics in Prometheus' text format."),
    Route { refusals: &[DRAINS], ..text("/health", Call::Health, "Whether the switch serves.") },
    get("/api/v1/openapi.json", Call::OpenApi, &answers::OPENAPI, "This description."),
    Route {
        query: &[
            Parameter {
                name: "dry_run",
                kind: ParameterKind::Flag,
                doc: "Changes nothing, and says what the rules on disk decide otherwise than those that serve.",
            },
            COLOUR,
        ],
        refusals: &[
            (409, "Another comparison is going on."),
            (422, "The configuration is wrong; `findings` and `text` say where."),
            (
                503,
                "It drains, an upgrade is under way, too many changes wait, or there is no thread for a comparison.",
            ),
            TOO_LATE,
        ],
        ..change(
            "POST",
            "/api/v1/reload",
            Call::Reload,
            &answers::RELOADED,
            "Reads the configuration and its files again, as SIGHUP does, and answers when the new plan serves.",
        )
    },
    get(
        "/api/v1/plan",
        Call::Plan,
        &answers::PLAN,
        "What serves: listeners with their rules, and pools with their servers.",
    ),
    get("/api/v1/access", Call::Access, &answers::ACCESS, "Who asks, and what they may do."),
    looks::TRAFFIC,
    looks::REQUESTS,
    Route {
        refusals: &[NO_LISTENER],
        ..get(
            "/api/v1/listeners/{name}/rules",
            Call::Rules,
            &answers::RULES,
            "The rules of a listener, their version (also in `ETag`), and how often each decided.",
        )
    },
    Route {
        query: &[
            Parameter {
                name: "dry_run",
                kind: ParameterKind::Flag,
                doc: "Changes nothing, and says what these rules decide otherwise than those that serve.",
            },
            WHY,
            COLOUR,
        ],
        if_match: Some(RULES_VERSION),
        body: Some(&RULES),
        refusals: &[
            NO_LISTENER,
            CHANGED,
            (412, "Other rules serve than `If-Match` says; `rules_version` says which."),
            WRONG,
            (428, "`If-Match` is missing."),
            (500, "The rules file cannot be written."),
            NO_TURN,
            TOO_LATE,
        ],
        ..change(
            "PUT",
            "/api/v1/listeners/{name}/rules",
            Call::PublishRules,
            &answers::PUBLISHED,
            "Puts other rules in the place of those of a listener: they serve at once, and stand in its rules file.",
        )
    },
    questions::VALIDATE,
    questions::CHECK,
    questions::CHECK_SERVED,
    questions::EXPLAIN_OTHERS,
    questions::EXPLAIN,
    questions::FORMAT,
    questions::VOCABULARY,
    Route {
        query: &[COLOUR],
        body: Some(&RULES),
        refusals: &[
            NO_LISTENER,
            (409, "As above, or another comparison is going on."),
            WRONG,
            (503, "Too many changes wait, or there is no thread for a comparison."),
            TOO_LATE,
        ],
        ..change(
            "POST",
            "/api/v1/listeners/{name}/rules/diff",
            Call::CompareRules,
            &answers::DIFFERENCE,
            "Says what rules would decide otherwise than those of a listener that serve, and changes nothing.",
        )
    },
    Route {
        query: &[SECONDS, DECISIONS, ID, WHY, COLOUR],
        if_match: Some("The version of the rules that serve, in quotes; may be left out."),
        body: Some(&RULES),
        refusals: &[
            NO_LISTENER,
            (409, "A file has changed since it was read, the listener has no rules, or a dry-run goes on."),
            (412, "Other rules serve than `If-Match` says; `rules_version` says which."),
            WRONG,
            NO_TURN,
            TOO_LATE,
        ],
        ..change(
            "POST",
            "/api/v1/listeners/{name}/rules/dry-run",
            Call::BeginDryRunOfRules,
            &answers::DRY_RUN,
            "Asks other rules beside those of a listener about the requests that come, and counts what they would decide otherwise. They decide nothing.",
        )
    },
    Route {
        query: &[SECONDS, DECISIONS, ID, WHY, COLOUR],
        refusals: &[
            (409, "A dry-run goes on, or a comparison."),
            (422, "The configuration is wrong; `findings` and `text` say where."),
            (503, "It drains, an upgrade is under way, or there is no thread to read the files."),
            (504, "To read the files takes too long."),
        ],
        ..change(
            "POST",
            "/api/v1/dry-run",
            Call::BeginDryRun,
            &answers::DRY_RUN,
            "The same with the configuration and the rules as they stand on disk.",
        )
    },
    Route {
        query: &[COLOUR],
        refusals: &[NO_DRY_RUN],
        ..get(
            "/api/v1/dry-run",
            Call::DryRun,
            &answers::DRY_RUN,
            "What the dry-run that goes on, or was last, has found so far; its `id` also in `ETag`. Requests are shown to whoever has a token or a client certificate.",
        )
    },
    Route {
        query: &[COLOUR],
        if_match: Some("The `id` of the dry-run, in quotes; may be left out."),
        refusals: &[
            NO_DRY_RUN,
            (412, "Another one than `If-Match` says goes on, or was last; `id` says which."),
        ],
        ..change(
            "DELETE",
            "/api/v1/dry-run",
            Call::EndDryRun,
            &answers::DRY_RUN,
            "Ends the dry-run, and says what it has found. What has ended stays so.",
        )
    },
    versions::LIST,
    versions::ONE,
    questions::COMPARE_VERSION,
    versions::RESTORE,
    get(
        "/api/v1/pools",
        Call::Pools,
        &answers::POOLS,
        "Every pool with its servers, how each of them stands, and the version of the configuration (also in `ETag`).",
    ),
    Route {
        refusals: &[NO_POOL],
        ..get(
            "/api/v1/pools/{pool}",
            Call::Pool,
            &answers::POOL,
            "A pool with its servers, and how each of them stands.",
        )
    },
    Route {
        refusals: &[NO_POOL],
        ..get(
            "/api/v1/pools/{pool}/servers/{server}",
            Call::Server,
            &answers::SERVER,
            "A server, how it stands, and what has become of it lately.",
        )
    },
    Route {
        query: &[WHY],
        body: Some(&STATE),
        refusals: &[NO_POOL, NO_CHANGES],
        ..change(
            "PUT",
            "/api/v1/pools/{pool}/servers/{server}/state",
            Call::SetServerState,
            &answers::SERVER,
            "Sets by hand whether a server gets requests. It survives reloads and upgrades, and no restart.",
        )
    },
    Route {
        query: &[WHY, COLOUR],
        if_match: Some(CONFIGURATION_VERSION),
        body: Some(&SERVER),
        refusals: CONFIGURATION_REFUSALS,
        ..change(
            "PUT",
            "/api/v1/pools/{pool}/servers/{server}",
            Call::PutServer,
            &answers::CHANGED_CONFIGURATION,
            "Adds a server to a pool, or replaces it: it serves at once, and stands in the configuration.",
        )
    },
    Route {
        query: &[WHY, COLOUR],
        if_match: Some(CONFIGURATION_VERSION),
        body: Some(&SERVER_CHANGES),
        refusals: CONFIGURATION_REFUSALS,
        ..change(
            "PATCH",
            "/api/v1/pools/{pool}/servers/{server}",
            Call::ChangeServer,
            &answers::CHANGED_CONFIGURATION,
            "Changes keys of a server, its weight for instance, at once and in the configuration.",
        )
    },
    Route {
        query: &[WHY, COLOUR],
        if_match: Some(CONFIGURATION_VERSION),
        refusals: CONFIGURATION_REFUSALS,
        ..change(
            "DELETE",
            "/api/v1/pools/{pool}/servers/{server}",
            Call::RemoveServer,
            &answers::CHANGED_CONFIGURATION,
            "Takes a server out of its pool and of the configuration. What is on its way there goes on.",
        )
    },
    looks::BANDWIDTH,
    get(
        "/api/v1/certificates",
        Call::Certificates,
        &answers::CERTIFICATES,
        "The certificates that listeners show.",
    ),
    Route {
        refusals: &[NO_CERTIFICATE],
        ..get(
            "/api/v1/certificates/{id}",
            Call::Certificate,
            &answers::CERTIFICATE,
            "A certificate: its names, its issuer, its time, its key's kind, and who shows it. Keys are never shown.",
        )
    },
    Route {
        query: &[WHY, COLOUR],
        if_match: Some(FINGERPRINT),
        body: Some(&PAIR),
        refusals: &[
            NO_CERTIFICATE,
            (409, "A file has changed since it was read."),
            (412, "Another certificate serves than `If-Match` says; `fingerprint` says which."),
            (422, "The certificate is of no use, or the key is not its own; `detail` says why."),
            (428, "`If-Match` is missing."),
            (500, "The files cannot be written."),
            NO_TURN,
            TOO_LATE,
        ],
        ..change(
            "PUT",
            "/api/v1/certificates/{id}",
            Call::ReplaceCertificate,
            &answers::REPLACED,
            "Puts another certificate, and its key, in the place of one: new handshakes get it at once, and it stands in its files.",
        )
    },
    Route {
        query: &[SERVER_NAME, FROM, MAX],
        refusals: &[NO_POOL],
        ..get(
            "/api/v1/pools/{pool}/sticky-clients",
            Call::StickyClients,
            &answers::STICKY_CLIENTS,
            "The sticky clients that are remembered with servers of a pool, so many at a time.",
        )
    },
    Route {
        query: &[SERVER_NAME],
        refusals: &[NO_POOL, NO_CHANGES],
        ..change(
            "DELETE",
            "/api/v1/pools/{pool}/sticky-clients",
            Call::ForgetStickyClients,
            &answers::FORGOTTEN,
            "Forgets the sticky clients of a pool, or of one of its servers: their hash says where they go then.",
        )
    },
    Route {
        refusals: &[(404, "There is no such pool, or no such client in it."), NO_CHANGES],
        ..change(
            "DELETE",
            "/api/v1/pools/{pool}/sticky-clients/{client}",
            Call::ForgetStickyClient,
            &answers::FORGOTTEN,
            "Forgets one sticky client of a pool.",
        )
    },
    Route {
        refusals: &[NO_CHANGES],
        ..change(
            "DELETE",
            "/api/v1/sticky-targets",
            Call::ForgetStickyTargets,
            &answers::FORGOTTEN,
            "Forgets who stays with which target: of all listeners whose `sticky_scope` is `listener`.",
        )
    },
    get(
        "/api/v1/log-level",
        Call::LogLevel,
        &answers::LOG_LEVEL,
        "How much the switch says of itself (also in `ETag`), and what the configuration says.",
    ),
    Route {
        if_match: Some("The level that holds, in quotes; may be left out."),
        body: Some(&LOG_LEVEL),
        refusals: &[(412, "Another level holds than `If-Match` says; `level` says which.")],
        ..change(
            "PUT",
            "/api/v1/log-level",
            Call::SetLogLevel,
            &answers::LOG_LEVEL,
            "Sets it, until the configuration says another one than it does now, or the process ends.",
        )
    },
];
