//! How requests are told apart by the table of what can be asked.

use crate::routes::ROUTES;
use crate::shape::Shape;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Metrics in Prometheus' text format.
    Metrics,
    /// Whether the switch serves.
    Health,
    /// The description of this API.
    OpenApi,
    /// A reload, or what it would change.
    Reload,
    /// What serves: listeners, rules, pools.
    Plan,
    /// Who asks, and what they may do.
    Access,
    /// What comes and what becomes of it, by listener, rule, pool and server.
    Traffic,
    /// The slowest of the requests, and those that failed.
    Requests,
    /// The rules of a listener.
    Rules,
    /// Other rules in their place.
    PublishRules,
    /// What is wrong with such rules.
    ValidateRules,
    /// What such rules decide otherwise.
    CompareRules,
    /// What there is to say of rules, right or wrong, while somebody writes them.
    CheckRules,
    /// The same of the rules that serve.
    Check,
    /// What other rules say of a request.
    ExplainRules,
    /// What the rules that serve say of one.
    Explain,
    /// Rules in their one form.
    FormatRules,
    /// What rules are written with.
    Vocabulary,
    /// A candidate beside what serves: the files on disk.
    BeginDryRun,
    /// The same with other rules for a listener.
    BeginDryRunOfRules,
    /// What it has found.
    DryRun,
    /// Its end.
    EndDryRun,
    /// Which rules have served.
    Versions,
    /// The text of some that have.
    Version,
    /// What they decide otherwise than others that have, or do.
    CompareVersion,
    /// Such rules in the place of those that serve.
    RestoreVersion,
    /// Every pool with its servers.
    Pools,
    /// One pool.
    Pool,
    /// A server, with what has become of it lately.
    Server,
    /// What is set of a server by hand.
    SetServerState,
    /// A server in the configuration, new or in the place of what stands there.
    PutServer,
    /// Other values of some of its keys.
    ChangeServer,
    /// A server less in the configuration.
    RemoveServer,
    /// The classes of bandwidth, and what they had.
    Bandwidth,
    /// The certificates of all listeners.
    Certificates,
    /// One of them.
    Certificate,
    /// Another one in its place.
    ReplaceCertificate,
    /// Clients that stay with servers of a pool.
    StickyClients,
    /// Some of them forgotten.
    ForgetStickyClients,
    /// One of them forgotten.
    ForgetStickyClient,
    /// Those forgotten that stay with targets.
    ForgetStickyTargets,
    /// How much the switch says of itself.
    LogLevel,
    /// More or less of it.
    SetLogLevel,
}

impl Call {
    /// Whether it is a question that is asked at every key somebody types, and that changes nothing: it leaves no audit line
    /// where it is answered.
    pub(crate) fn is_typed(self) -> bool {
        matches!(self, Call::CheckRules | Call::ExplainRules | Call::Explain | Call::FormatRules)
    }
}

/// What whoever asks must be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Reading is free on the loopback; from elsewhere it needs a token or a client certificate.
    Read,
    /// A token or a client certificate, from wherever it comes.
    Change,
}

/// A parameter of the query.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) kind: ParameterKind,
    pub(crate) doc: &'static str,
}

/// What a parameter must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    /// `true` or `false`.
    Flag,
    /// Up to 200 characters of text, percent-encoded.
    Text,
    /// Up to 64 letters and digits, with `.`, `_` and `-` between them: it may stand in a header line.
    Id,
    /// A whole number.
    Number { min: u32, max: u32 },
    /// One of these words.
    Word(&'static [&'static str]),
}

/// Characters of a parameter that is text.
pub(crate) const PARAMETER_CHARACTERS_MAX: usize = 200;
pub(crate) const ID_CHARACTERS_MAX: usize = 64;
/// The longest body of a route that reads none: what is sent counts for nothing.
const UNREAD_BYTES_MAX: u64 = 64 * 1024;

