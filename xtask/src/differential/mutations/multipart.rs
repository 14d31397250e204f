//! Mutations of `multipart/form-data`.

use super::{Area, Mutation, insert, percent, recased};
use crate::differential::draft::{Content, Draft, Multipart, Part, base64};

pub(super) const ALL: &[Mutation] = &[
    Mutation {
        name: "quoting of the part's name",
        area: Area::Multipart,
        apply: |draft, dice| {
            let name = draft.name;
            let written = [
                format!("name={name}"),
                format!("name='{name}'"),
                format!("name=\"\\{name}\""),
                format!("name=\"{name}"),
                format!("name = \"{name}\""),
                format!("name=\"{name}\"x"),
                format!("name=\"{name}\";"),
                format!("name={name};x"),
                format!("name=\"{name}\\\""),
                format!("name=\"x\\\"; name=\"{name}\""),
            ];
            disposition(draft, dice.pick::<String>(&written));
        },
    },
    Mutation {
        name: "extended name of a part",
        area: Area::Multipart,
        apply: |draft, dice| {
            let name = draft.name;
            let written = [
                format!("name*=utf-8''{name}"),
                format!("name*=UTF-8'en'{name}"),
                format!("name=\"x\"; name*=utf-8''{name}"),
                format!("name*0=\"{}\"; name*1=\"{}\"", &name[..2], &name[2..]),
                format!("name*0*=utf-8''{}; name*1={}", &name[..2], &name[2..]),
                "name*=utf-8''%6dy_plan".to_owned(),
                format!("name=\"{name}\"; name*=utf-8''x"),
            ];
            disposition(draft, dice.pick::<String>(&written));
        },
    },
    Mutation {
        name: "filename",
        area: Area::Multipart,
        apply: |draft, dice| {
            let name = draft.name;
            let more = dice.pick(&[
                "filename=\"a\"",
                "filename=\"\"",
                "filename=a",
                "filename*=utf-8''a",
                "filename=\"a\"; filename*=utf-8''b",
                "filename",
                "filename=",
                "FileName=\"a\"",
                "filename*0=a",
                "filename=\"\\\"\"",
                "xfilename=\"a\"",
                "filename =\"a\"",
            ]);
            disposition(draft, &format!("name=\"{name}\"; {more}"));
        },
    },
    Mutation {
        name: "filename before the name",
        area: Area::Multipart,
        apply: |draft, dice| {
            let name = draft.name;
            let more = dice.pick(&[
                "filename=\"a\"",
                "filename=\"a; name=x\"",
                "filename=\"\\\"; name=\\\"x\"",
                "x=\"; name=y; \"",
                "x=\"\\\"",
                "filename='a; name=x'",
            ]);
            disposition(draft, &format!("{more}; name=\"{name}\""));
        },
    },
    Mutation {
        name: "name twice in a part",
        area: Area::Multipart,
        apply: |draft, dice| {
            let name = draft.name;
            let written = [
                format!("name=\"x\"; name=\"{name}\""),
                format!("name=\"{name}\"; name=\"x\""),
                format!("name=x; NAME={name}"),
                format!("x=name=y; name={name}"),
            ];
            disposition(draft, dice.pick::<String>(&written));
        },
    },
    Mutation {
        name: "percent-codes in the part's name",
        area: Area::Multipart,
        apply: |draft, dice| {
            let name = percent(draft.name.as_bytes(), dice);
            disposition(draft, &format!("name=\"{}\"", String::from_utf8_lossy(&name)));
        },
    },
    Mutation {
        name: "odd name of a part",
        area: Area::Multipart,
        apply: |draft, dice| {
            let name = draft.name;
            let dotted = name.replace('_', ".");
            let written = [
                format!("{name}[]"),
                format!("{name}[0]"),
                format!(" {name}"),
                format!("{name} "),
                format!("{name}\0"),
                format!("{name}\0x"),
                dotted,
                name.replace('_', " "),
                name.replace('_', "["),
                format!("{name}[5]"),
                format!("x][{name}"),
                format!("\t{name}"),
                name.to_uppercase(),
                format!("{name}&"),
                format!("{name}\u{a0}"),
            ];
            let text = dice.pick(&written).clone();
            disposition(draft, &format!("name=\"{text}\""));
        },
    },
    Mutation {
        name: "kind of disposition",
        area: Area::Multipart,
        apply: |draft, dice| {
            let kind = *dice.pick(&[
                "attachment",
                "inline",
                "FORM-DATA",
                "form-data ",
                "file",
                "",
                "form_data",
                "form-data/x",
            ]);
            let line = format!("Content-Disposition: {kind}; name=\"{}\"", draft.name);
            with_part(draft, |part| set_head(part, line.into_bytes()));
        },
    },
    Mutation {
        name: "spelling of Content-Disposition",
        area: Area::Multipart,
        apply: |draft, dice| {
            let name = *dice.pick(&[
                "content-disposition",
                "CONTENT-DISPOSITION",
                "Content-Disposition ",
                "Content_Disposition",
                "Content-Disposition\t",
                " Content-Disposition",
                "Content-Disposition:",
            ]);
            let line = format!("{name}: form-data; name=\"{}\"", draft.name);
            with_part(draft, |part| set_head(part, line.into_bytes()));
        },
    },
    Mutation {
        name: "folded Content-Disposition",
        area: Area::Multipart,
        apply: |draft, dice| {
            let fold = *dice.pick(&["\r\n ", "\r\n\t", "\n ", "\r"]);
            let line = format!("Content-Disposition: form-data;{fold}name=\"{}\"", draft.name);
            with_part(draft, |part| set_head(part, line.into_bytes()));
        },
    },
    Mutation {
        name: "second Content-Disposition",
        area: Area::Multipart,
        apply: |draft, dice| {
            let at = dice.below(2);
            let with_name = dice.one_in(2);
            let line = if with_name {
                "Content-Disposition: form-data; name=\"x\""
            } else {
                "Content-Disposition: attachment"
            };
            with_part(draft, |part| part.head.insert(at.min(part.head.len()), line.into()));
        },
    },
    Mutation {
        name: "transfer encoding of a part",
        area: Area::Multipart,
        apply: |draft, dice| {
            let kind = dice.below(4);
            with_part(draft, |part| match kind {
                0 => {
                    part.head.push(b"Content-Transfer-Encoding: base64".to_vec());
                    part.content = base64(&part.content).into_bytes();
                }
                1 => {
                    part.head.push(b"Content-Transfer-Encoding: quoted-printable".to_vec());
                    part.content =
                        part.content.iter().flat_map(|byte| format!("={byte:02X}").into_bytes()).collect();
                }
                2 => {
                    part.head.push(b"content-transfer-encoding: Quoted-Printable".to_vec());
                    insert(&mut part.content, 1, b"=\r\n");
                }
                _ => part.head.push(b"Content-Transfer-Encoding: 8bit".to_vec()),
            });
        },
    },
    Mutation {
        name: "media type of a part",
        area: Area::Multipart,
        apply: |draft, dice| {
            let line = *dice.pick(&[
                "Content-Type: text/plain",
                "Content-Type: application/octet-stream",
                "Content-Type: text/plain; charset=utf-16",
                "Content-Type: application/json",
                "Content-Type:",
                "Content-Type: multipart/mixed; boundary=b",
                "Content-Length: 2",
                "Content-Type: message/rfc822",
            ]);
            with_part(draft, |part| part.head.push(line.into()));
        },
    },
    Mutation {
        name: "charset of a part",
        area: Area::Multipart,
        apply: |draft, dice| {
            let (charset, is_little) =
                *dice.pick(&[("utf-16le", true), ("utf-16", true), ("utf-16be", false), ("utf-16", false)]);
            with_part(draft, |part| {
                part.head.push(format!("Content-Type: text/plain; charset={charset}").into());
                part.content = part
                    .content
                    .iter()
                    .flat_map(|byte| if is_little { [*byte, 0] } else { [0, *byte] })
                    .collect();
            });
        },
    },
    Mutation {
        name: "charset field",
        area: Area::Multipart,
        apply: |draft, dice| {
            let charset = *dice.pick(&["utf-16le", "iso-8859-1", "utf-7", "utf-8", "utf-16"]);
            if let Content::Multipart(multipart) = &mut draft.content {
                multipart.parts.insert(0, Multipart::of(&[("_charset_", charset)]).parts.remove(0));
            }
        },
    },
    Mutation {
        name: "nested multipart",
        area: Area::Multipart,
        apply: |draft, dice| {
            let (name, value) = (draft.name, draft.value);
            let inner = if dice.one_in(2) {
                "attachment; filename=\"a\"".to_owned()
            } else {
                format!("form-data; name=\"{name}\"")
            };
            let content = format!("--b\r\nContent-Disposition: {inner}\r\n\r\n{value}\r\n--b--");
            with_part(draft, |part| {
                part.head.push(b"Content-Type: multipart/mixed; boundary=b".to_vec());
                part.content = content.into_bytes();
            });
        },
    },
    Mutation {
        name: "part twice",
        area: Area::Multipart,
        apply: |draft, dice| {
            let harmless = Multipart::of(&[(draft.name, *dice.pick(&["evil", "", "x"]))]).parts.remove(0);
            let first = dice.one_in(2);
            with_multipart(draft, |multipart| {
                multipart.parts.insert(if first { 0 } else { multipart.parts.len() }, harmless)
            });
        },
    },
    Mutation {
        name: "edges of a part's content",
        area: Area::Multipart,
        apply: |draft, dice| {
            let edge = dice.bytes(&[&b"\r\n"[..], b"\n", b"\r", b" ", b"\0", b"--", b"\r\n--", b"\r\n--aZ"]);
            let front = dice.one_in(2);
            with_part(draft, |part| {
                if front { insert(&mut part.content, 0, edge) } else { part.content.extend_from_slice(edge) }
            });
        },
    },
    Mutation {
        name: "case of a part's parameters",
        area: Area::Multipart,
        apply: |draft, dice| {
            let name = recased(b"name", dice);
            let written = format!("{}=\"{}\"", String::from_utf8_lossy(&name), draft.name);
            disposition(draft, &written);
        },
    },
];

pub(super) fn with_multipart(draft: &mut Draft, change: impl FnOnce(&mut Multipart)) {
    if let Content::Multipart(multipart) = &mut draft.content {
        change(multipart);
    }
}

/// Changes the part that carries the value: the last one.
fn with_part(draft: &mut Draft, change: impl FnOnce(&mut Part)) {
    with_multipart(draft, |multipart| {
        if let Some(part) = multipart.parts.last_mut() {
            change(part);
        }
    });
}

fn set_head(part: &mut Part, line: Vec<u8>) {
    match part.head.first_mut() {
        Some(first) => *first = line,
        None => part.head.push(line),
    }
}

fn disposition(draft: &mut Draft, parameters: &str) {
    let line = format!("Content-Disposition: form-data; {parameters}");
    with_part(draft, |part| set_head(part, line.into_bytes()));
}

pub(super) fn is_named(part: &Part, name: &str) -> bool {
    part.head.iter().any(|line| String::from_utf8_lossy(line).contains(name))
}
