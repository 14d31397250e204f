//! Bytes a second by the size of bodies, over connections that are kept: what encryption in bulk does, without handshakes.

mod report;
mod rows;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pointsman_measure::Random;
use pointsman_measure::verdict::Verdict;

pub use self::rows::Row;
use crate::compare::too_many_failed;
use crate::negotiated::{Agreements, Negotiated};
use crate::outcome::{Outcome, Void};
use crate::plan::{Body, Handshakes, Load, Plan};
use crate::request::FILLED_BYTES_MAX;
use crate::{Fault, Machine, Progress, Shares, Url, run_whole};

/// What stands for a size.
pub const SIZE_PLACE: &str = "{size}";
/// Larger bodies take longer than a trial.
pub const SIZE_BYTES_MAX: u64 = 1 << 30;
const ROUNDS_MAX: u32 = 100;
/// A day of trials, if each takes ten seconds.
const TRIALS_MAX: usize = 8_640;
const MIB: f64 = (1 << 20) as f64;

/// Which way the bodies go that are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// From the server, in answers: [`SIZE_PLACE`] in a path or a field says how long they are to be.
    #[default]
    Down,
    /// To the server, in requests: each has a body of the size.
    Up,
}

impl Way {
    /// For reports, behind what goes there.
    pub fn name(self) -> &'static str {
        match self {
            Way::Down => "from the server",
            Way::Up => "to the server",
        }
    }
}

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// How bodies are asked for or sent: closed loops over connections that are kept. Each plan is measured with each of its
    /// suites alone; a plan without TLS has none. The first one's seed is that of all.
    pub plans: Vec<Plan>,
    /// Which bodies are counted.
    pub way: Way,
    /// How long the bodies are, in bytes.
    pub sizes: Vec<u64>,
    /// How often each is measured; intervals want two, that of a ratio four.
    pub rounds: u32,
}

/// What is held beside others: a plan with one suite.
#[derive(Clone, Debug)]
pub struct Series {
    /// What tells it from others; empty where there is no other.
    pub name: String,
    /// How bodies are asked for.
    pub plan: Plan,
}

/// What is seen on the way.
#[derive(Clone, Copy, Debug)]
pub enum Haul<'a> {
    /// A trial runs, the first of which is 0, of so many, with bodies of so many bytes; this is the state once a second.
    Running(usize, usize, &'a Series, u64, &'a Progress),
    /// It has ended.
    Ended(&'a Hauled),
}

/// A trial that was run.
#[derive(Clone, Debug)]
pub struct Hauled {
    /// In which round; the first is 0.
    pub round: u32,
    /// Which of the series.
    pub series: usize,
    /// Bytes of each body.
    pub size: u64,
    /// Bytes of bodies a second, without what frames and encrypts them: of those to the server, of which a right answer came
    /// in the measured time.
    pub payload_per_s: f64,
    /// Answers a second.
    pub answers_per_s: f64,
    /// How long it was measured, in seconds.
    pub seconds: f64,
    /// CPU time of the generator for a MiB of them, in microseconds.
    pub own_us_per_mib: Option<f64>,
    /// The same of the server, where its process is known.
    pub server_us_per_mib: Option<f64>,
    /// Connections that were opened in the measured time.
    pub opened: u64,
    /// The suite that was agreed on most often; empty: none.
    pub suite: &'static str,
    /// Whether the generator was in control.
    pub verdict: Verdict,
    /// Why it does not count.
    pub voids: Vec<Void>,
}

/// What came of all trials.
#[derive(Clone, Debug)]
pub struct Bulked {
    /// What was asked for.
    pub asked: Bulk,
    /// What was held beside each other.
    pub series: Vec<Series>,
    /// All trials in their order.
    pub trials: Vec<Hauled>,
    /// Of each size what each series came to, in their orders.
    pub rows: Vec<Row>,
    /// What handshakes of all trials agreed on, by series, the most frequent first.
    pub negotiated: Vec<Vec<(Negotiated, u64)>>,
    /// Where it was asked from.
    pub machine: Machine,
    /// When it began, in seconds since 1970.
    pub began_unix_s: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// How far it was when somebody wanted no more of it, in words; what had been measured by then stays.
    pub interrupted: Option<String>,
}

