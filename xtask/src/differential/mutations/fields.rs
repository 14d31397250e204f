//! Mutations of header fields and of how they reach a server.

use super::{Area, Mutation, insert, recased};
use crate::differential::dice::Dice;
use crate::differential::draft::{Content, Draft};
use crate::differential::request::Framing;

pub(super) const ALL: &[Mutation] = &[
    Mutation {
        name: "case of a field name",
        area: Area::Field,
        apply: |draft, dice| split(draft, dice, |name, value, dice| (recased(name, dice), value.to_vec())),
    },
    Mutation {
        name: "underscore in a field name",
        area: Area::Field,
        apply: |draft, dice| {
            split(draft, dice, |name, value, dice| {
                let other = *dice.pick(b"__. +\0\t");
                (name.iter().map(|byte| if *byte == b'-' { other } else { *byte }).collect(), value.to_vec())
            })
        },
    },
    Mutation {
        name: "blank before the colon",
        area: Area::Field,
        apply: |draft, dice| {
            split(draft, dice, |name, value, dice| {
                (
                    [name, dice.bytes(&[&b" "[..], b"\t", b"\0", b"\x0b", b"\xa0", b"\r"])].concat(),
                    value.to_vec(),
                )
            })
        },
    },
    Mutation {
        name: "folded line",
        area: Area::Field,
        apply: |draft, dice| {
            split(draft, dice, |name, value, dice| {
                let mut value = value.to_vec();
                let at = if dice.one_in(2) { 0 } else { dice.below(value.len()) };
                insert(&mut value, at, dice.bytes(&[&b"\r\n "[..], b"\r\n\t", b"\n ", b"\r\n  ", b"\r "]));
                (name.to_vec(), value)
            })
        },
    },
    Mutation {
        name: "folded line before",
        area: Area::Field,
        apply: |draft, dice| {
            let line = dice.bytes(&[&b"x-a: b\r\n "[..], b"x-a:\r\n\t", b"x-a: b\n ", b"x-a: b\r"]);
            if let Some(field) = draft.fields.first_mut() {
                insert(field, 0, line);
            }
        },
    },
    Mutation {
        name: "edges of a field value",
        area: Area::Field,
        apply: |draft, dice| {
            split(draft, dice, |name, value, dice| {
                let edge = dice.bytes(&[
                    &b" "[..],
                    b"\t",
                    b"\x0b",
                    b"\x0c",
                    b"\xa0",
                    b"\0",
                    b"\x7f",
                    b"\xc2\xa0",
                    b"\x85",
                    b"\x1f",
                    b"\r",
                    b"\xef\xbb\xbf",
                ]);
                (name.to_vec(), if dice.one_in(2) { [edge, value].concat() } else { [value, edge].concat() })
            })
        },
    },
    Mutation {
        name: "list in one line",
        area: Area::Field,
        apply: |draft, dice| {
            split(draft, dice, |name, value, dice| {
                let other = dice.bytes(&[&b"user"[..], b"", b"evil"]);
                let glue = dice.bytes(&[&b", "[..], b",", b"; ", b" ,\t"]);
                (
                    name.to_vec(),
                    if dice.one_in(2) {
                        [other, glue, value].concat()
                    } else {
                        [value, glue, other].concat()
                    },
                )
            })
        },
    },
    Mutation {
        name: "list in two lines",
        area: Area::Field,
        apply: |draft, _| {
            let Some(line) = draft.fields.first() else { return };
            let text = String::from_utf8_lossy(line).into_owned();
            let Some((name, value)) = text.split_once(": ") else { return };
            if let Some((first, second)) = value.split_once(", ") {
                let lines = [format!("{name}: {first}"), format!("{name}: {second}")];
                draft.fields.splice(0..1, lines.map(String::into_bytes));
            }
        },
    },
    Mutation {
        name: "second line of the field",
        area: Area::Field,
        apply: |draft, dice| {
            let name = String::from_utf8_lossy(&recased(draft.name.as_bytes(), dice)).into_owned();
            let line = format!("{name}: {}", dice.pick(&["user", "", "evil", "anon"]));
            let at = dice.below(2).min(draft.fields.len());
            draft.fields.insert(at, line.into_bytes());
        },
    },
    Mutation {
        name: "field named by Connection",
        area: Area::Field,
        apply: |draft, dice| {
            let name = if dice.one_in(2) { draft.name } else { "x-key" };
            let connection = *dice.pick(&["Connection", "Proxy-Connection", "connection"]);
            let more = *dice.pick(&["", ", keep-alive", ",close", ", te"]);
            let line = format!("{connection}: {name}{more}");
            draft.fields.insert(dice.below(2).min(draft.fields.len()), line.into_bytes());
        },
    },
    Mutation {
        name: "quoted field value",
        area: Area::Field,
        apply: |draft, dice| {
            split(draft, dice, |name, value, dice| {
                let (open, close) = *dice.pick(&[
                    (&b"\""[..], &b"\""[..]),
                    (b"=?utf-8?q?", b"?="),
                    (b"", b" (comment)"),
                    (b"UTF-8''", b""),
                    (b"\"", b""),
                ]);
                (name.to_vec(), [open, value, close].concat())
            })
        },
    },
    Mutation {
        name: "encoded word",
        area: Area::Field,
        apply: |draft, dice| {
            split(draft, dice, |name, value, _| {
                let word = format!("=?utf-8?b?{}?=", crate::differential::draft::base64(value));
                (name.to_vec(), word.into_bytes())
            })
        },
    },
    Mutation {
        name: "bare line end",
        area: Area::Field,
        apply: |draft, dice| {
            let line = format!(
                "x-a: b{}{}: {}",
                dice.pick(&["\n", "\r", "\n\n", "\r\r\n", "\0"]),
                draft.name,
                draft.value
            );
            draft.fields.push(line.into_bytes());
        },
    },
    Mutation {
        name: "line without a colon",
        area: Area::Field,
        apply: |draft, dice| {
            let line = *dice.pick(&["x-a", ": x", " x-a: b", "\tx", "x-a b: c", "\"x-a\": b"]);
            draft.fields.insert(0, line.as_bytes().to_vec());
        },
    },
    Mutation { name: "trailer", area: Area::Framing, apply: trailer },
    Mutation {
        name: "field of a proxy",
        area: Area::Field,
        apply: |draft, dice| {
            let line = *dice.pick(&[
                "X-Forwarded-For: 127.0.0.1",
                "Forwarded: for=127.0.0.1",
                "Proxy: http://a",
                "Via: 1.1 a",
                "Max-Forwards: 0",
                "TE: trailers",
                "Upgrade: h2c",
                "Expect: 100-continue",
                "Range: bytes=0-1",
            ]);
            draft.field(line);
        },
    },
];

