//! One run by all agents of a controller: everybody gets ready, begins at the same moment, and says what came of it.

mod companion;
mod under;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use self::companion::{Calls, Heard, accompany, ceiling};
use self::under::Under;
use super::errand::Errand;
use super::link::{Link, Lost, Message, SILENCE_MAX};
use super::{Clock, of_agent};
use crate::ceiling::BeforeNull;
use crate::clock::{SECOND_NS, now_ns};
use crate::outcome::{AgentOutcome, LostAgent, Outcome, ServerUse, Void};
use crate::part::Part;
use crate::record::Record;
use crate::run::{kinds, looks};
use crate::worker::Timeline;
use crate::{Fault, Generator, Interrupt, Machine, Plan, Progress};

/// From when all are ready to when load begins, beside four of the longest round trips: agents have to hear of it.
const LEAD_NS: u64 = SECOND_NS / 5;
/// The same of its end, where it is interrupted: those who stay with agents look ten times a second, as the threads of agents do.
const END_LEAD_NS: u64 = SECOND_NS / 2;
/// Nobody waits longer than this for a word of any agent without looking whether one of them is late.
const NEXT_MAX: Duration = Duration::from_millis(250);

/// How long an agent may take, behind its last request, to say what came of it: the record of a long run is long.
fn patience(plan: &Plan) -> Duration {
    SILENCE_MAX + plan.time / 10
}

/// Has them carry it out. Where one is lost while there is load, the others end theirs: the outcome is void, and holds what
/// came by then.
pub(super) fn carry_out(
    plan: &Plan,
    names: &[String],
    links: Vec<&mut Link>,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Outcome, Fault> {
    let errand = Errand::pack(plan, links.len())?;
    // Whatever becomes of it, agents have asked by then.
    plan.numbers.gave(plan.numbers.given() + (looks(plan) * links.len()) as u64);
    let calls = Calls::default();
    let (say, heard) = channel();
    std::thread::scope(|scope| {
        let mut starts = Vec::with_capacity(links.len());
        for (index, link) in links.into_iter().enumerate() {
            let errand = Message::Errand(Box::new(errand.at(index)));
            let (start, started) = channel();
            let (say, calls) = (say.clone(), &calls);
            starts.push(start);
            scope.spawn(move || {
                let tell = |heard| {
                    // Where nobody listens it is over.
                    let (Ok(()) | Err(_)) = say.send((index, heard));
                };
                if let Err(lost) = accompany(link, (&errand, plan), &started, calls, &tell) {
                    tell(Heard::Lost(lost));
                }
            });
        }
        drop(say);
        let conductor = Conductor { plan, names, heard: &heard, calls: &calls };
        let outcome = conductor.conduct(&starts, observe);
        calls.end();
        if !outcome.as_ref().is_ok_and(|outcome| outcome.lost.is_empty()) {
            plan.numbers.lost_count();
        }
        outcome
    })
}

/// What each agent reaches before servers that do nothing, by its name.
pub(super) fn ceilings(
    plan: &Plan,
    before: BeforeNull,
    names: &[String],
    links: Vec<&mut Link>,
) -> Result<Vec<(String, f64)>, Fault> {
    let errand = Errand::pack(plan, links.len())?.before(before);
    plan.numbers.gave(plan.numbers.given() + (kinds(plan) * links.len()) as u64);
    std::thread::scope(|scope| {
        let measured = links.into_iter().zip(names).enumerate().map(|(index, (link, name))| {
            let errand = Message::Errand(Box::new(errand.at(index)));
            let measure = move || match ceiling(link, (&errand, plan)) {
                Ok(reached) => reached.map_err(|fault| of_agent(name, &fault)),
                Err(lost) => Err(of_agent(name, &Fault::new(format!("it is lost: {lost}"))).of_agents()),
            };
            (name, scope.spawn(measure))
        });
        // All of them have begun before one is waited for.
        let measured: Vec<_> = measured.collect();
        let broke_off = |_| Err(Fault::new("a thread of the controller broke off"));
        let joined = measured.into_iter();
        joined.map(|(name, thread)| Ok((name.clone(), thread.join().unwrap_or_else(broke_off)?))).collect()
    })
}

/// Who hears all agents.
struct Conductor<'c> {
    plan: &'c Plan,
    names: &'c [String],
    heard: &'c Receiver<(usize, Heard)>,
    calls: &'c Calls,
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
        let mut under = Under::new(self.plan, timeline, starts.len())?;
        while under.is_on() {
            if self.plan.interrupt.has_come() && !under.is_cut() && under.lost.is_empty() {
                match under.cut_short(END_LEAD_NS + 4 * longest_ns) {
                    Some(ends_ns) => self.calls.end_at(ends_ns),
                    None => self.calls.cut(),
                }
            }
            under.look();
            let (index, heard) = match self.heard.recv_timeout(under.wait().min(NEXT_MAX)) {
                Ok(heard) => heard,
                Err(RecvTimeoutError::Timeout) => {
                    under.late().into_iter().for_each(|index| {
                        self.lose(&mut under, index, &Lost::Late(patience(self.plan)));
                    });
                    continue;
                }
                // All have said all that they had, and the server's process is looked at once more.
                Err(RecvTimeoutError::Disconnected) if under.has_all() => {
                    std::thread::sleep(under.wait().min(NEXT_MAX));
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Fault::new("no agent is left")),
            };
            match heard {
                Heard::Progress(progress) => under.progress(index, progress, observe),
                Heard::Done(part) if under.takes(&part) => under.parts[index] = Some(*part),
                Heard::Done(_) | Heard::Ready(_) => {
                    let odd = Lost::Broken("what it measured is not what it was asked for".to_owned());
                    self.lose(&mut under, index, &odd);
                }
                Heard::Failed(fault) if under.lost.is_empty() => {
                    return Err(of_agent(&self.names[index], &fault));
                }
                Heard::Failed(fault) => self.lose(&mut under, index, &Lost::Broken(fault.to_string())),
                Heard::Lost(lost) => self.lose(&mut under, index, &lost),
            }
        }
        self.outcome(under, &clocks)
    }

    /// Waits until all are ready.
    fn gather(&self) -> Result<Vec<Clock>, Fault> {
        let mut clocks: Vec<Option<Clock>> = vec![None; self.names.len()];
        while clocks.iter().any(Option::is_none) {
            let (index, heard) = match self.heard.recv_timeout(NEXT_MAX) {
                Ok(heard) => heard,
                Err(RecvTimeoutError::Timeout) if self.plan.interrupt.has_come() => {
                    return Err(Interrupt::fault());
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Err(Fault::new("no agent is left")),
            };
            let named = |words: &str| of_agent(&self.names[index], &Fault::new(words)).of_agents();
            return Err(match heard {
                Heard::Ready(clock) => {
                    clocks[index] = Some(clock);
                    continue;
                }
                Heard::Failed(fault) => of_agent(&self.names[index], &fault),
                Heard::Lost(lost) => named(&format!("it is lost: {lost}")),
                Heard::Progress(_) | Heard::Done(_) => named("it begins before it was told"),
            });
        }
        Ok(clocks.into_iter().flatten().collect())
    }

    /// The run is void: the others are asked for what they have.
    fn lose(&self, under: &mut Under<'_>, index: usize, why: &Lost) {
        under.lose(index, &self.names[index], why);
        self.calls.cut();
    }

    /// All parts together, and each for itself.
    fn outcome(&self, mut under: Under<'_>, clocks: &[Clock]) -> Result<Outcome, Fault> {
        let lost = std::mem::take(&mut under.lost);
        let looks = under.looks_of_whole();
        let began_unix_s = under.began_unix_s;
        let parts = under.into_parts();
        let known: Vec<Part> = parts.iter().flatten().cloned().collect();
        let mut all = Part::together(&known, self.plan).unwrap_or_else(nothing);
        self.plan.numbers.gave(all.record.last_number);
        // The clocks on agents' walls are theirs.
        all.began_unix_s = began_unix_s;
        let server = looks.map(|looks| ServerUse::between(&looks, &all.record));
        let mut outcome = all.outcome(self.plan.clone(), server);
        let each = self.names.iter().zip(clocks).zip(parts);
        outcome.agents = each
            .filter_map(|((name, clock), part)| {
                let outcome = part?.outcome(self.plan.clone(), None);
                Some(AgentOutcome { name: name.clone(), clock: *clock, outcome })
            })
            .collect();
        if lost.is_empty() {
            outcome.voids.extend(voids_of_agents(&outcome));
        } else {
            // What is a part of something that never was whole need not be as the whole was to be.
            outcome.voids = lost.iter().map(void_of).collect();
        }
        outcome.lost = lost;
        Ok(outcome)
    }
}