/// What a good answer is.
#[derive(Debug)]
pub(crate) enum Answer {
    Text,
    Json(&'static Shape),
}

/// What a route reads.
#[derive(Debug)]
pub(crate) struct Body {
    /// Of JSON; a text where there is none.
    pub(crate) shape: Option<&'static Shape>,
    pub(crate) doc: &'static str,
    pub(crate) bytes_max: u64,
}

/// One thing that can be asked.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    /// What stands in braces is any one segment.
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
    pub(crate) call: Call,
    pub(crate) summary: &'static str,
    pub(crate) query: &'static [Parameter],
    /// What `If-Match` says, where it is heeded.
    pub(crate) if_match: Option<&'static str>,
    /// What its body is, where it reads one.
    pub(crate) body: Option<&'static Body>,
    pub(crate) answer: Answer,
    /// Statuses of refusals that are this route's own, with what they mean.
    pub(crate) refusals: &'static [(u16, &'static str)],
}

/// What a method and a path lead to.
#[derive(Debug)]
pub(crate) enum Found {
    /// This.
    Route(&'static Route),
    /// Other methods than these are not answered here.
    Methods(String),
    /// Nothing.
    Nothing,
}

pub(crate) fn find(method: &str, path: &str) -> Found {
    // HEAD is GET without the body.
    let wanted = if method == "HEAD" { "GET" } else { method };
    let here = || ROUTES.iter().filter(|route| route.names_in(path).is_some());
    if let Some(route) = here().find(|route| route.method == wanted) {
        return Found::Route(route);
    }
    let methods = here().flat_map(|route| match route.method {
        "GET" => ["GET", "HEAD"].as_slice(),
        _ => std::slice::from_ref(&route.method),
    });
    let methods: Vec<&str> = methods.copied().collect();
    if methods.is_empty() { Found::Nothing } else { Found::Methods(methods.join(", ")) }
}

impl Route {
    /// Bytes that its body may have.
    pub(crate) fn body_bytes_max(&self) -> u64 {
        self.body.map_or(UNREAD_BYTES_MAX, |body| body.bytes_max)
    }

    /// What stands in a path where this one has braces. `None`: it is another path.
    pub(crate) fn names_in(&self, path: &str) -> Option<Vec<String>> {
        let mut names = Vec::new();
        let mut segments = path.split('/');
        for wanted in self.path.split('/') {
            let segment = segments.next()?;
            if wanted.starts_with('{') && !segment.is_empty() {
                names.push(decoded(segment)?);
            } else if wanted != segment {
                return None;
            }
        }
        segments.next().is_none().then_some(names)
    }

    /// The parameters of a query; the error says which is not known or not understood.
    pub(crate) fn query(&self, query: &str) -> Result<Vec<(&'static str, String)>, String> {
        let given = query.split('&').filter(|pair| !pair.is_empty());
        let read = given.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let Some(known) = self.query.iter().find(|known| known.name == name) else {
                let names: Vec<String> = self.query.iter().map(|known| format!("`{}`", known.name)).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(format!("no parameter `{name}`; there is {names}"));
            };
            let is_flag = matches!(value, "true" | "false");
            match known.kind {
                ParameterKind::Flag if is_flag => Ok((known.name, value.to_owned())),
                ParameterKind::Flag => Err(format!("`{name}` is `true` or `false`")),
                ParameterKind::Number { min, max } => match value.parse::<u32>() {
                    Ok(number) if (min..=max).contains(&number) => Ok((known.name, number.to_string())),
                    _ => Err(format!("`{name}` is a number from {min} to {max}")),
                },
                ParameterKind::Word(words) if words.contains(&value) => Ok((known.name, value.to_owned())),
                ParameterKind::Word(words) => {
                    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
                    Err(format!("`{name}` is {}", words.join(" or ")))
                }
                ParameterKind::Id if is_id(value) => Ok((known.name, value.to_owned())),
                ParameterKind::Id => {
                    Err(format!("`{name}` is 1 to {ID_CHARACTERS_MAX} letters, digits, `.`, `_` and `-`"))
                }
                ParameterKind::Text => {
                    match decoded(&value.replace('+', " "))
                        .filter(|text| text.chars().count() <= PARAMETER_CHARACTERS_MAX)
                    {
                        Some(text) => Ok((known.name, text)),
                        None => Err(format!(
                            "`{name}` is up to {PARAMETER_CHARACTERS_MAX} characters of text, percent-encoded"
                        )),
                    }
                }
            }
        });
        read.collect()
    }
}

