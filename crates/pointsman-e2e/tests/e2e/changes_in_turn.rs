//! What changes the switch comes one at a time, and whoever looks at it need not wait for that.
//!
//! A second listener has its rules in a FIFO: who reads the configuration waits there until the test says what stands in it,
//! however fast the machine is.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread::{JoinHandle, spawn};

use pointsman_e2e::{ADMIN_TOKEN, Authority, Client, Origin, PATIENCE, Pair, Setup, Switch, TlsClient, tool};
use serde_json::Value;
use tempfile::TempDir;

use crate::published_rules::{RULES, TO_A, TO_B, file, version};

pointsman_e2e::for_threads!(
    who_looks_does_not_wait,
    the_second_of_two_publications_is_told,
    a_reload_comes_behind_a_publication,
    a_publication_finds_what_a_reload_has_changed,
    a_token_that_is_taken_away_meanwhile,
    authorities_that_are_others_meanwhile,
    files_that_change_while_they_are_read,
    a_certificate_that_changes_while_it_is_read,
    an_upgrade_waits_for_a_publication,
    who_waits_behind_an_upgrade_is_told,
    an_upgrade_that_overtakes_a_reload,
    the_end_waits_for_nobody,
    the_end_cuts_what_is_read,
    not_too_many_wait
);

/// A switch whose configuration is read for as long as a test likes.
struct Stand {
    switch: Switch,
    slow: Slow,
    _origins: [Origin; 2],
}

/// The FIFO.
struct Slow {
    path: PathBuf,
    folder: TempDir,
}

/// Somebody reads it.
struct Reading(File);

impl Slow {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let slow = Self { path: folder.path().join("slow.rules"), folder };
        slow.renew().then_some(slow)
    }

    /// Puts an empty one in its place; whoever reads the other one reads on.
    fn renew(&self) -> bool {
        let Some(made) = tool(self.folder.path(), "mkfifo", &["next"]) else { return false };
        assert_eq!(made.code, 0, "{}", made.output());
        std::fs::rename(self.folder.path().join("next"), &self.path).expect("it is ours");
        true
    }

    /// Waits until somebody begins to read it.
    fn is_read(&self) -> Reading {
        let (tell, told) = channel();
        let path = self.path.clone();
        // It cannot be opened before.
        spawn(move || tell.send(OpenOptions::new().write(true).open(path).expect("a FIFO")));
        let opened = told.recv_timeout(6 * PATIENCE).expect("somebody reads it");
        assert!(self.renew());
        Reading(opened)
    }
}

impl Reading {
    fn goes_on(self) {
        self.finds(TO_A);
    }

    fn finds(mut self, rules: &str) {
        self.0.write_all(rules.as_bytes()).expect("it is read");
    }
}

impl Stand {
    fn new(threads: usize) -> Option<Self> {
        Self::of(Setup::new(threads))
    }

    /// The same with more of the process, or of the first listener.
    fn of(setup: Setup) -> Option<Self> {
        Self::with(setup, "")
    }

    /// And with these keys of the admin listener.
    fn with(setup: Setup, admin: &str) -> Option<Self> {
        let (slow, origins) = (Slow::new()?, [Origin::new("sa"), Origin::new("sb")]);
        let setup = setup.rules(TO_A).pool("a", &[&origins[0]]).pool("b", &[&origins[1]]);
        let setup = setup.with_token().top(admin).another_listener("slow");
        let setup = setup.listener(&format!("rules = \"{}\"", slow.path.display()));
        let starting = spawn(move || setup.start());
        slow.is_read().goes_on();
        let switch = starting.join().expect("it starts");
        Some(Self { switch, slow, _origins: origins })
    }

    fn version(&self) -> String {
        version(&self.switch)
    }

    fn file(&self) -> String {
        file(&self.switch)
    }

    /// How many audit lines end so.
    fn audited(&self, end: &str) -> usize {
        let lines = self.switch.errors().all();
        lines.iter().filter(|line| line.starts_with("audit ") && line.ends_with(end)).count()
    }

    /// The certificate of the first listener and its key, as they stand in their files.
    fn pair(&self) -> (String, String) {
        let [certificate, key] = ["shop.crt", "shop.key"]
            .map(|name| std::fs::read_to_string(self.switch.folder().join(name)).expect("it is there"));
        (certificate, key)
    }

