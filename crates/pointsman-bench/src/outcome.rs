//! What came of a run, for whoever judges it.

use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::agents::Clock;
use crate::little::Little;
use crate::machine::Machine;
use crate::negotiated::{Kind, Negotiated, another, count_of, unlike_pinned};
use crate::plan::{Handshakes, Load, Plan};
use crate::process::Spent;
use crate::record::{ErrorKind, Record};
use crate::shares::{self, ShareOutcome};

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was asked for.
    pub plan: Plan,
    /// The address that was measured, of each different place of the plan.
    pub addresses: Vec<std::net::SocketAddr>,
    /// Where it was asked from.
    pub machine: Machine,
    /// When the measured time began, in seconds since 1970.
    pub began_unix_s: u64,
    /// The measured time, in seconds.
    pub seconds: f64,
    /// What was written down.
    pub record: Record,
    /// What handshakes agreed on, the most frequent first.
    pub negotiated: Vec<(Negotiated, u64)>,
    /// What the generator and its machine spent.
    pub generator: Generator,
    /// What the server spent, where its process is known.
    pub server: Option<ServerUse>,
    /// Why nobody knows what it spent, where its process was to be looked at.
    pub server_unknown: Option<String>,
    /// Why it is no result, if it is none.
    pub voids: Vec<Void>,
    /// What the same generator reaches before servers that do nothing, in requests a second, where that was measured.
    pub ceiling: Option<f64>,
    /// What each agent's part in it came to, where agents carried it out.
    pub agents: Vec<AgentOutcome>,
    /// Agents that were lost on the way: the run is void, and what it holds is of the others, up to when the first was lost.
    pub lost: Vec<LostAgent>,
    /// Somebody wanted no more of it before its end: it is of the time that there was.
    pub was_interrupted: bool,
}

/// An agent that was lost while there was load, and what it had said by then.
#[derive(Clone, Debug, PartialEq)]
pub struct LostAgent {
    /// Host and port, as it was asked for.
    pub name: String,
    /// How long behind the load's beginning that was noticed, in seconds.
    pub after_s: f64,
    /// How.
    pub why: String,
    /// How much of the load its last word was about, in seconds from its beginning, warm-up and all.
    pub told_s: f64,
    /// Requests that were answered in that.
    pub answered: u64,
    /// Requests that failed in it.
    pub failed: u64,
}

/// One agent's part in a run.
#[derive(Clone, Debug)]
pub struct AgentOutcome {
    /// Host and port, as it was asked for.
    pub name: String,
    /// How its clock was told.
    pub clock: Clock,
    /// What it came to, as if it had been alone: figures are those of its own requests.
    pub outcome: Outcome,
}

/// What the generator and its machine spent in the measured time: whether it was in control.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Generator {
    /// Of each of its threads; nothing of one whose account could not be read.
    pub threads: Vec<Option<ThreadUse>>,
    /// Between the two looks at them, in seconds: the measured time, and by how much later the second one came.
    pub seconds: f64,
    /// The share of the machine's time that a hypervisor gave to others, 0 to 1; nothing where it could not be read.
    pub stolen: Option<f64>,
    /// Segments that TCP sent again, of the whole machine; nothing where that could not be read.
    pub segments_resent: Option<u64>,
    /// Those of them that were to open a connection.
    pub syns_resent: Option<u64>,
    /// What listening sockets of this machine had no room for. `None`: the server is on another one, or it could not be
    /// read, as `syns_resent` could not.
    pub listening: Option<Listening>,
    /// Descriptors that the process may open.
    pub descriptors_max: u64,
    /// Those that it had at most, in the whole run; nothing where they could not be counted.
    pub descriptors_most: Option<u64>,
    /// Ports that connections of one source address to one place can have.
    pub ports: Option<u32>,
    /// Those that were taken at most, of all source addresses and places together: by connections, and, where the kernel
    /// does not use them again, by what waits behind the end of any connection of this machine (TIME_WAIT), which is
    /// looked at once a second. Nothing where that could not be read.
    pub ports_most: Option<u64>,
    /// Requests under way, measured in two ways.
    pub little: Little,
}

/// Connections that the kernel did not put into the queue of a listening socket, in the measured time, of the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
    /// Because it was full.
    pub overflows: u64,
    /// For whatever reason: these and others.
    pub drops: u64,
}

/// What a thread of the generator spent in the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// The share of it that it ran, 0 to 1.
    pub cpu: f64,
    /// The share of it that it could have run and had no core; nothing where the kernel does not say so.
    pub waited: Option<f64>,
    /// How often it was interrupted for somebody else.
    pub involuntary_switches: u64,
    /// The share of it that it ran only to be there in time, and could have used.
    pub spun: f64,
}

/// What the server's process spent in the measured time, with its threads and children.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerUse {
    /// All of it.
    pub spent: Spent,
    /// CPU time of an answer, in microseconds, whatever else it was spent on.
    pub us_per_request: Option<f64>,
    /// The same of a handshake.
    pub us_per_handshake: Option<f64>,
}

/// Why a run is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Void {
    /// A word for programs.
    pub code: &'static str,
    /// A sentence for people.
    pub sentence: String,
}

