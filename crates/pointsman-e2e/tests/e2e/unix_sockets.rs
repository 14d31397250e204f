//! Listeners on Unix sockets: the file, what rules and servers see of such clients, and reloads.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use pointsman_e2e::{Authority, Client, Origin, Setup, Switch, TlsClient, echo, pointsman, tool, until};

pointsman_e2e::for_threads!(
    what_is_seen,
    chains_of_trusted_peers,
    behind_a_header,
    many_at_once,
    bodies_and_slow_readers,
    over_tls,
    the_file_and_its_permissions,
    a_reload_keeps_it,
    drained,
    curl_asks,
);

const SHOWS: &str =
    "R1: if (path == \"/fields\" && !(srcip exists || srcport exists || dstip exists || dstport exists)) {
                       respond(200, \"none|${clientip}|${srcip}\"); }";

fn on_socket(threads: usize) -> Setup {
    Setup::new(threads).listener("bind = \"unix:shop.sock\"")
}

fn path(switch: &Switch) -> PathBuf {
    switch.folder().join("shop.sock")
}

fn client(switch: &Switch) -> Client {
    Client::unix(&path(switch))
}

fn what_is_seen(threads: usize) {
    let origin = Origin::answering("origin", echo);
    let setup = on_socket(threads).rules(SHOWS).listener("forwarded = \"append\"");
    let switch = setup.pool("standard", &[&origin]).start();
    let line = switch.wait_for_line("listening name=shop address=unix:");
    assert!(line.ends_with("/shop.sock tls=false"), "{line}");
    let mut client = client(&switch);
    assert_eq!(client.get("/fields").text(), "none||", "a field that is absent is empty in a text");
    let seen = client.ask("GET", "/seen", "X-Forwarded-For: 192.0.2.1\r\n").text();
    assert!(!seen.contains("192.0.2.1") && !seen.to_lowercase().contains("x-forwarded-for"), "{seen}");
    assert!(seen.contains("for=unknown;host=shop.example;proto=http"), "{seen}");
    let entry = switch.log_of("/seen");
    assert_eq!((&entry["client"], entry.get("client_ip")), (&"unix:".into(), None), "{entry}");
    client.send("GET /old HTTP/1.0\r\n\r\n");
    assert!(client.response().text().contains("\"localhost\""), "HTTP/1.0 names no host");
}

fn chains_of_trusted_peers(threads: usize) {
    let origin = Origin::answering("origin", echo);
    let trusted = on_socket(threads).listener("trusted_proxies = [\"unix:\", \"10.0.0.0/8\"]");
    let switch = trusted.rules(SHOWS).pool("standard", &[&origin]).start();
    let mut client = client(&switch);
    let fields = "X-Forwarded-For: 192.0.2.9, 192.0.2.1, 10.0.0.1\r\n";
    assert_eq!(client.ask("GET", "/fields", fields).text(), "none|192.0.2.1|");
    let seen = client.ask("GET", "/seen", fields).text();
    assert!(seen.contains("\"192.0.2.9, 192.0.2.1, 10.0.0.1\""), "the chain stays as it is: {seen}");
    let entry = switch.log_of("/seen");
    assert_eq!((&entry["client"], &entry["client_ip"]), (&"unix:".into(), &"192.0.2.1".into()), "{entry}");
}

fn behind_a_header(threads: usize) {
    let keys = "proxy_protocol = \"required\"\ntrusted_proxies = [\"unix:\"]";
    let switch = on_socket(threads)
        .listener(keys)
        .rules(SHOWS)
        .pool_at("standard", "", &[("dead", Origin::dead_address())])
        .start();
    let mut proxied = client(&switch);
    proxied.send("PROXY TCP4 192.0.2.7 198.51.100.1 1 2\r\n");
    assert_eq!(proxied.get("/fields").text(), "none|192.0.2.7|");
    let mut bare = client(&switch);
    drop(bare.try_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert!(bare.closes());
}

fn many_at_once(threads: usize) {
    let origin = Origin::answering("origin", pointsman_e2e::ok);
    let switch = on_socket(threads).pool("standard", &[&origin]).start();
    let mut clients: Vec<_> = (0..200).map(|_| client(&switch)).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.response().text(), "origin");
    }
    let open = || switch.metric("pointsman_connections_open", &[("listener", "shop")]);
    assert_eq!(open(), 200.0);
    clients.clear();
    until("all are closed", || (open() == 0.0).then_some(()));
}