    /// Writes another one beside the switch.
    fn write_pair(&self, pair: &Pair) {
        for (name, text) in [("shop.key", &pair.key), ("shop.crt", &pair.certificate)] {
            std::fs::write(self.switch.folder().join(name), text).expect("a writable folder");
        }
    }

    /// Sends rules to be published in the place of this version; its answer comes in a thread.
    fn publish(&self, version: &str, rules: &str) -> JoinHandle<(u16, Value)> {
        self.ask("PUT", RULES, &format!("If-Match: \"{version}\"\r\n"), rules)
    }

    fn ask(&self, method: &str, target: &str, lines: &str, body: &str) -> JoinHandle<(u16, Value)> {
        let mut client = self.send(method, target, lines, body);
        spawn(move || {
            let answer = client.response();
            (answer.status(), serde_json::from_str(&answer.text()).expect("JSON"))
        })
    }

    fn send(&self, method: &str, target: &str, lines: &str, body: &str) -> Client {
        let mut client = Client::plain(self.switch.admin());
        let length = body.len();
        client.send(format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n{lines}\
             Content-Length: {length}\r\n\r\n{body}"
        ));
        client
    }
}

/// Metrics, health, what serves: all of it is told while a publication and a reload are read.
fn who_looks_does_not_wait(threads: usize) {
    let Some(stand) = Stand::new(threads) else { return };
    let switch = &stand.switch;
    let old = stand.version();
    let looks = |generation: u32| {
        let shown = format!("\npointsman_plan_generation {generation}\n");
        assert!(switch.metrics().contains(&shown), "{}", switch.metrics());
        assert_eq!(switch.admin_get("/health").status(), 200);
        assert_eq!(switch.admin_shows("/api/v1/plan")["generation"], generation);
        assert_eq!(switch.admin_shows("/api/v1/pools")["pools"][0]["servers"][0]["name"], "sa");
        let (answer, _) = switch.admin_ask("PUT", "/api/v1/log-level", "", "{\"level\":\"info\"}");
        assert_eq!(answer.status(), 200);
    };
    let published = stand.publish(&old, TO_B);
    let reading = stand.slow.is_read();
    looks(1);
    assert_eq!((stand.version(), stand.file().as_str(), switch.get("/").server()), (old, TO_A, "sa"));
    reading.goes_on();
    let (status, said) = published.join().expect("an answer");
    assert_eq!((status, &said["generation"]), (200, &2.into()), "{said}");
    assert_eq!((stand.file().as_str(), switch.get("/").server()), (TO_B, "sb"));
    switch.signal("HUP");
    let reading = stand.slow.is_read();
    looks(2);
    reading.goes_on();
    switch.wait_for_line("reloaded generation=3");
    for (method, target) in [("POST", "validate"), ("POST", "diff"), ("POST", "dry-run")] {
        let asked = stand.ask(method, &format!("{RULES}/{target}"), "", TO_A);
        let reading = stand.slow.is_read();
        looks(3);
        reading.goes_on();
        let (status, said) = asked.join().expect("an answer");
        assert_eq!(status, 200, "{target}: {said}");
    }
    let restored = stand.ask("POST", "/api/v1/versions/1/restore", "", "");
    let reading = stand.slow.is_read();
    looks(3);
    reading.goes_on();
    assert_eq!(restored.join().expect("an answer").0, 200);
    assert_eq!((stand.file().as_str(), switch.get("/").server()), (TO_A, "sa"));
}

/// Both have read the same version, and the second one was sent while the first one was read.
fn the_second_of_two_publications_is_told(threads: usize) {
    let Some(stand) = Stand::new(threads) else { return };
    let version = stand.version();
    let first = stand.publish(&version, TO_B);
    let reading = stand.slow.is_read();
    let second = stand.publish(&version, "R1: { reject(); }\n");
    assert_eq!(stand.version(), version);
    reading.goes_on();
    assert_eq!(first.join().expect("an answer").0, 200);
    // It is told before anything is read for it.
    let (status, said) = second.join().expect("an answer");
    assert_eq!((status, &said["rules_version"]), (412, &stand.version().into()), "{said}");
    assert_eq!((stand.file().as_str(), stand.switch.get("/").server()), (TO_B, "sb"));
}

