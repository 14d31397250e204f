//! One question: whether a request comes to a rule, and makes its condition come to something.

pub(super) mod across;
mod around;
mod arrivals;
mod barring;
mod came;
mod codings;
mod directed;
mod exclusions;
mod giving_up;
mod hops;
mod joined;
mod kinds;
mod lines;
mod near;
mod of_field;
mod places;
mod proving;
mod related;
mod sampled;
mod shared;
mod solving;
mod spelled;
mod targets;
mod trying;
mod upgrades;
mod well_formed;
mod whole;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use batsat::Lit;
use pointsman_rules::{Condition, Field, Op, Program, Rule, RuleIndex, Test, Truths};
use pointsman_view::BodyPaths;

use self::across::Across;
use self::arrivals::Arriving;
use self::barring::Barring;
use self::came::{Came, came};
use self::directed::Directing;
pub(super) use self::near::Original;
use self::of_field::OfField;
pub(super) use self::related::made_up;
pub(super) use self::sampled::Seen;
use self::whole::WholeBodies;
use super::doubt::{Doubt, doubted};
use super::given::Given;
use super::lemmas::{Lemma, Lemmas};
use super::states::States;
use super::walk::Walk;
use super::world::{Matters, Said, World};
use crate::Effort;
use crate::space::{Automata, Outline, Solved};
use crate::wanted::{Asked, Sketch, Values};
use crate::witness::{Setting, Unrealisable, Witness, with_subject};

/// A question takes at most so many steps.
const QUESTION_STEPS: u64 = 2_000_000;
/// Asking the rules about a request takes about so many steps, and [`PASSED_STEPS`] for each rule that is asked one by one.
const REQUEST_STEPS: u64 = 200;
/// What each rule is worth that a request passes where rules jump: they are asked one by one.
const PASSED_STEPS: u64 = 2;
/// So many rules that stop a request are taken into account one by one. Who meets more meets many: of these each time as
/// many are as there are, or as the question before has met.
const ONE_BY_ONE_MAX: usize = 2;
/// Not more than so many at once.
const AT_ONCE_MAX: usize = 1024;
/// Looking for one of them takes about so many steps.
const FURTHER_STEPS: u64 = 8;
/// Reading so many takes about a step.
const BYTES_OF_A_STEP: u64 = 32;
/// So many answers about fields are kept.
const SOLVED_MAX: usize = 100_000;

/// Whether a request comes to `rule` and makes its condition come to one of `states`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    /// The one behind the last means that no rule decides.
    pub(super) rule: u32,
    pub(super) states: States,
    /// Another rule that is passed over, and what its condition is to come to.
    pub(super) removed: Option<(u32, States)>,
    pub(super) way: Way,
}

/// What is asked of the rules around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// They let the request pass to the rule, first to that which is removed, then on without it.
    Walk,
    /// The same; one that decides otherwise than the removed rule is as good as that to which the request was to come.
    Otherwise,
    /// Nothing: two conditions by themselves.
    Apart,
    /// Those of an old program let the request pass to the removed rule, and those of a new one behind it to the rule.
    Across,
}

/// Rules, each with what its condition comes to.
pub(super) type Pattern = Vec<(u32, States)>;

/// What there is to say.
#[derive(Debug)]
pub(super) enum Answer {
    /// This request does.
    Yes(Box<Witness>),
    /// None does: these rules let none pass that could. Without rules it is the condition itself that cannot.
    No(Vec<u32>),
    Unknown(Doubt),
}

