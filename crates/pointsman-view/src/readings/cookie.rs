//! Cookies as servers read them (RFC 6265 section 5.4 leaves the syntax to the server).

use std::borrow::Cow;

use pointsman_content::ParameterNames;

use crate::percent::decoded;

/// How a server reads a Cookie line. By default it reads as the rules do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CookieReading {
    /// Quotes around a value are no part of it.
    pub(crate) unquotes: bool,
    /// `\"` and `\147` in quotes are escapes.
    pub(crate) unescapes: bool,
    /// Percent-codes in values are decoded.
    pub(crate) decodes: bool,
    /// Blanks of Unicode and Latin-1 around names and values are dropped.
    pub(crate) trims_unicode: bool,
    /// A cookie whose value has bytes that none may have is not there.
    pub(crate) drops_invalid: bool,
    /// A blank separates cookies, too.
    pub(crate) splits_blanks: bool,
    /// A comma separates cookies, too.
    pub(crate) splits_commas: bool,
    /// How names are compared.
    pub(crate) names: ParameterNames,
}

impl CookieReading {
    /// Shows each value of the cookie `name` in a line, until `see` breaks.
    pub(crate) fn each<B>(
        &self,
        line: &[u8],
        name: &[u8],
        mut see: impl FnMut(&[u8]) -> std::ops::ControlFlow<B>,
    ) -> std::ops::ControlFlow<B> {
        let name = self.names.read(name);
        for piece in line.split(|byte| *byte == b';' || (self.splits_commas && *byte == b',')) {
            self.of_piece(piece, &name, &mut see)?;
            if self.splits_blanks && memchr::memchr(b'"', piece).is_none() {
                let words = piece.trim_ascii().split(u8::is_ascii_whitespace).skip(1);
                words
                    .filter(|word| memchr::memchr(b'=', word).is_some())
                    .try_for_each(|word| self.of_piece(word, &name, &mut see))?;
            }
        }
        std::ops::ControlFlow::Continue(())
    }

    fn of_piece<B>(
        &self,
        piece: &[u8],
        wanted: &[u8],
        see: &mut impl FnMut(&[u8]) -> std::ops::ControlFlow<B>,
    ) -> std::ops::ControlFlow<B> {
        let Some(at) = memchr::memchr(b'=', piece) else { return std::ops::ControlFlow::Continue(()) };
        let (name, value) = (self.trim(&piece[..at]), self.trim(&piece[at + 1..]));
        if *self.names.read(name) != *wanted {
            return std::ops::ControlFlow::Continue(());
        }
        match self.value(value) {
            Some(value) => see(&value),
            None => std::ops::ControlFlow::Continue(()),
        }
    }

    fn trim<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let text = text.trim_ascii();
        if self.trims_unicode { trim_unicode(text) } else { text }
    }

    fn value<'v>(&self, value: &'v [u8]) -> Option<Cow<'v, [u8]>> {
        let mut value = Cow::Borrowed(value);
        if self.unquotes
            && let Cow::Borrowed([b'"', inner @ .., b'"']) = value
        {
            value = if self.unescapes { unescaped(inner) } else { Cow::Borrowed(inner) };
        }
        if self.drops_invalid
            && !value.iter().all(|byte| matches!(byte, 0x20..=0x7e) && !b"\"\\".contains(byte))
        {
            return None;
        }
        if self.decodes && memchr::memchr(b'%', &value).is_some() {
            value = Cow::Owned(decoded(&value));
        }
        Some(value)
    }
}

/// A quoted value as Python and RFC 2109 read it: `\147` is a byte in octal, any other `\x` is `x`.
fn unescaped(inner: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', inner).is_none() {
        return Cow::Borrowed(inner);
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match (byte, after) {
            (b'\\', [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', after @ ..]) => {
                out.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
                after
            }
            (b'\\', [meant, after @ ..]) => {
                out.push(*meant);
                after
            }
            _ => {
                out.push(byte);
                after
            }
        };
    }
    Cow::Owned(out)
}

/// The text without blanks around it, be they bytes of Latin-1 or characters of UTF-8.
fn trim_unicode(mut text: &[u8]) -> &[u8] {
    loop {
        let before = text.len();
        if let Ok(whole) = std::str::from_utf8(text) {
            text = whole.trim().as_bytes();
        }
        while let [0x09..=0x0d | 0x1c..=0x20 | 0x85 | 0xa0, rest @ ..] = text {
            text = rest;
        }
        while let [rest @ .., 0x09..=0x0d | 0x1c..=0x20 | 0x85 | 0xa0] = text {
            text = rest;
        }
        if text.len() == before {
            return text;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use crate::readings::Server;

    #[track_caller]
    fn check(server: Server, line: &[u8], expected: &[&[u8]]) {
        let mut found = Vec::new();
        let _all = server.cookies().each(line, b"plan", |value| {
            found.push(value.to_vec());
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(found, expected, "{server:?} {}", line.escape_ascii());
    }

    #[test]
    fn quotes_belong_to_no_value_where_servers_drop_them() {
        for server in [Server::Go, Server::Python, Server::Node, Server::Java] {
            check(server, b"$Version=1; plan=\"gold\"; $Path=\"/\"", &[b"gold"]);
        }
        check(Server::Php, b"plan=\"gold\"", &[b"\"gold\""]);
    }

    #[test]
    fn escapes_are_undone_in_quotes() {
        check(Server::Python, b"plan=\"\\147o\\ld\"", &[b"gold"]);
        check(Server::Go, b"plan=\"\\147old\"", &[]);
        for server in [Server::Php, Server::Node, Server::Dotnet] {
            check(server, b"plan=%67old", &[b"gold"]);
        }
    }

    #[test]
    fn blanks_around_values_are_dropped() {
        check(Server::Python, b"plan=gold\xa0", &[b"gold"]);
        check(Server::Python, b"plan=\xc2\xa0gold", &[b"gold"]);
        check(Server::Go, b"plan=gold\xa0", &[]);
        check(Server::Python, b"a=1 plan=gold", &[b"gold"]);
    }

    #[test]
    fn names_are_compared_as_servers_do() {
        check(Server::Nginx, b"PLAN=gold", &[b"gold"]);
        check(Server::Php, b"plan[]=gold", &[b"gold"]);
        check(Server::Java, b"a=1, plan=gold", &[b"gold"]);
        check(Server::Go, b"PLAN=gold; plan=a; plan=b", &[b"a", b"b"]);
    }
}
