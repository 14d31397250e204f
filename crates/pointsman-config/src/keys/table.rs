//! Looking into the tables of keys.

use super::{Default, Key, Kind, Table};

impl Table {
    /// Its keys, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static Key> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// The key of that name.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }

    /// Whether it says something without any of its keys.
    pub(crate) fn may_be_empty(&self) -> bool {
        !self.keys().any(|key| matches!(key.default, Default::Required))
    }

    /// Where its keys stand, as a phrase.
    pub(crate) fn place(&self) -> String {
        if self.header.is_empty() { "at the top level".to_owned() } else { format!("in `{}`", self.header) }
    }

    /// This table and those below it, in order.
    pub(crate) fn with_descendants(&'static self) -> Vec<&'static Table> {
        let mut tables = vec![self];
        for key in self.keys() {
            if let Some(table) = key.kind.table() {
                tables.extend(table.with_descendants());
            }
        }
        tables
    }
}

impl Kind {
    /// The table that stands behind a key of this kind.
    pub(crate) fn table(&self) -> Option<&'static Table> {
        match self {
            Self::Table(table)
            | Self::Tables(table)
            | Self::NamedTables(table)
            | Self::TextsOrTables(_, table) => Some(table),
            Self::Integer { .. }
            | Self::Boolean
            | Self::Word(_)
            | Self::Text(_)
            | Self::Texts(_)
            | Self::OneOrMoreTexts(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ROOT;
    use super::*;

    #[test]
    fn defaults_are_values_that_could_be_written() {
        for table in ROOT.with_descendants() {
            for key in table.keys() {
                match (&key.kind, &key.default) {
                    (Kind::Integer { min, max, .. }, Default::Integer(number)) => {
                        assert!((min..=max).contains(&number), "{}", key.name);
                    }
                    (Kind::Word(words), Default::Word(word)) => assert!(words.contains(word), "{}", key.name),
                    (Kind::Boolean, Default::Boolean(_)) => {}
                    (_, Default::Required | Default::Words(_)) => {}
                    (_, Default::RequiredWithout(other)) => {
                        assert!(table.key(other).is_some(), "{}", key.name);
                    }
                    (kind, default) => panic!("{}: {default:?} is no value of {kind:?}", key.name),
                }
            }
        }
    }

    #[test]
    fn names_are_unique_in_their_table() {
        for table in ROOT.with_descendants() {
            for key in table.keys() {
                assert_eq!(table.keys().filter(|other| other.name == key.name).count(), 1, "{}", key.name);
            }
        }
    }
}
