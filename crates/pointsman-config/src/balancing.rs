//! How a pool is balanced: from the keys to what they mean.

use pointsman_balance::{Algorithm, HashMethod, LoadFactor};
use pointsman_rules::{Field, head_field};

use crate::idle_keys::warn;
use crate::keys::{HASH, SOURCE_ADDRESS};
use crate::notation::Refusal;
use crate::section::Section;

/// How a pool chooses the server of a request that is not sticky.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Balancing {
    /// Picks, where no hash does.
    pub algorithm: Algorithm,
    /// Picks for requests that have what is hashed.
    pub hash: Option<HashBalancing>,
}

/// How a pool is balanced by hashes.
#[derive(Clone, Debug, PartialEq)]
pub struct HashBalancing {
    /// What is hashed.
    pub on: Field,
    /// How a hash finds its server.
    pub method: HashMethod,
    /// Entries of the table, where there is one: a prime.
    pub table_entries: u32,
    /// How much more than its share a server may have.
    pub load_factor: Option<LoadFactor>,
}

impl Balancing {
    pub(crate) fn read(section: &Section<'_>) -> Balancing {
        let word = section.word("balance");
        if word != HASH && word != SOURCE_ADDRESS {
            let beside = "while `balance` is not `hash`";
            warn(section, OF_HASHES, beside, "set `balance` to `hash`, or leave it out");
            return Balancing { algorithm: Algorithm::from_name(word).unwrap_or_default(), hash: None };
        }
        let algorithm = Algorithm::from_name(section.word("hash_absent")).unwrap_or_default();
        let hash = hashed_field(section, word).map(|on| HashBalancing::read(section, on));
        Balancing { algorithm, hash }
    }

    /// What it is called: `hash`, or the algorithm.
    pub fn name(&self) -> &'static str {
        if self.hash.is_some() { HASH } else { self.algorithm.name() }
    }

    /// Whether the weights of servers say anything.
    pub(crate) fn looks_at_weights(&self) -> bool {
        self.hash.is_some() || self.algorithm.looks_at_weights()
    }
}

impl HashBalancing {
    fn read(section: &Section<'_>, on: Field) -> HashBalancing {
        let method = HashMethod::from_name(section.word("hash_by")).unwrap_or_default();
        if method != HashMethod::Maglev {
            let help = "set `hash_by` to `maglev`, or leave it out";
            warn(section, &["hash_table_entries"], "while `hash_by` is not `maglev`", help);
        }
        let table_entries = section.number("hash_table_entries").unwrap_or(TABLE_ENTRIES);
        if !is_prime(table_entries) {
            let message = format!("`hash_table_entries` is {table_entries}, which is no prime");
            let help = format!("the next one is {}", next_prime(table_entries));
            section.findings().error(section.place("hash_table_entries"), message, help);
        }
        let factor = section.number("hash_load_factor").unwrap_or(0);
        if (1..100).contains(&factor) {
            let message = format!("`hash_load_factor` is {factor}; servers together must have room for all");
            let help = "it must be 100 percent or more; 0 sets no limit";
            section.findings().error(section.place("hash_load_factor"), message, help);
        }
        let load_factor = Some(factor).filter(|factor| *factor >= 100).map(LoadFactor);
        HashBalancing { on, method, table_entries, load_factor }
    }
}

/// What is hashed; none where that was reported to be wrong.
fn hashed_field(section: &Section<'_>, word: &str) -> Option<Field> {
    if word == SOURCE_ADDRESS {
        let help = "leave it out, or set `balance` to `hash`";
        warn(section, &["hash_on"], "while `balance` is `source-address`", help);
        return Some(Field::ClientIp);
    }
    if !section.has("hash_on") {
        let help = "name the field that is hashed: `hash_on = 'cookie[\"sid\"]'`";
        section.missing("`balance = \"hash\"` needs `hash_on`", help);
    }
    section.parsed("hash_on", field).map(|field| field.value)
}

fn field(text: &str) -> Result<Field, Refusal> {
    head_field(text)
        .map_err(|finding| Refusal { message: finding.message, help: finding.help.unwrap_or_default() })
}

fn is_prime(number: u32) -> bool {
    let number = u64::from(number);
    number > 1 && (2..).take_while(|divisor| divisor * divisor <= number).all(|divisor| number % divisor != 0)
}

fn next_prime(number: u32) -> u32 {
    (number..).find(|number| is_prime(*number)).unwrap_or(TABLE_ENTRIES)
}

const TABLE_ENTRIES: u32 = 65_537;
const OF_HASHES: &[&str] = &["hash_on", "hash_by", "hash_table_entries", "hash_absent", "hash_load_factor"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes() {
        let first: Vec<_> = (0..30).filter(|number| is_prime(*number)).collect();
        assert_eq!(first, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
        assert!(is_prime(TABLE_ENTRIES) && is_prime(5_000_011));
        assert_eq!((next_prime(65_538), next_prime(4_999_999)), (65_539, 4_999_999));
    }
}
