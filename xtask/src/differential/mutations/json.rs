//! Mutations of JSON documents.

use super::{Area, Mutation, insert, recased};
use crate::differential::dice::Dice;
use crate::differential::draft::{Content, Draft};

pub(super) const ALL: &[Mutation] = &[
    Mutation {
        name: "case of a member",
        area: Area::Json,
        apply: |draft, dice| name(draft, |text| recased(text, dice)),
    },
    Mutation {
        name: "letters that fold to a member's",
        area: Area::Json,
        apply: |draft, dice| {
            let (plain, folded) = *dice.pick(&[
                ("s", "\u{17f}"),
                ("S", "\u{17f}"),
                ("k", "\u{212a}"),
                ("t", "\u{ff54}"),
                ("i", "\u{131}"),
                ("a", "\u{ff41}"),
                ("s", "\\u017f"),
            ]);
            name(draft, |text| String::from_utf8_lossy(text).replace(plain, folded).into_bytes());
        },
    },
    Mutation {
        name: "escapes in a member's name",
        area: Area::Json,
        apply: |draft, dice| name(draft, |text| escaped(text, dice)),
    },
    Mutation {
        name: "escapes in a value",
        area: Area::Json,
        apply: |draft, dice| {
            value(draft, |text| if text.starts_with(b"\"") { escaped(text, dice) } else { text.to_vec() })
        },
    },
    Mutation {
        name: "member twice",
        area: Area::Json,
        apply: |draft, dice| {
            let harmless = *dice.pick(&["1", "\"x\"", "\"x\"", "\"\"", "null", "[]", "{}", "\"1\"", "0"]);
            let spelling = dice.below(4);
            let front = dice.one_in(2);
            let Some(members) = members(draft) else { return };
            let Some((name, _)) = members.first().cloned() else { return };
            let name = match spelling {
                0 => recased(&name, dice),
                1 => escaped(&name, dice),
                _ => name,
            };
            members.insert(if front { 0 } else { members.len() }, (name, harmless.into()));
        },
    },
    Mutation {
        name: "edges of a member's name",
        area: Area::Json,
        apply: |draft, dice| {
            let edge = dice.bytes(&[
                &b" "[..],
                b"\\u0000",
                b"\\u0000x",
                b"\\t",
                b"\\ud800",
                b"\xff",
                b"\0",
                b"\\u00a0",
                b"\xe2\x80\x8b",
                b"\xef\xbb\xbf",
                b"\\ufeff",
            ]);
            let at = dice.below(2);
            name(draft, |text| {
                let mut text = text.to_vec();
                let at = if at == 0 { 1 } else { text.len() - 1 };
                insert(&mut text, at, edge);
                text
            });
        },
    },
    Mutation {
        name: "spelling of a number",
        area: Area::Json,
        apply: |draft, dice| {
            let spelling = *dice.pick(&[
                "6e4",
                "6E+4",
                "60000.0",
                "6.0e4",
                "60000e0",
                "600000e-1",
                "+60000",
                "060000",
                "0xea60",
                "6e4.",
                ".6e5",
                "60000.",
                "60_000",
                "6e999",
                "1e400",
                "Infinity",
                "NaN",
                "-0x1",
                "99999999999999999999999999",
                "52000.00000000000000000001",
                "6e004",
                "6e0000000000000000000004",
                "\u{ff16}0000",
                "true",
                "60000n",
            ]);
            value(draft, |text| if text.starts_with(b"\"") { text.to_vec() } else { spelling.into() });
        },
    },
    Mutation {
        name: "number as text",
        area: Area::Json,
        apply: |draft, dice| {
            let text = *dice.pick(&[
                "\"60000\"",
                "\" 60000\"",
                "\"60000 \"",
                "\"6e4\"",
                "\"0xea60\"",
                "\"60000abc\"",
                "\"+60000\"",
                "\"60_000\"",
                "\"\\u0036\\u0030000\"",
                "\"Infinity\"",
                "\"inf\"",
                "\"\\n60000\"",
                "\"60,000\"",
                "\"\u{ff16}\u{ff10}000\"",
                "\"60000\\u00a0\"",
                "\"0b1110101001100000\"",
                "\"0o165140\"",
                "\"0x1p17\"",
                "\"\\ufeff60000\"",
                "\"1e5f\"",
                "\"\\u000b60000\"",
            ]);
            value(draft, |old| if old.starts_with(b"\"") { old.to_vec() } else { text.into() });
        },
    },
    Mutation {
        name: "value in a list",
        area: Area::Json,
        apply: |draft, dice| {
            let (open, close) = *dice.pick(&[("[", "]"), ("[[", "]]"), ("{\"a\":", "}"), ("[ ", ",1]")]);
            value(draft, |text| [open.as_bytes(), text, close.as_bytes()].concat());
        },
    },
    Mutation {
        name: "document in a list or string",
        area: Area::Json,
        apply: |draft, dice| {
            let (before, behind) = *dice.pick(&[
                ("[", "]"),
                ("{\"order\":", "}"),
                ("(", ")"),
                ("callback(", ")"),
                ("{\"__proto__\":", "}"),
                ("[null,", "]"),
                ("{\"a\":[", "]}"),
            ]);
            draft.before = before.into();
            draft.behind = behind.into();
        },
    },
    Mutation {
        name: "comment",
        area: Area::Json,
        apply: |draft, dice| {
            let comment = *dice.pick(&["/**/", "//x\n", "#x\n", "/*\"*/", "<!--", "--x\n"]);
            let in_name = dice.one_in(2);
            let change = |text: &[u8]| {
                if in_name {
                    [comment.as_bytes(), text].concat()
                } else {
                    [text, comment.as_bytes()].concat()
                }
            };
            name(draft, change);
        },
    },
    Mutation {
        name: "loose syntax",
        area: Area::Json,
        apply: |draft, dice| {
            let kind = dice.below(6);
            let Some(members) = members(draft) else { return };
            match kind {
                0 => members.push((Vec::new(), Vec::new())),
                1 => members.iter_mut().for_each(|(name, _)| name.retain(|byte| *byte != b'"')),
                2 => members.iter_mut().for_each(|(name, _)| {
                    name.iter_mut().for_each(|byte| {
                        if *byte == b'"' {
                            *byte = b'\''
                        }
                    })
                }),
                3 => members.iter_mut().for_each(|(name, _)| name.push(b'=')),
                4 => members.iter_mut().for_each(|(_, value)| value.push(b',')),
                _ => members.insert(0, (b"\"a".to_vec(), b"1".to_vec())),
            }
        },
    },
    Mutation {
        name: "blanks of other kinds",
        area: Area::Json,
        apply: |draft, dice| {
            let blank = dice.bytes(&[
                &b" "[..],
                b"\n",
                b"\xc2\xa0",
                b"\x0b",
                b"\x0c",
                b"\xe2\x80\xa8",
                b"\0",
                b"\xef\xbb\xbf",
                b"\r",
            ]);
            let in_name = dice.one_in(2);
            let change = |text: &[u8]| [blank, text].concat();
            if in_name { name(draft, change) } else { value(draft, change) }
        },
    },
    Mutation {
        name: "other members",
        area: Area::Json,
        apply: |draft, dice| {
            let member = *dice.pick(&[
                ("\"a\"", "1"),
                ("\"\"", "\"\""),
                ("\"a\"", "\"\\ud800\""),
                ("\"a\"", "\"é\""),
                ("\"__proto__\"", "{\"status\":\"paid\",\"total\":60000}"),
                ("\"a\"", "{\"total\":1}"),
                ("\"a\"", "1e999"),
                ("\"a\"", "-0"),
                ("\"toString\"", "1"),
                ("\"a\"", "\"\\/\""),
            ]);
            let front = dice.one_in(2);
            if let Some(members) = members(draft) {
                members.insert(if front { 0 } else { members.len() }, (member.0.into(), member.1.into()));
            }
        },
    },
    Mutation {
        name: "deep nesting",
        area: Area::Json,
        apply: |draft, dice| {
            let depth = *dice.pick(&[10, 63, 64, 65, 200, 600]);
            let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            if let Some(members) = members(draft) {
                members.insert(0, (b"\"a\"".to_vec(), value.into_bytes()));
            }
        },
    },
    Mutation {
        name: "long name or value",
        area: Area::Json,
        apply: |draft, dice| {
            let length = *dice.pick(&[250, 256, 300, 4096, 5000]);
            let long = format!("\"{}\"", "a".repeat(length));
            let in_name = dice.one_in(2);
            if let Some(members) = members(draft) {
                let one = || b"1".to_vec();
                members.insert(
                    0,
                    if in_name { (long.into_bytes(), one()) } else { (b"\"a\"".to_vec(), long.into_bytes()) },
                );
            }
        },
    },
];

