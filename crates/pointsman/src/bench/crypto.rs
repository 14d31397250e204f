//! `pointsman bench crypto`: what the primitives of TLS cost, by provider.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::{Arg, Parser};
use pointsman_bench::Interrupt;
use pointsman_measure::report::Document;
use pointsman_tls_bench::crypto::{Outcome, Plan, crypto};
use pointsman_tls_bench::{Library, Openssl, Primitive, Provider, Token};

use super::crypto_table::table;
use super::output::{self, Output};
use super::plan_options::{names, text, time};
use super::progress::StepLine;
use super::{refuse_words, with_options};
use crate::usage::{number, one_of};

const HELP: &str = "\
pointsman bench crypto [OPTION...]

What the primitives of TLS cost on this machine: operations a second by the wall clock, and CPU time of each.

    --providers NAME,...     `aws-lc-rs`, `ring`, `openssl`; all that are there without it, and the first is what the
                             others are held against
    --primitives NAME,...    `RSA-2048`, `ECDSA P-256`, `X25519MLKEM768`, `AES-128-GCM` and so on; all without it
    --sizes BYTES,...        of blocks that ciphers encrypt; 16,256,1350,16384
    --depths N,...           operations under way at a time: threads, or processes of openssl; 1
    --rounds N               how often each is measured, in turns with the others; 5
    --round-time TIME        how long; 100ms (openssl takes whole seconds)
    --openssl FILE           which `openssl` is run
    --openssl-option WORD    given to `openssl speed`: `-engine`, `-provider` or `-async_jobs`, and its value
    --pkcs11 FILE            a PKCS#11 module, of which one token is measured as well
    --token LABEL            which; the only one without it
    --pin-file FILE          where its PIN stands, or `--pin PIN`, which others on this machine can read
    --seed N                 what the order of turns is drawn with
";

const EXIT: &str = "
exit status: 0 measured, 2 not measured
Ctrl-C ends it with what was measured by then, and exit status 130 (SIGTERM: 143); a second one at once
";

/// Blocks of a keystroke, a small answer, a packet and a whole record.
const SIZES: [usize; 4] = [16, 256, 1350, 16_384];

/// The command line.
#[derive(Debug)]
struct Options {
    plan: Plan,
    output: Output,
}

/// What was read of it.
#[derive(Debug, Default)]
struct Words {
    providers: Vec<String>,
    primitives: Vec<String>,
    sizes: Vec<String>,
    depths: Vec<String>,
    openssl: Option<PathBuf>,
    openssl_options: Vec<String>,
    pkcs11: Option<PathBuf>,
    token: Option<String>,
    pin: Option<String>,
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let mut words = Words::default();
        let mut output = Output::default();
        let (mut rounds, mut round_time, mut seed) = (5, std::time::Duration::from_millis(100), 1);
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("rounds") => rounds = number("--rounds", &mut parser)?,
                Arg::Long("round-time") => round_time = time(&text(&mut parser)?)?,
                Arg::Long("seed") => seed = number("--seed", &mut parser)?,
                Arg::Long("providers") => words.providers = names(&text(&mut parser)?),
                Arg::Long("primitives") => words.primitives = names(&text(&mut parser)?),
                Arg::Long("sizes") => words.sizes = names(&text(&mut parser)?),
                Arg::Long("depths") => words.depths = names(&text(&mut parser)?),
                Arg::Long("openssl") => words.openssl = Some(parser.value()?.into()),
                Arg::Long("openssl-option") => words.openssl_options.push(text(&mut parser)?),
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Long("pkcs11") => words.pkcs11 = Some(parser.value()?.into()),
                Arg::Long("token") => words.token = Some(text(&mut parser)?),
                Arg::Long("pin") => words.pin = Some(text(&mut parser)?),
                Arg::Long("pin-file") => words.pin = Some(pin(&PathBuf::from(parser.value()?))?),
                Arg::Long(name) => {
                    let name = name.to_owned();
                    if !output.take(&name, &mut parser)? {
                        return Err(lexopt::Error::UnexpectedOption(format!("--{name}")));
                    }
                }
                other => return Err(other.unexpected()),
            }
        }
        let sizes = if words.sizes.is_empty() { SIZES.to_vec() } else { numbers("--sizes", &words.sizes)? };
        let depths = if words.depths.is_empty() { vec![1] } else { numbers("--depths", &words.depths)? };
        let primitives = primitives(&words.primitives, &sizes)?;
        let providers = words.providers()?;
        let plan =
            Plan { primitives, providers, depths, rounds, round_time, seed, interrupt: Interrupt::default() };
        Ok(Some(Options { plan, output }))
    }
}

impl Words {
    fn providers(&self) -> Result<Vec<Provider>, String> {
        let mut all = self.programs()?;
        match &self.pkcs11 {
            Some(module) => {
                let token = Token::open(module, self.token.as_deref(), self.pin.as_deref());
                all.push(Provider::Token(token.map_err(|trouble| trouble.to_string())?));
            }
            None if self.token.is_some() || self.pin.is_some() => {
                return Err("`--token` and `--pin` are of the module that `--pkcs11` names".to_owned());
            }
            None => {}
        }
        Ok(all)
    }

