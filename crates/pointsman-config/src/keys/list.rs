//! The keys of a list.

use super::{Default, Key, Kind, Table};

/// What a list may be made of.
pub(crate) const NETWORKS: &str = "networks";
pub(crate) const TEXTS: &str = "texts";

pub(super) static LIST: Table = Table {
    header: "[list.NAME]",
    doc: "What rules call by `in @NAME`: `clientip in @NAME`, `host in @NAME`. A look-up costs about the same whether \
          there are ten entries or a million. A changed file is loaded like changed rules.",
    groups: &[&[
        Key {
            name: "kind",
            kind: Kind::Word(&[NETWORKS, TEXTS]),
            default: Default::Word(NETWORKS),
            doc: "`networks`: networks, addresses and ranges `FIRST-LAST`, for fields that are addresses. `texts`: \
                  whole texts, such as hosts, for fields that are texts.",
        },
        Key {
            name: "file",
            kind: Kind::Text("the path of a file"),
            default: Default::Words("none"),
            doc: "One entry a line, in UTF-8, at most 256 MiB. Of `networks` what stands behind `#` or `;` is a \
                  comment, of `texts` a line that begins with `#`. Blanks at both ends and empty lines do not count.",
        },
        Key {
            name: "entries",
            kind: Kind::Texts("networks, or texts"),
            default: Default::Words("`[]`"),
            doc: "Further entries. One of the two keys must be there. What is there twice, or overlaps, counts once.",
        },
    ]],
};