/// A program and all that was learnt about it.
pub(super) struct Analyst<'p> {
    pub(super) program: &'p Arc<Program>,
    pub(super) walk: Walk,
    /// What every request has to be that is asked for.
    pub(super) given: Option<Given<'p>>,
    pub(super) setting: &'p Setting,
    pub(super) paths: Arc<BodyPaths>,
    automata: Automata,
    lemmas: Lemmas,
    /// Values that were found for tests of one field.
    solved: HashMap<Lemma, Values>,
    pub(super) truths: Truths,
    /// How many rules had to be taken into account for the last request that was found.
    met: usize,
    /// The rules that left nothing for questions before.
    barring: Barring,
    pub(super) effort: Effort,
    /// The two programs that it is made of, where it is.
    pub(super) across: Option<Across<'p>>,
    /// What is true of every request that the listener lets in.
    always: solving::Facts,
    /// The ways in which requests come to the listener, once somebody has asked.
    arriving: Option<Arc<[Arriving]>>,
    whole_bodies: WholeBodies,
    /// Which hosts may be asked for by which names, likewise.
    directing: Option<Arc<[Directing]>>,
}

impl<'p> Analyst<'p> {
    pub(super) fn new(program: &'p Arc<Program>, setting: &'p Setting, effort: Effort) -> Analyst<'p> {
        Analyst::of_walk(program, Walk::new(program), setting, effort)
    }

    /// Of a program that is [`Program::joined`].
    pub(super) fn of_two(
        program: &'p Arc<Program>,
        programs: [&'p Arc<Program>; 2],
        setting: &'p Setting,
        effort: Effort,
    ) -> Analyst<'p> {
        let walk = Walk::joined(program, programs.map(|program| &**program));
        let across = Some(Across::new(programs));
        Analyst { across, ..Analyst::of_walk(program, walk, setting, effort) }
    }

    fn of_walk(program: &'p Arc<Program>, walk: Walk, setting: &'p Setting, effort: Effort) -> Analyst<'p> {
        Analyst {
            program,
            walk,
            given: None,
            setting,
            paths: Arc::new(BodyPaths::new(program)),
            automata: Automata::default(),
            lemmas: Lemmas::default(),
            solved: HashMap::new(),
            truths: Truths::default(),
            met: 0,
            barring: Barring::default(),
            effort,
            across: None,
            always: solving::Facts::always(setting),
            arriving: None,
            whole_bodies: WholeBodies::default(),
            directing: None,
        }
    }

    pub(super) fn ask(&mut self, question: Question) -> Answer {
        self.ask_beside(question, &[], &[])
    }

    /// The same of a request that fits none of these patterns, and of which other conditions come to something, too.
    pub(super) fn ask_beside(
        &mut self,
        question: Question,
        also: &[(&'p Condition, States)],
        patterns: &[Pattern],
    ) -> Answer {
        let mut effort = self.effort.part(QUESTION_STEPS);
        let answer = self.barred_as_before(question, also, patterns, &mut effort).unwrap_or_else(|| {
            let (answer, _) = Trial::of(self, question, also, patterns).run(&mut effort);
            answer
        });
        if let Answer::No(rules) = &answer {
            self.barring.note(question, rules);
        }
        self.effort.give_back(effort);
        answer
    }

    /// What becomes of a request that was made for a question about one program.
    fn came(&mut self, question: Question, further_max: usize, witness: &Witness) -> Option<Came> {
        let (program, walk, truths) = (self.program, &self.walk, &mut self.truths);
        let came = with_subject(program, &self.paths, witness, self.setting, |subject| {
            came(question, further_max, program, walk, subject, truths)
        });
        came.flatten()
    }

    /// The rules that a request comes to, and what their conditions come to.
    pub(super) fn visited(&self, witness: &Witness) -> Vec<(u32, States)> {
        let (program, walk) = (self.program, &self.walk);
        with_subject(program, &self.paths, witness, self.setting, |subject| walk.visited(program, subject))
            .unwrap_or_default()
    }

    /// Whether it is proved of a rule's condition that no request makes it true, whatever becomes of the request.
    pub(super) fn is_never_true(&mut self, rule: u32) -> bool {
        let apart = Question { rule, states: States::TRUE, removed: None, way: Way::Apart };
        matches!(self.ask(apart), Answer::No(_))
    }

    /// Whether no steps are left.
    pub(super) fn is_used_up(&self) -> bool {
        self.effort.is_used_up()
    }

    /// Why that is so.
    pub(super) fn used_up(&self) -> Doubt {
        Doubt::of_used_up(&self.effort)
    }

    /// How all texts look that satisfy a comparison.
    pub(super) fn outline(&mut self, op: &Op) -> Outline {
        self.automata.outline(op, &mut self.effort)
    }

    /// Whether some text satisfies both tests; nothing where that is not known.
    pub(super) fn meet(&mut self, one: &Test, other: &Test) -> Option<bool> {
        // Of thousands of rules there are millions of pairs, for which nothing is left then.
        let may_look = one.fold_case == other.fold_case && !self.effort.is_used_up();
        may_look.then(|| self.automata.meet([&one.op, &other.op], &mut self.effort)).flatten()
    }

    /// Takes steps for work beside the questions; false where there are not as many left.
    pub(super) fn take(&mut self, steps: usize) -> bool {
        self.effort.take(steps as u64)
    }

    /// What becomes of a request depends on it, too.
    pub(super) fn setting(&self) -> &'p Setting {
        self.setting
    }

    fn rule(&self, index: u32) -> Option<&'p Rule> {
        self.program.rule(RuleIndex(index))
    }

    /// The field that has the same values, whatever the request, and is asked instead.
    pub(super) fn same<'f>(&self, field: &'f Field) -> &'f Field {
        match field {
            Field::Scheme => &Field::Proto,
            Field::ClientIp if self.setting.clients_are_peers() => &Field::SrcIp,
            field => field,
        }
    }
}

