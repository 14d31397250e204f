//! Mutations of names and values: in queries, forms and cookies.

use super::{Area, Mutation, insert, percent, recased};
use crate::differential::dice::Dice;
use crate::differential::draft::{Draft, Param, Place};

pub(super) const ALL: &[Mutation] = &[
    Mutation {
        name: "percent-codes in the value",
        area: Area::Params,
        apply: |draft, dice| value(draft, dice, percent),
    },
    Mutation {
        name: "percent-codes in the name",
        area: Area::Params,
        apply: |draft, dice| name(draft, dice, percent),
    },
    Mutation {
        name: "percent-codes coded twice",
        area: Area::Params,
        apply: |draft, dice| {
            value(draft, dice, |text, dice| {
                percent(text, dice)
                    .iter()
                    .flat_map(|byte| if *byte == b'%' { b"%25".to_vec() } else { vec![*byte] })
                    .collect()
            })
        },
    },
    Mutation {
        name: "case of the name",
        area: Area::Params,
        apply: |draft, dice| name(draft, dice, recased),
    },
    Mutation {
        name: "NUL in the name",
        area: Area::Params,
        apply: |draft, dice| {
            name(draft, dice, |text, dice| {
                ended(text, dice.bytes(&[&b"%00"[..], b"%00x", b"\0", b"\0x", b"%00[]"]))
            })
        },
    },
    Mutation {
        name: "blank before the name",
        area: Area::Params,
        apply: |draft, dice| name(draft, dice, |text, dice| [dice.bytes(&BLANKS), text].concat()),
    },
    Mutation {
        name: "blank behind the name",
        area: Area::Params,
        apply: |draft, dice| name(draft, dice, |text, dice| ended(text, dice.bytes(&BLANKS))),
    },
    Mutation {
        name: "brackets",
        area: Area::Params,
        apply: |draft, dice| {
            name(draft, dice, |text, dice| {
                ended(
                    text,
                    dice.bytes(&[
                        &b"[]"[..],
                        b"[0]",
                        b"%5B%5D",
                        b"[5]",
                        b"[ ]",
                        b"[%00]",
                        b"[1][]",
                        b"[21]",
                        b"[",
                        b"]",
                        b"[]x",
                        b"[0",
                        b".0",
                        b"[1000]",
                        b"[-1]",
                    ]),
                )
            })
        },
    },
    Mutation { name: "another byte for the underscore", area: Area::Params, apply: underscore },
    Mutation { name: "duplicate before", area: Area::Params, apply: |draft, dice| duplicate(draft, dice, 0) },
    Mutation {
        name: "duplicate behind",
        area: Area::Params,
        apply: |draft, dice| duplicate(draft, dice, usize::MAX),
    },
    Mutation {
        name: "another separator",
        area: Area::Params,
        apply: |draft, dice| {
            let glue = dice.bytes(&[&b";"[..], b"&amp;", b"&&", b",", b"&;", b"; ", b"\r\n", b"&\0", b"+&"]);
            draft.ampersand = glue.to_vec();
            if let Some(params) = draft.params() {
                params.insert(0, Param::new("x", "1"));
            }
        },
    },
    Mutation {
        name: "pair inside another",
        area: Area::Params,
        apply: |draft, dice| {
            let glue = String::from_utf8_lossy(dice.bytes(&[
                &b";"[..],
                b"%26",
                b"&amp;",
                b"%3b",
                b", ",
                b"\"&",
                b"?",
            ]))
            .into_owned();
            let inner = format!("1{glue}{}={}", draft.name, draft.value);
            if let Some(param) = draft.param() {
                *param = Param::new("x", &inner);
            }
        },
    },
    Mutation {
        name: "quotes",
        area: Area::Params,
        apply: |draft, dice| {
            value(draft, dice, |text, dice| {
                let (open, close) = *dice.pick(&[
                    (&b"\""[..], &b"\""[..]),
                    (b"'", b"'"),
                    (b"%22", b"%22"),
                    (b"\"", b""),
                    (b"\"\"", b"\"\""),
                    (b"\" ", b"\""),
                    (b"\"", b"\"x"),
                ]);
                [open, text, close].concat()
            })
        },
    },
    Mutation {
        name: "blank round the value",
        area: Area::Params,
        apply: |draft, dice| {
            value(draft, dice, |text, dice| {
                if dice.one_in(2) {
                    [dice.bytes(&BLANKS), text].concat()
                } else {
                    ended(text, dice.bytes(&BLANKS))
                }
            })
        },
    },
    Mutation {
        name: "edge byte",
        area: Area::Params,
        apply: |draft, dice| {
            value(draft, dice, |text, dice| {
                let edge = dice.bytes(&[
                    &b"\xa0"[..],
                    b"\0",
                    b"%00",
                    b"\x1f",
                    b"\x7f",
                    b"\xff",
                    b"\xc2\xa0",
                    b"%a0",
                    b"\x0b",
                    b"\xef\xbb\xbf",
                    b"%",
                    b"%g",
                    b"%u0020",
                    b"\xe2\x80\x8b",
                ]);
                if dice.one_in(2) { [edge, text].concat() } else { ended(text, edge) }
            })
        },
    },
    Mutation {
        name: "%u escapes",
        area: Area::Params,
        apply: |draft, dice| {
            value(draft, dice, |text, dice| {
                let at = dice.below(text.len());
                let mut text = text.to_vec();
                let code = format!("%u{:04x}", text.get(at).copied().unwrap_or(b'a'));
                text.splice(at..(at + 1).min(text.len()), code.bytes());
                text
            })
        },
    },
    Mutation {
        name: "junk before the pair",
        area: Area::Params,
        apply: |draft, dice| {
            let junk = dice.bytes(&[
                &b""[..],
                b"=",
                b"a",
                b"=x",
                b"%",
                b"%zz",
                b"\xff",
                b"[]=1",
                b"a=b=c",
                b"%00=1",
                b"x=%ff",
                b"_charset_=utf-16",
                b"utf8=%26%2310003%3B",
            ]);
            if let Some(params) = draft.params() {
                params.insert(0, Param { name: junk.to_vec(), value: None });
            }
        },
    },
    Mutation {
        name: "name without a value",
        area: Area::Params,
        apply: |draft, _| {
            let bare = Param { name: draft.name.into(), value: None };
            if let Some(params) = draft.params() {
                params.push(bare);
            }
        },
    },
    Mutation {
        name: "hundreds of parameters",
        area: Area::Params,
        apply: |draft, dice| {
            // Rare: it takes long. Limits of PHP and qs lie at 1000.
            if dice.one_in(20)
                && let Some(params) = draft.params()
            {
                params.splice(0..0, (0..1000).map(|_| Param::new("a", "")));
            }
        },
    },
    Mutation {
        name: "prefix of PHP and frameworks",
        area: Area::Params,
        apply: |draft, dice| {
            name(draft, dice, |text, dice| {
                [dice.bytes(&[&b"__Host-"[..], b"__Secure-", b"$", b"_GET[", b"amp;", b"?", b"."]), text]
                    .concat()
            })
        },
    },
];

