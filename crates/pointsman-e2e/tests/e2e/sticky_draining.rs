//! A server that drains keeps those who stay with it and gets nobody who is new, whatever clients are known by.

use std::collections::HashSet;
use std::ops::Range;

use pointsman_e2e::{Authority, Client, Origin, Setup, Switch, TlsClient};

use crate::servers_at_run_time::set;
use crate::sticky_learned;

pointsman_e2e::for_threads!(
    by_what_a_request_shows,
    by_what_a_server_has_given,
    by_the_connection,
    by_a_tls_session,
    who_is_forgotten_is_new,
    without_room_only_a_proof_counts,
    backups_keep_whom_they_get_meanwhile,
    where_a_rule_names_the_server,
    what_was_no_visit_to_the_named_server,
    where_a_share_is_a_server,
    where_a_listener_keeps_clients_with_it
);

fn three() -> [Origin; 3] {
    [0, 1, 2].map(|number| Origin::new(&format!("s{number}")))
}

fn setup(threads: usize, stickiness: &str, keys: &str, origins: &[Origin; 3]) -> Setup {
    let rule = format!("R1: {{ routeTo(standard, {stickiness}); }}");
    let servers: Vec<&Origin> = origins.iter().collect();
    Setup::new(threads).rules(&rule).pool_with("standard", keys, &servers)
}

const FROM_A_PROXY: &str = "trusted_proxies = [\"127.0.0.1\"]";

fn by_address(number: usize) -> String {
    format!("X-Forwarded-For: 192.0.2.{number}\r\n")
}

/// The servers of some clients; the status where none answered.
fn homes(switch: &Switch, clients: Range<usize>, fields: fn(usize) -> String) -> Vec<String> {
    homes_at(switch, "/", clients, fields)
}

/// The same of requests for a path.
fn homes_at(switch: &Switch, path: &str, clients: Range<usize>, fields: fn(usize) -> String) -> Vec<String> {
    let mut client = switch.client();
    let home = |number| {
        let answer = client.ask("GET", path, &fields(number));
        if answer.status() == 200 { answer.server().to_owned() } else { answer.status().to_string() }
    };
    clients.map(home).collect()
}

fn drain(switch: &Switch, name: &str, state: &str) {
    set(switch, name, state, "");
}

fn distinct(homes: &[String]) -> HashSet<&str> {
    homes.iter().map(String::as_str).collect()
}

fn by_what_a_request_shows(threads: usize) {
    let by_field = |number: usize| format!("X-K: k{number}\r\n");
    let by_cookie = |number: usize| format!("Cookie: sid=v{number}\r\n");
    type Fields = fn(usize) -> String;
    for (stickiness, fields, on_down, scope) in [
        ("STICKY_ON_IP", by_address as Fields, "repick", "target"),
        ("STICKY_ON_IP", by_address, "fail", "listener"),
        ("STICKY_ON(header[\"x-k\"])", by_field, "fail", "target"),
        ("STICKY_ON(cookie[\"sid\"])", by_cookie, "repick", "listener"),
    ] {
        let origins = three();
        let listener = format!("{FROM_A_PROXY}\nsticky_scope = \"{scope}\"");
        let keys = format!("on_down = \"{on_down}\"");
        let switch = setup(threads, stickiness, &keys, &origins).listener(&listener).with_token().start();
        let before = homes(&switch, 0..40, fields);
        assert_eq!(distinct(&before).len(), 3, "{before:?}");
        drain(&switch, "s0", "draining");
        assert_eq!(homes(&switch, 0..40, fields), before, "{stickiness} {on_down} {scope}");
        let new = homes(&switch, 40..80, fields);
        assert_eq!(distinct(&new), HashSet::from(["s1", "s2"]), "{stickiness} {on_down} {scope}");
        assert_eq!(homes(&switch, 40..80, fields), new);
        // Nobody moves when it takes everybody again.
        drain(&switch, "s0", "enabled");
        let all = [before, new].concat();
        assert_eq!(homes(&switch, 0..80, fields), all, "{stickiness} {on_down} {scope}");
        assert!(switch.metric("pointsman_sticky_exceptions", &[]) > 0.5, "their hashes said otherwise");
        // Where all drain, who is new goes nowhere.
        ["s0", "s1", "s2"].iter().for_each(|name| drain(&switch, name, "draining"));
        assert_eq!(homes(&switch, 0..80, fields), all);
        assert_eq!(distinct(&homes(&switch, 80..100, fields)), HashSet::from(["503"]));
    }
}

