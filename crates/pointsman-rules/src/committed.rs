//! What the effects of a decision come to for one request, with the values of its fields filled in.

use std::fmt;
use std::ops::ControlFlow;

use crate::subject::TextRoom;
use crate::{Decision, Effect, Field, HeaderEdit, Side, Subject, Template, rewrite_path};

/// An effect as it is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// A header gets this value.
    Set(Side, Box<str>, Box<[u8]>),
    /// A header gets this value, too.
    Add(Side, Box<str>, Box<[u8]>),
    /// A header is taken away.
    Remove(Side, Box<str>),
    /// The path that comes of a `rewritePath`.
    Path(Box<[u8]>),
    /// A word in the access log.
    Tag(Box<str>),
    /// A class that the request takes from.
    Limit(Box<str>),
    /// A class whose bandwidth it has.
    Bandwidth(Box<str>),
    /// A pool that gets a copy.
    Mirror(Box<str>),
}

impl Decision<'_> {
    /// The effects that are committed with it, in order.
    ///
    /// # Errors
    /// Why a value cannot be filled in: the switch refuses the request then.
    pub fn committed<S: Subject + ?Sized>(&self, subject: &S) -> Result<Vec<Committed>, String> {
        let mut path = None;
        self.effects.iter().map(|effect| committed(effect, subject, &mut path)).collect()
    }
}

/// Rewrites see what earlier ones made.
fn committed<S: Subject + ?Sized>(
    effect: &Effect,
    subject: &S,
    path: &mut Option<Vec<u8>>,
) -> Result<Committed, String> {
    let value = |template: &Template| -> Result<Box<[u8]>, String> {
        let mut out = Vec::new();
        template.render(subject, &mut out).map_err(|error| error.to_string())?;
        Ok(out.into())
    };
    Ok(match effect {
        Effect::Header { side, name, edit: HeaderEdit::Set(template) } => {
            Committed::Set(*side, name.clone(), value(template)?)
        }
        Effect::Header { side, name, edit: HeaderEdit::Add(template) } => {
            Committed::Add(*side, name.clone(), value(template)?)
        }
        Effect::Header { side, name, edit: HeaderEdit::Remove } => Committed::Remove(*side, name.clone()),
        Effect::RewritePath { regex, replacement } => {
            let before = path.take().unwrap_or_else(|| path_of(subject));
            let mut rewritten = Vec::new();
            rewrite_path(regex, replacement, &before, &mut rewritten).map_err(|error| error.to_string())?;
            let shown = rewritten.clone().into();
            *path = Some(rewritten);
            Committed::Path(shown)
        }
        Effect::Tag(word) => Committed::Tag(word.clone()),
        Effect::LimitRate(class) => Committed::Limit(class.clone()),
        Effect::Bandwidth(class) => Committed::Bandwidth(class.clone()),
        Effect::Mirror(pool) => Committed::Mirror(pool.clone()),
    })
}

fn path_of<S: Subject + ?Sized>(subject: &S) -> Vec<u8> {
    let mut path = Vec::new();
    subject.each(&Field::Path, &mut |value| {
        path.extend_from_slice(value.text(&mut TextRoom::default()));
        ControlFlow::Break(())
    });
    path
}

/// As a test writes it.
impl fmt::Display for Committed {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |side: &Side| if *side == Side::Request { "Header" } else { "ResponseHeader" };
        match self {
            Committed::Set(side, name, value) => {
                write!(to, "set{}({}, {})", word(side), quoted(name.as_bytes()), quoted(value))
            }
            Committed::Add(side, name, value) => {
                write!(to, "add{}({}, {})", word(side), quoted(name.as_bytes()), quoted(value))
            }
            Committed::Remove(side, name) => write!(to, "remove{}({})", word(side), quoted(name.as_bytes())),
            Committed::Path(path) => write!(to, "rewritePath({})", quoted(path)),
            Committed::Tag(tag) if is_word(tag) => write!(to, "tag({tag})"),
            Committed::Tag(tag) => write!(to, "tag({})", quoted(tag.as_bytes())),
            Committed::Limit(class) if is_word(class) => write!(to, "limitRate({class})"),
            Committed::Limit(class) => write!(to, "limitRate({})", quoted(class.as_bytes())),
            Committed::Bandwidth(class) if is_word(class) => write!(to, "bandwidth({class})"),
            Committed::Bandwidth(class) => write!(to, "bandwidth({})", quoted(class.as_bytes())),
            Committed::Mirror(pool) if is_word(pool) => write!(to, "mirror({pool})"),
            Committed::Mirror(pool) => write!(to, "mirror({})", quoted(pool.as_bytes())),
        }
    }
}

/// What is no text is shown all the same.
fn quoted(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}
