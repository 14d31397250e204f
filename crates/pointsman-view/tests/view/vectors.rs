//! Vector files: one case a line, raw and expected with a tab between them.

/// One line of a vector file.
pub(crate) struct Case<'a> {
    /// The options in brackets above it.
    pub(crate) options: &'a str,
    /// Before the tab, escapes resolved.
    pub(crate) raw: Vec<u8>,
    /// After the tab, as it stands.
    pub(crate) expected: &'a str,
    /// The whole line, for messages.
    pub(crate) line: &'a str,
}

/// The cases of a vector file; comments and empty lines are none.
pub(crate) fn cases(file: &str) -> impl Iterator<Item = Case<'_>> {
    let mut options = "";
    file.lines().filter_map(move |line| {
        if line.is_empty() || line.starts_with("# ") {
            return None;
        }
        if let Some(set) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            options = set;
            return None;
        }
        let (raw, expected) = line.split_once('\t').unwrap_or_else(|| panic!("no tab: {line}"));
        Some(Case { options, raw: unescaped(raw), expected, line })
    })
}

/// Resolves `\\`, `\t`, `\r`, `\n` and `\xNN`.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let (escape, after) = after.split_first().expect("something after a backslash");
        rest = after;
        bytes.push(match escape {
            b'\\' => b'\\',
            b't' => b'\t',
            b'r' => b'\r',
            b'n' => b'\n',
            b'x' => {
                let digits = std::str::from_utf8(&after[..2]).expect("two hex digits");
                rest = &after[2..];
                u8::from_str_radix(digits, 16).expect("two hex digits")
            }
            other => panic!("unknown escape `{}` in {text}", *other as char),
        });
    }
    bytes
}

/// Values as vector files have them: nothing where there is none, ` | ` between several.
pub(crate) fn values(expected: &str) -> Vec<Vec<u8>> {
    if expected.is_empty() {
        return Vec::new();
    }
    expected
        .split(" | ")
        .map(|value| if value == "(empty)" { Vec::new() } else { unescaped(value) })
        .collect()
}
