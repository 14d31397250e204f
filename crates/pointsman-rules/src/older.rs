//! The spellings of the papers, and what they are called today.

use crate::ast::{Literal, LiteralKind, Predicate, Quoted};
use crate::parser::Relation;

/// The modern name of an action.
pub(crate) fn action_name(word: &str) -> &str {
    match word {
        "route_to" => "routeTo",
        other => other,
    }
}

/// The modern name of a stickiness.
pub(crate) fn stickiness(word: &str) -> &str {
    match word {
        "NONSTICKY" => "NON_STICKY",
        "STICKY" => "STICKY_ON_IP",
        "STICKY_IP_PORT" => "STICKY_ON_IP_PORT",
        other => other,
    }
}

/// The modern name of a field.
pub(crate) fn field_name(word: &str) -> &str {
    match word {
        "URL" => "url",
        "source_ip" | "saddr" => "srcip",
        "source_port" => "srcport",
        other => other,
    }
}

/// `purchase:1.subTotal:2.` as `xml.purchase[1]/subTotal[2]`.
pub(crate) fn path(text: &str) -> String {
    let steps = text.strip_suffix('.').unwrap_or(text).split('.').map(|step| match step.split_once(':') {
        Some((name, index)) => format!("{name}[{index}]"),
        None => step.to_owned(),
    });
    format!("xml.{}", steps.collect::<Vec<_>>().join("/"))
}

/// `strcmp(field, text)` in a relation to 0 is the field in that relation to the text.
pub(crate) fn strcmp(relation: Relation, text: Quoted) -> Predicate {
    let literal = Literal { span: text.span, kind: LiteralKind::Text(text.text) };
    match relation {
        Relation::Equal => Predicate::Equals(literal),
        Relation::Differ => Predicate::Differs(literal),
        Relation::Ordered(order) => Predicate::Ordered(order, literal),
    }
}
