//! A client stays with its server, inside the target of the rule that decides.

use std::collections::HashSet;

use pointsman_e2e::{Authority, Client, Origin, Response, Setup, Switch, TlsClient};

pointsman_e2e::for_threads!(
    not_sticky,
    on_ip,
    on_ip_behind_proxies,
    on_ip_port,
    on_cookie,
    on_cookie_over_tls,
    forged_cookies,
    cookie_of_another_target,
    cookie_is_hidden_from_servers,
    on_field,
    rules_come_first,
    over_a_reload,
    over_a_restart,
    server_that_refuses
);

fn six() -> Vec<Origin> {
    (0..6).map(|number| Origin::new(&format!("s{number}"))).collect()
}

fn setup(threads: usize, stickiness: &str, origins: &[Origin]) -> Setup {
    let servers: Vec<&Origin> = origins.iter().collect();
    let rule = format!("R1: {{ routeTo(standard, {stickiness}); }}");
    Setup::new(threads).rules(&rule).pool("standard", &servers)
}

/// The servers that answer `count` requests, each on its own connection.
fn seen(switch: &Switch, count: usize, fields: &str) -> HashSet<String> {
    (0..count).map(|_| switch.client().ask("GET", "/", fields).server().to_owned()).collect()
}

/// The reason why the others are tests at all.
fn not_sticky(threads: usize) {
    let origins = six();
    let switch = setup(threads, "NON_STICKY", &origins).start();
    assert!(seen(&switch, 60, "").len() > 1);
}

/// By address, whatever the connection.
fn on_ip(threads: usize) {
    let origins = six();
    let switch = setup(threads, "STICKY_ON_IP", &origins).start();
    assert_eq!(seen(&switch, 20, "").len(), 1);
}

/// The address is the client's, where the proxy in front is trusted; many clients spread.
fn on_ip_behind_proxies(threads: usize) {
    let origins = six();
    let setup = setup(threads, "STICKY_ON_IP", &origins).listener("trusted_proxies = [\"127.0.0.1\"]");
    let switch = setup.start();
    let mut all = HashSet::new();
    for number in 0..40 {
        let servers = seen(&switch, 3, &format!("X-Forwarded-For: 192.0.2.{number}\r\n"));
        assert_eq!(servers.len(), 1, "192.0.2.{number}");
        all.extend(servers);
    }
    assert!(all.len() > 3, "40 clients on {all:?}");
}

/// The rest of the connection; another one may go elsewhere.
fn on_ip_port(threads: usize) {
    let origins = six();
    let switch = setup(threads, "STICKY_ON_IP_PORT", &origins).start();
    let mut all = HashSet::new();
    for _ in 0..30 {
        let mut client = switch.client();
        let first = client.get("/").server().to_owned();
        for _ in 0..5 {
            assert_eq!(client.get("/").server(), first);
        }
        all.insert(first);
    }
    assert!(all.len() > 1, "30 connections on {all:?}");
}

fn cookie(answer: &Response) -> Option<&str> {
    answer.head.all("set-cookie").into_iter().find(|value| value.starts_with("pm_route="))
}

fn pair(set_cookie: &str) -> &str {
    set_cookie.split(';').next().unwrap_or_default()
}

fn attributes(set_cookie: &str) -> HashSet<String> {
    set_cookie.split(';').skip(1).map(|attribute| attribute.trim().to_ascii_lowercase()).collect()
}

/// By the switch's own cookie: opaque, HttpOnly, SameSite=Lax, and set once.
fn on_cookie(threads: usize) {
    let origins = six();
    let switch = setup(threads, "STICKY_ON_COOKIE", &origins).start();
    let mut all = HashSet::new();
    for _ in 0..20 {
        let first = switch.get("/");
        let set = cookie(&first).expect("a cookie").to_owned();
        let attributes = attributes(&set);
        assert!(attributes.contains("httponly") && attributes.contains("samesite=lax"), "{set}");
        assert!(!attributes.contains("secure"), "on plain HTTP a browser would drop it: {set}");
        assert!(!set.contains(first.server()) && !set.contains("127.0.0.1"), "not opaque: {set}");
        for _ in 0..3 {
            let answer = switch.client().ask("GET", "/", &format!("Cookie: a=1; {}\r\n", pair(&set)));
            assert_eq!(answer.server(), first.server());
            assert_eq!(cookie(&answer), None, "a good cookie is not set again");
        }
        all.insert(first.server().to_owned());
    }
    assert!(all.len() > 1, "20 clients on {all:?}");
    let seen: Vec<_> = origins.iter().flat_map(Origin::requests).collect();
    assert!(seen.iter().all(|request| request.head.field("cookie").is_none_or(|value| value == "a=1")));
}

