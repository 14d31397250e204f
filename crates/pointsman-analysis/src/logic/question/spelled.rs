//! Tests of what is cut out of a text, as regexes over that text: of a cookie over its line, of a parameter over its query,
//! of what a target holds over the target.

use pointsman_rules::{Entry, Field, Op, Over, Test};

use crate::space::has_one_value;

/// Texts in a list that are spelled out.
const LISTED_MAX: usize = 64;
/// Bytes of a text that is.
const TEXT_BYTES_MAX: usize = 512;

/// A text that fields are cut out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Url,
    Query,
    Host,
    ContentType,
    Cookie,
}

/// How a target begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    Path,
    Http,
    Https,
    /// With a segment that is left again by `..`, or with two.
    Up,
    UpTwice,
}

/// Some texts, and whether one is to be among them.
pub(super) type Spelled = (Cover, bool);

/// Two regexes for one set of texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cover {
    /// Takes only texts of it.
    pub(super) within: String,
    /// Takes all of them.
    pub(super) around: String,
}

impl Line {
    pub(super) const ALL: [Line; 5] = [Line::Url, Line::Query, Line::Host, Line::ContentType, Line::Cookie];

    /// Whether a field is this text.
    pub(super) fn is(self, field: &Field) -> bool {
        let is_named = |expected: &str| matches!(field, Field::Header(name) if &**name == expected);
        match self {
            Line::Url => *field == Field::Url,
            Line::Query => *field == Field::Query,
            Line::Host => is_named("host"),
            Line::ContentType => is_named("content-type"),
            Line::Cookie => is_named("cookie"),
        }
    }

    /// Whether the values of a field are cut out of this text, and out of nothing else.
    pub(super) fn has(self, field: &Field) -> bool {
        match self {
            Line::Url => matches!(field, Field::Query | Field::QueryParam(_)),
            Line::Query => matches!(field, Field::QueryParam(_)),
            Line::Host => *field == Field::Host,
            Line::ContentType => *field == Field::ContentType,
            Line::Cookie => matches!(field, Field::Cookie(_)),
        }
    }

    /// What is looked at one behind another: targets without a host, and with one. Of others all are looked at together.
    pub(super) fn begins(self) -> &'static [Option<Begin>] {
        match self {
            Line::Url => {
                use Begin::{Http, Https, Path, Up, UpTwice};
                &[Some(Path), Some(Http), Some(Https), Some(Up), Some(UpTwice)]
            }
            _ => &[None],
        }
    }

    /// The same of a target that begins so and is in usual form. Not all paths and hosts stand there as they are.
    pub(super) fn holds(self, begin: Begin, field: &Field) -> bool {
        let is_of_host = *field == Field::Host || Line::Host.is(field);
        let names_host = matches!(begin, Begin::Http | Begin::Https);
        self == Line::Url && (*field == Field::Path || names_host && is_of_host)
    }

    /// The same of some text.
    pub(super) fn may_hold(self, field: &Field) -> bool {
        self.has(field) || self.holds(Begin::Http, field)
    }

    /// What is asked of a target for it to begin so and be in usual form.
    pub(super) fn usual(self, begin: Begin) -> Vec<(Cover, bool)> {
        let start = match begin {
            Begin::Path => "^",
            Begin::Http => "^(?i:http)://[^/?]+",
            Begin::Https => "^(?i:https)://[^/?]+",
            Begin::Up => UP,
            Begin::UpTwice => UP_TWICE,
        };
        let dots = format!("{start}(?:/[^?]*)?/[.](?:[/?;%.]|$)");
        // Of what stands as it is in a path, of what some servers decode twice, and in small letters.
        let codes = "^[^?]*%(?:.?[a-f]|2[DE5]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE]|C[01])";
        let never = [dots, codes.to_owned()].map(|never| (Cover::exact(never), false));
        [vec![(Cover::exact(format!("{start}/")), true)], never.into()].concat()
    }

    /// As rules name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Line::Url => "url",
            Line::Query => "query",
            Line::Host => r#"header["host"]"#,
            Line::ContentType => r#"header["content-type"]"#,
            Line::Cookie => r#"header["cookie"]"#,
        }
    }

    /// What makes a test of a field that is cut out of it hold, and what may not be so then. Nothing of tests that say more
    /// than which text one value is.
    pub(super) fn spelled(self, begin: Option<Begin>, test: &Test) -> Option<Vec<Spelled>> {
        let is_of_one = match test.over {
            Over::Any => true,
            Over::All | Over::First | Over::Once => has_one_value(&test.field),
            Over::Count => false,
        };
        let cut = Cut::of(self, begin, &test.field).filter(|_| is_of_one)?;
        match &test.op {
            Op::TextDiffers(text) if has_one_value(&test.field) => {
                Some(vec![(cut.exists(), true), (cut.equals(text, test.fold_case)?, false)])
            }
            op => Some(vec![(cut.of_op(op, test.fold_case)?, true)]),
        }
    }

    /// The same where the field has this value and no other, or none at all.
    pub(super) fn pinned(
        self,
        begin: Option<Begin>,
        field: &Field,
        value: Option<&[u8]>,
    ) -> Option<Vec<Spelled>> {
        let cut = Cut::of(self, begin, field)?;
        let Some(value) = value else { return Some(vec![(cut.exists(), false)]) };
        let again = cut.again.clone().map(|again| (Cover::exact(again), false));
        Some([(cut.equals(value, false)?, true)].into_iter().chain(again).collect())
    }
}

