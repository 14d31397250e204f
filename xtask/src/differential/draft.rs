//! A request as its author means it, before it is bytes: what mutations change.

use super::request::{Framing, Request};

/// A name and its value as they are written; without a value there is no `=` either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Param {
    pub(super) name: Vec<u8>,
    pub(super) value: Option<Vec<u8>>,
}

impl Param {
    pub(super) fn new(name: &str, value: &str) -> Self {
        Self { name: name.into(), value: Some(value.into()) }
    }
}

/// Which parameters the rule under test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Query,
    Cookie,
    Form,
}

/// A part of `multipart/form-data`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Field lines of its head.
    pub(super) head: Vec<Vec<u8>>,
    pub(super) content: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Multipart {
    /// As it stands before each part.
    pub(super) boundary: Vec<u8>,
    /// As the media type has it, quotes included.
    pub(super) parameter: Vec<u8>,
    pub(super) preamble: Vec<u8>,
    pub(super) parts: Vec<Part>,
    pub(super) epilogue: Vec<u8>,
    /// Behind each boundary.
    pub(super) padding: Vec<u8>,
    pub(super) line_end: &'static [u8],
}

/// An XML document of one level: pieces of text that stand inside the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Xml {
    pub(super) prolog: Vec<u8>,
    pub(super) root: Vec<u8>,
    pub(super) attributes: Vec<u8>,
    pub(super) children: Vec<Vec<u8>>,
    pub(super) epilog: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Nothing,
    Form(Vec<Param>),
    Multipart(Multipart),
    /// Members as they are written: name with its quotes, value.
    Json(Vec<(Vec<u8>, Vec<u8>)>),
    Xml(Xml),
    Bytes(Vec<u8>),
}

/// In which characters a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charset {
    Utf8,
    Utf16Le,
    Utf16Be,
    Utf32Le,
    /// RFC 2152, everything but letters and digits in base64.
    Utf7,
}

#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) method: Vec<u8>,
    /// Before the path: scheme and authority of the absolute form.
    pub(super) prefix: Vec<u8>,
    pub(super) path: Vec<u8>,
    pub(super) query: Vec<Param>,
    /// Between parameters of the query and of forms.
    pub(super) ampersand: Vec<u8>,
    /// Behind the query.
    pub(super) suffix: Vec<u8>,
    pub(super) version: Vec<u8>,
    pub(super) host: Vec<u8>,
    pub(super) cookies: Vec<Param>,
    pub(super) cookie_glue: Vec<u8>,
    /// A line for each cookie.
    pub(super) splits_cookies: bool,
    pub(super) fields: Vec<Vec<u8>>,
    pub(super) content: Content,
    pub(super) media_type: Option<Vec<u8>>,
    /// Before and behind the content, in its charset.
    pub(super) before: Vec<u8>,
    pub(super) behind: Vec<u8>,
    pub(super) charset: Charset,
    pub(super) has_byte_order_mark: bool,
    /// Whether the body is compressed.
    pub(super) is_gzip: bool,
    pub(super) framing: Framing,
    /// Where mutations of parameters look.
    pub(super) place: Option<Place>,
    /// The name and the value that the rule looks for; harmless ones where it looks for no name. Never empty.
    pub(super) name: &'static str,
    pub(super) value: &'static str,
}

impl Draft {
    pub(super) fn new() -> Self {
        Self {
            method: b"GET".to_vec(),
            prefix: Vec::new(),
            path: b"/x".to_vec(),
            query: Vec::new(),
            ampersand: b"&".to_vec(),
            suffix: Vec::new(),
            version: b"HTTP/1.1".to_vec(),
            host: b"shop.example".to_vec(),
            cookies: Vec::new(),
            cookie_glue: b"; ".to_vec(),
            splits_cookies: false,
            fields: Vec::new(),
            content: Content::Nothing,
            media_type: None,
            before: Vec::new(),
            behind: Vec::new(),
            charset: Charset::Utf8,
            has_byte_order_mark: false,
            is_gzip: false,
            framing: Framing::Length,
            place: None,
            name: "x-note",
            value: "plain",
        }
    }

