//! Families of a listener that are more than a figure: handshakes.

use std::sync::Arc;

use crate::event::{Handshake, HandshakeFailure};
use crate::exposition::{Exposition, Kind};
use crate::family::ListenerMetrics;

pub(super) fn render_handshakes(page: &mut Exposition<'_>, listeners: &[Arc<ListenerMetrics>]) {
    let failed = |listener: &ListenerMetrics, why: HandshakeFailure| {
        listener.slots.sum(|slot| &slot.handshake_failures[why as usize])
    };
    let name = "pointsman_tls_handshakes_total";
    page.family(name, Kind::Counter, "TLS handshakes by their result.");
    for listener in listeners {
        for (how, label) in Handshake::ALL {
            let count = listener.slots.sum(|slot| &slot.handshakes[how as usize]);
            page.sample(name, &[("listener", listener.name()), ("result", label)], count);
        }
        let count = HandshakeFailure::ALL.iter().map(|(why, _)| failed(listener, *why)).sum();
        page.sample(name, &[("listener", listener.name()), ("result", "failed")], count);
    }
    let name = "pointsman_tls_handshake_failures_total";
    page.family(name, Kind::Counter, "TLS handshakes that failed, by reason.");
    for listener in listeners {
        for (why, label) in HandshakeFailure::ALL {
            page.sample(name, &[("listener", listener.name()), ("reason", label)], failed(listener, why));
        }
    }
}
