//! The command line of `explain`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use lexopt::{Arg, ValueExt};
use pointsman_rules::unmapped;

/// What is to be explained.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) rules: PathBuf,
    pub(super) request: PathBuf,
    pub(super) listener: Option<String>,
    pub(super) src_ip: Option<IpAddr>,
    pub(super) src_port: Option<u16>,
    pub(super) dst_ip: Option<IpAddr>,
    pub(super) dst_port: Option<u16>,
    /// `1.2` or `1.3`.
    pub(super) tls: Option<&'static str>,
    /// Empty: the client named no server.
    pub(super) sni: Option<String>,
    pub(super) trusted_proxies: Vec<IpNet>,
    pub(super) json: bool,
}

impl Options {
    /// Nothing where help is wanted.
    pub(super) fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let mut options = Options::default();
        let mut files = Vec::new();
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("listener") => options.listener = Some(parser.value()?.string()?),
                Arg::Long("srcip") => options.src_ip = Some(parser.value()?.parse()?),
                Arg::Long("srcport") => options.src_port = Some(parser.value()?.parse()?),
                Arg::Long("dstip") => options.dst_ip = Some(parser.value()?.parse()?),
                Arg::Long("dstport") => options.dst_port = Some(parser.value()?.parse()?),
                Arg::Long("tls") => options.tls = Some(parser.value()?.parse_with(tls_version)?),
                Arg::Long("sni") => options.sni = Some(parser.value()?.string()?.to_ascii_lowercase()),
                Arg::Long("trusted-proxy") => {
                    options.trusted_proxies.push(parser.value()?.parse_with(network)?);
                }
                Arg::Long("json") => options.json = true,
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Value(file) => files.push(PathBuf::from(file)),
                _ => return Err(argument.unexpected()),
            }
        }
        let Ok([rules, request]) = <[PathBuf; 2]>::try_from(files) else {
            return Err("`explain` needs two files: pointsman explain RULES REQUEST".into());
        };
        Ok(Some(Options { rules, request, ..options }))
    }

    /// Whether the rules are those of a configuration.
    pub(super) fn has_configuration(&self) -> bool {
        self.rules.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
    }
}

fn tls_version(word: &str) -> Result<&'static str, &'static str> {
    match word {
        "1.2" => Ok("1.2"),
        "1.3" => Ok("1.3"),
        _ => Err("versions of TLS are `1.2` and `1.3`"),
    }
}

/// A network, or a single address.
fn network(text: &str) -> Result<IpNet, &'static str> {
    let address = || text.parse::<IpAddr>().map(|address| address.to_canonical().into());
    let network = text.parse().or_else(|_| address()).ok();
    network.and_then(|network| unmapped(network).ok()).ok_or("networks are written as `10.0.0.0/8`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Option<Options>, lexopt::Error> {
        Options::read(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn every_option_is_read() {
        let words = "a.toml r --listener shop --srcip ::1 --srcport 1 --dstip 10.0.0.1 --dstport 2 --tls 1.2 \
                     --sni Shop.Example --trusted-proxy 10.0.0.0/8 --trusted-proxy ::ffff:192.0.2.1/128 --json";
        let options = read(&words.split(' ').collect::<Vec<_>>()).expect("good").expect("no help");
        assert!(options.has_configuration() && options.json);
        assert_eq!((options.src_port, options.dst_port, options.tls), (Some(1), Some(2), Some("1.2")));
        assert_eq!(
            (options.listener.as_deref(), options.sni.as_deref()),
            (Some("shop"), Some("shop.example"))
        );
        let proxies: Vec<_> = options.trusted_proxies.iter().map(ToString::to_string).collect();
        assert_eq!(proxies, ["10.0.0.0/8", "192.0.2.1/32"]);
    }

    #[test]
    fn wrong_use_is_refused() {
        for words in ["", "a", "a b c", "a b --tls 1.1", "a b --srcip x", "a b --dstport 65536", "a b --what"]
        {
            let words: Vec<_> = words.split(' ').filter(|word| !word.is_empty()).collect();
            assert!(read(&words).is_err(), "{words:?}");
        }
        assert!(read(&["--help"]).expect("good").is_none());
    }
}