impl Void {
    const NOT_RUN: &str = "not run";
    const NOTHING_DUE: &str = "nothing due";
    const LATE_ANSWERS: &str = "late answers";

    /// Whether there was nothing to measure in the time: of one agent's share of a load that says nothing.
    pub(crate) fn is_of_short_time(&self) -> bool {
        [Void::NOTHING_DUE, Void::LATE_ANSWERS].contains(&self.code)
    }

    /// Of a trial that there never was.
    pub(crate) fn not_run(fault: &Fault) -> Void {
        Void { code: Void::NOT_RUN, sentence: fault.to_string() }
    }

    /// Whether there never was a trial.
    pub(crate) fn is_not_run(&self) -> bool {
        self.code == Void::NOT_RUN
    }
}

impl ThreadUse {
    /// What it did with its core, beside waiting on it for what was due: a share, 0 to 1.
    pub fn work(&self) -> f64 {
        self.cpu - self.spun
    }
}

impl Generator {
    /// Cores that its threads took for their work; nothing where the account of one of them could not be read.
    pub fn work(&self) -> Option<f64> {
        self.threads.iter().map(|thread| thread.as_ref().map(ThreadUse::work)).sum()
    }

    /// One that has not run.
    pub(crate) fn nothing() -> Generator {
        Generator {
            threads: Vec::new(),
            seconds: 1.0,
            stolen: Some(0.0),
            segments_resent: Some(0),
            syns_resent: Some(0),
            listening: None,
            descriptors_max: 0,
            descriptors_most: Some(0),
            ports: None,
            ports_most: Some(0),
            little: Little { under_way: 0.0, rate_times_time: 0.0, known_to: 0.0 },
        }
    }
}

impl Outcome {
    /// Answers a second, of those that came in the measured time.
    pub fn rate(&self) -> f64 {
        self.record.completed_in_time() as f64 / self.seconds
    }

    /// Right answers a second, of those that came in the measured time: failures are none, however fast they come.
    pub fn right_rate(&self) -> f64 {
        self.record.right_in_time() as f64 / self.seconds
    }

    /// Bytes of answers' bodies a second, without what frames and encrypts them.
    pub fn payload_rate(&self) -> f64 {
        self.record.payload_in_time() as f64 / self.seconds
    }

    /// Requests a second that were due. Of a run that was ended it is of the same whole tenths of a second as what was
    /// answered.
    pub fn demanded(&self) -> f64 {
        self.record.due_in_time() as f64 / self.seconds
    }

    /// The share of the local ports that was taken at most, 0 to 1, of all that the plan's source addresses and places have.
    /// `None`: how many there are, or were taken, is not known.
    pub fn ports_share(&self) -> Option<f64> {
        let ports = f64::from(self.generator.ports?);
        let pairs = (self.plan.sources.count().max(1) * self.addresses.len().max(1) as u64) as f64;
        Some(self.generator.ports_most? as f64 / (ports * pairs))
    }

    /// The share of the descriptors that the process may open, and had at most; nothing where they could not be counted.
    pub fn descriptors_share(&self) -> Option<f64> {
        Some(self.generator.descriptors_most? as f64 / self.generator.descriptors_max.max(1) as f64)
    }

    /// What was answered in the measured time beside what was due in it, beyond chance, because the warm-up had left it
    /// behind: as a share of what was due. 0 in a closed loop, which leaves nothing behind.
    pub fn made_good_share(&self) -> f64 {
        let Load::Open { .. } = self.plan.load else { return 0.0 };
        let (record, left) = (&self.record, self.record.left_of_warm_up as f64);
        // What is under way at a moment varies by this.
        let by_chance = 3.0 * left.sqrt();
        let beside = record.completed_in_time() as f64 - record.due as f64;
        (beside.min(left) - by_chance).max(0.0) / record.due.max(1) as f64
    }

    /// What shares of the requests went how, beside what was asked for. Empty where nothing was answered.
    pub fn shares(&self) -> Vec<ShareOutcome> {
        self.plan.shares.outcomes(&self.record, &self.plan)
    }

    /// Handshakes a second, of all kinds.
    pub fn handshake_rate(&self) -> f64 {
        self.record.handshakes_in_time().iter().sum::<u64>() as f64 / self.seconds
    }
}

/// Whether the handshakes were what the plan says, and anything was answered at all.
pub(crate) fn voids(plan: &Plan, record: &Record, negotiated: &[(Negotiated, u64)]) -> Vec<Void> {
    let mut voids = Vec::new();
    let mut void = |code, sentence: String| voids.push(Void { code, sentence });
    let unasked = record.errors_of(ErrorKind::Unasked);
    if unasked > 0 {
        let words = tls_fault(record);
        void(
            "resumed",
            format!(
                "in {unasked} handshakes the server went on with a session or an extension that it was not offered{words}"
            ),
        );
    }
    if let Some(other) = of_another_kind(plan, record, negotiated) {
        void(other.code, other.sentence);
    }
    let unlike = count_of(negotiated, |agreed| !plan.protocol.is_agreed_by(agreed.protocol));
    let unlike = another("protocol", unlike, negotiated);
    unlike_pinned(&plan.offer, negotiated)
        .into_iter()
        .chain(unlike)
        .for_each(|words| void("negotiated", words));
    for share in plan.shares.outcomes(record, plan).into_iter().filter(|share| !share.is_as_asked()) {
        let (name, asked) = (share.name, share.asked.unwrap_or_default() * 100.0);
        let came = share.came_out * 100.0;
        void("share", format!("{asked:.1} % of the requests were to be {name}, and {came:.1} % were"));
    }
    voids.extend(nothing_came(record));
    voids
}

