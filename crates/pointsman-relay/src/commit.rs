//! Effects, committed with the terminal action: what changes in the request and in the answer.

use std::borrow::Cow;

use pointsman_http::HeaderLine;
use pointsman_rules::{Effect, HeaderEdit, Side, rewrite_path};
use pointsman_view::{PathOptions, RequestView, normal_form};

use crate::fault::Fault;

/// What the collected effects come to, rendered while the request could still be asked.
#[derive(Debug, Default)]
pub(crate) struct Committed<'r> {
    pub(crate) request: HeaderEdits<'r>,
    pub(crate) response: HeaderEdits<'r>,
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) tags: Vec<&'r str>,
}

/// Edits of header lines, one entry a name.
#[derive(Debug, Default)]
pub(crate) struct HeaderEdits<'r>(Vec<NamedEdit<'r>>);

#[derive(Debug)]
struct NamedEdit<'r> {
    name: Cow<'r, str>,
    takes_away: bool,
    values: Vec<Vec<u8>>,
}

impl<'r> Committed<'r> {
    /// Renders `effects` in order. Values and matches see the request as the client sent it.
    pub(crate) fn render(
        effects: &[&'r Effect],
        view: &RequestView<'_>,
        options: PathOptions,
    ) -> Result<Committed<'r>, Fault> {
        let mut committed = Committed::default();
        for effect in effects {
            match effect {
                Effect::Header { side: Side::Request, name, edit } => {
                    committed.request.apply(name, edit, view)?;
                }
                Effect::Header { side: Side::Response, name, edit } => {
                    committed.response.apply(name, edit, view)?;
                }
                Effect::RewritePath { regex, replacement } => {
                    let mut rewritten = Vec::new();
                    let path = committed.path.as_deref().unwrap_or(view.path().path());
                    rewrite_path(regex, replacement, path, &mut rewritten).map_err(Fault::Rewrite)?;
                    // What a client may not ask for, a rule may not make of what it asked for.
                    let mut scratch = Vec::new();
                    let normal = normal_form(&rewritten, options, &mut scratch).map_err(Fault::Path)?;
                    committed.path = Some(normal.path().to_vec());
                }
                Effect::Tag(tag) => committed.tags.push(tag),
                // They are no edits: `limit.rs` and `bandwidth.rs` take them.
                Effect::LimitRate(_) | Effect::Bandwidth(_) | Effect::Mirror(_) => {}
            }
        }
        Ok(committed)
    }
}

impl<'r> HeaderEdits<'r> {
    fn apply(&mut self, name: &'r str, edit: &HeaderEdit, view: &RequestView<'_>) -> Result<(), Fault> {
        let render = |template: &pointsman_rules::Template| {
            let mut value = Vec::new();
            template.render(view, &mut value).map(|()| value).map_err(Fault::Substitution)
        };
        let named = self.named(name);
        match edit {
            HeaderEdit::Set(template) => {
                named.takes_away = true;
                named.values = vec![render(template)?];
            }
            HeaderEdit::Add(template) => named.values.push(render(template)?),
            HeaderEdit::Remove => {
                named.takes_away = true;
                named.values.clear();
            }
        }
        Ok(())
    }

    fn named(&mut self, name: &'r str) -> &mut NamedEdit<'r> {
        let at = self.0.iter().position(|edit| edit.name == name).unwrap_or_else(|| {
            self.0.push(NamedEdit { name: Cow::Borrowed(name), takes_away: false, values: Vec::new() });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// Adds a line that is the switch's own.
    pub(crate) fn add(&mut self, name: &'static str, value: Vec<u8>) {
        self.named(name).values.push(value);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same, without its ties to the rule set.
    pub(crate) fn into_owned(self) -> HeaderEdits<'static> {
        let owned = self.0.into_iter().map(|edit| NamedEdit {
            name: Cow::Owned(edit.name.into_owned()),
            takes_away: edit.takes_away,
            values: edit.values,
        });
        HeaderEdits(owned.collect())
    }

    /// Takes away the lines that an edit replaces or removes.
    pub(crate) fn drop_lines(&self, lines: &mut [HeaderLine], buffer: &[u8]) {
        for line in lines {
            line.dropped |= self.takes_away(line.name(buffer));
        }
    }

    /// Takes the same away from `lines`, whole header lines that the switch adds itself.
    pub(crate) fn strip(&self, lines: &mut Vec<u8>) {
        let mut start = 0;
        while let Some(length) = memchr::memchr(b'\n', &lines[start..]).map(|at| at + 1) {
            let line = &lines[start..start + length];
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
            match self.takes_away(name) {
                true => drop(lines.drain(start..start + length)),
                false => start += length,
            }
        }
    }

    /// Whether an edit replaces or removes the lines of that name.
    pub(crate) fn takes_away(&self, name: &[u8]) -> bool {
        let names = |edit: &NamedEdit<'_>| edit.takes_away && name.eq_ignore_ascii_case(edit.name.as_bytes());
        self.0.iter().any(names)
    }

    /// Appends the lines that the edits add.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for edit in &self.0 {
            for value in &edit.values {
                out.extend_from_slice(edit.name.as_bytes());
                out.extend_from_slice(b": ");
                out.extend_from_slice(value);
                out.extend_from_slice(b"\r\n");
            }
        }
    }
}
