//! `pointsman bench load`: one run of a stated load.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use lexopt::Arg;
use pointsman_bench::{Fault, Interrupt, NullTls, Outcome, Plan};
use pointsman_measure::report::Document;

use super::identity::identity_for;
use super::output::{self, Output};
use super::plan_options::{self, PlanOptions};
use super::progress::ProgressLine;
use super::summary::summary;
use super::{agent_options, session_options, share_options};
use super::{refuse_words, with_options};

const HELP: &str = "\
pointsman bench load URL... (--rate N | --clients N) [OPTION...]

    --ceiling                what the generator reaches before null servers is measured as well (some 3 s)
";

const EXIT: &str = "
exit status: 0 measured; 1 measured, and not a result: void, or the generator was not in control (red); 2 not measured
Ctrl-C ends it with what was measured by then, and exit status 130 (SIGTERM: 143); a second one at once
";

/// The command line.
#[derive(Debug)]
struct Options {
    plan: Plan,
    ceiling: bool,
    output: Output,
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let mut plan = PlanOptions::default();
        let (mut ceiling, mut output) = (false, Output::default());
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("ceiling") => ceiling = true,
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Long(name) => {
                    let name = name.to_owned();
                    if !plan.take(&name, &mut parser)? && !output.take(&name, &mut parser)? {
                        return Err(lexopt::Error::UnexpectedOption(format!("--{name}")));
                    }
                }
                Arg::Value(url) => plan.url(url)?,
                Arg::Short(_) => return Err(argument.unexpected()),
            }
        }
        Ok(Some(Options { plan: plan.plan()?, ceiling, output }))
    }
}

/// Carries a plan out, and says what came of it.
pub(super) fn load(arguments: Vec<OsString>, interrupt: &Interrupt) -> ExitCode {
    let help = [
        HELP,
        plan_options::HELP,
        agent_options::HELP,
        share_options::HELP,
        session_options::HELP,
        output::HELP,
        EXIT,
    ];
    with_options(Options::read(arguments), &help, |mut options| {
        options.plan.interrupt = interrupt.clone();
        carry_out(options)
    })
}

fn carry_out(options: Options) -> ExitCode {
    let mut line = ProgressLine::new();
    let outcome = pointsman_bench::run(&options.plan, &mut |progress| line.tell(progress));
    line.end();
    match outcome {
        Ok(mut outcome) => {
            if options.ceiling && !outcome.was_interrupted {
                with_ceiling(&mut outcome, identity_for(&options.plan.offer), &mut io::stderr());
            }
            show(&options, &outcome)
        }
        Err(fault) => refuse(&fault),
    }
}

/// Measures what the generator reaches before null servers. The run counts without it: why there is none is said.
fn with_ceiling(outcome: &mut Outcome, identity: Result<NullTls, Fault>, errors: &mut impl io::Write) {
    match identity.and_then(|identity| pointsman_bench::ceiling_of(outcome, &identity)) {
        Ok(ceiling) => ceiling.hold_against(outcome),
        // Where standard error is gone, nobody can be told.
        Err(fault) => {
            let (Ok(()) | Err(_)) = writeln!(errors, "no ceiling: {fault}");
            outcome.was_interrupted = outcome.plan.interrupt.has_come();
        }
    }
}

fn show(options: &Options, outcome: &Outcome) -> ExitCode {
    let url = outcome.plan.targets[0].url.to_string();
    let run = outcome.report(options.output.name(&url));
    let runs = vec![output::began(run, outcome.began_unix_s)];
    let document = Document { title: format!("Load on {url}"), runs };
    options.output.give(&document, &summary(outcome), u8::from(!outcome.is_result()))
}

/// Says why there is no run.
pub(super) fn refuse(fault: &Fault) -> ExitCode {
    refuse_words(&fault.to_string(), fault.advice())
}

#[cfg(test)]
mod tests {
    use pointsman_bench::ErrorKind;
    use pointsman_measure::verdict::Colour;

    use super::*;

    fn read(words: &str) -> Result<Option<Options>, lexopt::Error> {
        Options::read(words.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect())
    }

    #[test]
    fn options_are_read() {
        let words = "http://127.0.0.1:81/ --rate 1.5k --json --save a.json --time 500ms --warm-up 1m";
        let options = read(words).expect("good").expect("no help");
        assert_ne!(options.output, Output::default());
        assert_eq!((options.plan.time.as_millis(), options.plan.warm_up.as_secs()), (500, 60));
        assert!(read("--help").expect("good").is_none());
        for bad in [
            "",
            "http://a/",
            "http://a/ --rate 1 --clients 1",
            "http://a/ --rate 1 --what",
            "http://a/ --rate 1 -x",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_run_is_shown_without_its_ceiling_and_why() {
        use pointsman_bench::{Manner, NullServer};
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let server = NullServer::start(any, &Manner::default()).expect("loopback");
        let words = format!("http://{}/ --clients 1 --time 100ms --warm-up 0 --ceiling", server.address());
        let options = read(&words).expect("good").expect("no help");
        let mut outcome = pointsman_bench::run(&options.plan, &mut |_| {}).expect("it answers");
        let mut said = Vec::new();
        with_ceiling(&mut outcome, Err(Fault::new("no certificate")), &mut said);
        assert_eq!(String::from_utf8_lossy(&said), "no ceiling: no certificate\n");
        assert!(outcome.ceiling.is_none() && outcome.record.answered > 0 && !outcome.was_interrupted);
    }

    #[test]
    fn a_run_whose_ceiling_was_interrupted_says_so_first() {
        use pointsman_bench::{Manner, NullServer};
        use pointsman_measure::verdict::Measure;
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, Ordering};
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let server = NullServer::start(any, &Manner::default()).expect("loopback");
        let words = format!("http://{}/ --clients 1 --time 100ms --warm-up 0 --ceiling", server.address());
        let mut options = read(&words).expect("good").expect("no help");
        let flag = Arc::new(AtomicBool::new(false));
        options.plan.interrupt = Interrupt::by(flag.clone());
        let mut outcome = pointsman_bench::run(&options.plan, &mut |_| {}).expect("it answers");
        flag.store(true, Ordering::Relaxed);
        with_ceiling(&mut outcome, identity_for(&options.plan.offer), &mut io::sink());
        assert_eq!(outcome.json()["interrupted"], true);
        // Others that are as bad come behind it.
        outcome.record.errors = [outcome.record.due; ErrorKind::ALL.len()];
        let verdict = outcome.verdict();
        let amber =
            verdict.reasons.iter().find(|reason| reason.colour == Colour::Amber).expect("one at least");
        assert_eq!(amber.measure, Measure::Interrupted, "{verdict:?}");
        assert!(amber.text.starts_with("all of its time was measured"), "{verdict:?}");
    }
}
