//! What an XML declaration says of the encoding.

/// What stands at the start of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Declared<'a> {
    /// It may become a declaration, or is one without its end.
    Unfinished,
    /// No declaration, or one that names no encoding.
    Nothing,
    Encoding(&'a [u8]),
    /// A declaration that nobody can read (XML 1.0 section 2.8).
    Malformed,
    /// It has more than [`CHARACTERS_MAX`].
    TooLong,
}

/// Characters of an XML declaration, from `<` to `>`.
pub(super) const CHARACTERS_MAX: usize = 512;

/// Reads the declaration at the start of a text (XML 1.0 section 2.8), as far as it takes to know which encoding it
/// names: pseudo-attributes one after another, `encoding` at most once. The reader of XML checks the rest.
pub(super) fn declared(text: &[u8]) -> Declared<'_> {
    const START: &[u8] = b"<?xml";
    let Some(rest) = text.strip_prefix(START) else {
        return if START.starts_with(text) { Declared::Unfinished } else { Declared::Nothing };
    };
    match rest.first() {
        None => return Declared::Unfinished,
        Some(byte) if !is_space(*byte) => return Declared::Nothing,
        Some(_) => {}
    }
    let end = memchr::memchr(b'>', rest);
    if START.len() + end.map_or(rest.len(), |end| end + 1) > CHARACTERS_MAX {
        return Declared::TooLong;
    }
    let Some(end) = end else { return Declared::Unfinished };
    let Some(mut attributes) = rest[..end].strip_suffix(b"?") else { return Declared::Malformed };
    let mut encoding = None;
    while !attributes.trim_ascii().is_empty() {
        let Some((name, value, after)) = attribute(attributes) else { return Declared::Malformed };
        if name == b"encoding" && encoding.replace(value).is_some() {
            return Declared::Malformed;
        }
        attributes = after;
    }
    encoding.map_or(Declared::Nothing, Declared::Encoding)
}

/// ` name = "value"`, and what follows it.
fn attribute(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let start = text.iter().position(|byte| !is_space(*byte)).filter(|&spaces| spaces > 0)?;
    let text = &text[start..];
    let equals = memchr::memchr(b'=', text)?;
    let name = text[..equals].trim_ascii_end();
    let (quote, text) = text[equals + 1..].trim_ascii_start().split_first()?;
    let end = memchr::memchr(*quote, text).filter(|_| matches!(quote, b'"' | b'\''))?;
    let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_alphabetic);
    is_name.then_some((name, &text[..end], &text[end + 1..]))
}

/// White space of XML (section 2.3). Of what `trim_ascii` trims more, the form feed, no reader of XML takes any.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_declarations_say() {
        for (text, expected) in [
            ("", Declared::Unfinished),
            ("<?x", Declared::Unfinished),
            ("<?xml", Declared::Unfinished),
            ("<?xml version='1.0'?", Declared::Unfinished),
            ("<a>", Declared::Nothing),
            (" <?xml version='1.0'?>", Declared::Nothing),
            ("<?xml-stylesheet encoding='utf-16'?>", Declared::Nothing),
            ("<?xml version='1.0'?>", Declared::Nothing),
            ("<?xml version='1.0' encoding='a'?><b encoding='c'/>", Declared::Encoding(b"a")),
            (
                "<?xml version = \"1.0\"\r\n\tencoding\n=\n\"a'b\" standalone='no' ?>",
                Declared::Encoding(b"a'b"),
            ),
            ("<?xml version=' encoding=\"a\"' encoding='b'?>", Declared::Encoding(b"b")),
            ("<?xml encoding='a'?>", Declared::Encoding(b"a")),
            ("<?xml version='1.0' encoding=''?>", Declared::Encoding(b"")),
            ("<?xml version='1.0' encoding='a' encoding='b'?>", Declared::Malformed),
            ("<?xml version='1.0'encoding='a'?>", Declared::Malformed),
            ("<?xml version='1.0' encoding=a?>", Declared::Malformed),
            ("<?xml version='1.0' encoding='a?>", Declared::Malformed),
            ("<?xml version='1.0' encoding?>", Declared::Malformed),
            ("<?xml version='1.0' ='a'?>", Declared::Malformed),
            ("<?xml version='1.0' x:encoding='a'?>", Declared::Malformed),
            ("<?xml version='1.0'>", Declared::Malformed),
        ] {
            assert_eq!(declared(text.as_bytes()), expected, "{text}");
        }
    }
}
