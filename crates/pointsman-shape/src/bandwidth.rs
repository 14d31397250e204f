//! Classes of bandwidth in a tree: each has what it is guaranteed, and borrows what others leave, up to its ceiling.
//!
//! The rules are those of Linux' hierarchical token buckets. A class under its guarantee sends. One over it borrows of
//! the nearest class above that is under its own, and a class without a parent lends up to its ceiling. Those that
//! wait to borrow take turns, each by its guarantee. Nobody is ever over a ceiling: those of the class and of all
//! above it are asked, whoever lends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::meter::{Fill, Meter};

/// What is taken at a time, at most.
pub const PIECE_BYTES: u32 = 16 * 1024;

/// The least burst: some pieces, so that what borrows leaves something to those that are guaranteed.
pub const BURST_BYTES_MIN: u64 = 4 * PIECE_BYTES as u64;

/// Classes that may stand above each other.
pub const DEPTH_MAX: usize = 8;

/// Who was refused counts as waiting for so long: it asks again before that.
const WAITING_NS: u64 = 400_000_000;

/// When one asks again whose turn it is not.
const TURN_NS: u64 = 10_000_000;

/// What a guarantee saves up at least: who waits is late by some ticks of a timer, and must not lose by it.
const SAVED_NS: u64 = 400_000_000;

/// A class without a guarantee borrows as one would that has this part of the ceiling at the top.
const UNGUARANTEED_PARTS: u64 = 100;

/// What a class may have in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassRates {
    /// The class that it borrows of, by its place. It stands before this one.
    pub parent: Option<usize>,
    /// What it has whatever the others do. All that its children are guaranteed is within it.
    pub guaranteed_bytes_per_second: u64,
    /// What it never has more than, in addition to what bounds its parent. A class without a parent has one.
    pub ceiling_bytes_per_second: Option<u64>,
    /// What may come at once after a pause, at least [`BURST_BYTES_MIN`].
    pub burst_bytes: u64,
}

/// What was taken of a class, by all threads; kept when its rates change.
#[derive(Debug, Default)]
pub struct ClassState {
    guaranteed: Meter,
    ceiling: Meter,
    /// What it borrowed of its parent, by its weight.
    borrowed: AtomicU64,
    /// When it last had to wait to borrow.
    waited_ns: AtomicU64,
}

/// The classes of one direction.
#[derive(Debug)]
pub struct Tree {
    classes: Vec<Class>,
}

#[derive(Debug)]
struct Class {
    parent: Option<usize>,
    /// What it has of its own, and lends. Nothing where it is guaranteed nothing.
    guaranteed: Option<Fill>,
    ceiling: Option<Fill>,
    weight: u64,
    children: Vec<usize>,
    /// What its children may borrow together before each other's turn.
    lead_bytes: u64,
    state: Arc<ClassState>,
}

/// Bytes that were taken, and of whom.
#[derive(Clone, Copy, Debug)]
#[must_use = "what is not used is to be given back"]
pub struct Grant {
    class: usize,
    lender: usize,
    /// How many.
    pub bytes: u32,
}

