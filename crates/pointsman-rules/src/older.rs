//! The spellings of the papers, and what they are called today.

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
