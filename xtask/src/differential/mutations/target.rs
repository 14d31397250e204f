//! Mutations of the request target and of the host.

use super::{Area, Mutation, insert, percent, recased};
use crate::differential::dice::Dice;
use crate::differential::draft::{Draft, Param};

pub(super) const ALL: &[Mutation] = &[
    Mutation { name: "encoded slash", area: Area::Path, apply: encoded_slash },
    Mutation { name: "doubled slash", area: Area::Path, apply: doubled_slash },
    Mutation { name: "backslash", area: Area::Path, apply: backslash },
    Mutation { name: "dot segments", area: Area::Path, apply: dot_segments },
    Mutation { name: "encoded dot segments", area: Area::Path, apply: encoded_dot_segments },
    Mutation {
        name: "letters of the path as percent-codes",
        area: Area::Path,
        apply: |draft, dice| draft.path = slashes_kept(draft, dice),
    },
    Mutation { name: "percent-codes twice", area: Area::Path, apply: twice },
    Mutation {
        name: "case of the path",
        area: Area::Path,
        apply: |draft, dice| draft.path = recased(&draft.path, dice),
    },
    Mutation { name: "path parameter", area: Area::Path, apply: path_parameter },
    Mutation { name: "end of the path", area: Area::Path, apply: path_end },
    Mutation { name: "overlong UTF-8 in the path", area: Area::Path, apply: overlong },
    Mutation { name: "control or foreign byte in the path", area: Area::Path, apply: odd_byte },
    Mutation { name: "wide letters in the path", area: Area::Path, apply: wide },
    Mutation { name: "absolute form", area: Area::Target, apply: absolute },
    Mutation {
        name: "fragment",
        area: Area::Target,
        apply: |draft, dice| {
            draft.suffix = dice.pick(&["#", "#/admin", "#?my_plan=gold", "%23x", "#?"]).as_bytes().to_vec()
        },
    },
    Mutation {
        name: "query in the path",
        area: Area::Target,
        apply: |draft, dice| {
            draft.path.extend_from_slice(dice.bytes(&[&b"%3f"[..], b"?", b"??", b"?x?", b"%3Fmy_plan=gold"]))
        },
    },
    Mutation {
        name: "method",
        area: Area::Target,
        apply: |draft, dice| {
            draft.method = dice
                .pick(&["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "get", "QUERY"])
                .as_bytes()
                .to_vec()
        },
    },
    Mutation { name: "HTTP/1.0", area: Area::Target, apply: |draft, _| draft.version = b"HTTP/1.0".to_vec() },
    Mutation {
        name: "blanks in the request line",
        area: Area::Target,
        apply: |draft, dice| insert(&mut draft.path, 0, dice.bytes(&[&b" "[..], b"\t", b"\x0b", b"\xa0"])),
    },
    Mutation {
        name: "method override",
        area: Area::Target,
        apply: |draft, _| draft.field("X-HTTP-Method-Override: DELETE"),
    },
    Mutation {
        name: "rewritten URL header",
        area: Area::Target,
        apply: |draft, dice| {
            let name = dice.pick(&[
                "X-Original-URL",
                "X-Rewrite-URL",
                "X-Forwarded-Prefix",
                "X-Script-Name",
                "Script-Name",
                "X-Accel-Redirect",
            ]);
            draft.field(&format!("{name}: /admin"));
        },
    },
    Mutation {
        name: "path moved into a harmless one",
        area: Area::Path,
        apply: |draft, dice| {
            let way = dice.pick(&[
                "/public/../admin",
                "/public/..%2fadmin",
                "/public/%2e%2e/admin",
                "/public//../admin",
                "/public/..;/admin",
                "/public/./../admin/",
                "/public%2f..%2fadmin",
                "/public/..\\admin",
                "/public/.%2e/admin",
                "/public/%2e./../admin",
            ]);
            draft.path = way.as_bytes().to_vec();
        },
    },
    Mutation {
        name: "host with port",
        area: Area::Host,
        apply: |draft, dice| {
            draft.host.extend_from_slice(dice.bytes(&[
                &b":80"[..],
                b":",
                b":443",
                b":00080",
                b":65536",
                b":a",
                b":80:80",
            ]))
        },
    },
    Mutation {
        name: "case of the host",
        area: Area::Host,
        apply: |draft, dice| draft.host = recased(&draft.host, dice),
    },
    Mutation {
        name: "dot behind the host",
        area: Area::Host,
        apply: |draft, dice| draft.host.extend_from_slice(dice.bytes(&[&b"."[..], b"..", b".:80"])),
    },
    Mutation {
        name: "user in the host",
        area: Area::Host,
        apply: |draft, dice| {
            insert(
                &mut draft.host,
                0,
                dice.bytes(&[&b"user@"[..], b"shop.example@", b"a:b@", b"shop.example:80@"]),
            )
        },
    },
    Mutation {
        name: "percent-codes in the host",
        area: Area::Host,
        apply: |draft, dice| draft.host = percent(&draft.host, dice),
    },
    Mutation {
        name: "edges of the host",
        area: Area::Host,
        apply: |draft, dice| {
            let edge = dice.bytes(&[
                &b"\t"[..],
                b"\0",
                b"\xa0",
                b",shop.example",
                b" shop.example",
                b"/",
                b"#",
                b"?x",
                b"\x0b",
            ]);
            if dice.one_in(2) { draft.host.extend_from_slice(edge) } else { insert(&mut draft.host, 0, edge) }
        },
    },
    Mutation {
        name: "second host line",
        area: Area::Host,
        apply: |draft, dice| {
            let host = *dice.pick(&["shop.example", "internal.example", ""]);
            let name =
                dice.pick(&["Host", "host", "Host ", "X-Forwarded-Host", "X-Host", "Forwarded", "Host\t"]);
            let value = if *name == "Forwarded" { format!("host={host}") } else { host.to_owned() };
            draft.field(&format!("{name}: {value}"));
        },
    },
];

/// Places of slashes behind the first.
fn slash(draft: &Draft, dice: &mut Dice) -> Option<usize> {
    let slashes: Vec<usize> = (0..draft.path.len()).filter(|at| draft.path[*at] == b'/').collect();
    if slashes.is_empty() { None } else { Some(*dice.pick(&slashes)) }
}

fn encoded_slash(draft: &mut Draft, dice: &mut Dice) {
    let code = dice.bytes(&[&b"%2f"[..], b"%2F", b"/%2f", b"%2f/", b"%252f", b"%5c", b"%5C"]);
    match slash(draft, dice) {
        Some(at @ 1..) if dice.one_in(2) => drop(draft.path.splice(at..=at, code.iter().copied())),
        Some(at) => insert(&mut draft.path, at + 1, code),
        None => {}
    }
    if dice.one_in(3) {
        draft.path.extend_from_slice(code);
    }
}

fn doubled_slash(draft: &mut Draft, dice: &mut Dice) {
    if let Some(at) = slash(draft, dice) {
        let more = dice.bytes(&[
            &b"/"[..],
            b"//",
            b"/./",
            b"/x/..//",
            b"/a/../",
            b"/shop.example/",
            b"/shop.example:80/",
        ]);
        insert(&mut draft.path, at, more);
    }
}

fn backslash(draft: &mut Draft, dice: &mut Dice) {
    if let Some(at) = slash(draft, dice) {
        insert(&mut draft.path, at + 1, dice.bytes(&[&b"\\"[..], b"%5c", b"%5c/", b"\\/", b"..\\"]));
    }
}

fn dot_segments(draft: &mut Draft, dice: &mut Dice) {
    if let Some(at) = slash(draft, dice) {
        insert(
            &mut draft.path,
            at,
            dice.pick(&["/.", "/x/..", "/..", "/x/y/../..", "/...", "/. ", "/./."]).as_bytes(),
        );
    }
}

fn encoded_dot_segments(draft: &mut Draft, dice: &mut Dice) {
    let segments = [
        "/%2e",
        "/x/%2e%2e",
        "/x/.%2E",
        "/%2e%2e",
        "/x%2f..",
        "/x/%252e%252e",
        "/x/..%2f",
        "/x/..%00",
        "/x/..%20",
        "/x/..;",
    ];
    if let Some(at) = slash(draft, dice) {
        insert(&mut draft.path, at, dice.pick(&segments).as_bytes());
    }
}

fn slashes_kept(draft: &Draft, dice: &mut Dice) -> Vec<u8> {
    let segments: Vec<Vec<u8>> =
        draft.path.split(|byte| *byte == b'/').map(|segment| percent(segment, dice)).collect();
    segments.join(&b'/')
}

fn twice(draft: &mut Draft, dice: &mut Dice) {
    let once = slashes_kept(draft, dice);
    draft.path =
        once.iter().flat_map(|byte| if *byte == b'%' { b"%25".to_vec() } else { vec![*byte] }).collect();
}

fn path_parameter(draft: &mut Draft, dice: &mut Dice) {
    let parameter = dice.bytes(&[&b";"[..], b";a=b", b";/", b"%3b", b";jsessionid=1", b"/;/", b",x"]);
    match slash(draft, dice) {
        Some(at @ 1..) if dice.one_in(2) => insert(&mut draft.path, at, parameter),
        _ => draft.path.extend_from_slice(parameter),
    }
}

fn path_end(draft: &mut Draft, dice: &mut Dice) {
    let ends = [
        &b"/"[..],
        b"%20",
        b"+",
        b".",
        b"%00",
        b"%09",
        b"%0a",
        b"//",
        b"/.",
        b"/..",
        b"%2f",
        b"::$DATA",
        b"~",
        b"%ff",
        b"*",
        b"%",
        b"%2",
    ];
    draft.path.extend_from_slice(dice.bytes(&ends));
}

fn overlong(draft: &mut Draft, dice: &mut Dice) {
    if let Some(at) = slash(draft, dice) {
        draft.path.splice(
            at..=at,
            dice.bytes(&[&b"/%c0%af"[..], b"%c0%af", b"/%c1%a1", b"%e0%80%af", b"%ef%bc%8f"]).iter().copied(),
        );
    }
}

fn odd_byte(draft: &mut Draft, dice: &mut Dice) {
    let at = dice.below(draft.path.len() + 1);
    let odd = [
        &b"%00"[..],
        b"%0d%0a",
        b"%7f",
        b"\x7f",
        b"\xff",
        b"%c2%a0",
        b"\"",
        b"<",
        b"{",
        b"|",
        b"^",
        b"`",
        b"%u002f",
        b"\0",
        b"%e2%80%8b",
        b"%c2%ad",
    ];
    insert(&mut draft.path, at, dice.bytes(&odd));
}

/// Letters that compatibility normalisation (NFKC) makes ASCII, and those that lower case does.
fn wide(draft: &mut Draft, dice: &mut Dice) {
    let Some(at) = draft.path.iter().position(u8::is_ascii_lowercase) else { return };
    let letter = char::from_u32(0xfee0 + u32::from(draft.path[at])).unwrap_or('a').to_string();
    let coded: String = letter.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let written = if dice.one_in(2) { letter } else { coded };
    draft.path.splice(at..=at, written.bytes());
}

fn absolute(draft: &mut Draft, dice: &mut Dice) {
    let host = String::from_utf8_lossy(&draft.host).into_owned();
    let other = if host == "shop.example" { "internal.example" } else { "shop.example" };
    draft.prefix = match dice.below(9) {
        0..=2 => format!("http://{host}"),
        3 => format!("HTTP://{host}"),
        4 => format!("https://{host}"),
        5 => format!("http://{other}"),
        6 => format!("http://user@{host}"),
        7 => format!("http://{host}:80"),
        _ => format!("http:/{host}"),
    }
    .into_bytes();
    if dice.one_in(4) {
        draft.path.clear();
        draft.query.push(Param::new("x", "/admin"));
    }
}
