//! One run by all agents of a controller: everybody gets ready, begins at the same moment, and says what came of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::errand::Errand;
use super::link::{Link, Lost, Message};
use super::{Clock, of_agent};
use crate::clock::{SECOND_NS, now_ns};
use crate::outcome::{AgentOutcome, Outcome, ServerUse, Void};
use crate::part::Part;
use crate::process::Time;
use crate::record::Record;
use crate::run::server_time;
use crate::worker::{Timeline, batches, measured_ns};
use crate::{Fault, Machine, Plan, Progress};

/// From when all are ready to when load begins, beside four of the longest round trips: agents have to hear of it.
const LEAD_NS: u64 = SECOND_NS / 5;
/// How often an agent is asked for the time.
const PINGS: usize = 9;
/// How soon it is noticed that an agent's words are not wanted any more.
const LOOK: Duration = Duration::from_millis(100);
/// An agent that hangs behind its last progress is lost by its silence; nobody waits longer than this for a word of any.
const NEXT_MAX: Duration = Duration::from_secs(1);

/// What was heard of an agent.
enum Heard {
    Ready(Clock),
    Progress(Progress),
    Done(Box<Part>),
    Failed(Fault),
    Lost(Lost),
}

/// Has them carry it out. Where one is lost while there is load, the outcome is void, and has no agents.
pub(super) fn carry_out(
    plan: &Plan,
    names: &[String],
    links: Vec<&mut Link>,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Outcome, Fault> {
    let errand = Errand::pack(plan, links.len())?;
    let is_over = AtomicBool::new(false);
    let (say, heard) = channel();
    std::thread::scope(|scope| {
        let mut starts = Vec::with_capacity(links.len());
        for (index, link) in links.into_iter().enumerate() {
            let errand = Message::Errand(Box::new(errand.at(index)));
            let (start, started) = channel();
            let (say, is_over) = (say.clone(), &is_over);
            starts.push(start);
            scope.spawn(move || {
                let tell = |heard| {
                    // Where nobody listens it is over.
                    let (Ok(()) | Err(_)) = say.send((index, heard));
                };
                if let Err(lost) = accompany(link, &errand, &started, is_over, &tell) {
                    tell(Heard::Lost(lost));
                }
            });
        }
        drop(say);
        let outcome = Conductor { plan, names, heard: &heard }.conduct(&starts, observe);
        is_over.store(true, Ordering::Relaxed);
        outcome
    })
}

/// Stays with one agent from the plan to what came of it.
fn accompany(
    link: &mut Link,
    errand: &Message,
    started: &Receiver<u64>,
    is_over: &AtomicBool,
    tell: &dyn Fn(Heard),
) -> Result<(), Lost> {
    let unexpected = || Err(Lost::Broken("it says what it should not".to_owned()));
    link.send(errand)?;
    link.listen();
    match next(link, is_over)? {
        Some(Message::Ready) => {}
        Some(Message::Failed(fault)) => {
            tell(Heard::Failed(fault));
            return Ok(());
        }
        Some(_) => return unexpected(),
        None => return Ok(()),
    }
    let clock = tell_time(link)?;
    tell(Heard::Ready(clock));
    let begin_ns = loop {
        match started.recv_timeout(LOOK) {
            Ok(begin_ns) => break begin_ns,
            Err(RecvTimeoutError::Timeout) if link.attend(Duration::ZERO)?.is_none() => {}
            Err(RecvTimeoutError::Timeout) => return unexpected(),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    };
    link.send(&Message::Start { begin_ns: begin_ns.saturating_add_signed(clock.ahead_ns) })?;
    while let Some(message) = next(link, is_over)? {
        match message {
            Message::Progress(progress) => tell(Heard::Progress(progress)),
            Message::Done(part) => {
                tell(Heard::Done(part));
                return Ok(());
            }
            Message::Failed(fault) => {
                tell(Heard::Failed(fault));
                return Ok(());
            }
            _ => return unexpected(),
        }
    }
    Ok(())
}

/// What an agent says next. Nothing: it is over before that.
fn next(link: &mut Link, is_over: &AtomicBool) -> Result<Option<Message>, Lost> {
    while !is_over.load(Ordering::Relaxed) {
        if let Some(message) = link.attend(LOOK)? {
            return Ok(Some(message));
        }
    }
    Ok(None)
}

/// The round trip that took the shortest time says most about the agent's clock: it is what we have in the middle of it.
fn tell_time(link: &mut Link) -> Result<Clock, Lost> {
    let mut best: Option<Clock> = None;
    for _ in 0..PINGS {
        let sent_ns = now_ns();
        link.send(&Message::Ping)?;
        let theirs_ns = loop {
            match link.expect(super::link::SILENCE_MAX)? {
                Message::Pong { now_ns } => break now_ns,
                Message::Beat => {}
                _ => return Err(Lost::Broken("it does not say what time it is".to_owned())),
            }
        };
        let round_trip_ns = now_ns() - sent_ns;
        let ahead_ns = theirs_ns.wrapping_sub(sent_ns + round_trip_ns / 2) as i64;
        if best.is_none_or(|best| round_trip_ns < best.round_trip_ns) {
            best = Some(Clock { ahead_ns, round_trip_ns });
        }
    }
    best.ok_or(Lost::Closed)
}

/// Who hears all agents.
struct Conductor<'c> {
    plan: &'c Plan,
    names: &'c [String],
    heard: &'c Receiver<(usize, Heard)>,
}

impl Conductor<'_> {
    fn conduct(&self, starts: &[Sender<u64>], observe: &mut dyn FnMut(&Progress)) -> Result<Outcome, Fault> {
        let clocks = self.gather()?;
        let longest_ns = clocks.iter().map(|clock| clock.round_trip_ns).max().unwrap_or_default();
        let timeline = Timeline::of(self.plan, now_ns() + LEAD_NS + 4 * longest_ns);
        for start in starts {
            // Who is lost by now says so.
            let (Ok(()) | Err(_)) = start.send(timeline.begin_ns);
        }
        let mut goes = Under { timeline, progress: vec![VecDeque::new(); starts.len()], looks: [None, None] };
        let mut parts: Vec<Option<Part>> = vec![None; starts.len()];
        while parts.iter().any(Option::is_none) || goes.next_look_ns(self.plan).is_some() {
            goes.look(self.plan)?;
            let wait = goes.next_look_ns(self.plan).map_or(NEXT_MAX, |at_ns| {
                Duration::from_nanos(at_ns.saturating_sub(now_ns()).min(NEXT_MAX.as_nanos() as u64))
            });
            let (index, heard) = match self.heard.recv_timeout(wait) {
                Ok(heard) => heard,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) if parts.iter().any(Option::is_none) => {
                    return Err(Fault::new("no agent is left"));
                }
                // All have said all that they had, and the server's process is looked at once more.
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(wait);
                    continue;
                }
            };
            match heard {
                Heard::Progress(progress) => goes.progress(index, progress, observe),
                Heard::Done(part) if part.is_of(self.plan) => parts[index] = Some(*part),
                Heard::Done(_) | Heard::Ready(_) => {
                    let odd = Lost::Broken("what it measured is not what it was asked for".to_owned());
                    return Ok(self.lost(index, &odd, timeline));
                }
                Heard::Failed(fault) => return Err(of_agent(&self.names[index], &fault)),
                Heard::Lost(lost) => return Ok(self.lost(index, &lost, timeline)),
            }
        }
        let parts: Vec<Part> = parts.into_iter().flatten().collect();
        let [before, after] = goes.looks;
        self.outcome(parts, clocks, before.zip(after))
    }

    /// Waits until all are ready.
    fn gather(&self) -> Result<Vec<Clock>, Fault> {
        let mut clocks: Vec<Option<Clock>> = vec![None; self.names.len()];
        while clocks.iter().any(Option::is_none) {
            let (index, heard) = self.heard.recv().map_err(|_| Fault::new("no agent is left"))?;
            let fault = match heard {
                Heard::Ready(clock) => {
                    clocks[index] = Some(clock);
                    continue;
                }
                Heard::Failed(fault) => fault,
                Heard::Lost(lost) => Fault::new(format!("it is lost: {lost}")),
                Heard::Progress(_) | Heard::Done(_) => Fault::new("it begins before it was told"),
            };
            return Err(of_agent(&self.names[index], &fault));
        }
        Ok(clocks.into_iter().flatten().collect())
    }

    /// All parts together, and each for itself.
    fn outcome(
        &self,
        parts: Vec<Part>,
        clocks: Vec<Clock>,
        looks: Option<(Time, Time)>,
    ) -> Result<Outcome, Fault> {
        let all = Part::together(&parts, self.plan).ok_or_else(|| Fault::new("there are no agents"))?;
        let server = looks.map(|looks| ServerUse::between(&looks, &all.record));
        let mut outcome = all.outcome(self.plan.clone(), server);
        let each = self.names.iter().zip(clocks).zip(parts);
        outcome.agents = each
            .map(|((name, clock), part)| AgentOutcome {
                name: name.clone(),
                clock,
                outcome: part.outcome(self.plan.clone(), None),
            })
            .collect();
        let known: Vec<&str> = outcome.voids.iter().map(|void| void.code).collect();
        let of_agents = outcome
            .agents
            .iter()
            .flat_map(|agent| agent.outcome.voids.iter().map(|void| (agent.name.as_str(), void)));
        let more: Vec<Void> = of_agents
            .filter(|(_, void)| !known.contains(&void.code))
            .map(|(name, void)| Void {
                code: void.code,
                sentence: format!("at agent `{name}`: {}", void.sentence),
            })
            .collect();
        outcome.voids.extend(more);
        Ok(outcome)
    }

    /// What came is a part of something that never was whole: nothing of it counts.
    fn lost(&self, index: usize, lost: &Lost, timeline: Timeline) -> Outcome {
        let after_s = now_ns().saturating_sub(timeline.begin_ns) as f64 / SECOND_NS as f64;
        let measured_ns = measured_ns(self.plan);
        let nothing = Part {
            addresses: Vec::new(),
            machine: Machine::look(),
            began_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            seconds: measured_ns as f64 / SECOND_NS as f64,
            record: Record::new(batches(self.plan)),
            generator: crate::Generator::nothing(),
        };
        let mut outcome = nothing.outcome(self.plan.clone(), None);
        outcome.voids = vec![Void {
            code: "lost agent",
            sentence: format!("agent `{}` was lost {after_s:.1} s into the run: {lost}", self.names[index]),
        }];
        outcome
    }
}

