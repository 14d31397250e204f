//! What a thread hands out of the process' memory: buffers, and what else is booked for clients.
//!
//! All of it is booked before it is taken. A connection books what it is at rest, a handshake and an exchange what
//! they may need until they are over: so what has begun can end, also where the budget is used up by then. Only
//! what asks for more than that, a new client, request or handshake, a head or an answer beyond the usual size, is
//! refused.

use std::io;
use std::sync::Arc;

use pointsman_net::{Account, Booking, Budget, BufferPool, PooledBuffer};
use pointsman_tls::UNSENT_BYTES_MAX;

const KIB: usize = 1024;

/// The room of a head, and of what comes with it.
pub(crate) const HEAD_BYTES: usize = 16 * KIB;
/// Fewer, larger reads cost a body a third less.
pub(crate) const BODY_BYTES: usize = 64 * KIB;
/// The room of an answer that says no, and of what is read and thrown away behind it.
const LAST_WORD_BYTES: usize = KIB;

/// An open connection at rest, or what a request beside others of its connection has of its own: its task, its socket's place, its deadline, and the room of a last word.
const CONNECTION_BYTES: usize = 6 * KIB;
/// TLS on top of that from its first byte on: keys, and a record that has come in part.
const TLS_BYTES: usize = 34 * KIB;
/// A handshake on top of both: the library takes messages of up to 64 KiB, and keeps its own until they are taken.
const HANDSHAKE_BYTES: usize = 96 * KIB;
/// An exchange: at most three buffers at a time, which are a head's where there are no larger ones, and what it
/// notes on its way. What the log and the rules copy from a request is no more than the request.
const EXCHANGE_BYTES: usize = 3 * HEAD_BYTES + 8 * KIB;
/// The same on top under TLS: a record in the clear, and what the client does not take of the answer.
const TLS_EXCHANGE_BYTES: usize = 36 * KIB;
/// HTTP/2 on top of a connection: what the library keeps for frames that come and go, its tables, and what is
/// gathered to be sent.
const HTTP2_BYTES: usize = 128 * KIB;
/// A stream on top of its exchange: its own state, and what the client does not take of the answer.
const STREAM_BYTES: usize = 8 * KIB + STREAM_UNSENT_BYTES_MAX;
/// What a stream may hold of its answer while the client takes none.
pub(crate) const STREAM_UNSENT_BYTES_MAX: usize = 64 * KIB;
/// A tunnel at rest: its task, and the place of the server's socket.
const TUNNEL_BYTES: usize = 4 * KIB;
/// A request that waits for its body, beside what is held of that: its task, its head, and what looks into the body, as
/// long as that was fed little.
const UNDECIDED_BYTES: usize = 64 * KIB;
/// What TLS may hold of an answer's body, where there is so much left: as much as is read of it at a time.
pub(crate) const UNSENT_BODY_BYTES_MAX: usize = BODY_BYTES;

/// The buffers of a thread, and its account.
pub(crate) struct Buffers {
    account: Account,
    /// With what bodies that are held may take.
    holds: Account,
    heads: BufferPool,
    bodies: BufferPool,
}

impl Buffers {
    /// `holds`: what bodies that are held may take of `budget`.
    pub(crate) fn new(budget: Arc<Budget>, holds: Arc<Budget>) -> Buffers {
        let (account, holds) = (Account::new(budget), Account::new(holds));
        let heads = BufferPool::new(HEAD_BYTES, 256, &account);
        let bodies = BufferPool::new(BODY_BYTES, 64, &account);
        Buffers { account, holds, heads, bodies }
    }

    /// For a request that is still to come. There may be no room for it when it does.
    pub(crate) fn request(&self) -> PooledBuffer {
        self.heads.take_later()
    }

    /// For a head of an exchange, which has booked it.
    pub(crate) fn head(&self) -> PooledBuffer {
        self.heads.take_covered(HEAD_BYTES)
    }

    /// For a body of an exchange. It is smaller than usual where no more can be booked than the exchange has.
    pub(crate) fn body(&self) -> PooledBuffer {
        self.bodies.take_covered(HEAD_BYTES)
    }

