//! Connections that begin with a PROXY header: whom the switch takes for the client, and who is cut off.

use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use pointsman_e2e::{
    Authority, Client, Nginx, Origin, PATIENCE, RawOrigin, Setup, Switch, TlsClient, installed,
    installed_nginx_passes, ok, read_lines, read_some, tool, unescape, until, workspace,
};

pointsman_e2e::for_threads!(
    headers,
    headers_in_pieces,
    untrusted_peers,
    slow_and_silent,
    over_tls,
    what_others_are_told,
    counted_by_client,
    kept_by_client,
    switched_by_a_reload,
    drained,
    values_of_version_2,
    haproxy_in_front,
    nginx_in_front,
    curl_in_front,
);

const SHOWS_CLIENT: &str = "else: respond(200, \"${clientip} ${srcip}\");";
const V1: &str = "PROXY TCP4 192.0.2.7 198.51.100.1 40000 443\r\n";

fn required(threads: usize, trusted: &str) -> Setup {
    Setup::new(threads).listener(&format!("proxy_protocol = \"required\"\ntrusted_proxies = [{trusted}]"))
}

fn from(client: &str) -> String {
    format!("PROXY TCP4 {client} 198.51.100.1 40000 443\r\n")
}

fn refusals(switch: &Switch, reason: &str) -> f64 {
    switch.metric("pointsman_refusals_total", &[("reason", reason)])
}

fn line_of(switch: &Switch, local: SocketAddr) -> serde_json::Value {
    switch.log_entry("a line of the connection", |entry| entry["client"] == local.to_string())
}

/// A row of the table: what must come of it, what it is about, the bytes.
fn rows() -> Vec<(String, String, Vec<u8>)> {
    let lines = read_lines(&workspace().join("testdata/proxy-protocol/headers.txt"));
    let row = |(number, line): (usize, String)| {
        let [outcome, what, text] = line.splitn(3, " | ").collect::<Vec<_>>()[..] else {
            panic!("headers.txt:{number}: `{line}`")
        };
        (outcome.to_owned(), format!("headers.txt:{number}: {what}"), unescape(text))
    };
    let rows: Vec<_> = lines.into_iter().map(row).collect();
    assert!(rows.len() > 70, "{} rows", rows.len());
    rows
}

fn check_rows(threads: usize, send: impl Fn(&mut Client, &[u8])) {
    let switch = required(threads, "\"127.0.0.1\", \"10.0.0.0/8\"").rules(SHOWS_CLIENT).start();
    let mut cut = 0.0;
    for (outcome, what, bytes) in rows() {
        let lines = switch.log_lines();
        let mut client = switch.client();
        let request = b"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.99\r\n\r\n";
        send(&mut client, &[&bytes, &request[..]].concat());
        if outcome.parse::<IpAddr>().is_ok() {
            let answer = client.try_response().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(answer.text(), format!("{outcome} 127.0.0.1"), "{what}");
            continue;
        }
        assert!(client.closes(), "{what}");
        cut += 1.0;
        let sentence = match outcome.as_str() {
            "absent" => "the connection does not begin with one",
            "malformed" => "it is malformed",
            "too long" => "it is too long",
            "checksum" => "its checksum is wrong",
            other => panic!("{what}: no outcome `{other}`"),
        };
        let local = client.local().to_string();
        let is_its = |entry: &serde_json::Value| entry["client"] == local && entry["error"].is_string();
        let entry = switch.log_entry_after(lines, "a line of the connection", is_its);
        assert_eq!(entry["error"], format!("PROXY header: {sentence}"), "{what}");
    }
    assert_eq!(refusals(&switch, "proxy_header"), cut);
}

fn headers(threads: usize) {
    check_rows(threads, |client, bytes| client.send(bytes));
}

