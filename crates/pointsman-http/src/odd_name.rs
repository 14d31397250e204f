//! Names of fields that some servers take for other names.
//!
//! CGI and its heirs hand a field over as a variable of capital letters, digits and `_`, so that `X_User`,
//! `X.User` and `X-User` are one to them (RFC 3875 section 4.1.18).

use crate::{HeaderKind, Refusal, RequestHead, is_token};

/// What becomes of a request's fields whose names hold more than letters, digits and `-`. Those that read
/// like Content-Length and Transfer-Encoding are refused by [`RequestHead::parse`] already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OddNames<'n> {
    /// They are taken away: neither rules nor servers see them.
    #[default]
    Drop,
    /// The request is refused.
    Refuse,
    /// They stay, but for those that read like one of these names and are spelled otherwise, or like one that
    /// the switch acts on.
    Keep(&'n [Box<str>]),
}

impl OddNames<'_> {
    /// Whether rules and servers never see a field of this name: it is none, or whoever sends it is refused, or it is taken
    /// away, by [`RequestHead::parse`] and [`RequestHead::settle_odd_names`].
    pub fn hide(self, name: &[u8]) -> bool {
        match HeaderKind::of_name(name) {
            HeaderKind::Odd => !is_token(name) || !self.keep(name),
            kind => kind == HeaderKind::Lookalike || name.is_empty(),
        }
    }

    /// Whether a field stays whose name is odd.
    fn keep(self, name: &[u8]) -> bool {
        let OddNames::Keep(but) = self else { return false };
        let is_other = |other: &[u8]| reads_like(name, other) && !name.eq_ignore_ascii_case(other);
        !reads_like_a_known_one(name) && !but.iter().any(|other| is_other(other.as_bytes()))
    }
}

impl RequestHead {
    /// Does to the fields with odd names what is to be done, after [`RequestHead::parse`].
    pub fn settle_odd_names(&mut self, buffer: &[u8], odd_names: OddNames<'_>) -> Result<(), Refusal> {
        for line in self.lines_mut().iter_mut().filter(|line| line.kind == HeaderKind::Odd) {
            if matches!(odd_names, OddNames::Refuse) {
                return Err(Refusal::OddName);
            }
            let is_taken_away = !odd_names.keep(line.name(buffer));
            line.hidden |= is_taken_away;
            line.dropped |= is_taken_away;
        }
        Ok(())
    }
}

/// Whether a name holds more than letters, digits and `-`.
pub(crate) fn is_odd(name: &[u8]) -> bool {
    !name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Whether two names are one to whoever makes no difference between what is neither a letter nor a digit.
pub(crate) fn reads_like(name: &[u8], other: &[u8]) -> bool {
    name.len() == other.len() && name.iter().zip(other).all(|(&one, &other)| folded(one) == folded(other))
}

fn folded(byte: u8) -> u8 {
    match byte.is_ascii_alphanumeric() {
        true => byte.to_ascii_lowercase(),
        false => b'-',
    }
}

/// Names that the switch sets, takes away or believes: those of [`HeaderKind`] in which a `-` stands.
fn reads_like_a_known_one(name: &[u8]) -> bool {
    const NAMES: [&str; 7] = [
        "content-type",
        "http2-settings",
        "keep-alive",
        "max-forwards",
        "proxy-authorization",
        "proxy-connection",
        "x-real-ip",
    ];
    const PREFIX: &str = "x-forwarded-";
    NAMES.iter().any(|known| reads_like(name, known.as_bytes()))
        || name.get(..PREFIX.len()).is_some_and(|start| reads_like(start, PREFIX.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeadLimits;

    /// What is left of the odd names of a request.
    fn kept(names: &[&str], odd_names: OddNames<'_>) -> Result<Vec<String>, Refusal> {
        let fields: String = names.iter().map(|name| format!("{name}: 1\r\n")).collect();
        let raw = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let mut head = RequestHead::default();
        assert_eq!(head.parse(raw.as_bytes(), &HeadLimits::default()), Ok(true));
        head.settle_odd_names(raw.as_bytes(), odd_names)?;
        let lines = head.lines().iter().skip(1);
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        assert!(head.lines().iter().all(|line| line.hidden == line.dropped));
        Ok(lines.filter(|line| !line.dropped).map(|line| text(line.name(raw.as_bytes()))).collect())
    }

    #[test]
    fn odd_names_are_dropped_refused_or_kept() {
        let names = [
            "X-User",
            "X_User",
            "x.user",
            "X-Api_Key",
            "X_Forwarded_For",
            "x-forwarded.prefix",
            "Max_Forwards",
        ];
        assert_eq!(kept(&names, OddNames::Drop), Ok(vec!["X-User".to_owned()]));
        assert_eq!(kept(&names, OddNames::Refuse), Err(Refusal::OddName));
        assert_eq!(kept(&["X-User", "X1"], OddNames::Refuse), Ok(vec!["X-User".to_owned(), "X1".to_owned()]));
        let but = ["x-user".into(), "x-api_key".into()];
        assert_eq!(kept(&names, OddNames::Keep(&but)), Ok(vec!["X-User".to_owned(), "X-Api_Key".to_owned()]));
        assert_eq!(kept(&["X_User", "X-Users_"], OddNames::Keep(&[])).map(|names| names.len()), Ok(2));
    }

    /// What is said of a name without a request is what becomes of the field in one.
    #[test]
    fn a_name_is_hidden_where_no_request_shows_it() {
        let but = ["x-user".into(), "x-api_key".into()];
        let names = [
            "X-User",
            "X_User",
            "X-Api_Key",
            "X_Api_Key",
            "X_Forwarded_For",
            "X-Forwarded-For",
            "Max_Forwards",
            "Content_Length",
            "Transfer.Encoding",
            "Content-Length",
            "Content_Lengths",
            "Host",
            "T_E",
            "a b",
            "",
        ];
        for odd_names in [OddNames::Drop, OddNames::Refuse, OddNames::Keep(&but), OddNames::Keep(&[])] {
            for name in names {
                let value = if name == "Content-Length" { "0" } else { "a" };
                let host = if name == "Host" { "" } else { "Host: a\r\n" };
                let raw = format!("GET / HTTP/1.1\r\n{host}{name}: {value}\r\n\r\n");
                let mut head = RequestHead::default();
                let is_taken = head.parse(raw.as_bytes(), &HeadLimits::default()) == Ok(true)
                    && head.settle_odd_names(raw.as_bytes(), odd_names).is_ok();
                let is_seen = is_taken && head.lines().last().is_some_and(|line| !line.hidden);
                assert_eq!(odd_names.hide(name.as_bytes()), !is_seen, "{name} {odd_names:?}");
            }
        }
    }
}