fn by_what_a_server_has_given(threads: usize) {
    let origins = sticky_learned::servers();
    let switch = sticky_learned::setup(threads, "STICKY_ON(cookie[\"sid\"])", &origins).with_token().start();
    let sessions: Vec<_> = (0..20).map(|_| sticky_learned::login(&switch, "")).collect();
    assert!(sessions.iter().any(|(_, server)| server == "s0"), "{sessions:?}");
    drain(&switch, "s0", "draining");
    for (session, server) in &sessions {
        let answer = switch.client().ask("GET", "/", &format!("Cookie: sid={session}\r\n"));
        assert_eq!(answer.server(), server);
    }
    let new: HashSet<_> = (0..20).map(|_| sticky_learned::login(&switch, "").1).collect();
    assert!(!new.contains("s0") && new.len() > 1, "{new:?}");
}

/// What is open stays where it is, and what is opened goes elsewhere.
fn by_the_connection(threads: usize) {
    let origins = three();
    let switch = setup(threads, "STICKY_ON_IP_PORT", "", &origins).with_token().start();
    let opened = || -> Vec<(Client, String)> {
        let open = |_| {
            let mut client = switch.client();
            let server = client.get("/").server().to_owned();
            (client, server)
        };
        (0..40).map(open).collect()
    };
    let mut old = opened();
    assert!(old.iter().any(|(_, server)| server == "s0"));
    drain(&switch, "s0", "draining");
    let mut new = opened();
    assert!(new.iter().all(|(_, server)| server != "s0"));
    for state in ["draining", "enabled"] {
        drain(&switch, "s0", state);
        for (client, server) in old.iter_mut().chain(&mut new) {
            assert_eq!(client.get("/").server(), server);
        }
    }
}

/// Over TLS 1.3 and 1.2: a session that goes on is not new, one that begins is.
fn by_a_tls_session(threads: usize) {
    let (origins, authority) = (three(), Authority::new("test CA"));
    let setup = setup(threads, "STICKY_ON_TLS_SESSION", "", &origins);
    let setup = setup.tls(&authority.server(&["shop.example"]), "");
    let versions = [TlsClient::v13, TlsClient::v12];
    let some = || -> Vec<TlsClient> { (0..30).map(|client| versions[client % 2](&authority)).collect() };
    for entries_max in [1000, 0] {
        let switch = setup.clone().top(&format!("sticky_entries_max = {entries_max}")).with_token().start();
        let ask = |clients: &[TlsClient]| -> Vec<String> {
            let ask = |client| {
                let client = Client::plain(switch.address("shop")).into_tls(client, "shop.example");
                client.expect("a handshake").get("/").server().to_owned()
            };
            clients.iter().map(ask).collect()
        };
        let (old, new) = (some(), some());
        let before = ask(&old);
        assert!(before.iter().any(|server| server == "s0"), "{before:?}");
        drain(&switch, "s0", "draining");
        assert_eq!(ask(&old), before, "{entries_max}");
        let begun = ask(&new);
        assert_eq!(distinct(&begun), HashSet::from(["s1", "s2"]), "{entries_max}");
        if entries_max > 0 {
            assert_eq!(ask(&new), begun);
            drain(&switch, "s0", "enabled");
            assert_eq!((ask(&old), ask(&new)), (before, begun));
        }
    }
}

fn who_is_forgotten_is_new(threads: usize) {
    let origins = three();
    let switch = setup(threads, "STICKY_ON_IP", "", &origins).listener(FROM_A_PROXY).with_token().start();
    let before = homes(&switch, 0..40, by_address);
    drain(&switch, "s0", "draining");
    let (answer, said) = switch.admin_ask("DELETE", "/api/v1/pools/standard/sticky-clients", "", "");
    assert_eq!(answer.status(), 200, "{said}");
    let after = homes(&switch, 0..40, by_address);
    for (was, is) in before.iter().zip(&after) {
        assert!(if was == "s0" { is != "s0" } else { is == was }, "{was} to {is}");
    }
}

/// A hash says nothing of who was here. The cookie of the switch does.
fn without_room_only_a_proof_counts(threads: usize) {
    let origins = three();
    let none = "sticky_entries_max = 0";
    let switch =
        setup(threads, "STICKY_ON_IP", "", &origins).listener(FROM_A_PROXY).top(none).with_token().start();
    let before = homes(&switch, 0..40, by_address);
    drain(&switch, "s0", "draining");
    assert_eq!(distinct(&homes(&switch, 0..40, by_address)), HashSet::from(["s1", "s2"]));
    drain(&switch, "s0", "enabled");
    assert_eq!(homes(&switch, 0..40, by_address), before);

    let switch = setup(threads, "STICKY_ON_COOKIE", "", &origins).top(none).with_token().start();
    let begin = || {
        let answer = switch.get("/");
        let cookie = answer.head.field("set-cookie").expect("a cookie");
        (cookie.split(';').next().unwrap_or_default().to_owned(), answer.server().to_owned())
    };
    let old: Vec<_> = (0..40).map(|_| begin()).collect();
    assert!(old.iter().any(|(_, server)| server == "s0"), "{old:?}");
    drain(&switch, "s0", "draining");
    let new: Vec<_> = (0..40).map(|_| begin()).collect();
    assert!(new.iter().all(|(_, server)| server != "s0"), "{new:?}");
    for state in ["draining", "enabled"] {
        drain(&switch, "s0", state);
        for (cookie, server) in old.iter().chain(&new) {
            let answer = switch.client().ask("GET", "/", &format!("Cookie: {cookie}\r\n"));
            assert_eq!(answer.server(), server);
        }
    }
}

