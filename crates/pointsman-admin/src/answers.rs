//! What stands in good answers, and in bodies that are JSON.

pub(crate) mod rules;

use crate::shape::Shape::{
    self, All, Any, Count, Either, FirstOf, Flag, List, Object, OrNull, Some, Text, Time, Version, Within,
    Word,
};

const FINDINGS: Shape = List(&Object(&[
    ("severity", Word(&["error", "warning", "note"])),
    ("file", Text),
    ("line", Count),
    ("column", Count),
    ("message", Text),
    ("help", OrNull(&Text)),
]));
const TEXTS: Shape = List(&Text);

const COMPARED: &[(&str, Shape)] = &[
    ("version", Version),
    ("dry_run", Flag),
    ("verdict", Word(&["equal", "different", "not settled"])),
    ("summary", Text),
    ("difference", Any),
    ("difference_text", Text),
    ("findings", FINDINGS),
    ("text", Text),
];

const WAY: Shape = Object(&[("rule", Text), ("outcome", Text)]);

const DECISIONS: &[(&str, Shape)] = &[
    ("decisions", Count),
    ("same", Count),
    ("other_rule", Count),
    ("changed", Count),
    ("untold", Count),
    ("untold_because", Object(&[("needs_body", Count), ("no_listener", Count), ("other_protocol", Count)])),
];

pub(crate) static DRY_RUN: Shape = All(&[
    Object(DECISIONS),
    Object(&[
        ("version", Version),
        ("n", Count),
        ("id", Text),
        ("state", Word(&["running", "ended"])),
        ("ended_by", OrNull(&Word(&["time", "decisions", "told", "published", "drained"]))),
        ("rules_of", OrNull(&Text)),
        ("who", Text),
        ("when", Time),
        ("why", Text),
        ("seconds", Count),
        ("decisions_max", OrNull(&Count)),
        ("elapsed_ms", Count),
        ("listeners", List(&All(&[Object(&[("listener", Text)]), Object(DECISIONS)]))),
        (
            "groups",
            List(&Object(&[
                ("listener", Text),
                ("kind", Word(&["changed", "other_rule"])),
                ("old", WAY),
                ("new", WAY),
                ("count", Count),
                (
                    "samples",
                    List(&Object(&[
                        ("when", Time),
                        ("client", OrNull(&Text)),
                        ("method", OrNull(&Text)),
                        ("host", OrNull(&Text)),
                        ("path", OrNull(&Text)),
                        ("query", OrNull(&Text)),
                    ])),
                ),
            ])),
        ),
        ("ungrouped", Count),
        ("findings", FINDINGS),
        ("summary", Text),
        ("text", Text),
    ]),
]);

const HISTORY: &[(&str, Shape)] = &[
    ("n", Count),
    ("file", Text),
    ("rules_version", Text),
    ("serves", Flag),
    ("who", Text),
    ("when", Time),
    ("why", Text),
    ("bytes", Count),
];

const STATES: Shape = Word(&["up", "starting", "draining", "down", "disabled", "ejected"]);
const ADMISSIONS: Shape = Word(&["enabled", "draining", "disabled"]);

const SERVER_NOW: Shape = Object(&[
    ("name", Text),
    ("address", Text),
    ("host", OrNull(&Text)),
    ("service", OrNull(&Text)),
    ("weight", Count),
    ("tls", Flag),
    ("state", STATES),
    ("since", Time),
    ("why", OrNull(&Text)),
    ("admission", ADMISSIONS),
    ("health", Word(&["unknown", "starting", "up", "down"])),
    ("in_flight_requests", Count),
    ("idle_connections", Count),
    ("requests", Count),
    ("failures", Count),
    ("ejections", Count),
    ("sticky_exceptions", Count),
]);

const POOL_NOW: Shape = Object(&[
    ("name", Text),
    ("balance", Text),
    ("servers", List(&SERVER_NOW)),
    ("leaving", List(&Object(&[("name", Text), ("in_flight_requests", Count)]))),
]);