    /// The parameters that the rule is about.
    pub(super) fn params(&mut self) -> Option<&mut Vec<Param>> {
        match self.place? {
            Place::Query => Some(&mut self.query),
            Place::Cookie => Some(&mut self.cookies),
            Place::Form => match &mut self.content {
                Content::Form(params) => Some(params),
                _ => None,
            },
        }
    }

    /// The parameter that carries the value.
    pub(super) fn param(&mut self) -> Option<&mut Param> {
        let name = self.name.as_bytes();
        let params = self.params()?;
        let at = params.iter().position(|param| param.name == name).unwrap_or_default();
        params.get_mut(at)
    }

    /// Adds a field line.
    pub(super) fn field(&mut self, line: &str) {
        self.fields.push(line.into());
    }

    /// Its bytes, in parts.
    pub(super) fn request(&self) -> Request {
        let mut lines = vec![[b"Host: ", self.host.as_slice()].concat()];
        if self.splits_cookies {
            let line = |param| [&b"Cookie: "[..], &joined(std::slice::from_ref(param), b"")].concat();
            lines.extend(self.cookies.iter().map(line));
        } else if !self.cookies.is_empty() {
            lines.push([&b"Cookie: "[..], &joined(&self.cookies, &self.cookie_glue)].concat());
        }
        lines.extend(self.fields.iter().cloned());
        lines.extend(self.media_type.iter().map(|media_type| [b"Content-Type: ", &media_type[..]].concat()));
        if self.is_gzip {
            lines.push(b"Content-Encoding: gzip".to_vec());
        }
        Request { start: self.start(), lines, body: self.body(), framing: self.framing.clone() }
    }

    fn start(&self) -> Vec<u8> {
        let mut start = [&self.method[..], b" ", &self.prefix, &self.path].concat();
        if !self.query.is_empty() {
            start.push(b'?');
            start.extend(joined(&self.query, &self.ampersand));
        }
        [&start[..], &self.suffix, b" ", &self.version].concat()
    }

    fn body(&self) -> Option<Vec<u8>> {
        let content = match &self.content {
            Content::Nothing => return None,
            Content::Form(params) => joined(params, &self.ampersand),
            Content::Multipart(multipart) => multipart.bytes(),
            Content::Json(members) => {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| [&name[..], b":", value].concat()).collect();
                [b"{", &members.join(&b","[..])[..], b"}"].concat()
            }
            Content::Xml(xml) => xml.bytes(),
            Content::Bytes(bytes) => bytes.clone(),
        };
        let content = [&self.before[..], &content, &self.behind].concat();
        let body = self.charset.encoded(&content, self.has_byte_order_mark);
        Some(if self.is_gzip { gzip(&body) } else { body })
    }
}

fn joined(params: &[Param], glue: &[u8]) -> Vec<u8> {
    let one = |param: &Param| match &param.value {
        Some(value) => [&param.name[..], b"=", value].concat(),
        None => param.name.clone(),
    };
    params.iter().map(one).collect::<Vec<_>>().join(glue)
}

