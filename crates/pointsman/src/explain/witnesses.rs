//! Every witness that is shown can be repeated: `explain`, told what stands beside it, decides as was said.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, iter};

use pointsman_analysis::{Effort, RuleSide, Setting, Spoilt, Witness, differences, findings};
use pointsman_config::Plan;
use pointsman_rules::{Colour, Outcome, Program, Targets, compile, mutants, spelling};

use self::sets::Set;
use super::outcome::End;
use super::{Options, reported};
use crate::check::setting;

#[path = "../../../pointsman-analysis/tests/sets/mod.rs"]
mod sets;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const STEPS: u64 = 20_000_000;
/// Witnesses of one rule set, evenly spread: each is explained with the rules read anew.
const WITNESSES_MAX: usize = 8;
/// Of a body so long not all is written.
const REST_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A larger set takes too long to be read so often.
const RULES_MAX: usize = 60;

/// A rule set, as `explain` is to be told of it.
struct Stand<'a> {
    name: &'a str,
    folder: &'a Path,
    /// The rules or the configuration.
    file: PathBuf,
    program: Arc<Program>,
    setting: Setting,
}

impl Stand<'_> {
    /// What `explain` says of a witness is what the engine was seen to decide.
    fn check(&self, witness: &Witness) {
        let request = self.folder.join("request");
        fs::write(&request, whole(witness)).expect("a writable folder");
        let words = witness.explain_options(&self.setting).words;
        let files = [self.file.clone().into_os_string(), request.into_os_string()];
        let arguments: Vec<OsString> = files.into_iter().chain(words.iter().map(OsString::from)).collect();
        let options = Options::read(arguments).expect("options").expect("no help");
        let at = format!("{} with {words:?}\n{witness}", self.name);
        let report = reported(&options, Colour::Never).unwrap_or_else(|error| panic!("{at}: {error}"));
        let program = &self.program;
        let decided = witness.decided(program, &self.setting, |decision| {
            let action = match decision.outcome {
                Outcome::Terminal(terminal) => spelling::terminal(program, terminal),
                Outcome::Refused(_) => "refused".to_owned(),
                Outcome::RouteUnknown { .. } => "on_unknown".to_owned(),
                Outcome::DefaultPool | Outcome::Waits => "default".to_owned(),
            };
            (decision.by.label().map(str::to_owned), action, decision.effects.len())
        });
        let (rule, mut action, mut effects) = decided.unwrap_or_else(|| panic!("{at}: no request"));
        if let Some(Spoilt::Refused(_)) = witness.spoilt(program, &self.setting) {
            (action, effects) = ("refused".to_owned(), 0);
        }
        let verdict = &report.verdict;
        assert_eq!((&verdict.rule, verdict.effects.len()), (&rule, effects), "{at}");
        match &verdict.end {
            End::Refused { .. } => assert_eq!(action, "refused", "{at}"),
            End::Decided { action: explained, .. } => {
                let is_same = match action.as_str() {
                    "default" => rule.is_none(),
                    "on_unknown" => explained.text.starts_with("on_unknown"),
                    action => explained.text == action,
                };
                assert!(is_same, "{at}: {explained:?} and not {action}");
            }
        }
    }

    /// Those of the findings, and of what small mistakes change; how many there were.
    fn check_all(&self, source: &str) -> usize {
        let effort = || Effort::new(STEPS);
        let found = findings(&self.program, &self.setting, effort()).into_iter();
        let made = mutants(source, WITNESSES_MAX);
        let wrong = made.mutants.iter().filter_map(|mutant| program(&made.text(mutant)));
        let changed = wrong.flat_map(|wrong| {
            let [then, now] = [&self.program, &wrong].map(|program| RuleSide { program, default_pool: None });
            let found = differences(then, now, &self.setting, effort());
            found.groups.into_iter().map(|group| group.witness).collect::<Vec<_>>()
        });
        let all = found.filter_map(|finding| finding.witness).chain(changed);
        let is_short = |witness: &Witness| witness.rest().is_none_or(|rest| rest.bytes < REST_BYTES_MAX);
        let all: Vec<_> = all.filter(is_short).collect();
        let step = all.len().div_ceil(WITNESSES_MAX).max(1);
        all.iter().step_by(step).map(|witness| self.check(witness)).count()
    }
}

