//! What `/metrics` says at one moment, read.

use std::collections::BTreeMap;

/// Names and values of labels, in the order of the page.
pub(super) type Labels = Vec<(String, String)>;

/// All figures of one moment.
#[derive(Debug, Default)]
pub(super) struct Scrape {
    families: BTreeMap<String, BTreeMap<Labels, f64>>,
}

impl Scrape {
    /// Reads a page; nothing where it is none of a switch.
    pub(super) fn read(page: &str) -> Option<Scrape> {
        let mut scrape = Scrape::default();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            // A line that a newer switch writes otherwise hides nothing but itself.
            if let Some((name, labels, value)) = sample(line) {
                scrape.families.entry(name.to_owned()).or_default().insert(labels, value);
            }
        }
        scrape.families.contains_key("pointsman_build_info").then_some(scrape)
    }

    /// All figures of a name.
    pub(super) fn family(&self, name: &str) -> impl Iterator<Item = (&Labels, f64)> {
        self.families.get(name).into_iter().flatten().map(|(labels, value)| (labels, *value))
    }

    /// The figure of a name with these labels.
    pub(super) fn at(&self, name: &str, labels: &Labels) -> Option<f64> {
        self.families.get(name)?.get(labels).copied()
    }

    /// The sum of all figures of a name that have these labels among theirs.
    pub(super) fn sum(&self, name: &str, wanted: &[(&str, &str)]) -> f64 {
        // A sum of no floats is -0.
        self.family(name).filter(|(labels, _)| has(labels, wanted)).fold(0.0, |sum, (_, value)| sum + value)
    }
}

/// The value of a label.
pub(super) fn label<'a>(labels: &'a Labels, name: &str) -> &'a str {
    labels.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

/// Whether these labels are among others.
pub(super) fn has(labels: &Labels, wanted: &[(&str, &str)]) -> bool {
    wanted.iter().all(|(name, value)| labels.iter().any(|(known, its)| known == name && its == value))
}

/// One line: name, labels, value.
fn sample(line: &str) -> Option<(&str, Labels, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => self::labels(rest)?,
        None => (Labels::new(), rest),
    };
    Some((name, labels, value.trim().parse().ok()?))
}

/// What stands in braces, and what follows them.
fn labels(mut rest: &str) -> Option<(Labels, &str)> {
    let mut labels = Labels::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((labels, behind));
        }
        let (name, text) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = text.char_indices();
        rest = loop {
            match characters.next()? {
                (at, '"') => break &text[at + 1..],
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.push((name.to_owned(), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read() {
        let check = |line: &str, expected: Option<(&str, &str, f64)>| {
            let read = sample(line).map(|(name, labels, value)| (name, format!("{labels:?}"), value));
            let expected = expected.map(|(name, labels, value)| (name, labels.to_owned(), value));
            assert_eq!(read, expected, "{line}");
        };
        check("a 1", Some(("a", "[]", 1.0)));
        check("a{x=\"y\"} 1.5", Some(("a", r#"[("x", "y")]"#, 1.5)));
        let line = "a{x=\"a\\\"b\\\\c\\nd}\",le=\"+Inf\"} 2";
        check(line, Some(("a", r#"[("x", "a\"b\\c\nd}"), ("le", "+Inf")]"#, 2.0)));
        for bad in ["", "a", "a{x=\"y\"}", "a{x=\"y", "a{x} 1", "a{x=\"y\\", "a one"] {
            check(bad, None);
        }
    }

    #[test]
    fn a_page_is_that_of_a_switch() {
        assert!(Scrape::read("").is_none());
        assert!(Scrape::read("go_goroutines 3\n").is_none());
        let page = "# HELP x\npointsman_build_info{version=\"1\"} 1\na{b=\"c\",d=\"e\"} 2\na{b=\"c\",d=\"f\"} 3\nodd\n";
        let scrape = Scrape::read(page).expect("a switch");
        assert_eq!(scrape.sum("a", &[("b", "c")]), 5.0);
        assert_eq!(scrape.sum("a", &[("d", "f")]), 3.0);
        assert_eq!(scrape.sum("a", &[("d", "g")]), 0.0);
    }
}
