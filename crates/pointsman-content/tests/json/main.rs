//! The JSON reader against vectors in `testdata/content/json/`, against `serde_json`, and against what wishes it harm.

mod attacks;
mod paths;
mod properties;
mod reading;
mod suite;
mod vectors;
