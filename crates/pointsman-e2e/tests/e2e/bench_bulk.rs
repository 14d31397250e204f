//! `pointsman bench bulk` before nginx, which nobody here wrote: bodies of each size, by suite and without TLS.

use std::net::SocketAddr;

use pointsman_e2e::{Authority, Nginx, NullServer, ends, folder, installed, pointsman};
use serde_json::Value;

/// Bodies of 1,000 and of 65,536 bytes over TLS, with these suites of TLS 1.3, at the first address, and without it at the
/// second.
fn nginx(suites: &str) -> Nginx {
    let pair = Authority::new("bench").server(&["localhost"]);
    let (short, long) = ("a".repeat(1000), "b".repeat(1 << 16));
    let files = [
        ("n.crt", pair.certificate.as_str()),
        ("n.key", pair.key.as_str()),
        ("b1000", short.as_str()),
        ("b65536", long.as_str()),
    ];
    Nginx::start(&files, |[tls, plain]: [SocketAddr; 2]| {
        format!(
            "server {{
               keepalive_requests 1000000; listen {tls} ssl; listen {plain}; root .;
               ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate n.crt; ssl_certificate_key n.key; ssl_conf_command Ciphersuites {suites};
             }}"
        )
    })
}

const BOTH: &str = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
const USUAL: [&str; 10] =
    ["--insecure", "--time", "200ms", "--warm-up", "100ms", "--clients", "2", "--threads", "1", "--sizes"];

fn outcome(place: &std::path::Path, name: &str) -> Value {
    let text = std::fs::read_to_string(place.join(name)).expect("it is kept");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    document["runs"][0]["outcome"].clone()
}

