//! From a plan to its outcome: threads are started, watched and added up.

use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;

use pointsman_tls::{ClientTls, SystemAuthorities, TlsVersion};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ClientConfig;
use serde::{Deserialize, Serialize};

use crate::bell::Bell;
use crate::clock::{SECOND_NS, now_ns};
use crate::crew::Crew;
use crate::little::Little;
use crate::outcome::{Generator, Outcome, ServerUse, ThreadUse};
use crate::part::Part;
use crate::plan::Handshakes;
use crate::probe::probe;
use crate::record::BATCH_NS;
use crate::request::Requests;
use crate::self_watch::{SelfWatch, ThreadWatch, descriptors};
use crate::server_watch::Served;
use crate::server_watch::ServerWatch;
use crate::users::{self, Setup};
use crate::worker::Timeline;
use crate::{Fault, Interrupt, Machine, Plan};

/// From when all threads are ready to when the first request may be due.
const START_NS: u64 = SECOND_NS / 50;

/// A thread waits and is watched with these, beside its connections.
const DESCRIPTORS_A_THREAD: u64 = 2 + ThreadWatch::DESCRIPTORS;

/// How things are, once a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Seconds since load began.
    pub at_seconds: f64,
    /// Of how many, warm-up and all.
    pub of_seconds: f64,
    /// Whether what comes is counted by now.
    pub is_measured: bool,
    /// Answers a second, since the last time.
    pub rate: f64,
    /// Requests that failed, a second.
    pub failed_rate: f64,
    /// Bytes of answers a second.
    pub bytes_rate: f64,
    /// Requests under way.
    pub under_way: u64,
    /// Connections.
    pub connections: u64,
    /// The worst lag of the generator since the last time, in nanoseconds.
    pub lag_ns: u64,
}

/// Carries out a plan, here or by its agents, and calls `observe` once a second on the way. Where its interrupt comes, the
/// measured time ends, and the outcome is what it would be had no more been asked for.
///
/// # Errors
/// When the plan contradicts itself, its files cannot be read, the server does not answer a first request, or an agent
/// cannot be reached or refuses. What goes wrong later is counted in the outcome.
pub fn run(plan: &Plan, observe: &mut dyn FnMut(&Progress)) -> Result<Outcome, Fault> {
    if let Some(agents) = &plan.agents {
        return agents.run(plan, observe);
    }
    let bell = Arc::new(Bell::heard_with(plan.interrupt.clone()));
    let ready = Ready::new(plan, Place::ALONE, &bell, &|_| Ok(()))?;
    let (part, server) = ready.carry_out(now_ns() + START_NS, observe)?;
    Ok(part.outcome(plan.clone(), server))
}

/// The same where it is of use as a whole alone.
///
/// # Errors
/// Those of [`run`], and that it was interrupted.
pub fn run_whole(plan: &Plan, observe: &mut dyn FnMut(&Progress)) -> Result<Outcome, Fault> {
    let outcome = run(plan, observe)?;
    if outcome.was_interrupted { Err(Interrupt::fault()) } else { Ok(outcome) }
}

/// So many tenths of a second. Of none at all it is a nanosecond, so that what is nothing is nothing a second, too.
pub(crate) fn seconds_of(batches: usize) -> f64 {
    (batches as u64 * BATCH_NS).max(1) as f64 / SECOND_NS as f64
}

/// Which of the machines this is that carry a plan out together, each with as many threads as the plan says: their
/// threads take turns, so that shares of the load differ by what one thread has, and together are all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// From 0 …
    pub(crate) index: usize,
    /// … of so many.
    pub(crate) of: usize,
}

impl Place {
    pub(crate) const ALONE: Place = Place { index: 0, of: 1 };
}

/// A plan whose server has answered, and whose threads wait: load can begin.
pub(crate) struct Ready {
    plan: Arc<Plan>,
    requests: Arc<Requests>,
    crew: Crew,
    descriptors_max: u64,
    /// What the process had before its connections; nothing where that could not be counted.
    descriptors_before: Option<u64>,
    bell: Arc<Bell>,
    server: Option<ServerWatch>,
}

