//! What a process is given by the one whose place it takes: keys that clients' cookies and TLS sessions hang on, and
//! listening sockets.
//!
//! The two may be of different versions: what one does not know of the other's keys it leaves out.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use pointsman_net::{Line, Parcel};
use pointsman_relay::{Admission, ByHand, Inherited, InheritedSocket, SocketLabel};
use pointsman_tls::TicketSecret;
use rustix::process::getppid;
use rustix::stdio::dup2_stdin;

/// Names the process that gives, by its number, in the environment of the one that is given.
pub(super) const PREDECESSOR: &str = "POINTSMAN_PREDECESSOR";

/// Ends what is given.
pub(super) const END: &str = "end";

/// Brings the line that sticky clients come by.
pub(super) const STICKY_CLIENTS: &str = "sticky_clients";

/// What the new process says when it serves.
pub(super) const READY: &str = "ready";

/// How long what is given may take to come.
const GIVEN_MS_MAX: u32 = 5000;

const STICKY_KEY: &str = "sticky_key";

/// Random at the start of the first process, and passed on from one to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    /// Keys stickiness where the configuration names no key.
    pub(super) sticky: [u8; 16],
}

/// The process whose place this one takes.
pub(super) struct Predecessor(Line);

/// What it gives beside its keys.
#[derive(Debug, Default)]
pub(super) struct Legacy {
    /// What clients come by.
    pub(super) sockets: Inherited,
    /// What the admin listener listens on, and the address as it was written.
    pub(super) admin: Option<(String, OwnedFd)>,
    /// What clients' TLS sessions are sealed under, by listener.
    pub(super) tickets: Vec<(String, Vec<TicketSecret>)>,
    /// What was set of servers by hand.
    pub(super) by_hand: Vec<ByHand>,
    /// By which its sticky clients come.
    pub(super) sticky_clients: Option<Line>,
}

impl Predecessor {
    /// Whether this process takes the place of another.
    pub(super) fn is_there() -> bool {
        let named = std::env::var(PREDECESSOR).ok().and_then(|number| number.parse().ok());
        let parent = getppid().map(|parent| parent.as_raw_nonzero().get());
        // A process that was started by some other one of this one's children is no successor.
        named.is_some() && named == parent
    }

    /// The process that started this one, if it is that. Call it before threads start: the standard input is what it
    /// gives by, and is another one from then on.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub(super) fn of_this_process() -> io::Result<Option<Predecessor>> {
        if !Predecessor::is_there() {
            return Ok(None);
        }
        let line = Line::of_standard_input()?;
        dup2_stdin(File::open("/dev/null")?)?;
        Ok(Some(Predecessor(line)))
    }

    /// Its keys, which come first.
    ///
    /// # Errors
    /// When they do not come.
    pub(super) fn keys(&self) -> io::Result<Keys> {
        let text = self.0.receive_within(GIVEN_MS_MAX)?.text;
        Keys::of_text(&String::from_utf8_lossy(&text)).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// All that it listens on, behind its keys. Opened in the descriptor table of this thread.
    ///
    /// # Errors
    /// When not all of it comes.
    pub(super) fn legacy(&self) -> io::Result<Legacy> {
        let (mut legacy, mut sockets) = (Legacy::default(), Vec::new());
        loop {
            let Parcel { text, sockets: came } = self.0.receive_within(GIVEN_MS_MAX)?;
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<_> = text.lines().collect();
            match lines[..] {
                [END] => return Ok(Legacy { sockets: Inherited::new(sockets), ..legacy }),
                ["socket", listener, asked, file] => {
                    let label = SocketLabel {
                        listener: listener.to_owned(),
                        asked: asked.to_owned(),
                        owns_file: file == "file",
                    };
                    let labelled = |socket| InheritedSocket { label: Some(label.clone()), socket };
                    sockets.extend(came.into_iter().map(labelled));
                }
                ["admin", asked] => {
                    legacy.admin = came.into_iter().next().map(|socket| (asked.to_owned(), socket));
                }
                ["tickets", listener, ref secrets @ ..] => {
                    // One that this version cannot read opens nothing here.
                    let secrets = secrets.iter().filter_map(|line| ticket_secret(line)).collect();
                    legacy.tickets.push((listener.to_owned(), secrets));
                }
                ["server", pool, server, admission] => {
                    legacy.by_hand.extend(of_server(pool, server, admission))
                }
                [STICKY_CLIENTS] => {
                    legacy.sticky_clients = came.into_iter().next().map(Line::of_socket);
                }
                // Of a later version.
                _ => {}
            }
        }
    }

    /// Says that this process serves. The other one then stops.
    ///
    /// # Errors
    /// When it is gone.
    pub(super) fn tell_ready(&self) -> io::Result<()> {
        self.0.send(READY.as_bytes(), &[])
    }
}