/// On TLS it is Secure, too.
fn on_cookie_over_tls(threads: usize) {
    let (origins, authority) = (six(), Authority::new("test CA"));
    let setup = setup(threads, "STICKY_ON_COOKIE", &origins).tls(&authority.server(&["shop.example"]), "");
    let switch = setup.start();
    let client = switch.tls_client(&TlsClient::new(&authority), "shop.example");
    let answer = client.expect("a handshake").get("/");
    let set = cookie(&answer).expect("a cookie");
    assert!(attributes(set).contains("secure"), "{set}");
}

/// A cookie that the switch did not make is none: a new one takes its place.
fn forged_cookies(threads: usize) {
    let origins = six();
    let switch = setup(threads, "STICKY_ON_COOKIE", &origins).start();
    let real = cookie(&switch.get("/")).map(pair).expect("a cookie").to_owned();
    let mut changed = real.clone().into_bytes();
    let last = changed.len() - 1;
    changed[last] = if changed[last] == b'0' { b'1' } else { b'0' };
    let changed = String::from_utf8(changed).expect("ASCII");
    for forged in ["pm_route=", "pm_route=s1", "pm_route=standard.s1", &changed, &format!("{real}0")] {
        let answer = switch.client().ask("GET", "/", &format!("Cookie: {forged}\r\n"));
        assert_eq!(answer.status(), 200);
        assert!(cookie(&answer).is_some(), "`{forged}` was believed");
    }
}

/// A cookie counts inside the target of each rule: another rule's pool makes a choice of its own, which
/// stays, too.
fn cookie_of_another_target(threads: usize) {
    let (origins, others) = (six(), [0, 1, 2, 3, 4, 5].map(|number| Origin::new(&format!("t{number}"))));
    let rules = "R1: if (path == \"/other\") { routeTo(second, STICKY_ON_COOKIE); }
                 R2: { routeTo(standard, STICKY_ON_COOKIE); }";
    let others: Vec<&Origin> = others.iter().collect();
    let setup = setup(threads, "STICKY_ON_COOKIE", &origins).rules(rules).pool("second", &others);
    let switch = setup.start();
    let mut choices = HashSet::new();
    for _ in 0..12 {
        let first = switch.get("/");
        let fields = format!("Cookie: {}\r\n", cookie(&first).map(pair).expect("a cookie"));
        let ask = |path: &str| {
            let answer = switch.client().ask("GET", path, &fields);
            assert_eq!(cookie(&answer), None, "a good cookie is not set again");
            answer.server().to_owned()
        };
        let other = ask("/other");
        assert!(other.starts_with('t'), "`{other}` is not of the second pool");
        for _ in 0..3 {
            assert_eq!((ask("/"), ask("/other")), (first.server().to_owned(), other.clone()));
        }
        choices.insert((first.server()[1..].to_owned(), other[1..].to_owned()));
    }
    // By chance alone all twelve would agree once in two thousand million runs.
    assert!(choices.iter().any(|(first, other)| first != other), "one choice for both: {choices:?}");
}

/// The cookie is the switch's own: no server sees it, whatever listener the request came in by.
fn cookie_is_hidden_from_servers(threads: usize) {
    let origins = six();
    let setup = setup(threads, "STICKY_ON_COOKIE", &origins);
    let rules = "if (path == \"/gone\") { discard(); }";
    let switch = setup.another_listener("plain").another_listener("ruled").rules(rules).start();
    let set = switch.get("/");
    let own = pair(cookie(&set).expect("a cookie"));
    for listener in ["shop", "plain", "ruled"] {
        for own in [own, "pm_route=forged"] {
            for (fields, kept) in [("", None), ("a=1; ", Some("a=1"))] {
                let mut client = Client::plain(switch.address(listener));
                let answer = client.ask("GET", "/", &format!("Cookie: {fields}{own}\r\n"));
                assert_eq!(answer.status(), 200);
                let server = origins.iter().find(|origin| origin.name() == answer.server());
                let seen = server.expect("one of the six").last().head;
                assert_eq!(seen.field("cookie"), kept, "{listener}: {seen:?}");
            }
        }
    }
}

