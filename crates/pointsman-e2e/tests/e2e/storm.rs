//! Servers, rules and the binary itself change while clients ask without a pause: small here, in full by
//! `cargo xtask storm`, which shows the figures.

mod chance;
mod changes;
mod chaos;
mod server;
mod traffic;
mod weather;
