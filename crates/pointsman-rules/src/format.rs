//! The formatter: a rule file in its modern form, with its comments.

mod layout;
mod spelling;

use crate::ast::{Action, Block, Comment, Condition, Entry, Item, Name, Operand, Rule, RuleFile, TestCase};
use crate::{Diagnostic, Severity};

use layout::LINE_CHARS_MAX;
use spelling::Spelling;

const INDENT: &str = "    ";

/// Prints a rule file in its modern form. Older spellings become modern ones, comments stay, and
/// what is formatted already comes out as it was.
///
/// # Errors
/// The errors of the text, if it cannot be read.
pub fn format(source: &str) -> Result<String, Vec<Diagnostic>> {
    let (file, findings) = crate::parse(source);
    if findings.iter().any(|finding| finding.severity == Severity::Error) {
        return Err(findings);
    }
    let mut printer = Printer {
        source,
        spelling: Spelling { source },
        comments: &file.comments,
        out: String::with_capacity(source.len()),
    };
    printer.file(&file);
    Ok(printer.out)
}

/// What stands on the left of a comparison, for a sentence about it: without the white space and the comments that
/// may stand in it.
pub(crate) fn spell(operand: &Operand, source: &str) -> String {
    Spelling { source }.operand(operand)
}

/// A condition in its modern form, on one line.
pub(crate) fn spell_condition(condition: &Condition, source: &str) -> String {
    Spelling { source }.condition(condition)
}

/// An entry of a list.
pub(crate) fn spell_entry(entry: &Entry, source: &str) -> String {
    Spelling { source }.entry(entry)
}

/// A name as it stands where a target does.
pub(crate) fn spell_name(target: &Name) -> String {
    spelling::name(target)
}

/// What stands before the condition or the block of a rule.
pub(crate) fn spell_rule_head(rule: &Rule) -> String {
    rule.label.as_ref().map(|label| format!("{}: ", label.text)).unwrap_or_default()
}

struct Printer<'a> {
    source: &'a str,
    spelling: Spelling<'a>,
    /// Those that are not printed yet.
    comments: &'a [Comment],
    out: String,
}

/// Whether a line is the first of its file or block: no blank line comes before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Later,
}