/// A question on the way to its answer.
struct Trial<'a, 'p> {
    analyst: &'a mut Analyst<'p>,
    world: World<'p>,
    question: Question,
    /// What other conditions are to come to, whatever becomes of the request.
    also: Vec<(&'p Condition, States)>,
    /// The rules that are taken into account, with the assumption that they let the request pass.
    active: BTreeMap<u32, Lit>,
    /// By a jump's place: that it is taken.
    jumps: BTreeMap<usize, Lit>,
    /// That a rule is visited which a `goto` may pass over.
    visits: BTreeMap<u32, Lit>,
    /// Why something was not proved but only not found, each with an assumption.
    doubts: Vec<(Doubt, Lit)>,
    /// What the request does not fit.
    patterns: &'a [Pattern],
    /// Texts that are looked for one because of another: so many now.
    depth: u8,
    /// Whether the values themselves are to make the request what it is, and not what is wrong with its head.
    is_of_values: bool,
}

/// What became of a choice of the solver.
enum Try<'p> {
    Done(Witness, Sketch<'p>),
    /// The solver knows more now.
    Again,
    /// What cannot be made into a request, or into none that comes where it should.
    Nowhere(Unrealisable),
}

impl<'a, 'p> Trial<'a, 'p> {
    fn of(
        analyst: &'a mut Analyst<'p>,
        question: Question,
        also: &[(&'p Condition, States)],
        patterns: &'a [Pattern],
    ) -> Trial<'a, 'p> {
        let mut trial = Trial {
            analyst,
            world: World::new(),
            question,
            also: also.to_vec(),
            active: BTreeMap::new(),
            jumps: BTreeMap::new(),
            visits: BTreeMap::new(),
            doubts: Vec::new(),
            patterns,
            depth: 0,
            is_of_values: false,
        };
        if let Some(given) = &trial.analyst.given {
            let literal = trial.world.require(given.condition, States::TRUE);
            trial.world.clause(vec![literal]);
        }
        let yes = trial.world.yes();
        trial.require(question.rule, question.states, &[yes]);
        if let Some((removed, states)) = question.removed {
            trial.require(removed, states, &[yes]);
        }
        for (condition, states) in also.iter().copied() {
            let literal = trial.world.require(condition, states);
            trial.world.clause(vec![literal]);
        }
        patterns.iter().for_each(|pattern| trial.forbid(pattern));
        trial
    }

    /// The answer, and where it is a yes, the values that the request was made for.
    fn run(mut self, effort: &mut Effort) -> (Answer, Sketch<'p>) {
        loop {
            self.world.learn(&self.analyst.lemmas);
            let assumptions: Vec<_> = self.active.values().copied().chain(self.unproved()).collect();
            match self.world.solve(&assumptions, effort) {
                Said::GaveUp => {
                    return (Answer::Unknown(Doubt::of_used_up(effort)), Sketch::default());
                }
                Said::Falls(guilty) => return (self.prove(guilty, effort), Sketch::default()),
                Said::Stands => {}
            }
            if !effort.take(self.active.len() as u64) || effort.is_used_up() {
                return (Answer::Unknown(Doubt::of_used_up(effort)), Sketch::default());
            }
            let matters = self.matters(&self.active);
            let fields = self.fields(&matters);
            let Some(sketch) = self.sketch(fields, effort) else { continue };
            match self.try_out(&sketch, effort) {
                Try::Done(witness, sketch) => return (Answer::Yes(Box::new(witness)), sketch),
                Try::Again => {}
                Try::Nowhere(_) if effort.is_used_up() => {
                    return (Answer::Unknown(Doubt::of_used_up(effort)), Sketch::default());
                }
                Try::Nowhere(why) => match self.relate(&sketch, &matters, &why, effort) {
                    Some(Try::Done(witness, sketch)) => return (Answer::Yes(Box::new(witness)), sketch),
                    Some(Try::Again) => {}
                    Some(Try::Nowhere(why)) => self.give_up_on(&sketch, &matters, &why),
                    None => self.give_up_on(&sketch, &matters, &why),
                },
            }
        }
    }

    /// Values for these fields. Nothing where there are none, which the solver knows then.
    fn sketch(&mut self, fields: Vec<OfField<'p>>, effort: &mut Effort) -> Option<Sketch<'p>> {
        let mut sketch = Sketch::default();
        let mut stands = true;
        for field in fields {
            match self.analyst.solve(&field, effort) {
                Solved::Values(values) => {
                    sketch.fields.extend(field.named.into_iter().map(|name| (name, values.clone())));
                }
                Solved::Nothing { because } => {
                    stands = false;
                    self.never(field.lemma(&because));
                }
                Solved::Unknown if field.named.is_empty() => {}
                Solved::Unknown => {
                    stands = false;
                    let doubt = match effort.is_used_up() {
                        true => Doubt::of_used_up(effort),
                        false => Doubt::Values(doubted(field.tests.iter().map(|asked| asked.test))),
                    };
                    let assumed = self.in_doubt(doubt);
                    self.world.forbid(&field.lemma(&[]), Some(assumed));
                }
            }
        }
        stands.then_some(sketch)
    }

    /// All of that is in no request: the solver knows it from now on, and later questions do.
    fn never(&mut self, mut lemma: Lemma) {
        lemma.sort_unstable();
        lemma.dedup();
        self.world.forbid(&lemma, None);
        self.analyst.lemmas.add(lemma);
    }

    /// What matters, field by field.
    fn fields(&self, matters: &Matters<'p>) -> Vec<OfField<'p>> {
        let mut fields: Vec<OfField<'p>> = Vec::new();
        let mut places = HashMap::new();
        for (test, states) in matters.each() {
            let Some(wanted) = states.wanted() else { continue };
            let asked = self.analyst.same(&test.field);
            let place = *places.entry(asked).or_insert(fields.len());
            if place == fields.len() {
                fields.push(OfField { asked, named: Vec::new(), tests: Vec::new(), states: Vec::new() });
            }
            if let Some(field) = fields.get_mut(place) {
                if !field.named.contains(&&test.field) {
                    field.named.push(&test.field);
                }
                field.tests.push(Asked { test, wanted });
                field.states.push((test.number(), states));
            }
        }
        let wide = fields.iter().filter(|field| field.may_have_others());
        let within = wide.flat_map(|field| fields.iter().filter_map(|part| field.with(part)));
        let within: Vec<_> = within.collect();
        fields.extend(within);
        fields
    }
}

/// What it takes to read on behind what is written of a long body.
pub(super) fn reading_steps(witness: &Witness) -> u64 {
    witness.padding_read() / BYTES_OF_A_STEP
}