/// It reads what was published, and undoes nothing of it.
fn a_reload_comes_behind_a_publication(threads: usize) {
    let Some(stand) = Stand::new(threads) else { return };
    let published = stand.publish(&stand.version(), TO_B);
    let reading = stand.slow.is_read();
    stand.switch.signal("HUP");
    let asked = stand.ask("POST", "/api/v1/reload", "", "");
    reading.goes_on();
    let (status, said) = published.join().expect("an answer");
    assert_eq!((status, &said["generation"]), (200, &2.into()), "{said}");
    (0..2).for_each(|_| stand.slow.is_read().goes_on());
    assert_eq!(asked.join().expect("an answer").0, 200);
    stand.switch.wait_for_line("reloaded generation=4");
    assert_eq!((stand.file().as_str(), stand.switch.get("/").server()), (TO_B, "sb"));
}

/// Who publishes has not seen what somebody has written meanwhile, and does not replace it.
fn a_publication_finds_what_a_reload_has_changed(threads: usize) {
    let Some(stand) = Stand::new(threads) else { return };
    let version = stand.version();
    write_rules(&stand, TO_B);
    stand.switch.signal("HUP");
    let reading = stand.slow.is_read();
    let published = stand.publish(&version, "R1: { reject(); }\n");
    assert_eq!(stand.version(), version);
    reading.goes_on();
    let (status, said) = published.join().expect("an answer");
    assert_eq!((status, &said["rules_version"]), (412, &stand.version().into()), "{said}");
    assert_ne!(stand.version(), version);
    assert_eq!((stand.file().as_str(), stand.switch.get("/").server()), (TO_B, "sb"));
}

/// Who waits behind a reload that takes their token away changes nothing any more, and has nothing read.
fn a_token_that_is_taken_away_meanwhile(threads: usize) {
    let Some(stand) = Stand::new(threads) else { return };
    let version = stand.version();
    let tokens = "other 00c1d2e3f4a5968778695a4b3c2d1e0f\n";
    std::fs::write(stand.switch.folder().join("admin.token"), tokens).expect("a writable folder");
    let reloaded = stand.ask("POST", "/api/v1/reload", "", "");
    let reading = stand.slow.is_read();
    let published = stand.publish(&version, TO_B);
    let validated = stand.ask("POST", &format!("{RULES}/validate"), "", TO_B);
    assert_eq!(stand.version(), version);
    reading.goes_on();
    assert_eq!(reloaded.join().expect("an answer").0, 200);
    for asked in [published, validated] {
        let (status, said) = asked.join().expect("an answer");
        assert_eq!(status, 401, "{said}");
    }
    assert_eq!((stand.file().as_str(), stand.switch.get("/").server()), (TO_A, "sa"));
    // It was known when it came.
    stand.switch.errors().wait_for("an audit line", |line| {
        let is_it = line.starts_with("audit who=deploy ") && line.contains(" method=PUT ");
        (is_it && line.contains(" status=401 ")).then_some(())
    });
}

/// The same of a certificate whose authority is none any more; another one's, which still is, has its turn.
fn authorities_that_are_others_meanwhile(threads: usize) {
    let [shown, old, stays] = ["switches", "old", "stays"].map(Authority::new);
    let keys = "tls = { certificate = \"admin.crt\", key = \"admin.key\", client_ca = \"clients.crt\" }";
    let setup = Setup::new(threads).pair("admin", &shown.server(&["admin.example"]));
    let setup = setup.file("clients.crt", &(old.pem() + &stays.pem()));
    let Some(stand) = Stand::with(setup, keys) else { return };
    let connect = |authority: &Authority| {
        let client = TlsClient::identified(&shown, &authority.client("ops", &[]));
        Client::tls(stand.switch.admin(), &client, "admin.example").expect("a handshake")
    };
    std::fs::write(stand.switch.folder().join("clients.crt"), stays.pem()).expect("a writable folder");
    stand.switch.signal("HUP");
    let reading = stand.slow.is_read();
    let validates = |authority: &Authority| {
        let mut client = connect(authority);
        let head = format!("POST {RULES}/validate HTTP/1.1\r\nHost: localhost\r\n");
        client.send(format!("{head}Content-Length: {}\r\n\r\n{TO_B}", TO_B.len()));
        spawn(move || client.response().status())
    };
    let [gone, kept] = [&old, &stays].map(validates);
    let mut looks = connect(&old);
    looks.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(looks.response().status(), 200);
    reading.goes_on();
    assert_eq!(gone.join().expect("an answer"), 401);
    stand.slow.is_read().goes_on();
    assert_eq!(kept.join().expect("an answer"), 200);
}