impl Bulk {
    /// All series, in the order of plans and suites.
    pub fn series(&self) -> Vec<Series> {
        let has_suites = self.plans.iter().any(|plan| suites(plan).len() > 1);
        let mut all: Vec<Series> = Vec::new();
        for plan in &self.plans {
            let place = Url { target: String::new(), ..plan.targets[0].url.clone() }.to_string();
            for suite in suites(plan) {
                let mut words = Vec::new();
                words.extend((self.plans.len() > 1).then_some(place.as_str()));
                words.extend(suite.filter(|_| has_suites));
                let name = words.join(", ");
                let before = all.iter().filter(|other| other.plan.targets[0].url == plan.targets[0].url);
                let same = before
                    .filter(|other| other.plan.offer.suites.first().map(String::as_str) == suite)
                    .count();
                let name = if same > 0 { format!("{name} ({})", same + 1) } else { name };
                let mut plan = plan.clone();
                plan.offer.suites = suite.map(str::to_owned).into_iter().collect();
                all.push(Series { name, plan });
            }
        }
        all
    }

    fn check(&self) -> Result<(), Fault> {
        if self.plans.is_empty() {
            return Err(Fault::new("nothing is asked for: give a URL"));
        }
        self.plans.iter().try_for_each(|plan| check_plan(plan, self.way))?;
        let most = match self.way {
            Way::Down => SIZE_BYTES_MAX,
            Way::Up => FILLED_BYTES_MAX,
        };
        if self.sizes.is_empty() || self.sizes.iter().any(|size| !(1..=most).contains(size)) {
            return Err(Fault::new(format!("bodies {} have 1 to {most} bytes", self.way.name())));
        }
        if (1..self.sizes.len()).any(|at| self.sizes[..at].contains(&self.sizes[at])) {
            return Err(Fault::new("each size is measured once in a round"));
        }
        if !(1..=ROUNDS_MAX).contains(&self.rounds) {
            return Err(Fault::new(format!("there are 1 to {ROUNDS_MAX} rounds")));
        }
        let trials = self.sizes.len() * self.series().len() * self.rounds as usize;
        if trials > TRIALS_MAX {
            return Err(Fault::new(format!("these are {trials} trials: {TRIALS_MAX} are the most")));
        }
        Ok(())
    }
}

/// Each alone; where none is pinned, or there is no TLS, one that is none.
fn suites(plan: &Plan) -> Vec<Option<&str>> {
    match plan.offer.suites.as_slice() {
        suites if !suites.is_empty() && plan.tls_places() > 0 => {
            suites.iter().map(|suite| Some(suite.as_str())).collect()
        }
        _ => vec![None],
    }
}

fn check_plan(plan: &Plan, way: Way) -> Result<(), Fault> {
    plan.refuse_sessions("a measurement of bodies")?;
    if !matches!(plan.load, Load::Closed { .. }) {
        return Err(Fault::new("bodies are asked for in a closed loop").help("say `--clients N`"));
    }
    let is_kept = plan.handshakes == Handshakes::Keep && plan.requests_per_connection.is_none();
    if !is_kept || plan.shares != Shares::default() {
        let words =
            "connections are kept here, and each request is on one of them, so that handshakes do not count";
        return Err(Fault::new(words).help("`pointsman bench load` has connections of other kinds"));
    }
    if plan.targets.is_empty() {
        return Err(Fault::new("nothing is asked for: give a URL"));
    }
    match way {
        Way::Down => check_asked(plan),
        Way::Up if plan.targets.iter().any(|target| target.body != Body::None) => {
            Err(Fault::new("bodies to the server are as long as they are measured: there are no others"))
        }
        Way::Up => Ok(()),
    }
}