/// What a cloud's balancer says of a connection is known to rules, and goes on to servers that want headers.
fn values_of_version_2(threads: usize) {
    const ENDPOINT: &[u8] = b"\xea\0\x07\x01vpce-1";
    const LINK: &[u8] = b"\xee\0\x05\x01\x02\0\0\x10";
    const ID: &[u8] = b"\x05\0\x03a\0b";
    let (say, said) = std::sync::mpsc::channel();
    let say = std::sync::Mutex::new(say);
    let origin = RawOrigin::serving(move |mut socket, _| {
        let (mut came, mut space) = (Vec::new(), [0; 4096]);
        while !came.ends_with(b"\r\n\r\n") || !came.windows(4).any(|four| four == b"GET ") {
            match read_some(&mut socket, &mut space) {
                Ok(count @ 1..) => came.extend_from_slice(&space[..count]),
                _ => return,
            }
        }
        say.lock().expect("one server").send(came).unwrap_or_default();
        socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap_or_default();
    });
    let rules = r#"if (proxy.aws_vpce_id == "vpce-1" && proxy.unique_id == "610062") {
            setHeader("x-link", "${proxy.azure_link_id} ${proxy.authority}");
        } else { reject(403); }"#;
    let setup = required(threads, "\"127.0.0.1\"").rules(rules);
    let pool = "proxy_protocol = \"v2\"";
    let switch = setup.pool_at("standard", pool, &[("origin", origin.address())]).start();
    let ask = |values: &[u8]| {
        let block = [&[192, 0, 2, 7, 198, 51, 100, 1, 0x9c, 0x40, 1, 0xbb], values].concat();
        let length = u16::try_from(block.len()).expect("short").to_be_bytes();
        let mut client = switch.client();
        client.send([&b"\r\n\r\n\0\r\nQUIT\n\x21\x11"[..], &length, &block].concat());
        client.get("/").status()
    };
    assert_eq!(ask(&[ENDPOINT, LINK, ID, b"\x02\0\x09A.example"].concat()), 204);
    let came = said.recv_timeout(PATIENCE).expect("a request");
    for value in [ENDPOINT, LINK, ID, b"\x02\0\x09a.example", b"268435458 a.example\r\n"] {
        assert!(came.windows(value.len()).any(|part| part == value), "{}", came.escape_ascii());
    }
    assert_eq!(ask(&[]), 403);
}

/// A client that was cut off takes no more bytes, so that is no failure.
fn headers_in_pieces(threads: usize) {
    check_rows(threads, |client, bytes| {
        let pieces = bytes.chunks(if bytes.len() > 1000 { 100 } else { 1 });
        for piece in pieces {
            if client.try_send(piece).is_err() {
                break;
            }
        }
    });
}

fn untrusted_peers(threads: usize) {
    let switch = required(threads, "\"127.0.0.3\"").rules(SHOWS_CLIENT).start();
    for first in ["", V1, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let mut client = switch.client();
        drop(client.try_send(first));
        assert!(client.closes(), "{first}");
        let entry = line_of(&switch, client.local());
        assert_eq!(entry["error"], "PROXY header: the peer is not in `trusted_proxies`");
    }
    assert_eq!(refusals(&switch, "proxy_header"), 3.0);
    let mut proxy = Client::plain_from([127, 0, 0, 3].into(), switch.address("shop"));
    proxy.send(V1);
    assert_eq!(proxy.get("/").text(), "192.0.2.7 127.0.0.3");
    assert_eq!(proxy.get("/").text(), "192.0.2.7 127.0.0.3", "it is said once for a connection");
}

fn slow_and_silent(threads: usize) {
    let setup = required(threads, "\"127.0.0.1\"").limits("proxy_header_ms_max = 300");
    let switch = setup.rules(SHOWS_CLIENT).start();
    let mut slow = switch.client();
    slow.send(&V1[..20]);
    assert!(slow.closes());
    assert_eq!(line_of(&switch, slow.local())["error"], "PROXY header: it did not arrive in time");
    let mut ended = switch.client();
    ended.send(&V1[..20]);
    ended.finish_sending();
    assert!(ended.closes());
    let error = "PROXY header: the connection closed before it was whole";
    assert_eq!(line_of(&switch, ended.local())["error"], error);
    let mut silent = switch.client();
    assert!(silent.closes());
    until("the silent one", || (refusals(&switch, "proxy_header") == 3.0).then_some(()));
    // Who only looks whether somebody is there is not refused.
    let mut looks = switch.client();
    looks.finish_sending();
    assert!(looks.closes());
    assert_eq!(refusals(&switch, "proxy_header"), 3.0);
    switch.expect_log_lines(2);
}

fn over_tls(threads: usize) {
    let authority = Authority::new("test CA");
    let rules = "if (clientip == 192.0.2.7 && tls.sni == \"shop.example\") { respond(200, \"${clientip}\"); }
                 else: reject(403);";
    let setup = required(threads, "\"127.0.0.1\"").tls(&authority.server(&["shop.example"]), "");
    let switch = setup.rules(rules).start();
    let (address, trust) = (switch.address("shop"), TlsClient::new(&authority));
    let behind = |header: &str| {
        let mut client = Client::plain(address);
        client.send(header);
        client.into_tls(&trust, "shop.example").expect("a handshake")
    };
    assert_eq!(behind(V1).get("/").text(), "192.0.2.7");
    assert_eq!(behind(&from("192.0.2.8")).get("/").status(), 403);
    assert!(switch.tls_client(&trust, "shop.example").is_err(), "TLS alone is no header");
    assert_eq!(refusals(&switch, "proxy_header"), 1.0);
    // A handshake that fails has the client in its line.
    let mut client = Client::plain(address);
    client.send(format!("{V1}GET / HTTP/1.1\r\n\r\n"));
    client.everything();
    let entry = line_of(&switch, client.local());
    assert_eq!(entry["client_ip"], "192.0.2.7", "{entry}");
}

