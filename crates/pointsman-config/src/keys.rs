//! Every key of a configuration, as data: what parsing accepts, what suggestions offer and what the
//! reference prints are read from these tables and from nowhere else.

mod access_log;
mod admin;
mod balance;
mod bandwidth;
mod dns;
mod health;
mod limit;
mod list;
mod listener_tls;
mod pool;
mod table;
mod traces;

use crate::limits::{BODY_LIMIT_KEYS, LISTENER_LIMIT_KEYS};
use access_log::ACCESS_LOG;
use admin::ADMIN;
pub(crate) use balance::{HASH, SOURCE_ADDRESS};
use bandwidth::BANDWIDTH;
pub(crate) use bandwidth::{TO_CLIENT, TO_SERVER};
use dns::DNS;
use limit::LIMIT;
use list::LIST;
pub(crate) use list::TEXTS;
use listener_tls::LISTENER_TLS;
use pool::POOL;
pub(crate) use pool::POOL_HEADER;
use traces::TRACES;

/// A table of the configuration.
#[derive(Debug)]
pub(crate) struct Table {
    /// As an operator writes its header: `[listener.limits]`; empty for the top level.
    pub(crate) header: &'static str,
    /// What it is for, in a sentence or two.
    pub(crate) doc: &'static str,
    /// Its keys, in groups that are shown one after the other.
    pub(crate) groups: &'static [&'static [Key]],
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    /// As written.
    pub(crate) name: &'static str,
    /// What its value must be.
    pub(crate) kind: Kind,
    /// What holds when it is absent.
    pub(crate) default: Default,
    /// What it does, in a sentence or two.
    pub(crate) doc: &'static str,
}

