//! Sticky clients are listed and forgotten by the admin API.

use std::collections::HashSet;

use pointsman_e2e::{Exchange, Origin, Setup, Switch, Then};
use serde_json::Value;

pointsman_e2e::for_threads!(all_are_listed_in_pages, who_is_forgotten_goes_home, targets_are_forgotten);

const CLIENTS: &str = "/api/v1/pools/standard/sticky-clients";
pub(crate) const KEPT: usize = 40;

/// Servers that give whoever asks for it the session that it names.
pub(crate) fn servers() -> [Origin; 3] {
    [0, 1, 2].map(|number| {
        let name = format!("s{number}");
        let own = name.clone();
        Origin::answering(&name, move |exchange: &mut Exchange<'_>| {
            exchange.body();
            let session = exchange.target().strip_prefix("/login/").map(str::to_owned);
            let session = session.map(|name| format!("Set-Cookie: sid={name}\r\n")).unwrap_or_default();
            exchange
                .send(format!("HTTP/1.1 200 OK\r\nX-Server: {own}\r\n{session}Content-Length: 0\r\n\r\n"));
            Then::KeepAlive
        })
    })
}

/// A switch, and the server of each session.
pub(crate) fn begun(threads: usize, servers: &[Origin; 3]) -> (Switch, Vec<String>) {
    let [s0, s1, s2] = servers;
    let setup = Setup::new(threads).rules("R1: { routeTo(standard, STICKY_ON(cookie[\"sid\"])); }");
    let switch = setup.pool("standard", &[s0, s1, s2]).with_token().start();
    let login = |session| switch.get(&format!("/login/{session}")).server().to_owned();
    let firsts = (0..KEPT).map(login).collect();
    (switch, firsts)
}

fn homes(switch: &Switch) -> Vec<String> {
    let ask = |session| switch.client().ask("GET", "/", &format!("Cookie: sid={session}\r\n"));
    (0..KEPT).map(|session| ask(session).server().to_owned()).collect()
}

fn ask(switch: &Switch, method: &str, target: &str) -> (u16, Value) {
    let (answer, said) = switch.admin_ask(method, target, "", "");
    (answer.status(), said)
}

fn all_are_listed_in_pages(threads: usize) {
    let servers = servers();
    let (switch, firsts) = begun(threads, &servers);
    let (mut seen, mut from, mut pages) = (Vec::new(), Some(0), 0);
    while let Some(at) = from {
        let (status, said) = ask(&switch, "GET", &format!("{CLIENTS}?max=7&from={at}"));
        assert_eq!(status, 200, "{said}");
        let clients = said["clients"].as_array().expect("a list").clone();
        assert!(clients.len() <= 7);
        seen.extend(clients);
        (from, pages) = (said["next"].as_u64(), pages + 1);
    }
    assert_eq!((seen.len(), pages), (KEPT, 6));
    let names: HashSet<_> = seen.iter().map(|client| client["client"].as_str().expect("a hash")).collect();
    assert_eq!(names.len(), KEPT);
    for name in ["s0", "s1", "s2"] {
        let wanted = firsts.iter().filter(|first| *first == name).count();
        assert_eq!(seen.iter().filter(|client| client["server"] == name).count(), wanted);
        let (_, said) = ask(&switch, "GET", &format!("{CLIENTS}?server={name}&max=1000"));
        assert_eq!(said["clients"].as_array().map(Vec::len), Some(wanted));
    }
    let exceptions = seen.iter().filter(|client| client["is_exception"] == true).count();
    assert!((switch.metric("pointsman_sticky_exceptions", &[]) - exceptions as f64).abs() < 0.5);
    for (target, status) in [
        ("/api/v1/pools/none/sticky-clients", 404),
        ("/api/v1/pools/standard/sticky-clients?server=none", 404),
        ("/api/v1/pools/standard/sticky-clients?max=0", 400),
        ("/api/v1/pools/standard/sticky-clients?max=1001", 400),
        ("/api/v1/pools/standard/sticky-clients?from=-1", 400),
    ] {
        assert_eq!(ask(&switch, "GET", target).0, status, "{target}");
    }
}

fn who_is_forgotten_goes_home(threads: usize) {
    let servers = servers();
    let (switch, firsts) = begun(threads, &servers);
    assert_eq!(homes(&switch), firsts);
    let (_, said) = ask(&switch, "GET", &format!("{CLIENTS}?max=1000"));
    let clients = said["clients"].as_array().expect("a list");
    let exception = clients.iter().find(|client| client["is_exception"] == true).expect("one of forty");
    let one = format!("{CLIENTS}/{}", exception["client"].as_str().expect("a hash"));
    assert_eq!(ask(&switch, "DELETE", &one), (200, serde_json::json!({ "version": 1, "forgotten": 1 })));
    assert_eq!(ask(&switch, "DELETE", &one).0, 404);
    assert_eq!(ask(&switch, "DELETE", &format!("{CLIENTS}/nobody")).0, 404);
    let moved =
        |before: &[String], after: &[String]| before.iter().zip(after).filter(|(a, b)| a != b).count();
    let without_one = homes(&switch);
    assert_eq!(moved(&firsts, &without_one), 1);
    let of_s0 = without_one.iter().filter(|home| *home == "s0").count();
    let (status, said) = ask(&switch, "DELETE", &format!("{CLIENTS}?server=s0"));
    assert_eq!((status, &said["forgotten"]), (200, &of_s0.into()));
    let (status, said) = ask(&switch, "DELETE", CLIENTS);
    assert_eq!((status, &said["forgotten"]), (200, &(KEPT - of_s0).into()));
    homes(&switch);
    assert!(switch.metric("pointsman_sticky_exceptions", &[]) < 0.5, "all are at home");
    assert!((switch.metric("pointsman_sticky_clients", &[]) - KEPT as f64).abs() < 0.5);
}

fn targets_are_forgotten(threads: usize) {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let setup = Setup::new(threads)
        .rules("R1: if (path == \"/a\") { routeTo(alpha, STICKY_ON_IP); } R2: { routeTo(beta); }")
        .listener("sticky_scope = \"listener\"");
    let switch = setup.pool("alpha", &[&a]).pool("beta", &[&b]).default_pool("beta").with_token().start();
    assert_eq!((switch.get("/a").server(), switch.get("/").server()), ("a", "a"));
    let (status, said) = ask(&switch, "DELETE", "/api/v1/sticky-targets");
    assert_eq!((status, &said["forgotten"]), (200, &1.into()));
    assert_eq!(switch.get("/").server(), "b");
}