/// A request with what follows in its body.
fn whole(witness: &Witness) -> Vec<u8> {
    let mut request = witness.request();
    if let Some(rest) = witness.rest() {
        let is_chunked = request.to_ascii_lowercase().windows(CHUNKED.len()).any(|line| line == CHUNKED);
        request.extend(iter::repeat_n(rest.byte, usize::try_from(rest.bytes).expect("a body")));
        request.extend_from_slice(if is_chunked { b"\r\n0\r\n\r\n" } else { b"" });
    }
    request
}

const CHUNKED: &[u8] = b"transfer-encoding: chunked";

fn program(source: &str) -> Option<Arc<Program>> {
    compile(source, &Targets::Any).ok().map(|compiled| compiled.program.into())
}

/// Rules by themselves: those of the papers and of the examples, sets as people write them, and pairs of conditions.
fn sources() -> Vec<(String, String)> {
    let folders =
        ["testdata/rules/papers", "examples/grpc", "examples/models", "examples/orders", "examples/shop"];
    let in_folder = |folder: &&str| fs::read_dir(Path::new(ROOT).join(folder)).expect("a folder").flatten();
    let files = folders.iter().flat_map(in_folder).map(|file| file.path());
    let rules = files.filter(|path| path.to_string_lossy().ends_with(".rules"));
    let written =
        rules.map(|path| (path.display().to_string(), fs::read_to_string(&path).expect("a rule set")));
    let read = |name: &str| fs::read_to_string(Path::new(ROOT).join("testdata/analysis").join(name));
    let pairs = ["pairs.txt", "everyday.txt"].map(|name| read(name).expect("pairs of conditions")).concat();
    let conditions: Vec<_> = pairs.lines().filter(|line| !line.starts_with(['#', '='])).collect();
    let of_pairs = conditions.iter().filter_map(|line| {
        let (one, other) = line.split_once(" ~ ")?;
        let rules = format!(
            "A: if ({one}) {{ routeTo(a); }}\nB: if ({other}) {{ routeTo(b); }}\nelse: routeTo(c);\n"
        );
        Some(((*line).to_owned(), rules))
    });
    let made = sets::all().into_iter().map(|Set { name, source, .. }| (name.to_owned(), source));
    written.chain(made).chain(of_pairs).chain(iter::once(("of TLS".to_owned(), OF_TLS.to_owned()))).collect()
}

/// Whatever a rule can ask of a handshake.
const OF_TLS: &str = r#"
namespace p = "urn:p";
R1: if (tls.version == "1.2" && path == "/a") { routeTo(a); }
R2: if (tls.resumed && path == "/b") { tag(resumed); }
R3: if (tls.client.subject == "CN=Ann O'Neil,O=Ü" && path under "/c") { routeTo(b); }
R4: if (count(tls.client.san) > 1 && tls.client.san endsWith ".example") { routeTo(a); }
R5: if (tls.client.fingerprint startsWith "ab" && method == "POST") { reject(403); }
R6: if (tls.cipher contains "CHACHA20") { tag(slow); }
R7: if (!(tls.alpn exists) && scheme == "https") { bandwidth(few); }
R8: if (version == "2" && tls.sni == "other.example") { routeTo(b); }
R9: if (!(tls.client.subject exists) && path == "/d") { limitRate(few); }
R10: if (clientip == 192.0.2.1 && srcip in [10.0.0.0/8]) { routeTo(split(90: a, 10: b), STICKY_ON_TLS_SESSION); }
R11: if (json.amount > 5 && tls.resumed) { routeTo(a); }
R12: if (header["x-forwarded-for"] exists && tls.cipher contains "_ECDSA_") { routeTo(b); }
R13: if (upgrade == "websocket" && version == "2") { routeTo(b); }
"#;

/// Whom a listener hears of that has a Unix socket.
const OF_UNIX: &str = r#"
U1: if (!(srcip exists) && path == "/a") { routeTo(a); }
U2: if (!(dstport exists) && clientip == 192.0.2.1) { routeTo(b); }
U3: if (!(clientip exists) && method == "POST") { reject(403); }
U4: if (header["x-forwarded-for"] contains "192.0.2.2" && !(dstip exists)) { tag(hops); }
U5: if (clientip in [10.0.0.0/8] && path under "/b") { routeTo(b); }
U6: if (srcip exists && path == "/c") { routeTo(b); }
"#;

#[test]
fn witnesses_of_rules_by_themselves() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.rules");
    let mut count = 0;
    for (name, source) in sources() {
        let Some(program) = program(&source).filter(|program| program.rules.len() <= RULES_MAX) else {
            continue;
        };
        fs::write(&file, &source).expect("a writable folder");
        let setting = Setting::default();
        let stand = Stand { name: &name, folder: folder.path(), file: file.clone(), program, setting };
        count += stand.check_all(&source);
    }
    assert!(count > 150, "{count}");
}