/// Whether a size is asked for everywhere.
fn check_asked(plan: &Plan) -> Result<(), Fault> {
    if plan.targets.iter().any(|target| target.method == "HEAD") {
        return Err(Fault::new("answers to HEAD have no bodies"));
    }
    let mut sized = plan.clone();
    if put_size(&mut sized, 1) < plan.targets.len() {
        return Err(Fault::new(format!(
            "no size is asked for: `{SIZE_PLACE}` stands in neither path nor field"
        ))
        .help(format!(
            "say where a size belongs, as in `https://127.0.0.1:8480/bytes/{SIZE_PLACE}`, or `--upload` for bodies of \
             requests"
        )));
    }
    Ok(())
}

/// Puts a size in its places, and says in how many targets there is one.
fn put_size(plan: &mut Plan, size: u64) -> usize {
    let number = size.to_string();
    let mut sized = 0;
    for target in &mut plan.targets {
        let values = target.headers.iter_mut().map(|(_, value)| value);
        let texts = std::iter::once(&mut target.url.target).chain(values);
        let places = texts.filter(|text| text.contains(SIZE_PLACE));
        sized += usize::from(
            places.fold(0, |count, text| {
                *text = text.replace(SIZE_PLACE, &number);
                count + 1
            }) > 0,
        );
    }
    sized
}

/// Measures, and calls `observe` once a second and behind each trial.
///
/// # Errors
/// When a plan contradicts itself, or the first trial of all cannot be run. Of what cannot be run later the row is void.
pub fn haul(asked: &Bulk, observe: &mut dyn FnMut(Haul)) -> Result<Bulked, Fault> {
    asked.check()?;
    let series = asked.series();
    let mut random = Random::new(asked.plans[0].seed);
    let began = Instant::now();
    let began_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut agreed: Vec<Agreements> = series.iter().map(|_| Agreements::default()).collect();
    let (mut trials, mut machine, mut gone) = (Vec::<Hauled>::new(), None, None);
    let mut interrupted = None;
    let turns = turns(asked, series.len());
    for (at, (round, size, number)) in turns.iter().copied().enumerate() {
        // What was none once will be none again.
        let is_hopeless = |trial: &Hauled| {
            trial.series == number && trial.size == size && trial.voids.iter().any(Void::is_not_run)
        };
        if gone.is_none() && trials.iter().any(is_hopeless) {
            continue;
        }
        let numbers = asked.plans[0].numbers.clone();
        let mut plan = Plan { seed: random.bits(), numbers, ..series[number].plan.clone() };
        put_size(&mut plan, size);
        if asked.way == Way::Up {
            plan.targets.iter_mut().for_each(|target| target.body = Body::Filled(size));
        }
        let running = &mut |progress: &Progress| {
            observe(Haul::Running(at, turns.len(), &series[number], size, progress));
        };
        let ran = gone.clone().map_or_else(|| run_whole(&plan, running), Err);
        let trial = match ran {
            Ok(outcome) => {
                agreed[number].add_all(&outcome.negotiated);
                let trial = hauled((round, size, number), &outcome, asked.way);
                machine = Some(outcome.machine);
                trial
            }
            Err(fault) if trials.is_empty() => return Err(fault),
            Err(_) if plan.interrupt.has_come() => {
                interrupted = Some(format!("{at} of {} trials had ended by then", turns.len()));
                break;
            }
            Err(fault) => {
                let trial = not_run((round, size, number), &fault);
                gone = Some(fault).filter(Fault::is_of_agents);
                trial
            }
        };
        trials.push(trial);
        observe(Haul::Ended(&trials[trials.len() - 1]));
    }
    Ok(Bulked {
        rows: rows::rows(asked, series.len(), &trials, &mut random),
        asked: asked.clone(),
        series,
        trials,
        negotiated: agreed.into_iter().map(Agreements::into_sorted).collect(),
        machine: machine.unwrap_or_else(Machine::look),
        began_unix_s,
        seconds: began.elapsed().as_secs_f64(),
        interrupted,
    })
}

