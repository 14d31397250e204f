//! An outcome as JSON: everything that a report, a comparison or another program may want to know of it.

use hdrhistogram::Histogram;
use pointsman_measure::Interval;
use pointsman_measure::statistics::Estimate;
use pointsman_measure::verdict::{Reason, Verdict};
use serde_json::{Map, Value, json};

use crate::agents::Agents;
use crate::negotiated::{Kind, Negotiated};
use crate::outcome::{AgentOutcome, LostAgent, Outcome};
use crate::plan::{Body, Close, Handshakes, Load, Plan};
use crate::record::{ErrorKind, Record};
use crate::think::Think;

impl Outcome {
    /// All of it. Times are in nanoseconds; histograms are lists of a time and how many requests took no longer than
    /// it, and longer than the one before.
    pub fn json(&self) -> Value {
        let record = &self.record;
        let voids: Vec<Value> =
            self.voids.iter().map(|void| json!({"code": void.code, "sentence": void.sentence})).collect();
        json!({
            "version": 1,
            "kind": "load",
            "began_unix_s": self.began_unix_s,
            "seconds": self.seconds,
            "interrupted": self.was_interrupted,
            "settings": settings(&self.plan),
            "addresses": self.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "machine": machine(self),
            "requests": requests(self),
            "connections": {
                "opened": record.opened,
                "most": record.connections_most,
                "closed_idle": record.closed_idle,
                "handshakes": self.record.handshakes.iter().sum::<u64>(),
                "handshakes_per_second": self.handshake_rate(),
                "by_kind": named(Kind::ALL.map(Kind::name), &record.handshakes),
                "negotiated": negotiated(&self.negotiated),
            },
            "shares": shares(self),
            "sessions": sessions(self),
            "times_ns": times(record),
            "batches": batches(record),
            "classes": classes(self),
            "generator": generator(self),
            "server": server(self),
            "agents": self.agents.iter().map(agent).collect::<Vec<_>>(),
            "lost_agents": self.lost.iter().map(lost).collect::<Vec<_>>(),
            "voids": voids,
            "reasons": reasons(&self.verdict()),
        })
    }
}

/// What speaks against a verdict, by its measure.
fn reasons(verdict: &Verdict) -> Vec<Value> {
    let reason = |reason: &Reason| {
        json!({
            "measure": reason.measure.to_string(), "colour": reason.colour.to_string(), "text": reason.text,
        })
    };
    verdict.reasons.iter().map(reason).collect()
}

/// What handshakes agreed on, and how often.
pub(crate) fn negotiated(agreed: &[(Negotiated, u64)]) -> Vec<Value> {
    let of_one = |(agreed, count): &(Negotiated, u64)| {
        json!({
            "kind": agreed.kind.name(), "offered_session": agreed.offered_session,
            "version": agreed.version, "suite": agreed.suite, "group": agreed.group,
            "protocol": agreed.protocol, "count": count,
        })
    };
    agreed.iter().map(of_one).collect()
}

fn requests(outcome: &Outcome) -> Value {
    let record = &outcome.record;
    let statuses: Map<String, Value> = record
        .statuses
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(status, count)| (status.to_string(), json!(count)))
        .collect();
    json!({
        "due": record.due, "begun": record.begun, "answered": record.answered,
        "answered_in_time": record.completed_in_time(), "right_in_time": record.right_in_time(),
        "sent_again": record.sent_again, "held_back": record.held_back,
        "unsent": record.unsent, "failed": record.failed(),
        "left_of_warm_up": record.left_of_warm_up, "left_waiting": record.left_waiting,
        "errors": named(ErrorKind::ALL.map(ErrorKind::name), &record.errors),
        "tls_fault": record.tls_fault, "statuses": statuses,
        "demanded_per_second": outcome.demanded(), "per_second": outcome.rate(),
        "bytes_received": record.bytes_in_time(), "bytes_sent": record.bytes_sent,
        "payload_received": record.payload_in_time(), "payload_received_per_second": outcome.payload_rate(),
        "bytes_received_per_second": record.bytes_in_time() as f64 / outcome.seconds,
    })
}

fn shares(outcome: &Outcome) -> Value {
    let share = |share: crate::ShareOutcome| {
        (
            share.name.to_owned(),
            json!({"asked": share.asked, "came_out": share.came_out, "slack": share.slack}),
        )
    };
    Value::Object(outcome.shares().into_iter().map(share).collect())
}

fn sessions(outcome: &Outcome) -> Value {
    let (Some(record), Some(script)) = (&outcome.record.sessions, &outcome.plan.session) else {
        return Value::Null;
    };
    let steps: Vec<Value> = script
        .steps
        .iter()
        .zip(&record.steps)
        .map(|(step, came)| {
            json!({
                "name": step.name, "answered": came.answered, "failed": came.failed,
                "think": step.think.map(think), "expects": step.expects,
                "response_ns": histogram(&came.response),
            })
        })
        .collect();
    json!({
        "due": record.due, "unsent": record.unsent, "ended": record.ended, "failed": record.failed,
        "cut": record.cut(), "ended_per_second": record.ended_per_s(outcome.seconds),
        "whole_ns": histogram(&record.whole), "waited_ns": histogram(&record.waited), "steps": steps,
    })
}

