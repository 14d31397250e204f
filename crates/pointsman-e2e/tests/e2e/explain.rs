//! `explain`: what it prints and how it ends.

use pointsman_e2e::{ends, folder};

const BAD: &str = "R1: if (pth == \"/\") { routeTo(fast); }\nR2: { goto R1; }\n";

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

/// What is committed and noticed by nobody is said to be so.
#[test]
fn explain_what_comes_to_nothing() {
    let rules = "R1: { mirror(one); bandwidth(slow); tag(seen); }
R2: if (path == \"/no\") { setHeader(\"x-a\", \"1\"); reject(403); }
R3: { mirror(two); routeTo(three); }
";
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: [0::1]:80\r\n\r\n");
    let files = [("a.rules", rules), ("no.http", &request("/no")), ("yes.http", &request("/yes"))];
    let folder = folder(&files);
    let refused = [
        "host     [::1]\n",
        "with mirror(one);, which comes to nothing: no server gets the request\n",
        "with bandwidth(slow);\n",
        "with tag(seen);\n",
        "with setHeader(\"x-a\", \"1\");, which comes to nothing: no server gets the request\n",
    ];
    ends(folder.path(), &["explain", "a.rules", "no.http"], 0, &refused);
    let routed = ["with mirror(one);, which comes to nothing: a later one holds\n", "with mirror(two);\n"];
    ends(folder.path(), &["explain", "a.rules", "yes.http"], 0, &routed);
    let json = ["\"comes_to_nothing\": \"a later one holds\"", "\"host\": \"[::1]\""];
    ends(folder.path(), &["explain", "--json", "a.rules", "yes.http"], 0, &json);
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

/// Who comes to a Unix socket has no address, and may be believed.
#[test]
fn explain_unix_sockets() {
    let rules = "R1: if (clientip == 192.0.2.1) { routeTo(inside); }\n\
                 R2: if (!(srcip exists) && !(dstport exists)) { routeTo(nowhere); }\nelse: routeTo(outside);\n";
    let request = "GET / HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n";
    let listener = |name: &str, binds: &str| {
        format!(
            "[[listener]]\nname = \"{name}\"\nbind = [{binds}]\nrules = \"a.rules\"\npool = \"outside\"\n"
        )
    };
    let pool = |name: &str| format!("[pool.{name}]\nservers = [\"127.0.0.1:1\"]\n");
    let configuration = [
        listener("socket", "\"unix:a.sock\""),
        listener("port", "\"127.0.0.1:0\""),
        listener("both", "\"unix:b.sock\", \"127.0.0.1:0\""),
        ["inside", "nowhere", "outside"].map(pool).concat(),
    ];
    let folder = folder(&[("a.rules", rules), ("a.http", request), ("a.toml", &configuration.concat())]);
    let rows: [(&str, i32, &[&str]); 9] = [
        ("a.rules a.http --srcip unix:", 0, &["R2: routeTo(nowhere);"]),
        (
            "a.rules a.http --srcip unix: --trusted-proxy unix:",
            0,
            &["R1: routeTo(inside);", "192.0.2.1, behind"],
        ),
        ("a.rules a.http --srcip unix: --proxied 192.0.2.1", 0, &["R1: routeTo(inside);"]),
        ("a.toml a.http", 0, &["R2: routeTo(nowhere);", "unix:"]),
        (
            "a.toml a.http --srcip 10.0.0.1",
            2,
            &["never comes to the listener `socket`", "Unix sockets alone"],
        ),
        (
            "a.toml a.http --listener port --srcip unix:",
            2,
            &["never comes to the listener `port`", "no Unix socket"],
        ),
        ("a.toml a.http --listener both", 0, &["else: routeTo(outside);"]),
        ("a.toml a.http --listener both --srcip unix:", 0, &["R2: routeTo(nowhere);"]),
        (
            "a.rules a.http --srcip unix: --dstport 80",
            2,
            &["`--dstport` says what a client of a Unix socket"],
        ),
    ];
    for (words, code, said) in rows {
        let words: Vec<_> = std::iter::once("explain").chain(words.split(' ')).collect();
        ends(folder.path(), &words, code, said);
    }
}

/// A connection comes to where the listener listens, from somebody who gets there.
#[test]
fn explain_ends() {
    let rules = "R1: if (dstip == 192.0.2.2 && dstport == 81) { routeTo(second); }\n\
                 R2: if (srcip == ::1 && dstip == 2001:db8::1) { routeTo(six); }\nelse: routeTo(first);\n";
    let listener = |name: &str, keys: &str| {
        format!("[[listener]]\nname = \"{name}\"\nrules = \"a.rules\"\npool = \"first\"\n{keys}\n")
    };
    let pool = |name: &str| format!("[pool.{name}]\nservers = [\"127.0.0.1:1\"]\n");
    let behind = "bind = \"0.0.0.0:82\"\nproxy_protocol = \"required\"\ntrusted_proxies = [\"10.0.0.0/8\"]";
    let configuration = [
        listener("two", "bind = [\"192.0.2.1:80\", \"192.0.2.2:81\", \"unix:a.sock\"]"),
        listener("six", "bind = \"[2001:db8::1]:80\""),
        listener("any", "bind = \"[::]:83\""),
        listener("only", "bind = \"[::]:84\"\nipv6_only = true"),
        listener("behind", behind),
        "[[listener]]\nname = \"mail\"\nprotocol = \"tcp\"\npool = \"first\"\nbind = \"192.0.2.1:25\"\n"
            .to_owned(),
        ["first", "second", "six"].map(pool).concat(),
    ];
    let request = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let folder = folder(&[("a.rules", rules), ("a.http", request), ("a.toml", &configuration.concat())]);
    let rows: [(&str, i32, &[&str]); 17] = [
        ("", 0, &["routeTo(first)", "192.0.2.1:80"]),
        ("--dstport 81", 0, &["R1: routeTo(second);"]),
        ("--dstip 192.0.2.2", 0, &["R1: routeTo(second);"]),
        (
            "--dstport 9",
            2,
            &[
                "`--dstport 9` says what never comes to the listener `two`: `dstport` is 80 or 81\n",
                "help: leave it out",
            ],
        ),
        ("--dstip 192.0.2.1 --dstport 81", 2, &["`dstport` is 80 where `dstip` is 192.0.2.1\n"]),
        ("--dstip 192.0.2.9", 2, &["`dstip` is 192.0.2.1 or 192.0.2.2\n"]),
        ("--srcip ::1", 2, &["`--srcip ::1` says what never comes", "it has no address of IPv6 to come to"]),
        ("--srcip ::ffff:192.0.2.7", 0, &["routeTo(first)"]),
        ("--listener six", 0, &["R2: routeTo(six);"]),
        ("--listener six --srcip 192.0.2.7", 2, &["it has no address of IPv4 to come to"]),
        ("--listener any --srcip 192.0.2.7", 0, &["routeTo(first)"]),
        ("--listener any --srcip ::1 --dstip 2001:db8::1", 0, &["R2: routeTo(six);"]),
        ("--listener only --srcip 192.0.2.7", 2, &["it has no address of IPv4 to come to"]),
        ("--listener behind --srcip 192.0.2.7", 2, &["it lets nobody in but its `trusted_proxies`"]),
        ("--listener behind --srcip 10.0.0.7", 0, &["routeTo(first)"]),
        ("--listener behind --srcport 0", 2, &["a port is from 1 to 65535"]),
        ("--listener two --dstport 0", 2, &["a port is from 1 to 65535"]),
    ];
    for (words, code, said) in rows {
        let words = ["explain", "a.toml", "a.http"].into_iter().chain(words.split_whitespace());
        ends(folder.path(), &words.collect::<Vec<_>>(), code, said);
    }
    let mail = ["explain", "a.toml", "--listener", "mail", "--dstport"];
    ends(folder.path(), &[&mail[..], &["26"]].concat(), 2, &["the listener `mail`: `dstport` is 25\n"]);
    ends(folder.path(), &[&mail[..], &["25"]].concat(), 0, &[]);
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
    for said in [["--tls", "1.3"], ["--sni", "a.example"]] {
        let words = [&["explain", "keep.toml", "odd.http"][..], &said].concat();
        ends(folder.path(), &words, 2, &[said[0], "speaks no TLS"]);
    }
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
    let rules = "R0: if (version == \"2\" && header[\"cookie\"] == \"a=1; b=2\") { routeTo(joined); }\n\
                 R1: if (version == \"2\" && tls.alpn == \"h2\") { routeTo(both); }\n\
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
        ("cookies.http", "GET / HTTP/2\nHost: a.example\nCookie: a=1\nA: b\nCookie: b=2\n\n"),
        ("absolute.http", "GET http://a.example/ HTTP/2\r\nHost: a.example\r\n\r\n"),
    ]);
    let rows: [(&str, i32, &[&str]); 10] = [
        (
            "a.rules cookies.http",
            0,
            &["R0: routeTo(joined)", "note     the `Cookie` lines are joined to one"],
        ),
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