/// A backup is nobody's home, and keeps clients while it serves.
fn backups_keep_whom_they_get_meanwhile(threads: usize) {
    let origins = three();
    let entry = |origin: &Origin, keys: &str| {
        format!("{{ name = \"{}\", address = \"{}\"{keys} }}", origin.name(), origin.address())
    };
    let [s0, s1, s2] = &origins;
    let backup = ", backup = true";
    let servers = [entry(s0, ""), entry(s1, backup), entry(s2, backup)].join(", ");
    let setup = Setup::new(threads).rules("R1: { routeTo(standard, STICKY_ON_IP); }");
    let pool = format!("[pool.standard]\nservers = [{servers}]");
    let switch = setup.raw(&pool).default_pool("standard").listener(FROM_A_PROXY).with_token().start();
    assert_eq!(distinct(&homes(&switch, 0..20, by_address)), HashSet::from(["s0"]));
    drain(&switch, "s0", "draining");
    let new = homes(&switch, 20..60, by_address);
    assert_eq!(distinct(&new), HashSet::from(["s1", "s2"]));
    assert_eq!(homes(&switch, 20..60, by_address), new);
    assert_eq!(distinct(&homes(&switch, 0..20, by_address)), HashSet::from(["s0"]));
    drain(&switch, "s0", "enabled");
    assert_eq!(distinct(&homes(&switch, 0..60, by_address)), HashSet::from(["s0"]));
}

fn asked(switch: &Switch, path: &str, clients: Range<usize>) -> Vec<String> {
    homes_at(switch, path, clients, by_address)
}

/// Who was with it stays, by that rule or another one; who is new gets 503, since the rule knows no other server. So it is over a
/// reload and in another process.
fn where_a_rule_names_the_server(threads: usize) {
    const RULES: &str = "R1: if (path under \"/one\") { routeTo(standard.s0, STICKY_ON_IP); }\n\
        R2: if (path under \"/any\") { routeTo(standard.s0); }\n\
        else: routeTo(standard, STICKY_ON_IP);";
    let origins = three();
    let setup = setup(threads, "STICKY_ON_IP", "", &origins).rules(RULES).listener(FROM_A_PROXY).with_token();
    let mut switch = setup.start();
    let all_of = |clients: &Range<usize>, server: &str| vec![server.to_owned(); clients.len()];
    let (by_name, by_pool, new) = (0..20, 20..60, 60..80);
    assert_eq!(asked(&switch, "/one", by_name.clone()), all_of(&by_name, "s0"));
    let homes = asked(&switch, "/", by_pool.clone());
    let named: Vec<_> = homes.iter().map(|home| if home == "s0" { "s0" } else { "503" }.to_owned()).collect();
    assert_eq!(switch.metric("pointsman_sticky_exceptions", &[]) as u64, 0);
    drain(&switch, "s0", "draining");
    let look = |switch: &Switch| {
        assert_eq!(asked(switch, "/one", by_name.clone()), all_of(&by_name, "s0"));
        assert_eq!(asked(switch, "/", by_pool.clone()), homes);
        assert_eq!(asked(switch, "/one", by_pool.clone()), named);
        // Twice: what refuses them is no visit.
        (0..2).for_each(|_| assert_eq!(asked(switch, "/one", new.clone()), all_of(&new, "503")));
        assert_eq!(asked(switch, "/any", by_name.clone()), all_of(&by_name, "503"));
    };
    look(&switch);
    switch.reload(&setup.clone().pool("another", &[&origins[1]]), 2);
    look(&switch);
    switch.upgrade();
    switch.wait_for_predecessors();
    look(&switch);
    let shown = switch.admin_shows("/api/v1/pools/standard/sticky-clients?server=s0&max=1000");
    let known = shown["clients"].as_array().expect("a list").len();
    assert!(known >= by_name.len(), "{shown}");
    drain(&switch, "s0", "disabled");
    assert_eq!(asked(&switch, "/one", by_name.clone()), all_of(&by_name, "503"));
    drain(&switch, "s0", "enabled");
    assert_eq!(asked(&switch, "/one", 0..80), all_of(&(0..80), "s0"));
    assert_eq!(asked(&switch, "/", by_pool), homes);
}

