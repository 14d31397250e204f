//! Rules that are put in the place of others by the admin API.

use std::os::fd::AsRawFd;

use pointsman_e2e::{ADMIN_TOKEN, Client, Origin, Setup, Switch, until};
use serde_json::Value;

use crate::published_rules::{RULES, TO_A, TO_B, file, version};

pointsman_e2e::for_threads!(
    published_rules_serve_and_survive,
    only_what_was_read_is_replaced,
    bad_rules_are_refused,
    files_that_have_changed,
    tried_without_effect,
    versions_are_restored,
    what_serves_is_shown,
    what_cannot_be_written,
    a_file_that_two_names_lead_to
);

fn two(threads: usize, a: &Origin, b: &Origin) -> Setup {
    Setup::new(threads).rules(TO_A).pool("a", &[a]).pool("b", &[b]).with_token()
}

fn publish(switch: &Switch, version: &str, target: &str, rules: &str) -> (u16, Value) {
    let (answer, said) = switch.admin_ask("PUT", target, &format!("If-Match: \"{version}\"\r\n"), rules);
    if answer.status() == 200 && said["rules_version"].is_string() {
        let tag = format!("\"{}\"", said["rules_version"].as_str().expect("a version"));
        assert_eq!(answer.head.field("etag"), Some(&*tag));
    }
    (answer.status(), said)
}

/// They serve when the answer comes, stand in the file, and a reload changes nothing of it.
fn published_rules_serve_and_survive(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let switch = two(threads, &a, &b).start();
    let mut client = switch.client();
    assert_eq!(client.get("/").server(), "sa");
    let old = version(&switch);
    let (status, said) = publish(&switch, &old, &format!("{RULES}?why=B%20is%20larger"), TO_B);
    assert_eq!((status, &said["generation"]), (200, &2.into()), "{said}");
    assert_eq!(client.get("/").server(), "sb");
    assert_eq!(file(&switch), TO_B);
    assert_ne!(version(&switch), old);
    assert_eq!(version(&switch), said["rules_version"]);
    let line = switch.wait_for_line("audit who=deploy ");
    assert!(line.contains("method=PUT") && line.ends_with("status=200"), "{line}");
    switch.signal("HUP");
    switch.wait_for_line("reloaded generation=3");
    assert_eq!(client.get("/").server(), "sb");
    let versions = switch.admin_shows("/api/v1/versions")["versions"].as_array().expect("a list").clone();
    let seen: Vec<_> =
        versions.iter().map(|version| (&version["who"], &version["why"], &version["serves"])).collect();
    let expected = [
        (&"deploy".into(), &"B is larger".into(), &true.into()),
        (&"-".into(), &"the start".into(), &false.into()),
    ];
    assert_eq!(seen, expected);
    assert_eq!(versions[0]["bytes"], TO_B.len());
    let when = versions[0]["when"].as_str().expect("a time");
    assert!(when.starts_with("20") && when.ends_with('Z') && when.len() == 24, "{when}");
}

/// Whoever has not seen what serves does not replace it: of two who read the same, one is told.
fn only_what_was_read_is_replaced(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let switch = two(threads, &a, &b).start();
    let read = version(&switch);
    let (answer, said) = switch.admin_ask("PUT", RULES, "", TO_B);
    assert_eq!((answer.status(), &said["rules_version"]), (428, &read.as_str().into()));
    assert_eq!(publish(&switch, &read, RULES, TO_B).0, 200);
    let (status, said) = publish(&switch, &read, RULES, "R1: { reject(); }\n");
    assert_eq!((status, &said["rules_version"]), (412, &version(&switch).into()));
    assert_eq!(switch.get("/").server(), "sb");
    let (answer, _) = switch.admin_ask("PUT", RULES, "If-Match: *\r\n", TO_A);
    assert_eq!(answer.status(), 200);
    assert_eq!(switch.get("/").server(), "sa");
    let (answer, _) = switch.admin_ask("PUT", "/api/v1/listeners/none/rules", "If-Match: *\r\n", TO_A);
    assert_eq!(answer.status(), 404);
}

