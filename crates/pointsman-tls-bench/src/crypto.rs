//! Method 1: each primitive by each provider, in rounds that take turns, so that what the machine does meanwhile falls on
//! all of them alike.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use pointsman_bench::{Interrupt, SelfWatch};
use pointsman_measure::statistics::{mean_interval, ratio_of_pairs};
use pointsman_measure::verdict::{Measure, SelfMeasures, Verdict, verdict};
use pointsman_measure::{Interval, Random};

use crate::engaged::Engaged;
use crate::keys::Keys;
use crate::operation::{Operation, Primitive};
use crate::provider::Provider;
use crate::round::{Round, empty};
use crate::work::Trouble;

/// Rounds at least: with fewer a ratio has no interval.
pub const ROUNDS_MIN: u32 = 4;
/// Rounds at most.
pub const ROUNDS_MAX: u32 = 1_000;
/// Operations under way at a time at most: threads, or processes.
pub const DEPTH_MAX: usize = 1_024;
/// The largest block: a megabyte.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;
/// The shortest and the longest round, in ms.
pub const ROUND_MS: std::ops::RangeInclusive<u128> = 1..=60_000;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What.
    pub primitives: Vec<Primitive>,
    /// By whom; the others are held against the first.
    pub providers: Vec<Provider>,
    /// How many operations are under way at a time, one row for each: threads, or processes.
    pub depths: Vec<usize>,
    /// How often each is measured.
    pub rounds: u32,
    /// How long, each time.
    pub round_time: Duration,
    /// What the order of turns is drawn with.
    pub seed: u64,
    /// What ends it before its time.
    pub interrupt: Interrupt,
}

/// How far it is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// From 0 to 1.
    pub share: f64,
    /// What is measured now.
    pub what: String,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was asked for.
    pub plan: Plan,
    /// When it began, in seconds of Unix.
    pub began_unix_s: u64,
    /// By depth, then primitive, then operation, then provider.
    pub rows: Vec<Row>,
    /// What could not be measured.
    pub unable: Vec<Unable>,
    /// Cores that this process may use.
    pub cores: usize,
    /// The share of the machine's time that a hypervisor gave to others meanwhile, from 0 to 1.
    pub stolen: Option<f64>,
    /// How far it was when somebody wanted no more of it, in words: rows that were whole by then stay.
    pub interrupted: Option<String>,
}

/// One operation by one provider at one depth.
#[derive(Clone, Debug)]
pub struct Row {
    /// What.
    pub operation: Operation,
    /// By whom: its place in the plan.
    pub provider: usize,
    /// Operations under way at a time.
    pub depth: usize,
    /// What was seen.
    pub figures: Figures,
}

/// What all rounds say together.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Operations that were measured.
    pub operations: u64,
    /// Operations a second by the wall clock.
    pub rate: Interval,
    /// CPU time of an operation in µs, that of the process as a whole.
    pub cpu_us: Interval,
    /// How much of it was spent by the threads that asked, in µs.
    pub asking_cpu_us: f64,
    /// Times of single operations in ns, of all rounds.
    pub latency: Option<Histogram<u64>>,
    /// How many times as many a second as the first provider does; nothing for the first itself.
    pub speed_up: Option<Interval>,
    /// How many times as much CPU time as the first provider takes.
    pub cpu_ratio: Option<Interval>,
    /// The share of their time in which the threads that asked could have run and had no core, from 0 to 1; nothing where
    /// that could not be read.
    pub waited_share: Option<f64>,
    /// How often each of them was put off its core for somebody else, a second; nothing where that is not seen.
    pub switches_per_s: Option<f64>,
    /// Whether something else than the cores does it.
    pub engaged: Engaged,
}

/// What a provider cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unable {
    /// What.
    pub primitive: Primitive,
    /// Who: its place in the plan.
    pub provider: usize,
    /// Why not.
    pub why: Trouble,
}