pub(super) const COOKIES: &[Mutation] = &[
    Mutation {
        name: "old attributes of cookies",
        area: Area::Cookie,
        apply: |draft, dice| {
            let version = *dice.pick(&["1", "\"1\"", "0"]);
            draft.cookies.insert(0, Param::new("$Version", version));
            if dice.one_in(2) {
                draft.cookies.push(Param::new("$Path", "\"/\""));
            }
            if dice.one_in(2) {
                quoted(draft, dice);
            }
        },
    },
    Mutation { name: "quoted cookie", area: Area::Cookie, apply: quoted },
    Mutation {
        name: "octal escapes",
        area: Area::Cookie,
        apply: |draft, dice| {
            value(draft, dice, |text, dice| {
                let at = dice.below(text.len());
                let code = |(index, byte): (usize, &u8)| {
                    if index == at || dice.one_in(4) {
                        format!("\\{byte:03o}").into_bytes()
                    } else {
                        vec![*byte]
                    }
                };
                let inner: Vec<u8> = text.iter().enumerate().flat_map(code).collect();
                [b"\"", &inner[..], b"\""].concat()
            })
        },
    },
    Mutation {
        name: "backslash in a quoted cookie",
        area: Area::Cookie,
        apply: |draft, dice| {
            value(draft, dice, |text, dice| {
                let mut inner = text.to_vec();
                insert(&mut inner, dice.below(text.len()), b"\\");
                [b"\"", &inner[..], b"\""].concat()
            })
        },
    },
    Mutation {
        name: "separator inside quotes",
        area: Area::Cookie,
        apply: |draft, dice| {
            let (name, value) = (draft.name, draft.value);
            let inner = dice.bytes(&[&b"\"a; "[..], b"\"a;b\"; ", b"\"a\\\"; ", b"a\"; ", b"\"; ", b"\"a, "]);
            let pair = format!("{}{name}={value}", String::from_utf8_lossy(inner));
            draft.cookies.insert(0, Param::new("x", &pair));
            if dice.one_in(2) {
                draft.cookies.truncate(1);
            }
        },
    },
    Mutation {
        name: "another separator of cookies",
        area: Area::Cookie,
        apply: |draft, dice| {
            draft.cookie_glue = dice
                .bytes(&[
                    &b";"[..],
                    b", ",
                    b",",
                    b" ; ",
                    b";\t",
                    b";;",
                    b"&",
                    b"; ; ",
                    b" ",
                    b";\xa0",
                    b";\0",
                ])
                .to_vec();
            draft.cookies.insert(0, Param::new("x", "1"));
        },
    },
    Mutation {
        name: "a line for each cookie",
        area: Area::Cookie,
        apply: |draft, dice| {
            draft.splits_cookies = true;
            let at = dice.below(draft.cookies.len() + 1);
            draft.cookies.insert(at, Param::new("x", "1"));
        },
    },
    Mutation {
        name: "JSON in a cookie",
        area: Area::Cookie,
        apply: |draft, dice| {
            value(draft, dice, |text, dice| {
                let (open, close) = *dice.pick(&[
                    ("j:\"", "\""),
                    ("j:[\"", "\"]"),
                    ("j%3A%22", "%22"),
                    ("s:", ".sig"),
                    ("j:{\"0\":\"", "\"}"),
                ]);
                [open.as_bytes(), text, close.as_bytes()].concat()
            })
        },
    },
    Mutation {
        name: "broken cookie before",
        area: Area::Cookie,
        apply: |draft, dice| {
            let broken = dice.bytes(&[
                &b"\xff"[..],
                b"a b",
                b"a=\"",
                b"=",
                b"a=b c",
                b"(a)=b",
                b"a",
                b"a=\x01",
                b"[x]=1",
                b"a\"=1",
                b"expires=Thu, 01 Jan 1970 00:00:00 GMT",
                b"a:b=c",
                b"a={\"b\":1}",
            ]);
            draft.cookies.insert(0, Param { name: broken.to_vec(), value: None });
        },
    },
    Mutation {
        name: "broken cookie behind",
        area: Area::Cookie,
        apply: |draft, dice| {
            let broken =
                dice.bytes(&[&b"\xff"[..], b"a b", b"a=\"", b"=", b"a=b c", b"path=/", b"secure", b"a=\x01"]);
            draft.cookies.push(Param { name: broken.to_vec(), value: None });
        },
    },
    Mutation {
        name: "another cookie header",
        area: Area::Cookie,
        apply: |draft, dice| {
            let name = dice.pick(&["cookie", "Cookie2", "COOKIE", "Cookie ", "X-Cookie", "Cookie\t"]);
            let (key, value) = (draft.name, draft.value);
            draft.fields.push(format!("{name}: {key}={value}").into());
            if dice.one_in(2) {
                draft.cookies.clear();
            }
        },
    },
];