impl Cover {
    fn exact(regex: String) -> Cover {
        Cover { within: regex.clone(), around: regex }
    }

    fn map(&self, change: impl Fn(&str) -> String) -> Cover {
        Cover { within: change(&self.within), around: change(&self.around) }
    }

    fn with(&self, behind: &Cover) -> Cover {
        Cover {
            within: [&*self.within, &behind.within].concat(),
            around: [&*self.around, &behind.around].concat(),
        }
    }
}

/// How the values of a field stand in a text.
struct Cut {
    /// What stands before a value, from where its place can be told.
    head: String,
    tail: &'static str,
    /// Any bytes of a value, and one of them.
    any: Cover,
    one: Cover,
    exists: String,
    /// Where a value without bytes stands otherwise.
    empty: Option<String>,
    /// Where there are two of them.
    again: Option<String>,
    letters: Letters,
    /// Texts whose value may be written otherwise.
    odd: Option<&'static str>,
}

/// How the bytes of a value are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letters {
    /// Of a target: as they are.
    Target,
    /// Of a list in a line: as they are, but those at which lists are split and white space at the ends.
    Listed,
    /// Of a media type: likewise, and its value is in small letters, whatever is written.
    Type,
    /// Of a host: likewise. Dots at its end are no part of it.
    Host,
    /// Of a parameter: with percent-codes; a plus is a space.
    Coded,
}

impl Letters {
    /// Whether small letters may be written as capitals.
    fn folds(self) -> bool {
        matches!(self, Letters::Type | Letters::Host)
    }

    fn has(self, byte: u8) -> bool {
        match self {
            Letters::Target => byte.is_ascii_graphic(),
            Letters::Listed | Letters::Type => byte != b';' && (byte.is_ascii_graphic() || byte > 0x7f),
            Letters::Host => byte.is_ascii_alphanumeric() || b"-_~.".contains(&byte),
            Letters::Coded => byte.is_ascii_graphic() && !b"#&+%".contains(&byte),
        }
    }
}

/// A byte as a percent-code, or one that is none.
const UNIT: &str = "(?:[^&%]|%[0-9A-Fa-f]{2})";
/// The begin of a target that names a host.
const ABSOLUTE: &str = "^(?i:https?)://";
const UP: &str = "^/[^/?%;.][^/?%;]*/[.][.]";
const UP_TWICE: &str = "^(?:/[^/?%;.][^/?%;]*){2}(?:/[.][.]){2}";

