//! The command line of `explain`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::IpNet;
use lexopt::{Arg, Parser, ValueExt};
use pointsman_rules::{ProxyValue, unmapped};
use pointsman_view::ProxyValues;

use super::handshake::{self, Handshake};
use crate::check::input;

/// What is to be explained.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) rules: PathBuf,
    /// Absent where a connection is to be explained whose requests nobody reads.
    pub(super) request: Option<PathBuf>,
    pub(super) listener: Option<String>,
    pub(super) src_ip: Option<IpAddr>,
    /// Whether the client comes to a Unix socket, and has no address.
    pub(super) comes_by_unix: bool,
    pub(super) src_port: Option<u16>,
    /// The client that a PROXY header names.
    pub(super) proxied: Option<IpAddr>,
    pub(super) proxy_values: ProxyValues,
    pub(super) dst_ip: Option<IpAddr>,
    pub(super) dst_port: Option<u16>,
    pub(super) handshake: Handshake,
    pub(super) trusted_proxies: Vec<IpNet>,
    /// Whether peers of Unix sockets are believed.
    pub(super) trusts_unix: bool,
    /// The label of a rule that the request misses.
    pub(super) miss: Option<String>,
    pub(super) json: bool,
}

impl Options {
    /// Nothing where help is wanted.
    pub(super) fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let mut options = Options::default();
        let mut files = Vec::new();
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("listener") => options.listener = Some(parser.value()?.string()?),
                Arg::Long("srcip" | "src") => match value(&mut parser, "--srcip", PEER)? {
                    OrUnix::Of(address) => options.src_ip = Some(address),
                    OrUnix::Unix => options.comes_by_unix = true,
                },
                Arg::Long("srcport") => options.src_port = Some(value(&mut parser, "--srcport", PORT)?),
                Arg::Long("proxied") => options.proxied = Some(value(&mut parser, "--proxied", ADDRESS)?),
                Arg::Long("proxy-value") => {
                    let word = parser.value()?.string()?;
                    let parts =
                        word.split_once('=').and_then(|(name, text)| Some((ProxyValue::named(name)?, text)));
                    if !parts.is_some_and(|(value, text)| options.proxy_values.set(value, text.as_bytes())) {
                        let names = ProxyValue::ALL.map(|(_, name)| name).join("`, `");
                        return Err(format!(
                            "`--proxy-value` takes FIELD=TEXT, where FIELD is one of `{names}`"
                        )
                        .into());
                    }
                }
                Arg::Long("dstip") => options.dst_ip = Some(value(&mut parser, "--dstip", ADDRESS)?),
                Arg::Long("dstport") => options.dst_port = Some(value(&mut parser, "--dstport", PORT)?),
                Arg::Long(name) if handshake::is_option(name) => {
                    let name = name.to_owned();
                    options.handshake.read(&name, &mut parser)?;
                }
                Arg::Long("trusted-proxy") => {
                    match value::<OrUnix<Network>>(&mut parser, "--trusted-proxy", PROXY)? {
                        OrUnix::Of(network) => options.trusted_proxies.push(network.0),
                        OrUnix::Unix => options.trusts_unix = true,
                    }
                }
                Arg::Long("miss") => options.miss = Some(parser.value()?.string()?),
                Arg::Long("json") => options.json = true,
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Value(file) => files.push(PathBuf::from(file)),
                _ => return Err(argument.unexpected()),
            }
        }
        let mut files = files.into_iter();
        options.rules = files.next().ok_or(TWO_FILES)?;
        options.request = files.next();
        if files.next().is_some() {
            return Err(TWO_FILES.into());
        }
        options.check_files()?;
        Ok(Some(options))
    }

    /// Without a request a connection is explained, which needs a listener.
    fn check_files(&self) -> Result<(), lexopt::Error> {
        if let (true, Some(end)) = (self.comes_by_unix, self.first_end()) {
            return Err(format!("`{end}` says what a client of a Unix socket does not have").into());
        }
        let Some(request) = &self.request else {
            if !self.has_configuration() {
                return Err(TWO_FILES.into());
            }
            if self.miss.is_some() {
                return Err("`--miss` is for a request, and a connection is explained without one".into());
            }
            return self.handshake.check_hello();
        };
        if input::is_configuration(request) {
            let name = request.display();
            let message =
                format!("`{name}` is a configuration, and no request: pointsman explain RULES REQUEST");
            return Err(message.into());
        }
        self.handshake.check_agreed()
    }

    /// The first option that says an end of a connection with addresses.
    pub(super) fn first_end(&self) -> Option<&'static str> {
        let ends = [
            ("--srcip", self.src_ip.is_some()),
            ("--srcport", self.src_port.is_some()),
            ("--dstip", self.dst_ip.is_some()),
            ("--dstport", self.dst_port.is_some()),
        ];
        ends.into_iter().find_map(|(option, is_said)| is_said.then_some(option))
    }

    /// Whether the rules are those of a configuration.
    pub(super) fn has_configuration(&self) -> bool {
        input::is_configuration(&self.rules)
    }
}

const ADDRESS: &str = "an address such as `10.0.0.1`";
const PEER: &str = "an address such as `10.0.0.1`, or `unix:`";
const PROXY: &str = "a network such as `10.0.0.0/8`, or `unix:`";
const PORT: &str = "a port from 0 to 65535";
const TWO_FILES: &str = "`explain` needs two files: pointsman explain RULES REQUEST";

