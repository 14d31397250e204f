//! The keys of the access log.

use super::{Default, Key, Kind, Table};

pub(super) static ACCESS_LOG: Table = Table {
    header: "[access_log]",
    doc: "One JSON object a line for each request. Without this table there is no access log.",
    groups: &[&[
        Key {
            name: "path",
            kind: Kind::Text("a path, or `-`"),
            default: Default::Required,
            doc: "The file that lines are appended to; `-` is standard output. A FIFO need not have a reader yet.",
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
