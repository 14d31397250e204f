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
}

/// What whoever asks must be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Reading is free on the loopback; from elsewhere it needs a token.
    Read,
    /// A token, from wherever it comes.
    Change,
}

/// One thing that can be asked.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
    pub(crate) call: Call,
    pub(crate) summary: &'static str,
    /// Parameters of the query, each `true` or `false`, with what they mean.
    pub(crate) query: &'static [(&'static str, &'static str)],
    /// Of a good answer.
    pub(crate) media_type: &'static str,
    /// Statuses of refusals that are this route's own, with what they mean.
    pub(crate) refusals: &'static [(u16, &'static str)],
}

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";
const COLOUR: (&str, &str) = ("colour", "Texts for people have colours for a terminal.");

pub(crate) static ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/metrics",
        needs: Needs::Read,
        call: Call::Metrics,
        summary: "Metrics in Prometheus' text format.",
        query: &[],
        media_type: TEXT,
        refusals: &[],
    },
    Route {
        method: "GET",
        path: "/health",
        needs: Needs::Read,
        call: Call::Health,
        summary: "Whether the switch serves.",
        query: &[],
        media_type: TEXT,
        refusals: &[(503, "It drains.")],
    },
    Route {
        method: "GET",
        path: "/api/v1/openapi.json",
        needs: Needs::Read,
        call: Call::OpenApi,
        summary: "This description.",
        query: &[],
        media_type: JSON,
        refusals: &[],
    },
    Route {
        method: "POST",
        path: "/api/v1/reload",
        needs: Needs::Change,
        call: Call::Reload,
        summary: "Reads the configuration and its files again, as SIGHUP does, and answers when the new plan serves.",
        query: &[
            (
                "dry_run",
                "Changes nothing, and says what the rules on disk decide otherwise than those that serve.",
            ),
            COLOUR,
        ],
        media_type: JSON,
        refusals: &[
            (409, "Another comparison is going on."),
            (422, "The configuration is wrong; `findings` and `text` say where."),
            (503, "It drains, or there is no thread for a comparison."),
            (504, "The comparison takes too long."),
        ],
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
    let here = || ROUTES.iter().filter(|route| route.path == path);
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
    /// The parameters of a query; the error says which is not known or not understood.
    pub(crate) fn query(&self, query: &str) -> Result<Vec<(&'static str, String)>, String> {
        let given = query.split('&').filter(|pair| !pair.is_empty());
        let read = given.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let known = self.query.iter().find(|(known, _)| *known == name);
            let Some((known, _)) = known else {
                let names: Vec<String> = self.query.iter().map(|(name, _)| format!("`{name}`")).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(format!("no parameter `{name}`; there is {names}"));
            };
            match value {
                "true" | "false" => Ok((*known, value.to_owned())),
                _ => Err(format!("`{known}` is `true` or `false`")),
            }
        });
        read.collect()
    }
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
    }
}
