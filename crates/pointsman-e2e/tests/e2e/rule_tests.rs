//! `pointsman test`: what it says of tests, and how it ends.

use pointsman_e2e::{Finished, Origin, Setup, ends, folder, pointsman, testdata};

/// What a run has said, as the vectors have it.
fn shown(finished: &Finished) -> String {
    format!("{}---- standard error\n{}---- exit status {}\n", finished.stdout, finished.stderr, finished.code)
}

#[test]
fn vectors() {
    assert!(vectors_of("rule_tests", &[]) >= 6);
}

/// What each mistake that no test notices looks like.
#[test]
fn mutants() {
    assert!(vectors_of("mutants", &["--mutate", "--fail-under", "100"]) >= 4);
}

/// Each rule set of a folder, with the tests beside it; how many there are. `UPDATE_EXPECT=1` writes what is said now.
fn vectors_of(folder: &str, options: &[&str]) -> usize {
    let folder = testdata(folder);
    let mut ran = 0;
    for entry in std::fs::read_dir(&folder).expect("a readable folder").flatten() {
        let name = entry.file_name().into_string().expect("a plain name");
        let Some(stem) = name.strip_suffix(".rules").filter(|stem| !stem.ends_with(".test")) else {
            continue;
        };
        let tests = format!("{stem}.test.rules");
        let mut words = vec!["test", &name];
        words.extend(folder.join(&tests).exists().then_some(&*tests));
        words.extend(options);
        let said = shown(&pointsman(&folder, &words));
        let expected = folder.join(format!("{stem}.out"));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&expected, said).expect("a writable folder");
        } else {
            let wanted = std::fs::read_to_string(&expected).unwrap_or_default();
            assert_eq!(said, wanted, "{name}; UPDATE_EXPECT=1 rewrites it");
        }
        ran += 1;
    }
    ran
}

/// For programs, and at most so many of them.
#[test]
fn mutants_as_json() {
    let folder = testdata("mutants");
    let of = |options: &[&str]| {
        let finished =
            pointsman(&folder, &[&["test", "borders.rules", "--mutate", "--json"], options].concat());
        let report: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
        (finished.code, report["mutants"].clone())
    };
    let (code, mutants) = of(&[]);
    assert_eq!((code, &mutants["killed"], &mutants["survived"]), (0, &5.into(), &2.into()), "{mutants}");
    let expected = serde_json::json!({
        "rules": "borders.rules", "rule": "R1", "kind": "comparison",
        "span": { "start": 8, "end": 37, "line": 1, "column": 9 },
        "was": "header[\"x-amount\"] > 52000.50", "becomes": "header[\"x-amount\"] >= 52000.50",
        "message": "no test notices `header[\"x-amount\"] >= 52000.50` in R1",
    });
    assert_eq!(mutants["survivors"][0], expected, "{mutants}");
    assert_eq!((&mutants["percent"], &mutants["not_tried"]), (&71.into(), &0.into()));
    assert_eq!(of(&["--fail-under", "71"]).0, 0);
    assert_eq!(of(&["--fail-under", "72"]).0, 1);
    let (_, some) = of(&["--mutants-max", "3"]);
    let tried = some["killed"].as_u64().zip(some["survived"].as_u64()).map(|(a, b)| a + b);
    assert_eq!((tried, &some["not_tried"]), (Some(3), &4.into()), "{some}");
    ends(&folder, &["test", "borders.rules", "--mutants-max", "3"], 2, &["--mutate"]);
}

/// The pools of a configuration are what a mutant can name, and its connections what it is asked about.
#[test]
fn mutants_of_a_configuration() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let configuration =
        "[[listener]]\nname = \"sites\"\nbind = \"127.0.0.1:0\"\nprotocol = \"tls-passthrough\"
rules = \"sites.rules\"\npool = \"other\"\n[pool.other]\nservers = [\"127.0.0.1:1\"]\n";
    let rules = "R1: if (tls.sni == \"a.example\") { routeTo(other); }
