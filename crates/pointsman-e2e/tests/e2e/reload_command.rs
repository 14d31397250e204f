//! `pointsman reload`: the running switch reads its files again, or says what that would change.

use pointsman_e2e::{ADMIN_TOKEN, Origin, Setup, Switch, ends, folder};

pointsman_e2e::for_threads!(
    new_rules_serve,
    bad_files_change_nothing,
    a_dry_run_says_what_differs,
    a_dry_run_of_bad_files,
    who_cannot_be_asked
);

const TO_B: &str = "R1: { routeTo(b); }";

fn two(threads: usize, a: &Origin, b: &Origin) -> Setup {
    Setup::new(threads).rules("R1: { routeTo(a); }").pool("a", &[a]).pool("b", &[b]).with_token()
}

/// The command and its answer, from the folder of the switch.
#[track_caller]
fn reload(switch: &Switch, words: &[&str], code: i32, said: &[&str]) -> pointsman_e2e::Finished {
    ends(switch.folder(), &[&["reload"], words].concat(), code, said)
}

/// When the command ends the new rules serve, and it is kept who did it.
fn new_rules_serve(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    assert_eq!(switch.get("/").server(), "sa");
    setup.clone().rules(TO_B).write(switch.folder());
    assert_eq!(reload(&switch, &[], 0, &[]).stdout, "reloaded generation=2");
    assert_eq!(switch.get("/").server(), "sb");
    let line = switch.wait_for_line("audit who=deploy from=127.0.0.1:");
    assert!(
        line.ends_with("method=POST target=\"/api/v1/reload?dry_run=false&colour=false\" status=200"),
        "{line}"
    );
    let answer = reload(&switch, &["--json"], 0, &[]).stdout;
    let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!((&answer["generation"], &answer["version"]), (&3.into(), &1.into()));
    // What waits for a restart is said, and so is what is odd.
    setup.rules(TO_B).top("").raw("[pool.idle]\nservers = [\"127.0.0.1:1\"]").write(switch.folder());
    let text = std::fs::read_to_string(switch.folder().join("pointsman.toml")).expect("it is there");
    let text = format!("own_descriptor_tables = true\n{text}");
    std::fs::write(switch.folder().join("pointsman.toml"), text).expect("a writable folder");
    let waits = "the new value of `own_descriptor_tables`";
    let said = ["reloaded generation=4", "nothing is sent to the pool `idle`", waits];
    reload(&switch, &[], 0, &said);
}

/// All that is wrong is shown with its place, and everything goes on.
fn bad_files_change_nothing(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    let bad = "R1: { routeTo(nowhere); }\nR2: if (pth == \"/\") { routeTo(b); }";
    setup.clone().rules(bad).write(switch.folder());
    let said = ["shop.rules:1:", "`nowhere`", "`pth`", "^^^", "nothing has changed"];
    let finished = reload(&switch, &[], 2, &said);
    assert_eq!(finished.stdout, "");
    let finished = reload(&switch, &["--json"], 2, &[]);
    let problem: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let places: Vec<_> =
        problem["findings"].as_array().expect("a list").iter().map(|found| &found["line"]).collect();
    assert_eq!(places, [1, 2]);
    assert_eq!(switch.get("/").server(), "sa");
    // The command finds the switch also where the configuration itself is torn.
    let torn = format!("{}\n[pool.c\nservers = 1\n", setup.text());
    std::fs::write(switch.folder().join("pointsman.toml"), torn).expect("a writable folder");
    reload(&switch, &[], 2, &["pointsman.toml:", "nothing has changed"]);
    setup.rules(TO_B).write(switch.folder());
    reload(&switch, &[], 0, &["reloaded generation=2"]);
    assert_eq!(switch.get("/").server(), "sb");
}

