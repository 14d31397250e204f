//! Field blocks of HTTP/2 as the generator reads them, as libFuzzer makes them up.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pointsman_fuzzing::field_blocks::check(input));
