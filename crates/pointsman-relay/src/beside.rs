//! A dry-run: a candidate plan that is asked beside the one that serves, about the same requests, and changes nothing.
//!
//! A thread compares what the two say when the live rules have decided. It counts in a place of its own, and keeps in mind
//! what each pair of decisions came to: to compare a request is to ask the candidate's rules and to look that up.
//!
//! Invariant: nothing here picks a server, draws lots, takes of a class or remembers a client; docs/adr/0050 says what
//! is compared.

mod body;
mod findings;
mod known;
mod switch;

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;

use pointsman_config::{Listener, OddNames, Plan};
use pointsman_http::{Framing, RequestHead, Version};
use pointsman_net::Clock;
use pointsman_rules::{DecidedBy, Decision, DefaultPool, Effect, Evidence, Outcome, Said, Truths};
use pointsman_view::{
    Connection, ConnectionView, HOST_BYTES_MAX, NormalPath, Peer, RequestView, normal_form, normal_host,
};

use crate::decide::{decision, fits, head_limits, path_options, request_decision, trusted_proxies};
use crate::fault::Fault;
use crate::live::{ListenerId, Live, LiveListener};
use crate::memory::Buffers;
use crate::shard::Shard;
use findings::{Findings, Tally, Untold};
use known::Known;

pub(crate) use body::BodyBeside;
pub use findings::{DryRunCounts, DryRunGroup, DryRunSample};
pub(crate) use switch::DryRun;
pub use switch::{DryRunEnd, DryRunEnded, DryRunFound, DryRunGoesOn, DryRunLimits};

/// A candidate, as all threads share it.
pub(crate) struct Candidate {
    plan: Plan,
    /// By the number of the live listener; nothing for numbers that are none's.
    stands: Vec<Option<Stand>>,
    /// It ends then, on the clock of the threads.
    until_us: u64,
    findings: Arc<Findings>,
}

/// A live listener, and what the candidate has in its place.
struct Stand {
    /// Its place among the findings.
    number: usize,
    /// As it was when the dry-run began. What its rules decide is told apart by where they lie, so they stay there.
    live: Listener,
    /// The name of its default pool.
    default_pool: Option<Arc<str>>,
    beside: Result<Counterpart, Untold>,
}

/// A listener of the candidate.
struct Counterpart {
    /// Its place in the candidate's plan.
    index: usize,
    /// Whether it reads heads as the live one does.
    reads_alike: bool,
    /// What is known of a body before any of it is read, where its rules name something of it.
    unread: Option<Evidence>,
}

/// A candidate, as one thread has it.
pub(crate) struct Beside {
    candidate: Arc<Candidate>,
    own: RefCell<Own>,
}

/// What is the thread's own.
struct Own {
    head: RequestHead,
    path: Vec<u8>,
    counting: Counting,
}

struct Counting {
    tally: Tally,
    /// What tells the pair of decisions apart that is compared.
    pair: Vec<usize>,
    known: Known,
}

/// A live listener where something was decided.
#[derive(Clone, Copy)]
pub(crate) struct Here<'a> {
    pub(crate) id: ListenerId,
    pub(crate) live: &'a Live,
    pub(crate) listener: &'a Listener,
    pub(crate) clock: Clock,
    /// What is booked by which bodies are looked into.
    pub(crate) buffers: &'a Buffers,
}

/// A request that the live rules have decided.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) head: &'a RequestHead,
    /// What it was parsed from, with what has come of the body.
    pub(crate) received: &'a [u8],
    /// What the live rules see of its head.
    pub(crate) view: &'a RequestView<'a>,
    /// What looks into its body for the candidate, where the live rules have waited for some of it.
    pub(crate) body: Option<&'a BodyBeside>,
}