impl Tree {
    /// Classes, parents first, each with what was taken of it so far.
    #[must_use]
    pub fn new(rates: &[ClassRates], states: &[Arc<ClassState>], now_ns: u64) -> Tree {
        let mut classes: Vec<Class> = Vec::with_capacity(rates.len());
        // The ceiling that bounds each class, and the one at the top.
        let mut bounds: Vec<(u64, u64)> = Vec::with_capacity(rates.len());
        for (index, (rates, state)) in rates.iter().zip(states).enumerate() {
            let parent = rates.parent.filter(|&parent| parent < index);
            let above = parent.map(|parent| bounds[parent]);
            let own = rates.ceiling_bytes_per_second;
            let bound = own.into_iter().chain(above.map(|(bound, _)| bound)).min().unwrap_or(u64::MAX);
            let top = above.map_or(bound, |(_, top)| top);
            bounds.push((bound, top));
            let ceiling = own.map(|ceiling| Fill::new(ceiling, rates.burst_bytes));
            let guaranteed = match (parent, rates.guaranteed_bytes_per_second) {
                (None, _) => Some(Fill::new(bound, rates.burst_bytes)),
                (Some(_), 0) => None,
                (Some(_), guaranteed) => {
                    let fill = Fill::new(guaranteed, 0);
                    let depth_ns = Fill::new(bound, rates.burst_bytes).depth_ns.max(SAVED_NS);
                    Some(Fill { depth_ns, ..fill })
                }
            };
            for (meter, fill) in [(&state.guaranteed, guaranteed), (&state.ceiling, ceiling)] {
                fill.into_iter().for_each(|fill| meter.retune(fill, now_ns));
            }
            let weight = match rates.guaranteed_bytes_per_second {
                0 => top / UNGUARANTEED_PARTS,
                guaranteed => guaranteed,
            };
            if let Some(parent) = parent {
                classes[parent].children.push(index);
            }
            let class = Class {
                parent,
                guaranteed,
                ceiling,
                weight: weight.max(1),
                children: Vec::new(),
                lead_bytes: rates.burst_bytes,
                state: state.clone(),
            };
            classes.push(class);
        }
        Tree { classes }
    }

    /// Takes so many bytes for a class, at most [`PIECE_BYTES`].
    ///
    /// # Errors
    /// In how many nanoseconds it is to be asked again.
    pub fn take(&self, class: usize, bytes: u32, now_ns: u64) -> Result<Grant, u64> {
        let bytes = bytes.min(PIECE_BYTES);
        for node in self.up_from(class).filter(|node| node.parent.is_some()) {
            if let Some(fill) = node.ceiling
                && let Err(wait_ns) = node.state.ceiling.look(fill, fill.cost_ns(bytes), now_ns)
            {
                // What it does not get now is not for lack of a lender.
                node.state.waited_ns.store(0, Relaxed);
                return Err(wait_ns);
            }
        }
        let lender = self.lender(class, now_ns).inspect_err(|_| {
            self.up_from(class).for_each(|node| node.state.note_waiting(now_ns));
        })?;
        for (above, node) in self.up_from(class).enumerate() {
            // Who borrows leaves something to those that are guaranteed it, and the more the further away its lender.
            let quarters = match lender {
                _ if above == 0 || lender == class => 4,
                _ if self.classes[lender].parent.is_some() => 3,
                _ => 2,
            };
            if let Some(fill) = node.ceiling
                && let Err(wait_ns) =
                    node.state.ceiling.take(fill.quarters(quarters), fill.cost_ns(bytes), now_ns)
            {
                if quarters < 4 {
                    self.up_from(class).take(above).for_each(|node| node.state.note_waiting(now_ns));
                }
                for node in self.up_from(class).take(above) {
                    let fill = node.ceiling.into_iter();
                    fill.for_each(|fill| node.state.ceiling.give_back(fill.cost_ns(bytes)));
                }
                return Err(wait_ns);
            }
        }
        let grant = Grant { class, lender, bytes };
        self.owe(grant, now_ns);
        Ok(grant)
    }

    /// Says how much of what was taken was used. It may be more: that is owed.
    pub fn settle(&self, grant: Grant, used_bytes: u32, now_ns: u64) {
        let Grant { class, lender, bytes } = grant;
        if used_bytes > bytes {
            let more = Grant { class, lender, bytes: used_bytes - bytes };
            for node in self.up_from(class) {
                let fill = node.ceiling.into_iter();
                fill.for_each(|fill| node.state.ceiling.owe(fill.cost_ns(more.bytes), now_ns));
            }
            return self.owe(more, now_ns);
        }
        let unused = bytes - used_bytes;
        if unused == 0 {
            return;
        }
        for node in self.up_from(class) {
            // Each is rounded up, so what is given back is no more than what was taken.
            let left = |fill: Fill| fill.cost_ns(bytes) - fill.cost_ns(used_bytes);
            node.ceiling.into_iter().for_each(|fill| node.state.ceiling.give_back(left(fill)));
        }
        for node in self.up_from(lender) {
            let left = |fill: Fill| fill.cost_ns(bytes) - fill.cost_ns(used_bytes);
            node.guaranteed.into_iter().for_each(|fill| node.state.guaranteed.give_back(left(fill)));
        }
        for node in self.borrowers(class, lender) {
            let less = |borrowed: u64| Some(borrowed.saturating_sub(weighed(unused.into(), node.weight)));
            // It is never refused.
            let (Ok(_) | Err(_)) = node.state.borrowed.fetch_update(Relaxed, Relaxed, less);
        }
    }

