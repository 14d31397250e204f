//! A connection that has changed to another protocol: from the 101 on it is a tunnel (RFC 9110 section 7.8).

use std::rc::Rc;
use std::sync::Arc;

use pointsman_net::PooledBuffer;
use pointsman_telemetry::Event;

use crate::answer::FinalHead;
use crate::exchange::Exchange;
use crate::fault::{ClientFault, Fault, ServerFault};
use crate::live::ListenerState;
use crate::reach::{Reached, ServerConnection};
use crate::session::{After, Session};
use crate::session_learning::Listening;
use crate::shard::Shard;
use crate::transport::Transport;
use crate::tunnel::{Carried, FirstBytes, Side, Tunnel, TunnelEnd, TunnelLimits};

/// What a tunnel carries.
pub(crate) enum Carries {
    Bytes,
    /// Frames of a WebSocket.
    Frames,
    /// TLS, whose server is listened to.
    Tls(Box<Listening>),
}

impl<C: Transport> Session<C> {
    /// Sends a 101, and carries what follows it both ways until the tunnel ends.
    pub(crate) async fn switch_protocols(
        &mut self,
        FinalHead { message, is_websocket, .. }: &mut FinalHead,
        reached: &mut Reached,
        exchange: &mut Exchange,
    ) -> Result<After, Fault> {
        exchange.response_bytes += message.len() as u64;
        self.is_amid_answer = true;
        self.send(message).await?;
        message.release();
        let carries = if *is_websocket { Carries::Frames } else { Carries::Bytes };
        self.carry(&mut reached.server, Some(reached.answer.take()), carries, exchange).await
    }

    /// Carries bytes between the client and a server until one of them, or the switch, ends it. What has come of
    /// either side goes first.
    pub(crate) async fn carry(
        &mut self,
        server: &mut ServerConnection,
        of_server: Option<PooledBuffer>,
        carries: Carries,
        exchange: &mut Exchange,
    ) -> Result<After, Fault> {
        // What is on its way books for itself from here on.
        let at_rest = match self.io.of_http2() {
            Some(stream) => self.shard.buffers.stream_tunnel(stream.window_bytes),
            None => self.shard.buffers.tunnel_at_rest(),
        };
        if at_rest.is_some() {
            exchange.booked = at_rest;
        }
        let _open = OpenTunnel::begin(self.shard.clone(), self.listener.clone());
        let limits = TunnelLimits {
            idle_ms_max: self.limits.tunnel_idle_ms_max,
            half_closed_ms_max: self.limits.half_closed_ms_max,
            client_write_ms_max: self.limits.write_ms_max,
            server_write_ms_max: server.server().limits.write_ms_max,
        };
        let first = FirstBytes { of_client: self.early.take(), of_server };
        let shard = self.shard.clone();
        let mut tunnel = Tunnel::new(&shard, limits, first, exchange.bandwidth);
        match carries {
            Carries::Bytes => {}
            Carries::Frames => tunnel.carries_frames(),
            Carries::Tls(listening) => tunnel.listens_to_server(listening, server.server().clone()),
        }
        let Session { io, deadline, is_amid_answer, .. } = self;
        let carried = Carried {
            client_bytes: &mut exchange.request_bytes,
            server_bytes: &mut exchange.response_bytes,
            is_amid: is_amid_answer,
        };
        let end = tunnel.carry(io, &mut server.io, deadline, carried).await;
        Err(match end {
            TunnelEnd::Closed => return Ok(After::Leave),
            TunnelEnd::Drained => {
                exchange.fault = Some(Fault::TunnelDrained);
                return Ok(After::Close);
            }
            TunnelEnd::Idle => Fault::TunnelIdle,
            TunnelEnd::Broken(Side::Client) => Fault::Client(ClientFault::Closed),
            TunnelEnd::Broken(Side::Server) => Fault::Server(ServerFault::Closed),
            TunnelEnd::Stalled(Side::Client) => Fault::Client(ClientFault::Stalled),
            TunnelEnd::Stalled(Side::Server) => Fault::Server(ServerFault::WriteTimeout),
        })
    }
}

/// What a client is told of the protocol that its server changes to.
pub(crate) fn say_upgrade(protocol: &[u8], lines: &mut Vec<u8>) {
    lines.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: ");
    lines.extend_from_slice(protocol);
    lines.extend_from_slice(b"\r\n");
}

/// Counts a tunnel of a listener for as long as it lives.
struct OpenTunnel {
    shard: Rc<Shard>,
    listener: Arc<ListenerState>,
}

impl OpenTunnel {
    fn begin(shard: Rc<Shard>, listener: Arc<ListenerState>) -> OpenTunnel {
        shard.recorder.hear(&Event::TunnelOpened(&listener.metrics));
        OpenTunnel { shard, listener }
    }
}

impl Drop for OpenTunnel {
    fn drop(&mut self) {
        self.shard.recorder.hear(&Event::TunnelClosed(&self.listener.metrics));
    }
}