impl<'a> Here<'a> {
    /// At a moment of its thread.
    pub(crate) fn now(shard: &'a Shard, id: ListenerId, live: &'a Live, listener: &'a Listener) -> Here<'a> {
        Here { id, live, listener, clock: shard.clock, buffers: &shard.buffers }
    }
}

impl Candidate {
    /// A plan beside `live`; it ends by itself at `until_us`.
    fn new(plan: Plan, live: &Live, until_us: u64) -> Candidate {
        let names = live.listeners().map(|(listener, _)| listener.name.clone()).collect();
        let mut stands = Vec::new();
        for (number, (listener, state)) in live.listeners().enumerate() {
            let at = state.id.index();
            if stands.len() <= at {
                stands.resize_with(at + 1, || None);
            }
            stands[at] = Some(Stand {
                number,
                live: listener.clone(),
                default_pool: default_pool(listener, &live.plan).cloned(),
                beside: Counterpart::of(listener, &plan),
            });
        }
        let findings = Arc::new(Findings::new(names));
        Candidate { plan, stands, until_us, findings }
    }

    /// Whether what it is compared with is what `live` has, so that what was found goes on to hold.
    fn is_beside(&self, live: &Live) -> bool {
        let is_same = |(listener, state): (&Listener, &LiveListener)| {
            self.stand(state.id).is_some_and(|stand| stand.is_of(listener, &live.plan))
        };
        live.listeners().count() == self.stands.iter().flatten().count() && live.listeners().all(is_same)
    }

    fn stand(&self, id: ListenerId) -> Option<&Stand> {
        self.stands.get(id.index())?.as_ref()
    }

    /// What stands in the place of a listener; nothing where nothing can be compared.
    fn counterpart(&self, id: ListenerId) -> Option<(&Listener, &Counterpart)> {
        let counterpart = self.stand(id)?.beside.as_ref().ok()?;
        Some((self.plan.listeners.get(counterpart.index)?, counterpart))
    }
}

impl Stand {
    /// Whether a live listener of `plan` decides as it did when the dry-run began.
    fn is_of(&self, listener: &Listener, plan: &Plan) -> bool {
        let rules = |listener: &Listener| listener.program.as_ref().map(Arc::as_ptr);
        rules(&self.live) == rules(listener)
            && self.default_pool.as_ref() == default_pool(listener, plan)
            && self.live.protocol == listener.protocol
            && read_alike(&self.live, listener)
            && self.live.body_options == listener.body_options
            && self.live.body_limits == listener.body_limits
    }
}

/// The name of what takes a listener's requests that no rule decides.
fn default_pool<'p>(listener: &Listener, plan: &'p Plan) -> Option<&'p Arc<str>> {
    listener.default_pool.map(|pool| &plan.pool(pool).name)
}

impl Counterpart {
    fn of(live: &Listener, plan: &Plan) -> Result<Counterpart, Untold> {
        let index = plan.listeners.iter().position(|listener| listener.name == live.name);
        let index = index.ok_or(Untold::NoListener)?;
        let listener = &plan.listeners[index];
        if listener.protocol != live.protocol {
            return Err(Untold::Protocol);
        }
        let program = listener.program.as_deref().filter(|program| !program.payloads.is_empty());
        Ok(Counterpart { index, reads_alike: read_alike(live, listener), unread: program.map(Evidence::new) })
    }
}

/// Whether two listeners make the same of every head.
fn read_alike(one: &Listener, other: &Listener) -> bool {
    let knows = |listener: &Listener| match listener.odd_names {
        OddNames::Keep => listener.named_fields.clone(),
        OddNames::Drop | OddNames::Refuse => Vec::new(),
    };
    head_limits(one) == head_limits(other)
        && path_options(one) == path_options(other)
        && one.odd_names == other.odd_names
        && knows(one) == knows(other)
        && one.trusted_proxies == other.trusted_proxies
        && one.trusts_unix == other.trusts_unix
}

impl Beside {
    /// What a thread has of `candidate`.
    pub(crate) fn new(candidate: Arc<Candidate>) -> Beside {
        let tally = candidate.findings.of_new_thread();
        let counting = Counting { tally, pair: Vec::new(), known: Known::default() };
        let own = Own { head: RequestHead::default(), path: Vec::new(), counting };
        Beside { candidate, own: RefCell::new(own) }
    }

    /// Whether it is what a thread has of that one.
    pub(crate) fn is_of(&self, candidate: &Arc<Candidate>) -> bool {
        Arc::ptr_eq(&self.candidate, candidate)
    }

