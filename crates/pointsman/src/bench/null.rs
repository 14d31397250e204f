//! `pointsman bench null`: a server that does nothing but answer.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use lexopt::Arg;
use pointsman_bench::{Manner, NullServer, NullTls, Service};

use super::identity::identity;
use super::plan_options::{text, time};
use super::with_options;
use crate::usage::{self, number, one_of};
use crate::{WRONG_USE, say};

const HELP: &str = "\
pointsman bench null [OPTION...]

    --listen ADDRESS     127.0.0.1:8480
    --body-bytes N       of each answer; 0
    --capacity N         at most so many answers a second
    --service KIND       how it takes its time where it has a capacity: `constant` (the default: one after the other,
                         each the same), `exponential`, or `limiter`: none, and 503 for what is above,
                         with the answers of a tenth of a second saved up
    --seed N             what draws of exponential times begin with; 0
    --stall N,TIME       once, behind N requests, it does nothing for so long
    --tls                with a certificate for `localhost` and 127.0.0.1 that nobody knows
    --no-resumption      TLS sessions are not resumed
    --close              each connection ends behind its answer

It runs until it is ended. In HTTP/1.1 /bytes/N is answered with N bytes, up to a GiB, whatever --body-bytes says.
";

/// The largest body: it is kept in memory once.
const BODY_BYTES_MAX: usize = 1 << 30;

const SERVICES: [(&str, Service); 3] =
    [("constant", Service::Constant), ("exponential", Service::Exponential), ("limiter", Service::Limiter)];

fn read(arguments: Vec<OsString>) -> Result<Option<(SocketAddr, Manner)>, lexopt::Error> {
    let mut address = SocketAddr::from(([127, 0, 0, 1], 8480));
    let mut manner = Manner::default();
    let (mut tls, mut resumes, mut service) = (false, true, None);
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("listen") => address = usage::address("--listen", &mut parser)?,
            Arg::Long("body-bytes") => manner.body_bytes = number("--body-bytes", &mut parser)?,
            Arg::Long("service") => service = Some(one_of("--service", &text(&mut parser)?, &SERVICES)?),
            Arg::Long("seed") => manner.seed = number("--seed", &mut parser)?,
            Arg::Long("stall") => manner.stall = Some(stall(&text(&mut parser)?)?),
            Arg::Long("capacity") => manner.capacity = Some(number("--capacity", &mut parser)?),
            Arg::Long("tls") => tls = true,
            Arg::Long("no-resumption") => resumes = false,
            Arg::Long("close") => manner.closes = true,
            Arg::Long("help") | Arg::Short('h') => return Ok(None),
            _ => return Err(argument.unexpected()),
        }
    }
    if manner.body_bytes > BODY_BYTES_MAX {
        return Err(format!("`--body-bytes` is at most {BODY_BYTES_MAX}").into());
    }
    if manner.capacity.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
        return Err("`--capacity` is a number of answers a second".into());
    }
    if service.is_some() && manner.capacity.is_none() {
        return Err("`--service` is for `--capacity`".into());
    }
    manner.service = service.unwrap_or_default();
    if !resumes && !tls {
        return Err("`--no-resumption` is for `--tls`".into());
    }
    if tls {
        manner.tls = Some(NullTls { resumes, ..identity().map_err(|fault| fault.to_string())? });
    }
    Ok(Some((address, manner)))
}

/// `400,1s`
fn stall(word: &str) -> Result<(u64, Duration), String> {
    let read =
        word.split_once(',').and_then(|(after, lasts)| Some((after.trim().parse().ok()?, lasts.trim())));
    let (after, lasts) =
        read.ok_or_else(|| format!("`--stall` takes requests and a time, such as `400,1s`, not `{word}`"))?;
    Ok((after, time(lasts)?))
}

/// Answers until the process is ended.
pub(super) fn null(arguments: Vec<OsString>) -> ExitCode {
    with_options(read(arguments), &[HELP], |(address, manner)| answer(address, &manner))
}

fn answer(address: SocketAddr, manner: &Manner) -> ExitCode {
    match NullServer::start(address, manner) {
        Ok(server) => {
            // Who does not read it knows the address.
            let (Ok(()) | Err(_)) = writeln!(io::stderr(), "listening on {}", server.address());
            server.wait();
            ExitCode::from(1)
        }
        Err(fault) => say(&mut io::stderr(), &format!("error: {fault}\n"), WRONG_USE),
    }
}

#[cfg(test)]
mod tests {
    use super::{Service, read};

    #[test]
    fn options_are_read() {
        let read = |words: &str| read(words.split_ascii_whitespace().map(Into::into).collect());
        let (address, manner) = read("--listen 127.0.0.1:0 --tls --capacity 500 --body-bytes 10 --close")
            .expect("good")
            .expect("no help");
        assert_eq!((address.port(), manner.body_bytes, manner.capacity), (0, 10, Some(500.0)));
        assert!(manner.closes && manner.tls.is_some_and(|tls| tls.resumes));
        let (_, manner) = read("--capacity 5 --service limiter --seed 7").expect("good").expect("no help");
        assert_eq!((manner.service, manner.seed), (Service::Limiter, 7));
        for bad in [
            "--service limiter",
            "--capacity 1 --service x",
            "--capacity 0",
            "--capacity x",
            "--no-resumption",
            "--body-bytes 99999999999",
            "x",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