impl Multipart {
    /// Of fields by name and content.
    pub(super) fn of(fields: &[(&str, &str)]) -> Self {
        let part = |(name, content): &(&str, &str)| Part {
            head: vec![format!("Content-Disposition: form-data; name=\"{name}\"").into()],
            content: content.as_bytes().to_vec(),
        };
        Self {
            boundary: b"aZ9".to_vec(),
            parameter: b"aZ9".to_vec(),
            preamble: Vec::new(),
            parts: fields.iter().map(part).collect(),
            epilogue: b"\r\n".to_vec(),
            padding: Vec::new(),
            line_end: b"\r\n",
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let end = self.line_end;
        let mut bytes = self.preamble.clone();
        for part in &self.parts {
            bytes.extend([&b"--"[..], &self.boundary, &self.padding, end].concat());
            for line in &part.head {
                bytes.extend([&line[..], end].concat());
            }
            bytes.extend([end, &part.content, end].concat());
        }
        bytes.extend([&b"--"[..], &self.boundary, b"--", &self.padding, &self.epilogue].concat());
        bytes
    }
}

impl Xml {
    pub(super) fn of(child: &str) -> Self {
        Self {
            prolog: Vec::new(),
            root: b"order".to_vec(),
            attributes: Vec::new(),
            children: vec![child.into()],
            epilog: Vec::new(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { prolog, root, attributes, children, epilog } = self;
        let head = [&prolog[..], b"<", root, attributes, b">"].concat();
        [&head[..], &children.concat(), b"</", root, b">", epilog].concat()
    }
}

impl Charset {
    fn encoded(self, bytes: &[u8], marked: bool) -> Vec<u8> {
        let mark = if marked { "\u{feff}" } else { "" };
        let text = format!("{mark}{}", String::from_utf8_lossy(bytes));
        match self {
            // Bytes that are no UTF-8 stay as they are.
            Self::Utf8 => [mark.as_bytes(), bytes].concat(),
            Self::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Self::Utf32Le => text.chars().flat_map(|letter| u32::from(letter).to_le_bytes()).collect(),
            Self::Utf7 => text.chars().flat_map(utf7).collect(),
        }
    }
}

fn utf7(letter: char) -> Vec<u8> {
    if letter.is_ascii_alphanumeric() {
        return vec![u8::try_from(letter).unwrap_or_default()];
    }
    let mut units = [0; 2];
    let bytes: Vec<u8> = letter.encode_utf16(&mut units).iter().flat_map(|unit| unit.to_be_bytes()).collect();
    [b"+", base64(&bytes).trim_end_matches('=').as_bytes(), b"-"].concat()
}

/// RFC 4648 section 4.
pub(super) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = (0..3).fold(0_usize, |group, at| group << 8 | usize::from(*chunk.get(at).unwrap_or(&0)));
        for at in 0..4 {
            let letter = char::from(LETTERS[group >> (18 - 6 * at) & 63]);
            text.push(if at <= chunk.len() { letter } else { '=' });
        }
    }
    text
}

/// RFC 1952 around one stored block: bodies here are short.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let Ok(length) = u16::try_from(bytes.len()) else { return bytes.to_vec() };
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let sizes = [length.to_le_bytes(), (!length).to_le_bytes()].concat();
    [&head[..], &sizes, bytes, &(!crc).to_le_bytes(), &u32::from(length).to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_becomes_a_request() {
        let mut draft = Draft::new();
        draft.query = vec![Param::new("a", "b"), Param { name: b"c".to_vec(), value: None }];
        draft.cookies = vec![Param::new("d", "e"), Param::new("f", "g")];
        draft.field("x-role: root");
        let text = "GET /x?a=b&c HTTP/1.1\r\nHost: shop.example\r\nCookie: d=e; f=g\r\nx-role: root\r\n\r\n";
        assert_eq!(draft.request().bytes(), text.as_bytes());
        draft.content = Content::Multipart(Multipart::of(&[("a", "b")]));
        let body = "--aZ9\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--aZ9--\r\n";
        assert_eq!(draft.request().body, Some(body.into()));
    }

    #[test]
    fn charsets_and_codings() {
        assert_eq!(Charset::Utf16Be.encoded(b"a", true), [0xfe, 0xff, 0, b'a']);
        assert_eq!(Charset::Utf32Le.encoded(b"a", false), [b'a', 0, 0, 0]);
        assert_eq!(Charset::Utf7.encoded(b"a{", false), b"a+AHs-");
        assert_eq!(base64(b"gold"), "Z29sZA==");
        let packed = gzip(b"123456789");
        assert_eq!(packed[packed.len() - 8..], [0x26, 0x39, 0xf4, 0xcb, 9, 0, 0, 0]);
    }
}