    /// What looks into a body that the live rules wait for, where the candidate's name something of it and there is
    /// memory for it.
    pub(crate) fn body(
        &self,
        id: ListenerId,
        head: &RequestHead,
        received: &[u8],
        buffers: &Buffers,
    ) -> Option<Box<BodyBeside>> {
        let (listener, counterpart) = self.candidate.counterpart(id)?;
        counterpart.unread.as_ref()?;
        BodyBeside::new(listener, head, received, buffers).map(Box::new)
    }

    /// Compares what the live rules have said of a request.
    pub(crate) fn hear_request(
        &self,
        here: Here<'_>,
        asked: Asked<'_>,
        live: &Decision<'_>,
        truths: &mut Truths,
    ) {
        let Some((listener, counterpart)) = self.counted(here) else { return };
        let Own { head, path, counting } = &mut *self.own.borrow_mut();
        let connection = asked.view.connection();
        let read = match counterpart.reads_alike {
            true => Ok((asked.head, asked.view.path())),
            false => read_again(head, path, asked, connection, listener),
        };
        let sample = || request_sample(here, asked);
        let compare = Compare { candidate: &self.candidate, here, listener, live, counting };
        let (head, path) = match read {
            Ok(read) => read,
            Err(sentence) => return compare.with(&Err(sentence), sample),
        };
        let view = RequestView::new(head, asked.received, connection, path, trusted_proxies(listener));
        let unread = counterpart.unread.as_ref().filter(|_| head.framing() != Framing::None);
        let Some(unread) = unread else {
            return compare.with(&Ok(request_decision(listener, &view, &[], truths)), sample);
        };
        let mut decided = match asked.body {
            Some(body) => body.decision(listener, view, truths),
            None => request_decision(listener, &view.with_body(unread), &[], truths),
        };
        let has_looked = asked.body.is_some_and(BodyBeside::has_looked);
        if !has_looked && matches!(decided.outcome, Outcome::Waits) {
            // What has come with the head costs nobody anything to wait for.
            let looked = BodyBeside::new(listener, head, asked.received, here.buffers).map(|mut body| {
                body.look(&asked.received[head.head_bytes()..]);
                body.decision(listener, view, truths)
            });
            decided = looked.unwrap_or(decided);
        }
        compare.with(&Ok(decided), sample);
    }

    /// Compares what they have said of a connection of which no request is read.
    pub(crate) fn hear_connection(
        &self,
        here: Here<'_>,
        view: &ConnectionView<'_>,
        connection: &Connection,
        live: &Decision<'_>,
        truths: &mut Truths,
    ) {
        let Some((listener, _)) = self.counted(here) else { return };
        let Own { counting, .. } = &mut *self.own.borrow_mut();
        let compare = Compare { candidate: &self.candidate, here, listener, live, counting };
        let client = connection.sender().map(|sender| sender.ip());
        let sample = || DryRunSample { client, ..DryRunSample::at(here.clock.unix_us()) };
        compare.with(&Ok(decision(listener, view, truths)), sample);
    }

    /// What stands in the place of a listener, where that is to be asked. Where it cannot be, that is counted.
    fn counted(&self, here: Here<'_>) -> Option<(&Listener, &Counterpart)> {
        let Candidate { findings, until_us, .. } = &*self.candidate;
        if findings.is_over() || here.clock.round_us() >= *until_us {
            return None;
        }
        let stand = self.candidate.stand(here.id)?;
        if let Err(untold) = stand.beside {
            self.own.borrow().counting.tally.cannot_tell(stand.number, untold);
        }
        self.candidate.counterpart(here.id)
    }
}