const BLANKS: [&[u8]; 12] =
    [b"+", b"%20", b" ", b"\t", b"%09", b"%0a", b"%0d%0a", b"%a0", b"%0b", b"%c2%a0", b"%00", b"%e3%80%80"];

fn ended(text: &[u8], end: &[u8]) -> Vec<u8> {
    [text, end].concat()
}

fn value(draft: &mut Draft, dice: &mut Dice, change: impl Fn(&[u8], &mut Dice) -> Vec<u8>) {
    if let Some(param) = draft.param() {
        param.value = param.value.as_deref().map(|text| change(text, dice));
    }
}

fn name(draft: &mut Draft, dice: &mut Dice, change: impl Fn(&[u8], &mut Dice) -> Vec<u8>) {
    if let Some(param) = draft.param() {
        param.name = change(&param.name, dice);
    }
}

/// PHP reads these as `_` in names.
fn underscore(draft: &mut Draft, dice: &mut Dice) {
    let other =
        dice.bytes(&[&b"."[..], b"+", b"%20", b" ", b"[", b"%5b", b"%2e", b"-", b"%80", b"\x80", b"%00"]);
    name(draft, dice, |text, _| {
        let mut text = text.to_vec();
        if let Some(at) = text.iter().position(|byte| *byte == b'_') {
            text.splice(at..=at, other.iter().copied());
        }
        text
    });
}

fn duplicate(draft: &mut Draft, dice: &mut Dice, at: usize) {
    let harmless = *dice.pick(&["x", "", "silver", "evil"]);
    let mut second = Param::new(draft.name, harmless);
    if dice.one_in(4) {
        second.name = recased(&second.name, dice);
    }
    if let Some(params) = draft.params() {
        params.insert(at.min(params.len()), second);
    }
}

fn quoted(draft: &mut Draft, dice: &mut Dice) {
    if draft.place == Some(Place::Cookie) {
        value(draft, dice, |text, dice| {
            let close = dice.bytes(&[&b"\""[..], b"\"", b"\" ", b"\"\t", b"\"x", b""]);
            [b"\"", text, close].concat()
        });
    }
}
