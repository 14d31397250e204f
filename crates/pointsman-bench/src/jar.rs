//! The cookies of one user, kept and sent as browsers do (RFC 6265 section 5). Invariant: a jar has a bound.

use cookie::Cookie;

/// Cookies of a user; another one takes the place of the oldest.
const COOKIES_MAX: usize = 64;
/// Name and value of a cookie together, as browsers have it.
const COOKIE_BYTES_MAX: usize = 4096;

/// What a server gave to one user.
#[derive(Debug, Default)]
pub(crate) struct Jar(Vec<Kept>);

#[derive(Debug)]
struct Kept {
    name: String,
    value: String,
    host: String,
    /// Whether hosts below `host` get it, too.
    is_of_domain: bool,
    path: String,
    needs_tls: bool,
    /// In seconds since 1970.
    ends_s: Option<i64>,
}

/// Whom a request is for: what decides which cookies it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'p> {
    /// A name in small letters, or an address.
    pub(crate) host: &'p str,
    /// Without the query.
    pub(crate) path: &'p str,
    pub(crate) is_over_tls: bool,
}

impl Jar {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes what a Set-Cookie field says. False: it is none that is kept.
    pub(crate) fn take(&mut self, field: &[u8], place: Place<'_>, now_s: i64) -> bool {
        // What is sent is a line of a head.
        if field.iter().any(u8::is_ascii_control) {
            return false;
        }
        let Some(cookie) = std::str::from_utf8(field).ok().and_then(|text| Cookie::parse(text).ok()) else {
            return false;
        };
        let (name, value) = cookie.name_value();
        let needs_tls = cookie.secure().unwrap_or_default();
        if name.len() + value.len() > COOKIE_BYTES_MAX || needs_tls && !place.is_over_tls {
            return false;
        }
        let Some((host, is_of_domain)) = host_of(&cookie, place.host) else { return false };
        let path = cookie.path().filter(|path| path.starts_with('/'));
        let path = path.map_or_else(|| default_path(place.path), str::to_owned);
        if path.len() > COOKIE_BYTES_MAX {
            return false;
        }
        let kept = Kept {
            name: name.to_owned(),
            value: value.to_owned(),
            host,
            is_of_domain,
            path,
            needs_tls,
            ends_s: end_of(&cookie, now_s),
        };
        let is_same =
            |other: &Kept| other.name == kept.name && other.host == kept.host && other.path == kept.path;
        let known = self.0.iter().position(is_same);
        match (kept.ends_s.is_some_and(|end| end <= now_s), known) {
            (true, Some(at)) => drop(self.0.remove(at)),
            (true, None) => {}
            // It keeps its place in the order.
            (false, Some(at)) => self.0[at] = kept,
            (false, None) => {
                if self.0.len() == COOKIES_MAX {
                    self.0.remove(0);
                }
                self.0.push(kept);
            }
        }
        true
    }

    /// Appends a Cookie field, if there are any for this place: those of longer paths first.
    pub(crate) fn write(&self, into: &mut Vec<u8>, place: Place<'_>, now_s: i64) {
        let mut fitting: Vec<&Kept> = self.0.iter().filter(|kept| kept.is_for(place, now_s)).collect();
        fitting.sort_by_key(|kept| std::cmp::Reverse(kept.path.len()));
        let mut lead: &[u8] = b"Cookie: ";
        for kept in &fitting {
            for part in [lead, kept.name.as_bytes(), b"=", kept.value.as_bytes()] {
                into.extend_from_slice(part);
            }
            lead = b"; ";
        }
        if !fitting.is_empty() {
            into.extend_from_slice(b"\r\n");
        }
    }
}