/// A run that goes on.
struct Under {
    timeline: Timeline,
    /// What each agent has said that others have not said yet.
    progress: Vec<VecDeque<Progress>>,
    /// At the server's process, at both ends of the measured time.
    looks: [Option<Time>; 2],
}

impl Under {
    /// When the server's process is to be looked at next, if it is.
    fn next_look_ns(&self, plan: &Plan) -> Option<u64> {
        plan.server_process?;
        match self.looks {
            [None, _] => Some(self.timeline.from_ns),
            [_, None] => Some(self.timeline.to_ns),
            _ => None,
        }
    }

    fn look(&mut self, plan: &Plan) -> Result<(), Fault> {
        if self.next_look_ns(plan).is_some_and(|at_ns| now_ns() >= at_ns) {
            let at = usize::from(self.looks[0].is_some());
            self.looks[at] = server_time(plan)?;
        }
        Ok(())
    }

    /// Passes on what all have said of the same second.
    fn progress(&mut self, index: usize, progress: Progress, observe: &mut dyn FnMut(&Progress)) {
        self.progress[index].push_back(progress);
        if self.progress.iter().any(VecDeque::is_empty) {
            return;
        }
        let mut all = Progress { is_measured: true, ..Progress::default() };
        for progress in self.progress.iter_mut().filter_map(VecDeque::pop_front) {
            (all.at_seconds, all.of_seconds) = (progress.at_seconds, progress.of_seconds);
            all.is_measured &= progress.is_measured;
            all.rate += progress.rate;
            all.failed_rate += progress.failed_rate;
            all.bytes_rate += progress.bytes_rate;
            all.under_way += progress.under_way;
            all.connections += progress.connections;
            all.lag_ns = all.lag_ns.max(progress.lag_ns);
        }
        observe(&all);
    }
}