/// How sockets of a listener are announced.
pub(super) fn socket_text(label: &SocketLabel) -> String {
    let file = if label.owns_file { "file" } else { "-" };
    format!("socket\n{}\n{}\n{file}\n", label.listener, label.asked)
}

/// How the keys of a listener's tickets are, the newest first.
pub(super) fn tickets_text(listener: &str, secrets: &[TicketSecret]) -> String {
    let lines = secrets.iter().map(|one| format!("{} {}\n", one.since_s, hex(&one.secret)));
    format!("tickets\n{listener}\n{}", lines.collect::<String>())
}

fn ticket_secret(line: &str) -> Option<TicketSecret> {
    let (since_s, secret) = line.split_once(' ')?;
    Some(TicketSecret { since_s: since_s.parse().ok()?, secret: bytes(secret)? })
}

/// How that of the admin listener is.
pub(super) fn admin_text(asked: &str) -> String {
    format!("admin\n{asked}\n")
}

/// How what was set of a server is.
pub(super) fn server_text(set: &ByHand) -> String {
    format!("server\n{}\n{}\n{}\n", set.pool, set.server, set.admission.name())
}

/// Nothing where it is called otherwise in a later version.
fn of_server(pool: &str, server: &str, admission: &str) -> Option<ByHand> {
    let admission = Admission::ALL.into_iter().find(|known| known.name() == admission)?;
    Some(ByHand { pool: pool.to_owned(), server: server.to_owned(), admission })
}

impl Keys {
    /// New ones.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(super) fn random() -> Result<Keys, getrandom::Error> {
        let mut keys = Keys { sticky: [0; 16] };
        getrandom::fill(&mut keys.sticky)?;
        Ok(keys)
    }

    pub(super) fn to_text(&self) -> String {
        format!("keys\n{STICKY_KEY}={}\n", hex(&self.sticky))
    }

    fn of_text(text: &str) -> Option<Keys> {
        let rest = text.strip_prefix("keys\n")?;
        let value =
            |name: &str| rest.lines().find_map(|line| line.split_once('=').filter(|(key, _)| *key == name));
        Some(Keys { sticky: bytes(value(STICKY_KEY)?.1)? })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if hex.len() != 2 * N || !hex.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_tickets_pass() {
        let one = TicketSecret { since_s: 1_700_000_000, secret: [0xa7; 32] };
        let text = tickets_text("shop", &[one.clone(), one.clone()]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..2], ["tickets", "shop"]);
        assert_eq!(
            lines[2..].iter().filter_map(|line| ticket_secret(line)).collect::<Vec<_>>(),
            [one.clone(), one]
        );
        for wrong in ["", "17", "17 ", "x a7", "-1 a7", lines[2].trim_end_matches('7')] {
            assert_eq!(ticket_secret(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn keys_pass_from_one_version_to_another() {
        let keys = Keys { sticky: *b"0123456789abcdef" };
        assert_eq!(Keys::of_text(&keys.to_text()), Some(keys.clone()));
        assert_eq!(Keys::of_text(&format!("{}of_tomorrow=7\n", keys.to_text())), Some(keys));
        for wrong in
            ["", "keys\n", "keys\nsticky_key=12\n", "keys\nsticky_key=ä123456789abcdef0123456789abcde\n"]
        {
            assert_eq!(Keys::of_text(wrong), None, "{wrong}");
        }
    }
}