fn what_others_are_told(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        let seen = |name: &str| exchange.head.field(name).unwrap_or("-").to_owned();
        let body = format!("{} {}", seen("x-forwarded-for"), seen("forwarded"));
        exchange.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        pointsman_e2e::Then::KeepAlive
    });
    let setup = required(threads, "\"127.0.0.1\", \"10.0.0.0/8\"").listener("forwarded = \"append\"");
    let switch = setup.pool("standard", &[&origin]).start();
    let ask = |header: &str, fields: &str, path: &str| {
        let mut client = switch.client();
        client.send(header);
        let answer = client.ask("GET", path, fields);
        (answer.text(), client.local())
    };
    let (text, local) =
        ask(V1, "X-Forwarded-For: 203.0.113.99\r\nForwarded: for=203.0.113.98\r\n", "/client");
    assert_eq!(text, "192.0.2.7 for=192.0.2.7;host=shop.example;proto=http", "what a client writes is gone");
    let entry = switch.log_of("/client");
    assert_eq!((&entry["client"], &entry["client_ip"]), (&local.to_string().into(), &"192.0.2.7".into()));
    let (text, _) = ask(&from("10.0.0.1"), "X-Forwarded-For: 203.0.113.99\r\n", "/proxy");
    assert_eq!(text, "203.0.113.99, 10.0.0.1 -", "the chain goes on with the hop before the peer");
    assert_eq!(switch.log_of("/proxy")["client_ip"], "203.0.113.99");
    let (text, _) = ask("PROXY UNKNOWN\r\n", "X-Forwarded-For: 203.0.113.99\r\n", "/unknown");
    assert_eq!(text, "127.0.0.1 for=127.0.0.1;host=shop.example;proto=http");
    assert_eq!(switch.log_of("/unknown")["client_ip"], "127.0.0.1");
}