fn members(draft: &mut Draft) -> Option<&mut Vec<(Vec<u8>, Vec<u8>)>> {
    match &mut draft.content {
        Content::Json(members) => Some(members),
        _ => None,
    }
}

/// The member that carries the value, by its place: its name may have changed.
fn member(draft: &mut Draft) -> Option<&mut (Vec<u8>, Vec<u8>)> {
    let name = format!("\"{}\"", draft.name);
    let members = members(draft)?;
    let at = members.iter().position(|(known, _)| known == name.as_bytes()).unwrap_or_default();
    members.get_mut(at)
}

fn name(draft: &mut Draft, change: impl FnOnce(&[u8]) -> Vec<u8>) {
    if let Some((name, _)) = member(draft)
        && name.len() > 1
    {
        *name = change(name);
    }
}

fn value(draft: &mut Draft, change: impl FnOnce(&[u8]) -> Vec<u8>) {
    if let Some((_, value)) = member(draft) {
        *value = change(value);
    }
}

/// Some letters of a string as `\u` escapes.
fn escaped(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    let certain = dice.below(text.len());
    let upper = dice.one_in(2);
    let code = |(at, byte): (usize, &u8)| match byte {
        b'a'..=b'z' | b'A'..=b'Z' if at == certain || dice.one_in(3) => {
            if upper {
                format!("\\u{byte:04X}").into_bytes()
            } else {
                format!("\\u{byte:04x}").into_bytes()
            }
        }
        _ => vec![*byte],
    };
    text.iter().enumerate().flat_map(code).collect()
}
