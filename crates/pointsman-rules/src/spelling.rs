//! Compiled rules as the language spells them.

use crate::{
    Condition, Effect, Entry, HeaderEdit, Op, Order, Over, Piece, Program, Side, Span, Stickiness, TargetId,
    Template, Terminal, Test,
};

/// The test of a condition that stands at a place of the source.
#[must_use]
pub fn test_at(condition: &Condition, span: Span) -> Option<&Test> {
    match condition {
        Condition::Always => None,
        Condition::Not(inner) => test_at(inner, span),
        Condition::And(parts) | Condition::Or(parts) => parts.iter().find_map(|part| test_at(part, span)),
        Condition::Test(test) => (test.span == span).then_some(test),
    }
}

/// `path under "/api"`
#[must_use]
pub fn test(test: &Test) -> String {
    let field = match test.over {
        Over::Any => test.field.to_string(),
        Over::All => format!("all({})", test.field),
        Over::First => format!("first({})", test.field),
        Over::Once => format!("once({})", test.field),
        Over::Count => format!("count({})", test.field),
    };
    let left = if test.fold_case { format!("lower({field})") } else { field };
    match &test.op {
        Op::Exists => format!("{left} exists"),
        Op::IsTrue => format!("{left} == true"),
        Op::IsFalse => format!("{left} == false"),
        Op::TextEquals(text) => format!("{left} == {}", quoted(text)),
        Op::TextDiffers(text) => format!("{left} != {}", quoted(text)),
        Op::TextOrder(order, text) => format!("{left} {} {}", sign(*order), quoted(text)),
        Op::Contains(text) => format!("{left} contains {}", quoted(text)),
        Op::StartsWith(text) => format!("{left} startsWith {}", quoted(text)),
        Op::EndsWith(text) => format!("{left} endsWith {}", quoted(text)),
        Op::Like(text) => format!("{left} like {}", quoted(text)),
        Op::Matches(regex) => format!("{left} matches {}", quoted(regex.as_str().as_bytes())),
        Op::Under(text) => format!("{left} under {}", quoted(text)),
        Op::NumberEquals(number) => format!("{left} == {number}"),
        Op::NumberDiffers(number) => format!("{left} != {number}"),
        Op::NumberOrder(order, number) => format!("{left} {} {number}", sign(*order)),
        Op::IpIn(network) => format!("{left} == {}", shown_network(network)),
        Op::IpNotIn(network) => format!("{left} != {}", shown_network(network)),
        Op::IpOrder(order, address) => format!("{left} {} {address}", sign(*order)),
        Op::In(entries) if matches!(entries[..], [Entry::List(_)]) => {
            format!("{left} in {}", entries.iter().map(entry).collect::<String>())
        }
        Op::In(entries) => {
            let entries: Vec<_> = entries.iter().map(entry).collect();
            format!("{left} in [{}]", entries.join(", "))
        }
    }
}

/// `routeTo(fast, STICKY_ON_IP);`
#[must_use]
pub fn terminal(program: &Program, terminal: &Terminal) -> String {
    match terminal {
        Terminal::RouteTo { target: id, sticky } => match stickiness(sticky) {
            None => format!("routeTo({});", target(program, *id)),
            Some(sticky) => format!("routeTo({}, {sticky});", target(program, *id)),
        },
        Terminal::Split(split) => match stickiness(&split.sticky) {
            None => format!("routeTo({});", program.spell_split(&split.shares)),
            Some(sticky) => format!("routeTo({}, {sticky});", program.spell_split(&split.shares)),
        },
        Terminal::Reject { status, reason: None } => format!("reject({status});"),
        Terminal::Reject { status, reason: Some(reason) } => {
            format!("reject({status}, {});", quoted(reason.as_bytes()))
        }
        Terminal::Reset => "reject(reset);".to_owned(),
        Terminal::Discard => "discard();".to_owned(),
        Terminal::Redirect { status, location } => format!("redirect({status}, {});", template(location)),
        Terminal::Respond { status, body } => format!("respond({status}, {});", template(body)),
    }
}

/// `setHeader("x-class", "gold");`
#[must_use]
pub fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Header { side, name, edit } => {
            let (what, name) =
                (if *side == Side::Request { "Header" } else { "ResponseHeader" }, quoted(name.as_bytes()));
            match edit {
                HeaderEdit::Set(value) => format!("set{what}({name}, {});", template(value)),
                HeaderEdit::Add(value) => format!("add{what}({name}, {});", template(value)),
                HeaderEdit::Remove => format!("remove{what}({name});"),
            }
        }
        Effect::RewritePath { regex, replacement } => {
            format!("rewritePath({}, {});", quoted(regex.as_str().as_bytes()), quoted(replacement))
        }
        Effect::Tag(word) => format!("tag({word});"),
        Effect::LimitRate(class) => format!("limitRate({class});"),
        Effect::Bandwidth(class) => format!("bandwidth({class});"),
        Effect::Mirror(pool) => format!("mirror({pool});"),
    }
}

