//! Connections that are not served: a short answer where it can be read, and the end.

use std::rc::Rc;

use pointsman_http::{Answer, PLAIN_TEXT_LINE, Version};
use pointsman_net::{Deadline, Tcp, read_into, spawn, write_all};
use pointsman_telemetry::Refusal;
use tokio::io::AsyncWriteExt;

use crate::shard::Shard;

/// How long one that was turned away is listened to. What it still says to a closed socket would be met with
/// a reset, which takes the answer with it.
const LISTEN_MS: u32 = 500;
/// And how much it may still say.
const LISTEN_BYTES_MAX: usize = 64 * 1024;
/// How many of a thread are listened to at a time; past that they are closed without a word.
pub(crate) const LISTENED_TO_MAX: u32 = 64;

/// Turns a connection away. `is_plain`: over TLS no answer could be read, and a handshake for the sake of
/// one would cost what is to be saved.
pub(crate) fn turn_away(shard: &Rc<Shard>, tcp: Tcp, is_plain: bool, why: Refusal) {
    if !is_plain || shard.turned_away.get() >= LISTENED_TO_MAX {
        return;
    }
    shard.turned_away.set(shard.turned_away.get() + 1);
    let shard = shard.clone();
    spawn(async move {
        let mut deadline = shard.timers.deadline();
        say_no(&mut deadline, tcp, why).await;
        shard.turned_away.set(shard.turned_away.get() - 1);
    });
}

/// Answers, and listens for the end. Idle, so that no drain waits for it.
pub(crate) async fn say_no(deadline: &mut Deadline, mut tcp: Tcp, why: Refusal) {
    let mut answer = Vec::with_capacity(256);
    let (status, body) = match why {
        Refusal::ConnectionsPerAddress => (429, "too many connections from your address\n"),
        _ => (503, "too many connections\n"),
    };
    let lines = PLAIN_TEXT_LINE;
    Answer { status, lines, body: body.as_bytes(), closes: true, version: Version::Http11, to_head: false }
        .write(&mut answer);
    let farewell = async {
        write_all(&mut tcp, &answer, &mut 0).await.ok()?;
        tcp.shutdown().await.ok()?;
        let (mut rest, mut bytes) = (Vec::with_capacity(4096), 0);
        while bytes < LISTEN_BYTES_MAX {
            rest.clear();
            match read_into(&mut tcp, &mut rest).await.ok()? {
                0 => break,
                more => bytes += more,
            }
        }
        Some(())
    };
    // However it ends: the connection is over.
    let (Ok(_) | Err(_)) = deadline.idle_within(LISTEN_MS, farewell).await;
}