fn bodies_and_slow_readers(threads: usize) {
    let large = "0123456789abcdef".repeat(256 * 1024);
    let answer = large.clone();
    let origin = Origin::answering("origin", move |exchange| {
        assert_eq!(exchange.body().bytes.len(), 4 << 20);
        exchange.answer("200 OK", &answer)
    });
    let switch = on_socket(threads).pool("standard", &[&origin]).start();
    for fields in ["Content-Length: 4194304", "Transfer-Encoding: chunked"] {
        let mut client = client(&switch);
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n"));
        match fields.starts_with("Content") {
            true => client.send(&large),
            false => client.send(format!("400000\r\n{large}\r\n0\r\n\r\n")),
        }
        assert!(client.response().text() == large, "the body changed on its way");
    }
}

fn over_tls(threads: usize) {
    let authority = Authority::new("test CA");
    let setup = on_socket(threads).tls(&authority.server(&["shop.example"]), "");
    let switch = setup.rules("else: respond(200, \"${tls.sni}\");").start();
    let trust = TlsClient::new(&authority);
    let mut client = client(&switch).into_tls(&trust, "shop.example").expect("a handshake");
    assert_eq!(client.get("/").text(), "shop.example");
}

fn the_file_and_its_permissions(threads: usize) {
    let rules = "else: respond(204, \"\");";
    let switch = on_socket(threads).rules(rules).start();
    let mode = |switch: &Switch| std::fs::metadata(path(switch)).expect("it is there").mode() & 0o777;
    assert_eq!(mode(&switch), 0o660);
    // A second switch leaves the first one its socket.
    let second = pointsman(switch.folder(), &["run", "--config", "pointsman.toml"]);
    assert_ne!(second.code, 0);
    assert!(second.stderr.contains("cannot listen on unix:"), "{}", second.stderr);
    assert_eq!(client(&switch).get("/").status(), 204);
    let open = on_socket(threads).listener("unix_mode = \"0606\"").rules(rules).start();
    assert_eq!(mode(&open), 0o606);
    // What a killed process leaves is replaced; what is no socket is not.
    let folder = tempfile::tempdir().expect("a temporary folder");
    on_socket(threads).rules(rules).write(folder.path());
    drop(UnixListener::bind(folder.path().join("shop.sock")).expect("a writable folder"));
    let switch = Switch::run(folder);
    assert_eq!(client(&switch).get("/").status(), 204);
    let folder = tempfile::tempdir().expect("a temporary folder");
    on_socket(threads).rules(rules).file("shop.sock", "somebody else's").write(folder.path());
    let refused = pointsman(folder.path(), &["run", "--config", "pointsman.toml"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("something that is no socket is there"), "{}", refused.stderr);
    assert_eq!(std::fs::read(folder.path().join("shop.sock")).expect("it is left"), b"somebody else's");
}

fn a_reload_keeps_it(threads: usize) {
    let setup = |rules: &str| on_socket(threads).rules(rules);
    let switch = setup("else: respond(200, \"one\");").start();
    let inode = || std::fs::metadata(path(&switch)).expect("it is there").ino();
    let (mut before, first) = (client(&switch), inode());
    assert_eq!(before.get("/").text(), "one");
    switch.reload(&setup("else: respond(200, \"two\");"), 2);
    assert_eq!((before.get("/").text(), client(&switch).get("/").text()), ("two".into(), "two".into()));
    assert_eq!(inode(), first);
    // Under another name it is the same socket; elsewhere another one, and the first is gone.
    let renamed = Setup::new(threads).named("other").listener("bind = \"unix:shop.sock\"");
    switch.reload(&renamed.rules("else: respond(200, \"three\");"), 3);
    assert_eq!((client(&switch).get("/").text(), inode()), ("three".into(), first));
    let moved = Setup::new(threads).listener("bind = \"unix:moved.sock\"");
    switch.reload(&moved.rules("else: respond(200, \"four\");"), 4);
    assert_eq!(Client::unix(&switch.folder().join("moved.sock")).get("/").text(), "four");
    assert!(!path(&switch).exists());
}

fn drained(threads: usize) {
    let mut switch = on_socket(threads).rules("else: respond(204, \"\");").start();
    let file = path(&switch);
    assert!(std::fs::metadata(&file).expect("it is there").file_type().is_socket());
    let mut idle = client(&switch);
    switch.signal("TERM");
    assert!(idle.closes());
    assert_eq!(switch.wait_for_exit(), Some(0));
    assert!(!file.exists(), "it goes with the process");
    assert!(UnixStream::connect(&file).is_err());
}

fn curl_asks(threads: usize) {
    let switch = on_socket(threads).rules("else: respond(200, \"${host}\");").start();
    let words = ["--silent", "--max-time", "10", "--unix-socket", "shop.sock", "http://shop.example/"];
    let Some(finished) = tool(switch.folder(), "curl", &words) else { return };
    assert_eq!(finished.stdout, "shop.example", "{}", finished.output());
}