/// Where nothing was measured though no request that counts had to fail for it: a server that hangs since the warm-up, or
/// a time in which nothing fell due. Of a run that was interrupted this says nothing: its time was cut.
pub(crate) fn nothing_measured(record: &Record) -> Option<Void> {
    let void = |code, sentence| Some(Void { code, sentence });
    let waiting = match record.left_of_warm_up {
        0 => String::new(),
        left => format!("; {left} requests of the warm-up had no answer when it began"),
    };
    match (record.due, record.answered, record.completed_in_time()) {
        // What was due failed: that is said of it.
        (1.., 0, _) => None,
        (0, _, 0) if record.left_of_warm_up > 0 => void(
            "no answers",
            format!("no answer came in the measured time, and nothing was due in it{waiting}"),
        ),
        (0, ..) => void(
            Void::NOTHING_DUE,
            format!("nothing was due in the measured time{waiting}: take a longer --time (or --trial)"),
        ),
        (due, _, 0) => void(
            Void::LATE_ANSWERS,
            format!(
                "no answer came within the measured time, in which {due} requests were due{waiting}: take a longer \
                     --time (or --trial)"
            ),
        ),
        _ => None,
    }
}

/// Where handshakes were full that were to be resumed, or the other way round.
fn of_another_kind(plan: &Plan, record: &Record, negotiated: &[(Negotiated, u64)]) -> Option<Void> {
    let all = count_of(negotiated, |_| true);
    let resumed = count_of(negotiated, |agreed| agreed.kind == Kind::Resumed);
    let offered = count_of(negotiated, |agreed| agreed.offered_session);
    let refused = count_of(negotiated, |agreed| agreed.offered_session && agreed.kind != Kind::Resumed);
    let (code, sentence) = match plan.handshakes {
        Handshakes::Full if resumed > 0 => {
            ("resumed", format!("{resumed} of {all} handshakes were resumed, and all were to be full"))
        }
        Handshakes::Resumed(_) if refused > 0 => (
            "not resumed",
            format!("the server did not resume {refused} of the {offered} sessions that it was offered"),
        ),
        Handshakes::Resumed(_) if all > 0 && resumed == 0 => {
            ("not resumed", "the server gave no session that could be resumed".to_owned())
        }
        Handshakes::Resumed(share) => {
            let came = resumed_otherwise(plan, share, record)?;
            (
                if came < share { "not resumed" } else { "resumed" },
                format!(
                    "{:.1} % of the handshakes were to be resumed, and {:.1} % were",
                    share * 100.0,
                    came * 100.0
                ),
            )
        }
        _ => return None,
    };
    Some(Void { code, sentence })
}

/// The share of the measured time's handshakes that resumed a session, where it is not the one that was asked for. Where
/// all are to resume there is no chance in it; but the first connections of all that there are at a time have nothing to
/// resume, at each place, nor have users who are new, nor whoever comes behind a connection that failed with its ticket.
fn resumed_otherwise(plan: &Plan, asked: f64, record: &Record) -> Option<f64> {
    let all = record.handshakes.iter().sum::<u64>() as f64;
    let resumed = record.handshakes[Kind::Resumed as usize] as f64;
    let users = record.sessions.as_ref().map_or(0, |sessions| sessions.due);
    let broken = record.failed() - record.errors_of(ErrorKind::Status);
    let first = ((record.connections_most + users) * plan.tls_places() as u64 + broken) as f64;
    let slack = if asked < 1.0 { shares::by_chance(asked, all) } else { 0.0 };
    let (least, most) = (asked * (all - first) - slack * all, (asked + slack) * all);
    (all > 0.0 && !(least..=most).contains(&resumed)).then(|| resumed / all)
}

/// Where no session came to its end, or no request was answered.
fn nothing_came(record: &Record) -> Vec<Void> {
    let mut voids = Vec::new();
    if let Some(sessions) = &record.sessions
        && sessions.ended == 0
        && sessions.failed > 0
    {
        let sentence =
            format!("none of {} sessions came to its end, and {} failed", sessions.due, sessions.failed);
        voids.push(Void { code: "no sessions", sentence });
    }
    if record.answered == 0 && record.due > 0 {
        let sentence = format!("none of {} requests was answered{}", record.due, tls_fault(record));
        voids.push(Void { code: "no answers", sentence });
    }
    voids
}

/// What went wrong with TLS, behind a sentence.
fn tls_fault(record: &Record) -> String {
    record.tls_fault.as_ref().map(|words| format!(" ({words})")).unwrap_or_default()
}

#[cfg(test)]
mod tests;