const CERTIFICATE_NOW: Shape = Object(&[
    ("id", Text),
    ("listeners", TEXTS),
    ("pools", TEXTS),
    ("admin", Flag),
    ("names", TEXTS),
    ("subject", Text),
    ("issuer", Text),
    ("not_before", Time),
    ("not_after", Time),
    ("days_left", OrNull(&Count)),
    ("key", Text),
    ("fingerprint", Text),
    ("chain", Count),
    ("file", Text),
    ("key_file", Text),
    ("concerns", TEXTS),
]);

pub(crate) static OPENAPI: Shape = Object(&[("openapi", Text), ("info", Any), ("paths", Any)]);

pub(crate) static RELOADED: Shape = Either(&[
    Object(&[
        ("version", Version),
        ("generation", Count),
        ("configuration", Text),
        ("waits_for_restart", TEXTS),
        ("findings", FINDINGS),
        ("text", Text),
    ]),
    Object(COMPARED),
]);

pub(crate) static DIFFERENCE: Shape = Object(COMPARED);

pub(crate) static PLAN: Shape = Object(&[
    ("version", Version),
    ("began", Time),
    ("generation", Count),
    ("configuration", Text),
    (
        "listeners",
        List(&Object(&[
            ("name", Text),
            ("addresses", TEXTS),
            ("protocol", Text),
            ("tls", Flag),
            ("rules", OrNull(&Object(&[("file", Text), ("rules_version", Text), ("bytes", Count)]))),
            ("pool", OrNull(&Text)),
        ])),
    ),
    (
        "pools",
        List(&Object(&[
            ("name", Text),
            ("balance", Text),
            (
                "servers",
                List(&Object(&[
                    ("name", Text),
                    ("address", Text),
                    ("host", OrNull(&Text)),
                    ("service", OrNull(&Text)),
                    ("weight", Count),
                    ("tls", Flag),
                    ("in_flight_requests", Count),
                ])),
            ),
        ])),
    ),
]);

pub(crate) static ACCESS: Shape = Object(&[
    ("version", Version),
    ("who", OrNull(&Text)),
    ("may", Word(&["view", "change"])),
    ("takes", List(&Word(&["token", "certificate"]))),
]);

/// Of requests, densely: `took` has a count for each of the bounds that the answer begins with, and one for all that took longer.
const COUNTED: &[(&str, Shape)] = &[("responses", RESPONSES), ("took", List(&Count)), ("took_sum_us", Count)];

/// Of TLS: what succeeded by session, version and group, and what failed by reason.
const HANDSHAKES: Shape = Object(&[
    ("full", Count),
    ("resumed", Count),
    ("versions", Object(&[("1.2", Count), ("1.3", Count)])),
    (
        "groups",
        Object(&[
            ("X25519MLKEM768", Count),
            ("X25519", Count),
            ("secp256r1", Count),
            ("secp384r1", Count),
            ("other", Count),
            ("none", Count),
        ]),
    ),
    ("failures", Any),
]);

pub(crate) static TRAFFIC: Shape = Object(&[
    ("version", Version),
    ("generation", Count),
    ("at_us", Count),
    ("took_up_to_us", List(&Count)),
    (
        "listeners",
        List(&All(&[
            Object(COUNTED),
            Object(&[
                ("name", Text),
                ("protocol", Text),
                ("pool", OrNull(&Text)),
                ("connections_open", Count),
                ("refusals", Count),
                ("tls", OrNull(&HANDSHAKES)),
                (
                    "rules",
                    List(&All(&[
                        Object(COUNTED),
                        Object(&[("rule", Text), ("hits", Count), ("pools", OrNull(&TEXTS))]),
                    ])),
                ),
                ("other_rules", OrNull(&Object(COUNTED))),
            ]),
        ])),
    ),
    (
        "pools",
        List(&Object(&[
            ("name", Text),
            (
                "servers",
                List(&All(&[
                    Object(COUNTED),
                    Object(&[
                        ("name", Text),
                        ("state", STATES),
                        ("weight", Count),
                        ("in_flight_requests", Count),
                        ("failures", Count),
                    ]),
                ])),
            ),
        ])),
    ),
]);

