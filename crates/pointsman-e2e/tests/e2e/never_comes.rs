//! What `check` says never to come to a listener does not, by the table in `testdata/never.txt`: the switch is asked.

use std::fmt::Write as _;

use pointsman_e2e::{
    Authority, Client, H2Client, Origin, Setup, Switch, TlsClient, ends, folder, ok, read_lines, testdata,
};
use serde_json::Value;

use crate::http2_names::several;

pointsman_e2e::for_threads!(table, certificates);

/// A condition, and what is tried, with the sign or status of each.
struct Row {
    condition: String,
    requests: Vec<(usize, String, String)>,
}

fn table(threads: usize) {
    let listeners = listeners();
    let mut tried = 0;
    for (keys, rows) in &listeners {
        let rules = rules(rows);
        check(keys, rows, &rules);
        let switch = Setup::new(threads).listener(keys).rules(&rules).start();
        let mut failures = String::new();
        for (number, row) in rows.iter().enumerate() {
            for (line, expected, request) in &row.requests {
                tried += 1;
                let seen = ask(&switch, number, request);
                if seen != *expected {
                    writeln!(
                        failures,
                        "{line}: {}\n  {request}: {seen} instead of {expected}",
                        row.condition
                    )
                    .expect("memory");
                }
            }
        }
        assert!(failures.is_empty(), "never.txt\n{failures}");
    }
    assert!(tried > 50, "{tried}");
}

