//! `pointsman bench agent`: load for a controller on another machine; and certificates for both.

mod certificates;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::{Arg, ValueExt};
use pointsman_bench::{AGENT_PORT, Agent, AgentSettings, Allowed, Fault};

use super::load::refuse;
use super::plan_options::certificate_files;
use super::with_options;
use crate::say;
use crate::usage::address;

const HELP: &str = "\
pointsman bench agent --cert FILE --key FILE --ca FILE [OPTION...]
pointsman bench agent --init FOLDER HOST...

    Puts load on a web server for a controller, which is another command of the bench with `--agents`: see
    docs/guide/bench.md#several-machines. It serves one controller at a time, and ends its load when that goes away.

    --listen ADDRESS     0.0.0.0:8481
    --cert FILE --key FILE
                         our own certificate, for the name that controllers know this machine by
    --ca FILE            the authority of the certificates that controllers must show
    --allow TARGET       where load may go: a name, an address, a network (`10.0.0.0/8`), `private`: networks that are nobody's
                         on the internet, or `any`; may be given several times; `private` without it

    --init FOLDER HOST...
                         makes an authority (ca.crt, ca.key), a certificate for controllers (controller.crt, controller.key)
                         and one for the agent on each HOST (agent-HOST.crt, agent-HOST.key), and nothing that is there already

It runs until it is ended.
";

/// The command line.
#[derive(Debug)]
enum Options {
    Serve(AgentSettings),
    Init { folder: PathBuf, hosts: Vec<String> },
}

fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
    let mut listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, AGENT_PORT));
    let (mut certificate, mut key, mut ca, mut init) = (None, None, None, None);
    let (mut allowed, mut hosts) = (Vec::new(), Vec::new());
    let mut is_served = false;
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        is_served |= matches!(argument, Arg::Long(name) if name != "init");
        match argument {
            Arg::Long("listen") => listen = address("--listen", &mut parser)?,
            Arg::Long("cert") => certificate = Some(PathBuf::from(parser.value()?)),
            Arg::Long("key") => key = Some(PathBuf::from(parser.value()?)),
            Arg::Long("ca") => ca = Some(PathBuf::from(parser.value()?)),
            Arg::Long("allow") => allowed.push(parser.value()?.string()?.parse::<Allowed>()?),
            Arg::Long("init") => init = Some(PathBuf::from(parser.value()?)),
            Arg::Long("help") | Arg::Short('h') => return Ok(None),
            Arg::Value(host) => hosts.push(host.string()?),
            _ => return Err(argument.unexpected()),
        }
    }
    if let Some(folder) = init {
        if is_served {
            return Err("`--init` makes certificates and serves nobody: it takes hosts alone".into());
        }
        if hosts.is_empty() {
            return Err("`--init FOLDER` takes the names or addresses of the agents' machines".into());
        }
        return Ok(Some(Options::Init { folder, hosts }));
    }
    if let Some(host) = hosts.first() {
        return Err(format!("`{host}`: hosts are for `--init`").into());
    }
    let certificate = certificate_files(certificate, key)?;
    let (Some(certificate), Some(ca)) = (certificate, ca) else {
        return Err(
            "`--cert FILE`, `--key FILE` and `--ca FILE` are needed; `--init FOLDER HOST` makes them".into(),
        );
    };
    if allowed.is_empty() {
        allowed.push(Allowed::Private);
    }
    Ok(Some(Options::Serve(AgentSettings { listen, certificate, ca, allowed })))
}

/// Serves controllers until the process is ended, or makes certificates.
pub(super) fn agent(arguments: Vec<OsString>) -> ExitCode {
    with_options(read(arguments), &[HELP], |options| match options {
        Options::Serve(settings) => match serve(settings) {
            Ok(never) => match never {},
            Err(fault) => refuse(&fault),
        },
        Options::Init { folder, hosts } => match certificates::init(&folder, &hosts) {
            Ok(written) => say(&mut io::stdout(), &written, 0),
            Err(words) => refuse(&Fault::new(words)),
        },
    })
}

fn serve(settings: AgentSettings) -> Result<std::convert::Infallible, Fault> {
    // Who does not read it has the agent all the same.
    let tell = |line: &str| {
        let (Ok(()) | Err(_)) = writeln!(io::stderr(), "{line}");
    };
    let agent = Agent::bind(settings, tell)?;
    let address = agent.address().map_err(|error| Fault::new(error.to_string()))?;
    tell(&format!("listening on {address}"));
    agent.serve()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Option<Options>, lexopt::Error> {
        super::read(words.split_ascii_whitespace().map(Into::into).collect())
    }

    #[test]
    fn options_are_read() {
        let words = "--cert a.crt --key a.key --ca ca.crt --listen [::]:9 --allow 10.0.0.0/8 --allow any";
        let Some(Options::Serve(settings)) = read(words).expect("good") else { panic!("{words}") };
        assert_eq!((settings.listen.port(), settings.allowed.len()), (9, 2));
        let Some(Options::Serve(usual)) = read("--cert a --ca b").expect("good") else { panic!("usual") };
        assert_eq!((usual.listen.port(), usual.allowed), (AGENT_PORT, vec![Allowed::Private]));
        let Some(Options::Init { hosts, .. }) = read("--init x a b").expect("good") else { panic!("init") };
        assert_eq!(hosts, ["a", "b"]);
        assert!(read("--help").expect("good").is_none());
        for bad in [
            "",
            "--cert a",
            "--ca a",
            "--key a --ca b",
            "--cert a --ca b c",
            "--cert a --ca b --allow x:y",
            "--cert a --ca b --listen x",
            "--init x",
            "--init x a --allow any",
            "--what",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