/// Nothing changes, neither what serves nor the file, and each fault is shown with its place.
fn bad_rules_are_refused(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let switch = two(threads, &a, &b).start();
    let read = version(&switch);
    let bad = "R1: { routeTo(nowhere); }\nR2: if (pth == \"/\") { routeTo(b); }\n";
    let (status, said) = publish(&switch, &read, RULES, bad);
    assert_eq!(status, 422, "{said}");
    let lines: Vec<_> =
        said["findings"].as_array().expect("a list").iter().map(|found| &found["line"]).collect();
    assert_eq!(lines, [1, 2]);
    assert!(said["text"].as_str().expect("text").contains("^^^"), "{said}");
    let (answer, _) = switch.admin_ask("PUT", RULES, "If-Match: *\r\n", &"# too long\n".repeat(500_000));
    assert_eq!(answer.status(), 413);
    let mut client = Client::plain(switch.admin());
    let head = format!("PUT {RULES} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n");
    client.send(format!("{head}If-Match: *\r\nContent-Length: 2\r\n\r\n"));
    client.send([0xc3, 0x28]);
    assert_eq!(client.response().status(), 400);
    assert_eq!((switch.get("/").server(), &*file(&switch), version(&switch)), ("sa", TO_A, read));
}

/// What somebody else has written is neither lost nor let in unseen.
fn files_that_have_changed(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    let read = version(&switch);
    let theirs = "R1: { reject(); }";
    setup.clone().rules(theirs).write(switch.folder());
    let (status, said) = publish(&switch, &read, RULES, TO_B);
    assert_eq!(status, 409, "{said}");
    assert!(said["detail"].as_str().expect("a sentence").contains("shop.rules"), "{said}");
    assert_eq!((switch.get("/").server(), file(&switch).trim()), ("sa", theirs));
    // The same of the configuration, which would be read, too.
    setup.clone().top("drain_ms_max = 7").write(switch.folder());
    let (status, said) = publish(&switch, &read, RULES, TO_B);
    assert_eq!(status, 409, "{said}");
    assert!(said["detail"].as_str().expect("a sentence").contains("pointsman.toml"), "{said}");
    setup.write(switch.folder());
    assert_eq!(publish(&switch, &read, RULES, TO_B).0, 200);
}

/// Rules are checked and compared before they serve.
fn tried_without_effect(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let switch = two(threads, &a, &b).start();
    let new = "NEW: if (path == \"/b\") { routeTo(b); }\nR1: { routeTo(a); }\n";
    let tries = [("PUT", format!("{RULES}?dry_run=true")), ("POST", format!("{RULES}/diff"))];
    for (method, target) in &tries {
        let (answer, said) = switch.admin_ask(method, target, "", new);
        assert_eq!((answer.status(), &said["verdict"]), (200, &"different".into()), "{said}");
        assert!(said["difference_text"].as_str().expect("text").contains("GET /b HTTP/1.1"), "{said}");
        let (_, said) = switch.admin_ask(method, target, "", "OTHER: { routeTo(a); }\n");
        assert_eq!(said["verdict"], "equal", "{said}");
        assert_eq!(switch.admin_ask(method, target, "", "R1: {").0.status(), 422);
    }
    let validate = format!("{RULES}/validate");
    let (answer, said) = switch.admin_ask("POST", &validate, "", new);
    assert_eq!((answer.status(), &said["version"]), (200, &1.into()), "{said}");
    assert_eq!(switch.admin_ask("POST", &validate, "", "R1: { routeTo(nowhere); }\n").0.status(), 422);
    assert_eq!((switch.get("/b").server(), &*file(&switch)), ("sa", TO_A));
    assert!(!switch.said().contains("reloaded"), "{}", switch.said());
}

/// What has served can serve again, and stands in the file again.
fn versions_are_restored(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    setup.rules(TO_B).write(switch.folder());
    switch.signal("HUP");
    switch.wait_for_line("reloaded generation=2");
    assert_eq!(switch.admin_shows("/api/v1/versions/2")["why"], "SIGHUP");
    assert_eq!(switch.admin_shows("/api/v1/versions/1")["text"], TO_A);
    // Who thinks that something else serves is told what does.
    let restore = "/api/v1/versions/1/restore?why=back";
    let (serves, others) =
        (version(&switch), switch.admin_shows("/api/v1/versions/1")["rules_version"].clone());
    let (answer, said) = switch.admin_ask("POST", restore, &format!("If-Match: {others}\r\n"), "");
    assert_eq!((answer.status(), said["rules_version"].as_str()), (412, Some(&*serves)), "{said}");
    assert_eq!((switch.get("/").server(), &*file(&switch)), ("sb", TO_B));
    let (answer, said) = switch.admin_ask("POST", restore, &format!("If-Match: \"{serves}\"\r\n"), "");
    assert_eq!(answer.status(), 200, "{said}");
    assert_eq!((switch.get("/").server(), &*file(&switch)), ("sa", TO_A));
    let newest = switch.admin_shows("/api/v1/versions")["versions"][0].clone();
    assert_eq!(
        (&newest["n"], &newest["why"], &newest["serves"]),
        (&3.into(), &"restores 1: back".into(), &true.into())
    );
    for number in ["0", "4", "x", "99999999999999999999"] {
        let (answer, _) = switch.admin_ask("POST", &format!("/api/v1/versions/{number}/restore"), "", "");
        assert_eq!(answer.status(), 404, "{number}");
    }
    // Whoever says which rules they have seen under a number gets no others.
    let of = others.as_str().expect("a text");
    for (method, target) in [
        ("GET", "/api/v1/versions/2?of="),
        ("GET", "/api/v1/versions/2/diff?of="),
        ("GET", "/api/v1/versions/1/diff?from=2&from_of="),
        ("POST", "/api/v1/versions/2/restore?of="),
    ] {
        let status = |of: &str| switch.admin_ask(method, &format!("{target}{of}"), "", "").0.status();
        assert_eq!((status(of), status(&serves)), (404, 200), "{method} {target}");
    }
    assert_eq!((switch.get("/").server(), &*file(&switch)), ("sb", TO_B));
}