impl Ready {
    /// Asks each kind of request once, and opens the connections that are to be open first. `allow` is asked before that
    /// about each place that load would go to, by its name and its address. All of it ends at once when the bell rings.
    pub(crate) fn new(
        plan: &Plan,
        place: Place,
        bell: &Arc<Bell>,
        allow: &dyn Fn(&Requests) -> Result<(), Fault>,
    ) -> Result<Ready, Fault> {
        plan.check()?;
        let requests = Arc::new(Requests::new(plan)?);
        allow(&requests)?;
        let client = Client::new(plan, &requests)?;
        let descriptors_max = raise_descriptors();
        let accounts = SelfWatch::of(Vec::new());
        let setups = client.setups((plan, place), &requests, bell)?;
        let server = ServerWatch::find(plan)?;
        let plan = Arc::new(plan.clone());
        let descriptors_before = descriptors();
        let crew = Crew::start(&plan, &requests, setups, (place, bell), accounts)?;
        Ok(Ready { plan, requests, crew, descriptors_max, descriptors_before, bell: bell.clone(), server })
    }

    /// Puts load on the server from then on, until the plan's end or until the bell rings, and says what this machine's part
    /// in it was: where the bell rang, what there was by then.
    pub(crate) fn carry_out(
        self,
        begin_ns: u64,
        observe: &mut dyn FnMut(&Progress),
    ) -> Result<(Part, Served), Fault> {
        let Ready { plan, requests, crew, descriptors_max, descriptors_before, bell, server } = self;
        let timeline = Timeline::of(&plan, begin_ns);
        crew.begin(timeline);
        let watched = crew.watch((&plan, server), timeline, &bell, observe);
        let (mut record, spun_ns) = crew.join(&plan)?;
        plan.numbers.gave(record.last_number);
        record.cut_to(watched.batches);
        let seconds = seconds_of(watched.batches);
        let mut threads = watched.after.threads_since(&watched.before);
        for (thread, spun_ns) in threads.iter_mut().zip(spun_ns) {
            let spun = spun_ns as f64 / SECOND_NS as f64 / seconds;
            thread.iter_mut().for_each(|thread| thread.spun = spun.min(thread.cpu));
        }
        let work = threads.iter().flatten().map(ThreadUse::work).sum();
        let little = Little::of(&record, seconds, plan.timeout.as_secs_f64(), work);
        let server = watched.server.as_ref().map(|looks| ServerUse::between(looks, &record));
        let part = Part {
            addresses: requests.origins.iter().map(|origin| origin.address).collect(),
            machine: Machine::look(),
            began_unix_s: watched.began_unix_s,
            seconds,
            generator: Generator {
                threads,
                seconds: watched.after.seconds_since(&watched.before),
                stolen: watched.after.stolen_since(&watched.before),
                segments_resent: watched.after.resent_since(&watched.before),
                syns_resent: watched.after.syns_resent_since(&watched.before),
                listening: watched.after.listening_since(&watched.before).filter(|_| is_here(&requests)),
                descriptors_max,
                // Each thread had its most at another moment.
                descriptors_most: descriptors_before.map(|before| {
                    let beside = before + DESCRIPTORS_A_THREAD * plan.threads as u64;
                    (beside + record.connections_most).min(descriptors_max)
                }),
                ports: ports(),
                ports_most: if reuses_ports(&requests) { Some(0) } else { watched.time_waits }
                    .map(|behind| behind + record.connections_most),
                little,
            },
            record,
        };
        Ok((part, server))
    }
}

/// How long a plan's answers are in the mean, head and all: each kind of request is asked once, and counts as often as
/// its weight says. Of sessions only the first step is asked.
///
/// # Errors
/// Those of [`run`].
pub(crate) fn answer_bytes(plan: &Plan, place: Place) -> Result<f64, Fault> {
    plan.check()?;
    let requests = Arc::new(Requests::new(plan)?);
    let config = Client::new(plan, &requests)?.0.map(Arc::new);
    let bell = Bell::heard_with(plan.interrupt.clone());
    let (mut bytes, mut weights) = (0.0, 0.0);
    for (index, number) in plan.numbers.take(kinds(plan), place).enumerate() {
        let weight = f64::from(plan.targets[index].weight);
        bytes += weight * probe(plan, &requests, (index, number), (config.as_ref(), &bell))? as f64;
        weights += weight;
    }
    Ok(if weights > 0.0 { bytes / weights } else { 0.0 })
}

