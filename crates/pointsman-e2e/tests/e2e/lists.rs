//! Lists of networks and of texts, from files that change.

use pointsman_e2e::{Origin, Setup};

pointsman_e2e::for_threads!(
    networks_and_texts_are_looked_up,
    a_changed_file_is_loaded,
    a_mistake_changes_nothing
);

const RULES: &str = "R1: if (srcip in @blocked && !(srcip in [@friends, 10.0.0.0/8])) { reject(403); }
R2: if (host in @tenants || lower(header[\"x-plan\"]) in @plans) { routeTo(b); }
R3: { routeTo(a); }";

const LISTS: &str = "[list.blocked]
file = \"blocked.networks\"

[list.friends]
entries = [\"192.0.2.1\"]

[list.tenants]
kind = \"texts\"
file = \"tenants\"

[list.plans]
kind = \"texts\"
entries = [\"gold\", \"silver\"]
";

/// So many networks around what is asked for, and these.
fn networks(count: u32, further: &str) -> String {
    let lines = (0..count).map(|place| format!("172.{}.{}.0/25 # {place}\n", place / 256 % 256, place % 256));
    let of_six = (0..count).map(|place| format!("2001:db8:{place:x}::/49\n"));
    lines.chain(of_six).chain([further.to_owned()]).collect()
}

fn setup(threads: usize, networks: &str, a: &Origin, b: &Origin) -> Setup {
    let tenants = "# hosts\n\ntenant.example\n  other.example  \n";
    let setup = Setup::new(threads).rules(RULES).pool("a", &[a]).pool("b", &[b]).raw(LISTS);
    setup.file("blocked.networks", networks).file("tenants", tenants)
}

fn networks_and_texts_are_looked_up(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let switch = setup(threads, &networks(30_000, "192.0.2.1"), &a, &b).start();
    let server = |head: &str| {
        let mut client = switch.client();
        client.send(format!("GET / HTTP/1.1\r\n{head}\r\n\r\n"));
        client.response().server().to_owned()
    };
    assert_eq!(server("Host: shop.example"), "sa");
    assert_eq!(server("Host: TENANT.example:80"), "sb");
    assert_eq!(server("Host: other.example"), "sb");
    assert_eq!(server("Host: a.tenant.example"), "sa");
    assert_eq!(server("Host: shop.example\r\nX-Plan: Gold"), "sb");
    assert_eq!(server("Host: shop.example\r\nX-Plan: golden"), "sa");
}

/// Without a signal, and without a change of anything else.
fn a_changed_file_is_loaded(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = setup(threads, &networks(10, "127.0.0.2-127.0.0.9"), &a, &b).top("watch_ms = 20");
    let switch = setup.start();
    assert_eq!(switch.get("/").server(), "sa");
    setup.clone().file("blocked.networks", &networks(10, "127.0.0.1-127.0.0.9")).write(switch.folder());
    switch.wait_for_line("reloaded generation=");
    assert_eq!(switch.get("/").status(), 403);
    // What the new list decides otherwise is said.
    switch.wait_for_line("rules differ listener=shop");
}

fn a_mistake_changes_nothing(threads: usize) {
    let (a, b) = (Origin::new("sa"), Origin::new("sb"));
    let setup = setup(threads, "127.0.0.1\n", &a, &b);
    let switch = setup.start();
    assert_eq!(switch.get("/").status(), 403);
    setup.clone().file("blocked.networks", "192.0.2.0/24\n\n127.0.0.1/8\n").write(switch.folder());
    switch.signal("HUP");
    switch.wait_for_line("reload refused");
    switch.wait_for_line("  = help: did you mean `127.0.0.0/8`");
    assert_eq!(switch.get("/").status(), 403);
    let said = switch.said();
    for word in ["blocked.networks:3:1", "^"] {
        assert!(said.contains(word), "`{word}` is missing in:\n{said}");
    }
    switch.reload(&setup.file("blocked.networks", "192.0.2.0/24\n"), 2);
    assert_eq!(switch.get("/").server(), "sa");
}