/// Listeners, rules with what they decided, and pools.
fn what_serves_is_shown(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let switch = two(threads, &a, &b).another_listener("bare").start();
    for _ in 0..3 {
        assert_eq!(switch.get("/").server(), "sa");
    }
    let plan = switch.admin_shows("/api/v1/plan");
    assert_eq!((&plan["generation"], &plan["listeners"][0]["name"]), (&1.into(), &"shop".into()));
    assert_eq!(plan["listeners"][0]["addresses"][0], switch.address("shop").to_string());
    assert_eq!(plan["listeners"][0]["rules"]["rules_version"], version(&switch));
    assert_eq!(plan["listeners"][1]["rules"], Value::Null);
    assert_eq!(plan["pools"][1]["servers"][0]["address"], b.address().to_string());
    let path = plan["configuration"].as_str().expect("a path");
    assert!(path.ends_with("pointsman.toml"), "{path}");
    until("hits", || (switch.admin_shows(RULES)["rules"][0]["hits"] == 3).then_some(()));
    let rules = switch.admin_shows(RULES);
    assert_eq!((&rules["text"], &rules["listeners"][0]), (&TO_A.into(), &"shop".into()));
    let (answer, _) = switch.admin_ask("GET", "/api/v1/listeners/bare/rules", "", "");
    assert_eq!(answer.status(), 409);
    let (answer, _) = switch.admin_ask("GET", "/api/v1/listeners/none/rules", "", "");
    assert_eq!(answer.status(), 404);
}

/// Where the file cannot be written the rules do not serve either.
fn what_cannot_be_written(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let switch = two(threads, &a, &b).start();
    // Not even root writes a file that is nowhere: this one has no name any more, and is read by its descriptor.
    let rules = switch.folder().join("shop.rules");
    let open = std::fs::File::open(&rules).expect("it is there");
    std::fs::remove_file(&rules).expect("it is ours");
    let descriptor = format!("/proc/{}/fd/{}", std::process::id(), open.as_raw_fd());
    std::os::unix::fs::symlink(descriptor, &rules).expect("a writable folder");
    let read = version(&switch);
    let (status, said) = publish(&switch, &read, RULES, TO_B);
    assert_eq!(status, 500, "{said}");
    assert!(said["detail"].as_str().expect("a sentence").starts_with("nothing has changed: `"), "{said}");
    assert_eq!((switch.get("/").server(), version(&switch)), ("sa", read));
}

/// Rules that are published for one listener are those of another one whose file is a link to theirs.
fn a_file_that_two_names_lead_to(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let other =
        "[[listener]]\nname = \"other\"\nbind = \"127.0.0.1:0\"\nrules = \"linked.rules\"\npool = \"a\"\n";
    let switch = two(threads, &a, &b).file("linked.rules", TO_A).raw(other).start();
    let linked = switch.folder().join("linked.rules");
    std::fs::remove_file(&linked).expect("it is there");
    std::os::unix::fs::symlink("shop.rules", &linked).expect("a writable folder");
    let servers = || {
        let other = Client::plain(switch.address("other")).get("/");
        [switch.get("/").server().to_owned(), other.server().to_owned()]
    };
    let (status, said) = publish(&switch, &version(&switch), RULES, TO_B);
    assert_eq!((status, servers()), (200, ["sb", "sb"].map(str::to_owned)), "{said}");
    let of_other = "/api/v1/listeners/other/rules";
    let version = switch.admin_shows(of_other)["rules_version"].as_str().expect("a version").to_owned();
    let (status, said) = publish(&switch, &version, of_other, TO_A);
    assert_eq!((status, &said["generation"]), (200, &3.into()), "{said}");
    assert_eq!((servers(), file(&switch).as_str()), (["sa", "sa"].map(str::to_owned), TO_A));
    assert!(std::fs::symlink_metadata(&linked).expect("it is there").is_symlink());
}