/// `fast.server3`; a bare name where the rules stand alone.
#[must_use]
pub fn target(program: &Program, id: TargetId) -> String {
    match program.targets.get(id.0 as usize) {
        Some(name) => match &name.server {
            None => name.pool.to_string(),
            Some(server) => format!("{}.{server}", name.pool),
        },
        // Invariant: a program names only targets of its own table.
        None => "?".to_owned(),
    }
}

fn stickiness(sticky: &Stickiness) -> Option<String> {
    (*sticky != Stickiness::None).then(|| sticky.to_string())
}

fn entry(entry: &Entry) -> String {
    let range = |from: String, to: String, exclusive: bool| {
        if exclusive { format!("({from}..{to})") } else { format!("{from}..{to}") }
    };
    match entry {
        Entry::Text(text) => quoted(text),
        Entry::Number(number) => number.to_string(),
        Entry::Network(network) => shown_network(network),
        Entry::NumberRange { from, to, exclusive } => range(from.to_string(), to.to_string(), *exclusive),
        Entry::IpRange { from, to, exclusive } => range(from.to_string(), to.to_string(), *exclusive),
        Entry::TextRange { from, to, exclusive } => range(quoted(from), quoted(to), *exclusive),
        Entry::List(list) => format!("@{}", list.name),
    }
}

/// A single address is written without its length.
fn shown_network(network: &ipnet::IpNet) -> String {
    match network.prefix_len() == network.max_prefix_len() {
        true => network.addr().to_string(),
        false => network.to_string(),
    }
}

fn template(template: &Template) -> String {
    let mut text = String::from("\"");
    for piece in &template.0 {
        match piece {
            Piece::Literal(bytes) => text.push_str(&escaped(bytes).replace('$', "$$")),
            Piece::Field(field) => text.push_str(&format!("${{{field}}}")),
            Piece::Group(group) => text.push_str(&format!("${{{group}}}")),
        }
    }
    text.push('"');
    text
}

fn sign(order: Order) -> &'static str {
    match order {
        Order::Less => "<",
        Order::LessOrEqual => "<=",
        Order::Greater => ">",
        Order::GreaterOrEqual => ">=",
    }
}

fn quoted(text: &[u8]) -> String {
    format!("\"{}\"", escaped(text))
}

/// A text as it stands between quotes. A backslash is doubled only where it would be read as an escape.
fn escaped(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' if matches!(chars.peek(), None | Some('"' | '\\')) => out.push_str("\\\\"),
            // The language has no escape for them, and a terminal must not see them.
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Exit, Targets, compile};

    /// What is compiled is spelled as it was written.
    #[test]
    fn tests_and_actions_are_spelled_as_they_were_written() {
        for condition in [
            r#"path under "/api""#,
            r#"path matches "\.(gif|jpe?g)$""#,
            r#"lower(header["user-agent"]) contains "a \"b\"""#,
            r#"all(query["k"]) startsWith "x""#,
            r#"count(cookie["a"]) >= 2"#,
            r#"header["x-amount"] == 99.95"#,
            "srcip in [10.0.0.0/8, 192.0.2.1, 198.51.100.1..198.51.100.9]",
            "srcport in [1..5, (7..9)]",
            r#"method in ["GET", "HEAD"]"#,
            "srcip == 128.198.60.1",
            r#"first(header["a"]) like "x*""#,
            r#"once(header["a"]) endsWith "z""#,
            r#"tls.sni != "a""#,
            "tls.resumed == true",
            "content_length exists",
        ] {
            let compiled = compile(&format!("if ({condition}) {{ reject(); }}"), &Targets::Any);
            let program = compiled.unwrap_or_else(|errors| panic!("{condition}: {errors:?}")).program;
            let Condition::Test(found) = &program.rules[0].condition else { panic!("{condition}") };
            assert_eq!(test(found), condition);
            assert!(test_at(&program.rules[0].condition, found.span).is_some());
        }
        for action in [
            "routeTo(fast);",
            "routeTo(fast.server3, STICKY_ON_IP_PORT);",
            "routeTo(fast, STICKY_ON(cookie[\"sid\"]));",
            "routeTo(split(90: stable, 9.5: fast.server3, 0.5: canary), STICKY_ON_IP);",
            "reject(403);",
            "reject(451, \"no\");",
            "discard();",
            "redirect(308, \"https://${host}${path}\");",
            "respond(200, \"${query[\"k\"]}\");",
            "setHeader(\"x-class\", \"gold\");",
            "addResponseHeader(\"x-a\", \"${clientip}\");",
            "removeHeader(\"x-b\");",
            "rewritePath(\"^/a/(.*)\", \"/b/$1\");",
            "tag(gold);",
            "limitRate(api);",
        ] {
            let compiled = compile(&format!("{{ {action} }}"), &Targets::Any);
            let program = compiled.unwrap_or_else(|errors| panic!("{action}: {errors:?}")).program;
            let block = &program.rules[0].then;
            let spelled = match &block.exit {
                Exit::Terminal(found) => terminal(&program, found),
                _ => effect(&block.effects[0]),
            };
            assert_eq!(spelled, action);
        }
    }
}
