//! The Connection header: whether the connection goes on, and which fields end at this hop.

use crate::header::is_token;
use crate::{HeaderKind, HeaderLine, Refusal};

/// What all Connection lines of a head say together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionOptions {
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    /// It names `Upgrade`, which means nothing without (RFC 9110 section 7.8).
    pub(crate) upgrade: bool,
}

/// Reads every Connection line and marks the lines that they name as hidden.
pub(crate) fn apply(lines: &mut [HeaderLine], buffer: &[u8]) -> Result<ConnectionOptions, Refusal> {
    let mut options = ConnectionOptions::default();
    for index in 0..lines.len() {
        if lines[index].kind != HeaderKind::Connection {
            continue;
        }
        for option in lines[index].value(buffer).split(|&byte| byte == b',') {
            let option = option.trim_ascii();
            if option.is_empty() {
                continue;
            }
            if option.eq_ignore_ascii_case(b"close") {
                options.close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                options.keep_alive = true;
            } else if !option.eq_ignore_ascii_case(b"connection") {
                // What names itself would hide from the rules what else it says; it ends here anyway.
                options.upgrade |= option.eq_ignore_ascii_case(b"upgrade");
                hide(lines, buffer, option)?;
            }
        }
    }
    Ok(options)
}

fn hide(lines: &mut [HeaderLine], buffer: &[u8], option: &[u8]) -> Result<(), Refusal> {
    if !is_token(option) || must_reach_server(option) {
        return Err(Refusal::Connection);
    }
    for line in lines.iter_mut().filter(|line| line.is_named(option, buffer)) {
        line.hidden = true;
        line.dropped = true;
    }
    Ok(())
}

/// Fields that a client must not be able to take away between the rules and the server.
fn must_reach_server(option: &[u8]) -> bool {
    const NAMES: [&str; 9] = [
        "host",
        "cookie",
        "authorization",
        "expect",
        "forwarded",
        "max-forwards",
        "transfer-encoding",
        "set-cookie",
        "x-real-ip",
    ];
    const PREFIXES: [&str; 2] = ["content-", "x-forwarded-"];
    NAMES.iter().any(|name| option.eq_ignore_ascii_case(name.as_bytes()))
        || PREFIXES.iter().any(|prefix| {
            option.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
        })
}