/// It says what `pointsman diff` says of what serves and what stands on disk, and changes nothing.
fn a_dry_run_says_what_differs(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    let before = folder(&[]);
    setup.write(before.path());
    let equal = reload(&switch, &["--dry-run"], 0, &[]);
    assert_eq!(equal.stdout, "");
    assert!(equal.stderr.ends_with("equal: every request is decided alike"), "{}", equal.stderr);
    let new = setup.rules("NEW: if (path == \"/b\") { routeTo(b); }\nR1: { routeTo(a); }");
    new.clone().another_listener("second").pool("c", &[&a]).write(switch.folder());
    let old = before.path().join("pointsman.toml").display().to_string();
    for json in [&[][..], &["--json"]] {
        let differs = reload(&switch, &[&["--dry-run"], json].concat(), 1, &[]);
        let expected =
            ends(switch.folder(), &[&["diff", &old, "pointsman.toml"], json].concat(), 1, &["/b", "second"]);
        assert_eq!(differs.stdout, expected.stdout);
        assert!(differs.stderr.ends_with(&expected.stderr), "{}", differs.stderr);
    }
    assert_eq!(switch.get("/b").server(), "sa");
    // What serves is compared, and not what the files held when they were read last.
    new.write(switch.folder());
    reload(&switch, &[], 0, &["reloaded generation=2"]);
    assert_eq!(switch.get("/b").server(), "sb");
    reload(&switch, &["--dry-run"], 0, &["equal"]);
    assert!(!switch.said().contains("generation=3"), "{}", switch.said());
}

/// What cannot be read cannot be compared.
fn a_dry_run_of_bad_files(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = two(threads, &a, &b);
    let switch = setup.start();
    setup.rules("R1: { routeTo(nowhere); }").write(switch.folder());
    let finished = reload(&switch, &["--dry-run"], 2, &["shop.rules:1:", "^^^", "cannot be used"]);
    assert_eq!(finished.stdout, "");
    assert!(!switch.said().contains("reload refused"), "{}", switch.said());
}

/// Each way in which nobody can be asked says what to do about it.
fn who_cannot_be_asked(threads: usize) {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).pool("standard", &[&origin]);
    let check = |admin: &str, said: &[&str]| {
        let files = [("pointsman.toml", admin), ("good.token", ADMIN_TOKEN), ("bad.token", "short")];
        ends(folder(&files).path(), &["reload"], 2, &[said, &["help: "]].concat());
    };
    check("", &["`pointsman.toml` has no `[admin]`", "SIGHUP"]);
    check("[admin]\nbind = \"127.0.0.1:9\"", &["has no `token_file`", "openssl rand -hex 32"]);
    check("[admin]\nbind = \"127.0.0.1:0\"\ntoken_file = \"good.token\"", &["port 0 is any free port"]);
    check(
        "[admin]\nbind = \"127.0.0.1:9\"\ntoken_file = \"bad.token\"",
        &["line 1 has a token of 5 letters"],
    );
    check("[admin]\nbind = \"127.0.0.1:9\"\ntoken_file = \"no.token\"", &["cannot read `no.token`"]);
    let nobody = Origin::free_address();
    let admin = |address| format!("[admin]\nbind = \"{address}\"\ntoken_file = \"good.token\"");
    check(&admin(nobody), &["cannot be asked", "refused"]);
    check(&admin(origin.address()), &["is no switch"]);
    let switch = setup.with_token().start();
    let wrong = admin(switch.admin());
    let files = [("pointsman.toml", &*wrong), ("good.token", "000102030405060708090a0b0c0d0e0f")];
    ends(folder(&files).path(), &["reload"], 2, &["does not know the token", "SIGHUP"]);
    // Another configuration finds the same switch, and it is said which one it reads.
    let files = [("pointsman.toml", &*wrong), ("good.token", ADMIN_TOKEN)];
    ends(folder(&files).path(), &["reload"], 0, &["note: the switch reads `", "reloaded generation=2"]);
    ends(folder(&[]).path(), &["reload"], 2, &["cannot read `pointsman.toml`", "--config FILE"]);
}
