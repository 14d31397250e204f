//! Mutations of the boundaries of `multipart/form-data`, and of what stands outside of parts.

use super::multipart::{is_named, with_multipart};
use super::{Area, Mutation};
use crate::differential::draft::{Content, Draft};

pub(super) const ALL: &[Mutation] = &[
    Mutation {
        name: "preamble",
        area: Area::Multipart,
        apply: |draft, dice| {
            let (name, value) = (draft.name, draft.value);
            with_multipart(draft, |multipart| {
                let boundary = String::from_utf8_lossy(&multipart.boundary).into_owned();
                let lines = [
                    "x\r\n".to_owned(),
                    "\r\n".to_owned(),
                    format!("--{boundary}x\r\n"),
                    format!(
                        "x--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
                    ),
                    format!("--{boundary}--\r\n"),
                    format!(" --{boundary}\r\n"),
                    format!("--{boundary}\n"),
                    "\n".to_owned(),
                    format!("--{boundary}\r\n\r\n\r\n"),
                    format!("x--{boundary}\r\n\r\n"),
                ];
                multipart.preamble = dice.pick(&lines).clone().into_bytes();
            });
        },
    },
    Mutation {
        name: "value in the preamble",
        area: Area::Multipart,
        apply: |draft, dice| {
            let (name, value) = (draft.name, draft.value);
            with_multipart(draft, |multipart| {
                let boundary = String::from_utf8_lossy(&multipart.boundary).into_owned();
                let part = format!("Content-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
                let lead = *dice.pick(&["x", "", " ", "\n", "-", "\r"]);
                let end = *dice.pick(&["\r\n", " \r\n", "\n", "\t\r\n", "-\r\n", "--\r\n", "\r"]);
                multipart.preamble = format!("{lead}--{boundary}{end}{part}").into_bytes();
                multipart.parts.retain(|part| !is_named(part, name));
            });
        },
    },
    Mutation {
        name: "value behind the end",
        area: Area::Multipart,
        apply: |draft, dice| {
            let (name, value) = (draft.name, draft.value);
            with_multipart(draft, |multipart| {
                let boundary = String::from_utf8_lossy(&multipart.boundary).into_owned();
                let lead = *dice.pick(&["\r\n", "", "\n", "x\r\n"]);
                let part = format!(
                    "{lead}--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n--{boundary}--\r\n"
                );
                multipart.epilogue = part.into_bytes();
                multipart.parts.retain(|part| !is_named(part, name));
            });
        },
    },
    Mutation {
        name: "part before the value",
        area: Area::Multipart,
        apply: |draft, dice| {
            let (name, value) = (draft.name, draft.value);
            let part = format!(
                "x\r\n--aZ9{}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}",
                dice.pick(&["", " ", "x", "\t", "-", "--", "\0"])
            );
            with_multipart(draft, |multipart| {
                if let Some(first) = multipart.parts.first_mut() {
                    first.content = part.into_bytes();
                }
                multipart.parts.truncate(1);
            });
        },
    },
    Mutation {
        name: "writing of the boundary",
        area: Area::Multipart,
        apply: |draft, dice| {
            let parameters = [
                "\"aZ9\"",
                "aZ9 ",
                " aZ9",
                "aZ9;",
                "aZ9; boundary=x",
                "x; boundary=aZ9",
                "\"a\\Z9\"",
                "aZ9, x",
                "aZ9\t",
                "aZ9;charset=utf-8",
                "'aZ9'",
                "az9",
                "aZ9\"",
                "\"aZ9",
                "x; BOUNDARY=aZ9",
                "aZ9; boundary*=x",
                "x; boundary*=utf-8''aZ9",
                "\"aZ9\"x",
                "aZ9 x",
                "=aZ9",
            ];
            let written = *dice.pick(&parameters);
            let name =
                *dice.pick(&["boundary", "boundary", "BOUNDARY", "boundary ", "boundary*", "boundary*0"]);
            if matches!(draft.content, Content::Multipart(_)) {
                draft.media_type = Some(format!("multipart/form-data; {name}={written}").into());
            }
        },
    },
    Mutation {
        name: "odd boundary",
        area: Area::Multipart,
        apply: |draft, dice| {
            let boundary =
                *dice.pick(&["a--", "--a", "a b", "a:b", "a", "a'()+_,-./:=?", "-", "a;b", "a\"b"]);
            let is_quoted = dice.one_in(2);
            with_multipart(draft, |multipart| multipart.boundary = boundary.into());
            if matches!(draft.content, Content::Multipart(_)) {
                let written = if is_quoted { format!("\"{boundary}\"") } else { boundary.to_owned() };
                draft.media_type = Some(format!("multipart/form-data; boundary={written}").into());
            }
        },
    },
    Mutation {
        name: "padding of the boundary",
        area: Area::Multipart,
        apply: |draft, dice| {
            let padding = dice.bytes(&[&b" "[..], b"\t", b"x", b"-", b"\0", b"  ", b"\r"]);
            with_multipart(draft, |multipart| multipart.padding = padding.to_vec());
        },
    },
    Mutation {
        name: "line ends of parts",
        area: Area::Multipart,
        apply: |draft, dice| {
            let end = dice.bytes(&[&b"\n"[..], b"\r", b"\r\r\n", b"\n\r\n"]);
            with_multipart(draft, |multipart| multipart.line_end = end);
        },
    },
    Mutation {
        name: "subtype of multipart",
        area: Area::Multipart,
        apply: |draft, dice| {
            let subtype = *dice.pick(&[
                "mixed",
                "related",
                "alternative",
                "Form-Data",
                "form-data2",
                "*",
                "x-www-form-urlencoded",
                "form-data ",
            ]);
            if matches!(draft.content, Content::Multipart(_)) {
                draft.media_type = Some(format!("multipart/{subtype}; boundary=aZ9").into());
            }
        },
    },
    Mutation {
        name: "no end of the parts",
        area: Area::Multipart,
        apply: |draft, dice| {
            let end = dice.bytes(&[&b""[..], b"\r\n--aZ9", b"\r\n--aZ9-", b"\r\n--aZ9\r\n"]);
            if let Content::Multipart(multipart) = &draft.content {
                let mut bytes = Draft { content: Content::Multipart(multipart.clone()), ..Draft::new() }
                    .request()
                    .body
                    .unwrap_or_default();
                let close = [&b"--"[..], &multipart.boundary, b"--"].concat();
                let at = bytes.windows(close.len()).rposition(|window| window == close);
                bytes.truncate(at.unwrap_or(bytes.len()).saturating_sub(2));
                draft.content = Content::Bytes([&bytes[..], end].concat());
            }
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::dice::Dice;
    use crate::differential::draft::Multipart;

    #[test]
    fn the_value_can_stand_behind_the_end() {
        let mut draft = Draft::new();
        (draft.name, draft.value) = ("my_plan", "gold");
        draft.content = Content::Multipart(Multipart::of(&[("my_plan", "gold")]));
        let mutation = ALL.iter().find(|known| known.name == "value behind the end").expect("a mutation");
        (mutation.apply)(&mut draft, &mut Dice::new(1, 0));
        let body = draft.request().body.expect("a body");
        assert!(body.starts_with(b"--aZ9--"), "{}", String::from_utf8_lossy(&body));
    }
}
