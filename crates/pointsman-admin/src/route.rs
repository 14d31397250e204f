//! What can be asked: one table, from which requests are told apart, and the description of the API is made.

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
    /// The rules of a listener.
    Rules,
    /// Other rules in their place.
    PublishRules,
    /// What is wrong with such rules.
    ValidateRules,
    /// What such rules decide otherwise.
    CompareRules,
    /// Which rules have served.
    Versions,
    /// The text of some that have.
    Version,
    /// Such rules in the place of those that serve.
    RestoreVersion,
}

/// What whoever asks must be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Reading is free on the loopback; from elsewhere it needs a token.
    Read,
    /// A token, from wherever it comes.
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
    /// Up to 200 bytes of text, percent-encoded.
    Text,
}

/// Bytes of a parameter that is text.
const PARAMETER_BYTES_MAX: usize = 200;
/// The longest body of a route that reads none: what is sent counts for nothing.
const UNREAD_BYTES_MAX: u64 = 64 * 1024;
/// The longest rules that are taken.
const RULES_BYTES_MAX: u64 = 4 * 1024 * 1024;

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
    /// What its body is, where it reads one.
    pub(crate) body: Option<&'static str>,
    pub(crate) body_bytes_max: u64,
    /// Of a good answer.
    pub(crate) media_type: &'static str,
    /// Statuses of refusals that are this route's own, with what they mean.
    pub(crate) refusals: &'static [(u16, &'static str)],
}

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";
const COLOUR: Parameter = Parameter {
    name: "colour",
    kind: ParameterKind::Flag,
    doc: "Texts for people have colours for a terminal.",
};
const WHY: Parameter =
    Parameter { name: "why", kind: ParameterKind::Text, doc: "The reason, kept with the version." };
const RULES: &str = "The rules as text.";
const WRONG: (u16, &str) = (422, "The rules are wrong; `findings` and `text` say where.");
const CHANGED: (u16, &str) = (409, "A file has changed since it was read, or the listener has no rules.");
const DRAINS: (u16, &str) = (503, "It drains.");
const NO_LISTENER: (u16, &str) = (404, "There is no such listener.");

/// Reads something.
const fn get(path: &'static str, call: Call, summary: &'static str) -> Route {
    Route {
        method: "GET",
        path,
        needs: Needs::Read,
        call,
        summary,
        query: &[],
        body: None,
        body_bytes_max: UNREAD_BYTES_MAX,
        media_type: JSON,
        refusals: &[],
    }
}

/// Changes something.
const fn change(method: &'static str, path: &'static str, call: Call, summary: &'static str) -> Route {
    Route { method, needs: Needs::Change, ..get(path, call, summary) }
}