fn counted_by_client(threads: usize) {
    let setup = required(threads, "\"127.0.0.1\"").limits("connections_per_address_max = 1");
    let switch = setup.rules(SHOWS_CLIENT).start();
    let connect = |client: &str| {
        let mut connection = switch.client();
        connection.send(from(client));
        connection
    };
    let mut first = connect("192.0.2.7");
    assert_eq!(first.get("/").status(), 200);
    assert_eq!(connect("192.0.2.7").response().status(), 429);
    assert_eq!(connect("192.0.2.8").get("/").status(), 200);
    assert_eq!(refusals(&switch, "connections_per_address"), 1.0);
    drop(first);
    until("room for the next", || {
        let mut next = connect("192.0.2.7");
        drop(next.try_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        next.try_response().ok().filter(|answer| answer.status() == 200)
    });
}

fn kept_by_client(threads: usize) {
    let origins: Vec<_> = ["a", "b", "c"].into_iter().map(|name| Origin::answering(name, ok)).collect();
    let setup = required(threads, "\"127.0.0.1\"").rules("else: routeTo(standard, STICKY_ON_IP);");
    let switch = setup.pool("standard", &origins.iter().collect::<Vec<_>>()).start();
    let server = |client: &str| {
        let mut connection = switch.client();
        connection.send(from(client));
        connection.get("/").server().to_owned()
    };
    let mut servers = std::collections::HashSet::new();
    for number in 1..=30 {
        let client = format!("192.0.2.{number}");
        let first = server(&client);
        assert_eq!(server(&client), first, "{client}");
        servers.insert(first);
    }
    assert_eq!(servers.len(), 3, "30 clients are not all on one server");
}

fn switched_by_a_reload(threads: usize) {
    let plain = Setup::new(threads).rules(SHOWS_CLIENT);
    let mut switch = plain.start();
    let mut before = switch.client();
    assert_eq!(before.get("/").text(), "127.0.0.1 127.0.0.1");
    switch.reload(&required(threads, "\"127.0.0.1\"").rules(SHOWS_CLIENT), 2);
    assert_eq!(before.get("/").text(), "127.0.0.1 127.0.0.1", "an open connection goes on as it began");
    let mut proxied = switch.client();
    proxied.send(V1);
    assert_eq!(proxied.get("/").text(), "192.0.2.7 127.0.0.1");
    let mut bare = switch.client();
    drop(bare.try_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert!(bare.closes());
    switch.reload(&plain, 3);
    assert_eq!(proxied.get("/").text(), "192.0.2.7 127.0.0.1", "what was said of a connection stays so");
    assert_eq!(switch.get("/").text(), "127.0.0.1 127.0.0.1");
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// Who has not begun to say who it is for is idle; who has is waited for.
fn drained(threads: usize) {
    let mut switch = required(threads, "\"127.0.0.1\"").rules(SHOWS_CLIENT).start();
    let (mut silent, mut amid) = (switch.client(), switch.client());
    amid.send(&V1[..20]);
    until("both", || (switch.metric("pointsman_connections_open", &[]) == 2.0).then_some(()));
    switch.signal("TERM");
    assert!(silent.closes());
    amid.send(&V1[20..]);
    amid.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(amid.response().text(), "192.0.2.7 127.0.0.1");
    assert!(amid.closes());
    assert_eq!(switch.wait_for_exit(), Some(0));
}

/// A running program. It is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// HAProxy cannot say which free port it took, so one is chosen for it; if somebody else was quicker, another.
fn haproxy(folder: &Path, to: SocketAddr, options: &str) -> (Running, SocketAddr) {
    for _ in 0..5 {
        let address = Origin::free_address();
        let configuration = format!(
            "defaults\n mode tcp\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n\
             listen front\n bind {address}\n server switch {to} {options}\n"
        );
        std::fs::write(folder.join("haproxy.cfg"), configuration).expect("a writable folder");
        let mut command = Command::new("haproxy");
        command.args(["-db", "-q", "-f", "haproxy.cfg"]).current_dir(folder);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut running = Running(child.expect("it is installed"));
        let end = Instant::now() + PATIENCE;
        while running.0.try_wait().expect("it is ours").is_none() && Instant::now() < end {
            if TcpStream::connect(address).is_ok() {
                return (running, address);
            }
            std::thread::yield_now();
        }
    }
    panic!("HAProxy does not start");
}

fn haproxy_in_front(threads: usize) {
    if !installed("haproxy") {
        return;
    }
    let switch = required(threads, "\"127.0.0.1\"").rules(SHOWS_CLIENT).start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let v2 = "send-proxy-v2 proxy-v2-options crc32c,unique-id";
    // Its checks begin with a header for itself.
    for options in ["send-proxy", v2, "send-proxy-v2 check inter 100ms"] {
        let (_haproxy, address) = haproxy(folder.path(), switch.address("shop"), options);
        let mut client = Client::plain_from([127, 0, 0, 9].into(), address);
        assert_eq!(client.get("/").text(), "127.0.0.9 127.0.0.1", "{options}");
    }
    assert_eq!(refusals(&switch, "proxy_header"), 0.0);
}

/// nginx passes connections on, in plain text and under TLS that the switch ends, and says whose they are.
fn nginx_in_front(threads: usize) {
    if !installed_nginx_passes() {
        return;
    }
    let authority = Authority::new("test CA");
    let setup = required(threads, "\"127.0.0.1\"").rules(SHOWS_CLIENT).another_listener("tls");
    let setup = setup
        .listener("proxy_protocol = \"required\"\ntrusted_proxies = [\"127.0.0.1\"]")
        .rules(SHOWS_CLIENT);
    let switch = setup.tls(&authority.server(&["shop.example"]), "").start();
    let to = [switch.address("shop"), switch.address("tls")];
    let nginx = Nginx::passing(|listen: [SocketAddr; 2]| {
        let server = |at: usize| {
            format!("server {{ listen {}; proxy_pass {}; proxy_protocol on; }}", listen[at], to[at])
        };
        server(0) + &server(1)
    });
    let trust = TlsClient::new(&authority);
    for client in [[127, 0, 0, 9], [127, 0, 0, 10]] {
        let expected = format!("{} 127.0.0.1", IpAddr::from(client));
        let mut plain = Client::plain_from(client.into(), nginx.address(0));
        for _ in 0..2 {
            assert_eq!(plain.get("/").text(), expected);
        }
        let secured = Client::plain_from(client.into(), nginx.address(1));
        let mut secured = secured.into_tls(&trust, "shop.example").expect("a handshake");
        assert_eq!(secured.get("/").text(), expected);
    }
}

fn curl_in_front(threads: usize) {
    let switch = required(threads, "\"127.0.0.3\"").rules("else: respond(200, \"${clientip}\");").start();
    let url = format!("http://{}/", switch.address("shop"));
    let words = ["--silent", "--max-time", "10", "--interface", "127.0.0.3", "--haproxy-protocol", &url];
    let Some(finished) = tool(switch.folder(), "curl", &words) else { return };
    assert_eq!(finished.stdout, "127.0.0.3", "{}", finished.output());
}
