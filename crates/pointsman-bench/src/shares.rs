//! What share of the requests goes how: on connections that are kept, behind another one, over TLS.

use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::record::Record;
use crate::{Fault, Scheme};

/// Longer pipelines have no server that takes them.
const DEPTH_MAX: u32 = 1024;

/// Shares of all requests, each from 0 to 1. They are drawn by the seed, counted, and held against what came out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// Those on connections that are kept; each of the others has a new one to itself. `None`: as
    /// [`crate::Handshakes`] and the requests per connection say.
    pub persistent: Option<f64>,
    /// Those sent behind another one on its connection before that one's answer has come, in pipelines of
    /// [`Shares::pipeline_depth`]. A pipeline is due as a whole; its first request is behind no other.
    pub pipelined: Option<f64>,
    /// Requests of a pipeline, the first among them: 2 to 1024.
    pub pipeline_depth: u32,
    /// Those over TLS, where targets are of both schemes. `None`: as the targets' weights say.
    pub tls: Option<f64>,
}

impl Default for Shares {
    /// None is asked for, and pipelines are of eight.
    fn default() -> Shares {
        Shares { persistent: None, pipelined: None, pipeline_depth: 8, tls: None }
    }
}

/// A share that was asked for, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareOutcome {
    /// A word for reports.
    pub name: &'static str,
    /// What the plan says, if it does.
    pub asked: Option<f64>,
    /// The share of the answered requests, 0 to 1.
    pub came_out: f64,
    /// How far the two may be apart by chance: five standard errors, and a hundredth.
    pub slack: f64,
}

impl ShareOutcome {
    /// Whether it is what was asked for, or nothing was.
    pub fn is_as_asked(&self) -> bool {
        self.asked.is_none_or(|asked| (self.came_out - asked).abs() <= self.slack)
    }
}

/// How far a share of `draws` may be from `asked` by chance: five standard errors, and a hundredth.
pub(crate) fn by_chance(asked: f64, draws: f64) -> f64 {
    5.0 * (asked * (1.0 - asked) / draws).sqrt() + 0.01
}

impl Shares {
    /// What contradicts itself.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), Fault> {
        let named = [("persistent", self.persistent), ("pipelined", self.pipelined), ("tls", self.tls)];
        for (name, share) in named {
            if share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
                return Err(Fault::new(format!("the share of {name} requests is between 0 and 1")));
            }
        }
        if self.tls.is_some() {
            let has = |scheme| plan.targets.iter().any(|t| t.url.scheme == scheme && t.weight > 0);
            if !has(Scheme::Http) || !has(Scheme::Https) {
                return Err(Fault::new("a share over TLS needs URLs with `http` and URLs with `https`")
                    .help("give both, or `--tls-port N` for the same URLs over TLS at that port"));
            }
        }
        if self.persistent.is_some() && plan.requests_a_connection() == 1 {
            return Err(Fault::new("connections of one request are not persistent")
                .help("leave out `--requests-per-connection 1`"));
        }
        self.check_pipelines(plan)
    }

    fn check_pipelines(&self, plan: &Plan) -> Result<(), Fault> {
        let depth = self.pipeline_depth;
        if !(2..=DEPTH_MAX).contains(&depth) {
            return Err(Fault::new(format!("a pipeline has 2 to {DEPTH_MAX} requests, not {depth}")));
        }
        let Some(share) = self.pipelined.filter(|share| *share > 0.0) else { return Ok(()) };
        let room = plan.requests_a_connection();
        if room < depth {
            return Err(Fault::new(format!(
                "a pipeline of {depth} does not fit on a connection of {room} requests"
            ))
            .help("say `--requests-per-connection N`, or `--handshake keep`"));
        }
        let mix = Mix::of(plan);
        if mix.pipeline + mix.single > 1.0 + 1e-9 {
            let most = self.persistent.unwrap_or(1.0) * f64::from(depth - 1) / f64::from(depth);
            return Err(Fault::new(format!(
                "at most {most:.3} of the requests can be behind another, not {share}: the first of each pipeline of \
                 {depth} is not{}",
                if self.persistent.is_some() { ", nor are those with a connection to themselves" } else { "" }
            ))
            .help("say a greater `--pipeline-depth`"));
        }
        Ok(())
    }

    /// What was asked for beside what came out. Empty: nothing was answered.
    pub(crate) fn outcomes(&self, record: &Record, plan: &Plan) -> Vec<ShareOutcome> {
        let answered = record.answered as f64;
        if record.answered == 0 {
            return Vec::new();
        }
        // Requests of a pipeline are drawn together.
        let together = if self.pipelined.is_some() { f64::from(self.pipeline_depth) } else { 1.0 };
        let outcome = |name, asked: Option<f64>, count: u64| {
            let slack = by_chance(asked.unwrap_or(0.0), answered / together);
            ShareOutcome { name, asked, came_out: count as f64 / answered, slack }
        };
        vec![
            outcome("persistent", self.persistent, plan.kept(record)),
            outcome("pipelined", self.pipelined, record.answered_pipelined),
            outcome("tls", self.tls, record.answered_over_tls),
        ]
    }
}

