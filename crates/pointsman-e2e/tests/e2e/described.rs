//! The admin API is what it says of itself, as schemathesis reads it: each status, each media type, each answer, and what is
//! refused of what does not fit.

use std::collections::BTreeSet;

use pointsman_e2e::{
    ADMIN_TOKEN, Authority, Origin, Setup, folder, peers_installed, run_schemathesis, workspace,
};
use serde_json::Value;

const CONFIG: &str = include_str!("../../peers/schemathesis.toml");

#[test]
fn the_api_is_as_described() {
    if !peers_installed() {
        return;
    }
    let (origin, other) = (Origin::new("origin"), Origin::new("other"));
    let pair = Authority::new("one").server(&["shop.example"]);
    let switch = Setup::new(2)
        .rules("R1: if (path == \"/a\") { routeTo(standard); }")
        .another_listener("secure")
        .tls(&pair, "")
        .pool("standard", &[&origin, &other])
        .with_token()
        .start();
    let json = |target: &str| -> Value {
        let answer = switch.admin_get(target);
        assert_eq!(answer.status(), 200, "{target}");
        serde_json::from_str(&answer.text()).expect("JSON")
    };
    let certificates = json("/api/v1/certificates");
    let id = certificates["certificates"][0]["id"].as_str().expect("an id");
    let paths = json("/api/v1/openapi.json")["paths"].clone();
    let operations: usize = paths
        .as_object()
        .expect("paths")
        .values()
        .map(|methods| methods.as_object().expect("methods").len())
        .sum();
    let document = format!("http://{}/api/v1/openapi.json", switch.admin());
    let own = folder(&[]);
    let authorization = format!("Bearer {ADMIN_TOKEN}");
    let said = run_schemathesis(&document, &authorization, &CONFIG.replace("CERTIFICATE", id), own.path());
    let said = said.unwrap_or_else(|said| panic!("{said}"));
    let tested = said.iter().find_map(|line| line.trim().strip_prefix("Tested: "));
    // All but the description itself, which it has read already.
    assert_eq!(tested, Some(&*(operations - 1).to_string()), "{}", said.join("\n"));
    // It still serves, whatever was tried.
    assert_eq!(switch.admin_get("/health").status(), 200);
}

/// What may be said of a server over the API is what may stand of it in the configuration, but for its name.
#[test]
fn servers_have_the_keys_of_the_configuration() {
    let origin = Origin::new("origin");
    let switch = Setup::new(1).pool("standard", &[&origin]).start();
    let answer = switch.admin_get("/api/v1/openapi.json");
    let document: Value = serde_json::from_str(&answer.text()).expect("JSON");
    let reference =
        std::fs::read_to_string(workspace().join("docs/reference/configuration.md")).expect("it is there");
    let (_, section) = reference.split_once("`[[pool.NAME.servers]]`\n").expect("the section");
    let section = section.split("\n#").next().unwrap_or_default();
    let written: BTreeSet<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .filter(|key| *key != "name")
        .collect();
    let operations = &document["paths"]["/api/v1/pools/{pool}/servers/{server}"];
    for method in ["put", "patch"] {
        let schema = &operations[method]["requestBody"]["content"]["application/json"]["schema"];
        let shapes = schema["anyOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice);
        let keys = shapes.iter().flat_map(|shape| shape["properties"].as_object().expect("an object").keys());
        assert_eq!(keys.map(String::as_str).collect::<BTreeSet<_>>(), written, "{method} {schema}");
    }
}