/// The value of an option; where it is wrong, the message names both.
pub(super) fn value<T: FromStr>(
    parser: &mut Parser,
    option: &str,
    expected: &str,
) -> Result<T, lexopt::Error> {
    let text = parser.value()?.string()?;
    text.parse().map_err(|_| format!("`{option}` takes {expected}, not `{text}`").into())
}

/// What connections have, or a Unix socket, as `trusted_proxies` writes it.
enum OrUnix<T> {
    Of(T),
    Unix,
}

impl<T: FromStr> FromStr for OrUnix<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        match text {
            "unix:" => Ok(OrUnix::Unix),
            text => text.parse().map(OrUnix::Of),
        }
    }
}

/// A network, or a single address.
struct Network(IpNet);

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let address = || text.parse::<IpAddr>().map(|address| address.to_canonical().into());
        let network = text.parse().or_else(|_| address()).map_err(|_| ())?;
        unmapped(network).map(Network).map_err(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Option<Options>, lexopt::Error> {
        Options::read(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn every_option_is_read() {
        let words = "a.toml r --listener shop --srcip ::1 --srcport 1 --proxied 10.0.0.9 --dstip 10.0.0.1 --dstport 2 \
                     --tls 1.2 --sni Shop.Example --trusted-proxy 10.0.0.0/8 --trusted-proxy ::ffff:192.0.2.1/128 --miss R1 --json";
        let options = read(&words.split(' ').collect::<Vec<_>>()).expect("good").expect("no help");
        assert!(options.has_configuration() && options.json);
        assert_eq!((options.src_port, options.dst_port), (Some(1), Some(2)));
        assert_eq!(options.listener.as_deref(), Some("shop"));
        assert_eq!(options.miss.as_deref(), Some("R1"));
        assert_eq!(options.proxied.map(|client| client.to_string()).as_deref(), Some("10.0.0.9"));
        let proxies: Vec<_> = options.trusted_proxies.iter().map(ToString::to_string).collect();
        assert_eq!(proxies, ["10.0.0.0/8", "192.0.2.1/32"]);
    }

    #[test]
    fn wrong_use_is_refused() {
        for words in [
            "",
            "a",
            "a --alpn h2",
            "a b c",
            "a.toml b c",
            "a b --tls 1.1",
            "a b --alpn h2 --alpn http/1.1",
            "a.toml --tls 1.4",
            "a.toml --miss R1",
            "a.toml --sni 10.0.0.1",
            "a b --sni 10.0.0.1",
            "a b --sni a-",
            "a b --sni a..b",
            "a b --srcip x",
            "a b --srcip unix:/run/a.sock",
            "a b --srcip unix: --srcport 1",
            "a b --dstip 10.0.0.1 --srcip unix:",
            "a b --dstport 65536",
            "a b --what",
        ] {
            let words: Vec<_> = words.split(' ').filter(|word| !word.is_empty()).collect();
            assert!(read(&words).is_err(), "{words:?}");
        }
        assert!(read(&["--help"]).expect("good").is_none());
    }

    #[test]
    fn a_client_may_come_to_a_unix_socket() {
        let words = ["a", "b", "--srcip", "unix:", "--trusted-proxy", "unix:"];
        let options = read(&words).expect("good").expect("no help");
        assert!(options.comes_by_unix && options.trusts_unix && options.src_ip.is_none());
        let wrong = read(&["a", "b", "--srcip", "unix:", "--dstport", "80"]).expect_err("it is wrong");
        assert_eq!(wrong.to_string(), "`--dstport` says what a client of a Unix socket does not have");
    }

    #[test]
    fn a_connection_needs_no_request() {
        let words = [
            "a.toml",
            "--src",
            "10.0.0.1",
            "--sni",
            "A.example.",
            "--alpn",
            "h2",
            "--alpn",
            "x",
            "--tls",
            "1.0",
        ];
        let options = read(&words).expect("good").expect("no help");
        assert_eq!(options.request, None);
        let hello = options.handshake.hello();
        assert_eq!(hello.alpn, [b"h2".to_vec(), b"x".to_vec()]);
        assert_eq!((hello.sni.as_deref(), hello.version), (Some("a.example"), Some("1.0")));
        assert_eq!(options.src_ip.map(|ip| ip.to_string()).as_deref(), Some("10.0.0.1"));
        assert!(read(&["a.toml", "--sni", ""]).is_ok(), "a hello without a name");
        assert!(read(&["a.toml", "--alpn", ""]).is_err(), "no hello has such a name");
        let offering = |count: usize| read(&[&["a.toml"][..], &["--alpn", "h2"].repeat(count)].concat());
        assert!(offering(32).is_ok() && offering(33).is_err(), "a switch reads no more of them");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, expected) in [
            (
                ["a", "b", "--srcip", "banana"],
                "`--srcip` takes an address such as `10.0.0.1`, or `unix:`, not `banana`",
            ),
            (["a", "b", "--dstport", "65536"], "`--dstport` takes a port from 0 to 65535, not `65536`"),
            (["a", "b", "--tls", "1.1"], "`--tls` takes `1.2` or `1.3`, not `1.1`"),
        ] {
            assert_eq!(read(&words).expect_err("it is wrong").to_string(), expected);
        }
        let swapped = read(&["r.txt", "a.toml"]).expect_err("it is wrong").to_string();
        assert_eq!(swapped, "`a.toml` is a configuration, and no request: pointsman explain RULES REQUEST");
    }
}