/// Conditions about names and hosts, and a request that tries: the name of its handshake, its host, and what it gets.
const OF_CERTIFICATES: [(&str, Option<&str>, &str, &str); 9] = [
    (
        r#"version == "2" && tls.sni == "shop.example" && host == "other.example""#,
        Some("shop.example"),
        "other.example",
        "421",
    ),
    (
        r#"version == "2" && tls.sni endsWith ".wild.example" && host in ["other.example", "wild.example"]"#,
        Some("a.wild.example"),
        "other.example",
        "421",
    ),
    (r#"tls.alpn == "h2" && !(tls.sni exists) && host == "other.example""#, None, "other.example", "421"),
    (
        r#"version == "2" && tls.sni == "other.example" && host startsWith "127.""#,
        Some("other.example"),
        "127.0.0.1",
        "421",
    ),
    (
        r#"version == "2" && tls.sni in ["a.wild.example", "b.wild.example"] && host == "c.wild.example""#,
        Some("a.wild.example"),
        "c.wild.example",
        "+",
    ),
    (
        r#"version == "2" && tls.sni == "shop.example" && host != "shop.example" && host endsWith ".example""#,
        Some("shop.example"),
        "www.shop.example",
        "+",
    ),
    (r#"version == "2" && !(tls.sni exists) && host == "127.0.0.1""#, None, "127.0.0.1", "+"),
    (r#"version == "2" && tls.sni == "other.example""#, Some("other.example"), "other.example", "+"),
    // Clients of HTTP/1.1 do not share connections among hosts.
    (r#"tls.sni == "shop.example" && host == "other.example""#, Some("shop.example"), "other.example", "421"),
];

/// A host that a connection is not for is refused; `check` knows that, and `explain` says it.
fn certificates(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", ok));
    let condition =
        |(condition, ..): &(&str, _, _, _)| Row { condition: (*condition).to_owned(), requests: Vec::new() };
    let rules = rules(&OF_CERTIFICATES.iter().map(condition).collect::<Vec<_>>());
    let setup = several(threads, &authority).pool("standard", &[&origin]).rules(&rules);
    let folder = folder(&[]);
    setup.write(folder.path());
    let words = ["check", "--json", "--fail-on", "error", "pointsman.toml"];
    let json: Value = serde_json::from_str(&ends(folder.path(), &words, 0, &[]).stdout).expect("JSON");
    let findings = json["findings"].as_array().expect("a list");
    let switch = setup.start();
    for (number, (condition, name, host, expected)) in OF_CERTIFICATES.into_iter().enumerate() {
        let of_it = |finding: &&Value| finding["rule"] == format!("C{number}").as_str();
        let codes: Vec<_> = findings.iter().filter(of_it).map(|finding| &finding["code"]).collect();
        let is_never = codes.iter().any(|code| *code == "contradiction");
        assert_eq!(is_never, number < 4, "{condition}: {codes:?}");
        assert!(!codes.iter().any(|code| *code == "unknown"), "{condition}: {codes:?}");
        let mut trust = TlsClient::new(&authority).alpn(&["h2"]);
        if name.is_none() {
            trust = trust.without_sni();
        }
        let client = switch.tls_client(&trust, name.unwrap_or("shop.example")).expect("a handshake");
        let mut client = H2Client::begin(client);
        client.ask(1, "GET", "/", &[(":authority", host), ("x-case", &number.to_string())]);
        let answer = client.answer(1);
        let seen = if answer.text() == "+" { "+".to_owned() } else { answer.status().to_string() };
        assert_eq!(seen, expected, "{condition}");
        let request = format!("GET / HTTP/2\nHost: {host}\nX-Case: {number}\n\n");
        std::fs::write(folder.path().join("request"), request).expect("a writable folder");
        let words = ["explain", "pointsman.toml", "request", "--sni", name.unwrap_or_default()];
        let (code, said) = match expected {
            "421" => (1, "refused with 421: the host is not served on this connection".to_owned()),
            _ => (0, format!("C{number}: respond(200, \"+\")")),
        };
        ends(folder.path(), &words, code, &[&said]);
    }
}

/// What is proved: of each row that nothing comes so, but for those that something does.
fn check(keys: &str, rows: &[Row], rules: &str) {
    let configuration = format!(
        "[[listener]]\nname = \"shop\"\nbind = \"127.0.0.1:0\"\nrules = \"a.rules\"\npool = \"a\"\n{keys}\n\
         [pool.a]\nservers = [\"127.0.0.1:1\"]\n"
    );
    let folder = folder(&[("a.toml", &configuration), ("a.rules", rules)]);
    let json = ends(folder.path(), &["check", "--json", "--fail-on", "error", "a.toml"], 0, &[]);
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let findings = json["findings"].as_array().expect("a list");
    for (number, row) in rows.iter().enumerate() {
        let is_it = |finding: &&Value| finding["rule"] == format!("C{number}").as_str();
        let of_it: Vec<_> = findings.iter().filter(is_it).map(|finding| &finding["code"]).collect();
        let comes = row.requests.iter().any(|(_, sign, _)| sign == "+");
        let is_never = of_it.iter().any(|code| *code == "contradiction");
        assert_eq!(is_never, !comes, "{}: {of_it:?}", row.condition);
    }
}

fn listeners() -> Vec<(String, Vec<Row>)> {
    let mut listeners: Vec<(String, Vec<Row>)> = Vec::new();
    for (number, line) in read_lines(&testdata("never.txt")) {
        if let Some(keys) = line.strip_prefix('@') {
            listeners.push((keys.trim().to_owned(), Vec::new()));
            continue;
        }
        let (_, rows) = listeners.last_mut().expect("a listener before its conditions");
        match line.split_once(' ') {
            Some((sign, request)) if sign == "+" || sign.parse::<u16>().is_ok() => {
                let row = rows.last_mut().expect("a condition before its requests");
                row.requests.push((number, sign.to_owned(), request.to_owned()));
            }
            _ => rows.push(Row { condition: line, requests: Vec::new() }),
        }
    }
    listeners
}

fn rules(rows: &[Row]) -> String {
    let rule = |(number, row): (usize, &Row)| {
        let condition = &row.condition;
        format!(
            "C{number}: if (header[\"x-case\"] == \"{number}\" && ({condition})) {{ respond(200, \"+\"); }}\n"
        )
    };
    let rules: String = rows.iter().enumerate().map(rule).collect();
    format!("{rules}else: respond(200, \"else\");\n")
}

/// Sends a request and says what became of it: `+` where the condition was true, or the status.
fn ask(switch: &Switch, number: usize, request: &str) -> String {
    let (status, text) = match request.strip_prefix("h2 ") {
        Some(request) => {
            let (line, fields) = parts(request);
            let (method, target) = line.split_once(' ').expect("a method and a target");
            let case = number.to_string();
            let fields: Vec<_> = fields.iter().filter_map(|field| field.split_once(": ")).collect();
            let more: Vec<_> = fields.into_iter().chain([("x-case", case.as_str())]).collect();
            let mut client = H2Client::begin(switch.client());
            client.ask(1, method, target, &more);
            let answer = client.answer(1);
            (answer.status(), answer.text())
        }
        None => {
            let mut client = switch.client();
            send(&mut client, number, request);
            let answer = client.response();
            (answer.status(), answer.text())
        }
    };
    if status == 200 && text == "+" { text } else { status.to_string() }
}

fn parts(request: &str) -> (&str, Vec<&str>) {
    let mut parts = request.split(" | ");
    (parts.next().expect("a request line"), parts.collect())
}

fn send(client: &mut Client, number: usize, request: &str) {
    let (line, fields) = parts(request);
    let version = if line.split(' ').count() == 2 { " HTTP/1.1" } else { "" };
    let mut text = format!("{line}{version}\r\nX-Case: {number}\r\n");
    if !fields.iter().any(|field| field.starts_with("Host:")) {
        text.push_str("Host: shop.example\r\n");
    }
    for field in fields.iter().filter(|field| **field != "Host: none") {
        write!(text, "{field}\r\n").expect("memory");
    }
    text.push_str("\r\n");
    client.send(text);
}
