//! What two texts are said to be.

use std::ffi::OsString;

use pointsman_rules::Colour;

use super::{Options, compared};
use crate::replay::stand::both;

fn said(old: &str, new: &str) -> (u8, String, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a writable folder");
        path
    };
    let (old, new) = (path("old.rules", old), path("new.rules", new));
    let (old, new) = both(&old, &new, None, Colour::Never).expect("rules");
    let report = compared(&old, &new);
    (report.status(), report.text(Colour::Never), report.summary())
}

#[test]
fn differences_are_shown_with_a_request() {
    let old = "R1: if (path under \"/api\") { tag(api); routeTo(a); }\nelse: routeTo(b);\n";
    let new = "R1: if (path under \"/api\") { tag(api); routeTo(c); }\nelse: routeTo(b);\n";
    let (status, text, summary) = said(old, new);
    assert_eq!((status, summary.as_str()), (1, "different: 1 way"), "{text}");
    let expected = "R1 -> tag(api); routeTo(a);\n  becomes R1 -> tag(api); routeTo(c);\n  for instance:\n    \
                    GET /api HTTP/1.1\n    Host: example.com\n\n";
    assert_eq!(text, expected);
}

#[test]
fn equal_is_what_is_proved() {
    let rules = "R1: if (path under \"/api\") { routeTo(a); }\n";
    assert_eq!(said(rules, rules), (0, String::new(), "equal: every request is decided alike".to_owned()));
    let other = "X: if (!(!(path under \"/api\"))) { routeTo(a); }\n";
    assert_eq!(said(rules, other).0, 0);
}

/// Where no request was found, and none is proved not to be, the notes say of which nothing is known.
#[test]
fn what_may_differ_all_the_same_is_named() {
    let rules = "R0: if (host == \"x\") { routeTo(a); }\nR1: if (host == \"x\" && json.a == \"1\") { routeTo(b); }\n\
                 R2: if (json.c == \"1\") { routeTo(c); }\n";
    let (status, text, summary) = said(rules, &rules.replace("json.a", "json.b"));
    assert_eq!(status, 3);
    assert!(
        text.starts_with("note: they need not look into the same bodies") && text.contains("stands twice"),
        "{text}"
    );
    assert_eq!(summary, "not settled: no way was found, and the notes say what may differ all the same");
}

/// Two configurations with the same rules, which do not do the same with requests.
#[test]
fn settings_that_differ_are_shown() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a writable folder");
        path
    };
    path("a.rules", "R1: if (path under \"/api\") { routeTo(a); }\n");
    let listener =
        "[[listener]]\nname = \"shop\"\nbind = \"127.0.0.1:0\"\nrules = \"a.rules\"\npool = \"a\"\n";
    let pools = "[pool.a]\nservers = [\"127.0.0.1:1\"]\n[pool.spare]\nservers = [\"127.0.0.1:2\"]\n";
    let old = path("old.toml", &format!("{listener}{pools}"));
    let check = |new: &str, status: u8, said: &str, summary: &str| {
        let new = path("new.toml", new);
        let (old, new) = both(&old, &new, None, Colour::Never).expect("configurations");
        let report = compared(&old, &new);
        assert_eq!(
            (report.status(), &*report.text(Colour::Never), &*report.summary()),
            (status, said, summary)
        );
        assert_eq!(report.to_json()["equal"], status == 0);
        report.to_json()["settings"].clone()
    };
    let equal = "equal: every request is decided alike";
    let unused = pools.replace("127.0.0.1:2", "127.0.0.1:3");
    check(&format!("threads = 1\n{listener}limits.body_bytes_max = 0\n{unused}"), 0, "", equal);
    let settings = check(
        &format!("{listener}limits.body_bytes_max = 1000\n{pools}"),
        1,
        "settings that differ\n  listener shop: limits.body_bytes_max: 0 -> 1000\n",
        "different: 1 setting",
    );
    let expected = serde_json::json!([{
        "of": "listener", "name": "shop", "key": "limits.body_bytes_max", "old": "0", "new": "1000",
    }]);
    assert_eq!(settings, expected);
    // Another default pool takes what no rule decides, and nothing else.
    check(
        &format!("{}{pools}", listener.replace("pool = \"a\"", "pool = \"spare\"")),
        1,
        "listener shop\n\n(default) -> the default pool a\n  becomes (default) -> the default pool spare\n  for \
         instance:\n    GET / HTTP/1.1\n    Host: example.com\n\n",
        "different: 1 way",
    );
    // Where requests are read otherwise the note stays: these were compared as the new one reads them.
    check(
        &format!("{listener}merge_slashes = true\n{}", pools.replace("127.0.0.1:1", "127.0.0.1:4")),
        1,
        "listener shop\n\nnote: of the listener `shop`: it reads requests otherwise than before; they are compared as it \
         reads them now\nsettings that differ\n  listener shop: merge_slashes: by the rules -> true\n  pool a: \
         servers[127.0.0.1:1]: set -> none\n  pool a: servers[127.0.0.1:4]: none -> set\n",
        "different: 3 settings",
    );
}