/// What somebody writes while a publication is read is not overwritten.
fn files_that_change_while_they_are_read(threads: usize) {
    let Some(stand) = Stand::new(threads) else { return };
    let version = stand.version();
    let published = stand.publish(&version, TO_B);
    let reading = stand.slow.is_read();
    let theirs = "R1: { reject(); }\n";
    write_rules(&stand, theirs);
    reading.goes_on();
    let (status, said) = published.join().expect("an answer");
    assert_eq!(status, 409, "{said}");
    assert!(said["detail"].as_str().expect("a sentence").contains("shop.rules"), "{said}");
    assert_eq!(
        (stand.file().as_str(), stand.version(), stand.switch.get("/").server()),
        (theirs, version, "sa")
    );
}

/// One that does not come to serve leaves the files as they were, and as somebody else has written them meanwhile.
fn a_certificate_that_changes_while_it_is_read(threads: usize) {
    let authority = Authority::new("one");
    let [before, ours, theirs] = [(); 3].map(|()| authority.server(&["shop.example"]));
    for (is_cut, meanwhile) in [(false, None), (true, None), (false, Some(&theirs)), (true, Some(&theirs))] {
        let Some(mut stand) = Stand::of(Setup::new(threads).tls(&before, "")) else { return };
        let all = stand.switch.admin_shows("/api/v1/certificates");
        let id = all["certificates"][0]["id"].as_str().expect("an id");
        let sent = format!("{}{}", ours.certificate, ours.key);
        let put = stand.ask("PUT", &format!("/api/v1/certificates/{id}"), "If-Match: *\r\n", &sent);
        let reading = stand.slow.is_read();
        assert_eq!(stand.pair(), (ours.certificate.clone(), ours.key.clone()));
        meanwhile.into_iter().for_each(|pair| stand.write_pair(pair));
        if is_cut {
            stand.switch.signal("TERM");
            assert_eq!(stand.switch.wait_for_exit(), Some(0));
            assert_eq!(put.join().expect("an answer").0, 503);
        } else {
            reading.finds("R1: { routeTo(nowhere); }\n");
            let (status, said) = put.join().expect("an answer");
            assert_eq!(status, 422, "{said}");
        }
        let stays = meanwhile.unwrap_or(&before);
        assert_eq!(stand.pair(), (stays.certificate.clone(), stays.key.clone()), "{is_cut}");
        let line = "certificate not written back file=";
        match meanwhile {
            Some(_) => assert!(stand.switch.wait_for_line(line).contains("it has changed since")),
            None => assert!(!stand.switch.said().contains(line), "{}", stand.switch.said()),
        }
    }
}

/// The new process begins with what was published.
fn an_upgrade_waits_for_a_publication(threads: usize) {
    let Some(mut stand) = Stand::new(threads) else { return };
    let published = stand.publish(&stand.version(), TO_B);
    let reading = stand.slow.is_read();
    stand.switch.signal("USR2");
    stand.switch.wait_for_line("upgrade waits");
    assert_eq!(stand.switch.admin_get("/health").status(), 200);
    reading.goes_on();
    let (status, said) = published.join().expect("an answer");
    assert_eq!((status, &said["generation"]), (200, &2.into()), "{said}");
    stand.slow.is_read().goes_on();
    stand.switch.follows_upgrade();
    assert_eq!((stand.file().as_str(), stand.switch.get("/").server()), (TO_B, "sb"));
}

/// Nothing changes while another process begins, and whoever asked before that hears it, too.
fn who_waits_behind_an_upgrade_is_told(threads: usize) {
    let Some(mut stand) = Stand::new(threads) else { return };
    let version = stand.version();
    let first = stand.publish(&version, TO_B);
    let reading = stand.slow.is_read();
    stand.switch.signal("USR2");
    stand.switch.wait_for_line("upgrade waits");
    let second = stand.ask("PUT", RULES, "If-Match: *\r\n", TO_A);
    assert_eq!(stand.version(), version);
    reading.goes_on();
    assert_eq!(first.join().expect("an answer").0, 200);
    let (status, said) = second.join().expect("an answer");
    assert_eq!((status, stand.file().as_str()), (503, TO_B), "{said}");
    stand.slow.is_read().goes_on();
    stand.switch.follows_upgrade();
    assert_eq!(stand.switch.get("/").server(), "sb");
}