pub(crate) static ROUTES: &[Route] = &[
    Route { media_type: TEXT, ..get("/metrics", Call::Metrics, "Metrics in Prometheus' text format.") },
    Route {
        media_type: TEXT,
        refusals: &[DRAINS],
        ..get("/health", Call::Health, "Whether the switch serves.")
    },
    get("/api/v1/openapi.json", Call::OpenApi, "This description."),
    Route {
        query: &[
            Parameter {
                name: "dry_run",
                kind: ParameterKind::Flag,
                doc: "Changes nothing, and says what the rules on disk decide otherwise than those that serve.",
            },
            COLOUR,
        ],
        refusals: &[
            (409, "Another comparison is going on."),
            (422, "The configuration is wrong; `findings` and `text` say where."),
            (503, "It drains, or there is no thread for a comparison."),
            (504, "The comparison takes too long."),
        ],
        ..change(
            "POST",
            "/api/v1/reload",
            Call::Reload,
            "Reads the configuration and its files again, as SIGHUP does, and answers when the new plan serves.",
        )
    },
    get("/api/v1/plan", Call::Plan, "What serves: listeners with their rules, and pools with their servers."),
    Route {
        refusals: &[NO_LISTENER],
        ..get(
            "/api/v1/listeners/{name}/rules",
            Call::Rules,
            "The rules of a listener, their version (also in `ETag`), and how often each decided.",
        )
    },
    Route {
        query: &[
            Parameter {
                name: "dry_run",
                kind: ParameterKind::Flag,
                doc: "Changes nothing, and says what these rules decide otherwise than those that serve.",
            },
            WHY,
            COLOUR,
        ],
        body: Some(RULES),
        body_bytes_max: RULES_BYTES_MAX,
        refusals: &[
            NO_LISTENER,
            CHANGED,
            (412, "Other rules serve than `If-Match` says; `rules_version` says which."),
            WRONG,
            (428, "`If-Match` is missing."),
            (500, "The rules file cannot be written."),
            DRAINS,
        ],
        ..change(
            "PUT",
            "/api/v1/listeners/{name}/rules",
            Call::PublishRules,
            "Puts other rules in the place of those of a listener: they serve at once, and stand in its rules file.",
        )
    },
    Route {
        query: &[COLOUR],
        body: Some(RULES),
        body_bytes_max: RULES_BYTES_MAX,
        refusals: &[NO_LISTENER, CHANGED, WRONG],
        ..change(
            "POST",
            "/api/v1/listeners/{name}/rules/validate",
            Call::ValidateRules,
            "Says what is wrong with rules for a listener, and changes nothing.",
        )
    },
    Route {
        query: &[COLOUR],
        body: Some(RULES),
        body_bytes_max: RULES_BYTES_MAX,
        refusals: &[NO_LISTENER, (409, "As above, or another comparison is going on."), WRONG],
        ..change(
            "POST",
            "/api/v1/listeners/{name}/rules/diff",
            Call::CompareRules,
            "Says what rules would decide otherwise than those of a listener that serve, and changes nothing.",
        )
    },
    get(
        "/api/v1/versions",
        Call::Versions,
        "Which rules have served since the switch began: who, when, why, how long.",
    ),
    Route {
        refusals: &[(404, "There is no such version, or no more.")],
        ..get("/api/v1/versions/{n}", Call::Version, "The text of rules that have served.")
    },
    Route {
        query: &[WHY, COLOUR],
        refusals: &[(404, "There is no such version, or no more."), CHANGED, WRONG, DRAINS],
        ..change(
            "POST",
            "/api/v1/versions/{n}/restore",
            Call::RestoreVersion,
            "Lets rules serve again that have served, and writes them to their rules file.",
        )
    },
];

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
    let here = || ROUTES.iter().filter(|route| route.name_in(path).is_some());
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
    /// What stands in a path where this one has braces; empty where it has none. `None`: it is another path.
    pub(crate) fn name_in<'p>(&self, path: &'p str) -> Option<&'p str> {
        let mut name = "";
        let mut segments = path.split('/');
        for wanted in self.path.split('/') {
            let segment = segments.next()?;
            if wanted.starts_with('{') && !segment.is_empty() {
                name = segment;
            } else if wanted != segment {
                return None;
            }
        }
        segments.next().is_none().then_some(name)
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
                ParameterKind::Text => {
                    match decoded(value).filter(|text| text.len() <= PARAMETER_BYTES_MAX) {
                        Some(text) => Ok((known.name, text)),
                        None => Err(format!(
                            "`{name}` is up to {PARAMETER_BYTES_MAX} bytes of text, percent-encoded"
                        )),
                    }
                }
            }
        });
        read.collect()
    }
}

/// What a form or a browser has encoded; nothing where it is no text.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
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
        assert!(matches!(find("PUT", rules), Found::Route(route) if route.name_in(rules) == Some("shop")));
        assert!(matches!(find("POST", rules), Found::Methods(methods) if methods == "GET, HEAD, PUT"));
        assert!(matches!(find("GET", "/api/v1/listeners//rules"), Found::Nothing));
        assert!(matches!(find("GET", "/api/v1/listeners/a/b/rules"), Found::Nothing));
    }

    #[test]
    fn what_changes_something_says_so() {
        for route in ROUTES {
            let is_safe = route.method == "GET";
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
        for bad in ["why=%", "why=%2", "why=%zz", "why=%ff", &format!("why={}", "x".repeat(201))] {
            assert!(restore.query(bad).is_err(), "{bad}");
        }
    }
}
