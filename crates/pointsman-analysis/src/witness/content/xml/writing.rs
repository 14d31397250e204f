//! A document as text.

use std::fmt::Write as _;

use super::{Document, Element, Name};

/// The namespace that has its prefix without being declared (Namespaces in XML 1.0 section 3).
const XML: &str = "http://www.w3.org/XML/1998/namespace";

enum Piece {
    Start(usize),
    End(usize),
}

impl Document<'_> {
    /// The document, where elements that are left open have no end, for something to follow.
    pub(super) fn written(&self) -> Vec<u8> {
        let namespaces = self.namespaces();
        let Some(root) = self.root() else {
            return format!("<{}/>", self.filler).into_bytes();
        };
        let mut out = String::new();
        let mut open = vec![Piece::Start(root)];
        while let Some(piece) = open.pop() {
            let (Piece::Start(at) | Piece::End(at)) = piece;
            let Some(element) = self.elements.get(at) else { continue };
            if matches!(piece, Piece::End(_)) {
                write_all(&mut out, &["</", &qualified(element.name, &namespaces), ">"]);
                continue;
            }
            write_all(&mut out, &["<", &qualified(element.name, &namespaces)]);
            if at == root {
                for (number, namespace) in namespaces.iter().enumerate() {
                    write_all(
                        &mut out,
                        &[" xmlns:p", &number.to_string(), "=\"", &escaped(namespace, true), "\""],
                    );
                }
            }
            for (name, value) in &element.attributes {
                write_all(
                    &mut out,
                    &[" ", &qualified(*name, &namespaces), "=\"", &escaped(value, true), "\""],
                );
            }
            let stays_open = self.open.contains(&at);
            let Element { children, text, .. } = element;
            if children.is_empty() && text.as_deref().unwrap_or_default().is_empty() && !stays_open {
                out.push_str("/>");
                continue;
            }
            out.push('>');
            out.push_str(&escaped(text.as_deref().unwrap_or_default(), false));
            open.extend((!stays_open).then_some(Piece::End(at)));
            open.extend(children.iter().rev().map(|child| Piece::Start(*child)));
        }
        out.into_bytes()
    }

    /// The namespaces of all names, each once; their prefixes are `p0`, `p1` and so on.
    fn namespaces(&self) -> Vec<&str> {
        let mut namespaces = Vec::new();
        for element in &self.elements {
            let names = element.attributes.iter().map(|(name, _)| name).chain([&element.name]);
            for namespace in names.filter_map(|(namespace, _)| *namespace) {
                if !namespace.is_empty() && namespace != XML && !namespaces.contains(&namespace) {
                    namespaces.push(namespace);
                }
            }
        }
        namespaces
    }
}

fn write_all(out: &mut String, pieces: &[&str]) {
    pieces.iter().for_each(|piece| out.push_str(piece));
}

fn qualified((namespace, local): Name<'_>, namespaces: &[&str]) -> String {
    match namespace {
        None | Some("") => local.to_owned(),
        Some(XML) => format!("xml:{local}"),
        Some(namespace) => {
            let number = namespaces.iter().position(|other| *other == namespace).unwrap_or_default();
            format!("p{number}:{local}")
        }
    }
}

/// With references for what would mean something else, or be read as something else: line ends, and in attributes all
/// white space but spaces.
fn escaped(text: &str, is_attribute: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' if is_attribute => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            '\t' | '\n' if is_attribute => {
                // Writing to memory does not fail.
                write!(out, "&#{};", u32::from(character)).unwrap_or_default();
            }
            character => out.push(character),
        }
    }
    out
}
