//! Mistakes in a condition.

use crate::ast::{Comparison, Condition, Entry, Predicate, TextOperator};
use crate::format::{spell_condition, spell_entry};
use crate::{Order, Span};

use super::borders::{moved, narrower, wider};
use super::{Maker, Mutant, MutantKind};

impl<'a, F: FnMut(Mutant)> Maker<'a, F> {
    /// The nesting was bounded when the text was read.
    pub(super) fn condition(&mut self, condition: &'a Condition) {
        match condition {
            Condition::Not(span, inner) => {
                let bare = match &**inner {
                    Condition::Group(..) => self.spell(inner),
                    inner => format!("({})", self.spell(inner)),
                };
                self.show(MutantKind::Negation, *span, bare);
                self.condition(inner);
            }
            Condition::And(parts) | Condition::Or(parts) => {
                let joint = if let Condition::And(_) = condition { " || " } else { " && " };
                let parts_text: Vec<_> = parts.iter().map(|part| self.spell(part)).collect();
                self.show(MutantKind::Joint, condition.span(), parts_text.join(joint));
                parts.iter().for_each(|part| self.condition(part));
            }
            Condition::Group(_, inner) => self.condition(inner),
            Condition::Test(test) => self.comparison(test),
            Condition::Broken(_) => {}
        }
    }

    fn spell(&self, condition: &Condition) -> String {
        spell_condition(condition, self.source)
    }

    fn comparison(&mut self, test: &Comparison) {
        let span = test.span;
        match &test.predicate {
            Predicate::Equals(literal) => {
                self.becomes(MutantKind::Comparison, test, Predicate::Differs(literal.clone()));
                for literal in [wider(literal), narrower(literal)].into_iter().flatten() {
                    self.becomes(MutantKind::Border, test, Predicate::Equals(literal));
                }
            }
            Predicate::Differs(literal) => {
                self.becomes(MutantKind::Comparison, test, Predicate::Equals(literal.clone()));
            }
            Predicate::Ordered(order, literal) => {
                let neighbour = Predicate::Ordered(neighbour(*order), literal.clone());
                self.becomes(MutantKind::Comparison, test, neighbour);
                for literal in moved(literal) {
                    self.becomes(MutantKind::Border, test, Predicate::Ordered(*order, literal));
                }
            }
            Predicate::Text(operator, text) => match operator {
                TextOperator::Under => {
                    let other = Predicate::Text(TextOperator::StartsWith, text.clone());
                    self.becomes(MutantKind::Comparison, test, other);
                    self.negated(test, span);
                }
                TextOperator::StartsWith if text.text.starts_with('/') => {
                    let other = Predicate::Text(TextOperator::Under, text.clone());
                    self.becomes(MutantKind::Comparison, test, other);
                    self.negated(test, span);
                }
                _ => self.negated(test, span),
            },
            Predicate::In { entries, .. } => {
                self.negated(test, span);
                self.entries(entries);
            }
            Predicate::Bare | Predicate::Exists => self.negated(test, span),
        }
    }

    /// Each is changed where it stands: a list may be long.
    fn entries(&mut self, entries: &[Entry]) {
        let mut left = entries.first().map_or(0, |entry| span_of(entry).start);
        for (place, entry) in entries.iter().enumerate() {
            let span = span_of(entry);
            if entries.len() > 1 {
                let right = entries.get(place + 1).map(|next| span_of(next).start);
                let with_comma = match right {
                    Some(end) => Span { start: span.start, end },
                    None => Span { start: left, end: span.end },
                };
                self.show(MutantKind::Entry, with_comma, String::new());
            }
            left = span.end;
            for other in neighbours(entry) {
                let text = spell_entry(&other, self.source);
                self.show(MutantKind::Border, span, text);
            }
        }
    }

    fn becomes(&mut self, kind: MutantKind, test: &Comparison, predicate: Predicate) {
        let other = Condition::Test(Comparison { predicate, ..test.clone() });
        let text = self.spell(&other);
        self.show(kind, test.span, text);
    }

    fn negated(&mut self, test: &Comparison, span: Span) {
        let text = format!("!({})", self.spell(&Condition::Test(test.clone())));
        self.show(MutantKind::Comparison, span, text);
    }
}

/// The same but for the border itself.
fn neighbour(order: Order) -> Order {
    match order {
        Order::Less => Order::LessOrEqual,
        Order::LessOrEqual => Order::Less,
        Order::Greater => Order::GreaterOrEqual,
        Order::GreaterOrEqual => Order::Greater,
    }
}

fn span_of(entry: &Entry) -> Span {
    match entry {
        Entry::Value(literal) => literal.span,
        Entry::Range { span, .. } => *span,
        Entry::List(list) => list.span,
    }
}

/// A network of another size, a range with another end.
fn neighbours(entry: &Entry) -> Vec<Entry> {
    match entry {
        Entry::Value(literal) => {
            [wider(literal), narrower(literal)].into_iter().flatten().map(Entry::Value).collect()
        }
        Entry::Range { span, from, to, exclusive } => {
            let range = |from, to| Entry::Range { span: *span, from, to, exclusive: *exclusive };
            let below = moved(from).into_iter().map(|from| range(from, to.clone()));
            let above = moved(to).into_iter().map(|to| range(from.clone(), to));
            below.chain(above).collect()
        }
        Entry::List(_) => Vec::new(),
    }
}