impl Printer<'_> {
    fn file(&mut self, file: &RuleFile) {
        for item in &file.items {
            let span = item.span();
            let place = if self.out.is_empty() { Place::First } else { Place::Later };
            self.lead(span.start, guard_end(item), "", place);
            self.item(item);
            self.trail(span.end, u32::MAX);
            self.out.push('\n');
        }
        let place = if self.out.is_empty() { Place::First } else { Place::Later };
        self.comments_before(u32::MAX, "", place);
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Setting(setting) => {
                let text = self.spelling.setting(&setting.kind);
                self.out.push_str(&text);
            }
            Item::Rule(rule) => self.rule(rule),
            Item::Fallback(rule) => self.fallback(rule),
            Item::Test(test) => self.test(test),
            Item::Assert(assertion) => {
                let text = self.spelling.assertion(assertion);
                self.out.push_str(&text);
            }
        }
    }

    fn rule(&mut self, rule: &Rule) {
        let label = spell_rule_head(rule);
        let Some(condition) = &rule.condition else {
            self.out.push_str(&label);
            self.whole_block(rule);
            return;
        };
        let head = format!("{label}if ({}) ", self.spelling.condition(condition));
        if !self.has_comment_before(rule.span.end) {
            let mut line = head.clone() + &self.spelling.block(&rule.then);
            if let Some(otherwise) = &rule.otherwise {
                line.push_str(" else ");
                line.push_str(&self.spelling.block(otherwise));
            }
            if line.chars().count() <= LINE_CHARS_MAX {
                self.out.push_str(&line);
                return;
            }
        }
        if head.chars().count() < LINE_CHARS_MAX {
            self.out.push_str(&head);
        } else {
            self.out.push_str(&label);
            self.out.push_str("if (\n");
            let lines = self.spelling.broken_condition(condition);
            self.out.push_str(&lines);
            self.out.push_str(") ");
        }
        self.block(&rule.then);
        if let Some(otherwise) = &rule.otherwise {
            self.out.push_str(" else ");
            self.block(otherwise);
        }
    }

    fn fallback(&mut self, rule: &Rule) {
        self.out.push_str("else: ");
        if let ([action], false) = (&*rule.then.actions, self.has_comment_before(rule.span.end)) {
            let action = self.spelling.action(action);
            self.out.push_str(&action);
            return;
        }
        self.whole_block(rule);
    }

    /// The block of a rule without a condition: on the label's line if it fits.
    fn whole_block(&mut self, rule: &Rule) {
        let flat = self.spelling.block(&rule.then);
        let column = self.out.len() - self.out.rfind('\n').map_or(0, |at| at + 1);
        if self.has_comment_before(rule.span.end) || column + flat.chars().count() > LINE_CHARS_MAX {
            self.block(&rule.then);
        } else {
            self.out.push_str(&flat);
        }
    }

    /// A block with one action a line.
    fn block(&mut self, block: &Block) {
        self.out.push_str("{\n");
        let mut place = Place::First;
        for action in &block.actions {
            self.lead(action.span.start, action.span.end, INDENT, place);
            self.action_line(action);
            self.trail(action.span.end, block.span.end);
            self.out.push('\n');
            place = Place::Later;
        }
        self.comments_before(block.span.end, INDENT, place);
        self.out.push('}');
    }

    fn action_line(&mut self, action: &Action) {
        let text = self.spelling.action(action);
        self.out.push_str(INDENT);
        self.out.push_str(&text);
    }

    fn test(&mut self, test: &TestCase) {
        let text = self.spelling.test(test);
        self.out.push_str(&text);
    }

    /// What stands before something at `start`: its comments, a blank line if there was one, and
    /// the comments from inside it, up to `inner_end`, that have no line there to stand on.
    fn lead(&mut self, start: u32, inner_end: u32, indent: &str, place: Place) {
        let place = self.comments_before(start, indent, place);
        if place == Place::Later && self.blank_before(start) {
            self.out.push('\n');
        }
        while let Some(comment) = self.take_before(inner_end) {
            self.comment_line(comment, indent);
        }
    }

    fn comments_before(&mut self, end: u32, indent: &str, mut place: Place) -> Place {
        while let Some(comment) = self.take_before(end) {
            if place == Place::Later && self.blank_before(comment.span.start) {
                self.out.push('\n');
            }
            self.comment_line(comment, indent);
            place = Place::Later;
        }
        place
    }

    /// A comment on the line on which something ended, before `limit`.
    fn trail(&mut self, end: u32, limit: u32) {
        let Some(next) = self.comments.first() else { return };
        let between = self.source.get(end as usize..next.span.start as usize);
        if next.span.start < limit
            && between.is_some_and(|text| text.trim().is_empty() && !text.contains('\n'))
        {
            self.out.push_str("  ");
            self.out.push_str(next.span.of(self.source));
            self.comments = &self.comments[1..];
        }
    }

    fn comment_line(&mut self, comment: Comment, indent: &str) {
        self.out.push_str(indent);
        self.out.push_str(comment.span.of(self.source));
        self.out.push('\n');
    }

    fn take_before(&mut self, end: u32) -> Option<Comment> {
        let (first, rest) = self.comments.split_first()?;
        if first.span.start >= end {
            return None;
        }
        self.comments = rest;
        Some(*first)
    }

    fn has_comment_before(&self, end: u32) -> bool {
        self.comments.first().is_some_and(|comment| comment.span.start < end)
    }

    fn blank_before(&self, at: u32) -> bool {
        let before = self.source.get(..at as usize).unwrap_or("");
        before.chars().rev().take_while(|c| c.is_whitespace()).filter(|c| *c == '\n').count() > 1
    }
}

/// Where the part of an item ends that has no line of its own for a comment.
fn guard_end(item: &Item) -> u32 {
    match item {
        Item::Rule(rule) | Item::Fallback(rule) => rule.then.span.start,
        other => other.span().end,
    }
}
