//! The admin listener at addresses that other machines come to: nobody reads anything there without a token.

use pointsman_e2e::{ADMIN_TOKEN, Finished, Origin, Setup, Switch, installed, skipped, tool};
use serde_json::Value;

pointsman_e2e::for_threads!(reading_needs_a_token, without_tokens_nobody_gets_in);

/// Begins the switch in a network of its own, where it has addresses besides those of the loopback.
const ELSEWHERE: &str = "exec unshare --user --map-root-user --net sh -c \
    'ip link set lo up && ip address add 192.0.2.1/32 dev lo && ip address add 2001:db8::1/128 dev lo nodad && \
    exec \"$0\" \"$@\"' \"$0\" \"$@\"";

const LOOPBACK: [&str; 2] = ["127.0.0.1", "[::1]"];
const ABROAD: [&str; 2] = ["192.0.2.1", "[2001:db8::1]"];

/// A switch with these keys of `[admin]`.
fn setup(threads: usize, keys: &str) -> Setup {
    let setup = Setup::new(threads).pool_at("standard", "", &[("nobody", Origin::dead_address())]);
    let setup = setup.top(&format!("[admin]\n{keys}")).after(ELSEWHERE);
    setup.file("admin.token", &format!("deploy {ADMIN_TOKEN}\n"))
}

/// One there with an admin listener at all addresses; nothing where the machine lacks something for it.
pub(crate) fn elsewhere(threads: usize) -> Option<Switch> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let network = ["--user", "--map-root-user", "--net", "ip", "link", "set", "lo", "up"];
    if !(installed("ip") && installed("nsenter") && installed("curl")) {
        return None;
    }
    let tried = tool(folder.path(), "unshare", &network)?;
    if tried.code != 0 {
        skipped(&format!("no network may be made here: {}", tried.output()));
        return None;
    }
    Some(setup(threads, "bind = \"[::]:0\"\ntoken_file = \"admin.token\"").start())
}

fn curl(switch: &Switch, words: &[&str]) -> Finished {
    let id = switch.id().to_string();
    let curl = ["curl", "--silent", "--show-error", "--globoff", "--max-time", "20"];
    tool(switch.folder(), "nsenter", &[&within(&id)[..], &curl, words].concat()).expect("it is installed")
}

/// What `nsenter` is told, to begin something in the network of a process.
pub(crate) fn within(id: &str) -> [&str; 5] {
    ["--target", id, "--user", "--net", "--preserve-credentials"]
}

/// What is answered at a host to these lines and paths, each as its status.
fn statuses(switch: &Switch, host: &str, line: &str, paths: &[String]) -> Vec<u16> {
    let port = switch.admin().port();
    let urls: Vec<String> = paths.iter().map(|path| format!("http://{host}:{port}{path}")).collect();
    let mut words = vec!["--header", line, "--write-out", "%{http_code}\n"];
    urls.iter().for_each(|url| words.extend(["--output", "/dev/null", url]));
    let finished = curl(switch, &words);
    assert_eq!(finished.code, 0, "{}", finished.output());
    finished.stdout.lines().map(|status| status.parse().expect("a status")).collect()
}

/// Every path that can be read, as the switch describes them.
fn readable(switch: &Switch) -> Vec<String> {
    let finished =
        curl(switch, &[&format!("http://127.0.0.1:{}/api/v1/openapi.json", switch.admin().port())]);
    let document: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    let read = paths.iter().filter(|(_, methods)| methods.get("get").is_some());
    // Whoever may ask is told, too, that there is no such pool or rule.
    read.map(|(path, _)| path.replace(['{', '}'], "")).collect()
}

fn reading_needs_a_token(threads: usize) {
    let Some(switch) = elsewhere(threads) else { return };
    let paths = readable(&switch);
    assert!(paths.iter().any(|path| path == "/metrics") && paths.len() > 8, "{paths:?}");
    let is_answered = |status: &u16| matches!(status, 200 | 400 | 404 | 409);
    let told = [("X-Nothing: at all", false), (&format!("Authorization: Bearer {ADMIN_TOKEN}"), true)];
    for host in LOOPBACK {
        let found = statuses(&switch, host, "X-Nothing: at all", &paths);
        assert!(found.iter().all(is_answered) && found.contains(&200), "{host} {paths:?} {found:?}");
    }
    for host in ABROAD {
        for (line, is_known) in told {
            let found = statuses(&switch, host, line, &paths);
            let is_right = |status: &u16| if is_known { is_answered(status) } else { *status == 401 };
            assert!(
                found.len() == paths.len() && found.iter().all(is_right),
                "{host} {line} {paths:?} {found:?}"
            );
        }
        let wrong = format!("Authorization: Bearer {}", ADMIN_TOKEN.replace('8', "9"));
        assert_eq!(statuses(&switch, host, &wrong, &paths[..1]), [401]);
    }
}

/// Where a reload takes the tokens away before a restart takes the address, they are not even told what they lack: nobody
/// could have it.
fn without_tokens_nobody_gets_in(threads: usize) {
    let Some(switch) = elsewhere(threads) else { return };
    switch.reload(&setup(threads, "bind = \"127.0.0.1:0\""), 2);
    let url = |host: &str| format!("http://{host}:{}/health", switch.admin().port());
    for host in LOOPBACK {
        assert_eq!(curl(&switch, &["--fail", &url(host)]).code, 0, "{host}");
    }
    for host in ABROAD {
        // 52: nothing came; 56: the connection was reset.
        let finished = curl(&switch, &[&url(host)]);
        assert!(matches!(finished.code, 52 | 56) && finished.stdout.is_empty(), "{}", finished.output());
    }
}
