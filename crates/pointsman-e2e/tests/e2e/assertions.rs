//! What is asserted of rules, and what is asked of them: proved, or shown by a request.

use pointsman_e2e::{ends, folder};
use serde_json::{Value, json};

const SHOP: &str = "R1: if (path under \"/admin\") { allow conflict(R2); reject(403); }
R2: if (cookie[\"paid\"] == \"1\") { routeTo(fast); }
else: routeTo(cheap.one);
";

const HOLDS: &str = "assert \"the paying never reach cheap\": never (cookie[\"paid\"] == \"1\") -> cheap;
assert \"nobody sees the office\": always (path under \"/admin/x\") -> reject;
";

const FALLS: &str = "assert \"the paying are served\": always (cookie[\"paid\"] == \"1\") -> fast;\n";

fn listener(name: &str, pool: &str) -> String {
    format!(
        "[[listener]]\nname = \"{name}\"\nbind = \"127.0.0.1:0\"\nrules = \"a.rules\"\npool = \"{pool}\"\n"
    )
}

const POOLS: &str = "[pool.fast]\nservers = [\"127.0.0.1:1\"]\n\
                     [pool.cheap]\nservers = [{ name = \"one\", address = \"127.0.0.1:2\" }]\n";

#[test]
fn check_proves_assertions() {
    let folder =
        folder(&[("good.rules", &format!("{SHOP}{HOLDS}")), ("bad.rules", &format!("{SHOP}{HOLDS}{FALLS}"))]);
    let words = ["check", "--fail-on", "warning", "good.rules"];
    let fine = ends(folder.path(), &words, 0, &["2 assertions proved"]);
    assert!(!fine.output().contains("assertion `"), "{}", fine.output());
    let said = [
        "error: the assertion `the paying are served` is refuted: `R1` rejects this request with 403",
        "GET /admin HTTP/1.1",
        "Cookie: paid=1",
        "; 2 of 3 assertions proved",
    ];
    ends(folder.path(), &["check", "--fail-on", "error", "bad.rules"], 1, &said);
    let json = ends(folder.path(), &["check", "--json", "bad.rules"], 1, &[]);
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["assertions"], json!({ "stated": 3, "proved": 2 }));
    let mut findings = json["findings"].as_array().expect("a list").iter();
    let refuted = findings.find(|finding| finding["code"] == "assertion refuted").expect("it is said");
    assert_eq!((&refuted["severity"], &refuted["rule"]), (&json!("error"), &json!("R1")), "{refuted}");
    assert_eq!(refuted["assertion"], "the paying are served");
    assert!(refuted["witness"]["request"].is_string(), "{refuted}");
}

/// What no rule decides goes to the pool of the listener; where nothing is looked at, that is said.
#[test]
fn check_proves_assertions_of_each_listener() {
    let rules = "R1: if (path == \"/a\") { routeTo(fast); }\n\
                 assert \"b is dear\": never (path == \"/b\") -> cheap;\n";
    let one = format!("{}{POOLS}", listener("one", "fast"));
    let two = format!("{}{}{POOLS}", listener("one", "fast"), listener("two", "cheap"));
    let bare = "[[listener]]\nname = \"tcp\"\nbind = \"127.0.0.1:0\"\nprotocol = \"tcp\"\nrules = \"tcp.rules\"\npool = \"fast\"\n";
    let folder = folder(&[
        ("a.rules", rules),
        (
            "tcp.rules",
            "if (srcip == 10.0.0.1) { routeTo(fast); }\nassert \"c\": never (srcip == 10.0.0.2) -> cheap;\n",
        ),
        ("one.toml", &one),
        ("two.toml", &two),
        ("tcp.toml", &format!("{bare}{POOLS}")),
    ]);
    ends(folder.path(), &["check", "one.toml"], 0, &["1 assertion proved"]);
    let said =
        ["the assertion `b is dear` is refuted", "the default pool takes it", "GET /b", "0 of 1 assertion"];
    ends(folder.path(), &["check", "two.toml"], 1, &said);
    let said =
        ["warning: it is unknown whether the assertion `c` holds", "are not looked at", "0 of 1 assertion"];
    ends(folder.path(), &["check", "tcp.toml"], 1, &said);
}

#[test]
fn questions_are_answered() {
    let unsettled = "R1: if (count(cookie[\"c\"]) > 1) { routeTo(a); }\nelse: routeTo(b);\n";
    let toml = format!("{}{POOLS}", listener("one", "fast"));
    let folder = folder(&[
        ("shop.rules", SHOP),
        ("a.rules", unsettled),
        ("wrong.rules", "R1: {"),
        ("one.toml", &toml),
    ]);
    let ask = |words: &[&str], code: i32, said: &[&str]| {
        ends(folder.path(), &[&["ask"], words].concat(), code, said)
    };
    let yes = ["yes: the final `else` sends this request to `cheap.one`", "GET / HTTP/1.1"];
    ask(&["shop.rules", "can method == \"GET\" reach cheap?"], 0, &yes);
    let no = ["no: no such request reaches `cheap`", "the final `else` leads there, and `R2` leaves none"];
    ask(&["shop.rules", "can cookie[\"paid\"] == \"1\" && path == \"/a\" reach cheap"], 1, &no);
    ask(
        &["shop.rules", "can srcport == 1 && srcport == 2 reach cheap"],
        1,
        &["no request makes the condition true"],
    );
    let question = "can all(header[\"cookie\"]) == \"d=1\" reach a?";
    let why = "what is asked of `count(cookie[\"c\"]) > 1` and `all(header[\"cookie\"]) == \"d=1\"`";
    ask(&["a.rules", question], 3, &["unknown: ", "`R1`", why]);
    let json = ask(&["--json", "a.rules", question], 3, &[]);
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let reason = &json["reasons"][0];
    assert_eq!((&reason["kind"], &reason["rules"]), (&json!("request"), &json!(["R1"])), "{json}");
    assert_eq!(reason["fields"], json!(["cookie[\"c\"]", "header[\"cookie\"]"]), "{json}");
    ask(
        &["shop.rules", "can cokie[\"paid\"] == \"1\" reach cheap?"],
        2,
        &["the question:1:5", "^^^", "cookie"],
    );
    ask(&["wrong.rules", "can path == \"/\" reach cheap?"], 2, &["wrong.rules", "^"]);
    ask(&["absent.rules", "can path == \"/\" reach cheap?"], 2, &["absent.rules"]);
    ask(&["shop.rules"], 2, &["a question in quotes"]);
    ask(
        &["--listener", "one", "shop.rules", "can path == \"/\" reach cheap?"],
        2,
        &["needs a configuration"],
    );
    ask(&["one.toml", "can path == \"/\" reach fast?"], 2, &["unknown target `a`"]);
    let json = ask(&["--json", "shop.rules", "can path == \"/\" reach cheap?"], 0, &[]);
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((&json["answer"], &json["rule"]), (&json!("yes"), &json!("else")), "{json}");
    assert_eq!(json["witness"]["request"], "GET / HTTP/1.1\nHost: example.com\n\n");
}

/// Who stays with a target counts, where a listener has clients stay: in text, in JSON and by the exit status.
#[test]
fn clients_that_stay_count() {
    let rules = "R1: if (path == \"/cart\") { allow conflict(R2); routeTo(fast, STICKY_ON_IP); }
R2: if (cookie[\"paid\"] == \"1\") { routeTo(fast, STICKY_ON(cookie[\"paid\"])); }
R3: if (path == \"/c\") { routeTo(cheap, STICKY_ON_COOKIE); }
else: routeTo(cheap.one);
";
    let shop =
        "assert \"nobody else is fast\": never (path == \"/x\" && !(cookie[\"paid\"] exists)) -> fast;\n";
    let coins =
        "assert \"who pays is fast\": always (path == \"/y\" && cookie[\"paid\"] == \"1\") -> fast;\n";
    let configuration =
        |scope: &str| format!("{}sticky_scope = \"{scope}\"\n{POOLS}", listener("shop", "cheap"));
    let folder = folder(&[
        ("a.rules", &format!("{rules}{shop}{coins}")),
        ("target.toml", &configuration("target")),
        ("listener.toml", &configuration("listener")),
        ("nobody.toml", &format!("sticky_entries_max = 0\n{}", configuration("listener"))),
    ]);
    ends(folder.path(), &["check", "--fail-on", "error", "target.toml"], 0, &["2 assertions proved"]);
    let said = ["`sticky_scope` has no effect: nobody is remembered", "2 assertions proved"];
    ends(folder.path(), &["check", "--fail-on", "error", "nobody.toml"], 0, &said);
    let said = [
        "the assertion `nobody else is fast` is refuted: the final `else` sends this request to `cheap.one`, but its \
         client stays with `fast`, where `R1` has sent it",
        "behind this of the same client:",
        "GET /cart HTTP/1.1",
        "the assertion `who pays is fast` is proved for clients that are not remembered: one that stays where `R3` sent it",
        "; 0 of 2 assertions proved",
    ];
    ends(folder.path(), &["check", "--fail-on", "error", "listener.toml"], 1, &said);
    let json = ends(folder.path(), &["check", "--json", "listener.toml"], 1, &[]);
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let mut findings = json["findings"].as_array().expect("a list").iter();
    let refuted = findings.find(|finding| finding["code"] == "assertion refuted").expect("it is said");
    assert!(
        refuted["before"]["request"].as_str().is_some_and(|text| text.starts_with("GET /cart")),
        "{refuted}"
    );
    let unknown = findings.find(|finding| finding["code"] == "assertion unknown").expect("it is said");
    assert_eq!(unknown["reasons"][0]["kind"], "remembered", "{unknown}");
    let asked = ["ask", "listener.toml", "can path == \"/x\" && !(cookie[\"paid\"] exists) reach fast?"];
    ends(folder.path(), &asked, 0, &["yes: the final `else` sends", "behind this of the same client:"]);
    ends(folder.path(), &["ask", "target.toml", asked[2]], 1, &["no: no such request"]);
    let asked = ["ask", "listener.toml", "can path == \"/y\" && cookie[\"paid\"] == \"1\" reach cheap?"];
    ends(folder.path(), &asked, 3, &["unknown: no such request of a client that is not remembered", "`R3`"]);
    ends(folder.path(), &["ask", "target.toml", asked[2]], 1, &["no: no such request"]);
    ends(folder.path(), &["diff", "listener.toml", "listener.toml"], 0, &["equal"]);
}
