//! The options that say what is measured and how: every command of the bench that makes load has them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lexopt::{Parser, ValueExt};
pub(super) use pointsman_bench::read_time as time;
use pointsman_bench::{
    Arrivals, Body, Close, Handshakes, Load, Offer, Plan, Protocol, Sources, Target, Think, Url,
};
use pointsman_tls::{CertificateFiles, OneVersion};

use super::agent_options::AgentOptions;
use super::session_options;
use super::share_options::ShareOptions;
use crate::usage::{number, one_of};

pub(super) const HELP: &str = "
how much
    --rate N                 an open loop: N requests a second (`1.5k`), whatever becomes of them
    --arrivals KIND          `poisson` (the default) or `uniform`
    --clients N              a closed loop: N clients, each of which asks when it has its answer
    --think TIME             so long a client waits behind an answer; `exp:TIME`: so long in the mean
    --time TIME              how long it is measured; 10s
    --warm-up TIME           load before that, which does not count; 2s
    --threads N              of the generator; half the cores where the server is on this machine, else all
    --seed N                 what draws begin with; 1

what
    --weights N,N,...        how often each URL is asked for, in their order
    --method METHOD          GET; POST with a body
    --header 'NAME: VALUE'   may be given several times
    --body TEXT              `{n}`, `{random 1 1000}` and `{letters 2000}` in it, or in a URL, are filled in
    --body-file FILE         a file as it is
    --template FILE          a file with such places
    --timeout TIME           from when a request is begun; 10s

connections
    --http2                  over TLS by ALPN; without it the server must know
    --streams N              HTTP/2: N requests at a time on a connection, if the server takes as many; 1
    --handshake KIND         `keep` (the default: connections are kept), `full`: a new connection and a full handshake
                             each time, `resumed`: the same, and the session goes on, `ratio:0.8`: so many of them
    --requests-per-connection N
    --connections N          of an open loop: at most so many at a time; 10000
    --opened N               kept ones of an open loop: so many are open before it begins; 0
    --close KIND             `fin` (the default) or `reset`
    --source NETWORK         where connections come from (`127.0.0.0/8`), in turns

TLS
    --tls-version VERSION    1.2 or 1.3 alone
    --suites NAME,...        by their names in IANA's registry
    --groups NAME,...        `X25519`, `P-256`, `X25519MLKEM768`
    --alpn NAME,...          what ALPN offers (`h2,http/1.1`), or `none`; what is spoken alone without it
    --ca FILE                authorities of the server's certificate; those of the system without it
    --insecure               the server's certificate is not checked
    --sni NAME               the server's name; the URL's host without it
    --cert FILE --key FILE   our own certificate

    --pid PID                the server's process on this machine: its CPU time a request and a handshake
";

/// How requests of an open loop are spread.
pub(super) const ARRIVALS: [(&str, Arrivals); 2] =
    [("poisson", Arrivals::Poisson), ("uniform", Arrivals::Uniform)];

/// What was read of them.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanOptions {
    urls: Vec<Url>,
    weights: Vec<u32>,
    rate: Option<f64>,
    arrivals: Option<Arrivals>,
    clients: Option<u32>,
    think: Think,
    time: Option<Duration>,
    warm_up: Option<Duration>,
    threads: Option<usize>,
    seed: Option<u64>,
    method: Option<String>,
    headers: Vec<(String, String)>,
    body: Body,
    timeout: Option<Duration>,
    protocol: Protocol,
    streams: Option<u32>,
    alpn: Option<Vec<String>>,
    handshakes: Handshakes,
    requests_per_connection: Option<u32>,
    connections: Option<usize>,
    opened_first: usize,
    close: Close,
    sources: Sources,
    offer: Offer,
    ca: Option<PathBuf>,
    insecure: bool,
    server_name: Option<String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    process: Option<u32>,
    session: Option<PathBuf>,
    shares: ShareOptions,
    agents: AgentOptions,
}

impl PlanOptions {
    pub(super) fn url(&mut self, url: OsString) -> Result<(), lexopt::Error> {
        self.urls.push(Url::parse(&url.string()?).map_err(|fault| fault.to_string())?);
        Ok(())
    }