test \"a\" { request tls.sni \"a.example\" proto \"tls\" expect R1 -> other }\n";
    for (name, text) in [("pointsman.toml", configuration), ("sites.rules", rules)] {
        std::fs::write(folder.path().join(name), text).expect("a writable folder");
    }
    let words = ["test", "pointsman.toml", "--mutate", "--fail-under", "100"];
    ends(folder.path(), &words, 0, &["2 of 2 mutants killed (100 %)"]);
}

/// An assertion in a file of tests is a test: it passes where it is proved, and shows a request where it is not.
#[test]
fn assertions_in_files_of_tests() {
    let rules = "R1: if (path under \"/admin\") { routeTo(inside); }\nelse: routeTo(outside);\n";
    let good = "assert \"inside\": always (path under \"/admin/x\") -> inside;\n";
    let wrong = "assert \"outside\": never (method == \"GET\") -> inside;\n\
                 assert \"nobody\": never (path == \"/a\" && path == \"/b\") -> inside;\n";
    let folder = folder(&[("a.rules", rules), ("good.rules", good), ("wrong.rules", wrong)]);
    let said = ["ok      assert inside", "1 test: 1 passed, 0 failed"];
    ends(folder.path(), &["test", "a.rules", "good.rules"], 0, &said);
    let said = [
        "FAILED  assert outside (wrong.rules:1)",
        "the assertion `outside` is refuted",
        "          GET /admin HTTP/1.1",
        "no request makes the condition of the assertion `nobody` true",
        "3 tests: 1 passed, 2 failed",
    ];
    ends(folder.path(), &["test", "a.rules", "good.rules", "wrong.rules"], 1, &said);
}

#[test]
fn as_json() {
    let folder = testdata("rule_tests");
    let finished = pointsman(&folder, &["test", "--json", "beside.rules", "beside.test.rules"]);
    assert_eq!(finished.code, 1, "{}", finished.output());
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let expected = serde_json::json!({
        "version": 1, "passed": 3, "failed": 1, "percent": 100,
        "rule_sets": [{
            "rules": "beside.rules",
            "tests": [
                { "name": "and here", "file": "beside.rules", "line": 4, "result": "passed" },
                { "name": "a", "file": "beside.test.rules", "line": 1, "result": "passed" },
                { "name": "neither", "file": "beside.test.rules", "line": 2, "result": "passed" },
                {
                    "name": "in vain", "file": "beside.test.rules", "line": 3, "result": "failed",
                    "expected": "R2 -> b", "seen": "R1 -> a",
                    "why": "R2 is not asked: R1 decides before it",
                },
            ],
            "coverage": {
                "branches": 4, "taken": 4, "percent": 100,
                "rules": [
                    { "rule": "R1", "true": 2, "false": 2, "unknown": 0 },
                    { "rule": "R2", "true": 1, "false": 1, "unknown": 0 },
                ],
            },
        }],
    });
    assert_eq!(report, expected);
}

/// What no test could notice is no survivor.
#[test]
fn mutants_that_mean_the_same() {
    let rules =
        "R1: if (path == \"/a\") { routeTo(a); }\nR2: if (path == \"/b\") { routeTo(b); }\nelse: routeTo(c);
test \"a\" { request path \"/a\" expect R1 -> a }\ntest \"b\" { request path \"/b\" expect R2 -> b }
test \"c\" { request path \"/c\" expect else -> c }\n";
    let folder = pointsman_e2e::folder(&[("a.rules", rules)]);
    let said = ["1 more proved to decide as the rules do", "0 survived"];
    ends(folder.path(), &["test", "--mutate", "a.rules"], 0, &said);
    let json = ends(folder.path(), &["test", "--mutate", "--json", "a.rules"], 0, &[]).stdout;
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&report["mutants"]["same"], &report["mutants"]["survived"]),
        (&1.into(), &0.into()),
        "{json}"
    );
}

