//! What is asked about rules, of which nothing changes: rows of the table.

use super::versions::{NO_VERSION, OF_RULES};
use super::{CHANGED, COLOUR, NO_LISTENER, RULES, TOO_LATE, TOO_MANY, WRONG, change, get};
use crate::answers::{self, rules};
use crate::route::{Body, Call, Needs, Parameter, ParameterKind, Route};

const QUESTION: Body = Body {
    shape: Some(&rules::QUESTION_ASKED),
    doc: "The request, as text or in base64 (of a listener that reads none: neither), and where it comes from, as the options of `pointsman explain` say it.",
    bytes_max: 1024 * 1024,
};
const QUESTION_OF_RULES: Body = Body {
    shape: Some(&rules::QUESTION_OF_RULES_ASKED),
    doc: "The same, and the `rules` that are asked.",
    bytes_max: 6 * 1024 * 1024,
};
const ABOUT: Parameter = Parameter {
    name: "about",
    kind: ParameterKind::Word(&["changed", "all"]),
    doc: "Whether only rules are looked at that are not as they serve, or all; `changed` where it is left out.",
};
const WITHIN_MS: Parameter = Parameter {
    name: "within_ms",
    kind: ParameterKind::Number { min: 1, max: 10_000 },
    doc: "How long it is looked for what rules mean together; what that does not reach is unknown. 1000 where it is left out.",
};
const CLIENT: Parameter = Parameter {
    name: "client",
    kind: ParameterKind::Text,
    doc: "Which window it is, by a name that it has given itself: what it asks ends what it asked before.",
};
const FROM_VERSION: Parameter = Parameter {
    name: "from",
    kind: ParameterKind::Number { min: 1, max: u32::MAX },
    doc: "The version to compare with, of the same file; what serves where it is left out.",
};
const FROM_RULES: Parameter =
    Parameter { name: "from_of", kind: ParameterKind::Text, doc: "The same of the version `from`." };
const NO_RULES_OR_AGAIN: (u16, &str) =
    (409, "The listener has no rules, or the same `client` has asked again.");
const TOO_MANY_ASK: (u16, &str) = (503, "Too many ask at a time, or there is no thread for it.");
const NO_REQUEST: (u16, &str) =
    (422, "The rules are wrong (`findings` and `text` say where), or no such request comes to the listener.");

pub(super) const VALIDATE: Route = Route {
    query: &[COLOUR],
    body: Some(&RULES),
    refusals: &[NO_LISTENER, CHANGED, WRONG, TOO_MANY, TOO_LATE],
    ..change(
        "POST",
        "/api/v1/listeners/{name}/rules/validate",
        Call::ValidateRules,
        &answers::VALID,
        "Says what is wrong with rules for a listener, and changes nothing.",
    )
};

pub(super) const CHECK: Route = Route {
    query: &[ABOUT, WITHIN_MS, CLIENT],
    body: Some(&RULES),
    refusals: &[NO_LISTENER, NO_RULES_OR_AGAIN, TOO_MANY_ASK],
    ..change(
        "POST",
        "/api/v1/listeners/{name}/rules/check",
        Call::CheckRules,
        &rules::CHECKED,
        "Says what there is to say of rules for a listener while they are written, also of such that do not compile.",
    )
};

pub(super) const CHECK_SERVED: Route = Route {
    query: &[WITHIN_MS, CLIENT],
    refusals: &[NO_LISTENER, NO_RULES_OR_AGAIN, TOO_MANY_ASK],
    ..get(
        "/api/v1/listeners/{name}/rules/check",
        Call::Check,
        &rules::CHECKED,
        "Says what there is to say of the rules of a listener that serve.",
    )
};

pub(super) const EXPLAIN_OTHERS: Route = Route {
    query: &[CLIENT],
    body: Some(&QUESTION_OF_RULES),
    refusals: &[NO_LISTENER, NO_RULES_OR_AGAIN, NO_REQUEST, TOO_MANY_ASK],
    ..change(
        "POST",
        "/api/v1/listeners/{name}/rules/explain",
        Call::ExplainRules,
        &rules::EXPLAINED,
        "Says what rules would do with a request, rule by rule, in the place of those of a listener.",
    )
};

pub(super) const EXPLAIN: Route = Route {
    needs: Needs::Read,
    query: &[CLIENT],
    body: Some(&QUESTION),
    refusals: &[NO_LISTENER, (409, "The same `client` has asked again."), NO_REQUEST, TOO_MANY_ASK],
    ..change(
        "POST",
        "/api/v1/listeners/{name}/explain",
        Call::Explain,
        &rules::EXPLAINED,
        "Says what the rules of a listener that serve do with a request, rule by rule.",
    )
};

pub(super) const FORMAT: Route = Route {
    query: &[CLIENT, COLOUR],
    body: Some(&RULES),
    refusals: &[NO_LISTENER, (409, "The same `client` has asked again."), WRONG, TOO_MANY_ASK],
    ..change(
        "POST",
        "/api/v1/listeners/{name}/rules/format",
        Call::FormatRules,
        &rules::FORMATTED,
        "Answers with rules in their one form.",
    )
};

pub(super) const VOCABULARY: Route = Route {
    refusals: &[NO_LISTENER],
    ..get(
        "/api/v1/listeners/{name}/vocabulary",
        Call::Vocabulary,
        &rules::VOCABULARY,
        "What rules of a listener are written with: fields, operators, actions, and what the configuration has.",
    )
};

pub(super) const COMPARE_VERSION: Route = Route {
    query: &[OF_RULES, FROM_VERSION, FROM_RULES, COLOUR],
    refusals: &[
        NO_VERSION,
        (409, "The versions are of different files, or no listener has rules of that file any more."),
        (422, "One of the two does not compile any more; `findings` and `text` say why."),
        TOO_MANY_ASK,
    ],
    ..get(
        "/api/v1/versions/{n}/diff",
        Call::CompareVersion,
        &answers::DIFFERENCE,
        "What rules that have served decide otherwise than another version, or than those that serve.",
    )
};
