//! Mutations of XML documents.

use super::{Area, Mutation, insert, recased};
use crate::differential::draft::{Charset, Content, Draft, Xml};

pub(super) const ALL: &[Mutation] = &[
    Mutation {
        name: "text in CDATA, comments, references",
        area: Area::Xml,
        apply: |draft, dice| {
            let value = draft.value;
            let (first, rest) = value.split_at(1);
            let code = u32::from(first.as_bytes()[0]);
            let written = [
                format!("<![CDATA[{value}]]>"),
                format!("{first}<!-- -->{rest}"),
                format!("&#{code};{rest}"),
                format!("&#x{code:x};{rest}"),
                format!("{first}<![CDATA[{rest}]]>"),
                format!("{first}<?x y?>{rest}"),
                format!("<![CDATA[{first}]]>{rest}"),
                format!("&#x{code:08X};{rest}"),
                format!("<!---->{value}"),
                format!("{value}<!--{value}-->"),
                format!("<![CDATA[]]>{value}"),
            ];
            let text = dice.pick(&written).clone();
            child(draft, |name, _| format!("<{name}>{text}</{name}>"));
        },
    },
    Mutation {
        name: "text beside elements",
        area: Area::Xml,
        apply: |draft, dice| {
            let value = draft.value;
            let (first, rest) = value.split_at(1);
            let written = [
                format!("{first}<b/>{rest}"),
                format!("<b>{value}</b>"),
                format!("{value}<b>x</b>"),
                format!("<b>x</b>{value}"),
                format!("<b/>{value}"),
                format!("{first}<b>{rest}</b>"),
                format!("<b>{first}</b>{rest}"),
            ];
            let text = dice.pick(&written).clone();
            child(draft, |name, _| format!("<{name}>{text}</{name}>"));
        },
    },
    Mutation {
        name: "blanks around the text",
        area: Area::Xml,
        apply: |draft, dice| {
            let blank = *dice.pick(&[
                " ", "\n", "\t", "\r\n", "\u{a0}", "&#32;", "&#160;", "&#0;", "\u{feff}", "\u{2003}", "&#9;",
                "\u{85}",
            ]);
            let front = dice.one_in(2);
            child(draft, |name, value| {
                if front {
                    format!("<{name}>{blank}{value}</{name}>")
                } else {
                    format!("<{name}>{value}{blank}</{name}>")
                }
            });
        },
    },
    Mutation {
        name: "spelling of an XML number",
        area: Area::Xml,
        apply: |draft, dice| {
            let spelling = *dice.pick(&[
                "6e4", "+60000", "0xea60", "60000.0", "6E+4", "INF", "Infinity", "0x1p17", "6_0000",
                "060000", "6e04", "60000f", "1e400", "nan",
            ]);
            if draft.value == "60000" {
                child(draft, |name, _| format!("<{name}>{spelling}</{name}>"));
            }
        },
    },
    Mutation {
        name: "namespace",
        area: Area::Xml,
        apply: |draft, dice| {
            let kind = dice.below(5);
            child(draft, |name, value| match kind {
                0 => format!("<p:{name} xmlns:p=\"urn:x\">{value}</p:{name}>"),
                1 => format!("<{name} xmlns=\"urn:x\">{value}</{name}>"),
                2 => format!("<p:{name}>{value}</p:{name}>"),
                3 => format!("<{name} xmlns=\"\">{value}</{name}>"),
                _ => format!("<xml:{name}>{value}</xml:{name}>"),
            });
            if dice.one_in(3)
                && let Some(xml) = xml(draft)
            {
                xml.attributes = b" xmlns=\"urn:y\" xmlns:p=\"urn:z\"".to_vec();
            }
        },
    },
    Mutation {
        name: "case of an element",
        area: Area::Xml,
        apply: |draft, dice| {
            let name = String::from_utf8_lossy(&recased(draft.name.as_bytes(), dice)).into_owned();
            child(draft, |_, value| format!("<{name}>{value}</{name}>"));
        },
    },
    Mutation {
        name: "element twice",
        area: Area::Xml,
        apply: |draft, dice| {
            let harmless = *dice.pick(&["1", "", "x"]);
            let element = format!("<{0}>{harmless}</{0}>", draft.name);
            let front = dice.one_in(2);
            if let Some(xml) = xml(draft) {
                let at = if front { 0 } else { xml.children.len() };
                xml.children.insert(at, element.into_bytes());
            }
        },
    },
    Mutation {
        name: "attributes of an element",
        area: Area::Xml,
        apply: |draft, dice| {
            let attributes = *dice.pick(&[
                "a=\"b\"",
                "a='>'",
                "a=\"&gt;\"",
                "a = \"b\"",
                "a=\"</order>\"",
                "a",
                "a=b",
                "a=\"1\" a=\"2\"",
                "xml:space=\"preserve\"",
                "a=\"<\"",
            ]);
            child(draft, |name, value| format!("<{name} {attributes}>{value}</{name}>"));
        },
    },
    Mutation {
        name: "writing of tags",
        area: Area::Xml,
        apply: |draft, dice| {
            let kind = dice.below(7);
            child(draft, |name, value| match kind {
                0 => format!("<{name}\n>{value}</{name} >"),
                1 => format!("<{name}\t>{value}</{name}\n>"),
                2 => format!("< {name}>{value}</{name}>"),
                3 => format!("<{name}/><{name}>{value}</{name}>"),
                4 => format!("<{name}>{value}</ {name}>"),
                5 => format!("<{name}>{value}"),
                _ => format!("<{name}>{value}</{name}></{name}>"),
            });
        },
    },
    Mutation {
        name: "XML declaration",
        area: Area::Xml,
        apply: |draft, dice| {
            let declaration = *dice.pick(&[
                "<?xml version=\"1.0\"?>",
                "<?xml version=\"1.1\"?>",
                "<?xml version=\"1.0\" encoding=\"utf-8\"?>",
                "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>",
                "<?xml version=\"1.0\" encoding=\"utf-16\"?>",
                "<?xml version=\"1.0\" encoding=\"utf-7\"?>",
                "<?xml version=\"1.0\" standalone=\"yes\"?>",
                " <?xml version=\"1.0\"?>",
                "<?xml encoding=\"x\"?>",
                "<?XML version=\"1.0\"?>",
                "<?xml version='1.0' encoding='us-ascii'?>",
                "<?xml version=\"2.0\"?>",
                "<?xml version=\"1.0\" encoding=\"cp037\"?>",
                "<?xml version=\"1.0\" encoding=\"windows-1252\"?>",
            ]);
            if let Some(xml) = xml(draft) {
                insert(&mut xml.prolog, 0, declaration.as_bytes());
            }
        },
    },
    Mutation {
        name: "document type",
        area: Area::Xml,
        apply: |draft, dice| {
            let value = draft.value;
            let (name, _) = (draft.name, ());
            let text = [
                format!("<!DOCTYPE order [<!ENTITY v \"{value}\">]>"),
                "<!DOCTYPE order>".to_owned(),
                format!("<!DOCTYPE order [<!ENTITY v \"<{name}>{value}</{name}>\">]>"),
                "<!doctype order>".to_owned(),
                format!("<!DOCTYPE order [<!ATTLIST {name} a CDATA \"b\">]>"),
            ];
            let doctype = dice.pick(&text).clone();
            let in_root = doctype.contains(&format!("<{name}>"));
            if let Some(xml) = xml(draft) {
                xml.prolog.extend_from_slice(doctype.as_bytes());
                let text = if in_root { "&v;".to_owned() } else { format!("<{name}>&v;</{name}>") };
                xml.children = vec![text.into_bytes()];
            }
        },
    },
    Mutation {
        name: "charset of the document",
        area: Area::Xml,
        apply: |draft, dice| {
            let (charset, name) = *dice.pick(&[
                (Charset::Utf16Le, "utf-16"),
                (Charset::Utf16Be, "utf-16"),
                (Charset::Utf16Le, "utf-16le"),
                (Charset::Utf7, "utf-7"),
                (Charset::Utf32Le, "utf-32"),
                (Charset::Utf16Be, "utf-8"),
            ]);
            draft.charset = charset;
            draft.has_byte_order_mark = dice.one_in(2);
            if dice.one_in(2)
                && let Some(xml) = xml(draft)
            {
                xml.prolog = format!("<?xml version=\"1.0\" encoding=\"{name}\"?>").into();
            }
        },
    },
    Mutation {
        name: "comment or instruction around",
        area: Area::Xml,
        apply: |draft, dice| {
            let text = *dice.pick(&[
                "<!-- -->",
                "<!--<total>1</total>-->",
                "<?x?>",
                "<?x <a> ?>",
                "<!-- -- -->",
                "<!-->",
                "<![CDATA[x]]>",
                "\n",
                "x",
                "<?xml-stylesheet href=\"a\"?>",
                "<!--->",
            ]);
            let place = dice.below(3);
            if let Some(xml) = xml(draft) {
                match place {
                    0 => xml.prolog.extend_from_slice(text.as_bytes()),
                    1 => xml.children.insert(0, text.into()),
                    _ => xml.epilog.extend_from_slice(text.as_bytes()),
                }
            }
        },
    },
    Mutation {
        name: "other root",
        area: Area::Xml,
        apply: |draft, dice| {
            let root = *dice.pick(&["Order", "x", "p:order", "order1", "o"]);
            if let Some(xml) = xml(draft) {
                xml.root = root.into();
                if root == "p:order" {
                    xml.attributes = b" xmlns:p=\"urn:x\"".to_vec();
                }
            }
        },
    },
    Mutation {
        name: "second root",
        area: Area::Xml,
        apply: |draft, dice| {
            let kind = dice.below(3);
            if let Some(xml) = xml(draft) {
                match kind {
                    0 => xml.prolog.extend_from_slice(b"<order><total>1</total></order>"),
                    1 => xml.epilog.extend_from_slice(b"<order><total>1</total></order>"),
                    _ => {
                        xml.prolog.extend_from_slice(b"<order>");
                        xml.epilog.extend_from_slice(b"</order>");
                    }
                }
            }
        },
    },
    Mutation {
        name: "SOAP envelope",
        area: Area::Xml,
        apply: |draft, _| {
            if let Some(Xml { prolog, epilog, .. }) = xml(draft) {
                prolog.extend_from_slice(b"<s:Envelope xmlns:s=\"urn:s\"><s:Body>");
                epilog.extend_from_slice(b"</s:Body></s:Envelope>");
            }
        },
    },
];

fn xml(draft: &mut Draft) -> Option<&mut Xml> {
    match &mut draft.content {
        Content::Xml(xml) => Some(xml),
        _ => None,
    }
}

/// Writes the element with the value anew.
fn child(draft: &mut Draft, write: impl FnOnce(&str, &str) -> String) {
    let text = write(draft.name, draft.value);
    if let Some(child) = xml(draft).and_then(|xml| xml.children.last_mut()) {
        *child = text.into_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_written_anew() {
        let mut draft = Draft::new();
        (draft.name, draft.value) = ("total", "60000");
        draft.content = Content::Xml(Xml::of("<total>60000</total>"));
        child(&mut draft, |name, value| format!("<{name} >{value}</{name}>"));
        assert_eq!(draft.request().body.as_deref(), Some(&b"<order><total >60000</total></order>"[..]));
    }
}
