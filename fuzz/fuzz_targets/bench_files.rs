//! Workloads and reports of the bench, as libFuzzer makes them up.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pointsman_fuzzing::bench_files::check(input));
