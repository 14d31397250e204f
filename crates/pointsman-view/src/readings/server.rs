//! The servers whose readings are known.

use pointsman_content::ParameterNames;

use super::cookie::CookieReading;

/// A kind of server, by how it reads requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Server {
    /// Go's `net/http` and `encoding/json`.
    Go,
    /// Werkzeug (Flask), Django, `http.cookies` and WSGI.
    Python,
    /// PHP's `$_GET`, `$_POST` and `$_COOKIE`.
    Php,
    /// Node.js with Express, qs, cookie and busboy.
    Node,
    /// ASP.NET Core and `System.Text.Json`.
    Dotnet,
    /// Servlet containers: Tomcat, Jetty.
    Java,
    /// nginx's `location`, `$arg_NAME` and `$cookie_NAME`.
    Nginx,
}

/// Which of several values a server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    All,
    First,
    Last,
}

/// What a server does with several lines of one header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// It takes one of them.
    One,
    /// It joins them with this between them.
    Joined(&'static [u8]),
}

/// How a server reads a path, once it is in normal form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathReading {
    /// All percent-codes are decoded.
    pub(crate) decodes: bool,
    /// Runs of slashes are one slash.
    pub(crate) merges_slashes: bool,
    /// `;` and what follows it in a segment are path parameters.
    pub(crate) drops_parameters: bool,
    /// Routes ignore case and a slash at the end.
    pub(crate) is_lax: bool,
}

impl Server {
    /// All of them.
    pub const ALL: [Server; 7] =
        [Server::Go, Server::Python, Server::Php, Server::Node, Server::Dotnet, Server::Java, Server::Nginx];

    /// Its name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Server::Go => "go",
            Server::Python => "python",
            Server::Php => "php",
            Server::Node => "node",
            Server::Dotnet => "dotnet",
            Server::Java => "java",
            Server::Nginx => "nginx",
        }
    }

    pub(crate) fn path(self) -> PathReading {
        let decodes = PathReading { decodes: true, ..PathReading::default() };
        match self {
            Server::Go => decodes,
            Server::Python | Server::Php | Server::Nginx => PathReading { merges_slashes: true, ..decodes },
            Server::Node => PathReading { is_lax: true, ..PathReading::default() },
            Server::Dotnet => PathReading { is_lax: true, ..decodes },
            Server::Java => PathReading { drops_parameters: true, merges_slashes: true, ..decodes },
        }
    }

    pub(crate) fn parameters(self) -> ParameterNames {
        let literal = ParameterNames::default();
        match self {
            Server::Php => ParameterNames { php: true, brackets: true, ..literal },
            Server::Node => ParameterNames { brackets: true, ..literal },
            Server::Dotnet | Server::Nginx => ParameterNames { ignores_case: true, ..literal },
            Server::Go | Server::Python | Server::Java => literal,
        }
    }

    /// Whether a parameter with a bad percent-code, or a `;`, is not there.
    pub(crate) fn drops_bad_parameters(self) -> bool {
        matches!(self, Server::Go | Server::Java)
    }

    pub(crate) fn cookies(self) -> CookieReading {
        let literal = CookieReading::default();
        match self {
            Server::Go => CookieReading { unquotes: true, drops_invalid: true, ..literal },
            Server::Python => CookieReading {
                unquotes: true,
                unescapes: true,
                trims_unicode: true,
                splits_blanks: true,
                ..literal
            },
            Server::Php => CookieReading { decodes: true, names: self.parameters(), ..literal },
            Server::Node => CookieReading { unquotes: true, decodes: true, ..literal },
            Server::Dotnet => CookieReading { decodes: true, names: self.parameters(), ..literal },
            Server::Java => CookieReading { unquotes: true, unescapes: true, splits_commas: true, ..literal },
            Server::Nginx => CookieReading { names: self.parameters(), splits_commas: true, ..literal },
        }
    }

    pub(crate) fn lines(self) -> Lines {
        match self {
            Server::Go | Server::Java | Server::Php => Lines::One,
            Server::Node | Server::Nginx => Lines::Joined(b", "),
            Server::Python | Server::Dotnet => Lines::Joined(b","),
        }
    }

    /// Whether names of JSON members that differ in case are one.
    fn folds_members(self) -> bool {
        matches!(self, Server::Go | Server::Dotnet)
    }
}

/// A set of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Servers(u8);

impl Servers {
    /// None of them: requests are read literally alone.
    pub const NONE: Servers = Servers(0);

    /// The set with one more.
    #[must_use]
    pub fn with(self, server: Server) -> Servers {
        Servers(self.0 | 1 << server as u8)
    }

    /// Those of both sets.
    #[must_use]
    pub fn and(self, other: Servers) -> Servers {
        Servers(self.0 | other.0)
    }

    /// Whether it is in the set.
    #[must_use]
    pub fn has(self, server: Server) -> bool {
        self.0 & 1 << server as u8 != 0
    }

    /// Whether one of them takes members of JSON by names in any case.
    pub(crate) fn fold_members(self) -> bool {
        self.iter().any(Server::folds_members)
    }

    /// Whether one of them takes parameters by other names than those that were sent.
    pub(crate) fn rewrite_parameters(self) -> bool {
        self.iter().any(|server| !server.parameters().is_literal())
    }

    /// Those in the set.
    pub fn iter(self) -> impl Iterator<Item = Server> {
        Server::ALL.into_iter().filter(move |server| self.has(*server))
    }
}

impl Default for Servers {
    /// All that are known.
    fn default() -> Servers {
        Server::ALL.into_iter().fold(Servers::NONE, Servers::with)
    }
}