impl Cut {
    fn of(line: Line, begin: Option<Begin>, field: &Field) -> Option<Cut> {
        Some(match (line, field) {
            (Line::Cookie, Field::Cookie(name)) => Cut::cookie(name.as_bytes())?,
            (Line::Query, Field::QueryParam(key)) => Cut::parameter("(?:^|&)", key)?,
            (Line::Url, Field::QueryParam(key)) => Cut::parameter("^[^?]*[?](?:.*&)?", key)?,
            (Line::ContentType, Field::ContentType) => Cut {
                tail: "[ \\t]*(?:;|$)",
                one: Cover { within: "[^; \\t]".into(), around: "[^;]".into() },
                exists: "^[ \\t]*[^; \\t]".into(),
                ..Cut::plain("^[ \\t]*".into(), "[^;]", Letters::Type)
            },
            (Line::Host, Field::Host) => Cut {
                tail: "[.]*(?::[0-9]*)?$",
                one: Cover { within: "[^:.\\[]".into(), around: "[^:]".into() },
                exists: "^[^:]".into(),
                odd: Some("^\\["),
                ..Cut::plain("^".into(), "[^:\\[]", Letters::Host)
            },
            (Line::Url, Field::Query) => Cut {
                tail: "$",
                exists: "[?]".into(),
                ..Cut::plain("^[^?]*[?]".into(), ".", Letters::Target)
            },
            (Line::Url, Field::Path) => Cut {
                tail: "(?:[?]|$)",
                exists: "^".into(),
                ..Cut::plain(
                    match begin {
                        Some(Begin::Up) => UP.to_owned(),
                        Some(Begin::UpTwice) => UP_TWICE.to_owned(),
                        _ => format!("(?:{ABSOLUTE}[^/?]+|^)"),
                    },
                    "[^?]",
                    Letters::Target,
                )
            },
            (Line::Url, Field::Host) => Cut {
                tail: "[.]*(?::[0-9]*)?(?:[/?]|$)",
                one: Cover::exact("[^/?:.\\[]".into()),
                exists: ABSOLUTE.into(),
                ..Cut::plain(ABSOLUTE.into(), "[^/?:\\[]", Letters::Host)
            },
            (Line::Url, field) if Line::Host.is(field) => Cut {
                tail: "(?:[/?]|$)",
                exists: ABSOLUTE.into(),
                ..Cut::plain(ABSOLUTE.into(), "[^/?]", Letters::Target)
            },
            _ => return None,
        })
    }

    fn plain(head: String, one: &str, letters: Letters) -> Cut {
        Cut {
            head,
            tail: "",
            any: Cover::exact(format!("{one}*")),
            one: Cover::exact(one.to_owned()),
            exists: String::new(),
            empty: None,
            again: None,
            letters,
            odd: None,
        }
    }

    fn cookie(name: &[u8]) -> Option<Cut> {
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b";=".contains(byte);
        if name.is_empty() || !name.iter().all(is_plain) {
            return None;
        }
        let name: String = name.iter().map(|byte| letter(*byte)).collect();
        let named = format!("[ \\t]*{name}[ \\t]*=");
        Some(Cut {
            tail: "[ \\t]*(?:;|$)",
            one: Cover { within: "[^; \\t]".into(), around: "[^;]".into() },
            exists: format!("(?:^|;){named}"),
            again: Some(format!("(?:^|;){named}.*;{named}")),
            ..Cut::plain(format!("(?:^|;){named}[ \\t]*"), "[^;]", Letters::Listed)
        })
    }

