//! What the switch says of itself, on standard error.

use std::io::{IsTerminal, Write};

use pointsman_config::Colour;
use pointsman_config::Loaded;
use pointsman_relay::Switch;

/// Says a line.
pub(super) fn notice(line: &str) {
    let mut error = std::io::stderr().lock();
    // Nobody listens to what cannot be said; the switch goes on.
    if writeln!(error, "{}", line.trim_end()).is_err() {}
}

/// Says a line where there is something to say.
pub(super) fn maybe(line: Option<String>) {
    if let Some(line) = line {
        notice(&line);
    }
}

/// Colours are for terminals.
pub(super) fn colour() -> Colour {
    if std::io::stderr().is_terminal() { Colour::Ansi } else { Colour::Never }
}

/// What is odd about a configuration that is used all the same.
pub(super) fn warnings(loaded: &Loaded) {
    if !loaded.warnings.is_empty() {
        notice(&loaded.warnings.render(colour()));
    }
}

/// Where clients can connect.
pub(super) fn listening(switch: &Switch) {
    for address in switch.addresses() {
        notice(&format!(
            "listening name={} address={} tls={}",
            address.listener, address.address, address.tls
        ));
    }
}