/// Which names stand in rules is not how requests are read; a field that reads like one of them may be taken away for it.
#[test]
fn names_of_fields_are_told_apart_where_odd_ones_stay() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a writable folder");
        path
    };
    let configuration = "[[listener]]\nname = \"shop\"\nbind = \"127.0.0.1:0\"\nrules = \"a.rules\"\npool = \"a\"\n\
        odd_names = \"keep\"\nencoded_slash = \"keep\"\nmerge_slashes = false\n\
        [pool.a]\nservers = [\"127.0.0.1:1\"]\n[limit.odd]\nper_second = 5\nkey = 'header[\"x-a\"]'\n\
        [limit.plain]\nper_second = 5\nkey = 'header[\"xa\"]'\n";
    let rules = |then: &str| format!("R1: if (path == \"/a\" && path == \"/b\") {{ {then} }}\n");
    path("a.rules", &rules("tag(a);"));
    let old = path("old.toml", configuration);
    let equal = "equal: every request is decided alike";
    let open = "not settled: no way was found, and the notes say what may differ all the same";
    for (then, summary) in [
        ("setHeader(\"xa\", \"1\");", equal),
        ("limitRate(plain);", equal),
        ("setHeader(\"x-a\", \"1\");", open),
        ("limitRate(odd);", open),
    ] {
        path("b.rules", &rules(then));
        let new = path("new.toml", &configuration.replace("a.rules", "b.rules"));
        let (old, new) = both(&old, &new, None, Colour::Never).expect("configurations");
        let report = compared(&old, &new);
        assert_eq!(report.summary(), summary, "{then}");
        let text = report.text(Colour::Never);
        assert!(!text.contains("reads requests otherwise"), "{then}: {text}");
        assert_eq!(text.contains("a field with an odd name"), summary == open, "{then}: {text}");
    }
    // The class has gone with the rule that named it.
    path("c.rules", &rules("limitRate(odd);"));
    let limited = path("limited.toml", &configuration.replace("a.rules", "c.rules"));
    let free = path("free.toml", configuration.split("[limit.odd]").next().expect("a part"));
    for (one, other) in [(&limited, &free), (&free, &limited)] {
        let (one, other) = both(one, other, None, Colour::Never).expect("configurations");
        assert_eq!(compared(&one, &other).summary(), open);
    }
}

/// Rules that stand alone take the place of those of one listener, and it must be known which.
#[test]
fn rules_beside_a_configuration_need_a_listener() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a writable folder");
        path
    };
    let rules = path("a.rules", "else: routeTo(a);\n");
    let listener = |name: &str, keys: &str| {
        format!("[[listener]]\nname = \"{name}\"\nbind = \"127.0.0.1:0\"\npool = \"a\"\n{keys}")
    };
    let pool = "[pool.a]\nservers = [\"127.0.0.1:1\"]\n";
    let trouble = |listeners: &[String], wanted: Option<&str>| {
        let configuration = path("a.toml", &format!("{}{pool}", listeners.concat()));
        both(&rules, &configuration, wanted, Colour::Never).err()
    };
    let (one, two) = (listener("one", ""), listener("two", ""));
    assert_eq!(trouble(std::slice::from_ref(&one), None), None);
    assert_eq!(trouble(&[one.clone(), two.clone()], Some("two")), None);
    let said = trouble(&[one, two], None).expect("either");
    assert!(said.ends_with("help: `--listener NAME` says it; there are `one`, `two`\n"), "{said}");
    let raw = listener("raw", "protocol = \"tcp\"\n");
    let said = [None, Some("raw")].map(|wanted| trouble(std::slice::from_ref(&raw), wanted).expect("none"));
    assert!(said[0].contains("none of the configuration reads any"), "{}", said[0]);
    assert!(said[1].contains("of the listener `raw`\nhelp: it reads no requests"), "{}", said[1]);
}

#[test]
fn options_are_read() {
    let read = |words: &[&str]| Options::read(words.iter().map(OsString::from).collect());
    let options =
        read(&["a.toml", "--json", "b.rules", "--listener", "shop"]).expect("good").expect("no help");
    assert_eq!((options.json, options.listener.as_deref()), (true, Some("shop")));
    assert!(read(&["--help"]).expect("good").is_none());
    for bad in
        [&[][..], &["a"], &["a", "b", "c"], &["-", "-"], &["a", "b", "--listener", "x"], &["--old", "a", "b"]]
    {
        assert!(read(bad).is_err(), "{bad:?}");
    }
}

/// What is not settled says why, in both forms.
#[test]
fn what_is_unknown_says_why() {
    let old = "R1: if (count(cookie[\"c\"]) > 1) { routeTo(a); }\nelse: routeTo(b);\n";
    let new = "R1: if (count(cookie[\"c\"]) > 1 && !(all(header[\"cookie\"]) == \"d=1\")) { routeTo(a); }\nelse: routeTo(b);\n";
    let (status, text, summary) = said(old, new);
    assert_eq!((status, summary.as_str()), (3, "not settled: 0 ways, 1 unknown"), "{text}");
    let line = "  R1 -> else: no request was found whose fields fit what is asked of `count(cookie[\"c\"]) > 1` and \
                `all(header[\"cookie\"]) == \"d=1\"`, nor that there is none\n";
    assert!(text.contains(line), "{text}");
}
