//! The keys of a class of `bandwidth`.

use super::{Default, Key, Kind, Table};

/// More than any link carries.
const BYTES_PER_SECOND_MAX: u64 = 1_000_000_000_000;

/// The directions that a class may hold for.
pub(crate) const BOTH: &str = "both";
pub(crate) const TO_CLIENT: &str = "to-client";
pub(crate) const TO_SERVER: &str = "to-server";

pub(super) static BANDWIDTH: Table = Table {
    header: "[bandwidth.NAME]",
    doc: "How many bytes a second the requests have together that rules call by `bandwidth(NAME)`, with their answers \
          and the tunnels that they become. What a class does not use of its guarantee others borrow. A reload \
          changes the rates of what is on its way, too.",
    groups: &[&[
        Key {
            name: "parent",
            kind: Kind::Text("the name of a class"),
            default: Default::Words("none: it borrows of nobody"),
            doc: "The class that it borrows of, and whose ceiling bounds it. At most 8 classes stand above each other.",
        },
        Key {
            name: "guaranteed_bytes_per_second",
            kind: Kind::Integer { min: 0, max: BYTES_PER_SECOND_MAX, unit: "bytes" },
            default: Default::Words("what its children are guaranteed, together"),
            doc: "What it has whatever the classes beside it do. Together they may be guaranteed no more than their \
                  parent is, or than its ceiling where it has no parent itself.",
        },
        Key {
            name: "ceiling_bytes_per_second",
            kind: Kind::Integer { min: 1000, max: BYTES_PER_SECOND_MAX, unit: "bytes" },
            default: Default::Words("that of its parent"),
            doc: "What it never gets more than, with what it borrows. A class without a parent needs one.",
        },
        Key {
            name: "burst_bytes",
            kind: Kind::Integer { min: 65_536, max: BYTES_PER_SECOND_MAX, unit: "bytes" },
            default: Default::Words("a fifth of a second of its ceiling, at least 65536"),
            doc: "What may come at once after a pause. Timers are up to 75 ms late: with less than a tenth of a second \
                  of its ceiling a class does not get all of it. Classes below it that borrow may take half of \
                  this: with less than a fifth of a second they do not get all that it leaves them, and `check` says so.",
        },
        Key {
            name: "direction",
            kind: Kind::Word(&[BOTH, TO_CLIENT, TO_SERVER]),
            default: Default::Word(BOTH),
            doc: "Which bytes count. With `both` each direction has the rates by itself.",
        },
    ]],
};
