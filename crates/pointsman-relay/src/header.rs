//! Connections that begin with a PROXY header: what it says is taken in before TLS and the first request.

use std::rc::Rc;
use std::sync::Arc;

use pointsman_config::Listener;
use pointsman_net::{Claim, Elapsed, HeaderFault, HeaderValues, read_header, spawn};
use pointsman_telemetry::{Event, Refusal};
use pointsman_view::{Proxied, ProxyFacts, ProxyValues};

use crate::accept::{Incoming, begin, first_word};
use crate::decide::trusted_proxies;
use crate::failed_handshake::Shaking;
use crate::shard::Shard;
use crate::turn_away::turn_away;

/// Why a connection with a header that must be is cut off.
enum Fault {
    /// Its peer is nobody to be believed.
    Peer,
    Header(HeaderFault),
    Timeout,
}

impl Fault {
    fn sentence(&self) -> &'static str {
        match self {
            Fault::Peer => "the peer is not in `trusted_proxies`",
            Fault::Header(fault) => fault.sentence(),
            Fault::Timeout => "it did not arrive in time",
        }
    }
}

/// Begins a connection when its header is there. Nobody else than a trusted proxy is let in, with a header or without.
pub(crate) fn behind_header(shard: &Rc<Shard>, listener: &Listener, incoming: Incoming) {
    if !trusted_proxies(listener).believes(incoming.connection.src) {
        return refuse(shard, &incoming, shard.clock.round_us(), &Fault::Peer);
    }
    let ms = listener.limits.proxy_header_ms_max;
    let shard = shard.clone();
    spawn(async move {
        let mut incoming = incoming;
        match claim(&shard, &mut incoming, ms).await {
            Some(claim) => begin_for(&shard, incoming, claim),
            None => drop(incoming),
        }
    });
}

/// What the header says. Nothing where there is none to serve, which has been told.
async fn claim(shard: &Shard, incoming: &mut Incoming, ms: u32) -> Option<(Claim, HeaderValues)> {
    let since_us = shard.clock.round_us();
    let until_us = shard.after_ms(ms);
    let Incoming { id, tcp, deadline, .. } = incoming;
    let heard = match first_word(shard, *id, deadline, until_us, tcp).await {
        Ok(()) => deadline.within(shard.ms_until(until_us), read_header(tcp)).await,
        Err(Elapsed::Time) => {
            shard.recorder.hear(&Event::Refused(&incoming.state.metrics, Refusal::ProxyHeader));
            return None;
        }
        Err(Elapsed::Ended) => return None,
    };
    let fault = match heard {
        Ok(Ok(claim)) => return Some(claim),
        // Balancers look so whether somebody is there.
        Ok(Err(HeaderFault::Silent)) => return None,
        Ok(Err(fault)) => Fault::Header(fault),
        Err(_) => Fault::Timeout,
    };
    refuse(shard, incoming, since_us, &fault);
    None
}

fn begin_for(shard: &Rc<Shard>, mut incoming: Incoming, (claim, values): (Claim, HeaderValues)) {
    let local = shard.local();
    let Some((listener, _)) = local.live.listener(incoming.id) else { return };
    let client = match claim {
        Claim::Peer => None,
        Claim::Unknown => Some(Proxied::Unknown),
        Claim::Client(client) => Some(Proxied::Client(client)),
    };
    incoming.connection.proxied = client.map(|client| {
        let HeaderValues { alpn, authority, unique_id, aws_vpce_id, azure_link_id } = values;
        let values = ProxyValues {
            alpn: alpn.map(Into::into),
            authority: authority.map(Into::into),
            unique_id: unique_id.map(Into::into),
            aws_vpce_id: aws_vpce_id.map(Into::into),
            azure_link_id,
        };
        Arc::new(ProxyFacts { client, values })
    });
    let sender = incoming.connection.sender();
    if let Err(why) = incoming.counted.count_address(listener, sender) {
        shard.recorder.hear(&Event::Refused(&incoming.state.metrics, why));
        return turn_away(shard, incoming.tcp, listener.is_plain_http(), why);
    }
    begin(shard, listener, incoming);
}

fn refuse(shard: &Shard, incoming: &Incoming, since_us: u64, fault: &Fault) {
    let Incoming { state, connection, .. } = incoming;
    shard.recorder.hear(&Event::Refused(&state.metrics, Refusal::ProxyHeader));
    if shard.recorder.is_logging() {
        let refused = Shaking { listener: &state.metrics, connection, since_us };
        refused.log(shard, &format!("PROXY header: {}", fault.sentence()));
    }
}