fn is_id(value: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=ID_CHARACTERS_MAX).contains(&value.len()) && value.bytes().all(is_plain)
}

/// What stands behind percent-codes; nothing where it is no text.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_told_apart() {
        assert!(matches!(find("GET", "/health"), Found::Route(route) if route.call == Call::Health));
        assert!(matches!(find("HEAD", "/health"), Found::Route(route) if route.call == Call::Health));
        assert!(matches!(find("POST", "/health"), Found::Methods(methods) if methods == "GET, HEAD"));
        assert!(matches!(find("HEAD", "/api/v1/reload"), Found::Methods(methods) if methods == "POST"));
        assert!(matches!(find("GET", "/health/"), Found::Nothing));
        let rules = "/api/v1/listeners/shop/rules";
        assert!(
            matches!(find("PUT", rules), Found::Route(route) if route.names_in(rules).expect("it is its") == ["shop"])
        );
        assert!(matches!(find("POST", rules), Found::Methods(methods) if methods == "GET, HEAD, PUT"));
        assert!(matches!(find("GET", "/api/v1/listeners//rules"), Found::Nothing));
        let server = "/api/v1/pools/fast/servers/%5b::1%5D:80";
        let Found::Route(route) = find("GET", server) else { panic!("there is one") };
        assert_eq!(route.names_in(server).expect("it is its"), ["fast", "[::1]:80"]);
        assert!(matches!(find("GET", "/api/v1/pools/fast/servers/%f"), Found::Nothing));
        assert!(matches!(find("GET", "/api/v1/listeners/a/b/rules"), Found::Nothing));
    }

    #[test]
    fn what_changes_something_says_so() {
        for route in ROUTES {
            // What is asked stands in a body there, and what is known is read.
            let is_safe = route.method == "GET" || route.call == Call::Explain;
            assert_eq!(route.needs == Needs::Read, is_safe, "{} {}", route.method, route.path);
        }
    }

    #[test]
    fn parameters() {
        let Found::Route(reload) = find("POST", "/api/v1/reload") else { panic!("there is one") };
        assert_eq!(reload.query("dry_run=true&colour=false").expect("good").len(), 2);
        assert!(reload.query("").expect("good").is_empty());
        assert_eq!(
            reload.query("dry=true").expect_err("bad"),
            "no parameter `dry`; there is `dry_run`, `colour`"
        );
        assert_eq!(reload.query("dry_run").expect_err("bad"), "`dry_run` is `true` or `false`");
        let Found::Route(restore) = find("POST", "/api/v1/versions/3/restore") else {
            panic!("there is one")
        };
        assert_eq!(restore.query("why=it%20was+b%c3%a4d").expect("good"), [("why", "it was bäd".to_owned())]);
        let Found::Route(check) = find("POST", "/api/v1/listeners/shop/rules/check") else {
            panic!("there is one")
        };
        assert_eq!(check.query("about=all&within_ms=7").expect("good").len(), 2);
        assert_eq!(check.query("about=some").expect_err("bad"), "`about` is `changed` or `all`");
        assert_eq!(check.query("within_ms=0").expect_err("bad"), "`within_ms` is a number from 1 to 10000");
        let Found::Route(begin) = find("POST", "/api/v1/dry-run") else { panic!("there is one") };
        assert_eq!(begin.query("id=a-1.b_2").expect("good"), [("id", "a-1.b_2".to_owned())]);
        for bad in ["id=", "id=%22", "id=a\"", "id=a+b", &format!("id={}", "x".repeat(65))] {
            let refused = begin.query(bad).expect_err("bad");
            assert_eq!(refused, "`id` is 1 to 64 letters, digits, `.`, `_` and `-`");
        }
        for bad in ["why=%", "why=%2", "why=%zz", "why=%ff", &format!("why={}", "x".repeat(201))] {
            assert!(restore.query(bad).is_err(), "{bad}");
        }
    }
}
