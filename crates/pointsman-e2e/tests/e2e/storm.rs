//! Servers, rules and the binary itself change while clients ask without a pause: small here, in full by
//! `cargo xtask storm`, which shows the figures.

mod changes;
mod chaos;
mod server;
mod shares;
mod traffic;
mod weather;

use pointsman_e2e::Random;

/// The seed of a run, where another one than usual is asked for.
const SEED: &str = "POINTSMAN_STORM_SEED";

/// The choices of a run.
fn chance() -> Random {
    let seed = std::env::var(SEED).ok().map(|text| text.parse().expect("a number"));
    Random::new(seed.unwrap_or(20_011_122))
}
