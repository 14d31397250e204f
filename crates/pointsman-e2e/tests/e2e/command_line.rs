//! `check`, `fmt`, `explain` and wrong use: what they print and how they end.

use std::path::Path;
use std::process::{Command, Stdio};

use pointsman_e2e::{Lines, Origin, Setup, ends, folder, pointsman, program};

const GOOD: &str = "R1: if (path under \"/a\") { routeTo(fast); }\nelse: routeTo(standard);\n";
const BAD: &str = "R1: if (pth == \"/\") { routeTo(fast); }\nR2: { goto R1; }\n";
const OLD: &str = "If (match(url, “xmlprocess.pl”)) { return route_to(\"fast\", NONSTICKY); } # why\n";

/// Rules alone: targets are taken as given.
#[test]
fn check_rules() {
    let folder = folder(&[("good.rules", GOOD), ("bad.rules", BAD)]);
    ends(folder.path(), &["check", "good.rules"], 0, &[]);
    ends(folder.path(), &["check", "bad.rules"], 1, &["bad.rules", "pth", "path", "^", "goto", "R1"]);
    ends(folder.path(), &["check", "good.rules", "bad.rules"], 1, &["bad.rules"]);
    ends(folder.path(), &["check", "absent.rules"], 2, &["absent.rules"]);
    ends(folder.path(), &["check"], 2, &[]);
}