const ONE_REQUEST: Shape = Object(&[
    ("when", Time),
    ("listener", Text),
    ("rule", OrNull(&Text)),
    ("pool", OrNull(&Text)),
    ("server", OrNull(&Text)),
    ("status", OrNull(&Count)),
    ("error", OrNull(&Text)),
    ("total_us", Count),
    ("decided_us", OrNull(&Count)),
    ("queued_us", OrNull(&Count)),
    ("connected_us", OrNull(&Count)),
    ("first_byte_us", OrNull(&Count)),
    ("tries", Count),
    ("request_bytes", Count),
    ("response_bytes", Count),
    ("client", OrNull(&Text)),
    ("method", OrNull(&Text)),
    ("host", OrNull(&Text)),
    ("path", OrNull(&Text)),
    ("query", OrNull(&Text)),
]);

pub(crate) static REQUESTS: Shape = Object(&[
    ("version", Version),
    ("names_requests", Flag),
    ("slowest_s", Count),
    ("slowest", List(&ONE_REQUEST)),
    ("failed_s", Count),
    ("failed", List(&ONE_REQUEST)),
]);

pub(crate) static RULES: Shape = Object(&[
    ("version", Version),
    ("listener", Text),
    ("listeners", TEXTS),
    ("file", Text),
    ("rules_version", Text),
    ("text", Text),
    ("rules", List(&All(&[Object(&[("rule", Text), ("hits", Count)]), OUTCOMES]))),
    ("other", OUTCOMES),
]);

const OUTCOMES: Shape = Object(&[("responses", OrNull(&RESPONSES)), ("durations", OrNull(&DURATIONS))]);

/// The bounds are in their order; without one stand all.
const DURATIONS: Shape = Object(&[
    ("count", Count),
    ("sum_us", Count),
    ("buckets", List(&Object(&[("up_to_us", OrNull(&Count)), ("count", Count)]))),
]);

/// By class of status.
const RESPONSES: Shape = Object(&[
    ("none", Count),
    ("1xx", Count),
    ("2xx", Count),
    ("3xx", Count),
    ("4xx", Count),
    ("5xx", Count),
]);

const PUBLISHED_RULES: Shape = Object(&[
    ("version", Version),
    ("generation", Count),
    ("rules_version", Text),
    ("file", Text),
    ("findings", FINDINGS),
    ("text", Text),
]);

pub(crate) static PUBLISHED: Shape = Either(&[PUBLISHED_RULES, Object(COMPARED)]);

pub(crate) static RESTORED: Shape = PUBLISHED_RULES;

pub(crate) static VALID: Shape = Object(&[("version", Version), ("findings", FINDINGS), ("text", Text)]);

pub(crate) static VERSIONS: Shape = Object(&[("version", Version), ("versions", List(&Object(HISTORY)))]);

pub(crate) static ONE_VERSION: Shape =
    All(&[Object(HISTORY), Object(&[("version", Version), ("text", Text)])]);

/// What all answers about the configuration have.
const CONFIGURATION: Shape = Object(&[
    ("version", Version),
    ("generation", Count),
    ("configuration", Text),
    ("configuration_version", Text),
]);

pub(crate) static POOLS: Shape = All(&[CONFIGURATION, Object(&[("pools", List(&POOL_NOW))])]);

pub(crate) static POOL: Shape = All(&[CONFIGURATION, POOL_NOW]);

pub(crate) static SERVER: Shape = All(&[
    CONFIGURATION,
    SERVER_NOW,
    Object(&[
        ("pool", Text),
        ("changes", List(&Object(&[("when", Time), ("state", STATES), ("why", Text)]))),
        ("before", OrNull(&Object(&[("since", Time), ("state", STATES)]))),
    ]),
]);