/// What makes one agent's part void, where all parts together do not show it.
fn voids_of_agents(outcome: &Outcome) -> Vec<Void> {
    let known: Vec<&str> = outcome.voids.iter().map(|void| void.code).collect();
    let of_agents = outcome
        .agents
        .iter()
        .flat_map(|agent| agent.outcome.voids.iter().map(|void| (agent.name.as_str(), void)));
    of_agents
        .filter(|(_, void)| !known.contains(&void.code) && !void.is_of_short_time())
        .map(|(name, void)| Void {
            code: void.code,
            sentence: format!("at agent `{name}`: {}", void.sentence),
        })
        .collect()
}

fn void_of(lost: &LostAgent) -> Void {
    let LostAgent { name, after_s, why, told_s, answered, failed } = lost;
    let told = match *told_s > 0.0 {
        true => {
            format!("; it had told of {told_s:.0} s, warm-up and all: {answered} answered, {failed} failed")
        }
        false => String::new(),
    };
    Void {
        code: "lost agent",
        sentence: format!("agent `{name}` was lost {after_s:.1} s into the run: {why}{told}"),
    }
}

/// What nobody's part is.
fn nothing() -> Part {
    Part {
        addresses: Vec::new(),
        machine: Machine::look(),
        began_unix_s: 0,
        seconds: crate::run::seconds_of(0),
        record: Record::new(0),
        generator: Generator::nothing(),
    }
}

#[cfg(test)]
mod tests;