/// Round, size and series of each trial. Every second round goes backwards, so that what drifts falls on all alike.
fn turns(asked: &Bulk, series: usize) -> Vec<(u32, u64, usize)> {
    let mut all = Vec::new();
    for round in 0..asked.rounds {
        let sizes = asked.sizes.iter();
        let mut turns: Vec<_> =
            sizes.flat_map(|size| (0..series).map(move |number| (round, *size, number))).collect();
        if round % 2 == 1 {
            turns.reverse();
        }
        all.extend(turns);
    }
    all
}

fn not_run((round, size, series): (u32, u64, usize), fault: &Fault) -> Hauled {
    Hauled {
        round,
        series,
        size,
        payload_per_s: 0.0,
        answers_per_s: 0.0,
        seconds: 0.0,
        own_us_per_mib: None,
        server_us_per_mib: None,
        opened: 0,
        suite: "",
        verdict: pointsman_measure::verdict::verdict(&Default::default()),
        voids: vec![Void::not_run(fault)],
    }
}

fn hauled((round, size, series): (u32, u64, usize), outcome: &Outcome, way: Way) -> Hauled {
    let payload_per_s = match way {
        Way::Down => outcome.payload_rate(),
        // That a body has come whole is known by its answer.
        Way::Up => outcome.right_rate() * size as f64,
    };
    let mib = payload_per_s * outcome.seconds / MIB;
    let per_mib = |seconds: f64| (mib > 0.0).then(|| seconds * 1e6 / mib);
    let work = outcome.generator.work();
    let server = outcome.server.as_ref().map(|server| server.spent.user + server.spent.system);
    Hauled {
        round,
        series,
        size,
        payload_per_s,
        answers_per_s: outcome.rate(),
        seconds: outcome.seconds,
        own_us_per_mib: work.and_then(|work| per_mib(work * outcome.seconds)),
        server_us_per_mib: server.and_then(per_mib),
        opened: outcome.record.opened,
        suite: outcome.negotiated.first().map_or("", |(agreed, _)| agreed.suite),
        verdict: outcome.verdict(),
        voids: outcome.voids.iter().cloned().chain(voids(outcome, size, way)).collect(),
    }
}

