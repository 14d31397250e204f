//! `pointsman bench handshake`: handshakes one at a time, phase by phase, beside what the primitives predict.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::{Arg, Parser, ValueExt};
use pointsman_bench::{Close, Interrupt, Offer, Url, advice};
use pointsman_measure::report::Document;
use pointsman_tls::OneVersion;
use pointsman_tls_bench::Library;
use pointsman_tls_bench::handshake::{KindWanted, Outcome, Plan, Wanted, handshake};

use super::handshake_table::table;
use super::output::{self, Output};
use super::plan_options::{certificate_files, names, text, time};
use super::progress::StepLine;
use super::{refuse_words, with_options};
use crate::usage::{number, one_of};

const HELP: &str = "\
pointsman bench handshake URL [OPTION...]

Handshakes one at a time, with the moment of every step: what we compute, what the wire takes, what the server takes,
and what the primitives of `bench crypto`, measured on this machine in the same run, say that it should take.

    --count N                handshakes of each series; 1000
    --kind KIND,...          `full` or `resumed`; full
    --tls-version VERSION,...  1.2, 1.3; what both sides want without it
    --suites NAME,...        by their names in IANA's registry
    --groups NAME,...        `X25519`, `P-256`, `P-384`, `X25519MLKEM768`
                             of these four each word makes series of its own, which take turns; each is pinned, and
                             a server that agrees on something else makes the run void

    --server-provider NAME   what the server is taken to compute with: `aws-lc-rs` (the default), `ring`, or `none`
                             for no prediction
    --keylog FILE            secrets of the connections, in NSS's format
    --capture FILE           their bytes as a capture (pcap) that Wireshark reads; IP and TCP around them are made up
    --timeout TIME           for a handshake, and for the answer behind it; 10s
    --close KIND             `fin` (the default) or `reset`
    --ca FILE                authorities of the server's certificate; those of the system without it
    --insecure               the server's certificate is not checked
    --sni NAME               the server's name; the URL's host without it
    --cert FILE --key FILE   our own certificate
    --seed N                 what intervals are drawn with
";

const EXIT: &str = "
exit status: 0 measured, 1 measured and void: not a result, 2 not measured
Ctrl-C ends it with what was measured by then, and exit status 130 (SIGTERM: 143); a second one at once
";

/// The command line.
#[derive(Debug)]
struct Options {
    plan: Plan,
    output: Output,
}

/// What was read of it.
#[derive(Debug, Default)]
struct Words {
    url: Option<Url>,
    count: Option<u32>,
    kinds: Vec<String>,
    versions: Vec<String>,
    suites: Vec<String>,
    groups: Vec<String>,
    provider: Option<String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let mut words = Words::default();
        let mut output = Output::default();
        // The URL is known at the end alone; the rest is the same for any.
        let nowhere = Url::parse("https://localhost/").map_err(|fault| fault.to_string())?;
        let mut plan = Plan::new(nowhere);
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Long(name) => {
                    let name = name.to_owned();
                    if !words.take(&name, &mut parser)?
                        && !take(&mut plan, &name, &mut parser)?
                        && !output.take(&name, &mut parser)?
                    {
                        return Err(lexopt::Error::UnexpectedOption(format!("--{name}")));
                    }
                }
                Arg::Value(url) if words.url.is_none() => {
                    words.url = Some(Url::parse(&url.string()?).map_err(|fault| fault.to_string())?);
                }
                other => return Err(other.unexpected()),
            }
        }
        Ok(Some(Options { plan: words.plan(plan)?, output }))
    }
}

/// Options that are values of the plan.
fn take(plan: &mut Plan, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
    match name {
        "insecure" => plan.verify = false,
        "keylog" => plan.key_log = Some(parser.value()?.into()),
        "capture" => plan.capture = Some(parser.value()?.into()),
        "ca" => plan.ca = Some(parser.value()?.into()),
        "sni" => plan.server_name = Some(text(parser)?),
        "timeout" => plan.timeout = time(&text(parser)?)?,
        "close" => {
            plan.close = one_of("--close", &text(parser)?, &[("fin", Close::Fin), ("reset", Close::Reset)])?
        }
        "seed" => plan.seed = number("--seed", parser)?,
        _ => return Ok(false),
    }
    Ok(true)
}