    /// Charges the lender and all above it, and notes what was borrowed.
    fn owe(&self, Grant { class, lender, bytes }: Grant, now_ns: u64) {
        for node in self.up_from(lender) {
            let fill = node.guaranteed.into_iter();
            fill.for_each(|fill| node.state.guaranteed.owe(fill.cost_ns(bytes), now_ns));
        }
        for node in self.borrowers(class, lender) {
            node.state.borrowed.fetch_add(weighed(bytes.into(), node.weight), Relaxed);
        }
    }

    /// Who lets a class send: itself, where it is under its guarantee, or the nearest one above that is.
    fn lender(&self, class: usize, now_ns: u64) -> Result<usize, u64> {
        let mut at = class;
        let mut wait_ns = u64::MAX;
        loop {
            let node = &self.classes[at];
            if let Some(fill) = node.guaranteed {
                // Anything left is enough: what is sent is then owed.
                match node.state.guaranteed.look(fill, 1, now_ns) {
                    Ok(()) => return Ok(at),
                    Err(more_ns) => wait_ns = wait_ns.min(more_ns),
                }
            }
            let Some(parent) = node.parent else { return Err(wait_ns) };
            if !self.is_in_turn(at, parent, now_ns) {
                return Err(wait_ns.min(TURN_NS));
            }
            at = parent;
        }
    }

    /// Whether a class has not borrowed much more than those beside it that wait, by their weights.
    fn is_in_turn(&self, at: usize, parent: usize, now_ns: u64) -> bool {
        let Class { weight, state, .. } = &self.classes[at];
        let Class { children, lead_bytes, .. } = &self.classes[parent];
        let beside = children.iter().filter(|&&child| child != at).map(|&child| &self.classes[child]);
        let mut weights = *weight;
        let mut least = None;
        for waiting in beside.filter(|beside| beside.state.is_waiting(now_ns)) {
            weights = weights.saturating_add(waiting.weight);
            let borrowed = waiting.state.borrowed.load(Relaxed);
            least = Some(least.map_or(borrowed, |least: u64| least.min(borrowed)));
        }
        let Some(least) = least else { return true };
        if !state.is_waiting(now_ns) {
            // What it left to others while it had enough is not made up for.
            state.borrowed.fetch_max(least, Relaxed);
        }
        state.borrowed.load(Relaxed) <= least.saturating_add(weighed(*lead_bytes, weights))
    }

    fn up_from(&self, class: usize) -> impl Iterator<Item = &Class> {
        let first = self.classes.get(class);
        std::iter::successors(first, |node| node.parent.map(|parent| &self.classes[parent]))
    }

    /// A class and those above it that borrow for it.
    fn borrowers(&self, class: usize, lender: usize) -> impl Iterator<Item = &Class> {
        let lender = &raw const self.classes[lender];
        self.up_from(class).take_while(move |node| !std::ptr::eq(*node, lender))
    }
}

impl ClassState {
    fn note_waiting(&self, now_ns: u64) {
        self.waited_ns.store(now_ns.max(1), Relaxed);
    }

    fn is_waiting(&self, now_ns: u64) -> bool {
        let waited_ns = self.waited_ns.load(Relaxed);
        waited_ns != 0 && now_ns.saturating_sub(waited_ns) < WAITING_NS
    }
}

/// Bytes by a weight, in parts fine enough for any.
fn weighed(bytes: u64, weight: u64) -> u64 {
    u64::try_from((u128::from(bytes) << 32) / u128::from(weight)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
