//! `pointsman bench crypto`: what it prints is what was asked for; how fast this machine is, is nobody's business here.

use std::process::Command;

use pointsman_e2e::{SoftToken, ends, folder, installed, pointsman, program};
use serde_json::Value;

const SHORT: [&str; 6] = ["bench", "crypto", "--rounds", "4", "--round-time", "2ms"];

#[test]
fn providers_stand_beside_each_other() {
    let place = folder(&[]);
    let words = [
        &SHORT[..],
        &["--providers", "aws-lc-rs,ring", "--primitives", "ECDSA P-256,X25519MLKEM768,AES-128-GCM"],
        &["--sizes", "16,1350", "--depths", "1,2", "--json"],
    ];
    let finished = ends(place.path(), &words.concat(), 0, &[]);
    let json: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let json = &json["runs"][0]["outcome"];
    let rows = json["rows"].as_array().expect("rows");
    // Sign, verify and two blocks by both; the three steps of the hybrid by one alone; all of it twice.
    assert_eq!(rows.len(), (4 * 2 + 3) * 2, "{}", finished.stdout);
    for row in rows {
        let number =
            |way: &str| row.pointer(way).and_then(Value::as_f64).unwrap_or_else(|| panic!("{way}: {row}"));
        assert!(number("/per_second/value") > 0.0 && number("/cpu_us/value") > 0.0, "{row}");
        assert!(number("/latency_ns/p50") <= number("/latency_ns/p99"), "{row}");
        let is_beside = row["provider"] == "ring";
        assert_eq!(row["speed_up"].is_object(), is_beside, "{row}");
        assert!(row["engaged"]["claims_hardware"].is_null(), "a library claims nothing");
    }
    let unable = json["unable"].as_array().expect("a list");
    assert_eq!(unable.len(), 1);
    assert_eq!(unable[0]["why"], "ring has no X25519MLKEM768");
}

#[test]
fn openssl_is_run_and_its_clocks_are_read() {
    if !installed("openssl") {
        return;
    }
    let place = folder(&[]);
    // It measures for whole seconds, so only one operation.
    let words = [&SHORT[..], &["--providers", "aws-lc-rs,openssl", "--primitives", "X25519"]];
    let finished = ends(place.path(), &words.concat(), 0, &["X25519 finish", "openssl OpenSSL", "done by"]);
    let is_row = |line: &&str| line.starts_with("  X25519") && line.contains(" openssl ");
    let rows: Vec<&str> = finished.stdout.lines().filter(is_row).collect();
    assert_eq!(rows.len(), 1, "{}", finished.stdout);
    assert!(
        rows[0].contains("finish") && rows[0].contains(" (") && rows[0].contains('\u{b1}'),
        "{}",
        rows[0]
    );
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let place = folder(&[]);
    ends(place.path(), &["bench", "crypto", "--rounds", "1"], 2, &["there are 4 to 1000 rounds, not 1"]);
    ends(
        place.path(),
        &["bench", "crypto", "--primitives", "DES"],
        2,
        &["no primitive `DES`; there are RSA-2048"],
    );
    ends(place.path(), &["bench", "crypto", "--openssl", "/nowhere"], 2, &["cannot run `/nowhere`"]);
    let only_by_ring = [&SHORT[..], &["--providers", "ring", "--primitives", "X25519MLKEM768"]].concat();
    ends(place.path(), &only_by_ring, 2, &["ring has no X25519MLKEM768"]);
    let help = pointsman(place.path(), &["bench", "crypto", "--help"]);
    assert!(help.stdout.contains("--depths"), "{}", help.output());
}

#[test]
fn a_token_is_measured_beside_the_libraries() {
    let Some(token) = SoftToken::made() else { return };
    let place = folder(&[("pin", &format!("{}\n", SoftToken::pin()))]);
    let mut command = Command::new(program());
    command.args(SHORT).args(["--providers", "aws-lc-rs", "--primitives", "ECDSA P-256,X25519", "--json"]);
    command.arg("--pkcs11").arg(SoftToken::module()).args(["--token", "bench", "--pin-file", "pin"]);
    command.current_dir(place.path()).env("SOFTHSM2_CONF", token.configuration());
    let output = command.output().expect("it starts");
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let json: Value =
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}{complained}"));
    let json = &json["runs"][0]["outcome"];
    let rows = json["rows"].as_array().expect("rows");
    let of_token: Vec<&Value> = rows.iter().filter(|row| row["provider"] == "token bench").collect();
    assert_eq!(of_token.len(), 2, "sign and verify: {json}");
    for row in of_token {
        assert!(row["speed_up"].is_object(), "{row}");
        assert_eq!(row["engaged"]["claims_hardware"], false, "it is software, and says so");
    }
    assert_eq!(json["unable"][0]["provider"], "token bench", "{json}");
}