    /// Libraries and programs.
    fn programs(&self) -> Result<Vec<Provider>, String> {
        let program = self.openssl.clone().unwrap_or_else(|| "openssl".into());
        let openssl = || Openssl::find(Path::new(&program), self.openssl_options.clone());
        if self.providers.is_empty() {
            let libraries = [Library::aws_lc_rs(), Library::ring()].map(Provider::Library);
            let mut all = libraries.to_vec();
            match openssl() {
                Ok(openssl) => all.push(Provider::Openssl(openssl)),
                // Only who asks for it misses it.
                Err(trouble) if self.openssl.is_some() => return Err(trouble.to_string()),
                Err(_) => {}
            }
            return Ok(all);
        }
        let one = |name: &String| match name.as_str() {
            "aws-lc-rs" => Ok(Provider::Library(Library::aws_lc_rs())),
            "ring" => Ok(Provider::Library(Library::ring())),
            "openssl" => openssl().map(Provider::Openssl).map_err(|trouble| trouble.to_string()),
            _ => one_of("--providers", name, &[("aws-lc-rs", ()), ("ring", ()), ("openssl", ())])
                .map(|()| unreachable!()),
        };
        self.providers.iter().map(one).collect()
    }
}

/// The first line of a file.
fn pin(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Those that are named, or all.
fn primitives(words: &[String], sizes: &[usize]) -> Result<Vec<Primitive>, String> {
    let all = Primitive::all(sizes);
    if words.is_empty() {
        return Ok(all);
    }
    let mut found = Vec::new();
    for word in words {
        let before = found.len();
        found.extend(all.iter().filter(|primitive| primitive.name().eq_ignore_ascii_case(word)));
        if found.len() == before {
            let mut names: Vec<&str> = all.iter().map(|primitive| primitive.name()).collect();
            names.dedup();
            return Err(format!("no primitive `{word}`; there are {}", names.join(", ")));
        }
    }
    Ok(found)
}

fn numbers(option: &str, words: &[String]) -> Result<Vec<usize>, String> {
    let number = |word: &String| word.parse::<usize>().ok().filter(|number| *number > 0);
    let read: Option<Vec<usize>> = words.iter().map(number).collect();
    read.ok_or_else(|| format!("`{option}` takes numbers such as `1,4,16`, not `{}`", words.join(",")))
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
    let outcome = crypto(&options.plan, &mut |progress| line.tell(progress.share, &progress.what));
    line.end();
    match outcome {
        Ok(outcome) => show(&options, &outcome),
        Err(trouble) => refuse_words(&trouble.to_string(), None),
    }
}

fn show(options: &Options, outcome: &Outcome) -> ExitCode {
    let run = outcome.report(options.output.name("primitives"));
    let runs = vec![output::began(run, outcome.began_unix_s)];
    let document = Document { title: "Primitives of TLS".to_owned(), runs };
    options.output.give(&document, &table(outcome), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Option<Options>, lexopt::Error> {
        Options::read(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn options_are_read() {
        let words = [
            "--providers",
            "ring,aws-lc-rs",
            "--primitives",
            "ecdsa p-256,AES-128-GCM",
            "--sizes",
            "16,1024",
            "--depths",
            "1,4",
            "--rounds",
            "8",
            "--round-time",
            "20ms",
            "--json",
        ];
        let options = read(&words).expect("good").expect("no help");
        assert_ne!(options.output, Output::default());
        let plan = options.plan;
        assert_eq!(plan.providers.iter().map(Provider::name).collect::<Vec<_>>(), ["ring", "aws-lc-rs"]);
        assert_eq!((plan.primitives.len(), plan.depths), (3, vec![1, 4]));
        assert_eq!((plan.rounds, plan.round_time.as_millis()), (8, 20));
        assert!(read(&["--help"]).expect("good").is_none());
    }

    #[test]
    fn what_nobody_knows_is_refused_with_what_there_is() {
        for (words, said) in [
            (["--providers", "nss"], "`aws-lc-rs` or `ring` or `openssl`"),
            (["--primitives", "DES"], "there are RSA-2048, RSA-3072"),
            (["--depths", "1,x"], "takes numbers"),
            (["--sizes", "0"], "takes numbers"),
            (["--openssl", "/nowhere/openssl"], "cannot run `/nowhere/openssl`"),
            (["--what", "1"], "--what"),
            (["--pkcs11", "/dev/null"], "cannot use `/dev/null`"),
            (["--pin", "1"], "`--pkcs11` names"),
            (["--pin-file", "/nowhere"], "cannot read `/nowhere`"),
        ] {
            let error = read(&words).expect_err("wrong").to_string();
            assert!(error.contains(said), "{words:?}: {error}");
        }
    }
}
