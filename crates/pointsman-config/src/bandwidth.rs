//! Classes of `bandwidth`: how many bytes a second who has, and of whom is borrowed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pointsman_rules::Program;
use pointsman_shape::{BURST_BYTES_MIN, DEPTH_MAX};

use crate::Listener;
use crate::findings::{Findings, Spanned};
use crate::keys::{TO_CLIENT, TO_SERVER};
use crate::notation;
use crate::section::Section;

/// What a class may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BandwidthClass {
    /// Unique among classes.
    pub name: Arc<str>,
    /// The place of the class that it borrows of, which stands before it.
    pub parent: Option<usize>,
    /// What it has whatever others do.
    pub guaranteed_bytes_per_second: u64,
    /// What it never has more than; nothing where only its parent's bounds it.
    pub ceiling_bytes_per_second: Option<u64>,
    /// What may come at once after a pause.
    pub burst_bytes: u64,
    /// Which bytes count.
    pub direction: Direction,
}

/// Which bytes count for a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Those of answers and those of requests, each by themselves.
    Both,
    /// Those of answers.
    ToClient,
    /// Those of requests.
    ToServer,
}

/// A class as written.
pub(crate) struct BandwidthSpec {
    pub(crate) name: Spanned<String>,
    parent: Option<Spanned<String>>,
    guaranteed: Option<Spanned<u64>>,
    ceiling: Option<Spanned<u64>>,
    burst_bytes: Option<Spanned<u64>>,
    direction: Direction,
}

impl BandwidthSpec {
    pub(crate) fn read((name, section): (Spanned<String>, Section<'_>)) -> Self {
        if let Err(refusal) = notation::name(&name.value) {
            section.findings().error(name.span, refusal.message, refusal.help);
        }
        let number = |key| {
            let value = section.has(key).then(|| section.number(key)).flatten();
            value.map(|value: u64| Spanned { value, span: section.place(key) })
        };
        let has_bound = section.has("parent") || section.has("ceiling_bytes_per_second");
        if !has_bound {
            section.missing(
                "a class without a `parent` needs `ceiling_bytes_per_second`",
                "say how much it may have, or of which class it borrows",
            );
        }
        Self {
            parent: section.text("parent"),
            guaranteed: number("guaranteed_bytes_per_second"),
            ceiling: number("ceiling_bytes_per_second"),
            burst_bytes: number("burst_bytes"),
            direction: match section.word("direction") {
                TO_CLIENT => Direction::ToClient,
                TO_SERVER => Direction::ToServer,
                _ => Direction::Both,
            },
            name,
        }
    }
}

/// The classes, each behind the one that it borrows of.
pub(crate) fn lower(specs: &[BandwidthSpec], findings: &Findings<'_>) -> Vec<BandwidthClass> {
    let by_name: HashMap<&str, usize> = specs.iter().map(|spec| spec.name.value.as_str()).zip(0..).collect();
    let parents: Vec<Option<usize>> = specs.iter().map(|spec| parent(spec, &by_name, findings)).collect();
    let depths: Vec<Option<usize>> = (0..specs.len()).map(|index| depth(index, &parents)).collect();
    for (spec, depth) in specs.iter().zip(&depths) {
        let at = spec.parent.as_ref().map_or(spec.name.span, |parent| parent.span);
        match depth {
            None => findings.error(
                at,
                format!("the class `{}` borrows of itself", spec.name.value),
                "one of the classes in this circle has no `parent`",
            ),
            Some(depth) if *depth > DEPTH_MAX => findings.error(
                at,
                format!("the class `{}` is the {depth}th above each other", spec.name.value),
                format!("at most {DEPTH_MAX} classes may stand above each other"),
            ),
            Some(_) => {}
        }
    }
    let mut order: Vec<usize> = (0..specs.len()).filter(|&index| depths[index].is_some()).collect();
    order.sort_by_key(|&index| depths[index]);
    let guarantees = guarantees(specs, &parents, &order, findings);
    let mut classes: Vec<BandwidthClass> = Vec::with_capacity(order.len());
    let mut bounds: Vec<u64> = Vec::with_capacity(order.len());
    for &index in &order {
        let spec = &specs[index];
        let parent = parents[index].and_then(|parent| order.iter().position(|&other| other == parent));
        let ceiling = spec.ceiling.as_ref().map(|ceiling| ceiling.value);
        let bound = ceiling.into_iter().chain(parent.map(|parent| bounds[parent])).min().unwrap_or(0);
        bounds.push(bound);
        let burst = spec.burst_bytes.as_ref().map(|burst| burst.value);
        classes.push(BandwidthClass {
            name: spec.name.value.as_str().into(),
            parent,
            guaranteed_bytes_per_second: guarantees[index],
            ceiling_bytes_per_second: ceiling,
            burst_bytes: burst.unwrap_or_else(|| usual_burst_bytes(bound)),
            direction: spec.direction,
        });
    }
    let burst_of = |at: usize| specs[order[at]].burst_bytes.as_ref();
    warn_of_bursts(&classes, &bounds, burst_of, findings);
    classes
}

/// What comes at once where nothing is said of it.
fn usual_burst_bytes(bound: u64) -> u64 {
    (bound / 5).max(BURST_BYTES_MIN)
}

/// Who borrows leaves half of a bucket above it to those that are guaranteed it, so that this half must last until a timer fires.
fn warn_of_bursts<'s>(
    classes: &[BandwidthClass],
    bounds: &[u64],
    burst_of: impl Fn(usize) -> Option<&'s Spanned<u64>>,
    findings: &Findings<'_>,
) {
    let mut has_borrowers = vec![false; classes.len()];
    // Children stand behind their parents.
    for (at, class) in classes.iter().enumerate().rev() {
        if let Some(parent) = class.parent {
            has_borrowers[parent] |= has_borrowers[at] || class.guaranteed_bytes_per_second < bounds[at];
        }
    }
    for (at, class) in classes.iter().enumerate() {
        let wanted = usual_burst_bytes(bounds[at]);
        let is_bounded = class.ceiling_bytes_per_second.is_some();
        let burst = burst_of(at).filter(|burst| is_bounded && has_borrowers[at] && burst.value < wanted);
        if let Some(burst) = burst {
            let message = format!("classes that borrow do not get all that `{}` leaves them", class.name);
            let help = format!("they need a fifth of a second of its ceiling, {wanted} bytes");
            findings.warning(burst.span, message, help);
        }
    }
}

