//! `pointsman bench null`: a server that does nothing but answer.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use lexopt::{Arg, ValueExt};
use pointsman_bench::{Manner, NullServer, NullTls};

use crate::{WRONG_USE, say, wrong_use};

const HELP: &str = "\
pointsman bench null [OPTION...]

    --listen ADDRESS     127.0.0.1:8480
    --body-bytes N       of each answer; 0
    --capacity N         at most so many answers a second, at even distances
    --tls                with a certificate for `localhost` and 127.0.0.1 that nobody knows
    --no-resumption      TLS sessions are not resumed
    --close              each connection ends behind its answer

It runs until it is ended.
";

/// The largest body: it is kept in memory once.
const BODY_BYTES_MAX: usize = 1 << 30;

fn read(arguments: Vec<OsString>) -> Result<Option<(SocketAddr, Manner)>, lexopt::Error> {
    let mut address = SocketAddr::from(([127, 0, 0, 1], 8480));
    let mut manner = Manner::default();
    let (mut tls, mut resumes) = (false, true);
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("listen") => address = parser.value()?.parse()?,
            Arg::Long("body-bytes") => manner.body_bytes = parser.value()?.parse()?,
            Arg::Long("capacity") => manner.capacity = Some(parser.value()?.parse()?),
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
    if !resumes && !tls {
        return Err("`--no-resumption` is for `--tls`".into());
    }
    if tls {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let pair = rcgen::generate_simple_self_signed(names).map_err(|error| error.to_string())?;
        let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        manner.tls = Some(NullTls { certificate, key, resumes });
    }
    Ok(Some((address, manner)))
}

/// Answers until the process is ended.
pub(super) fn null(arguments: Vec<OsString>) -> ExitCode {
    let (address, manner) = match read(arguments) {
        Ok(Some(read)) => read,
        Ok(None) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_use(&error.to_string()),
    };
    match NullServer::start(address, &manner) {
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
    use super::read;

    #[test]
    fn options_are_read() {
        let read = |words: &str| read(words.split_ascii_whitespace().map(Into::into).collect());
        let (address, manner) = read("--listen 127.0.0.1:0 --tls --capacity 500 --body-bytes 10 --close")
            .expect("good")
            .expect("no help");
        assert_eq!((address.port(), manner.body_bytes, manner.capacity), (0, 10, Some(500.0)));
        assert!(manner.closes && manner.tls.is_some_and(|tls| tls.resumes));
        for bad in ["--capacity 0", "--capacity x", "--no-resumption", "--body-bytes 99999999999", "x"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