    /// For what is said to a client that gets nothing else, and for what it goes on saying.
    pub(crate) fn last_word(&self) -> PooledBuffer {
        self.heads.take_covered(LAST_WORD_BYTES)
    }

    /// For an answer that waits for its turn, or for a piece of a body that is held. There may be no room for it.
    pub(crate) fn waiting(&self) -> PooledBuffer {
        self.bodies.take_later()
    }

    /// Books a request that may go on its way beside others of its connection, or wait: what its slot takes, and what its
    /// exchange will.
    pub(crate) fn beside(&self, received_bytes: usize, is_tls: bool) -> Option<(Booking, Booking)> {
        let exchange = self.account.book_if_free(exchange_bytes(received_bytes, is_tls))?;
        let slot = self.account.book_if_free(CONNECTION_BYTES as u64)?;
        Some((slot, exchange))
    }

    /// Books that a body is looked into.
    pub(crate) fn inspection(&self) -> Option<Booking> {
        self.account.book(UNDECIDED_BYTES as u64)
    }

    /// Books a piece of a body that is held, of what those may take.
    pub(crate) fn hold(&self, bytes: usize) -> Option<Booking> {
        self.holds.book(bytes as u64)
    }

    /// Books a connection.
    pub(crate) fn connection(&self) -> Option<Booking> {
        self.account.book(CONNECTION_BYTES as u64)
    }

    /// Books that a connection, of a client or to a server, speaks TLS.
    pub(crate) fn tls(&self) -> Option<Booking> {
        self.account.book(TLS_BYTES as u64)
    }

    /// Books a handshake.
    pub(crate) fn handshake(&self) -> Option<Booking> {
        self.account.book(HANDSHAKE_BYTES as u64)
    }

    /// Books an exchange whose request has come as far as `received_bytes`.
    #[inline]
    pub(crate) fn exchange(&self, received_bytes: usize, is_tls: bool) -> Option<Booking> {
        self.account.book(exchange_bytes(received_bytes, is_tls))
    }

    /// Books what an exchange takes on top where its server speaks TLS.
    pub(crate) fn server_tls_exchange(&self) -> Option<Booking> {
        self.account.book(TLS_EXCHANGE_BYTES as u64)
    }

    /// Books that a connection speaks HTTP/2.
    pub(crate) fn http2(&self) -> Option<Booking> {
        self.account.book(HTTP2_BYTES as u64)
    }

    /// Books a stream's exchange, of whose body so much may come before it is read.
    pub(crate) fn stream(&self, received_bytes: usize, window_bytes: u32) -> Option<Booking> {
        self.account.book((EXCHANGE_BYTES + received_bytes + STREAM_BYTES) as u64 + u64::from(window_bytes))
    }

    /// Books what an exchange takes on top where its server speaks HTTP/2, of whose answer so much may come before it
    /// is read.
    pub(crate) fn server_stream(&self, window_bytes: u32) -> Option<Booking> {
        self.account.book(STREAM_BYTES as u64 + u64::from(window_bytes))
    }

    /// Books that TLS holds as much of an answer's body as is read of it at a time.
    pub(crate) fn unsent_body(&self) -> Option<Booking> {
        self.account.book((UNSENT_BODY_BYTES_MAX - UNSENT_BYTES_MAX + KIB) as u64)
    }

    /// Books a tunnel, but for what is on its way in it.
    pub(crate) fn tunnel_at_rest(&self) -> Option<Booking> {
        self.account.book(TUNNEL_BYTES as u64)
    }

    /// Books a tunnel that is a stream, of which so much may come before it is read.
    pub(crate) fn stream_tunnel(&self, window_bytes: u32) -> Option<Booking> {
        self.account.book((TUNNEL_BYTES + STREAM_BYTES) as u64 + u64::from(window_bytes))
    }

    /// For what is on its way in a tunnel. There may be no room for it.
    pub(crate) fn tunnel(&self) -> PooledBuffer {
        self.bodies.take_later()
    }