#[test]
fn sizes_and_suites_stand_beside_each_other() {
    if !installed("nginx") {
        return;
    }
    let (server, place) = (nginx(BOTH), folder(&[]));
    let urls = [
        format!("https://{}/b{{size}}", server.address(0)),
        format!("http://{}/b{{size}}", server.address(1)),
    ];
    let pids = format!("{0},{0}", server.pid());
    let suites = BOTH.replace(':', ",");
    let own = [
        "1000,64k", "--suites", &suites, "--pid", &pids, "--save", "a.json", "--csv", "a.csv", "--report",
        "a.html",
    ];
    let words = [&["bench", "bulk", &urls[0], &urls[1]], &USUAL[..], &own].concat();
    let finished = pointsman(place.path(), &words);
    let found = outcome(place.path(), "a.json");
    let rows = found["rows"].as_array().expect("rows");
    let is_red = |row: &Value| row["colour"] == "red";
    assert_eq!(finished.code, i32::from(rows.iter().any(is_red)), "{}", finished.output());
    let series: Vec<&str> = found["series"]
        .as_array()
        .expect("series")
        .iter()
        .map(|s| s["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(series.len(), 3);
    assert!(
        series[1].ends_with("TLS_CHACHA20_POLY1305_SHA256") && series[2].starts_with("http://"),
        "{series:?}"
    );
    assert_eq!(rows.len(), 6);
    let trials = found["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 24, "four rounds");
    for trial in trials {
        let number = |name: &str| trial[name].as_f64().unwrap_or_else(|| panic!("{name} of {trial}"));
        assert_eq!(trial["voids"], serde_json::json!([]), "{trial}");
        let by_answers = number("answers_per_second") * number("size");
        let at_the_ends = 4.0 * number("size") / 0.2;
        assert!((number("payload_per_second") - by_answers).abs() <= at_the_ends, "{trial}");
        assert!(number("generator_us_per_mib") > 0.0, "{trial}");
        assert!(number("server_us_per_mib") > 0.0, "{trial}");
        let series = trial["series"].as_u64().expect("a number") as usize;
        assert_eq!(trial["suite"].as_str(), BOTH.split(':').nth(series).or(Some("")), "{trial}");
    }
    // Small bodies cost more a byte, whatever the machine does beside.
    let of = |row: &Value| row["server_us_per_mib"]["estimate"].as_f64();
    if let (Some(small), Some(large)) = (of(&rows[2]), of(&rows[5])) {
        assert!(small > 3.0 * large, "{small} {large}");
    }
    let csv = std::fs::read_to_string(place.path().join("a.csv")).expect("it is written");
    assert_eq!(csv.lines().count(), 7, "{csv}");
    assert!(
        csv.starts_with("size,series,verdict,trials,answers/s,MiB/s,") && csv.contains("\n65536,"),
        "{csv}"
    );
    ends(place.path(), &["bench", "report", "a.json", "a.html", "-o", "b.html"], 0, &[]);
    let page = std::fs::read_to_string(place.path().join("b.html")).expect("it is drawn");
    assert!(page.contains("a.html\"") || page.contains("Bytes a second by size"));
    if rows.iter().any(|row| !is_red(row)) {
        assert!(page.contains("Payload by size") && page.contains("× 1"), "the same twice");
    }
}

/// nginx takes bodies for a path where it answers, whatever they are, and refuses those for files.
#[test]
fn bodies_go_to_nginx_too() {
    if !installed("nginx") {
        return;
    }
    let server = Nginx::start(&[("b", "b")], |[plain]: [SocketAddr; 1]| {
        format!(
            "server {{
               keepalive_requests 1000000; listen {plain}; root .; client_max_body_size 100k; client_body_buffer_size 100k;
               location /take {{ proxy_pass http://{plain}/taken; }}
               location /taken {{ return 204; }}
             }}"
        )
    });
    let place = folder(&[]);
    let url = format!("http://{}/take", server.address(0));
    let pid = server.pid().to_string();
    let own = ["1000,64k", "--upload", "--rounds", "2", "--pid", &pid, "--save", "up.json"];
    let words = [&["bench", "bulk", &url], &USUAL[..], &own].concat();
    let finished = pointsman(place.path(), &words);
    assert!((0..=1).contains(&finished.code), "{}", finished.output());
    let found = outcome(place.path(), "up.json");
    assert_eq!(found["way"], "up");
    for trial in found["trials"].as_array().expect("trials") {
        assert_eq!(trial["voids"], serde_json::json!([]), "{trial}");
        let number = |name: &str| trial[name].as_f64().unwrap_or_else(|| panic!("{name} of {trial}"));
        let by_answers = number("answers_per_second") * number("size");
        assert!(
            by_answers > 0.0 && (number("payload_per_second") / by_answers - 1.0).abs() < 1e-9,
            "{trial}"
        );
        assert!(number("server_us_per_mib") > 0.0, "{trial}");
    }
    // A body that is too long for it (413), and a method that it does not take for a file (405).
    for (path, size) in [("take", "200k"), ("b", "1000")] {
        let url = format!("http://{}/{path}", server.address(0));
        let own = [size, "--upload", "--rounds", "1"];
        let words = [&["bench", "bulk", &url], &USUAL[..], &own].concat();
        ends(place.path(), &words, 1, &["void, such as:"]);
    }
}

/// What was measured before is kept.
#[test]
fn a_suite_that_the_server_does_not_have_is_void_and_the_others_are_not() {
    if !installed("nginx") {
        return;
    }
    let (server, place) = (nginx("TLS_AES_256_GCM_SHA384"), folder(&[]));
    let url = format!("https://{}/b{{size}}", server.address(0));
    let own = [
        "1000",
        "--rounds",
        "2",
        "--suites",
        "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256",
        "--save",
        "a.json",
    ];
    let words = [&["bench", "bulk", &url], &USUAL[..], &own].concat();
    ends(place.path(), &words, 1, &["TLS_AES_256_GCM_SHA384", "void, such as: cannot ask https://"]);
    let found = outcome(place.path(), "a.json");
    assert_eq!((&found["rows"][1]["colour"], &found["rows"][0]["trials"]), (&"red".into(), &2.into()));
    assert_eq!(found["trials"].as_array().map(Vec::len), Some(3));
}

#[test]
fn what_is_no_measurement_of_bodies_is_refused() {
    let (null, place) = (NullServer::start(&["--body-bytes", "100"]), folder(&[]));
    let url = null.url("http");
    let sized = format!("{url}bytes/{{size}}");
    let command = |words: &[&str]| {
        let words: Vec<String> =
            ["bench", "bulk"].iter().chain(words).map(|word| (*word).to_owned()).collect();
        words
    };
    let says = |words: Vec<String>, code: i32, said: &[&str]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        ends(place.path(), &words, code, said);
    };
    says(command(&[]), 2, &["a URL is needed"]);
    says(command(&[&url]), 2, &["no size is asked for", "/bytes/{size}"]);
    says(command(&[&sized, "--rate", "5"]), 2, &["--rate"]);
    says(command(&[&sized, "--pid", "1,2"]), 2, &["the server's process"]);
    says(command(&["--help"]), 0, &["--sizes", "--suites"]);
    let short = ["--sizes", "300,70k", "--rounds", "1", "--time", "200ms", "--warm-up", "50ms", "--json"];
    let whole =
        pointsman(place.path(), &["bench", "bulk", &sized].into_iter().chain(short).collect::<Vec<_>>());
    let found: Value = serde_json::from_str(&whole.stdout).expect("JSON");
    for trial in found["runs"][0]["outcome"]["trials"].as_array().expect("trials") {
        assert_eq!(trial["voids"], serde_json::json!([]), "the null server answers as it is asked: {trial}");
    }
    let other = format!("{url}?{{size}}");
    let words = [&other, "--sizes", "200", "--rounds", "1", "--time", "200ms", "--warm-up", "50ms"];
    says(command(&words), 1, &["bodies of 100 bytes came, and 200 were asked for"]);
}