impl Plan {
    /// What is out of bounds.
    fn check(&self) -> Result<(), Trouble> {
        let no = |words: String| Err(Trouble::new(words));
        if self.primitives.is_empty() || self.providers.is_empty() {
            return no("nothing is to be measured".to_owned());
        }
        if !(ROUNDS_MIN..=ROUNDS_MAX).contains(&self.rounds) {
            return no(format!("there are {ROUNDS_MIN} to {ROUNDS_MAX} rounds, not {}", self.rounds));
        }
        if let Some(depth) = self.depths.iter().find(|depth| !(1..=DEPTH_MAX).contains(*depth)) {
            return no(format!("1 to {DEPTH_MAX} operations are under way at a time, not {depth}"));
        }
        if !ROUND_MS.contains(&self.round_time.as_millis()) {
            let (least, most) = (ROUND_MS.start(), ROUND_MS.end());
            return no(format!("a round lasts {least} to {most} ms, not {}", self.round_time.as_millis()));
        }
        let too_large = |primitive: &&Primitive| matches!(primitive, Primitive::Cipher(_, bytes) if *bytes > BLOCK_BYTES_MAX);
        if self.primitives.iter().any(|primitive| too_large(&primitive)) {
            return no(format!("a block has at most {BLOCK_BYTES_MAX} bytes"));
        }
        Ok(())
    }
}

/// Measures all of a plan; what a provider cannot do is left out, and said.
///
/// # Errors
/// A plan out of bounds, or nobody who can do any of it.
pub fn crypto(plan: &Plan, on_progress: &mut dyn FnMut(&Progress)) -> Result<Outcome, Trouble> {
    plan.check()?;
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let machine = SelfWatch::of(Vec::new());
    let before = machine.look();
    let mut outcome = Outcome {
        plan: plan.clone(),
        began_unix_s: began.as_secs(),
        rows: Vec::new(),
        unable: Vec::new(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        stolen: None,
        interrupted: None,
    };
    let keys = Keys::default();
    let mut random = Random::new(plan.seed);
    let steps = plan.depths.len() * plan.primitives.len() * plan.rounds as usize;
    let mut step = 0;
    'all: for depth in &plan.depths {
        for primitive in &plan.primitives {
            let mut turns = Turns::new(plan, &outcome.unable, *primitive, *depth);
            for _ in 0..plan.rounds {
                let what = match depth {
                    1 => turns.name(),
                    depth => format!("{}, {depth} at a time", turns.name()),
                };
                on_progress(&Progress { share: step as f64 / steps as f64, what });
                step += 1;
                turns.round(&keys, &mut random);
                if plan.interrupt.has_come() {
                    let rows = plan.depths.len() * plan.primitives.len();
                    let measured = (step - 1) / plan.rounds as usize;
                    outcome.interrupted =
                        Some(format!("{measured} of {rows} primitives had been measured by then"));
                    // Half a row is none.
                    break 'all;
                }
            }
            outcome.rows.extend(turns.rows(&mut random));
            outcome.unable.extend(turns.unable);
        }
    }
    outcome.stolen = machine.look().stolen_since(&before);
    match (outcome.rows.is_empty(), outcome.unable.first()) {
        (true, _) if outcome.interrupted.is_some() => Err(Trouble::new("it was interrupted")),
        (true, Some(unable)) => Err(unable.why.clone()),
        _ => Ok(outcome),
    }
}

impl Outcome {
    /// What the measuring threads and their machine say of themselves: the worst of all rows. Whoever asks for more at a
    /// time than there are cores makes threads wait for each other, so such rows say nothing here.
    pub fn self_measures(&self) -> SelfMeasures {
        let rows = || self.rows.iter().filter(|row| row.depth <= self.cores).map(|row| &row.figures);
        let is_blind = rows().any(|figures| figures.waited_share.is_none());
        let unknown = [(Measure::Waited, is_blind), (Measure::Steal, self.stolen.is_none())];
        SelfMeasures {
            steal_share: self.stolen,
            waited_share: rows().filter_map(|figures| figures.waited_share).reduce(f64::max),
            switches_per_s: rows().filter_map(|figures| figures.switches_per_s).reduce(f64::max),
            unknown: unknown.into_iter().filter(|(_, is_so)| *is_so).map(|(measure, _)| measure).collect(),
            ..SelfMeasures::default()
        }
    }

    /// Whether the machine let the measurement be: green, amber or red, with the reasons.
    pub fn verdict(&self) -> Verdict {
        verdict(&self.self_measures())
    }
}

/// One provider's rounds of each operation of a primitive.
type Rounds = Vec<(Operation, Vec<Round>)>;

/// All providers' rounds of one primitive at one depth.
struct Turns<'a> {
    plan: &'a Plan,
    primitive: Primitive,
    depth: usize,
    /// By provider; nothing of one that cannot do it.
    rounds: Vec<Option<Rounds>>,
    unable: Vec<Unable>,
}