/// What a value must be.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A whole number between two bounds, both allowed.
    Integer { min: u64, max: u64, unit: &'static str },
    /// `true` or `false`.
    Boolean,
    /// A string, one of these words.
    Word(&'static [&'static str]),
    /// A string; the text says what stands in it.
    Text(&'static str),
    /// A list of strings; the text says what stands in them, in the plural.
    Texts(&'static str),
    /// A string or a list of strings.
    OneOrMoreTexts(&'static str),
    /// A list of strings, said in the plural, and tables of one shape.
    TextsOrTables(&'static str, &'static Table),
    /// A table.
    Table(&'static Table),
    /// A list of tables.
    Tables(&'static Table),
    /// A table whose keys are names, each with a table.
    NamedTables(&'static Table),
}

/// What holds when a key is absent.
#[derive(Debug)]
pub(crate) enum Default {
    /// It may not be absent.
    Required,
    /// It may not be absent, unless this key is there.
    RequiredWithout(&'static str),
    /// What happens then, in words.
    Words(&'static str),
    /// This number.
    Integer(u64),
    /// This truth value.
    Boolean(bool),
    /// This word.
    Word(&'static str),
}

/// The top level of the file.
pub(crate) static ROOT: Table = Table {
    header: "",
    doc: "Keys of the whole process. They stand at the top of the file, before the first table.",
    groups: &[&[
        Key {
            name: "threads",
            kind: Kind::Integer { min: 1, max: 1024, unit: "threads" },
            default: Default::Words("one a core"),
            doc: "Event-loop threads.",
        },
        Key {
            name: "drain_ms_max",
            kind: Kind::Integer { min: 0, max: DAY_MS, unit: "ms" },
            default: Default::Integer(30_000),
            doc: "How long open exchanges may take to end after SIGTERM. 0: they are cut off at once.",
        },
        Key {
            name: "tunnel_drain_ms_max",
            kind: Kind::Integer { min: 0, max: DAY_MS, unit: "ms" },
            default: Default::Integer(20_000),
            doc: "How long open tunnels go on after SIGTERM, and no longer than until a quarter of `drain_ms_max`, at \
                  most 2,000 ms of it, is left. Then they are closed in order, when nothing is on its way in them, \
                  until `drain_ms_max` is over.",
        },
        Key {
            name: "upgrade_ms_max",
            kind: Kind::Integer { min: 1, max: DAY_MS, unit: "ms" },
            default: Default::Integer(30_000),
            doc: "How long the process that SIGUSR2 starts may take to be ready. One that takes longer is ended, and \
                  this one goes on.",
        },
        Key {
            name: "upgrade_idle_ms_max",
            kind: Kind::Integer { min: 0, max: DAY_MS, unit: "ms" },
            default: Default::Integer(5000),
            doc: "How long silent connections of the old process are left after an upgrade, to ask once more, and no \
                  longer than until a quarter of `drain_ms_max`, at most 2,000 ms of it, is left. The answer to \
                  that says that the connection ends.",
        },
        Key {
            name: "watch_ms",
            kind: Kind::Integer { min: 0, max: DAY_MS, unit: "ms" },
            default: Default::Integer(1000),
            doc: "How often the files are looked at for changes. 0: only SIGHUP reloads.",
        },
        Key {
            name: "connections_max",
            kind: Kind::Integer { min: 1, max: 10_000_000, unit: "connections" },
            default: Default::Words("half of the descriptors, see above"),
            doc: "Open connections of clients, in the whole process; more are refused with 503, over TLS by \
                  closing.",
        },
        Key {
            name: "buffer_bytes_max",
            kind: Kind::Integer { min: 1_048_576, max: 1_125_899_906_842_624, unit: "bytes" },
            default: Default::Words("half of the memory, see above"),
            doc: "Memory for connections of clients and what they do: heads, bodies, TLS, in the whole process. \
                  New connections and requests that find none left are refused with 503, over TLS by closing; \
                  what has begun goes on.",
        },
        Key {
            name: "hold_total_bytes_max",
            kind: Kind::Integer { min: 1_048_576, max: 1_125_899_906_842_624, unit: "bytes" },
            default: Default::Integer(268_435_456),
            doc: "Room that is taken by bodies that are held while the rules wait for what they say, in the \
                  whole process, beside what lies with their heads, in pieces of 16 and 64 KiB; it is part of \
                  `buffer_bytes_max`. Where none is left one body at a time is read on all the same, the one \
                  that has waited longest; the others are not, and are refused with 503 and `Retry-After` when \
                  they have waited for `body_ms_max`.",
        },
        Key {
            name: "upstream_idle_connections_max",
            kind: Kind::Integer { min: 0, max: 1_000_000, unit: "connections" },
            default: Default::Integer(8192),
            doc: "Idle connections to servers, in the whole process. 0: none is kept.",
        },
        Key {
            name: "splice_pipes_max",
            kind: Kind::Integer { min: 0, max: 4096, unit: "pipes" },
            default: Default::Integer(64),
            doc: "Pipes through which long bodies with a length pass inside the kernel where both sides are \
                  plain, in the whole process; a body that finds none goes through a buffer. Each takes two \
                  descriptors and up to 1 MiB of the kernel's memory. 0: none.",
        },
        Key {
            name: "own_descriptor_tables",
            kind: Kind::Boolean,
            default: Default::Boolean(false),
            doc: "Whether each thread has a table of descriptors of its own, which costs some processors less than \
                  a common one. Connections are then in `/proc/PID/task/*/fd`, not in `/proc/PID/fd`.",
        },
        Key {
            name: "mirrors_max",
            kind: Kind::Integer { min: 1, max: 1_000_000, unit: "copies" },
            default: Default::Integer(1000),
            doc: "Copies of requests that `mirror` may have on their way, in the whole process, each thread its part. \
                  More are dropped.",
        },
        Key {
            name: "mirror_bytes_max",
            kind: Kind::Integer { min: 1024, max: 16 * 1024 * 1024, unit: "bytes" },
            default: Default::Integer(65_536),
            doc: "Bytes of a request, with its body, of which `mirror` sends a copy. Of a longer one there is none.",
        },
        Key {
            name: "mirror_ms_max",
            kind: Kind::Integer { min: 1, max: DAY_MS, unit: "ms" },
            default: Default::Integer(30_000),
            doc: "How long a copy may take, with its answer. Then its connection is closed.",
        },
        Key {
            name: "sticky_key",
            kind: Kind::Text("32 hex digits"),
            default: Default::Words("random at start"),
            doc: "Keys the hashes of stickiness and of `balance = \"hash\"`, and the `pm_route` cookie. Set it, and keep it secret, \
                  where several nodes must agree or stickiness must outlive a restart.",
        },
        Key {
            name: "sticky_entries_max",
            kind: Kind::Integer { min: 0, max: 16_777_216, unit: "clients" },
            default: Default::Integer(65_536),
            doc: "Sticky clients that are remembered with their servers, in the whole process; 16 bytes each, taken once \
                  a rule is sticky. 0: nobody is remembered. See [below](#when-servers-come-and-go).",
        },
        Key {
            name: "sticky_idle_ms_max",
            kind: Kind::Integer { min: 1000, max: DAY_MS, unit: "ms" },
            default: Default::Integer(1_800_000),
            doc: "How long a sticky client is remembered after its last request, in whole seconds.",
        },
        Key {
            name: "zone",
            kind: Kind::Text("a name"),
            default: Default::Words("none"),
            doc: "Where the switch stands: servers of its zone come before others ([guide](../guide/balancing.md)).",
        },
        Key {
            name: "log_level",
            kind: Kind::Word(&["error", "warn", "info", "debug"]),
            default: Default::Word("info"),
            doc: "What the switch says of itself on [standard error](metrics-and-logs.md#standard-error): what is at least as \
                  grave. `debug` also says why single probes, connections to servers and handshakes fail, 10 lines a second of \
                  each kind at the most. The [admin API](admin-api.md#log-level) sets another one for a while.",
        },
        Key {
            name: "access_log",
            kind: Kind::Table(&ACCESS_LOG),
            default: Default::Words("no access log"),
            doc: "Where the access log is written.",
        },
        Key {
            name: "traces",
            kind: Kind::Table(&TRACES),
            default: Default::Words("no traces"),
            doc: "Where spans of requests go.",
        },
        Key {
            name: "listener",
            kind: Kind::Tables(&LISTENER),
            default: Default::Required,
            doc: "Where clients connect to; one table a listener.",
        },
        Key {
            name: "pool",
            kind: Kind::NamedTables(&POOL),
            default: Default::Words("no pools"),
            doc: "Servers that stand in for each other; one table a pool.",
        },
        Key {
            name: "limit",
            kind: Kind::NamedTables(&LIMIT),
            default: Default::Words("no classes"),
            doc: "How many requests may come that rules limit; one table a class.",
        },
        Key {
            name: "bandwidth",
            kind: Kind::NamedTables(&BANDWIDTH),
            default: Default::Words("no classes"),
            doc: "How many bytes a second those have that rules give bandwidth by; one table a class.",
        },
        Key {
            name: "list",
            kind: Kind::NamedTables(&LIST),
            default: Default::Words("no lists"),
            doc: "Networks, or texts, that rules look into by a name; one table a list.",
        },
        Key {
            name: "dns",
            kind: Kind::Table(&DNS),
            default: Default::Words("as the system looks names up"),
            doc: "How the names of servers are looked up.",
        },
        Key {
            name: "admin",
            kind: Kind::Table(&ADMIN),
            default: Default::Words("no admin listener"),
            doc: "Where the switch shows itself.",
        },
    ]],
};

static LISTENER: Table = Table {
    header: "[[listener]]",
    doc: "Where clients connect to, and what happens to their requests.",
    groups: &[&[
        Key {
            name: "name",
            kind: Kind::Text("a name"),
            default: Default::Required,
            doc: "Unique among listeners: letters, digits, `-` and `_`. It stands in the logs and metrics.",
        },
        Key {
            name: "bind",
            kind: Kind::OneOrMoreTexts("addresses such as `127.0.0.1:8080` or `unix:/run/shop.sock`"),
            default: Default::Required,
            doc: "The address to listen on, or a list of them. Port 0 takes any free one; `unix:` and a path is a Unix \
                  socket. See [below](#where-a-listener-listens).",
        },
        Key {
            name: "ipv6_only",
            kind: Kind::Boolean,
            default: Default::Boolean(false),
            doc: "Whether `[::]` takes connections to IPv6 addresses alone; otherwise those to IPv4 addresses, too.",
        },
        Key {
            name: "unix_mode",
            kind: Kind::Text("permissions in octal digits"),
            default: Default::Words("`\"0660\"`"),
            doc: "The permissions of the files of Unix sockets: who may write to one may connect.",
        },
        Key {
            name: "protocol",
            kind: Kind::Word(&["http", "tcp", "tls-passthrough"]),
            default: Default::Word("http"),
            doc: "What is read of a connection. `http`: its requests. `tcp`: nothing, it goes to a server as it is. \
                  `tls-passthrough`: the ClientHello that it begins with; its server ends TLS. See \
                  [below](#connections-as-they-are).",
        },
        Key {
            name: "rules",
            kind: Kind::Text("a path"),
            default: Default::Words("no rules"),
            doc: "The rules file that decides about each request.",
        },
        Key {
            name: "pool",
            kind: Kind::Text("the name of a pool"),
            default: Default::Words("none"),
            doc: "Takes what no rule decided. May be absent only where the rules end in `else:`.",
        },
        Key {
            name: "trusted_proxies",
            kind: Kind::Texts("networks such as `10.0.0.0/8`, addresses, or `unix:` for Unix sockets"),
            default: Default::Words("`[]`"),
            doc: "Peers that are believed when they name the client, in Forwarded, X-Forwarded-For or a PROXY header.",
        },
        Key {
            name: "proxy_protocol",
            kind: Kind::Word(&["off", "required"]),
            default: Default::Word("off"),
            doc: "`required`: a connection begins with a PROXY header, version 1 or 2, before TLS. Whoever is not in \
                  `trusted_proxies`, or sends none, is cut off. See [below](#the-proxy-protocol).",
        },
        Key {
            name: "x_forwarded",
            kind: Kind::Word(FORWARDED_MODES),
            default: Default::Word("append"),
            doc: "What becomes of X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host. `append` keeps \
                  earlier values from trusted proxies and adds the peer; from others it replaces them.",
        },
        Key {
            name: "forwarded",
            kind: Kind::Word(FORWARDED_MODES),
            default: Default::Word("off"),
            doc: "What becomes of the Forwarded field (RFC 7239), likewise.",
        },
        Key {
            name: "sticky_scope",
            kind: Kind::Word(&["target", "listener"]),
            default: Default::Word("target"),
            doc: "`target`: stickiness chooses a server inside the target of the rule that decides. `listener`: a client \
                  stays with the target that a sticky rule first sent it to, wherever other rules route it. See \
                  [below](#who-stays-with-a-target).",
        },
        Key {
            name: "encoded_slash",
            kind: Kind::Word(&["keep", "refuse"]),
            default: Default::Words("by the rules"),
            doc: "`refuse` answers 400 to a path with `%2F` or `%5C` in it; `keep` leaves them encoded, and \
                  they are no segment border. By default `refuse` for rules that [guard](rules.md#readings) and name \
                  `path`, otherwise `keep`.",
        },
        Key {
            name: "misdirected",
            kind: Kind::Word(&["http2", "certificate", "name"]),
            default: Default::Word("http2"),
            doc: "Which requests over TLS are answered with 421 for their host. `http2`: those over HTTP/2 for a host whose \
                  certificate is another one than that of the handshake. `certificate`: those over HTTP/1.1 likewise. `name`: \
                  besides, those for another host than the server name (SNI) of the handshake. Peers in \
                  `trusted_proxies` are believed. See [below](#a-host-other-than-the-server-name).",
        },
        Key {
            name: "http2",
            kind: Kind::Word(&["off", "on", "only"]),
            default: Default::Word("on"),
            doc: "HTTP/2. Over TLS it is agreed on by `alpn`; a plain connection may begin with it, with prior \
                  knowledge (RFC 9113 section 3.3). `only`: HTTP/1 is not spoken.",
        },
        Key {
            name: "merge_slashes",
            kind: Kind::Boolean,
            default: Default::Words("by the rules"),
            doc: "Whether a run of slashes in a path counts as one. By default `true` for rules that \
                  [guard](rules.md#readings) and name `path`, otherwise `false`.",
        },
        Key {
            name: "readings",
            kind: Kind::OneOrMoreTexts(
                "`common`, `literal`, or servers: `go`, `python`, `php`, `node`, `dotnet`, `java`, `nginx`",
            ),
            default: Default::Words("`\"common\"`"),
            doc: "Whose [readings](rules.md#readings) of a request count, where rules refuse, strip or limit. `common`: those \
                  of all servers that are known. `literal`: only what the rules themselves read.",
        },
        Key {
            name: "odd_names",
            kind: Kind::Word(&["drop", "refuse", "keep"]),
            default: Default::Word("drop"),
            doc: "What becomes of a request's fields whose names hold more than letters, digits and `-`, such \
                  as `X_User`. `drop` takes them away from rules and servers, `refuse` answers 400, `keep` \
                  takes away only those that read like a field which the switch or a rule names.",
        },
        Key {
            name: "body_kind",
            kind: Kind::Word(&["rules", "absent", "unknown", "sniff"]),
            default: Default::Word("rules"),
            doc: "What a body is to the rules that is neither XML nor JSON nor a form by its media type. `absent`: it has no \
                  fields. `unknown`: what they ask of it ends unknown, cause encoding, which is 415. `sniff`: XML where \
                  it begins with `<`, JSON with `{` or `[`, otherwise absent. `rules`: unknown for each kind of field \
                  that a rule refuses by or whose absence leads past one that refuses, absent for the others.",
        },
        Key {
            name: "body_label",
            kind: Kind::Word(&["check", "believe"]),
            default: Default::Word("check"),
            doc: "Whether the media type of a body is believed where rules refuse by fields of JSON or XML. `check`: content \
                  of that kind under the name of another is refused with 415. `believe`: a body is what its media type \
                  says.",
        },
        Key {
            name: "pipeline",
            kind: Kind::Word(&["hold", "concurrent", "latest"]),
            default: Default::Word("hold"),
            doc: "What becomes of a request that comes before the answer to the one before it. `hold` lets it wait \
                  until that answer is complete, `concurrent` sends safe requests on side by side and their \
                  answers in order, `latest` lets it take the place of the one before it, which gets 503. See \
                  the [guide](../guide/pipelining.md).",
        },
        Key {
            name: "upgrades",
            kind: Kind::Texts("protocols as `Upgrade` names them"),
            default: Default::Words("`[\"websocket\"]`"),
            doc: "Protocols that a connection may change to where client and server agree on it; then bytes pass \
                  as they come, in a tunnel. Of a request that asks for another one the switch leaves out \
                  `Upgrade`, and the server answers in HTTP; over HTTP/2, where a stream asks by `:protocol` \
                  (RFC 8441), it is 501. `[]`: none, which HTTP/2 says at the start of each connection.",
        },
        Key {
            name: "trailers",
            kind: Kind::Texts("names of fields"),
            default: Default::Words("`[]`"),
            doc: "Request trailers that are passed to servers. All others are dropped, but for gRPC over HTTP/2; fields \
                  that rules use never pass. See [trailers](refusals.md#trailers).",
        },
        Key {
            name: "tls",
            kind: Kind::Table(&LISTENER_TLS),
            default: Default::Words("plain HTTP"),
            doc: "Certificates; with them the listener speaks TLS.",
        },
        Key {
            name: "limits",
            kind: Kind::Table(&LISTENER_LIMITS),
            default: Default::Words("the defaults"),
            doc: "What a client may take.",
        },
    ]],
};

static LISTENER_LIMITS: Table = Table {
    header: "[listener.limits]",
    doc: "What a client may take. Numbers are bytes, milliseconds or counts, as the end of each name says.",
    groups: &[LISTENER_LIMIT_KEYS, BODY_LIMIT_KEYS],
};

const ADDRESS: &str = "an address such as `127.0.0.1:8080`";
const FORWARDED_MODES: &[&str] = &["append", "replace", "off"];
/// No time limit is longer: a day.
pub(crate) const DAY_MS: u64 = 24 * 60 * 60 * 1000;
