//! What tests about rules that are published have in common: two rule sets, and where they are.

use pointsman_e2e::Switch;

pub(crate) const TO_A: &str = "R1: { routeTo(a); }\n";
pub(crate) const TO_B: &str = "R1: { routeTo(b); }\n";

/// The rules of the first listener, in the admin API.
pub(crate) const RULES: &str = "/api/v1/listeners/shop/rules";

/// The version of the rules that serve.
pub(crate) fn version(switch: &Switch) -> String {
    switch.admin_shows(RULES)["rules_version"].as_str().expect("a version").to_owned()
}

/// What stands in their file.
pub(crate) fn file(switch: &Switch) -> String {
    std::fs::read_to_string(switch.folder().join("shop.rules")).expect("it is there")
}
