//! Which rules of a text are other ones than in the text before it.

use std::collections::{HashMap, VecDeque};

use pointsman_rules::ast::{Item, RuleFile};
use pointsman_rules::{RuleIndex, pace, tokens};

/// The rules that are new, changed, or at another place among the others; nothing where what is set for all of them has
/// changed. Blanks, line breaks and comments make no difference.
pub(super) fn changed(old: &str, new: &str) -> Option<Vec<RuleIndex>> {
    let [(old_settings, old_rules), (new_settings, new_rules)] = [old, new].map(parts);
    if old_settings != new_settings {
        return None;
    }
    let mut places: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (place, rule) in pace::each(old_rules.iter().enumerate()) {
        places.entry(rule).or_default().push_back(place);
    }
    // Of each new rule where it stood, if it did.
    let stood = pace::each(new_rules.iter()).map(|rule| places.get_mut(rule.as_str())?.pop_front());
    let stood: Vec<Option<usize>> = stood.collect();
    let are_kept = in_order(&stood);
    let numbered = (0..).map(RuleIndex).zip(are_kept);
    Some(numbered.filter(|(_, is_kept)| !is_kept).map(|(index, _)| index).collect())
}

/// The settings of a text, and its rules, each in a form that layout does not change. The last `else:` is no rule among them.
fn parts(source: &str) -> (Vec<String>, Vec<String>) {
    let (RuleFile { items, .. }, _) = pointsman_rules::parse(source);
    let (mut settings, mut rules) = (Vec::new(), Vec::new());
    for item in pace::each(&items) {
        match item {
            Item::Setting(setting) => settings.push(plain(setting.span.of(source))),
            Item::Rule(rule) => rules.push(plain(rule.span.of(source))),
            Item::Fallback(_) | Item::Test(_) | Item::Assert(_) => {}
        }
    }
    pace::drop_each(items);
    (settings, rules)
}

/// The tokens of a text, a line each: no comments, and no blanks but for those within quotes.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for token in tokens(text) {
        plain.push_str(token.of(text));
        plain.push('\n');
    }
    plain
}

/// Which of them are part of the longest row that goes up: they have kept their order.
fn in_order(stood: &[Option<usize>]) -> Vec<bool> {
    // Of each length the row that ends lowest, by the place of its last member; and who stands before whom in it.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), vec![None; stood.len()]);
    let at = |place: usize| stood.get(place).copied().flatten();
    for (place, old) in pace::each(stood.iter().enumerate()) {
        let Some(old) = *old else { continue };
        let length = ends.partition_point(|end| at(*end).is_some_and(|other| other < old));
        before[place] = length.checked_sub(1).and_then(|shorter| ends.get(shorter)).copied();
        match ends.get_mut(length) {
            Some(end) => *end = place,
            None => ends.push(place),
        }
    }
    let mut are_kept = vec![false; stood.len()];
    let mut last = ends.last().copied();
    while let Some(place) = last {
        are_kept[place] = true;
        last = before[place];
    }
    are_kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "on_unknown skip;\nR1: if (path == \"/a\") { reject(); }\nif (host == \"b\") { reject(); }\n\
                       R3: { routeTo(a); }\nelse: routeTo(a);\n";

    fn check(new: &str, expected: Option<&[u32]>) {
        let found = changed(OLD, new).map(|rules| rules.iter().map(|rule| rule.0).collect::<Vec<_>>());
        assert_eq!(found.as_deref(), expected, "{new}");
    }

    #[test]
    fn what_is_new_or_other_is_told() {
        check(OLD, Some(&[]));
        check(&OLD.replace("\"/a\"", "\"/b\""), Some(&[0]));
        check(&OLD.replace("R3", "R4"), Some(&[2]));
        check(&OLD.replace("R1", "R0: { reject(); }\nR1"), Some(&[0]));
        check(&OLD.replace("R1: if (path == \"/a\") { reject(); }\n", ""), Some(&[]));
        check(&OLD.replace("R3", "if (host == \"b\") { reject(); }\nR3"), Some(&[2]));
        check(&OLD.replace("else: routeTo(a);", "else: routeTo(b);"), Some(&[]));
        // A rule that cannot be read is another one.
        check(&OLD.replace("R3: { routeTo(a); }", "R3: { routeTo("), Some(&[2]));
    }

    #[test]
    fn layout_makes_no_difference() {
        check(&OLD.replace("if (path == \"/a\") {", "if( path==\"/a\" ) # why\n{"), Some(&[]));
        check(&OLD.replace("\"/a\"", "\"/a \""), Some(&[0]));
        check(&OLD.replace("\"/a\"", "\"/a # b\\\" c\""), Some(&[0]));
        assert_eq!(plain("a  b # c\n d(\"x  \\\" y\" ) ;"), "a\nb\nd\n(\n\"x  \\\" y\"\n)\n;\n");
        assert_eq!(plain("(\"a\\\\\"  )#"), "(\n\"a\\\\\"\n)\n");
    }

    /// Quotes of all kinds hold what no comment is in, and the key of a field does not end the text around it.
    #[test]
    fn what_stands_in_quotes_makes_a_difference() {
        for (one, other) in [
            ("\u{201c}/a # b\u{201d}) { reject(403); }", "\u{201c}/a # b\u{201d}) { reject(404); }"),
            ("\u{201c}/a b\u{201d}) { reject(); }", "\u{201c}/a  b\u{201d}) { reject(); }"),
            (
                "\"/a\") { respond(200, \"${query[\"a b\"]}\"); }",
                "\"/a\") { respond(200, \"${query[\"a  b\"]}\"); }",
            ),
        ] {
            let [one, other] = [one, other].map(|rest| format!("R1: if (path == {rest}"));
            assert_eq!(changed(&one, &one), Some(Vec::new()), "{one}");
            assert_eq!(changed(&one, &other), Some(vec![RuleIndex(0)]), "{one}");
        }
    }

    #[test]
    fn of_two_that_change_places_one_is_told() {
        let swapped = "on_unknown skip;\nif (host == \"b\") { reject(); }\nR1: if (path == \"/a\") { reject(); }\n\
                       R3: { routeTo(a); }\n";
        let found = changed(OLD, swapped).expect("settings are as they were");
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn settings_are_about_all_rules() {
        check(&OLD.replace("skip", "reject"), None);
        check(&OLD.replace("on_unknown skip;", "on_unknown  skip ;"), Some(&[]));
    }

    #[test]
    fn the_longest_row_stays() {
        let stood = [Some(4), Some(0), None, Some(1), Some(3), Some(2), Some(5)];
        let kept = in_order(&stood);
        assert_eq!(kept.iter().filter(|is_kept| **is_kept).count(), 4);
        assert!(!kept[0] && !kept[2] && kept[6]);
        assert!(in_order(&[]).is_empty());
    }
}
