//! Answers from one version of HTTP to the other, as libFuzzer makes them up.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pointsman_fuzzing::h2_answer::check(input));