    /// Reads the value of an option. False: it is none of these.
    pub(super) fn take(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "insecure" => self.insecure = true,
            "http2" => self.protocol = Protocol::Http2,
            _ => {
                return Ok(self.take_load(name, parser)?
                    || self.take_request(name, parser)?
                    || self.take_connection(name, parser)?
                    || self.shares.take(name, parser)?
                    || self.agents.take(name, parser)?);
            }
        }
        Ok(true)
    }

    fn take_load(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "rate" => self.rate = Some(rate(&text(parser)?)?),
            "arrivals" => {
                self.arrivals = Some(one_of("--arrivals", &text(parser)?, &ARRIVALS)?);
            }
            "clients" => self.clients = Some(number("--clients", parser)?),
            "think" => self.think = text(parser)?.parse()?,
            "time" => self.time = Some(time(&text(parser)?)?),
            "warm-up" => self.warm_up = Some(time(&text(parser)?)?),
            "threads" => self.threads = Some(number("--threads", parser)?),
            "seed" => self.seed = Some(number("--seed", parser)?),
            "pid" => self.process = Some(number("--pid", parser)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_request(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "weights" => {
                let words = text(parser)?;
                let weights = words.split(',').map(|word| word.trim().parse::<u32>());
                self.weights = weights
                    .collect::<Result<_, _>>()
                    .map_err(|_| format!("`--weights` takes numbers such as `70,30`, not `{words}`"))?;
            }
            "method" => self.method = Some(method(text(parser)?)?),
            "header" => {
                let line = text(parser)?;
                let (name, value) = line
                    .split_once(':')
                    .ok_or_else(|| format!("`--header` takes `Name: value`, not `{line}`"))?;
                self.headers.push((name.trim().to_owned(), value.trim().to_owned()));
            }
            "body" => self.body = Body::Template(text(parser)?),
            "body-file" => {
                let path = PathBuf::from(parser.value()?);
                self.body = Body::Bytes(std::fs::read(&path).map_err(|error| unreadable(&path, &error))?);
            }
            "template" => {
                let path = PathBuf::from(parser.value()?);
                self.body = Body::Template(
                    std::fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?,
                );
            }
            "timeout" => self.timeout = Some(time(&text(parser)?)?),
            "session" => self.session = Some(parser.value()?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_connection(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "handshake" => self.handshakes = handshakes(&text(parser)?)?,
            "requests-per-connection" => {
                self.requests_per_connection = Some(number("--requests-per-connection", parser)?)
            }
            "connections" => self.connections = Some(number("--connections", parser)?),
            "opened" => self.opened_first = number("--opened", parser)?,
            "close" => {
                self.close =
                    one_of("--close", &text(parser)?, &[("fin", Close::Fin), ("reset", Close::Reset)])?
            }
            "streams" => self.streams = Some(number("--streams", parser)?),
            "source" => self.sources = text(parser)?.parse()?,
            "tls-version" => {
                self.offer.version = Some(one_of(
                    "--tls-version",
                    &text(parser)?,
                    &[("1.2", OneVersion::Tls12), ("1.3", OneVersion::Tls13)],
                )?);
            }
            "alpn" => self.alpn = Some(alpn(&text(parser)?)),
            "suites" => self.offer.suites = names(&text(parser)?),
            "groups" => self.offer.groups = names(&text(parser)?),
            "ca" => self.ca = Some(parser.value()?.into()),
            "sni" => self.server_name = Some(text(parser)?),
            "cert" => self.certificate = Some(parser.value()?.into()),
            "key" => self.key = Some(parser.value()?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The load is the command's own matter where it has none of these.
    fn load(&self) -> Result<Load, String> {
        match (self.rate, self.clients) {
            (Some(rate), None) => Ok(Load::Open { rate, arrivals: self.arrivals.unwrap_or_default() }),
            (None, Some(_)) if self.arrivals.is_some() => {
                Err("`--arrivals` is for an open loop, and `--clients` makes a closed one".to_owned())
            }
            (None, Some(clients)) => Ok(Load::Closed { clients }),
            (None, None) => Err("how much? `--rate N` requests a second, or `--clients N`".to_owned()),
            (Some(_), Some(_)) => {
                Err("`--rate` makes an open loop and `--clients` a closed one: say one of them".to_owned())
            }
        }
    }

    /// So much of what was said.
    fn asked(&self, load: Load) -> Result<Plan, String> {
        if let Some(path) = &self.session {
            return self.sessions(path, load);
        }
        if self.urls.is_empty() {
            return Err("a URL is needed, such as `http://127.0.0.1:8080/`".to_owned());
        }
        if !self.weights.is_empty() && self.weights.len() != self.urls.len() {
            return Err(format!("{} weights for {} URLs", self.weights.len(), self.urls.len()));
        }
        let usual_method = if self.body == Body::None { "GET" } else { "POST" };
        let method = self.method.as_deref().unwrap_or(usual_method);
        let weights = self.weights.iter().copied().chain(std::iter::repeat(1));
        let target = |(url, weight): (&Url, u32)| Target {
            url: url.clone(),
            weight,
            method: method.to_owned(),
            headers: self.headers.clone(),
            body: self.body.clone(),
        };
        let targets = self.shares.targets(self.urls.iter().zip(weights).map(target).collect());
        Ok(Plan::new(targets, load))
    }

    fn sessions(&self, path: &Path, load: Load) -> Result<Plan, String> {
        if self.urls.len() > 1 || !self.weights.is_empty() || self.method.is_some() || self.body != Body::None
        {
            return Err(
                "with `--session` the steps say what is asked; one URL may say which server".to_owned()
            );
        }
        let mut script = session_options::script(path, self.urls.first())?;
        script.steps.iter_mut().for_each(|step| step.target.headers.extend(self.headers.iter().cloned()));
        Ok(Plan::of_sessions(script, load))
    }

    /// What it all says together.
    pub(super) fn plan(self) -> Result<Plan, String> {
        let load = self.load()?;
        self.plan_of(load)
    }

    /// The same of a command that says itself how much is asked.
    pub(super) fn plan_of(self, load: Load) -> Result<Plan, String> {
        if self.connections.is_some() && matches!(load, Load::Closed { .. }) {
            return Err(
                "`--connections` is for an open loop: clients of a closed one have as many as they need"
                    .to_owned(),
            );
        }
        let shares = self.shares.shares()?;
        let plan = self.asked(load)?;
        let certificate = certificate_files(self.certificate.clone(), self.key.clone())?;
        let agents = self.agents.agents(self.threads)?;
        let threads = self.threads.unwrap_or_else(|| usual_threads(&plan.targets));
        Ok(Plan {
            time: self.time.unwrap_or(plan.time),
            warm_up: self.warm_up.unwrap_or(plan.warm_up),
            threads,
            protocol: self.protocol,
            streams: self.streams.unwrap_or(plan.streams),
            alpn: self.alpn,
            handshakes: self.handshakes,
            requests_per_connection: self.requests_per_connection,
            shares,
            connections_max: self.connections.unwrap_or(plan.connections_max),
            opened_first: self.opened_first,
            offer: self.offer,
            ca: self.ca,
            verify: !self.insecure,
            certificate,
            server_name: self.server_name,
            close: self.close,
            sources: self.sources,
            timeout: self.timeout.unwrap_or(plan.timeout),
            think: self.think,
            server_process: self.process,
            seed: self.seed.unwrap_or(plan.seed),
            agents,
            ..plan
        })
    }
}

/// A server on this machine wants cores, too.
fn usual_threads(targets: &[Target]) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let is_here =
        |url: &Url| url.host == "localhost" || url.address().is_ok_and(|address| address.ip().is_loopback());
    if targets.iter().any(|target| is_here(&target.url)) { (cores / 2).max(1) } else { cores }
}

pub(super) fn text(parser: &mut Parser) -> Result<String, lexopt::Error> {
    parser.value()?.string()
}

/// What `--cert` and `--key` name; a key may stand in the certificate's file.
pub(super) fn certificate_files(
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<Option<CertificateFiles>, String> {
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), key) => {
            Ok(Some(CertificateFiles::new(&certificate, key.as_ref().unwrap_or(&certificate))))
        }
        (None, Some(_)) => Err("`--key` is the key of `--cert`".to_owned()),
    }
}

/// `123,456`: the processes of so many servers.
pub(super) fn processes(word: &str, servers: usize) -> Result<Vec<u32>, String> {
    let numbers: Result<Vec<u32>, _> = word.split(',').map(|number| number.trim().parse()).collect();
    numbers.ok().filter(|numbers| numbers.len() == servers).ok_or_else(|| match servers {
        1 => format!("`--pid` takes the server's process, such as `123`, not `{word}`"),
        _ => format!("`--pid` takes the processes of all {servers} servers, such as `123,456`, not `{word}`"),
    })
}

pub(super) fn names(words: &str) -> Vec<String> {
    words.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// `none`: nothing.
fn alpn(words: &str) -> Vec<String> {
    if words == "none" { Vec::new() } else { names(words) }
}

/// `1500`, `1.5k`, `2M`.
pub(super) fn rate(word: &str) -> Result<f64, String> {
    let (digits, factor) = match word.as_bytes().last() {
        Some(b'k') => (&word[..word.len() - 1], 1e3),
        Some(b'M') => (&word[..word.len() - 1], 1e6),
        _ => (word, 1.0),
    };
    let number = digits.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number
        .map(|number| number * factor)
        .ok_or_else(|| format!("a rate is a number such as `1.5k`, not `{word}`"))
}

fn handshakes(word: &str) -> Result<Handshakes, String> {
    if let Some(share) = word.strip_prefix("ratio:") {
        let share = share.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        return share
            .map(Handshakes::Resumed)
            .ok_or_else(|| format!("`ratio:` takes the share that resumes, from 0 to 1, not `{word}`"));
    }
    one_of(
        "--handshake",
        word,
        &[("keep", Handshakes::Keep), ("full", Handshakes::Full), ("resumed", Handshakes::Resumed(1.0))],
    )
}

fn method(word: String) -> Result<String, String> {
    match pointsman_http::is_token(word.as_bytes()) {
        true => Ok(word),
        false => Err(format!("`{word}` is no method")),
    }
}

fn unreadable(path: &std::path::Path, error: &std::io::Error) -> String {
    format!("cannot read `{}`: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use pointsman_bench::Shares;

    use super::*;

    fn plan(words: &str) -> Result<Plan, String> {
        let mut options = PlanOptions::default();
        let mut parser = Parser::from_args(words.split_ascii_whitespace());
        let mut read = || -> Result<(), lexopt::Error> {
            while let Some(argument) = parser.next()? {
                match argument {
                    lexopt::Arg::Long(name) => {
                        let name = name.to_owned();
                        assert!(options.take(&name, &mut parser)?, "{name}");
                    }
                    lexopt::Arg::Value(url) => options.url(url)?,
                    other => return Err(other.unexpected()),
                }
            }
            Ok(())
        };
        read().map_err(|error| error.to_string())?;
        options.plan()
    }

    #[test]
    fn a_plan_is_what_its_options_say() {
        let plan = plan(
            "https://127.0.0.1:8443/a https://127.0.0.1:8443/b --weights 3,1 --rate 2k --arrivals uniform \
             --handshake ratio:0.25 --requests-per-connection 4 --groups P-256 --tls-version 1.3 --close reset \
             --source 127.0.0.0/8 --threads 2 --connections 50 --timeout 3s --header X-A:b --body x{n} --http2 \
             --streams 9 --alpn h2,http/1.1",
        )
        .expect("good");
        assert_eq!(plan.load, Load::Open { rate: 2000.0, arrivals: Arrivals::Uniform });
        assert_eq!(plan.targets.iter().map(|target| target.weight).collect::<Vec<_>>(), [3, 1]);
        assert_eq!((plan.targets[0].method.as_str(), plan.threads), ("POST", 2));
        assert_eq!(plan.handshakes, Handshakes::Resumed(0.25));
        assert_eq!((plan.requests_per_connection, plan.connections_max), (Some(4), 50));
        assert_eq!((plan.close, plan.timeout), (Close::Reset, Duration::from_secs(3)));
        assert_eq!(plan.offer.groups, ["P-256"]);
        assert_eq!((plan.protocol, plan.streams), (Protocol::Http2, 9));
        assert_eq!(plan.alpn, Some(vec!["h2".to_owned(), "http/1.1".to_owned()]));
        assert!(plan.verify && plan.sources.count() > 1000);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for bad in [
            "--rate 1",
            "http://a/ --rate 0",
            "http://a/ --rate x",
            "http://a/ --rate 1 --weights 1,2",
            "http://a/ --rate 1 --weights a",
            "http://a/ --clients 1 --arrivals uniform",
            "http://a/ --rate 1 --time 5x",
            "http://a/ --rate 1 --handshake none",
            "http://a/ --rate 1 --handshake ratio:2",
            "http://a/ --rate 1 --close maybe",
            "http://a/ --rate 1 --key k.pem",
            "http://a/ --rate 1 --method a/b",
            "http://a/ --rate 1 --header x",
            "http://a/ --rate 1 --body-file /nowhere/at/all",
            "http://a/ --rate 1 --persistent 2",
            "http://a/ --rate 1 --tls-port 443",
            "http://a/ --rate 1 --pipeline-depth 4",
            "http://a/ --clients 1 --connections 5",
        ] {
            assert!(plan(bad).is_err(), "{bad}");
        }
        assert_eq!(plan("http://a/ --rate 1 --opened 7").expect("good").opened_first, 7);
        let mixed = plan(
            "http://127.0.0.1:81/a --rate 1 --tls 50% --tls-port 8443 --pipelined 0.2 --pipeline-depth 4",
        )
        .expect("good");
        let urls: Vec<String> = mixed.targets.iter().map(|target| target.url.to_string()).collect();
        assert_eq!(urls, ["http://127.0.0.1:81/a", "https://127.0.0.1:8443/a"]);
        let Shares { tls, pipelined, pipeline_depth, .. } = mixed.shares;
        assert_eq!((tls, pipelined, pipeline_depth), (Some(0.5), Some(0.2), 4));
        let think = plan("http://127.0.0.1/ --clients 3 --think exp:20ms").expect("good").think;
        assert_eq!(think, Think::Exponential(Duration::from_millis(20)));
    }
}