/// Rules by themselves may stand at a listener with TLS or without: what only the one or the other notices is not the same.
#[test]
fn mutants_of_rules_about_tls() {
    let rules = "R1: if (tls.version == \"1.3\" && path == \"/a\") { routeTo(a); }\nelse: routeTo(b);
test \"b\" { request path \"/b\" expect else -> b }\n";
    let folder = pointsman_e2e::folder(&[("a.rules", rules)]);
    let json = ends(folder.path(), &["test", "--mutate", "--json", "a.rules"], 0, &[]).stdout;
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let missing = |survivor: &serde_json::Value| survivor["kind"] == "rule" && survivor["rule"] == "R1";
    let survivors = report["mutants"]["survivors"].as_array().expect("a list");
    assert!(survivors.iter().any(missing) && report["mutants"]["same"] == 0, "{json}");
}

/// Too little is taken, though all pass.
#[test]
fn a_share_is_wanted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rules = "R1: if (path == \"/a\") { routeTo(a); }\nR2: if (path == \"/b\") { routeTo(b); }
test \"a\" { request path \"/a\" expect R1 -> a }\ntest \"c\" { request path \"/c\" expect default }\n";
    std::fs::write(folder.path().join("a.rules"), rules).expect("a writable folder");
    ends(
        folder.path(),
        &["test", "a.rules", "--fail-under", "75"],
        0,
        &["3 of 4 branches (75 %)", "R2  never true"],
    );
    ends(folder.path(), &["test", "a.rules", "--fail-under", "76"], 1, &["error: 75 %", "76 %"]);
    ends(folder.path(), &["test", "a.rules", "--fail-under", "101"], 2, &["101"]);
    ends(folder.path(), &["test", "a.rules", "--listener", "web"], 2, &["--listener"]);
    ends(folder.path(), &["test", "absent.rules"], 2, &["absent.rules"]);
    ends(folder.path(), &["test", "a.rules", "absent.rules"], 2, &["absent.rules"]);
    ends(folder.path(), &["test"], 2, &["RULES"]);
}

/// Of a configuration: its pools, its form of paths, and the rules of each listener.
#[test]
fn of_a_configuration() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rules = "R1: if (path == \"/a/b\") { routeTo(standard); }
test \"slashes are one\" { request url \"/a//b\" path \"/a/b\" expect R1 -> standard }\n";
    let setup = Setup::new(1).pool_at("standard", "", &[("s", Origin::dead_address())]);
    setup.clone().rules(rules).write(folder.path());
    ends(folder.path(), &["test", "pointsman.toml"], 1, &["`path` is never `/a/b` here", "`/a//b`"]);
    setup.clone().listener("merge_slashes = true").rules(rules).write(folder.path());
    ends(folder.path(), &["test", "pointsman.toml"], 0, &["1 passed"]);
    ends(folder.path(), &["test", "pointsman.toml", "--listener", "absent"], 2, &["absent"]);

    std::fs::write(folder.path().join("more.rules"), "test \"x\" { request path \"/\" expect R1 -> s }\n")
        .expect("a writable folder");
    ends(folder.path(), &["test", "pointsman.toml", "more.rules"], 2, &["no rule sends to `s`", "^"]);
    setup.rules(&rules.replace("standard", "standrd")).write(folder.path());
    ends(folder.path(), &["test", "pointsman.toml"], 2, &["standrd", "standard", "^"]);
}

