//! Mutations of what the head says of a body, and of how it is framed and coded.

use super::{Area, Mutation, insert, recased};
use crate::differential::draft::{Charset, Content, Draft};
use crate::differential::request::Framing;

pub(super) const ALL: &[Mutation] = &[
    Mutation {
        name: "another media type",
        area: Area::Label,
        apply: |draft, dice| {
            if draft.content != Content::Nothing {
                draft.media_type = Some(dice.pick(&MEDIA_TYPES).as_bytes().to_vec());
            }
        },
    },
    Mutation { name: "no media type", area: Area::Label, apply: |draft, _| draft.media_type = None },
    Mutation {
        name: "case of the media type",
        area: Area::Label,
        apply: |draft, dice| label(draft, |text| recased(text, dice)),
    },
    Mutation {
        name: "blanks in the media type",
        area: Area::Label,
        apply: |draft, dice| {
            let blank = dice.bytes(&[&b" "[..], b"\t", b"\0", b"\xa0", b"\x0b", b","]);
            let at = dice.below(40);
            label(draft, |text| {
                let mut text = text.to_vec();
                insert(&mut text, at, blank);
                text
            });
        },
    },
    Mutation {
        name: "parameter of the media type",
        area: Area::Label,
        apply: |draft, dice| {
            let parameter = *dice.pick(&[
                "; charset=utf-8",
                "; charset=\"UTF-8\"",
                ";",
                "; a",
                "; charset=utf-16",
                "; charset=iso-8859-1",
                "; charset=utf-7",
                "; charset=cp037",
                "; boundary=x",
                "; charset=utf-16le",
                "; charset=x; charset=utf-8",
                "; a=\"",
                ";charset",
                "; charset=utf8",
                "; charset=windows-1252",
                "; charset=shift_jis",
                "; version=\"a;b\"",
            ]);
            label(draft, |text| [text, parameter.as_bytes()].concat());
        },
    },
    Mutation {
        name: "second media type",
        area: Area::Label,
        apply: |draft, dice| {
            if draft.content == Content::Nothing {
                return;
            }
            let name = dice.pick(&[
                "Content-Type",
                "content-type",
                "Content_Type",
                "Content-Type ",
                "X-Content-Type",
            ]);
            let line = format!("{name}: {}", dice.pick(&MEDIA_TYPES));
            draft.fields.push(line.into_bytes());
        },
    },
    Mutation {
        name: "list of media types",
        area: Area::Label,
        apply: |draft, dice| {
            let other = *dice.pick(&MEDIA_TYPES);
            let first = dice.one_in(2);
            label(draft, |text| {
                if first {
                    [other.as_bytes(), b", ", text].concat()
                } else {
                    [text, b", ", other.as_bytes()].concat()
                }
            });
        },
    },
    Mutation {
        name: "charset of the body",
        area: Area::Label,
        apply: |draft, dice| {
            let (charset, name) = *dice.pick(&[
                (Charset::Utf16Le, "utf-16le"),
                (Charset::Utf16Be, "utf-16be"),
                (Charset::Utf16Le, "utf-16"),
                (Charset::Utf32Le, "utf-32le"),
                (Charset::Utf32Le, "utf-32"),
                (Charset::Utf7, "utf-7"),
                (Charset::Utf16Be, "utf-16"),
            ]);
            draft.charset = charset;
            draft.has_byte_order_mark = dice.one_in(2);
            if dice.one_in(2) {
                label(draft, |text| [text, b"; charset=", name.as_bytes()].concat());
            }
        },
    },
    Mutation {
        name: "byte-order mark",
        area: Area::Label,
        apply: |draft, _| draft.has_byte_order_mark = true,
    },
    Mutation {
        name: "bytes before the content",
        area: Area::Label,
        apply: |draft, dice| draft.before = dice.bytes(&EDGES).to_vec(),
    },
    Mutation {
        name: "bytes behind the content",
        area: Area::Label,
        apply: |draft, dice| draft.behind = dice.bytes(&EDGES).to_vec(),
    },
    Mutation { name: "gzip", area: Area::Framing, apply: |draft, _| draft.is_gzip = true },
    Mutation {
        name: "content coding that is none",
        area: Area::Framing,
        apply: |draft, dice| {
            let coding = dice.pick(&[
                "identity",
                "utf-8",
                "gzip",
                "x-gzip",
                "deflate",
                "br",
                "GZIP",
                "gzip, identity",
                "identity, gzip",
                "aws-chunked",
                "",
                "none",
                "chunked",
                "zstd",
                "\"gzip\"",
                "compress",
            ]);
            draft.fields.push(format!("Content-Encoding: {coding}").into_bytes());
        },
    },
    Mutation {
        name: "gzip under another name",
        area: Area::Framing,
        apply: |draft, dice| {
            draft.is_gzip = true;
            let line = dice.pick(&[
                "Content-Encoding: identity",
                "Content-Encoding: gzip",
                "content-encoding: x-gzip",
                "Content_Encoding: gzip",
                "Content-Encoding:",
            ]);
            draft.fields.push(line.as_bytes().to_vec());
        },
    },
    Mutation {
        name: "chunks",
        area: Area::Framing,
        apply: |draft, dice| {
            let size = *dice.pick(&[1, 2, 3, 7, 16, 64, 4096]);
            draft.framing = Framing::Chunked { size, extension: Vec::new(), trailers: Vec::new() };
        },
    },
    Mutation {
        name: "chunk extensions",
        area: Area::Framing,
        apply: |draft, dice| {
            let extension = dice
                .bytes(&[
                    &b";a"[..],
                    b";a=b",
                    b" ",
                    b";a=\"b\"",
                    b";",
                    b"\t;x",
                    b";\0",
                    b";a=\"\n\"",
                    b";\n",
                    b"\r",
                ])
                .to_vec();
            draft.framing = Framing::Chunked { size: 1 + dice.below(32), extension, trailers: Vec::new() };
        },
    },
    Mutation {
        name: "length beside chunks",
        area: Area::Framing,
        apply: |draft, dice| {
            let line = *dice.pick(&[
                "Content-Length: 0",
                "Content-Length: 5",
                "content-length: 1, 1",
                "Content-Length: +1",
                "Transfer-Encoding: chunked",
                "Transfer-Encoding: identity",
                "Transfer-Encoding: gzip, chunked",
                "Transfer-Encoding:\x0bchunked",
                "Transfer_Encoding: chunked",
                "Content-Length: 1_0",
                "X-Expected-Entity-Length: 1",
            ]);
            draft.field(line);
        },
    },
    Mutation {
        name: "body on a method that has none",
        area: Area::Framing,
        apply: |draft, dice| {
            draft.method = dice.pick(&["GET", "DELETE", "OPTIONS", "TRACE", "QUERY"]).as_bytes().to_vec();
        },
    },
    Mutation {
        name: "PUT or PATCH",
        area: Area::Framing,
        apply: |draft, dice| {
            draft.method = dice.pick(&["PUT", "PATCH", "REPORT"]).as_bytes().to_vec();
        },
    },
    Mutation {
        name: "two documents",
        area: Area::Label,
        apply: |draft, dice| {
            let other = *dice.pick(&["{\"total\":1}\n", "{}", "[1]", "null", "<a/>", "x=1&", "0 "]);
            if dice.one_in(2) { draft.before = other.into() } else { draft.behind = other.into() }
        },
    },
    Mutation {
        name: "form in another body",
        area: Area::Label,
        apply: |draft, dice| {
            let pair = format!("&{}={}", draft.name, draft.value);
            if !matches!(draft.content, Content::Nothing | Content::Form(_)) {
                draft.behind = pair.into_bytes();
                draft.media_type = Some(dice.pick(&MEDIA_TYPES).as_bytes().to_vec());
            }
        },
    },
];

const MEDIA_TYPES: [&str; 24] = [
    "text/plain",
    "application/xml",
    "text/xml",
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "multipart/form-data; boundary=x",
    "multipart/form-data; boundary=aZ9",
    "multipart/mixed; boundary=aZ9",
    "application/octet-stream",
    "text/json",
    "application/problem+json",
    "image/svg+xml",
    "text/html",
    "application/*",
    "application/x-www-form-urlencoded; charset=utf-16",
    "application/csp-report",
    "json",
    "/",
    "application/json/x",
    "application/xhtml+xml",
    "application/x-www-form-urlencoded;",
    "application/jsonp",
    "application/vnd.api+json; ext=\"a\"",
];

const EDGES: [&[u8]; 16] = [
    b" ",
    b"\n",
    b"\r\n\r\n",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xff",
    b"/**/",
    b"//\n",
    b")]}',\n",
    b"\t",
    b"x",
    b"&",
    b"<!-- -->",
    b"\xc2\xa0",
    b"\x0c",
    b"\x1e",
];

fn label(draft: &mut Draft, change: impl FnOnce(&[u8]) -> Vec<u8>) {
    if let Some(media_type) = &mut draft.media_type {
        *media_type = change(media_type);
    }
}
