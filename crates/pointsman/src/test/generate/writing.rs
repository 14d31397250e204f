//! Tests as the language writes them.

use pointsman_rules::{
    Committed, Expectation, ExpectedOutcome, Field, OwnedValue, Program, RuleIndex, TestCase,
};

/// Characters of a test's name.
const NAME_CHARS_MAX: usize = 100;
/// Characters of a value in a name.
const SHOWN_CHARS_MAX: usize = 40;
/// Bytes of a text that is written.
const TEXT_BYTES_MAX: usize = 4096;
/// Digits of a number that is written without quotes.
const DIGITS_MAX: usize = 18;

/// Words that mean something else where a target may stand.
const OUTCOMES: &[&str] = &["reject", "discard", "redirect", "respond", "split", "unknown"];

/// `test "R1" { request path "/a" expect R1 -> fast }`; the error says what of it cannot be written.
pub(super) fn test(name: &str, case: &TestCase, program: &Program) -> Result<String, String> {
    let unwritten = |what: &str| format!("no test can say such a request: {what}");
    let field =
        |field: &Field| self::field(field).ok_or_else(|| unwritten("the name of a field has no text"));
    let name = text(name).ok_or_else(|| unwritten("its name has no text"))?;
    let mut text = format!("test {name} {{\n    request");
    for given in &case.given {
        let value = value(&given.field, &given.value);
        let value = value.ok_or_else(|| unwritten(&format!("its `{}` cannot be written", given.field)))?;
        text.push_str(&format!(" {} {value}", field(&given.field)?));
    }
    for absent in &case.absent {
        text.push_str(&format!(" {} absent", field(absent)?));
    }
    if let Some(cause) = case.rest {
        text.push_str(&format!(" body unknown({cause})"));
    }
    let expected = match case.expected {
        Expectation::Nothing => "default".to_owned(),
        Expectation::Decides(rule, outcome) => {
            let label = label(program, rule).ok_or_else(|| {
                let name = program.rule(rule).map(|rule| &*rule.label).unwrap_or_default();
                format!("{name} decides it, has no label, and no test can expect it")
            })?;
            format!("{label} -> {}", self::outcome(program, outcome))
        }
    };
    // What cannot be written is not expected.
    let effects = case.effects.as_deref().and_then(effects).unwrap_or_default();
    text.push_str(&format!("\n    expect {expected}{effects}\n}}\n"));
    Ok(text)
}

/// ` with tag(gold)`; nothing where a value cannot be written.
fn effects(effects: &[Committed]) -> Option<String> {
    if effects.is_empty() {
        return Some(" with nothing".to_owned());
    }
    effects.iter().try_fold(" with".to_owned(), |written, effect| {
        let values: &[&[u8]] = match effect {
            Committed::Set(_, _, value) | Committed::Add(_, _, value) | Committed::Path(value) => &[value],
            Committed::Remove(..) => &[],
            Committed::Tag(word)
            | Committed::Limit(word)
            | Committed::Bandwidth(word)
            | Committed::Mirror(word) => &[word.as_bytes()],
        };
        let are_texts =
            values.iter().all(|value| std::str::from_utf8(value).is_ok_and(|value| text(value).is_some()));
        are_texts.then(|| format!("{written} {effect}"))
    })
}

/// A name without what cannot stand in one.
pub(super) fn name(words: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || c.is_ascii_graphic() || c == ' ';
    let words = words.replace("${", "?{");
    let mut characters = words.chars().map(|c| if is_plain(c) { c } else { '?' });
    let name: String = characters.by_ref().take(NAME_CHARS_MAX).collect();
    if characters.next().is_some() { name + "…" } else { name }
}

/// A value as it stands in a name.
pub(super) fn shown(value: &OwnedValue) -> String {
    let whole = match value {
        OwnedValue::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
        OwnedValue::Integer(integer) => integer.to_string(),
        OwnedValue::Ip(ip) => ip.to_string(),
        OwnedValue::Boolean(boolean) => boolean.to_string(),
        OwnedValue::Nothing => "null".to_owned(),
        OwnedValue::Unknown(cause) => cause.to_string(),
    };
    if whole.chars().count() <= SHOWN_CHARS_MAX {
        return whole;
    }
    whole.chars().take(SHOWN_CHARS_MAX).chain(['…']).collect()
}

fn field(field: &Field) -> Option<String> {
    let key = match field {
        Field::QueryParam(key) => std::str::from_utf8(key).ok()?,
        Field::Header(name) | Field::Cookie(name) => name,
        _ => return Some(field.to_string()),
    };
    let (name, _) = field.to_string().split_once('[').map(|(name, _)| (name.to_owned(), ()))?;
    Some(format!("{name}[{}]", text(key)?))
}

fn value(field: &Field, value: &OwnedValue) -> Option<String> {
    Some(match value {
        OwnedValue::Integer(integer) => integer.to_string(),
        OwnedValue::Ip(ip) => ip.to_string(),
        OwnedValue::Boolean(boolean) => boolean.to_string(),
        OwnedValue::Nothing => "null".to_owned(),
        OwnedValue::Text(bytes) => {
            let written = std::str::from_utf8(bytes).ok()?;
            let is_of_body = matches!(field, Field::Payload(_));
            if is_of_body && is_number(written) { written.to_owned() } else { text(written)? }
        }
        OwnedValue::Unknown(_) => return None,
    })
}

/// Whether it is a number as anybody would write it.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').map_or((unsigned, None), |(a, b)| (a, Some(b)));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    is_digits(whole)
        && fraction.is_none_or(is_digits)
        && (whole == "0" || !whole.starts_with('0'))
        && unsigned.len() <= DIGITS_MAX
}

/// In quotes; nothing where it holds what would be read as something else, or is not seen.
fn text(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || c.is_ascii_graphic() || c == ' ' || c == '…';
    if text.len() > TEXT_BYTES_MAX || text.contains("${") || !text.chars().all(is_plain) {
        return None;
    }
    Some(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// Nothing of a rule that has none.
fn label(program: &Program, rule: RuleIndex) -> Option<String> {
    let label = &program.rule(rule)?.label;
    (!label.starts_with('#')).then(|| label.to_string())
}

fn outcome(program: &Program, outcome: ExpectedOutcome) -> String {
    let shown = outcome.shown(program);
    let is_target = matches!(outcome, ExpectedOutcome::Target(_));
    if is_target && (OUTCOMES.contains(&&*shown) || !shown.split('.').all(is_word)) {
        return format!("\"{}\"", shown.replace('\\', "\\\\").replace('"', "\\\""));
    }
    shown
}

fn is_word(part: &str) -> bool {
    part.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && part.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers_are_written_as_they_are_read() {
        for (input, expected) in [
            ("a", Some("\"a\"")),
            ("a\"b\\c", Some("\"a\\\"b\\\\c\"")),
            ("a\nb", None),
            ("a“b", None),
            ("${host}", None),
        ] {
            assert_eq!(text(input).as_deref(), expected, "{input}");
        }
        for (text, expected) in [
            ("52000.01", true),
            ("-1", true),
            ("0", true),
            ("007", false),
            ("1.", false),
            ("1e3", false),
            ("", false),
        ] {
            assert_eq!(is_number(text), expected, "{text}");
        }
    }

    #[test]
    fn names_are_short_and_plain() {
        assert_eq!(name("R1 where host is 'a\u{202e}${'"), "R1 where host is 'a??{'");
        assert_eq!(name(&"x".repeat(200)).chars().count(), NAME_CHARS_MAX + 1);
    }
}