/// A listener sees what comes to its sockets, and believes whom it is told to.
#[test]
fn what_never_comes_to_a_listener() {
    let rules = "R1: if (clientip == 192.0.2.1) { reject(); }\nelse: routeTo(standard);\n";
    let both = "bind = [\"127.0.0.1:8080\", \"127.0.0.1:8081\"]";
    let of_unix = "bind = \"unix:shop.sock\"";
    let behind = "proxy_protocol = \"required\"\ntrusted_proxies = [\"10.0.0.0/8\"]";
    let of_lines = "trusted_proxies = [\"10.0.0.0/8\"]";
    let rows: [(&str, &str, &[&str]); 15] = [
        (
            both,
            "srcip ::1",
            &["`srcip` is never `::1` here", "help: both ends of a connection are of one family"],
        ),
        (both, "dstport 8081", &[]),
        (both, "dstport 80", &["`dstport` is never `80` here", "help: it is `8080` or `8081`", "^^^^^^^"]),
        (both, "srcip absent", &["`srcip` is never absent here"]),
        (both, "clientip 192.0.2.1 srcip 192.0.2.1", &["R1 -> reject"]),
        (
            both,
            "srcip 192.0.2.2 clientip 192.0.2.1",
            &[
                "`clientip` is never `192.0.2.1` where `srcip` is `192.0.2.2`",
                "help: it is `192.0.2.2`",
                "^^^^^^^^",
            ],
        ),
        (both, "header[\"x-forwarded-for\"] \"192.0.2.1\"", &["`trusted_proxies` are believed", "^^^"]),
        (of_unix, "srcip absent clientip absent", &[]),
        (of_unix, "srcip 192.0.2.1", &["`srcip` is never `192.0.2.1` here", "help: it is absent", "^^^^^"]),
        (of_unix, "clientip 192.0.2.1", &["`clientip` is never", "help: it is absent"]),
        (behind, "srcip 192.0.2.1", &["`srcip` is never", "nobody in but its `trusted_proxies`", "^^^^^"]),
        (behind, "clientip 192.0.2.1", &["R1 -> reject"]),
        (of_lines, "srcip 10.1.1.1 clientip 192.0.2.1", &["R1 -> reject"]),
        (of_lines, "srcip 192.0.2.2 clientip 192.0.2.1", &["`clientip` is never `192.0.2.1` where"]),
        (of_lines, "header[\"x-forwarded-for\"] \"192.0.2.1\" clientip 192.0.2.1", &["R1 -> reject"]),
    ];
    for (keys, said, expected) in rows {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let rules = format!("{rules}test \"t\" {{ request {said} expect else -> standard }}\n");
        let setup = Setup::new(1).pool_at("standard", "", &[("s", Origin::dead_address())]);
        setup.listener(keys).rules(&rules).write(folder.path());
        let code = i32::from(!expected.is_empty());
        ends(folder.path(), &["test", "pointsman.toml"], code, expected);
    }
}

/// Connections that are passed on are described by what their rules know of them.
#[test]
fn of_connections() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let configuration =
        "[[listener]]\nname = \"sites\"\nbind = \"127.0.0.1:0\"\nprotocol = \"tls-passthrough\"
rules = \"sites.rules\"\npool = \"other\"\n[[listener]]\nname = \"mail\"\nbind = \"127.0.0.1:0\"
protocol = \"tcp\"\nrules = \"mail.rules\"\npool = \"other\"\n[pool.other]\nservers = [\"127.0.0.1:1\"]\n";
    let sites = "R1: if (tls.sni == \"a.example\" && tls.alpn == \"h2\") { routeTo(other); }
test \"a\" { request tls.sni \"a.example\" tls.alpn \"http/1.1\" tls.alpn \"h2\" proto \"tls\" expect R1 -> other }
test \"no name\" { request tls.alpn \"h2\" expect default }\n";
    let mail = "R1: if (srcip in [10.0.0.0/8]) { reject(); }
test \"inside\" { request srcip 10.0.0.1 proto \"tcp\" expect R1 -> reject }\n";
    for (name, text) in [("pointsman.toml", configuration), ("sites.rules", sites), ("mail.rules", mail)] {
        std::fs::write(folder.path().join(name), text).expect("a writable folder");
    }
    ends(folder.path(), &["test", "pointsman.toml"], 0, &["3 passed", "sites.rules", "mail.rules"]);
    ends(folder.path(), &["test", "pointsman.toml", "--listener", "mail"], 0, &["1 passed"]);
    let words = ["test", "pointsman.toml", "mail.rules"];
    ends(folder.path(), &words, 2, &["several rule sets", "--listener NAME"]);
}