impl Plan {
    /// Answered requests whose connection was kept: not only as heads say, for a server may close behind an answer whose
    /// head says nothing of it. Then there are more connections than what was not kept, was sent again, or failed needs; so
    /// many of the kept were not.
    fn kept(&self, record: &Record) -> u64 {
        let kept = record.answered_kept;
        // Each new user has new connections.
        if self.session.is_some() {
            return kept;
        }
        let not_kept = record.answered.saturating_sub(kept);
        let each = match self.shares.pipelined {
            // Where a whole pipeline does not fit any more another connection is opened.
            Some(_) => self.requests_a_connection().saturating_sub(self.shares.pipeline_depth - 1),
            None => self.requests_a_connection(),
        };
        let of_their_own = kept.div_ceil(u64::from(each.max(1)));
        let failed = record.failed() - record.errors_of(crate::ErrorKind::Status);
        let needed = not_kept + of_their_own + failed + record.sent_again + record.connections_most;
        kept.saturating_sub(record.opened.saturating_sub(needed))
    }
}

/// What is begun at a time: one request, or a pipeline of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drawn {
    pub(crate) requests: u32,
    /// Whether the connection may have more requests than these.
    pub(crate) is_kept: bool,
    /// Over TLS or not, where the plan says that.
    pub(crate) tls: Option<bool>,
}

/// How likely each thing is to be begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    /// A pipeline.
    pipeline: f64,
    /// One request on a connection of its own.
    single: f64,
    tls: Option<f64>,
    depth: u32,
    /// Whether connections have more than one request.
    keeps: bool,
    is_plain: bool,
}

impl Mix {
    /// Shares are of requests, and a pipeline is many: from one to the other. With `z` pipelines of `N` and `x` requests on
    /// connections of their own among all things that are begun, `1 + z (N - 1)` requests come to each; `z (N - 1)` of
    /// them are to be the share `f`, and `x` the share `1 - p`.
    pub(crate) fn of(plan: &Plan) -> Mix {
        let shares = &plan.shares;
        let keeps = plan.requests_a_connection() > 1;
        let behind = shares.pipelined.unwrap_or(0.0);
        let kept = shares.persistent.unwrap_or(if keeps { 1.0 } else { 0.0 });
        let each = 1.0 / (1.0 - behind).max(f64::EPSILON);
        Mix {
            pipeline: behind * each / f64::from(shares.pipeline_depth - 1),
            single: (1.0 - kept) * each,
            tls: shares.tls,
            depth: shares.pipeline_depth,
            keeps,
            is_plain: behind == 0.0 && shares.persistent.is_none() && shares.tls.is_none(),
        }
    }

