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

/// Resolves `\\`, `\t`, `\r`, `\n` and `\xNN`.
fn unescaped(text: &str) -> Vec<u8> {
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
