//! What stands in answers about rules, of those who ask and change nothing, and in what they ask.

use super::TEXTS;
use crate::shape::Shape::{
    self, All, Any, Count, FirstOf, Flag, List, Object, OrNull, Some, Text, Version, Within, Word,
};

/// A place in the text that was sent.
const SPAN: Shape = Object(&[
    ("start", Count),
    ("end", Count),
    ("line", Count),
    ("column", Count),
    ("end_line", Count),
    ("end_column", Count),
]);

/// A request that shows something; some members are there only where they say something.
const WITNESS: Shape = Object(&[("request", Text), ("options", Text), ("explain", Any)]);

pub(crate) static CHECKED: Shape = Object(&[
    ("version", Version),
    ("rules_version", Text),
    ("compiles", Flag),
    ("is_settled", Flag),
    ("about", Word(&["changed", "all"])),
    ("changed", OrNull(&TEXTS)),
    (
        "findings",
        List(&Object(&[
            ("code", Text),
            ("severity", Word(&["error", "warning", "note"])),
            ("file", Text),
            ("span", SPAN),
            ("message", Text),
            ("help", OrNull(&Text)),
            ("rule", OrNull(&Text)),
            ("others", TEXTS),
            ("witness", OrNull(&WITNESS)),
            ("before", OrNull(&WITNESS)),
            ("reasons", List(&Any)),
            ("assertion", OrNull(&Text)),
        ])),
    ),
    ("body_costs", List(&Any)),
    ("assertions", Object(&[("stated", Count), ("proved", Count)])),
]);

/// A test of a condition; `cause` and `unsettled` are there only where they say something.
const TEST: Shape = Object(&[
    ("text", Text),
    ("field", Text),
    ("result", RESULT),
    ("values", List(&Any)),
    ("values_left_out", Count),
    ("span", SPAN),
]);
const RESULT: Shape = Word(&["true", "false", "unknown"]);

pub(crate) static EXPLAINED: Shape = Object(&[
    ("version", Version),
    ("notes", TEXTS),
    (
        "rules",
        List(&Object(&[
            ("rule", Text),
            ("result", RESULT),
            ("then", Text),
            ("span", SPAN),
            ("tests", List(&TEST)),
            ("tests_left_out", Count),
        ])),
    ),
    ("decision", Any),
]);

pub(crate) static FORMATTED: Shape = Object(&[("version", Version), ("text", Text), ("is_changed", Flag)]);

/// A word, or a form, and what it means.
const SAID: &[(&str, Shape)] = &[("name", Text), ("spelling", Text), ("doc", Text)];

const VALUE_TYPE: Shape = Word(&["text", "integer", "ip", "boolean"]);

pub(crate) static VOCABULARY: Shape = Object(&[
    ("version", Version),
    ("listener", Text),
    (
        "fields",
        List(&All(&[
            Object(SAID),
            Object(&[
                ("key", Word(&["none", "optional", "required", "path"])),
                ("type", VALUE_TYPE),
                ("is_many_valued", Flag),
                ("known", Word(&["connection", "head", "body"])),
            ]),
        ])),
    ),
    ("operators", List(&All(&[Object(SAID), Object(&[("types", List(&VALUE_TYPE))])]))),
    ("functions", List(&Object(SAID))),
    (
        "actions",
        List(&All(&[
            Object(SAID),
            Object(&[
                ("kind", Word(&["terminal", "effect", "jump", "remark"])),
                ("parameters", List(&Object(&[("name", Text), ("of", PARAMETER), ("is_required", Flag)]))),
            ]),
        ])),
    ),
    ("stickinesses", List(&Object(SAID))),
    ("settings", List(&Object(SAID))),
    ("keywords", List(&Object(SAID))),
    ("pools", List(&Object(&[("name", Text), ("servers", TEXTS)]))),
    ("bandwidths", TEXTS),
    ("limits", TEXTS),
    ("lists", TEXTS),
]);

const PARAMETER: Shape = Word(&[
    "target",
    "pool",
    "stickiness",
    "status",
    "text",
    "template",
    "regex",
    "header",
    "bandwidth",
    "limit",
    "word",
    "label",
    "labels",
]);

/// What is asked of rules: the options of `pointsman explain`, and before them the rules.
static ASKED: [(&str, Shape); 20] = [
    ("rules", Text),
    ("request", OrNull(&Text)),
    ("request_base64", OrNull(&Text)),
    ("srcip", OrNull(&Text)),
    ("srcport", OrNull(&PORT)),
    ("dstip", OrNull(&Text)),
    ("dstport", OrNull(&PORT)),
    ("proxied", OrNull(&Text)),
    ("proxy_value", OrNull(&TEXTS)),
    ("tls", OrNull(&Text)),
    ("cipher", OrNull(&Text)),
    ("sni", OrNull(&Text)),
    ("alpn", OrNull(&TEXTS)),
    ("resumed", OrNull(&Flag)),
    ("client_subject", OrNull(&Text)),
    ("client_san", OrNull(&TEXTS)),
    ("client_fingerprint", OrNull(&Text)),
    ("client_certificate", OrNull(&Text)),
    ("trusted_proxy", OrNull(&TEXTS)),
    ("miss", OrNull(&Text)),
];
const PORT: Shape = Within(0, 65_535);

pub(crate) static QUESTION_ASKED: Shape = Some(ASKED.split_at(1).1);

pub(crate) static QUESTION_OF_RULES_ASKED: Shape = FirstOf(&ASKED);
