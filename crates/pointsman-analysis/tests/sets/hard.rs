//! Rule sets that are made to be hard.

use std::fmt::Write as _;
use std::sync::Arc;

use pointsman_rules::{Program, Targets, compile};

/// The name of a set, and its rule of a number among so many.
pub(crate) type Manner = (&'static str, fn(&mut String, usize, usize));

pub(crate) const MANNERS: [Manner; 10] = [
    ("all overlap, each by a field of its own", |text, at, _| {
        writeln!(text, "R{at}: if (header[\"h{at}\"] exists) {{ routeTo(p{}); }}", at % 50).expect("memory");
    }),
    ("all overlap, in one field", |text, at, _| {
        writeln!(text, "R{at}: if (path contains \"x{at}y\") {{ routeTo(p{}); }}", at % 50).expect("memory");
    }),
    ("a pattern each", |text, at, _| {
        let pattern = format!("a{at}.*b[0-9]+(c|d{at})+x?");
        writeln!(text, "R{at}: if (path matches \"{pattern}\") {{ routeTo(p{}); }}", at % 50)
            .expect("memory");
    }),
    ("patterns with many states", |text, at, _| {
        let pattern = format!("(a|b){{1,{}}}[^/]{{3,{}}}c{at}", 20 + at % 30, 10 + at % 20);
        writeln!(text, "R{at}: if (path matches \"{pattern}\") {{ routeTo(p{}); }}", at % 50)
            .expect("memory");
    }),
    ("jumps from everywhere", |text, at, rules| {
        let field = format!("header[\"h{}\"] == \"v{at}\"", at % 40);
        let to = at + 2 + at % 5;
        match to < rules {
            true => writeln!(text, "R{at}: if ({field}) {{ goto R{to}; }} else {{ goto R{}; }}", at + 1),
            false => writeln!(text, "R{at}: if ({field}) {{ tag(t{}); }}", at % 9),
        }
        .expect("memory");
    }),
    ("all go on, and leave something", |text, at, _| {
        let block = format!("tag(t{at}); setHeader(\"x-{}\", \"{at}\");", at % 30);
        writeln!(text, "R{at}: if (cookie[\"c{at}\"] == \"{at}\") {{ {block} }}").expect("memory");
    }),
    ("many ways to be true", |text, at, _| {
        let parts: Vec<_> =
            (1..12).map(|part| format!("header[\"a{}\"] > {}", (at * part) % 97, at + part)).collect();
        writeln!(text, "R{at}: if ({}) {{ routeTo(p{}); }}", parts.join(" || "), at % 50).expect("memory");
    }),
    ("any of many values in a body", |text, at, _| {
        let condition = format!("json.a[*] > {at} && !(json.b{} == \"x{at}\")", at % 100);
        writeln!(text, "R{at}: if ({condition}) {{ routeTo(p{}); }}", at % 50).expect("memory");
    }),
    ("all overlap, each by a part of two fields", |text, at, _| {
        let condition = format!("path contains \"x{at}\" && header[\"a\"] contains \"y{at}\"");
        writeln!(text, "R{at}: if ({condition}) {{ routeTo(p{}); }}", at % 50).expect("memory");
    }),
    ("wild cards", |text, at, _| {
        writeln!(text, "R{at}: if (path like \"*{at}*a*b{at}*?c*\") {{ routeTo(p{}); }}", at % 50)
            .expect("memory");
    }),
];

/// So many rules of a manner.
pub(crate) fn program(rule: fn(&mut String, usize, usize), rules: usize) -> Arc<Program> {
    let mut text = String::new();
    (0..rules).for_each(|at| rule(&mut text, at, rules));
    text.push_str("else: routeTo(z);\n");
    Arc::new(compile(&text, &Targets::Any).unwrap_or_else(|wrong| panic!("{text}\n{wrong:?}")).program)
}

/// Regexes of two kinds in one set, as they come together where several people write rules.
pub(crate) const UNLIKE: [Manner; 4] = [
    ("languages beside actions", |text, at, _| {
        let pattern = match at % 2 {
            0 => format!("^/[a-z]{{2}}(-[A-Z]{{2}})?/name{at}/?$"),
            _ => format!("^/name{at}/(new|edit|[0-9]+)$"),
        };
        writeln!(text, "R{at}: if (path matches \"{pattern}\") {{ routeTo(p{}); }}", at % 50)
            .expect("memory");
    }),
    ("anywhere beside an API that ends", |text, at, _| {
        let pattern = match at % 2 {
            0 => format!(".*/name{at}/.*"),
            _ => format!("^/api/v[0-9]+/name{at}/[0-9]+$"),
        };
        writeln!(text, "R{at}: if (path matches \"{pattern}\") {{ routeTo(p{}); }}", at % 50)
            .expect("memory");
    }),
    ("anywhere beside an API that goes on", |text, at, _| {
        let pattern = match at % 2 {
            0 => format!(".*/name{at}/.*"),
            _ => format!("^/api/v[0-9]+/name{at}/"),
        };
        writeln!(text, "R{at}: if (path matches \"{pattern}\") {{ routeTo(p{}); }}", at % 50)
            .expect("memory");
    }),
    ("many kinds", |text, at, _| {
        let condition = match at % 8 {
            0 => format!("path matches \"^/[a-z]{{2}}(-[A-Z]{{2}})?/name{at}/?$\""),
            1 => format!("path matches \"^/name{at}/(new|edit|[0-9]+)$\""),
            2 => format!("path matches \".*/name{at}/.*\""),
            3 => format!("path matches \"^/api/v[0-9]+/name{at}/\""),
            4 => format!("path matches \"\\.(gif|jpe?g|png{at})$\""),
            5 => format!("path matches \"^/(?:u|users)/[^/]+/name{at}$\""),
            6 => format!("path under \"/name{at}\""),
            _ => format!("host == \"h{at}.example\" && path matches \"^/name{}/.*\\.php$\"", at / 4),
        };
        writeln!(text, "R{at}: if ({condition}) {{ routeTo(p{}); }}", at % 50).expect("memory");
    }),
];

/// Regexes as people write them: half begin alike and half end alike, each with a name of its own inside.
pub(crate) fn everyday(rules: usize) -> Arc<Program> {
    let mut text = String::new();
    for at in 0..rules {
        let pattern = match at % 2 {
            0 => format!("^/api/v[0-9]+/service{at}/[0-9]+$"),
            _ => format!("/images{at}/.*\\.(gif|png)$"),
        };
        writeln!(text, "R{at}: if (path matches \"{pattern}\") {{ routeTo(p{}); }}", at % 50)
            .expect("memory");
    }
    text.push_str("else: routeTo(z);\n");
    Arc::new(compile(&text, &Targets::Any).unwrap_or_else(|wrong| panic!("{text}\n{wrong:?}")).program)
}