    /// Requests that come to one thing that is begun, in the mean.
    pub(crate) fn requests_each(&self) -> f64 {
        1.0 + self.pipeline * f64::from(self.depth - 1)
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut fastrand::Rng) -> Drawn {
        let plain = Drawn { requests: 1, is_kept: self.keeps, tls: None };
        if self.is_plain {
            return plain;
        }
        let tls = self.tls.map(|share| random.f64() < share);
        match random.f64() {
            drawn if drawn < self.pipeline => Drawn { requests: self.depth, tls, ..plain },
            drawn if drawn < self.pipeline + self.single => Drawn { is_kept: false, tls, ..plain },
            _ => Drawn { tls, ..plain },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Load, Target, Url};

    fn plan(urls: &[&str], shares: Shares) -> Plan {
        let target = |url: &&str| Target {
            url: Url::parse(url).expect(url),
            weight: 1,
            method: "GET".into(),
            headers: Vec::new(),
            body: Default::default(),
        };
        let mut plan = Plan::new(urls.iter().map(target).collect(), Load::Closed { clients: 1 });
        plan.shares = shares;
        plan
    }

    #[test]
    fn requests_are_drawn_as_often_as_their_shares_say() {
        for (persistent, pipelined, pipeline_depth, tls) in [
            (None, None, 8, None),
            (Some(0.7), None, 8, None),
            (None, Some(0.3), 8, Some(0.5)),
            (None, Some(0.75), 4, None),
            (Some(0.7), Some(0.3), 4, Some(0.1)),
            (Some(0.0), None, 8, Some(1.0)),
        ] {
            let shares = Shares { persistent, pipelined, pipeline_depth, tls };
            let mix = Mix::of(&plan(&["http://a/"], shares));
            let mut random = fastrand::Rng::with_seed(7);
            let (mut all, mut kept, mut behind, mut over_tls, draws) = (0, 0, 0, 0, 100_000);
            for _ in 0..draws {
                let drawn = mix.draw(&mut random);
                all += drawn.requests;
                behind += drawn.requests - 1;
                kept += drawn.requests * u32::from(drawn.is_kept);
                over_tls += drawn.requests * u32::from(drawn.tls == Some(true));
            }
            let near = |count: u32, share: Option<f64>, otherwise: f64| {
                let came = f64::from(count) / f64::from(all);
                assert!((came - share.unwrap_or(otherwise)).abs() < 0.01, "{shares:?}: {came}");
            };
            near(kept, persistent, 1.0);
            near(behind, pipelined, 0.0);
            near(over_tls, tls, 0.0);
            let each = f64::from(all) / f64::from(draws);
            assert!((each - mix.requests_each()).abs() < 0.03, "{shares:?}: {each}");
        }
    }

    #[test]
    fn what_was_kept_is_what_needs_no_more_connections_than_there_were() {
        let mut plan = plan(&["http://a/"], Shares { persistent: Some(0.7), ..Shares::default() });
        let mut record = Record::new(1);
        (record.answered, record.answered_kept, record.connections_most) = (1_000, 700, 10);
        for (opened, pipelined, requests, kept) in [
            (310, None, None, 700),
            (1_000, None, None, 11),
            (380, None, Some(10), 700),
            (390, None, Some(10), 690),
            (450, Some(0.3), Some(10), 700),
        ] {
            (plan.shares.pipelined, plan.requests_per_connection) = (pipelined, requests);
            (plan.shares.pipeline_depth, record.opened) = (6, opened);
            assert_eq!(plan.kept(&record), kept, "{opened} {requests:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let both = ["http://127.0.0.1/", "https://127.0.0.1/"];
        let fine = Shares { persistent: Some(0.7), pipelined: Some(0.3), pipeline_depth: 4, tls: Some(0.5) };
        assert_eq!(fine.check(&plan(&both, fine)), Ok(()));
        for (urls, shares, words) in [
            (&both[..], Shares { persistent: Some(1.1), ..fine }, "between 0 and 1"),
            (&both, Shares { pipelined: Some(f64::NAN), ..fine }, "between 0 and 1"),
            (&both, Shares { pipelined: Some(0.8), ..fine }, "at most 0.525"),
            (&both, Shares { persistent: None, pipelined: Some(1.0), ..fine }, "at most 0.750"),
            (&both, Shares { pipeline_depth: 1, ..fine }, "2 to 1024"),
            (&both[..1], fine, "needs URLs with `http`"),
            (&both[1..], fine, "needs URLs with `http`"),
        ] {
            let fault = shares.check(&plan(urls, shares)).expect_err(words).to_string();
            assert!(fault.contains(words), "{fault}");
        }
        let mut short = plan(&both, fine);
        short.requests_per_connection = Some(3);
        assert!(fine.check(&short).is_err());
        short.requests_per_connection = Some(1);
        short.shares = Shares { persistent: Some(0.5), ..Shares::default() };
        assert!(short.shares.check(&short).is_err());
        short.shares = Shares::default();
        let drawn = Mix::of(&short).draw(&mut fastrand::Rng::new());
        assert_eq!(drawn, Drawn { requests: 1, is_kept: false, tls: None });
    }
}