    /// `begin` is what stands before a parameter.
    fn parameter(begin: &str, key: &[u8]) -> Option<Cut> {
        if key.is_empty() || key.contains(&b'=') {
            return None;
        }
        let key = spelled(key, Letters::Coded, false)?;
        Some(Cut {
            tail: "(?:&|$)",
            any: Cover { within: format!("{UNIT}*"), around: "[^&]*".into() },
            one: Cover { within: UNIT.into(), around: "(?:[^&]|%[0-9A-Fa-f]{2})".into() },
            exists: format!("{begin}{key}(?:=|&|$)"),
            empty: Some(format!("{begin}{key}(?:&|$)")),
            again: Some(format!("{begin}{key}(?:=[^&]*)?&(?:.*&)?{key}(?:=|&|$)")),
            ..Cut::plain(format!("{begin}{key}="), "", Letters::Coded)
        })
    }

    fn exists(&self) -> Cover {
        Cover::exact(self.exists.clone())
    }

    fn equals(&self, text: &[u8], fold_case: bool) -> Option<Cover> {
        let value = Cover::exact(self.letters(text, fold_case).filter(|_| !self.is_cut_short(text))?);
        Some(self.whole(&value, text.is_empty()))
    }

    fn of_op(&self, op: &Op, fold_case: bool) -> Option<Cover> {
        let text = |text: &[u8]| self.letters(text, fold_case).map(Cover::exact);
        Some(match op {
            Op::Exists => self.exists(),
            Op::Contains(part) | Op::StartsWith(part) | Op::EndsWith(part) if part.is_empty() => {
                self.exists()
            }
            Op::TextEquals(whole) => self.equals(whole, fold_case)?,
            Op::In(entries) => self.in_list(entries, fold_case)?,
            Op::StartsWith(start) => self.whole(&text(start)?.with(&self.behind(start)), false),
            Op::EndsWith(end) if !self.is_cut_short(end) => self.whole(&self.any.with(&text(end)?), false),
            Op::Contains(part) => {
                let value = self.any.with(&text(part)?).with(&self.behind(part));
                self.with_odd(self.whole(&value, false))
            }
            Op::Under(prefix) if prefix.ends_with(b"/") => self.whole(&text(prefix)?.with(&self.any), false),
            Op::Under(prefix) if !self.is_cut_short(prefix) => {
                let below = text(b"/")?.with(&self.any).map(|below| format!("(?:{below})?"));
                self.whole(&text(prefix)?.with(&below), prefix.is_empty())
            }
            Op::Like(pattern) => self.with_odd(self.like(pattern, fold_case)?),
            _ => return None,
        })
    }

    fn in_list(&self, entries: &[Entry], fold_case: bool) -> Option<Cover> {
        let texts: Option<Vec<_>> = entries
            .iter()
            .map(|entry| match entry {
                Entry::Text(text) if !text.is_empty() && !self.is_cut_short(text) => {
                    self.letters(text, fold_case)
                }
                _ => None,
            })
            .collect();
        let texts = texts.filter(|texts| (1..=LISTED_MAX).contains(&texts.len()))?;
        Some(self.whole(&Cover::exact(format!("(?:{})", texts.join("|"))), false))
    }

    fn like(&self, pattern: &[u8], fold_case: bool) -> Option<Cover> {
        if pattern.iter().all(|byte| *byte == b'*') && !pattern.is_empty() {
            return Some(self.exists());
        }
        if pattern.ends_with(b"**") || self.is_cut_short(pattern) {
            return None;
        }
        let mut value = Cover::exact(String::new());
        let mut rest = pattern;
        while let Some((sign, behind)) = rest.split_first() {
            let literal = rest.iter().position(|byte| b"*?".contains(byte)).unwrap_or(rest.len());
            let (part, behind) = match sign {
                b'*' if behind.is_empty() => {
                    let before = pattern.get(..pattern.len() - 1).unwrap_or_default();
                    (self.behind(before), behind)
                }
                b'*' => (self.any.clone(), behind),
                b'?' => (self.one.clone(), behind),
                _ => {
                    let (literal, behind) = rest.split_at(literal);
                    (Cover::exact(self.letters(literal, fold_case)?), behind)
                }
            };
            (value, rest) = (value.with(&part), behind);
        }
        Some(self.whole(&value, pattern.is_empty()))
    }

