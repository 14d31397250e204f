//! Groups of a condition's regexes in texts: `redirect(301, "/new/${1}")`.

use std::fmt;
use std::ops::ControlFlow;

use crate::subject::TextRoom;
use crate::{Condition, Field, Matcher, Op, Subject, Test};

/// A group of the regex by which a condition holds.
///
/// The text of the group is found by asking the regex once more when a text is filled in. A decision carries nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// Its number or name, as written.
    pub name: Box<str>,
    /// Alternatives of the condition in the order of the text. The first one that matches has the group.
    pub(crate) sources: Box<[Source]>,
}

/// A group of one `matches`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    pub(crate) field: Field,
    fold_case: bool,
    regex: Matcher,
    number: usize,
}

/// Why a text cannot name a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoGroup {
    /// No regex of the condition has it.
    Absent,
    /// Two regexes that both must match have it.
    Ambiguous,
    /// Some alternatives of the condition lack it.
    Partial,
    /// The regex reads the body.
    Body,
}

impl Group {
    /// The group of that number or name, where `condition` holds.
    pub(crate) fn of(condition: &Condition, name: &str) -> Result<Group, NoGroup> {
        let sources = sources(condition, name)?.ok_or(NoGroup::Absent)?;
        if sources.iter().any(|source| matches!(source.field, Field::Payload(_))) {
            return Err(NoGroup::Body);
        }
        Ok(Group { name: name.into(), sources: sources.into() })
    }

    /// The fields that are asked for it.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.sources.iter().map(|source| &source.field)
    }

    /// Shows the text of the group; nothing where it took no part in the match.
    pub(crate) fn with_text<S: Subject + ?Sized>(&self, subject: &S, see: impl FnOnce(&[u8])) {
        let mut see = Some(see);
        for source in &self.sources {
            let mut matched = false;
            subject.each(&source.field, &mut |value| {
                let (mut room, mut folded_room) = (TextRoom::default(), TextRoom::default());
                let text = value.text(&mut room);
                // Folding keeps the length, so that the group has the case of the request.
                let searched = if source.fold_case { value.folded_text(&mut folded_room) } else { text };
                let Some(captures) = source.regex.captures(searched) else {
                    return ControlFlow::Continue(());
                };
                matched = true;
                if let (Some(group), Some(see)) = (captures.get(source.number), see.take()) {
                    see(text.get(group.range()).unwrap_or_default());
                }
                ControlFlow::Break(())
            });
            if matched {
                return;
            }
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The regexes that have the group, one of which matches wherever the condition holds.
fn sources(condition: &Condition, name: &str) -> Result<Option<Vec<Source>>, NoGroup> {
    match condition {
        Condition::Always | Condition::Not(_) => Ok(None),
        Condition::Test(test) => Ok(source(test, name).map(|source| vec![source])),
        Condition::And(parts) => {
            let mut found = None;
            for part in parts {
                let part = sources(part, name)?;
                if part.is_some() && found.is_some() {
                    return Err(NoGroup::Ambiguous);
                }
                found = found.or(part);
            }
            Ok(found)
        }
        Condition::Or(parts) => {
            let (mut all, mut lacking) = (Vec::new(), false);
            for part in parts {
                match sources(part, name)? {
                    Some(found) => all.extend(found),
                    None => lacking = true,
                }
            }
            match (all.is_empty(), lacking) {
                (true, _) => Ok(None),
                (false, true) => Err(NoGroup::Partial),
                (false, false) => Ok(Some(all)),
            }
        }
    }
}

fn source(test: &Test, name: &str) -> Option<Source> {
    let Op::Matches(regex) = &test.op else { return None };
    let number = match name.parse::<usize>() {
        Ok(number) => Some(number).filter(|number| *number < regex.captures_len()),
        Err(_) => regex.capture_names().position(|known| known == Some(name)),
    };
    let (field, fold_case) = (test.field.clone(), test.fold_case);
    Some(Source { field, fold_case, regex: regex.clone(), number: number? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::MadeUpSubject;
    use crate::subject::OwnedValue;
    use crate::{Exit, Targets, Terminal, compile, spelling};

    /// Where a rule of this condition redirects a request with these paths.
    fn check(condition: &str, location: &str, paths: &[&str], expected: &str) {
        let source = format!("if ({condition}) {{ redirect(301, \"{location}\"); }}");
        let program = compile(&source, &Targets::Any).unwrap_or_else(|errors| panic!("{errors:?}")).program;
        let values = paths.iter().map(|path| OwnedValue::Text(path.as_bytes().into())).collect();
        let subject = MadeUpSubject { fields: vec![(Field::Header("a".into()), values)], unsettled: vec![] };
        let Exit::Terminal(terminal) = &program.rules[0].then.exit else { panic!("{source}") };
        assert_eq!(spelling::terminal(&program, terminal), format!("redirect(301, \"{location}\");"));
        let Terminal::Redirect { location, .. } = terminal else { panic!("{source}") };
        let mut out = Vec::new();
        location.render_location(&subject, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), expected, "{source}");
    }

    #[test]
    fn groups_are_those_of_the_regex_that_holds() {
        let header = r#"header["a"] matches "^/old/(?<id>[^/]*)(/.*)?$""#;
        check(header, "/new/${1}", &["/old/7/x"], "/new/7");
        check(header, "/new/${id}${2}$$", &["/old/7/x"], "/new/7/x$");
        check(header, "/new${2}", &["/old/7"], "/new");
        check(header, "/new/${0}", &["/old/7"], "/new//old/7");
        check(header, "/new/${id}", &["/other", "/old/8", "/old/9"], "/new/8");
        check(header, "/new/${id}", &["/old/a b\r\n"], "/new/a%20b%0D%0A");
        check(&format!("{header} && path exists"), "/${id}", &["/old/7"], "/7");
    }

    #[test]
    fn the_first_alternative_that_matches_has_the_group() {
        let two = r#"header["a"] matches "^/a/(.*)$" || header["a"] matches "^/b/(.*)$""#;
        check(two, "/${1}", &["/b/x"], "/x");
        check(two, "/${1}", &["/b/x", "/a/y"], "/y");
    }

    #[test]
    fn a_group_keeps_the_case_of_the_request() {
        check(r#"lower(header["a"]) matches "^/old/(.*)$""#, "/${1}", &["/OLD/Item"], "/Item");
    }
}
