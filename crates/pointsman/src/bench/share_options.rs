//! The options that say what share of the requests goes how.

use crate::usage::number;
use lexopt::{Parser, ValueExt};
use pointsman_bench::{Scheme, Shares, Target, Url};

pub(super) const HELP: &str = "
shares, from 0 to 1 or with `%`; drawn for each request, counted, and held against what was asked
    --persistent SHARE       on connections that are kept; each of the others has a new one to itself
    --pipelined SHARE        sent behind another before its answer has come, in pipelines of HTTP/1.1
    --pipeline-depth N       so many requests at once; 8
    --tls SHARE              over TLS, where URLs are of both schemes
    --tls-port N             each `http` URL over TLS as well, at this port
";

/// What was read of them.
#[derive(Clone, Debug, Default)]
pub(super) struct ShareOptions {
    shares: Shares,
    pipeline_depth: Option<u32>,
    tls_port: Option<u16>,
}

impl ShareOptions {
    /// Reads the value of an option. False: it is none of these.
    pub(super) fn take(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "persistent" => self.shares.persistent = Some(share(&parser.value()?.string()?)?),
            "pipelined" => self.shares.pipelined = Some(share(&parser.value()?.string()?)?),
            "pipeline-depth" => self.pipeline_depth = Some(number("--pipeline-depth", parser)?),
            "tls" => self.shares.tls = Some(share(&parser.value()?.string()?)?),
            "tls-port" => self.tls_port = Some(number("--tls-port", parser)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What it all says together.
    pub(super) fn shares(&self) -> Result<Shares, String> {
        if self.pipeline_depth.is_some() && self.shares.pipelined.is_none() {
            return Err(
                "`--pipeline-depth` is for a share of requests in pipelines: `--pipelined SHARE`".to_owned()
            );
        }
        if self.tls_port.is_some() && self.shares.tls.is_none() {
            return Err("`--tls-port` is for a share of requests over TLS: `--tls SHARE`".to_owned());
        }
        Ok(Shares {
            pipeline_depth: self.pipeline_depth.unwrap_or(self.shares.pipeline_depth),
            ..self.shares
        })
    }

    /// These, and those over TLS that belong to them.
    pub(super) fn targets(&self, targets: Vec<Target>) -> Vec<Target> {
        let Some(port) = self.tls_port else { return targets };
        let over_tls = |target: &Target| Target {
            url: Url { scheme: Scheme::Https, port, ..target.url.clone() },
            ..target.clone()
        };
        let twins: Vec<Target> =
            targets.iter().filter(|target| target.url.scheme == Scheme::Http).map(over_tls).collect();
        targets.into_iter().chain(twins).collect()
    }
}

/// `0.7`, `70%`.
pub(super) fn share(word: &str) -> Result<f64, String> {
    let (digits, whole) = match word.strip_suffix('%') {
        Some(digits) => (digits, 100.0),
        None => (word, 1.0),
    };
    let share = digits.trim().parse::<f64>().ok().map(|number| number / whole);
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("a share is from 0 to 1, or from 0% to 100%, not `{word}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_up_to_one() {
        for (word, expected) in [("0.7", 0.7), ("70%", 0.7), ("0", 0.0), ("1", 1.0), ("100%", 1.0)] {
            assert_eq!(share(word), Ok(expected));
        }
        for bad in ["", "1.1", "70", "-0.1", "120%", "NaN", "%", "half"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}
