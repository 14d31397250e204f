//! The request that a client makes of a redirect.

use super::Witness;

impl Witness {
    /// The request that its client makes next, where a Location sends it to the same listener. Nothing where it leads
    /// elsewhere: to another scheme or port, or without a path from the root.
    pub(crate) fn redirected(&self, location: &str, keeps_method: bool) -> Option<Witness> {
        let head_end = self.bytes.windows(4).position(|end| end == b"\r\n\r\n")?;
        let head = std::str::from_utf8(self.bytes.get(..head_end)?).ok()?;
        let (line, fields) = head.split_once("\r\n")?;
        let [method, _, version] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        // Another method follows the other redirects, and no body.
        if !keeps_method && !matches!(method, "GET" | "HEAD") {
            return None;
        }
        let scheme = self.connection.scheme();
        let location = location.split('#').next().unwrap_or_default();
        let (authority, target) = match location.split_once("://") {
            Some((named, _)) if !named.eq_ignore_ascii_case(scheme) && !named.contains('/') => return None,
            Some((named, rest)) if !named.contains('/') => split_authority(rest),
            _ => match location.strip_prefix("//") {
                Some(rest) => split_authority(rest),
                None => (None, location.to_owned()),
            },
        };
        if !target.starts_with('/') {
            return None;
        }
        let mut bytes = format!("{method} {target} {version}");
        for field in fields.split("\r\n") {
            let is_host = field.get(..5).is_some_and(|name| name.eq_ignore_ascii_case("host:"));
            match authority.filter(|_| is_host) {
                Some(authority) => {
                    let asked = field.get(5..).unwrap_or_default().trim();
                    if port(asked, scheme) != port(authority, scheme) {
                        return None;
                    }
                    bytes += &format!("\r\nHost: {authority}");
                }
                None => bytes += &format!("\r\n{field}"),
            }
        }
        let mut bytes = bytes.into_bytes();
        bytes.extend_from_slice(self.bytes.get(head_end..)?);
        Some(Witness { bytes, ..self.clone() })
    }
}

/// `a.example:80/path?query` in two.
fn split_authority(text: &str) -> (Option<&str>, String) {
    let end = text.find(['/', '?']).unwrap_or(text.len());
    let (authority, rest) = text.split_at(end);
    let slash = if rest.starts_with('/') { "" } else { "/" };
    (Some(authority), format!("{slash}{rest}"))
}

/// The port of an authority, or that of its scheme.
fn port<'a>(authority: &'a str, scheme: &str) -> &'a str {
    let own = authority
        .rsplit_once(':')
        .map(|(_, port)| port)
        .filter(|port| port.bytes().all(|b| b.is_ascii_digit()));
    own.filter(|port| !port.is_empty()).unwrap_or(if scheme == "https" { "443" } else { "80" })
}
