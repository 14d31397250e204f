//! Answers of name servers, as libFuzzer makes them up.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pointsman_fuzzing::dns_answer::check(input));