/// So many of the targets can be asked for out of the blue: the steps of a session are not for whoever has not begun it.
pub(crate) fn kinds(plan: &Plan) -> usize {
    if plan.session.is_some() { 1 } else { plan.targets.len() }
}

/// So many requests each machine sends before the load at most.
pub(crate) fn looks(plan: &Plan) -> usize {
    let resumes = matches!(plan.handshakes, Handshakes::Resumed(_));
    kinds(plan) * if resumes { plan.threads } else { 1 }
}

/// How handshakes are done, before each thread has its own sessions.
struct Client(Option<ClientConfig>);

impl Client {
    fn new(plan: &Plan, requests: &Requests) -> Result<Client, Fault> {
        if requests.origins.iter().all(|origin| origin.tls.is_none()) {
            return Ok(Client(None));
        }
        let settings = ClientTls {
            ca: plan.ca.clone(),
            certificate: plan.certificate.clone(),
            verify: plan.verify,
            min_version: TlsVersion::Tls12,
            protocol: plan.protocol.alpn(),
        };
        let config = plan.offer.client_config(&settings, &SystemAuthorities::default());
        let mut config = config.map_err(|errors| {
            let words: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Fault::new(words.join("\n"))
        })?;
        if let Some(offered) = &plan.alpn {
            config.alpn_protocols = offered.iter().map(|name| name.clone().into_bytes()).collect();
        }
        Ok(Client(Some(config)))
    }

    /// Asks each kind of request once, and gives each thread sessions of its own where some are to be resumed.
    fn setups(
        &self,
        (plan, place): (&Plan, Place),
        requests: &Arc<Requests>,
        bell: &Bell,
    ) -> Result<Vec<Setup>, Fault> {
        let mut numbers = plan.numbers.take(looks(plan), place);
        let resumes = matches!(plan.handshakes, Handshakes::Resumed(_));
        let mut setups = Vec::with_capacity(plan.threads);
        for index in 0..plan.threads {
            let config = self.0.clone().map(Arc::new);
            let configs =
                requests.origins.iter().map(|origin| config.as_ref().filter(|_| origin.tls.is_some()));
            let setup = users::setup(configs, plan.handshakes);
            let mut has_session = vec![!resumes; requests.origins.len()];
            for target in 0..kinds(plan) {
                let origin = requests.get(target).origin;
                let is_known = std::mem::replace(&mut has_session[origin], true);
                if bell.is_over() {
                    return Err(ended(plan));
                }
                if index == 0 || !is_known {
                    let number = numbers.next().unwrap_or_default();
                    let asked = probe(plan, requests, (target, number), (setup[origin].0.as_ref(), bell));
                    asked.map_err(|fault| if bell.is_over() { ended(plan) } else { fault })?;
                }
            }
            setups.push(setup);
        }
        Ok(setups)
    }
}

/// Somebody wanted no more of it.
fn ended(plan: &Plan) -> Fault {
    if plan.interrupt.has_come() { Interrupt::fault() } else { Fault::new("it was ended before its time") }
}

/// Lets the process open as many descriptors as it may, and says how many those are.
fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    current.unwrap_or(u64::MAX)
}

/// Whether all that is asked is on this machine: of another one nobody has an address.
fn is_here(requests: &Requests) -> bool {
    requests.origins.iter().all(|origin| is_ours(origin.address.ip()))
}

fn is_ours(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Whether the kernel gives the port of a connection that has ended to another one to the same place, a second later:
/// 0 never, 1 always, 2 (as it is usually) on the loopback.
fn reuses_ports(requests: &Requests) -> bool {
    let setting = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_tw_reuse").unwrap_or_default();
    match setting.trim() {
        "1" => true,
        "2" => requests.origins.iter().all(|origin| origin.address.ip().is_loopback()),
        _ => false,
    }
}

/// How many ports the kernel chooses from.
fn ports() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut numbers = text.split_ascii_whitespace().map_while(|word| word.parse::<u32>().ok());
    let (first, last) = (numbers.next()?, numbers.next()?);
    last.checked_sub(first).map(|count| count + 1)
}

#[cfg(test)]
mod tests {
    use super::is_ours;

    #[test]
    fn addresses_of_others_are_not_ours() {
        // The second is nobody's (RFC 5737).
        let [loopback, other] = [[127, 0, 0, 1], [192, 0, 2, 1]].map(Into::into);
        assert!(is_ours(loopback) && !is_ours(other));
    }
}
