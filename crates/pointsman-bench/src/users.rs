//! The users of one thread: how far each is in its session, and what the server has given it.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::ClientConfig;
use rustls::client::Resumption;
use slab::Slab;

use crate::connection::Job;
use crate::jar::{Jar, Place};
use crate::plan::{Handshakes, Plan};
use crate::request::{Request, Requests};
use crate::sessions::Sessions;

/// How handshakes are done with each origin, by its number, and where its TLS sessions are kept, if any are to be resumed.
/// A server is offered its own sessions, and never another's.
pub(crate) type Setup = Vec<(Option<Arc<ClientConfig>>, Option<Arc<Sessions>>)>;

/// How handshakes are done so, each origin with sessions of its own where some are to be resumed.
pub(crate) fn setup<'c>(
    configs: impl Iterator<Item = Option<&'c Arc<ClientConfig>>>,
    handshakes: Handshakes,
) -> Setup {
    let of_origin = |config: Option<&Arc<ClientConfig>>| match (config, handshakes) {
        (Some(config), Handshakes::Resumed(_)) => {
            let own = Arc::new(Sessions::default());
            let mut config = ClientConfig::clone(config);
            config.resumption = Resumption::store(own.clone());
            (Some(Arc::new(config)), Some(own))
        }
        (config, _) => (config.cloned(), None),
    };
    configs.map(of_origin).collect()
}

/// All users of a thread, by their numbers.
#[derive(Debug)]
pub(crate) struct Users {
    all: Slab<User>,
    /// In seconds since 1970, when the run began: none lasts so long that a cookie's end matters within it.
    now_s: i64,
}

/// One user, who is new when its session begins.
#[derive(Debug, Default)]
pub(crate) struct User {
    /// The step that is next, or under way.
    pub(crate) step: u32,
    /// When the session was due; nothing: it has not begun.
    pub(crate) due_ns: Option<u64>,
    /// How long it waited for answers.
    pub(crate) waited_ns: u64,
    /// Whether it was due in the measured time.
    pub(crate) is_counted: bool,
    jar: Jar,
    /// What was asked for last, without the query.
    path: String,
    /// Its own, where it resumes what it has begun itself.
    setup: Option<Setup>,
}

impl Users {
    pub(crate) fn new() -> Users {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Users { all: Slab::new(), now_s: now.as_secs() as i64 }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// One who has not begun.
    pub(crate) fn add(&mut self) -> u32 {
        self.all.insert(User::default()) as u32
    }

    pub(crate) fn get(&mut self, number: u32) -> &mut User {
        &mut self.all[number as usize]
    }

    /// Somebody else takes the number.
    pub(crate) fn renew(&mut self, number: u32) {
        self.all[number as usize] = User::default();
    }

    pub(crate) fn remove(&mut self, number: u32) {
        self.all.remove(number as usize);
    }

    /// Writes a request with the cookies of the user that asks.
    pub(crate) fn write(
        &mut self,
        job: &Job,
        requests: &Requests,
        into: &mut Vec<u8>,
        random: &mut fastrand::Rng,
    ) {
        let request = requests.get(job.request as usize);
        let user = job.client.and_then(|number| self.all.get_mut(number as usize));
        let Some(user) = user else { return request.write(into, job.number, random) };
        let is_over_tls = requests.is_over_tls(job.request as usize);
        request.write_adding(into, job.number, random, |into, start| {
            user.path.clear();
            user.path.push_str(&path_of(&into[start..]));
            if !user.jar.is_empty() {
                user.jar.write(into, user.place(request, is_over_tls), self.now_s);
            }
        });
    }

    /// Hears the Set-Cookie fields of an answer.
    pub(crate) fn hear(&mut self, job: &Job, requests: &Requests, fields: impl Iterator<Item = Vec<u8>>) {
        let user = job.client.and_then(|number| self.all.get_mut(number as usize));
        let Some(user) = user else { return };
        let is_over_tls = requests.is_over_tls(job.request as usize);
        let mut jar = std::mem::take(&mut user.jar);
        for field in fields {
            // What no browser keeps we do not either.
            let _is_kept =
                jar.take(&field, user.place(requests.get(job.request as usize), is_over_tls), self.now_s);
        }
        user.jar = jar;
    }
}

impl User {
    fn place<'u>(&'u self, request: &'u Request, is_over_tls: bool) -> Place<'u> {
        Place { host: &request.host, path: &self.path, is_over_tls }
    }

    /// Begins the session that was due then.
    pub(crate) fn begin(&mut self, due_ns: u64, is_counted: bool, plan: &Plan, thread: &Setup) {
        (self.due_ns, self.is_counted) = (Some(due_ns), is_counted);
        if let Handshakes::Resumed(_) = plan.handshakes {
            self.setup = Some(setup(thread.iter().map(|(config, _)| config.as_ref()), plan.handshakes));
        }
    }

    pub(crate) fn setup(&self) -> Option<&Setup> {
        self.setup.as_ref()
    }
}

/// The path in the first line of a request.
fn path_of(head: &[u8]) -> String {
    let target = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    String::from_utf8_lossy(path).into_owned()
}
