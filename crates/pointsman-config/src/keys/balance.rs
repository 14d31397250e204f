//! The keys that say how a pool is balanced.

use pointsman_balance::{Algorithm, HashMethod};

use super::{Default, Key, Kind};

/// Balances by a hash of a field.
pub(crate) const HASH: &str = "hash";
/// The short form of that for the client's address.
pub(crate) const SOURCE_ADDRESS: &str = "source-address";

/// How a server is picked.
pub(super) const BALANCE: Key = Key {
    name: "balance",
    kind: Kind::Word(&BALANCE_NAMES),
    default: Default::Word("round-robin"),
    doc: "How a server is picked. `source-address` is `hash` with `hash_on = \"clientip\"`. See the \
          [guide](../guide/balancing.md).",
};

/// What `hash` goes by.
pub(super) static HASH_KEYS: &[Key] = &[
    Key {
        name: "hash_on",
        kind: Kind::Text("a field of a request's head, such as `cookie[\"sid\"]`"),
        default: Default::Words("none; `hash` needs it"),
        doc: "The field whose first value is hashed: any that a rule can name, but those of the body.",
    },
    Key {
        name: "hash_by",
        kind: Kind::Word(&HASH_METHOD_NAMES),
        default: Default::Word("rendezvous"),
        doc: "How a hash finds its server. `rendezvous`: each server gets a score for the client, and the highest wins; \
              nobody else moves when a server goes or comes. `maglev`: by a table; one look-up, however many servers \
              there are, and a few others move.",
    },
    Key {
        name: "hash_table_entries",
        kind: Kind::Integer { min: 101, max: 5_000_011, unit: "entries" },
        default: Default::Integer(65_537),
        doc: "Entries of the table under `maglev`, a prime: a hundred for each server, or more. Each takes 4 bytes.",
    },
    Key {
        name: "hash_absent",
        kind: Kind::Word(&ALGORITHM_NAMES),
        default: Default::Word("round-robin"),
        doc: "How a server is picked for a request without the field.",
    },
    Key {
        name: "hash_load_factor",
        kind: Kind::Integer { min: 0, max: 1000, unit: "percent" },
        default: Default::Integer(0),
        doc: "How many requests in flight a server may have, in percent of its share of all: 100 at the least, 125 is \
              usual. A client whose server has so many goes on to the next in its own order. 0: no limit.",
    },
];

const ALGORITHM_NAMES: [&str; Algorithm::ALL.len()] = {
    let mut names = [""; Algorithm::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = Algorithm::ALL[index].name();
        index += 1;
    }
    names
};

const BALANCE_NAMES: [&str; Algorithm::ALL.len() + 2] = {
    let mut names = [HASH; Algorithm::ALL.len() + 2];
    let mut index = 0;
    while index < ALGORITHM_NAMES.len() {
        names[index] = ALGORITHM_NAMES[index];
        index += 1;
    }
    names[ALGORITHM_NAMES.len() + 1] = SOURCE_ADDRESS;
    names
};

const HASH_METHOD_NAMES: [&str; HashMethod::ALL.len()] =
    [HashMethod::ALL[0].name(), HashMethod::ALL[1].name()];