    /// The same for one that gets it in pieces.
    pub(crate) fn tunnel_piece(&self) -> PooledBuffer {
        self.heads.take_later()
    }

    /// Books what TLS may hold of what is on its way in a tunnel, at so many of its sides.
    pub(crate) fn tunnel_tls(&self, sides: u8) -> Option<Booking> {
        self.account.book(u64::from(sides) * TLS_EXCHANGE_BYTES as u64)
    }

    /// Gives back what is kept, where somebody has found nothing left.
    pub(crate) fn help_in_shortage(&self) {
        self.account.settle();
    }

    /// Gives back what is left over for bodies that are held, where somebody has found nothing left.
    pub(crate) fn help_holds(&self) {
        if self.holds.is_short() {
            self.holds.settle();
        }
    }

    /// Whether another thread, or this one, has found nothing left.
    pub(crate) fn is_short(&self) -> bool {
        self.account.is_short()
    }

    /// Gives back what nobody has wanted for a while.
    pub(crate) fn let_go_unused(&self) {
        self.heads.let_go_unused();
        self.bodies.let_go_unused();
        self.account.settle();
        self.holds.settle();
    }
}

fn exchange_bytes(received_bytes: usize, is_tls: bool) -> u64 {
    let of_tls = if is_tls { TLS_EXCHANGE_BYTES } else { 0 };
    (EXCHANGE_BYTES + received_bytes + of_tls) as u64
}

/// Whether a read failed because there is no memory for what came.
pub(crate) fn is_out_of_memory(read: &io::Result<usize>) -> bool {
    read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::OutOfMemory)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures in KiB of a row of the reference's table, by how the row begins.
    fn documented(page: &str, who: &str) -> Vec<usize> {
        let row =
            page.lines().find_map(|line| line.strip_prefix("| ")?.strip_prefix(who)?.strip_prefix(" |"));
        let books = row.and_then(|row| row.split(" | ").next()).unwrap_or_else(|| panic!("no row `{who}`"));
        let words: Vec<_> = books.split_whitespace().collect();
        let is_figure = |pair: &&[&str]| pair[1].starts_with("KiB");
        words.windows(2).filter(is_figure).map(|pair| pair[0].parse().expect(books)).collect()
    }

    #[test]
    fn the_reference_says_what_is_booked() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/configuration.md");
        let page = std::fs::read_to_string(page).expect("the reference");
        let page = page.split("## How much memory").nth(1).expect("its chapter");
        let rows: [(&str, &[usize]); 13] = [
            ("a connection", &[CONNECTION_BYTES]),
            ("TLS on it", &[TLS_BYTES, HANDSHAKE_BYTES]),
            ("TLS to a server", &[TLS_BYTES, HANDSHAKE_BYTES, TLS_EXCHANGE_BYTES]),
            ("a head that comes", &[HEAD_BYTES]),
            ("an exchange", &[EXCHANGE_BYTES, TLS_EXCHANGE_BYTES]),
            (
                "a request beside others of its connection ([`pipeline`](../guide/pipelining.md))",
                &[CONNECTION_BYTES],
            ),
            ("HTTP/2 on a connection, of a client or to a server", &[HTTP2_BYTES]),
            ("a stream of a client's", &[STREAM_BYTES]),
            ("a request to a server by HTTP/2", &[STREAM_BYTES]),
            ("a body", &[BODY_BYTES - HEAD_BYTES, UNSENT_BODY_BYTES_MAX - UNSENT_BYTES_MAX + KIB]),
            ("a body that decides", &[UNDECIDED_BYTES, HEAD_BYTES, BODY_BYTES]),
            ("a tunnel", &[TUNNEL_BYTES, STREAM_BYTES]),
            ("what is on its way in it", &[BODY_BYTES, TLS_EXCHANGE_BYTES]),
        ];
        for (who, booked) in rows {
            let booked: Vec<_> = booked.iter().map(|bytes| bytes / KIB).collect();
            assert_eq!(documented(page, who), booked, "{who}");
        }
    }
}