fn think(think: Think) -> Value {
    match think {
        Think::None => Value::Null,
        Think::Constant(time) => json!({"constant_s": time.as_secs_f64()}),
        Think::Exponential(mean) => json!({"exponential_s": mean.as_secs_f64()}),
    }
}

fn times(record: &Record) -> Value {
    json!({
        "response": histogram(&record.response),
        "service": histogram(&record.service),
        "first_byte": histogram(&record.first_byte),
        "connect": histogram(&record.connect),
        "handshake": histogram(&record.handshake),
        "lag": histogram(&record.lag),
        "held": histogram(&record.held),
    })
}

fn histogram(times: &Histogram<u64>) -> Value {
    let at = |quantile| times.value_at_quantile(quantile);
    let buckets: Vec<[u64; 2]> =
        times.iter_recorded().map(|step| [step.value_iterated_to(), step.count_at_value()]).collect();
    json!({
        "count": times.len(), "mean": times.mean(), "min": times.min(), "max": times.max(),
        "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p99_9": at(0.999), "p99_99": at(0.9999),
        "buckets": buckets,
    })
}

fn classes(outcome: &Outcome) -> Vec<Value> {
    let both = outcome.plan.classes.iter().zip(&outcome.record.classes);
    both.map(|(class, record)| {
        json!({
            "name": class.name, "right_status": class.right_status, "answered_in_time": record.completed(),
            "bytes_received": record.bytes(), "failed": record.failed,
            "response_ns": histogram(&record.response),
        })
    })
    .collect()
}

/// Columns rather than rows: there are many.
fn batches(record: &Record) -> Value {
    let column = |of: fn(&crate::Batch) -> u64| record.batches.iter().map(of).collect::<Vec<_>>();
    json!({
        "seconds": crate::record::BATCH_NS as f64 / 1e9,
        "answered": column(|batch| batch.completed),
        "right": column(|batch| batch.right),
        "failed": column(|batch| batch.failed),
        "bytes": column(|batch| batch.bytes),
        "payload": column(|batch| batch.payload),
        "response_ns_sum": column(|batch| batch.response_ns),
    })
}

/// One agent's part, by the names that the whole has.
fn agent(agent: &AgentOutcome) -> Value {
    let (outcome, verdict) = (&agent.outcome, agent.outcome.verdict());
    let reasons: Vec<&str> = verdict.reasons.iter().map(|reason| reason.text.as_str()).collect();
    json!({
        "name": agent.name,
        "clock": {"ahead_ns": agent.clock.ahead_ns, "round_trip_ns": agent.clock.round_trip_ns},
        "verdict": {"colour": verdict.colour.to_string(), "reasons": reasons},
        "machine": machine(outcome),
        "requests": requests(outcome),
        "times_ns": times(&outcome.record),
        "generator": generator(outcome),
    })
}

fn lost(lost: &LostAgent) -> Value {
    json!({
        "name": lost.name, "after_seconds": lost.after_s, "why": lost.why,
        "told_seconds": lost.told_s, "answered": lost.answered, "failed": lost.failed,
    })
}

fn machine(outcome: &Outcome) -> Value {
    let machine = &outcome.machine;
    let versions: Map<String, Value> =
        machine.versions.iter().map(|(name, version)| ((*name).to_owned(), json!(version))).collect();
    json!({
        "cpu": machine.cpu, "cores": machine.cores, "kernel": machine.kernel,
        "memory": machine.memory, "governor": machine.governor, "host": machine.host, "versions": versions,
    })
}

fn generator(outcome: &Outcome) -> Value {
    let generator = &outcome.generator;
    let threads: Vec<Value> = generator
        .threads
        .iter()
        .map(|thread| {
            let Some(thread) = thread else { return Value::Null };
            json!({
                "cpu": thread.cpu, "spun": thread.spun, "waited": thread.waited,
                "involuntary_switches": thread.involuntary_switches,
            })
        })
        .collect();
    json!({
        "threads": threads, "stolen": generator.stolen, "segments_resent": generator.segments_resent,
        "syns_resent": generator.syns_resent, "ceiling_per_second": outcome.ceiling,
        "descriptors_max": generator.descriptors_max, "descriptors_most": generator.descriptors_most,
        "ports": generator.ports, "ports_most": generator.ports_most, "ports_share": outcome.ports_share(),
        "opened_first": {
            "wanted": outcome.record.first_wanted, "opened": outcome.record.first_opened,
            "open_at_the_beginning": outcome.record.first_open,
        },
        "listening": generator.listening.map(|listening| {
            json!({"overflows": listening.overflows, "drops": listening.drops})
        }),
        "little": {
            "under_way": generator.little.under_way,
            "rate_times_time": generator.little.rate_times_time,
            "known_to": generator.little.known_to, "gap": generator.little.gap(),
        },
    })
}

