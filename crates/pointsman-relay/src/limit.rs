//! Requests that are too much: what a class of `limitRate` gives, taken when a request is decided.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use pointsman_balance::StickyHash;
use pointsman_config::RateLimit;
use pointsman_rules::{Effect, Field};
use pointsman_shape::{Bucket, Buckets, Wait};
use pointsman_telemetry::{Event, LimitMetrics, Metrics, Refusal};
use pointsman_view::RequestView;

use crate::exchange::Exchange;
use crate::facts::Text;
use crate::pick::with_key;
use crate::verdict::{OwnAnswer, Place};

/// Begins the salts of classes; no name of a pool begins so.
const SALT: &[u8] = b"\0limit";

/// The salt of what requests without a key are counted under.
const WITHOUT_KEY: &[u8] = b"\0limit\0";

/// A class, and what was taken of it.
pub(crate) struct LiveLimit {
    plan: RateLimit,
    /// Keeps the hashes of its keys apart from those of other classes.
    salt: Box<[u8]>,
    taken: Arc<Taken>,
    metrics: Arc<LimitMetrics>,
}

/// What was taken of a class, by all threads.
#[derive(Debug)]
pub(crate) enum Taken {
    /// By all requests together.
    Together(Bucket),
    ByKey(Buckets),
}

/// What was taken of each class, kept over reloads as long as the keys are the same.
#[derive(Default)]
pub(crate) struct LimitStates(HashMap<(Arc<str>, Option<Field>, u32), Arc<Taken>>);

impl LimitStates {
    /// Joins the classes of a plan with what was taken of them.
    pub(crate) fn attach(&mut self, plan: &[RateLimit], metrics: &Metrics) -> HashMap<Arc<str>, LiveLimit> {
        let live = |limit: &RateLimit| {
            let key = (limit.name.clone(), limit.key.clone(), limit.keys_max);
            let new = || match limit.key {
                None => Taken::Together(Bucket::default()),
                Some(_) => Taken::ByKey(Buckets::new(limit.keys_max as usize)),
            };
            let taken = self.0.entry(key).or_insert_with(|| Arc::new(new())).clone();
            let live = LiveLimit {
                plan: limit.clone(),
                salt: [SALT, limit.name.as_bytes()].concat().into(),
                taken,
                metrics: metrics.limit(&limit.name),
            };
            (limit.name.clone(), live)
        };
        plan.iter().map(live).collect()
    }

    /// Forgets what no generation names any more.
    pub(crate) fn forget_unused(&mut self) {
        self.0.retain(|_, taken| Arc::strong_count(taken) > 1);
    }
}

impl Place<'_> {
    /// Takes what a request needs of the classes that its effects name: of all of them, or of none, where it is too
    /// much for one. Then that is what it comes to.
    pub(crate) fn over_limit(
        &self,
        effects: &[&Effect],
        view: &RequestView<'_>,
        exchange: &mut Exchange,
    ) -> Option<OwnAnswer> {
        let named = || {
            effects.iter().enumerate().filter_map(|(at, effect)| match effect {
                // Named twice is taken once.
                Effect::LimitRate(class) if !effects[..at].contains(effect) => {
                    self.local.live.limits.get(&**class)
                }
                _ => None,
            })
        };
        let now_ns = self.shard.clock.round_us().saturating_mul(1000);
        let sticky = &self.local.live.sticky;
        let over = named().find_map(|limit| Some((limit, limit.look(sticky, view, now_ns).err()?)));
        // Another thread may have been faster since.
        let over =
            over.or_else(|| named().find_map(|limit| Some((limit, limit.take(sticky, view, now_ns).err()?))));
        let (limit, wait) = over?;
        self.shard.recorder.hear(&Event::Limited(&limit.metrics));
        self.shard.recorder.hear(&Event::Refused(&self.live.state.metrics, Refusal::Rate));
        if let Some(facts) = exchange.facts_mut() {
            facts.note(Text::Limit, limit.plan.name.as_bytes());
        }
        let mut lines = self.shard.text_lines();
        lines.extend_from_slice(format!("Retry-After: {}\r\n", wait.seconds()).as_bytes());
        Some(OwnAnswer {
            status: limit.plan.status,
            lines,
            body: b"too many requests\n".to_vec(),
            used: None,
        })
    }
}

impl LiveLimit {
    fn look(&self, hash: &StickyHash, view: &RequestView<'_>, now_ns: u64) -> Result<(), Wait> {
        match &*self.taken {
            Taken::Together(bucket) => bucket.look(self.plan.rate, now_ns),
            Taken::ByKey(buckets) => buckets.look(self.key(hash, view), self.plan.rate, now_ns),
        }
    }

    fn take(&self, hash: &StickyHash, view: &RequestView<'_>, now_ns: u64) -> Result<(), Wait> {
        match &*self.taken {
            Taken::Together(bucket) => bucket.take(self.plan.rate, now_ns),
            Taken::ByKey(buckets) => buckets.take(self.key(hash, view), self.plan.rate, now_ns),
        }
    }

    /// The hash of what the request is counted under. Nobody can choose it, or make it meet another one.
    fn key(&self, hash: &StickyHash, view: &RequestView<'_>) -> u64 {
        let of_key = |key: &[u8]| hash.hash(&self.salt, key);
        let key = self.plan.key.as_ref().and_then(|field| with_key(field, view, counted_as, of_key));
        // Who leaves the key out must not go free.
        key.unwrap_or_else(|| hash.hash(WITHOUT_KEY, &self.salt))
    }
}

/// A host of IPv6 has a /64 to choose its addresses from (RFC 6177), so that is what counts as one.
fn counted_as(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).octets()
        }
    }
}