impl Words {
    fn take(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "count" => self.count = Some(number("--count", parser)?),
            "kind" => self.kinds = names(&text(parser)?),
            "tls-version" => self.versions = names(&text(parser)?),
            "suites" => self.suites = names(&text(parser)?),
            "groups" => self.groups = names(&text(parser)?),
            "server-provider" => self.provider = Some(text(parser)?),
            "cert" => self.certificate = Some(parser.value()?.into()),
            "key" => self.key = Some(parser.value()?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn plan(self, mut plan: Plan) -> Result<Plan, String> {
        plan.series = self.series()?;
        plan.url = self.url.ok_or("a URL is needed, such as `https://127.0.0.1:8443/`")?;
        plan.count = self.count.unwrap_or(plan.count);
        let word = self.provider.unwrap_or_else(|| "aws-lc-rs".to_owned());
        let library = [("aws-lc-rs", 0), ("ring", 1), ("none", 2)];
        plan.predicted_with = match one_of("--server-provider", &word, &library)? {
            0 => Some(Library::aws_lc_rs()),
            1 => Some(Library::ring()),
            _ => None,
        };
        plan.certificate = certificate_files(self.certificate, self.key)?;
        Ok(plan)
    }

    /// Every word of one with every word of the others.
    fn series(&self) -> Result<Vec<Wanted>, String> {
        let kind = |word: &String| {
            one_of("--kind", word, &[("full", KindWanted::Full), ("resumed", KindWanted::Resumed)])
        };
        let mut kinds = self.kinds.iter().map(kind).collect::<Result<Vec<_>, _>>()?;
        if kinds.is_empty() {
            kinds.push(KindWanted::Full);
        }
        let version = |word: &String| {
            one_of("--tls-version", word, &[("1.2", OneVersion::Tls12), ("1.3", OneVersion::Tls13)]).map(Some)
        };
        let mut versions = self.versions.iter().map(version).collect::<Result<Vec<_>, _>>()?;
        if versions.is_empty() {
            versions.push(None);
        }
        let each = |words: &[String]| -> Vec<Vec<String>> {
            if words.is_empty() {
                vec![Vec::new()]
            } else {
                words.iter().map(|word| vec![word.clone()]).collect()
            }
        };
        let mut series = Vec::new();
        for kind in kinds {
            for version in &versions {
                for suites in each(&self.suites) {
                    for groups in each(&self.groups) {
                        let offer = Offer { version: *version, suites: suites.clone(), groups };
                        series.push(Wanted { kind, offer });
                    }
                }
            }
        }
        Ok(series)
    }
}

/// Measures, and says what came of it.
pub(super) fn run(arguments: Vec<OsString>, interrupt: &Interrupt) -> ExitCode {
    with_options(Options::read(arguments), &[HELP, output::HELP, EXIT], |mut options| {
        options.plan.interrupt = interrupt.clone();
        carry_out(options)
    })
}

fn carry_out(options: Options) -> ExitCode {
    let mut line = StepLine::new();
    let outcome = handshake(&options.plan, &mut |progress| line.tell(progress.share, &progress.what));
    line.end();
    match outcome {
        Ok(outcome) => show(&options, &outcome),
        Err(trouble) => {
            let words = trouble.to_string();
            refuse_words(&words, advice(&words))
        }
    }
}

fn show(options: &Options, outcome: &Outcome) -> ExitCode {
    let url = outcome.plan.url.to_string();
    let run = outcome.report(options.output.name(&url));
    let runs = vec![output::began(run, outcome.began_unix_s)];
    let document = Document { title: format!("Handshakes with {url}"), runs };
    options.output.give(&document, &table(outcome), u8::from(!outcome.voids.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Option<Options>, lexopt::Error> {
        Options::read(words.split_ascii_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn each_word_makes_series_of_its_own() {
        let words = "https://127.0.0.1:1/ --count 7 --kind full,resumed --tls-version 1.2,1.3 --groups X25519,P-256 \
                     --server-provider none --keylog k --capture c --insecure --close reset --timeout 2s";
        let plan = read(words).expect("good").expect("no help").plan;
        let series: Vec<String> = plan.series.iter().map(Wanted::name).collect();
        assert_eq!(series.len(), 8);
        assert_eq!([&*series[0], &*series[7]], ["full, TLS 1.2, X25519", "resumed, TLS 1.3, P-256"]);
        assert_eq!((plan.count, plan.verify, plan.close), (7, false, Close::Reset));
        assert!(plan.predicted_with.is_none() && plan.key_log.is_some() && plan.capture.is_some());
        let plan = read("https://127.0.0.1:1/").expect("good").expect("no help").plan;
        assert_eq!((plan.series.len(), plan.count), (1, 1000));
        assert!(read("--help").expect("good").is_none());
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for bad in [
            "",
            "https://a/ https://b/",
            "https://a/ --kind new",
            "https://a/ --tls-version 1.1",
            "https://a/ --server-provider nss",
            "https://a/ --key k",
            "https://a/ --count many",
            "https://a/ --what",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
