//! What two texts of a configuration are said to differ in.

use std::fs;

use super::*;

const BEFORE: &str = r#"
[[listener]]
name = "shop"
bind = "127.0.0.1:0"
rules = "shop.rules"
pool = "standard"

[[listener]]
name = "other"
bind = "127.0.0.1:0"
pool = "unused"

[pool.standard]
servers = ["127.0.0.1:1", { name = "big", address = "127.0.0.1:2", weight = 3 }]

[pool.fast]
servers = ["127.0.0.1:3"]

[pool.unused]
servers = ["127.0.0.1:4"]

[limit.logins]
per_minute = 5

[limit.others]
per_minute = 5
"#;

const RULES: &str = "R1: if (path == \"/\") { limitRate(logins); routeTo(fast); }\n";

fn loaded(text: &str) -> Plan {
    match Plan::from_texts(text, RULES) {
        Ok(loaded) => loaded.plan,
        Err(problems) => panic!("{text}\n{problems:?}"),
    }
}

/// What is otherwise when one text of the configuration stands in the place of another.
fn check(listener: Option<&str>, was: &str, is: &str, expected: &[&str]) {
    assert!(BEFORE.contains(was), "{was}");
    let [old, new] = [BEFORE.to_owned(), BEFORE.replacen(was, is, 1)].map(|text| loaded(&text));
    let changed =
        Settings::changed(&old.settings, &new.settings, |name| listener.is_none_or(|only| only == name));
    let said: Vec<_> = changed.iter().map(|changed| format!("{}: {changed}", changed.owner)).collect();
    assert_eq!(said, expected, "{is}");
}

#[test]
fn what_is_set_otherwise_is_found() {
    let rules = "rules = \"shop.rules\"";
    let with = |more: &str| format!("{rules}\n{more}");
    check(
        None,
        rules,
        &with("limits.body_bytes_max = 1_000\nlimits.head_bytes_max = 0x4000\nmerge_slashes = true"),
        &[
            "listener shop: limits.body_bytes_max: 0 -> 1000",
            "listener shop: merge_slashes: by the rules -> true",
        ],
    );
    check(
        None,
        rules,
        &with("body_kind = \"sniff\"\nupgrades = []\ntrusted_proxies = []"),
        &["listener shop: body_kind: rules -> sniff", "listener shop: upgrades: [\"websocket\"] -> []"],
    );
    check(
        None,
        "name = \"shop\"\nbind = \"127.0.0.1:0\"",
        "name = \"shop\"\nbind = [\"127.0.0.1:0\", \"[::1]:0\"]",
        &["listener shop: bind: [\"127.0.0.1:0\"] -> [\"127.0.0.1:0\", \"[::1]:0\"]"],
    );
    check(
        None,
        "weight = 3 }]",
        "weight = 4 }, \"127.0.0.1:5\"]\nhealth = {}\nbalance = \"least-connections\"\ntries_max = 2",
        &[
            "pool standard: balance: round-robin -> least-connections",
            "pool standard: health: servers are not probed -> set",
            "pool standard: servers[127.0.0.1:5]: none -> set",
            "pool standard: servers[big].weight: 3 -> 4",
            "pool standard: tries_max: 3 -> 2",
        ],
    );
    check(
        None,
        "weight = 3 }]",
        "weight = 3 }, { name = \"s9\", address = \"127.0.0.1:5\" }]",
        &[
            "pool standard: servers[s9]: none -> set",
            "pool standard: servers[s9].address: none -> \"127.0.0.1:5\"",
            "pool standard: servers[s9].name: the address -> \"s9\"",
        ],
    );
    check(None, "per_minute = 5", "per_minute = 6", &["limit logins: per_minute: 5 -> 6"]);
    check(
        None,
        "\n[[listener]]",
        "buffer_bytes_max = 2_000_000\nthreads = 1\nwatch_ms = 5\n\n[[listener]]",
        &["process: buffer_bytes_max: half of the memory, see above -> 2000000"],
    );
}

/// Values that nobody sees are held against each other all the same.
#[test]
fn secrets_are_not_shown() {
    let [one, other] = ["0", "1"].map(|digit| format!("sticky_key = \"{}\"\n{BEFORE}", digit.repeat(32)));
    let [one, other] = [one, other].map(|text| loaded(&text));
    let changed = Settings::changed(&one.settings, &other.settings, |_| true);
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].to_string(), "sticky_key: set -> set with other content");
    assert_eq!(Settings::changed(&one.settings, &one.settings, |_| true), []);
}

/// How something is spelled does not matter, nor a pool that no wanted listener uses, nor what the rules are compared for.
#[test]
fn what_has_no_part_is_left_out() {
    check(None, "rules = \"shop.rules\"", "rules = \"other.rules\"\nlimits.head_bytes_max = 16384", &[]);
    check(None, "bind = \"127.0.0.1:0\"", "bind = [\"127.0.0.1:0\"]\npipeline = \"hold\"", &[]);
    check(None, "pool = \"standard\"", "pool = \"fast\"", &[]);
    check(None, "[limit.others]\nper_minute = 5", "[limit.others]\nper_minute = 7", &[]);
    check(Some("shop"), "127.0.0.1:4", "127.0.0.1:5", &[]);
    let gone = "pool unused: servers[127.0.0.1:4]: set -> none";
    check(
        Some("other"),
        "127.0.0.1:4",
        "127.0.0.1:5",
        &[gone, "pool unused: servers[127.0.0.1:5]: none -> set"],
    );
    check(Some("other"), "rules = \"shop.rules\"", "rules = \"shop.rules\"\nmerge_slashes = true", &[]);
}

/// A file counts by what is in it.
#[test]
fn files_are_compared_by_their_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let schema = ROOT.key("listener").and_then(|key| key.kind.table()).expect("it is there");
    let read = |text: &str| {
        let files: Vec<_> = ["a.pem", "b.pem"].iter().map(|name| WatchedFile::look(&path(name))).collect();
        let contents = files.iter().filter_map(|file| Some((file.path(), file.digest()?))).collect();
        let mut reading = Reading { set: BTreeMap::new(), contents, folder: folder.path() };
        let table = DeTable::parse(text).expect("TOML");
        reading.table(schema, table.get_ref(), "");
        reading.take()
    };
    fs::write(path("a.pem"), "one").expect("a writable folder");
    fs::write(path("b.pem"), "one").expect("a writable folder");
    let told = |old: &BTreeMap<String, Set>, new: &BTreeMap<String, Set>| {
        Set::told_apart(old.get("tls.certificate"), new.get("tls.certificate"))
    };
    let [a, b] = ["a", "b"].map(|name| read(&format!("tls = {{ certificate = \"{name}.pem\" }}")));
    assert_eq!(told(&a, &b), None);
    fs::write(path("a.pem"), "two").expect("a writable folder");
    let later = read("tls = { certificate = \"a.pem\" }");
    let seen = told(&a, &later).expect("another file");
    assert_eq!(seen, ("\"a.pem\"".to_owned(), "\"a.pem\" with other content".to_owned()));
    assert_eq!(told(&b, &later).expect("another file").1, "\"a.pem\"");
}

/// A key that is renamed is renamed here, too.
#[test]
fn the_keys_that_are_left_out_are_there() {
    let listener = ROOT.key("listener").and_then(|key| key.kind.table()).expect("it is there");
    assert!(OF_THE_PROCESS_ALONE.iter().chain(SECRET).all(|name| ROOT.key(name).is_some()));
    assert!(OF_MEANING.iter().all(|name| listener.key(name).is_some()));
}