/// Says which classes no rule gives, and no class borrows of.
pub(crate) fn note_idle(specs: &[BandwidthSpec], listeners: &[Listener], findings: &Findings<'_>) {
    let programs = listeners.iter().filter_map(|listener| listener.program.as_deref());
    let by_rules = programs.flat_map(Program::bandwidth_classes);
    let by_classes = specs.iter().filter_map(|spec| Some(spec.parent.as_ref()?.value.as_str()));
    let used: HashSet<&str> = by_rules.chain(by_classes).collect();
    for BandwidthSpec { name, .. } in specs.iter().filter(|spec| !used.contains(spec.name.value.as_str())) {
        let message = format!("nothing has the bandwidth of the class `{}`", name.value);
        let help = format!("a rule gives it with `bandwidth({});`", name.value);
        findings.note(name.span, message, help);
    }
}

fn parent(spec: &BandwidthSpec, by_name: &HashMap<&str, usize>, findings: &Findings<'_>) -> Option<usize> {
    let parent = spec.parent.as_ref()?;
    let known = by_name.get(parent.value.as_str()).copied();
    if known.is_none() {
        let help = format!("a class of that name is a table `[bandwidth.{}]`", parent.value);
        findings.error(parent.span, format!("unknown class `{}`", parent.value), help);
    }
    known
}

/// How many classes stand above each other up to this one; nothing where that has no end.
fn depth(index: usize, parents: &[Option<usize>]) -> Option<usize> {
    let up = std::iter::successors(Some(index), |&at| parents[at]);
    let depth = up.take(parents.len() + 1).count();
    (depth <= parents.len()).then_some(depth)
}

/// What each is guaranteed: what it says, or what its children are together.
fn guarantees(
    specs: &[BandwidthSpec],
    parents: &[Option<usize>],
    order: &[usize],
    findings: &Findings<'_>,
) -> Vec<u64> {
    let mut of_children = vec![0u64; specs.len()];
    let mut guarantees = vec![0; specs.len()];
    // Children stand behind their parents.
    for &index in order.iter().rev() {
        let BandwidthSpec { name, guaranteed, ceiling, .. } = &specs[index];
        let children = of_children[index];
        let own = guaranteed.as_ref().map(|guaranteed| guaranteed.value);
        guarantees[index] = own.unwrap_or(children);
        if let Some(parent) = parents[index] {
            of_children[parent] = of_children[parent].saturating_add(guarantees[index]);
        }
        if let (Some(guaranteed), Some(ceiling)) = (guaranteed, ceiling)
            && guaranteed.value > ceiling.value
        {
            let message = format!("the class `{}` is guaranteed more than its ceiling", name.value);
            findings.error(guaranteed.span, message, format!("it may have {} bytes a second", ceiling.value));
        }
        let is_top = parents[index].is_none();
        let has = if is_top { ceiling.as_ref() } else { guaranteed.as_ref().or(ceiling.as_ref()) };
        if let Some(has) = has.filter(|has| has.value < children) {
            let message = format!(
                "the children of the class `{}` are guaranteed {children} bytes a second, which is more than it has",
                name.value
            );
            findings.error(has.span, message, format!("it has {} bytes a second", has.value));
        }
    }
    guarantees
}