/// A visit to something else proves nothing where a rule names a server, nor does a session that began with being refused.
fn what_was_no_visit_to_the_named_server(threads: usize) {
    const RULES: &str = "R1: if (path under \"/one\") { routeTo(standard.s0, STICKY); }\n\
        R2: if (path under \"/other\") { routeTo(another, STICKY); }\n\
        else: routeTo(standard, STICKY);";
    let origins = three();
    let named = |stickiness: &str| {
        let rules = RULES.replace("STICKY", stickiness);
        setup(threads, stickiness, "", &origins).rules(&rules).pool("another", &[&origins[1]]).with_token()
    };
    let switch = named("STICKY_ON_COOKIE").start();
    drain(&switch, "s0", "draining");
    for path in ["/other", "/"] {
        let answer = switch.get(path);
        let cookie = answer.head.field("set-cookie").and_then(|cookie| cookie.split(';').next());
        let cookie = format!("Cookie: {}\r\n", cookie.expect("a cookie"));
        let ask = || switch.client().ask("GET", "/one", &cookie).status();
        assert_eq!([ask(), ask()], [503, 503], "{path}");
    }

    let authority = Authority::new("test CA");
    let switch = named("STICKY_ON_TLS_SESSION").tls(&authority.server(&["shop.example"]), "").start();
    for version in [TlsClient::v13, TlsClient::v12] {
        let (old, new) = (version(&authority), version(&authority));
        let ask = |client: &TlsClient| {
            let client = Client::plain(switch.address("shop")).into_tls(client, "shop.example");
            client.expect("a handshake").get("/one").status()
        };
        drain(&switch, "s0", "enabled");
        assert_eq!(ask(&old), 200);
        drain(&switch, "s0", "draining");
        assert_eq!([ask(&new), ask(&new), ask(&old), ask(&new)], [503, 503, 200, 503]);
    }
}

/// A share of a split that is a server: its clients stay, also where only their cookie says that they are. Who is new and falls
/// to it is refused without a cookie, so that it is as new the next time.
fn where_a_share_is_a_server(threads: usize) {
    let origins = three();
    let split = "R1: { routeTo(split(50: standard.s0, 50: standard.s1), STICKY_ON_COOKIE); }";
    let setup = setup(threads, "STICKY_ON_COOKIE", "", &origins).rules(split);
    for entries_max in [1000, 0] {
        let switch = setup.clone().top(&format!("sticky_entries_max = {entries_max}")).with_token().start();
        let begin = || {
            let answer = switch.get("/");
            let cookie = answer.head.field("set-cookie");
            let cookie = cookie.map(|cookie| cookie.split(';').next().unwrap_or_default().to_owned());
            match answer.status() {
                200 => Some((cookie.expect("a cookie"), answer.server().to_owned())),
                status => {
                    assert_eq!((status, cookie), (503, None));
                    None
                }
            }
        };
        let begun = || -> Vec<_> { (0..40).map(|_| begin()).collect() };
        let old = begun();
        assert_eq!(old.iter().flatten().count(), 40);
        drain(&switch, "s0", "draining");
        let new = begun();
        assert!(new.iter().flatten().all(|(_, server)| server == "s1"), "{new:?}");
        let refused = new.iter().filter(|begun| begun.is_none()).count();
        assert!((1..40).contains(&refused), "{refused}");
        for (cookie, server) in old.iter().chain(&new).flatten() {
            let answer = switch.client().ask("GET", "/", &format!("Cookie: {cookie}\r\n"));
            assert_eq!((answer.status(), answer.server()), (200, &**server), "{entries_max}");
        }
    }
}

/// A target that is a server: who is kept with it stays, whatever rule routes; who is new is not kept with what refuses it.
fn where_a_listener_keeps_clients_with_it(threads: usize) {
    const RULES: &str = "R1: if (path under \"/one\") { routeTo(standard.s0, STICKY_ON_IP); }\n\
        else: routeTo(others, STICKY_ON_IP);";
    let origins = three();
    let [_, s1, s2] = &origins;
    let listener = format!("{FROM_A_PROXY}\nsticky_scope = \"listener\"");
    let setup = setup(threads, "STICKY_ON_IP", "", &origins).rules(RULES).pool("others", &[s1, s2]);
    let switch = setup.listener(&listener).with_token().start();
    assert_eq!(distinct(&asked(&switch, "/one", 0..20)), HashSet::from(["s0"]));
    drain(&switch, "s0", "draining");
    for path in ["/", "/one"] {
        assert_eq!(distinct(&asked(&switch, path, 0..20)), HashSet::from(["s0"]));
    }
    (0..2).for_each(|_| assert_eq!(distinct(&asked(&switch, "/one", 20..40)), HashSet::from(["503"])));
    assert_eq!(distinct(&asked(&switch, "/", 20..40)), HashSet::from(["s1", "s2"]));
}
