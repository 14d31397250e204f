//! The XML declaration (XML 1.0, productions 23 to 26, 32, 80 and 81).

/// Checks what stands between `<?xml` and `?>`. Returns where it is wrong.
pub(super) fn check(declaration: &[u8]) -> Result<(), usize> {
    let mut rest = Rest { bytes: declaration, at: 0 };
    if !rest.name(b"version") {
        return Err(rest.at);
    }
    rest.value(|value| {
        value
            .strip_prefix(b"1.")
            .is_some_and(|minor| !minor.is_empty() && minor.iter().all(u8::is_ascii_digit))
    })?;
    if rest.name(b"encoding") {
        rest.value(|value| match value.split_first() {
            Some((first, others)) => first.is_ascii_alphabetic() && others.iter().all(is_in_encoding),
            None => false,
        })?;
    }
    if rest.name(b"standalone") {
        rest.value(|value| matches!(value, b"yes" | b"no"))?;
    }
    rest.spaces();
    if rest.at == declaration.len() { Ok(()) } else { Err(rest.at) }
}

fn is_in_encoding(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn spaces(&mut self) -> usize {
        let count = self.rest().iter().take_while(|byte| super::is_space(**byte)).count();
        self.at += count;
        count
    }

    /// Passes over space and this name, if both are there.
    fn name(&mut self, name: &[u8]) -> bool {
        let before = self.at;
        let is_there = self.spaces() > 0 && self.rest().starts_with(name);
        self.at = if is_there { self.at + name.len() } else { before };
        is_there
    }

    /// Passes over an equals sign and a value in quotes, which has to be right.
    fn value(&mut self, is_right: impl Fn(&[u8]) -> bool) -> Result<(), usize> {
        self.spaces();
        if self.rest().first() != Some(&b'=') {
            return Err(self.at);
        }
        self.at += 1;
        self.spaces();
        let Some((quote @ (b'"' | b'\''), behind)) = self.rest().split_first() else { return Err(self.at) };
        let value_bytes = behind.iter().position(|byte| byte == quote).ok_or(self.at)?;
        if !is_right(behind.get(..value_bytes).unwrap_or_default()) {
            return Err(self.at + 1);
        }
        self.at += 1 + value_bytes + 1;
        Ok(())
    }
}
