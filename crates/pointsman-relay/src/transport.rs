//! What a session talks through, and how it ends.

use pointsman_net::{Io, Tcp, read_into};
use pointsman_tls::TlsStream;
use tokio::io::AsyncWriteExt;

use crate::session::Session;

/// How long a closing connection is listened to, so that the last answer is not lost to a reset.
const LINGER_MS: u32 = 2000;
/// And how much it may still say.
const LINGER_BYTES_MAX: usize = 256 * 1024;

/// TCP, or TLS over it.
pub(crate) trait Transport: Io {
    /// The connection underneath.
    fn tcp(&self) -> &Tcp;
}

impl Transport for Tcp {
    fn tcp(&self) -> &Tcp {
        self
    }
}

impl Transport for TlsStream<Tcp> {
    fn tcp(&self) -> &Tcp {
        self.get_ref()
    }
}

impl<C: Transport> Session<C> {
    /// Ends a connection on which nothing is on its way.
    pub(crate) async fn leave(&mut self) {
        if self.is_amid_answer {
            return;
        }
        // A peer that is gone takes no farewell.
        let (Ok(_) | Err(_)) = self.deadline.within(LINGER_MS, self.io.shutdown()).await;
    }

    /// Closes our side behind an answer and lets the client finish, within bounds: what it says to a
    /// closed socket would be met with a reset, which takes the answer with it.
    pub(crate) async fn linger(&mut self) {
        let Session { io, shard, deadline, .. } = self;
        let drain = async {
            io.shutdown().await.ok()?;
            let mut rest = shard.buffers.heads.take();
            let mut bytes = 0;
            while bytes < LINGER_BYTES_MAX {
                rest.clear();
                match read_into(io, &mut rest).await.ok()? {
                    0 => break,
                    more => bytes += more,
                }
            }
            Some(())
        };
        // However it ends: the connection is over.
        let (Ok(_) | Err(_)) = deadline.within(LINGER_MS, drain).await;
    }
}

/// However a session ends, by a fault or because the switch stops: half an answer is never followed by an
/// orderly close, which some clients take for its end.
impl<C: Transport> Drop for Session<C> {
    fn drop(&mut self) {
        if self.is_amid_answer {
            self.io.tcp().reset_on_close();
        }
    }
}
