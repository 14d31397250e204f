//! Rules that have served: rows of the table.

use super::{CHANGED, COLOUR, NO_TURN, TOO_LATE, WHY, WRONG, change, get};
use crate::answers;
use crate::route::{Call, Parameter, ParameterKind, Route};

pub(super) const NO_VERSION: (u16, &str) = (
    404,
    "There is no such version, or no more, or it is of other rules than `of`: then `rules_version` says of which.",
);
/// A switch that has begun anew counts its versions anew.
pub(super) const OF_RULES: Parameter = Parameter {
    name: "of",
    kind: ParameterKind::Text,
    doc: "The `rules_version` that the version has, of whoever has seen it in a list; it may be left out.",
};

pub(super) const LIST: Route = get(
    "/api/v1/versions",
    Call::Versions,
    &answers::VERSIONS,
    "Which rules have served since the switch began: who, when, why, how long.",
);

pub(super) const ONE: Route = Route {
    query: &[OF_RULES],
    refusals: &[NO_VERSION],
    ..get("/api/v1/versions/{n}", Call::Version, &answers::ONE_VERSION, "The text of rules that have served.")
};

pub(super) const RESTORE: Route = Route {
    query: &[OF_RULES, WHY, COLOUR],
    if_match: Some("The version of the rules that serve, in quotes; may be left out."),
    refusals: &[
        NO_VERSION,
        CHANGED,
        (412, "Other rules serve than `If-Match` says; `rules_version` says which."),
        WRONG,
        NO_TURN,
        TOO_LATE,
    ],
    ..change(
        "POST",
        "/api/v1/versions/{n}/restore",
        Call::RestoreVersion,
        &answers::RESTORED,
        "Lets rules serve again that have served, and writes them to their rules file.",
    )
};
