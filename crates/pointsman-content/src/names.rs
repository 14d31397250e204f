//! Names as servers read them that do not compare bytes.

use std::borrow::Cow;

/// How a server reads the names of parameters, of a query or a form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParameterNames {
    /// PHP: blanks before the name are dropped, a NUL ends it, and `.`, a blank and a lone `[` become `_`.
    pub php: bool,
    /// PHP and qs: `plan[]` and `plan[0]` add to the list `plan`.
    pub brackets: bool,
    /// ASP.NET: names that differ in case are one.
    pub ignores_case: bool,
}

impl ParameterNames {
    /// Everything that a common server does.
    pub const COMMON: ParameterNames = ParameterNames { php: true, brackets: true, ignores_case: true };

    /// Whether no name changes.
    #[must_use]
    pub fn is_literal(self) -> bool {
        self == ParameterNames::default()
    }

    /// The name, decoded, as the server keeps it. Two names that it takes for one give the same result.
    #[must_use]
    pub fn read<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        let is_plain =
            |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
        if self.is_literal() || name.iter().all(is_plain) {
            return Cow::Borrowed(name);
        }
        let mut name = name;
        if self.php {
            name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            name = &name[name.iter().take_while(|byte| **byte == b' ').count()..];
        }
        let (base, keys) = if self.brackets { split_keys(name) } else { (name, Vec::new()) };
        let mut read = base.to_vec();
        if self.php {
            read.iter_mut().filter(|byte| matches!(byte, b'.' | b' ' | b'[')).for_each(|byte| *byte = b'_');
        }
        for key in keys.into_iter().filter(|key| !key.iter().all(u8::is_ascii_digit)) {
            read.push(KEY);
            read.extend_from_slice(key);
        }
        if self.ignores_case {
            match std::str::from_utf8(&read) {
                Ok(text) => read = fold(text).into_owned().into_bytes(),
                Err(_) => read.make_ascii_lowercase(),
            }
        }
        Cow::Owned(read)
    }
}

/// Stands between a name and its keys, since no server keeps it in a name.
const KEY: u8 = 0x1f;

/// `user[role][]` is `user` with the keys `role` and nothing; `[plan]` is `plan` (qs). A bracket that is never closed
/// belongs to the name.
fn split_keys(name: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let mut keys = Vec::new();
    let Some(first) = memchr::memchr(b'[', name) else { return (name, keys) };
    let (mut base, mut rest) = name.split_at(first);
    while let [b'[', inner @ ..] = rest {
        let Some(end) = memchr::memchr(b']', inner) else { break };
        keys.push(&inner[..end]);
        rest = &inner[end + 1..];
    }
    if keys.is_empty() {
        return (name, keys);
    }
    if base.is_empty() {
        base = keys.remove(0);
    }
    (base, keys)
}

/// The text with letters folded by Unicode's simple rules: `K` (the Kelvin sign) is `k` and `ſ` is `s`, as Go's
/// `encoding/json` compares member names.
#[must_use]
pub fn fold(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().flat_map(folded).collect())
}

fn folded(letter: char) -> impl Iterator<Item = char> {
    let letter = if letter == 'ſ' { 's' } else { letter };
    letter.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: ParameterNames, name: &str, expected: &str) {
        let read = names.read(name.as_bytes()).into_owned();
        assert_eq!(String::from_utf8(read).expect("UTF-8"), expected, "{name:?}");
    }

    #[test]
    fn php_rewrites_parameter_names() {
        let php = ParameterNames { php: true, brackets: true, ignores_case: false };
        for (name, expected) in [
            ("plan", "plan"),
            ("Plan", "Plan"),
            ("  plan", "plan"),
            ("plan\0x", "plan"),
            ("my.plan", "my_plan"),
            ("my plan", "my_plan"),
            ("plan[]", "plan"),
            ("plan[0]", "plan"),
            ("plan[7][]", "plan"),
            ("plan[x]", "plan\u{1f}x"),
            ("plan[", "plan_"),
            ("plan[0]x", "plan"),
        ] {
            check(php, name, expected);
        }
    }

    #[test]
    fn qs_reads_brackets_and_nothing_else() {
        let qs = ParameterNames { brackets: true, ..ParameterNames::default() };
        for (name, expected) in [
            (" plan", " plan"),
            ("plan[]", "plan"),
            ("[plan]", "plan"),
            ("[plan][0]", "plan"),
            ("plan[", "plan["),
            ("my.plan", "my.plan"),
        ] {
            check(qs, name, expected);
        }
    }

    #[test]
    fn case_is_folded_by_unicode() {
        let folds = ParameterNames { ignores_case: true, ..ParameterNames::default() };
        check(folds, "PLAN[]", "plan[]");
        check(ParameterNames::COMMON, " PLAN[]", "plan");
        assert_eq!(
            (fold("To\u{212a}en"), fold("tota\u{17f}"), fold("plain")),
            ("token".into(), "totas".into(), "plain".into())
        );
    }
}
