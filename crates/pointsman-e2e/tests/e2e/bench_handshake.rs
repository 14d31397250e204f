//! `pointsman bench handshake` before a server that nobody here wrote: what it says, keeps and refuses.

use pointsman_e2e::{Authority, OpensslServer, ends, folder, installed};
use serde_json::Value;

/// Nobody listens there.
const NOWHERE: &str = "https://127.0.0.1:1/";

#[test]
fn what_cannot_be_measured_is_refused() {
    let place = folder(&[]);
    let command = |words: &[&'static str]| [&["bench", "handshake"], words].concat();
    ends(place.path(), &command(&[]), 2, &["a URL is needed"]);
    ends(place.path(), &command(&["http://127.0.0.1:1/"]), 2, &["is not `https`"]);
    ends(place.path(), &command(&[NOWHERE]), 2, &["no handshake (full) with", "Connection refused"]);
    ends(place.path(), &command(&[NOWHERE, "--groups", "P-512"]), 2, &["no group `P-512`; there are"]);
    ends(place.path(), &command(&["--help"]), 0, &["--server-provider", "--capture"]);
}

#[test]
fn a_server_is_measured_and_the_result_is_kept() {
    if !installed("openssl") {
        return;
    }
    let server = OpensslServer::start("a", &Authority::new("bench").server(&["localhost"]), &[]);
    let place = folder(&[]);
    let url = format!("https://{}/name", server.address());
    let words = [
        "bench",
        "handshake",
        &url,
        "--insecure",
        "--count",
        "10",
        "--tls-version",
        "1.3",
        "--save",
        "a.json",
        "--report",
        "a.html",
    ];
    ends(place.path(), &words, 0, &["server's first byte", "predicted, server:", "unexplained", "assumed:"]);
    let text = std::fs::read_to_string(place.path().join("a.json")).expect("it is kept");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let series = &json["runs"][0]["outcome"]["series"][0];
    assert_eq!(series["negotiated"][0]["count"], 10);
    assert_eq!(series["predicted_server"]["whole"], true, "{series}");
    let page = std::fs::read_to_string(place.path().join("a.html")).expect("it is drawn");
    assert!(page.contains("Phases of a handshake"));
}