/// Reads a head as the candidate's listener does; the error is the sentence that refuses it.
fn read_again<'h>(
    head: &'h mut RequestHead,
    path: &'h mut Vec<u8>,
    asked: Asked<'h>,
    connection: &Connection,
    listener: &Listener,
) -> Result<(&'h RequestHead, NormalPath<'h>), &'static str> {
    let received = asked.received;
    match head.parse(received, &head_limits(listener)) {
        Ok(true) => {}
        // The live listener has found it whole within its limits.
        Ok(false) => return Err("it makes no whole head"),
        Err(refusal) => return Err(refusal.sentence()),
    }
    if asked.head.version() == Version::Http2 {
        head.is_of_http2().map_err(|refusal| refusal.sentence())?;
    }
    let is_trusted = connection.is_trusted(trusted_proxies(listener));
    let peer = Peer { address: None, is_trusted, scheme: connection.scheme() };
    fits((head, received), None, listener, &peer).map_err(Fault::sentence)?;
    let normal = normal_form(head.path_and_query(received), path_options(listener), path);
    let normal = normal.map_err(|refusal| refusal.sentence())?;
    Ok((head, normal))
}

/// A decision of the live rules that is to be compared.
struct Compare<'a, 'r> {
    candidate: &'a Candidate,
    here: Here<'a>,
    /// The candidate's.
    listener: &'a Listener,
    live: &'a Decision<'r>,
    counting: &'a mut Counting,
}

impl Compare<'_, '_> {
    /// With what the candidate says, or why it refuses the request before a rule is asked.
    fn with(self, now: &Result<Decision<'_>, &'static str>, sample: impl FnOnce() -> DryRunSample) {
        let Some(number) = self.candidate.stand(self.here.id).map(|stand| stand.number) else { return };
        let Counting { tally, pair, known } = self.counting;
        pair.clear();
        pair.push(number);
        push_decision(pair, self.live);
        match now {
            Ok(Decision { outcome: Outcome::Waits, .. }) => return tally.cannot_tell(number, Untold::Body),
            Ok(decision) => push_decision(pair, decision),
            Err(sentence) => pair.extend([usize::MAX, sentence.as_ptr().addr()]),
        }
        if let Some(class) = known.class(pair) {
            return tally.count(number, class, sample);
        }
        let then = said(self.here.listener, self.live, &self.here.live.plan);
        let class = match now {
            Ok(decision) => tally.classify(number, then, said(self.listener, decision, &self.candidate.plan)),
            Err(sentence) => tally.classify(number, then, Said::Refused(sentence)),
        };
        known.keep(pair, class);
        tally.count(number, class, sample);
    }
}

/// What the rules of a listener say.
fn said<'a, 'r>(listener: &'a Listener, decision: &'a Decision<'r>, plan: &'a Plan) -> Said<'a, 'r> {
    let default_pool =
        default_pool(listener, plan).map_or(DefaultPool::None, |pool| DefaultPool::Named(pool));
    Said::Decided { program: listener.program.as_deref(), decision, default_pool }
}

/// What tells a decision apart from others of the same program, which lies where it is.
fn push_decision(pair: &mut Vec<usize>, decision: &Decision<'_>) {
    let by = match decision.by {
        DecidedBy::Rule { index, .. } => index.0 as usize,
        DecidedBy::Nothing => usize::MAX - 1,
    };
    let (kind, which) = match decision.outcome {
        Outcome::Terminal(terminal) => (0, std::ptr::from_ref(terminal).addr()),
        Outcome::RouteUnknown { target, cause } => (1, (target.0 as usize) << 8 | cause as usize),
        Outcome::Refused(cause) => (2, cause as usize),
        Outcome::DefaultPool => (3, 0),
        Outcome::Waits => (4, 0),
    };
    pair.extend([by, kind, which, decision.effects.len()]);
    pair.extend(decision.effects.iter().map(|effect: &&Effect| std::ptr::from_ref(*effect).addr()));
}

/// What is shown of a request: no more than the access log shows.
fn request_sample(here: Here<'_>, Asked { head, received, view, .. }: Asked<'_>) -> DryRunSample {
    let mut scratch = [0; HOST_BYTES_MAX];
    let host = normal_host(head.authority(received), &mut scratch);
    let query = view.path().query().filter(|_| here.listener.logs_query);
    let client: Option<IpAddr> = view.client_ip();
    DryRunSample::at(here.clock.unix_us())
        .of_request(client, [Some(head.method_name(received)), host, Some(view.path().path()), query])
}