/// Listeners that each take other connections.
const LISTENERS: &str = r#"
[[listener]]
name = "plain"
bind = "127.0.0.1:0"
rules = "a.rules"
pool = "a"
[[listener]]
name = "strict"
bind = "127.0.0.1:8443"
rules = "a.rules"
pool = "a"
tls = { certificate = "a.crt", key = "a.key", min_version = "1.3", tickets = false, client_ca = "a.crt", client_auth = "require" }
[[listener]]
name = "old"
bind = "0.0.0.0:0"
rules = "a.rules"
pool = "a"
trusted_proxies = ["10.0.0.0/8"]
tls = { certificate = "a.crt", key = "a.key", alpn = ["http/1.1"], client_ca = "a.crt", client_auth = "request" }
[[listener]]
name = "behind"
bind = "127.0.0.1:0"
rules = "a.rules"
pool = "a"
http2 = "only"
proxy_protocol = "required"
trusted_proxies = ["10.0.0.0/8"]
tls = { certificate = "a.crt", key = "a.key" }
[[listener]]
name = "sockets"
bind = ["unix:a.sock", "127.0.0.1:0"]
rules = "unix.rules"
pool = "a"
trusted_proxies = ["unix:"]
[[listener]]
name = "socket"
bind = "unix:b.sock"
rules = "unix.rules"
pool = "a"
proxy_protocol = "required"
trusted_proxies = ["unix:"]
[pool.a]
servers = ["127.0.0.1:1"]
[pool.b]
servers = ["127.0.0.1:1"]
[bandwidth.few]
ceiling_bytes_per_second = 1_000_000
[limit.few]
per_second = 5
"#;

#[test]
fn witnesses_of_listeners() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).expect("a writable folder");
        file
    };
    let issued = rcgen::generate_simple_self_signed(["shop.example".to_owned()]).expect("a certificate");
    write("a.crt", &issued.cert.pem());
    write("a.key", &issued.signing_key.serialize_pem());
    write("a.rules", OF_TLS);
    write("unix.rules", OF_UNIX);
    let file = write("a.toml", LISTENERS);
    let loaded = Plan::check_only(&file).unwrap_or_else(|wrong| panic!("{}", wrong.render(Colour::Never)));
    let mut counts = Vec::new();
    for listener in &loaded.plan.listeners {
        let program = listener.program.clone().expect("rules");
        let setting = setting(listener, &loaded.plan);
        assert_eq!(setting.listener.as_deref(), Some(&*listener.name));
        let (name, folder) = (&*listener.name, folder.path());
        let stand = Stand { name, folder, file: file.clone(), program, setting };
        let source = if name.starts_with("socket") { OF_UNIX } else { OF_TLS };
        counts.push(stand.check_all(source));
    }
    assert!(counts.iter().all(|count| *count > 1) && counts.iter().sum::<usize>() > 16, "{counts:?}");
    let request = write("request", "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    for (words, expected) in [
        (
            "strict|--tls|1.2",
            "`--tls 1.2` says what never comes to the listener `strict`: its `min_version` is `1.3`",
        ),
        ("strict|--resumed", "its `tickets` is `false`"),
        (
            "strict|--cipher|TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "it agrees on `TLS_AES_256_GCM_SHA384`, `TLS_AES_128_GCM_SHA256`",
        ),
        ("old|--alpn|h2", "for such a request it agrees on `http/1.1`, ''"),
        ("old|--cipher|TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "`TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256`"),
        ("old|--proxied|10.0.0.1", "it reads no PROXY header"),
        ("plain|--client-san|a", "it speaks no TLS"),
        ("plain|--srcip|unix:", "it has no Unix socket"),
        ("socket|--srcport|1", "it has Unix sockets alone"),
        ("behind|--client-san|a", "its `http2` is `only`"),
    ] {
        let files = [file.clone().into_os_string(), request.clone().into_os_string(), "--listener".into()];
        let arguments = files.into_iter().chain(words.split('|').map(OsString::from)).collect();
        let options = Options::read(arguments).expect("options").expect("no help");
        let error = reported(&options, Colour::Never).err().unwrap_or_else(|| panic!("{words}"));
        assert!(error.contains(expected), "{words}: {error}");
    }
}
