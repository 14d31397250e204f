//! Connections that are not served: a short answer where it can be read, and the end.

use std::rc::Rc;

use pointsman_http::{Answer, Version};
use pointsman_net::{PooledBuffer, Tcp, read_into, spawn, write_all};
use pointsman_telemetry::Refusal;
use tokio::io::AsyncWriteExt;

use crate::shard::Shard;

/// How long one that was turned away is listened to. What it still says to a closed socket would be met with
/// a reset, which takes the answer with it.
pub(crate) const LISTEN_MS: u32 = 500;
/// And how much it may still say.
pub(crate) const LISTEN_BYTES_MAX: usize = 64 * 1024;
/// How many of a thread are listened to at a time; past that they get the answer, and may lose it.
const LISTENED_TO_MAX: u32 = 64;
/// The same while they hold some of the last descriptors.
const LISTENED_TO_IN_SHORTAGE_MAX: u32 = 4;

/// Turns a connection away. `is_plain`: over TLS no answer could be read, and a handshake for the sake of
/// one would cost what is to be saved.
pub(crate) fn turn_away(shard: &Rc<Shard>, tcp: Tcp, is_plain: bool, why: Refusal) {
    if !is_plain {
        return;
    }
    let max = if why == Refusal::Descriptors { LISTENED_TO_IN_SHORTAGE_MAX } else { LISTENED_TO_MAX };
    let is_listened_to = shard.turned_away.get() < max;
    shard.turned_away.set(shard.turned_away.get() + u32::from(is_listened_to));
    let shard = shard.clone();
    spawn(async move {
        let mut deadline = shard.timers.deadline();
        let rest = shard.buffers.last_word();
        let listen_bytes_max = if is_listened_to { LISTEN_BYTES_MAX } else { 0 };
        let farewell = say_no(tcp, Words::of(why, shard.text_lines()), rest, listen_bytes_max);
        // However it ends: the connection is over. Idle, so that no drain waits for it.
        let (Ok(_) | Err(_)) = deadline.idle_within(LISTEN_MS, farewell).await;
        shard.turned_away.set(shard.turned_away.get() - u32::from(is_listened_to));
    });
}

/// The response to a connection that is not served.
pub(crate) struct Words {
    pub(crate) status: u16,
    /// Header lines with their CRLF.
    pub(crate) lines: Vec<u8>,
    pub(crate) body: &'static str,
}

impl Words {
    fn of(why: Refusal, lines: Vec<u8>) -> Words {
        let (status, body) = match why {
            Refusal::ConnectionsPerAddress => (429, "too many connections from your address\n"),
            Refusal::Descriptors => (503, "no descriptors left\n"),
            Refusal::Memory => (503, "no memory left\n"),
            _ => (503, "too many connections\n"),
        };
        Words { status, lines, body }
    }
}

/// Sends the response, and listens for the end.
pub(crate) async fn say_no(
    mut tcp: Tcp,
    Words { status, lines, body }: Words,
    mut rest: PooledBuffer,
    listen_bytes_max: usize,
) -> Option<()> {
    let (lines, version) = (&*lines, Version::Http11);
    let mut answer = Vec::with_capacity(256);
    Answer { status, lines, body: body.as_bytes(), closes: true, version, to_head: false }.write(&mut answer);
    write_all(&mut tcp, &answer, &mut 0).await.ok()?;
    tcp.shutdown().await.ok()?;
    let mut bytes = 0;
    while bytes < listen_bytes_max {
        rest.clear();
        match read_into(&mut tcp, &mut rest).await.ok()? {
            0 => break,
            more => bytes += more,
        }
    }
    Some(())
}
