//! What holds for any input, in one place: cargo-fuzz and the tests of generated inputs call the same functions.
//!
//! A target takes bytes and panics where a property does not hold. It is a property of the product, not only
//! that nothing panics: readings agree with slow ones that are written here from the RFCs, pieces agree with
//! wholes, and what is forwarded is read as what was received.

pub mod bench_files;
pub mod body;
pub mod config;
pub mod dns_answer;
pub mod field_blocks;
pub mod fields;
pub mod frames;
pub mod h2_answer;
pub mod h2_request;
pub mod http_body;
pub mod http_request;
pub mod http_response;
mod mutation;
pub mod path;
pub mod proxy_header;
mod random;
pub mod rules;
mod runner;
mod second_reading;
mod seeds;
pub mod session_script;
pub mod tls_hello;
pub mod view;

pub use runner::{Failure, Run, run};

/// A function of any bytes, and what makes good ones for it.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of its file under `fuzz/fuzz_targets` and of its folder under `fuzz/corpus`.
    pub name: &'static str,
    /// Panics where a property does not hold.
    pub check: fn(&[u8]),
    /// Inputs to start from: the project's own vectors and examples.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// What is worth inserting anywhere.
    pub tokens: &'static [&'static str],
}

/// Every target there is.
pub const TARGETS: &[Target] = &[
    Target {
        name: "http_request",
        check: http_request::check,
        seeds: seeds::requests,
        tokens: http_request::TOKENS,
    },
    Target {
        name: "http_response",
        check: http_response::check,
        seeds: seeds::answers,
        tokens: http_response::TOKENS,
    },
    Target { name: "http_body", check: http_body::check, seeds: seeds::bodies, tokens: http_body::TOKENS },
    Target { name: "body", check: body::check, seeds: seeds::asked_bodies, tokens: body::TOKENS },
    Target { name: "path", check: path::check, seeds: seeds::paths, tokens: path::TOKENS },
    Target {
        name: "proxy_header",
        check: proxy_header::check,
        seeds: seeds::proxy_headers,
        tokens: proxy_header::TOKENS,
    },
    Target { name: "tls_hello", check: tls_hello::check, seeds: seeds::hellos, tokens: tls_hello::TOKENS },
    Target {
        name: "dns_answer",
        check: dns_answer::check,
        seeds: seeds::dns_answers,
        tokens: dns_answer::TOKENS,
    },
    Target { name: "frames", check: frames::check, seeds: seeds::frames, tokens: frames::TOKENS },
    Target {
        name: "h2_request",
        check: h2_request::check,
        seeds: seeds::requests_of_both_versions,
        tokens: h2_request::TOKENS,
    },
    Target {
        name: "h2_answer",
        check: h2_answer::check,
        seeds: seeds::answers_of_both_versions,
        tokens: http_response::TOKENS,
    },
    Target { name: "fields", check: fields::check, seeds: seeds::fields, tokens: fields::TOKENS },
    Target { name: "view", check: view::check, seeds: seeds::forwarded_requests, tokens: view::TOKENS },
    Target { name: "rules", check: rules::check, seeds: seeds::rules, tokens: rules::TOKENS },
    Target { name: "config", check: config::check, seeds: seeds::configurations, tokens: config::TOKENS },
    Target {
        name: "bench_files",
        check: bench_files::check,
        seeds: seeds::bench_files,
        tokens: bench_files::TOKENS,
    },
    Target {
        name: "session_script",
        check: session_script::check,
        seeds: seeds::session_scripts,
        tokens: session_script::TOKENS,
    },
    Target {
        name: "field_blocks",
        check: field_blocks::check,
        seeds: seeds::field_blocks,
        tokens: field_blocks::TOKENS,
    },
];
