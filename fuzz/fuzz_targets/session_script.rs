//! Scripts of users' sessions, as libFuzzer makes them up.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pointsman_fuzzing::session_script::check(input));