fn server(outcome: &Outcome) -> Value {
    if let Some(why) = &outcome.server_unknown {
        return json!({"unknown": why});
    }
    let Some(server) = &outcome.server else { return Value::Null };
    json!({
        "user_seconds": server.spent.user, "system_seconds": server.spent.system,
        "waited_seconds": server.spent.waited, "us_per_request": server.us_per_request,
        "us_per_handshake": server.us_per_handshake,
    })
}

fn named<const N: usize>(names: [&str; N], counts: &[u64; N]) -> Value {
    let pairs = names.into_iter().zip(counts);
    Value::Object(pairs.map(|(name, count)| (name.to_owned(), json!(count))).collect())
}

pub(crate) fn settings(plan: &Plan) -> Value {
    let load = match plan.load {
        Load::Open { rate, arrivals } => {
            json!({"loop": "open", "rate": rate, "arrivals": arrivals.name()})
        }
        Load::Closed { clients } => json!({"loop": "closed", "clients": clients}),
    };
    let handshakes = match plan.handshakes {
        Handshakes::Keep => json!("keep"),
        Handshakes::Full => json!("full"),
        Handshakes::Resumed(share) => json!({"resumed": share}),
    };
    let close = match plan.close {
        Close::Fin => "fin",
        Close::Reset => "reset",
    };
    json!({
        "session": plan.session.as_ref().map(script),
        "targets": plan.targets.iter().map(target).collect::<Vec<_>>(),
        "load": load, "think": think(plan.think), "delay_s": plan.delay.map(|delay| delay.as_secs_f64()),
        "time_s": plan.time.as_secs_f64(), "warm_up_s": plan.warm_up.as_secs_f64(),
        "agents": plan.agents.as_ref().map(Agents::names),
        "threads": plan.agents.as_ref().and_then(Agents::threads).unwrap_or(plan.threads), "protocol": plan.protocol.alpn(), "streams": plan.streams, "alpn": plan.alpn,
        "handshakes": handshakes,
        "requests_per_connection": plan.requests_per_connection,
        "shares": {
            "persistent": plan.shares.persistent, "pipelined": plan.shares.pipelined,
            "pipeline_depth": plan.shares.pipeline_depth, "tls": plan.shares.tls,
        },
        "connections_max": plan.connections_max, "opened_first": plan.opened_first,
        "tls": plan.is_over_tls().then(|| json!({
            "version": plan.offer.version.map(|version| version.name()),
            "suites": plan.offer.suites, "groups": plan.offer.groups, "verify": plan.verify,
            "server_name": plan.server_name, "client_certificate": plan.certificate.is_some(),
        })),
        "close": close, "sources": plan.sources.count(), "timeout_s": plan.timeout.as_secs_f64(),
        "server_process": plan.server_process, "seed": plan.seed,
    })
}

/// What stands beside the targets, step by step.
fn script(script: &crate::Script) -> Value {
    let step = |step: &crate::Step| json!({"name": step.name, "think": step.think.map(think), "expects": step.expects});
    script.steps.iter().map(step).collect()
}

/// What stands for what nobody is to read in a report.
const HIDDEN: &str = "…";

/// The value of a field, unless it lets its reader in somewhere.
fn shown<'v>(name: &str, value: &'v str) -> &'v str {
    let is_secret =
        ["authorization", "cookie", "proxy-authorization"].iter().any(|one| name.eq_ignore_ascii_case(one));
    if is_secret { HIDDEN } else { value }
}

fn target(target: &crate::Target) -> Value {
    let (body, bytes) = match &target.body {
        Body::None => ("none", 0),
        Body::Bytes(bytes) => ("bytes", bytes.len()),
        Body::Template(text) => ("template", text.len()),
        Body::Filled(bytes) => ("filled", *bytes as usize),
    };
    let headers: Vec<Value> =
        target.headers.iter().map(|(name, value)| json!([name, shown(name, value)])).collect();
    json!({
        "url": target.url.to_string(), "weight": target.weight, "method": target.method,
        "headers": headers, "body": body, "body_bytes": bytes,
    })
}

/// A figure and the range that it lies in.
pub(crate) fn interval(interval: &Interval) -> Value {
    json!({"estimate": interval.estimate, "low": interval.low, "high": interval.high})
}

/// A figure, and the range that it lies in where that is known.
pub(crate) fn estimate(estimate: &Estimate) -> Value {
    let (low, high) = estimate.bounds.unzip();
    json!({"estimate": estimate.value, "low": low, "high": high})
}