/// By any field, here an application's own cookie; without it nothing sticks.
fn on_field(threads: usize) {
    let origins = six();
    let switch = setup(threads, "STICKY_ON(cookie[\"sid\"])", &origins).start();
    let mut all = HashSet::new();
    for number in 0..40 {
        let servers = seen(&switch, 3, &format!("Cookie: sid=client{number}\r\n"));
        assert_eq!(servers.len(), 1, "client{number}");
        all.extend(servers);
    }
    assert!(all.len() > 3, "40 clients on {all:?}");
    assert!(seen(&switch, 60, "").len() > 1);
}

/// Stickiness never overrides a rule.
fn rules_come_first(threads: usize) {
    let (origins, other) = (six(), Origin::new("other"));
    let rules = "R1: if (path == \"/no\") { reject(403, \"no\"); }
                 R2: if (path == \"/other\") { routeTo(second); }
                 R3: { routeTo(standard, STICKY_ON_IP_PORT); }";
    let switch = setup(threads, "NON_STICKY", &origins).rules(rules).pool("second", &[&other]).start();
    let mut client = switch.client();
    let first = client.get("/").server().to_owned();
    assert_eq!(client.get("/no").status(), 403);
    assert_eq!(client.get("/other").server(), "other");
    assert_eq!(client.get("/").server(), first);
}

/// A reload forgets nobody.
fn over_a_reload(threads: usize) {
    let origins = six();
    for kind in ["STICKY_ON_IP", "STICKY_ON_COOKIE", "STICKY_ON(header[\"x-user\"])"] {
        let setup = setup(threads, kind, &origins);
        let switch = setup.start();
        let first = switch.client().ask("GET", "/", "X-User: me\r\n");
        let cookie = cookie(&first).map(pair).unwrap_or("a=1").to_owned();
        let new = setup.rules(&format!(
            "R0: if (path == \"/new\") {{ discard(); }} R1: {{ routeTo(standard, {kind}); }}"
        ));
        switch.reload(&new, 2);
        let servers = seen(&switch, 10, &format!("X-User: me\r\nCookie: {cookie}\r\n"));
        assert_eq!(servers, HashSet::from([first.server().to_owned()]), "{kind}");
    }
}

/// With a `sticky_key` another process, later or elsewhere, makes the same choice.
fn over_a_restart(threads: usize) {
    let origins = six();
    for kind in ["STICKY_ON_COOKIE", "STICKY_ON(header[\"x-user\"])"] {
        let setup = setup(threads, kind, &origins);
        let first = setup.start().client().ask("GET", "/", "X-User: me\r\n");
        let cookie = cookie(&first).map(pair).unwrap_or("a=1").to_owned();
        let servers = seen(&setup.start(), 10, &format!("X-User: me\r\nCookie: {cookie}\r\n"));
        assert_eq!(servers, HashSet::from([first.server().to_owned()]), "{kind}");
    }
}

/// A sticky choice that cannot be reached is made anew, and the cookie says so.
fn server_that_refuses(threads: usize) {
    let alive = Origin::new("alive");
    let servers = [("dead", Origin::dead_address()), ("alive", alive.address())];
    let rules = "{ routeTo(standard, STICKY_ON_COOKIE); }";
    let switch = Setup::new(threads).rules(rules).pool_at("standard", "", &servers).start();
    for _ in 0..4 {
        let answer = Client::plain(switch.address("shop")).get("/");
        assert_eq!((answer.status(), answer.server()), (200, "alive"));
        let pair = pair(cookie(&answer).expect("a cookie")).to_owned();
        let again = switch.client().ask("GET", "/", &format!("Cookie: {pair}\r\n"));
        assert_eq!((again.server(), cookie(&again)), ("alive", None));
    }
}
