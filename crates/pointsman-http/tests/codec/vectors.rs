//! Vector files: a case has a title, the bytes that arrive, and what is made of them.

use pointsman_http::Framing;

/// One case of a vector file.
pub(crate) struct Case<'a> {
    pub(crate) title: &'a str,
    /// What arrives, escapes resolved.
    pub(crate) raw: Vec<u8>,
    /// The line after `--`.
    pub(crate) expected: &'a str,
    /// What is forwarded, escapes resolved.
    pub(crate) forwarded: Vec<u8>,
}

/// The cases of a vector file.
pub(crate) fn cases(file: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    let mut in_forwarded = false;
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        if let Some(title) = line.strip_prefix("== ") {
            cases.push(Case { title, raw: Vec::new(), expected: "", forwarded: Vec::new() });
            in_forwarded = false;
            continue;
        }
        // What explains the form of the file stands before the first case.
        let Some(case) = cases.last_mut() else { continue };
        if let Some(expected) = line.strip_prefix("-- ") {
            case.expected = expected;
            in_forwarded = true;
        } else if in_forwarded {
            case.forwarded.extend(unescaped(line));
        } else {
            case.raw.extend(unescaped(line));
        }
    }
    cases
}

/// `length 5`, as vector files have it.
pub(crate) fn name_of(framing: Framing) -> String {
    match framing {
        Framing::None => "none".to_owned(),
        Framing::Length(bytes) => format!("length {bytes}"),
        Framing::Chunked => "chunked".to_owned(),
        Framing::UntilClose => "until close".to_owned(),
    }
}

/// Resolves `\\`, `\t`, `\r`, `\n`, `\0`, `\s` (a space), `\xNN`, and `\(N:text)`, which is N times the text.
/// `\|`, where a server waits, is nothing.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let bytes = unescaped_until(&mut rest, None);
    assert!(rest.is_empty(), "{text}");
    bytes
}

fn unescaped_until(rest: &mut &[u8], end: Option<u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((&byte, after)) = rest.split_first() {
        *rest = after;
        if byte != b'\\' {
            if Some(byte) == end {
                return bytes;
            }
            bytes.push(byte);
            continue;
        }
        let (escape, after) = after.split_first().expect("something after a backslash");
        *rest = after;
        bytes.push(match escape {
            b'\\' => b'\\',
            b't' => b'\t',
            b'r' => b'\r',
            b'n' => b'\n',
            b's' => b' ',
            b'0' => 0,
            b'|' => continue,
            b'x' => {
                let (digits, after) = after.split_at(2);
                *rest = after;
                let digits = std::str::from_utf8(digits).expect("two hex digits");
                u8::from_str_radix(digits, 16).expect("two hex digits")
            }
            b'(' => {
                let colon = after.iter().position(|&byte| byte == b':').expect("`\\(N:text)`");
                *rest = &after[colon + 1..];
                let times = std::str::from_utf8(&after[..colon]).expect("a number");
                bytes.extend(unescaped_until(rest, Some(b')')).repeat(times.parse().expect("a number")));
                continue;
            }
            other => panic!("unknown escape `{}`", *other as char),
        });
    }
    assert!(end.is_none(), "`\\(` without its `)`");
    bytes
}