pub(crate) static STICKY_CLIENTS: Shape = Object(&[
    ("version", Version),
    ("pool", Text),
    (
        "clients",
        List(&Object(&[("client", Text), ("server", Text), ("is_exception", Flag), ("idle_s", Count)])),
    ),
    ("next", OrNull(&Count)),
]);

pub(crate) static FORGOTTEN: Shape = Object(&[("version", Version), ("forgotten", Count)]);

pub(crate) static CHANGED_CONFIGURATION: Shape =
    All(&[CONFIGURATION, Object(&[("waits_for_restart", TEXTS), ("findings", FINDINGS), ("text", Text)])]);

/// What a class had in one direction; null where it counts nothing of it.
const ONE_WAY: Shape = OrNull(&Object(&[("bytes", Count), ("waits", Count), ("waiting", Count)]));

pub(crate) static BANDWIDTH: Shape = Object(&[
    ("version", Version),
    ("at_us", Count),
    (
        "classes",
        List(&Object(&[
            ("name", Text),
            ("parent", OrNull(&Text)),
            ("direction", Word(&["both", "to-client", "to-server"])),
            ("guaranteed_bytes_per_second", Count),
            ("ceiling_bytes_per_second", OrNull(&Count)),
            ("burst_bytes", Count),
            ("to_client", ONE_WAY),
            ("to_server", ONE_WAY),
        ])),
    ),
]);

pub(crate) static CERTIFICATES: Shape =
    Object(&[("version", Version), ("certificates", List(&CERTIFICATE_NOW))]);

pub(crate) static CERTIFICATE: Shape = All(&[CERTIFICATE_NOW, Object(&[("version", Version)])]);

pub(crate) static REPLACED: Shape = All(&[
    CERTIFICATE_NOW,
    Object(&[
        ("version", Version),
        ("generation", Count),
        ("names_gone", TEXTS),
        ("findings", FINDINGS),
        ("text", Text),
    ]),
]);

/// What refusals may have besides what all have.
pub(crate) static REFUSED: &[(&str, Shape)] = &[
    ("configuration", Text),
    ("findings", FINDINGS),
    ("text", Text),
    ("rules_version", Text),
    ("configuration_version", Text),
    ("fingerprint", Text),
    ("level", Text),
    ("id", Text),
];

const LOG_LEVELS: &[&str] = &["error", "warn", "info", "debug"];

pub(crate) static LOG_LEVEL: Shape =
    Object(&[("version", Version), ("level", Word(LOG_LEVELS)), ("configured", Word(LOG_LEVELS))]);

pub(crate) static LOG_LEVEL_ASKED: Shape = FirstOf(&[("level", OrNull(&Word(LOG_LEVELS)))]);

const CONNECTIONS_MAX: Shape = Within(0, 10_000_000);

pub(crate) static STATE_ASKED: Shape = FirstOf(&[("state", ADMISSIONS)]);

pub(crate) static SERVER_ASKED: Shape = Either(&[
    FirstOf(&[
        ("address", Text),
        ("weight", Within(1, 1000)),
        ("connections_max", CONNECTIONS_MAX),
        ("backup", Flag),
        ("zone", Text),
        ("tls_name", Text),
    ]),
    FirstOf(&[
        ("service", Text),
        ("connections_max", CONNECTIONS_MAX),
        ("backup", Flag),
        ("zone", Text),
        ("tls_name", Text),
    ]),
]);

pub(crate) static SERVER_CHANGES_ASKED: Shape = Some(&[
    ("address", Text),
    ("service", Text),
    ("weight", OrNull(&Within(1, 1000))),
    ("connections_max", OrNull(&CONNECTIONS_MAX)),
    ("backup", OrNull(&Flag)),
    ("zone", OrNull(&Text)),
    ("tls_name", OrNull(&Text)),
]);