/// A service manager that was told of a reload hears of its end, also where another process serves before that.
fn an_upgrade_that_overtakes_a_reload(threads: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let manager = UnixDatagram::bind(folder.path().join("notify")).expect("a writable folder");
    manager.set_read_timeout(Some(PATIENCE)).expect("open");
    let hears = || {
        let mut text = [0; 1024];
        let bytes = manager.recv(&mut text).expect("it says something");
        String::from_utf8_lossy(&text[..bytes]).into_owned()
    };
    let line = format!("export NOTIFY_SOCKET={}/notify", folder.path().display());
    let Some(mut stand) = Stand::of(Setup::new(threads).after(&line)) else { return };
    assert!(hears().starts_with("READY=1\n"));
    stand.switch.signal("USR2");
    let successor = stand.slow.is_read();
    let _client = stand.send("POST", &format!("{RULES}/validate"), "", TO_A);
    let _reading = stand.slow.is_read();
    stand.switch.signal("HUP");
    assert!(hears().starts_with("RELOADING=1\n"));
    successor.goes_on();
    stand.switch.follows_upgrade();
    let main = format!("MAINPID={}\n", stand.switch.id());
    let heard: Vec<_> = std::iter::repeat_with(hears).take_while(|text| !text.starts_with(&main)).collect();
    assert!(heard.contains(&"READY=1\nSTATUS=serving\n".to_owned()), "{heard:?}");
}

/// The process ends, leaves what it read for behind as it was, and says so to whoever was to change something or waited.
fn the_end_waits_for_nobody(threads: usize) {
    let Some(mut stand) = Stand::new(threads) else { return };
    let version = stand.version();
    let read = stand.publish(&version, TO_B);
    let _reading = stand.slow.is_read();
    let reload = stand.ask("POST", "/api/v1/reload", "", "");
    let validate = stand.ask("POST", &format!("{RULES}/validate"), "", TO_B);
    assert_eq!(stand.version(), version);
    stand.switch.signal("TERM");
    assert_eq!(stand.switch.wait_for_exit(), Some(0));
    for asked in [read, reload, validate] {
        let (status, said) = asked.join().expect("an answer");
        assert_eq!((status, &said["detail"]), (503, &"the switch drains".into()), "{said}");
    }
    assert_eq!(stand.file(), TO_A);
    assert_eq!(stand.audited(" status=503 refusal=\"the switch drains\""), 3, "{}", stand.switch.said());
}

/// What changes nothing is read on while the switch drains; where that ends first there is no answer, and an audit line.
fn the_end_cuts_what_is_read(threads: usize) {
    let Some(mut stand) = Stand::new(threads) else { return };
    let mut client = stand.send("POST", &format!("{RULES}/validate"), "", TO_B);
    let _reading = stand.slow.is_read();
    stand.switch.signal("TERM");
    assert_eq!(stand.switch.wait_for_exit(), Some(0));
    assert!(client.try_response().is_err());
    let line = " status=503 refusal=\"the switch ended before it was done\"";
    assert_eq!(stand.audited(line), 1, "{}", stand.switch.said());
}

/// A client more than may wait is told so, and who only looks is answered all the same.
fn not_too_many_wait(threads: usize) {
    const WAITING_MAX: usize = 16;
    const MORE: usize = 5;
    let Some(stand) = Stand::new(threads) else { return };
    let (tell, told) = channel();
    let ask = || {
        let (asked, tell) = (stand.ask("POST", &format!("{RULES}/validate"), "", TO_B), tell.clone());
        spawn(move || tell.send(asked.join().expect("an answer").0).expect("the test is there"));
    };
    ask();
    let reading = stand.slow.is_read();
    (1..WAITING_MAX + MORE).for_each(|_| ask());
    let refused: Vec<_> = told.iter().take(MORE).collect();
    assert_eq!(refused, [503; MORE]);
    assert_eq!(stand.switch.admin_get("/health").status(), 200);
    reading.goes_on();
    (1..WAITING_MAX).for_each(|_| stand.slow.is_read().goes_on());
    let answered: Vec<_> = told.iter().take(WAITING_MAX).collect();
    assert_eq!(answered, [200; WAITING_MAX]);
}

/// Writes other rules beside the switch, as an operator does.
fn write_rules(stand: &Stand, rules: &str) {
    let folder = stand.switch.folder();
    std::fs::write(folder.join(".shop.rules"), rules).expect("a writable folder");
    std::fs::rename(folder.join(".shop.rules"), folder.join("shop.rules")).expect("a writable folder");
}