/// What makes bytes of such bodies no result, though the run is one.
fn voids(outcome: &Outcome, size: u64, way: Way) -> Vec<Void> {
    let record = &outcome.record;
    let of_size = match record.payloads {
        Some(_) if way == Way::Up => None,
        Some((least, most)) if (least, most) == (size, size) => None,
        Some((least, most)) => {
            let came = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            Some(format!("bodies of {came} bytes came, and {size} were asked for"))
        }
        None => {
            Some("no right answer came that was due in the measured time: take a longer `--time`".to_owned())
        }
    };
    let of_size = of_size.map(|sentence| Void { code: "size", sentence });
    let not_kept = (record.opened > 1 && record.opened * 100 > record.completed_in_time()).then(|| Void {
        code: "not kept",
        sentence: format!(
            "{} connections were opened for {} answers: the server does not keep them, and handshakes count",
            record.opened,
            record.completed_in_time()
        ),
    });
    [too_many_failed(outcome), of_size, not_kept].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    fn plan(url: &str, suites: &[&str]) -> Plan {
        let url = Url::parse(url).expect("a URL");
        let target = Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Body::None };
        let mut plan = Plan::new(vec![target], Load::Closed { clients: 1 });
        plan.offer.suites = suites.iter().map(|suite| (*suite).to_owned()).collect();
        plan
    }

    fn bulk(plans: Vec<Plan>) -> Bulk {
        Bulk { plans, way: Way::Down, sizes: vec![10, 20], rounds: 2 }
    }

    #[test]
    fn each_server_is_measured_with_each_suite() {
        let names = |plans: Vec<Plan>| -> Vec<String> {
            bulk(plans).series().into_iter().map(|series| series.name).collect()
        };
        let https = |port: u32, suites| plan(&format!("https://a:{port}/{{size}}"), suites);
        assert_eq!(names(vec![https(1, &[])]), [""]);
        assert_eq!(names(vec![https(1, &["X"])]), [""]);
        assert_eq!(names(vec![https(1, &["X", "Y"])]), ["X", "Y"]);
        let both = names(vec![https(1, &["X", "Y"]), plan("http://a:2/{size}", &["X", "Y"])]);
        assert_eq!(both, ["https://a:1, X", "https://a:1, Y", "http://a:2"], "without TLS there is no suite");
        assert_eq!(names(vec![https(1, &[]), https(1, &[])]), ["https://a:1", "https://a:1 (2)"]);
    }

    #[test]
    fn trials_go_there_and_back() {
        let expected =
            [(0, 10, 0), (0, 10, 1), (0, 20, 0), (0, 20, 1), (1, 20, 1), (1, 20, 0), (1, 10, 1), (1, 10, 0)];
        assert_eq!(turns(&bulk(vec![plan("http://a/{size}", &[])]), 2), expected);
    }

    #[test]
    fn sizes_take_their_places() {
        let mut two = plan("http://a/x{size}?b={size}", &[]);
        two.targets[0].headers.push(("Range".into(), "bytes=0-{size}".into()));
        assert_eq!(put_size(&mut two, 7), 1);
        let target = &two.targets[0];
        assert_eq!((target.url.target.as_str(), target.headers[0].1.as_str()), ("/x7?b=7", "bytes=0-7"));
    }

    #[test]
    fn what_is_no_measurement_of_bodies_is_refused() {
        let good = || bulk(vec![plan("https://a/{size}", &[])]);
        assert_eq!(good().check(), Ok(()));
        let check = |change: &dyn Fn(&mut Bulk), said: &str| {
            let mut bulk = good();
            change(&mut bulk);
            let fault = bulk.check().expect_err(said);
            assert!(fault.to_string().contains(said), "{fault}");
        };
        check(&|bulk| bulk.plans.clear(), "nothing is asked for");
        check(&|bulk| bulk.plans[0].targets[0].url.target = "/".into(), "no size is asked for");
        check(&|bulk| bulk.plans[0].handshakes = Handshakes::Full, "connections are kept");
        check(&|bulk| bulk.plans[0].requests_per_connection = Some(5), "connections are kept");
        check(&|bulk| bulk.plans[0].shares.pipelined = Some(0.5), "connections are kept");
        check(&|bulk| bulk.plans[0].targets[0].method = "HEAD".into(), "no bodies");
        let open = Load::Open { rate: 5.0, arrivals: crate::Arrivals::Poisson };
        check(&|bulk| bulk.plans[0].load = open, "in a closed loop");
        check(&|bulk| bulk.sizes.clear(), "1 to 1073741824 bytes");
        check(&|bulk| bulk.sizes = vec![0], "1 to 1073741824 bytes");
        check(&|bulk| bulk.sizes = vec![5, 5], "once in a round");
        check(&|bulk| bulk.rounds = 0, "1 to 100 rounds");
        check(&|bulk| (bulk.rounds, bulk.sizes) = (100, (1..200).collect()), "the most");
        let up = |change: fn(&mut Bulk)| {
            let mut bulk = Bulk { way: Way::Up, ..bulk(vec![plan("https://a/", &[])]) };
            change(&mut bulk);
            bulk.check().map_err(|fault| fault.to_string())
        };
        assert_eq!(up(|_| {}), Ok(()), "no size is asked for");
        let too_long =
            up(|bulk| bulk.sizes = vec![FILLED_BYTES_MAX + 1]).expect_err("each connection holds one");
        assert!(too_long.contains("to the server have 1 to 67108864 bytes"), "{too_long}");
        assert!(up(|bulk| bulk.plans[0].targets[0].body = Body::Bytes(vec![1])).is_err());
    }
}
