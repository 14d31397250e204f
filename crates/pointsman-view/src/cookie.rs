//! Cookies in a Cookie line (RFC 6265 section 4.2).

/// The values of the cookie `name` in one Cookie line, in order. Names are compared by case, and
/// quotes around a value belong to it.
pub fn cookie_values<'a>(line: &'a [u8], name: &[u8]) -> impl Iterator<Item = &'a [u8]> {
    pairs(line).filter(move |pair| pair.name == Some(name)).map(|pair| pair.value)
}

/// The names of the cookies in one Cookie line, in order.
pub(crate) fn cookie_names(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    pairs(line).filter_map(|pair| pair.name)
}

/// Appends the Cookie line's value without the cookie `name`, the others as they were written.
///
/// Returns false, and appends nothing, where the cookie is not there: the line can stay. Where
/// nothing is appended although it was there, the whole line should go.
pub fn without_cookie(line: &[u8], name: &[u8], out: &mut Vec<u8>) -> bool {
    if cookie_values(line, name).next().is_none() {
        return false;
    }
    let start = out.len();
    for pair in pairs(line).filter(|pair| pair.name != Some(name)) {
        if out.len() > start {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(pair.text);
    }
    true
}

struct Pair<'a> {
    /// As it was written, without the white space around it.
    text: &'a [u8],
    /// `None` without `=`: no name, only a value.
    name: Option<&'a [u8]>,
    value: &'a [u8],
}

fn pairs(line: &[u8]) -> impl Iterator<Item = Pair<'_>> {
    line.split(|&byte| byte == b';').map(<[u8]>::trim_ascii).filter(|text| !text.is_empty()).map(|text| {
        match memchr::memchr(b'=', text) {
            Some(at) => Pair {
                text,
                name: Some(text[..at].trim_ascii_end()),
                value: text[at + 1..].trim_ascii_start(),
            },
            None => Pair { text, name: None, value: text },
        }
    })
}