    /// A value that a regex takes, in its place.
    fn whole(&self, value: &Cover, is_empty: bool) -> Cover {
        let whole = value.map(|value| format!("{}{value}{}", self.head, self.tail));
        match &self.empty {
            Some(empty) if is_empty => whole.map(|whole| format!("{whole}|{empty}")),
            _ => whole,
        }
    }

    /// The same, or a text of which it is not known.
    fn with_odd(&self, cover: Cover) -> Cover {
        match self.odd {
            Some(odd) => Cover { around: format!("{}|{odd}", cover.around), ..cover },
            None => cover,
        }
    }

    /// What may stand behind a part of a value.
    fn behind(&self, part: &[u8]) -> Cover {
        match self.is_cut_short(part) {
            // With nothing more it would not be part of it.
            true => {
                Cover { within: format!("{}[^/?:.\\[]", self.any.within), around: self.any.around.clone() }
            }
            false => self.any.clone(),
        }
    }

    /// Whether no value ends so, or is so: dots at the end of a host are no part of it, and some have a byte at least.
    fn is_cut_short(&self, text: &[u8]) -> bool {
        match self.letters {
            Letters::Host => text.is_empty() || text.ends_with(b"."),
            Letters::Type => text.is_empty(),
            Letters::Target | Letters::Listed | Letters::Coded => false,
        }
    }

    /// A text as it may be written; nothing where that is not known.
    fn letters(&self, text: &[u8], fold_case: bool) -> Option<String> {
        spelled(text, self.letters, fold_case)
    }
}

fn spelled(text: &[u8], letters: Letters, fold_case: bool) -> Option<String> {
    let folds = fold_case || letters.folds();
    let spelled = |byte: &u8| match (folds, byte) {
        // No value in small letters has it.
        (true, b'A'..=b'Z') => None,
        (true, b'a'..=b'z') => {
            let both = [*byte, byte.to_ascii_uppercase()].map(|byte| written(byte, letters));
            let [Some(small), Some(capital)] = both else { return None };
            Some(format!("(?:{small}|{capital})"))
        }
        (_, byte) => Some(format!("(?:{})", written(*byte, letters)?)),
    };
    let is_short = text.len() <= TEXT_BYTES_MAX;
    is_short.then(|| text.iter().map(spelled).collect()).flatten()
}

/// A path in normal form as targets may have it that spell what is unreserved as codes. Nothing of one with codes of its own.
pub(super) fn coded_path(path: &[u8]) -> Option<String> {
    let spelled = |byte: &u8| match byte {
        b'%' => None,
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) => {
            Some(format!("(?:{})", written(*byte, Letters::Coded)?))
        }
        byte => Some(letter(*byte)),
    };
    if path.len() <= TEXT_BYTES_MAX { path.iter().map(spelled).collect() } else { None }
}

/// What a byte may be written as.
fn written(byte: u8, letters: Letters) -> Option<String> {
    let plain = letters.has(byte).then(|| letter(byte));
    if letters != Letters::Coded {
        return plain;
    }
    let digit = |half: u8| match half {
        0..=9 => char::from(b'0' + half).to_string(),
        half => format!("[{}{}]", char::from(b'a' + half - 10), char::from(b'A' + half - 10)),
    };
    let code = format!("%{}{}", digit(byte >> 4), digit(byte & 0xf));
    match byte {
        // One that begins no code stands for itself.
        b'%' => None,
        b' ' => Some(format!("[+]|{code}")),
        _ => Some(plain.into_iter().chain([code]).collect::<Vec<_>>().join("|")),
    }
}

/// A byte as a regex has it.
fn letter(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    }
}

#[cfg(test)]
mod tests;