impl<'a> Turns<'a> {
    fn new(plan: &'a Plan, unable: &[Unable], primitive: Primitive, depth: usize) -> Turns<'a> {
        let is_known =
            |at: usize| unable.iter().any(|known| (known.primitive, known.provider) == (primitive, at));
        let rounds = (0..plan.providers.len()).map(|at| (!is_known(at)).then(Vec::new)).collect();
        Turns { plan, primitive, depth, rounds, unable: Vec::new() }
    }

    fn name(&self) -> String {
        self.primitive.name().to_owned()
    }

    /// Each provider's turn once, in an order that is drawn.
    fn round(&mut self, keys: &Keys, random: &mut Random) {
        let mut order: Vec<usize> = (0..self.rounds.len()).collect();
        random.shuffle(&mut order);
        for provider in order {
            let Some(known) = &mut self.rounds[provider] else { continue };
            if self.plan.interrupt.has_come() {
                return;
            }
            let who = &self.plan.providers[provider];
            match who.rounds(self.primitive, keys, self.depth, self.plan.round_time) {
                Ok(seen) => {
                    for (operation, round) in seen {
                        match known.iter_mut().find(|(known, _)| *known == operation) {
                            Some((_, rounds)) => rounds.push(round),
                            None => known.push((operation, vec![round])),
                        }
                    }
                }
                Err(why) => {
                    // Half a row is none.
                    self.rounds[provider] = None;
                    self.unable.push(Unable { primitive: self.primitive, provider, why });
                }
            }
        }
    }

    fn rows(&self, random: &mut Random) -> Vec<Row> {
        let of = |provider: usize, operation: Operation| {
            let rounds = self.rounds[provider].as_ref()?;
            rounds.iter().find(|(known, _)| *known == operation).map(|(_, rounds)| rounds.as_slice())
        };
        let mut rows = Vec::new();
        for operation in self.primitive.operations() {
            for (at, provider) in self.plan.providers.iter().enumerate() {
                let first = if at == 0 { None } else { of(0, operation) };
                let claims = provider.claims_hardware(operation);
                let figures = of(at, operation).and_then(|rounds| Figures::of(rounds, first, claims, random));
                rows.extend(figures.map(|figures| Row {
                    operation,
                    provider: at,
                    depth: self.depth,
                    figures,
                }));
            }
        }
        rows
    }
}

impl Figures {
    /// Of a provider's rounds, beside those of the first provider.
    fn of(
        rounds: &[Round],
        first: Option<&[Round]>,
        claims: Option<bool>,
        random: &mut Random,
    ) -> Option<Figures> {
        let each = |rounds: &[Round], of: fn(&Round) -> f64| rounds.iter().map(of).collect::<Vec<f64>>();
        let mut ratio = |of: fn(&Round) -> f64| {
            let pairs: Vec<(f64, f64)> = each(first?, of).into_iter().zip(each(rounds, of)).collect();
            ratio_of_pairs(&pairs, random)
        };
        let (speed_up, cpu_ratio) = (ratio(|round| round.rate), ratio(Round::cpu_us));
        let mut latency = empty();
        let timed = rounds.iter().filter_map(|round| round.latency.as_ref());
        let timed = timed.filter(|times| latency.add(*times).is_ok()).count();
        let operations: u64 = rounds.iter().map(|round| round.operations).sum();
        let asking: u64 = rounds.iter().map(|round| round.asking_cpu_ns).sum();
        let shares = each(rounds, Round::cpu_share);
        let waited: Option<Vec<f64>> = rounds.iter().map(Round::waited_share).collect();
        let thread_ns = rounds.iter().map(|round| round.thread_ns).sum::<u64>().max(1);
        let switched: Option<u64> = rounds.iter().map(|round| round.switched).sum();
        Some(Figures {
            waited_share: waited.map(|shares| mean_of(&shares)),
            switches_per_s: switched.map(|count| count as f64 * 1e9 / thread_ns as f64),
            rate: mean_interval(&each(rounds, |round| round.rate))?,
            cpu_us: mean_interval(&each(rounds, Round::cpu_us))?,
            operations,
            asking_cpu_us: asking as f64 / 1e3 / operations.max(1) as f64,
            latency: (timed > 0).then_some(latency),
            speed_up,
            cpu_ratio,
            engaged: Engaged::of(mean_of(&shares), claims),
        })
    }
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