/// Of what rules mean, only what is about one of them.
#[test]
fn check_of_one_rule() {
    let rules = "R1: if (path under \"/a\") { routeTo(a); }
R2: if (method == \"PUT\") { routeTo(b); }
R3: if (path under \"/a/b\") { routeTo(c); }
R4: { routeTo(d); }\n";
    let folder = folder(&[("a.rules", rules), ("bad.rules", BAD)]);
    let (conflict, unreachable) = ("`R2` would do something else", "makes its condition true");
    for (label, [conflicts, is_hidden]) in
        [("R2", [true, false]), ("R3", [false, true]), ("R4", [false, false])]
    {
        let finished = pointsman(folder.path(), &["check", "--rule", label, "a.rules"]);
        let told = [conflict, unreachable].map(|word| finished.stdout.contains(word));
        assert_eq!(told, [conflicts, is_hidden], "{label}\n{}", finished.output());
        assert_eq!(finished.code, i32::from(conflicts || is_hidden), "{label}\n{}", finished.output());
    }
    ends(folder.path(), &["check", "--rule", "R2", "--rule", "R3", "a.rules"], 1, &[conflict, unreachable]);
    ends(
        folder.path(),
        &["check", "--rule", "R22", "a.rules"],
        2,
        &["error: no rule `R22`; did you mean `R2`?"],
    );
    ends(folder.path(), &["check", "--rule", "R2", "bad.rules"], 1, &["pth"]);
}

/// A warning is a finding, unless only errors count.
#[test]
fn check_warnings() {
    let folder =
        folder(&[("warns.rules", "R1: if (url == \"*jpg\") { routeTo(images); }\nelse: routeTo(a);\n")]);
    ends(folder.path(), &["check", "warns.rules"], 1, &["like", "^"]);
    ends(folder.path(), &["check", "--fail-on", "error", "warns.rules"], 0, &["like"]);
}

#[test]
fn check_json() {
    let folder = folder(&[("good.rules", GOOD), ("bad.rules", BAD)]);
    let fine = ends(folder.path(), &["check", "--json", "good.rules"], 0, &[]);
    let fine: serde_json::Value = serde_json::from_str(&fine.stdout).expect("JSON");
    assert_eq!(fine["version"], 1);
    let gap = &fine["findings"][0];
    assert_eq!((fine["findings"].as_array().map(Vec::len), &gap["code"]), (Some(1), &"gap".into()), "{fine}");
    assert_eq!((&gap["severity"], &gap["rule"]), (&"note".into(), &"else".into()), "{fine}");
    let request = gap["witness"]["request"].as_str().expect("a text");
    assert!(request.starts_with("GET / HTTP/1.1\n"), "{request}");
    let bad = ends(folder.path(), &["check", "--json", "bad.rules"], 1, &[]);
    let bad: serde_json::Value = serde_json::from_str(&bad.stdout).expect("JSON");
    let findings = bad["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), 2, "{bad}");
    for finding in findings {
        assert_eq!(finding["severity"], "error", "{finding}");
        assert!(finding["message"].is_string() && !finding["span"].is_null(), "{finding}");
    }
}

/// What rules mean together: what is never reached, and because of whom, and what is in conflict with what.
#[test]
fn check_meaning() {
    let rules = r#"R1: if (path under "/a") { routeTo(a); }
R2: if (path == "/a/b" && method == "POST") { routeTo(b); }
R3: if (method == "GET") { routeTo(c); }
else: routeTo(d);
"#;
    let folder = folder(&[("all.rules", rules)]);
    let said = [
        "warning: no request that gets to `R2` makes its condition true",
        "help: `R1` leaves none that does",
        "warning: `R3` would do something else with some requests that `R1` takes",
        "`allow conflict(R1)` says that it is meant",
        "GET /a HTTP/1.1",
        "note: only the final `else` takes this request",
        "POST / HTTP/1.1",
        "2 warnings, 1 note in 1 file",
    ];
    ends(folder.path(), &["check", "all.rules"], 1, &said);
    let json = ends(folder.path(), &["check", "--json", "all.rules"], 1, &[]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let findings = json["findings"].as_array().expect("a list");
    let codes: Vec<_> = findings.iter().map(|finding| (&finding["code"], &finding["rule"])).collect();
    let words = |code: &str, rule: &str| (serde_json::json!(code), serde_json::json!(rule));
    let expected = [words("unreachable", "R2"), words("gap", "else"), words("conflict", "R3")];
    assert_eq!(codes, expected.iter().map(|(code, rule)| (code, rule)).collect::<Vec<_>>(), "{json}");
    assert_eq!(findings[0]["others"], serde_json::json!(["R1"]));
}

/// What rules cost of a body is said of those that look into one, for people and for programs.
#[test]
fn check_costs() {
    let rules = "R1: if (xml.order/total > 5) { routeTo(standard); }\nR2: if (path == \"/\") { allow conflict(R1); reject(); }\n";
    let folder = folder(&[("good.rules", GOOD), ("body.rules", rules)]);
    let said = [
        "body.rules: what is read of a body when a rule decides\n  R1: up to a value of `xml.order/total` that fits",
        "  R2, no rule: the whole body, because R1 is false only when no value of `xml.order/total` fits",
    ];
    ends(folder.path(), &["check", "good.rules", "body.rules"], 0, &said);
    let quiet = ends(folder.path(), &["check", "good.rules"], 0, &[]);
    assert!(!quiet.output().contains("is read"), "{}", quiet.output());
    let json = ends(folder.path(), &["check", "--json", "good.rules", "body.rules"], 0, &[]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let costs = json["body_costs"].as_array().expect("a list");
    assert_eq!((costs.len(), &costs[0]["file"]), (1, &"body.rules".into()), "{json}");
    assert_eq!(costs[0]["groups"][1]["rules"], serde_json::json!(["R2", "no rule"]));
    assert_eq!(costs[0]["groups"][1]["latest"]["reach"], "body");

    let setup = Setup::new(1).pool_at("standard", "", &[("s", Origin::dead_address())]);
    setup.rules(rules).write(folder.path());
    ends(
        folder.path(),
        &["check", "pointsman.toml"],
        0,
        &["shop.rules: what is read of a body when a rule decides"],
    );
}

/// A whole configuration: its rules are read against its pools.
#[test]
fn check_configuration() {
    let setup = Setup::new(1).pool_at("standard", "", &[("s", Origin::dead_address())]);
    let folder = folder(&[]);
    setup.clone().rules("R1: { routeTo(standard); }").write(folder.path());
    ends(folder.path(), &["check", "pointsman.toml"], 0, &[]);
    setup.clone().rules("R1: { routeTo(standrd); }").write(folder.path());
    ends(folder.path(), &["check", "pointsman.toml"], 1, &["shop.rules", "standrd", "standard", "^"]);
    setup.top("thread = 1").write(folder.path());
    ends(folder.path(), &["check", "pointsman.toml"], 1, &["thread", "threads", "^"]);
}

/// The formatter prints the modern form in place, keeps comments, and has nothing to do the second time.
#[test]
fn format() {
    let folder = folder(&[("old.rules", OLD)]);
    let read = || std::fs::read_to_string(folder.path().join("old.rules")).expect("it is there");
    ends(folder.path(), &["fmt", "--check", "old.rules"], 1, &["old.rules"]);
    assert_eq!(read(), OLD, "--check changes nothing");
    ends(folder.path(), &["fmt", "old.rules"], 0, &[]);
    let formatted = read();
    for word in ["if (", "url matches \"xmlprocess.pl\"", "routeTo(fast", "# why"] {
        assert!(formatted.contains(word), "`{word}` is missing in:\n{formatted}");
    }
    ends(folder.path(), &["fmt", "--check", "old.rules"], 0, &[]);
    ends(folder.path(), &["fmt", "old.rules"], 0, &[]);
    assert_eq!(read(), formatted);
}

/// What cannot be read is not formatted.
#[test]
fn format_bad() {
    let folder = folder(&[("bad.rules", "R1: if (path == { routeTo(a); }\n")]);
    let finished = pointsman(folder.path(), &["fmt", "bad.rules"]);
    assert_ne!(finished.code, 0);
    assert!(finished.stderr.contains('^'), "{}", finished.stderr);
    let left = std::fs::read_to_string(folder.path().join("bad.rules")).expect("it is there");
    assert_eq!(left, "R1: if (path == { routeTo(a); }\n");
    ends(folder.path(), &["fmt", "absent.rules"], 2, &["absent.rules"]);
}

/// Rule by rule: what the earlier ones lacked, and the one that won.
#[test]
fn explain() {
    let rules = "R1: if (path under \"/b\" && method == \"POST\") { routeTo(one); }
R2: if (header[\"x-a\"] == \"two\") { setHeader(\"x-b\", \"1\"); routeTo(two); }
else: routeTo(three);
";
    let hit = "GET /b/c HTTP/1.1\r\nHost: a.example\r\nX-A: two\r\n\r\n";
    let miss = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let files =
        [("a.rules", rules), ("hit.http", hit), ("miss.http", miss), ("bad.http", "what?"), ("b.rules", BAD)];
    let folder = folder(&files);
    ends(folder.path(), &["explain", "a.rules", "hit.http"], 0, &["R1", "method", "GET", "R2", "two"]);
    ends(folder.path(), &["explain", "a.rules", "miss.http"], 0, &["R1", "/x", "R2", "else", "three"]);
    // What the switch would refuse is explained as such: it never comes to the rules.
    ends(folder.path(), &["explain", "a.rules", "bad.http"], 1, &["400"]);
    ends(folder.path(), &["explain", "b.rules", "hit.http"], 2, &["pth", "^"]);
    ends(folder.path(), &["explain", "a.rules", "absent.http"], 2, &["absent.http"]);
}

/// The request comes from somewhere: the options say whence.
#[test]
fn explain_connection() {
    let rules =
        "R1: if (srcip in [10.0.0.0/8] && dstport == 8443) { routeTo(inside); }\nelse: routeTo(outside);\n";
    let request = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let folder = folder(&[("a.rules", rules), ("a.http", request)]);
    let words = ["explain", "a.rules", "a.http", "--srcip", "10.1.2.3", "--dstport", "8443"];
    ends(folder.path(), &words, 0, &["R1", "inside"]);
    ends(folder.path(), &words[..3], 0, &["outside"]);
}

/// What is taken away or refused before the rules look depends on the listener and on who asks.
#[test]
fn explain_odd_names_and_schemes() {
    let rules = "R1: if (header[\"x_a\"] exists) { routeTo(odd); }\nelse: routeTo(standard);\n";
    let configuration = |keys: &str| {
        format!(
            "[[listener]]\nname = \"shop\"\nbind = \"127.0.0.1:0\"\nrules = \"a.rules\"\n{keys}\n\
             [pool.standard]\nservers = [\"127.0.0.1:1\"]\n[pool.odd]\nservers = [\"127.0.0.1:1\"]\n"
        )
    };
    let [keeps, refuses] = ["keep", "refuse"].map(|word| configuration(&format!("odd_names = \"{word}\"")));
    let folder = folder(&[
        ("a.rules", rules),
        ("keep.toml", &keeps),
        ("refuse.toml", &refuses),
        ("odd.http", "GET / HTTP/1.1\r\nHost: a.example\r\nX_A: 1\r\n\r\n"),
        ("https.http", "GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"),
    ]);
    ends(
        folder.path(),
        &["explain", "a.rules", "odd.http"],
        0,
        &["`X_A` is taken away", "routeTo(standard)"],
    );
    ends(folder.path(), &["explain", "keep.toml", "odd.http"], 0, &["routeTo(odd)"]);
    ends(folder.path(), &["explain", "refuse.toml", "odd.http"], 1, &["400"]);
    ends(folder.path(), &["explain", "a.rules", "https.http"], 1, &["421"]);
    ends(folder.path(), &["explain", "a.rules", "https.http", "--tls", "1.3"], 0, &["routeTo(standard)"]);
    let trusted = ["explain", "a.rules", "https.http", "--trusted-proxy", "127.0.0.0/8"];
    ends(folder.path(), &trusted, 0, &["routeTo(standard)"]);
}

/// Rules see which protocol a request asks for; what is no handshake is refused, and what nobody may change to is
/// taken away.
#[test]
fn explain_upgrades() {
    let rules = "R1: if (upgrade == \"websocket\") { routeTo(chat); }\nelse: routeTo(standard);\n";
    let configuration = "[[listener]]\nname = \"shop\"\nbind = \"127.0.0.1:0\"\nrules = \"a.rules\"\nupgrades = []\n\
                         [pool.standard]\nservers = [\"127.0.0.1:1\"]\n[pool.chat]\nservers = [\"127.0.0.1:1\"]\n";
    let head = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n";
    let key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let (whole, half) = (format!("{head}{key}"), format!("{head}\r\n"));
    let h2c = whole.replace("WebSocket\r\n", "h2c\r\n");
    let files = [
        ("a.rules", rules),
        ("none.toml", configuration),
        ("a.http", &whole),
        ("half.http", &half),
        ("h2c.http", &h2c),
    ];
    let folder = folder(&files);
    ends(folder.path(), &["explain", "a.rules", "a.http"], 0, &["routeTo(chat)"]);
    ends(folder.path(), &["explain", "a.rules", "half.http"], 1, &["400", "malformed WebSocket handshake"]);
    ends(
        folder.path(),
        &["explain", "a.rules", "h2c.http"],
        0,
        &["`Upgrade` is taken away", "routeTo(standard)"],
    );
    ends(
        folder.path(),
        &["explain", "none.toml", "half.http"],
        0,
        &["`Upgrade` is taken away", "routeTo(chat)"],
    );
}

/// The first line of the request says that it is one of HTTP/2, and TLS agreed on that.
#[test]
fn explain_http2() {
    let rules = "R1: if (version == \"2\" && tls.alpn == \"h2\") { routeTo(both); }\n\
                 R2: if (version == \"2\" && upgrade == \"websocket\") { routeTo(chat); }\n\
                 R3: if (version == \"2\") { routeTo(plain); }\n\
                 else: routeTo(old);\n";
    let configuration = |word: &str| {
        format!(
            "[[listener]]\nname = \"shop\"\nbind = \"127.0.0.1:0\"\npool = \"old\"\nhttp2 = \"{word}\"\n[pool.old]\nservers = [\"127.0.0.1:1\"]\n"
        )
    };
    let [off, only] = ["off", "only"].map(configuration);
    let socket = "GET / HTTP/2\nHost: a.example\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\n\
                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n";
    let folder = folder(&[
        ("a.rules", rules),
        ("off.toml", &off),
        ("only.toml", &only),
        ("2.http", "GET / HTTP/2\r\nHost: a.example\r\n\r\n"),
        ("1.http", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        ("socket.http", socket),
        ("absolute.http", "GET http://a.example/ HTTP/2\r\nHost: a.example\r\n\r\n"),
    ]);
    let rows: [(&str, i32, &[&str]); 9] = [
        ("a.rules 2.http --tls 1.3", 0, &["GET / HTTP/2\n", "R1: routeTo(both)"]),
        ("a.rules 2.http", 0, &["R3: routeTo(plain)"]),
        ("a.rules socket.http", 0, &["R2: routeTo(chat)"]),
        ("a.rules 1.http --tls 1.3", 0, &["GET / HTTP/1.1\n", "routeTo(old)"]),
        ("a.rules absolute.http", 1, &["400"]),
        ("off.toml 2.http", 2, &["the listener `shop`", "its `http2` is `off`", "help: "]),
        ("off.toml 1.http", 0, &["`old`"]),
        ("only.toml 1.http", 2, &["its `http2` is `only`", "help: "]),
        ("only.toml 2.http", 0, &["`old`"]),
    ];
    for (words, code, said) in rows {
        let words: Vec<_> = ["explain"].into_iter().chain(words.split(' ')).collect();
        ends(folder.path(), &words, code, said);
    }
}

/// Two listeners that read no requests, and one that does.
const THROUGH: &str = r#"
[[listener]]
name = "web"
bind = "127.0.0.1:0"
pool = "standard"
[[listener]]
name = "front"
bind = "127.0.0.1:8443"
protocol = "tls-passthrough"
rules = "front.rules"
pool = "standard"
[[listener]]
name = "db"
bind = "127.0.0.1:0"
protocol = "tcp"
rules = "db.rules"
pool = "blog"
[pool.standard]
servers = ["127.0.0.1:1"]
[pool.blog]
servers = ["127.0.0.1:1"]
"#;

const FRONT: &str = "far: if (clientip == 192.0.2.9) { reject(); }\n\
                     old: if (tls.version in [\"1.0\", \"1.1\"]) { reject(); }\n\
                     once: if (once(tls.alpn) == \"x\" && srcport == 7) { reject(); }\n\
                     acme: if (tls.alpn == \"acme-tls/1\") { tag(acme); routeTo(standard); }\n\
                     blog: if (tls.sni endsWith \"blog.example\" && dstport == 8443) { routeTo(blog); }\n";

/// Of connections whose requests nobody reads: who takes which, and what those get that nobody takes.
#[test]
fn explain_connections_as_they_are() {
    let db = "inside: if (srcip in [10.0.0.0/8]) { routeTo(standard, STICKY_ON_IP); }\n\
              other: if (srcport == 7) { reject(); }\n";
    let files = [("a.toml", THROUGH), ("front.rules", FRONT), ("db.rules", db)];
    let folder = folder(&files);
    let rows: [(&str, i32, &[&str]); 14] = [
        (
            "front --src 10.0.0.1 --sni Blog.Example --alpn h2",
            0,
            &[
                "from     10.0.0.1:40000 to 127.0.0.1:8443\n",
                "hello    TLS 1.3 for `blog.example`, offers `h2`\n",
                "tls.alpn is `h2`",
                "blog: routeTo(blog);",
            ],
        ),
        ("front --sni a.example --alpn h2 --alpn acme-tls/1", 0, &["acme: routeTo(standard);", "tag(acme)"]),
        ("front --sni a.example", 0, &["tls.alpn is absent", "the default pool `standard` takes it"]),
        ("front --sni=", 0, &["TLS 1.3 without a server name", "tls.sni is absent"]),
        ("front --tls 1.1", 0, &["old: reject();  → the alert `access_denied`"]),
        ("front --proxied 192.0.2.9", 0, &["192.0.2.9, behind a trusted proxy", "far: reject();"]),
        ("db --srcip 10.0.0.1", 0, &["inside: routeTo(standard, STICKY_ON_IP);"]),
        ("db --srcport 7", 0, &["other: reject();  → a reset"]),
        ("db", 0, &["the default pool `blog` takes it"]),
        ("front --alpn a --alpn b --srcport 7", 1, &["once: refused with the alert `access_denied`: "]),
        ("db --sni a.example", 2, &["`--sni` changes nothing at the listener `db`", "help: "]),
        ("db --alpn h2", 2, &["`--alpn` changes nothing", "`protocol` is `tcp`", "help: "]),
        ("front --trusted-proxy ::/0", 2, &["`--trusted-proxy` changes nothing", "`--proxied`"]),
        ("web", 2, &["`web` reads requests", "help: ", "`front`, `db`"]),
    ];
    for (words, code, said) in rows {
        let words: Vec<_> = ["explain", "a.toml", "--listener"].into_iter().chain(words.split(' ')).collect();
        ends(folder.path(), &words, code, said);
    }
    let words = ["explain", "a.toml", "a.http", "--listener", "db"];
    ends(folder.path(), &words, 2, &["`db` reads no requests", "help: leave the request out"]);
    let words = ["explain", "front.rules", "--sni", "a.example"];
    ends(folder.path(), &words, 2, &["needs two files"]);
}

#[test]
fn explain_connections_as_json() {
    let files =
        [("a.toml", THROUGH), ("front.rules", FRONT), ("db.rules", "R1: if (srcport == 1) { discard(); }")];
    let folder = folder(&files);
    let json = |words: &str, code| {
        let words: Vec<_> = words.split(' ').collect();
        let finished = ends(folder.path(), &words, code, &[]);
        serde_json::from_str::<serde_json::Value>(&finished.stdout).expect("JSON")
    };
    let taken = json("explain a.toml --listener front --sni blog.example --alpn h2 --json", 0);
    let hello = serde_json::json!({ "tls": "1.3", "sni": "blog.example", "alpn": ["h2"] });
    assert_eq!((&taken["connection"]["hello"], &taken["decision"]["target"]), (&hello, &"blog".into()));
    assert!(taken.get("request").is_none() && taken.get("body_bytes_needed").is_none(), "{taken}");
    let refused = json("explain a.toml --listener front --alpn a --alpn b --srcport 7 --json", 1);
    assert_eq!(refused["decision"]["refused"]["alert"], "access_denied", "{refused}");
    let unread = json("explain a.toml --listener db --json", 0);
    assert!(unread["connection"].get("hello").is_none() && unread["connection"]["client"].is_string());
}

/// Wrong use says what would be right.
#[test]
fn wrong_use() {
    let folder = folder(&[]);
    ends(folder.path(), &["rnu"], 2, &["no command `rnu`; did you mean `run`?", "--help"]);
    ends(folder.path(), &["format"], 2, &["did you mean `fmt`?"]);
    ends(folder.path(), &["run", "--confg", "x"], 2, &["--confg"]);
    ends(folder.path(), &[], 2, &["run", "check", "fmt", "explain", "demo"]);
    ends(folder.path(), &["--help"], 0, &["run", "check", "fmt", "explain", "demo"]);
    ends(folder.path(), &["--version"], 0, &["pointsman", "0.1.0"]);
}

/// The demo sends requests through a switch of its own, and says which rule took each where.
#[test]
fn demo_once() {
    let folder = folder(&[]);
    let finished = ends(folder.path(), &["demo", "--once"], 0, &["TLS 1.3", "plain", "connected in"]);
    let row = |request: &str| {
        let row = finished.stdout.lines().find(|line| line.trim_start().starts_with(request));
        row.unwrap_or_else(|| panic!("no `{request}` in:\n{}", finished.stdout)).to_owned()
    };
    for (request, words) in [
        ("GET / ", &["else", "standard/server", "200"][..]),
        ("GET /logo.png", &["images", "images/server2", "200"]),
        ("GET /  cookie customer=gold", &["gold", "fast/server3", "200"]),
        ("POST /api/orders", &["api", "fast/server3", "200"]),
        ("GET /cart  cookie pm_route", &["cart", "standard/server", "200"]),
        ("GET /old/shelf", &["moved", "redirected", "308"]),
        ("POST /orders  XML, 60000", &["large", "fast/server3", "200"]),
        ("POST /orders  XML, 4000", &["else", "standard/server", "200"]),
        ("POST /orders  JSON, 52000.01", &["large", "fast/server3", "200"]),
        ("POST /v1/chat/completions  llama", &["llama", "llama/server4", "200"]),
        ("POST /v1/chat/completions  mistral", &["mistral", "mistral/server5", "200"]),
        ("GET /hello", &["hello", "answered here", "200"]),
        ("GET /  no user agent", &["robots", "refused here", "403"]),
        ("POST /orders  torn XML", &["large", "refused here", "400", "an end tag"]),
    ] {
        let row = row(request);
        assert!(words.iter().all(|word| row.contains(word)), "{words:?} in: {row}");
        let row = row.split("  XML: ").next().unwrap_or_default();
        assert!(row.ends_with("µs") || row.ends_with(" ms") || row.ends_with(" s"), "how long: {row}");
    }
    assert!(!finished.stdout.contains("curl"), "it does not stay up, so there is nothing to try");
    ends(folder.path(), &["demo", "--twice"], 2, &["--twice"]);
}

/// Without `--once` it stays up until it is told to end, and then leaves nothing behind.
#[test]
fn demo_stays_up() {
    let folder = folder(&[]);
    let mut command = Command::new(program());
    command.arg("demo").env("TMPDIR", folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let stdout = Lines::of(child.stdout.take().expect("piped"));
    let stderr = Lines::of(child.stderr.take().expect("piped"));
    let waited = std::panic::catch_unwind(|| {
        stdout.wait_for("the last line before it waits", |line| line.contains("Ctrl-C").then_some(()));
        pointsman_e2e::installed("curl").then(|| try_what_is_shown(&stdout.text()))
    });
    let goes_on = child.try_wait().expect("it is ours").is_none();
    let kill = format!("kill -TERM {}", child.id());
    let told = Command::new("sh").args(["-c", &kill]).status().expect("a shell").success();
    if waited.is_err() || !told || !stdout.wait_for_end() {
        child.kill().expect("it is ours");
    }
    let status = child.wait().expect("it is ours");
    assert!(waited.is_ok() && goes_on && status.success(), "{}\n{}", stdout.text(), stderr.text());
    assert!(stdout.text().contains("curl --cacert "), "{}", stdout.text());
    let tried = waited.expect("looked at above");
    assert!(tried.is_none_or(|tried| tried.contains("server3 saw\nPOST /orders")));
    let left = std::fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(left, 0, "the demo's folder is removed");
}

/// What the lines print that the demo shows, pasted into a shell. All of them work.
fn try_what_is_shown(shown: &str) -> String {
    let lines: Vec<_> = shown.lines().filter(|line| line.starts_with("  curl ")).collect();
    assert!(lines.len() >= 8, "{shown}");
    let (_, explains) = shown.split_once(" explain ").expect("it says how to ask why");
    let files = explains.lines().next().expect("it goes on").split(' ');
    let explained = pointsman(Path::new("."), &["explain"].into_iter().chain(files).collect::<Vec<_>>());
    assert!(explained.stdout.contains("bytes of the body"), "{}", explained.output());
    let curls = Command::new("sh").args(["-e", "-c", &lines.join("\n")]).output().expect("a shell");
    assert!(curls.status.success(), "{}\n{}", lines.join("\n"), String::from_utf8_lossy(&curls.stderr));
    String::from_utf8_lossy(&curls.stdout).into_owned()
}