impl Kept {
    fn is_for(&self, place: Place<'_>, now_s: i64) -> bool {
        let of_host = if self.is_of_domain {
            is_below(place.host, &self.host)
        } else {
            place.host.eq_ignore_ascii_case(&self.host)
        };
        let of_path = place
            .path
            .strip_prefix(self.path.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/'));
        of_host
            && of_path
            && (place.is_over_tls || !self.needs_tls)
            && self.ends_s.is_none_or(|end| end > now_s)
    }
}

/// The host that it belongs to, and whether those below it get it as well. Nothing: it is not this host's to give.
fn host_of(cookie: &Cookie<'_>, host: &str) -> Option<(String, bool)> {
    let own = host.to_ascii_lowercase();
    match cookie.domain().map(|domain| domain.trim_start_matches('.').to_ascii_lowercase()) {
        None => Some((own, false)),
        Some(domain) if domain.is_empty() || domain == own => Some((own, !domain.is_empty())),
        // Nobody has a cookie for all of `com`.
        Some(domain) if domain.contains('.') && is_below(&own, &domain) => Some((domain, true)),
        Some(_) => None,
    }
}

/// Section 5.1.3. Nothing is below an address.
fn is_below(host: &str, domain: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    host == domain || !is_address && host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

/// Section 5.1.4: the folder of what was asked for.
fn default_path(path: &str) -> String {
    match path.rfind('/') {
        Some(end) if end > 0 => path[..end].to_owned(),
        _ => "/".to_owned(),
    }
}

/// Max-Age comes before Expires.
fn end_of(cookie: &Cookie<'_>, now_s: i64) -> Option<i64> {
    let age = cookie.max_age().map(|age| now_s.saturating_add(age.whole_seconds()));
    age.or_else(|| cookie.expires_datetime().map(|time| time.unix_timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: i64 = 1_800_000_000;

    /// `https://host/path`.
    fn place(url: &str) -> Place<'_> {
        let (is_over_tls, rest) = match url.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, url.strip_prefix("http://").expect("a URL")),
        };
        let (host, path) = rest.split_at(rest.find('/').expect("a path"));
        Place { host, path, is_over_tls }
    }

    fn sent(jar: &Jar, url: &str) -> String {
        let mut bytes = Vec::new();
        jar.write(&mut bytes, place(url), NOW_S);
        String::from_utf8(bytes).expect("text")
    }

    /// What is sent to `asked` behind these fields of answers from `from`.
    fn check(from: &str, fields: &[&str], asked: &str, expected: &str) {
        let mut jar = Jar::default();
        for field in fields {
            jar.take(field.as_bytes(), place(from), NOW_S);
        }
        let line = if expected.is_empty() { String::new() } else { format!("Cookie: {expected}\r\n") };
        assert_eq!(sent(&jar, asked), line, "{fields:?} from {from} to {asked}");
    }

    #[test]
    fn cookies_go_back_where_browsers_send_them() {
        let shop = "http://shop.example/a/b";
        check(shop, &["s=1"], "http://shop.example/a/c", "s=1");
        check(shop, &["s=1"], "http://shop.example/a", "s=1");
        check(shop, &["s=1"], "http://shop.example/ab", "");
        check(shop, &["s=1"], "http://www.shop.example/a/", "");
        check(shop, &["s=1; Path=/"], "http://SHOP.example/x", "s=1");
        check(shop, &["s=1; Path=/x/"], "http://shop.example/x/y", "s=1");
        check(shop, &["s=1; Path=x"], "http://shop.example/a/y", "s=1");
        check(shop, &["s=1; Path=/", "t=2; Path=/a", "s=3; Path=/"], "http://shop.example/a/", "t=2; s=3");
        check(shop, &["s=1; Path=/; Domain=.shop.example"], "http://www.shop.example/", "s=1");
        check("http://www.shop.example/", &["s=1; Domain=shop.example"], "http://shop.example/", "s=1");
        check(shop, &["s=1; Domain=other.example"], shop, "");
        check(shop, &["s=1; Domain=example"], shop, "");
        check("http://10.0.0.1/", &["s=1; Domain=0.0.1"], "http://10.0.0.1/", "");
        check(shop, &["s=1; Path=/; Secure"], "https://shop.example/", "");
        check("https://shop.example/", &["s=1; Secure"], "https://shop.example/", "s=1");
        check("https://shop.example/", &["s=1; Secure"], "http://shop.example/", "");
        check(shop, &["s=a=b\"c\"; HttpOnly; SameSite=Lax"], shop, "s=a=b\"c\"");
    }

    #[test]
    fn cookies_end() {
        let shop = "http://shop.example/";
        check(shop, &["s=1; Max-Age=10"], shop, "s=1");
        check(shop, &["s=1", "s=2; Max-Age=0"], shop, "");
        check(shop, &["s=1", "s=2; Expires=Wed, 21 Oct 2015 07:28:00 GMT"], shop, "");
        check(shop, &["s=1; Expires=Wed, 21 Oct 2065 07:28:00 GMT"], shop, "s=1");
        check(shop, &["s=1; Expires=Wed, 21 Oct 2015 07:28:00 GMT; Max-Age=5"], shop, "s=1");
        check(shop, &["s=1; Max-Age=99999999999999999999"], shop, "s=1");
    }

    #[test]
    fn a_jar_has_a_bound_and_takes_no_nonsense() {
        let mut jar = Jar::default();
        let shop = place("http://shop.example/");
        for number in 0..1000 {
            assert!(jar.take(format!("c{number}=1").as_bytes(), shop, NOW_S));
        }
        assert_eq!(jar.0.len(), COOKIES_MAX);
        assert!(sent(&jar, "http://shop.example/").ends_with("c999=1\r\n"));
        let long = format!("a={}", "x".repeat(COOKIE_BYTES_MAX));
        let path = format!("a=1; Path=/{}", "x".repeat(COOKIE_BYTES_MAX));
        for bad in
            [&b""[..], b"novalue", b"=x", b"a=\xff", b";", b"a=b\r\nX: y", long.as_bytes(), path.as_bytes()]
        {
            assert!(!jar.take(bad, shop, NOW_S), "{bad:?}");
        }
    }
}
