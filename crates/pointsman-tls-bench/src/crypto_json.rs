//! What came of method 1 as JSON.

use hdrhistogram::Histogram;
use pointsman_measure::Interval;
use serde_json::{Value, json};

use crate::crypto::{Figures, Outcome};
use crate::engaged::{Place, instructions, processor_flags};
use crate::operation::Primitive;

impl Outcome {
    /// All of it. Rates are by the wall clock; `speed_up` and `cpu_ratio` are beside the first provider.
    pub fn json(&self) -> Value {
        let flags = processor_flags();
        let name = |primitive: Primitive| match primitive {
            Primitive::Cipher(cipher, bytes) => json!({"primitive": cipher.name(), "bytes": bytes}),
            other => json!({"primitive": other.name()}),
        };
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let mut value = figures(&row.figures);
                value["operation"] = json!(row.operation.verb());
                value["primitive"] = json!(row.operation.primitive().name());
                value["bytes"] = json!(Some(row.operation.bytes()).filter(|bytes| *bytes > 0));
                value["provider"] = json!(self.plan.providers[row.provider].name());
                value["depth"] = json!(row.depth);
                value["instructions"] = json!(instructions(row.operation.primitive(), &flags));
                value
            })
            .collect();
        let unable: Vec<Value> = self
            .unable
            .iter()
            .map(|unable| {
                let mut value = name(unable.primitive);
                value["provider"] = json!(self.plan.providers[unable.provider].name());
                value["why"] = json!(unable.why.to_string());
                value
            })
            .collect();
        let providers: Vec<Value> = self
            .plan
            .providers
            .iter()
            .map(|provider| json!({"name": provider.name(), "version": provider.version()}))
            .collect();
        json!({
            "version": 1,
            "kind": "crypto",
            "began_unix_s": self.began_unix_s,
            "settings": {
                "primitives": self.plan.primitives.iter().copied().map(name).collect::<Vec<_>>(),
                "providers": providers,
                "depths": self.plan.depths,
                "rounds": self.plan.rounds,
                "round_ms": self.plan.round_time.as_millis() as u64,
                "seed": self.plan.seed,
            },
            "processor_flags": flags,
            "cores": self.cores, "stolen_share": self.stolen,
            "rows": rows,
            "unable": unable,
        })
    }
}

fn figures(figures: &Figures) -> Value {
    json!({
        "operations": figures.operations,
        "per_second": interval(&figures.rate),
        "cpu_us": interval(&figures.cpu_us),
        "asking_threads_cpu_us": figures.asking_cpu_us,
        "waited_share": figures.waited_share, "switches_per_second": figures.switches_per_s,
        "latency_ns": figures.latency.as_ref().map(latency),
        "speed_up": figures.speed_up.as_ref().map(interval),
        "cpu_ratio": figures.cpu_ratio.as_ref().map(interval),
        "engaged": {
            "place": match figures.engaged.place {
                Place::Cores => "cores",
                Place::Partly => "partly",
                Place::Elsewhere => "elsewhere",
            },
            "cpu_share": figures.engaged.cpu_share,
            "claims_hardware": figures.engaged.claims_hardware,
            "sentence": figures.engaged.sentence(),
        },
    })
}

fn latency(times: &Histogram<u64>) -> Value {
    let at = |quantile| times.value_at_quantile(quantile);
    json!({"mean": times.mean(), "p50": at(0.5), "p99": at(0.99), "max": times.max()})
}

/// A figure and the range that it lies in.
pub(crate) fn interval(interval: &Interval) -> Value {
    json!({"value": interval.estimate, "low": interval.low, "high": interval.high})
}
