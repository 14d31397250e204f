//! The keys of the access log.

use super::{Default, Key, Kind, Table};

pub(super) static ACCESS_LOG: Table = Table {
    header: "[access_log]",
    doc: "One line for each request. Without this table there is no access log. What has changed here besides `query` \
          takes effect at the next start.",
    groups: &[&[
        Key {
            name: "path",
            kind: Kind::Text("a path, or `-`"),
            default: Default::Required,
            doc: "The file that lines are appended to; `-` is standard output. A FIFO need not have a reader yet.",
        },
        Key {
            name: "format",
            kind: Kind::Word(&["json", "common", "combined"]),
            default: Default::Word("json"),
            doc: "What a line looks like: one JSON object; the Common Log Format; the same with `Referer` and \
                  `User-Agent`. [All of it](metrics-and-logs.md#access-log).",
        },
        Key {
            name: "details",
            kind: Kind::Boolean,
            default: Default::Boolean(true),
            doc: "Whether lines of `common` and `combined` go on with what JSON lines say beyond them: the rule, the \
                  server, the times and what went wrong, as `key=value`. `false` is for readers that take nothing there.",
        },
        Key {
            name: "sample",
            kind: Kind::Text("a percentage, as in `10%` or `0.5%`"),
            default: Default::Words("every request"),
            doc: "How many of the requests that went well leave a line, by chance. One with an `error`, or that was \
                  answered with 5xx, always does.",
        },
        Key {
            name: "query",
            kind: Kind::Boolean,
            default: Default::Boolean(false),
            doc: "Whether lines have the query of a request. Tokens and personal data stand there; \
                  `pointsman replay` can tell then what rules decide by it.",
        },
    ]],
};