/// Changes the first field line in its two parts.
fn split(draft: &mut Draft, dice: &mut Dice, change: impl Fn(&[u8], &[u8], &mut Dice) -> (Vec<u8>, Vec<u8>)) {
    let Some(line) = draft.fields.first_mut() else { return };
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return };
    let (name, value) = (line[..colon].to_vec(), line[colon + 1..].to_vec());
    let value = value.strip_prefix(b" ").unwrap_or(&value);
    let (name, value) = change(&name, value, dice);
    let blank = dice.bytes(&[&b" "[..], b" ", b"", b"\t", b"  "]);
    *line = [&name[..], b":", blank, &value].concat();
}

/// Moves or copies the fields into the trailer of a chunked body.
fn trailer(draft: &mut Draft, dice: &mut Dice) {
    let mut trailers = draft.fields.clone();
    if trailers.is_empty() {
        trailers.push(format!("{}: {}", draft.name, draft.value).into());
    }
    if dice.one_in(3) {
        trailers.push(
            dice.pick(&[
                "x-role: root",
                "X_Role: root",
                "x-user: admin",
                "Host: internal.example",
                "Cookie: my_plan=gold",
                "Content-Type: application/json",
            ])
            .as_bytes()
            .to_vec(),
        );
    }
    if dice.one_in(2) {
        draft.fields.clear();
        // As clients announce them.
        draft.field(&format!("Trailer: {}", draft.name));
    }
    if draft.content == Content::Nothing {
        draft.method = b"POST".to_vec();
        draft.content = Content::Bytes(b"a".to_vec());
    }
    draft.framing = Framing::Chunked { size: 1 + dice.below(64), extension: Vec::new(), trailers };
}
