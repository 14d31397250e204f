//! What a controller and an agent say to each other, in frames: a length of four bytes, big end first, and JSON.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::DerefMut;
use std::time::{Duration, Instant};

use rustls::{ConnectionCommon, SideData};
use serde::{Deserialize, Serialize};

use super::errand::Errand;
use crate::part::Part;
use crate::{Fault, Progress, machine};

/// The longest frame of an agent: its part of a run of a day.
pub(super) const FRAME_BYTES_MAX: usize = 256 << 20;
/// The longest of a controller: a plan with its bodies.
pub(super) const ERRAND_BYTES_MAX: usize = 64 << 20;
/// The longest of one that has not said which versions it has.
pub(super) const HELLO_BYTES_MAX: usize = 64 << 10;
/// While there is load each side says something so often …
const BEAT: Duration = Duration::from_secs(1);
/// … and is given up after so long without a word.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Read at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// One frame.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Message {
    /// A controller's first word.
    Hello(Versions),
    /// An agent's, to one that it takes.
    Welcome { versions: Versions, cores: usize },
    /// What is to be done.
    Errand(Box<Errand>),
    /// It can be done: the server answers.
    Ready,
    /// What time is it?
    Ping,
    /// By the agent's clock.
    Pong { now_ns: u64 },
    /// Load begins then, by the agent's clock.
    Start { begin_ns: u64 },
    /// Load ends now, and what there is by now is all that is wanted: another agent is lost.
    Cut,
    /// Nothing more is begun from then on, by the agent's clock; what is under way is waited for: nobody wants more of it.
    End { at_ns: u64 },
    /// How it goes, once a second.
    Progress(Progress),
    /// What came of it.
    Done(Box<Part>),
    /// What the machine reaches before servers that do nothing, in requests a second.
    Ceiling(f64),
    /// Why nothing comes of it.
    Failed(Fault),
    /// Still there.
    Beat,
}

/// Programs and libraries with their versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Versions(Vec<(String, String)>);

impl Versions {
    pub(super) fn own() -> Versions {
        let own = machine::versions().into_iter();
        Versions(own.map(|(name, version)| (name.to_owned(), version.to_owned())).collect())
    }

    /// Plans and records are those of one version: others are refused. `whose` these are, and `ours`.
    pub(super) fn same_as(&self, theirs: &Versions, whose: &str, ours: &str) -> Result<(), Fault> {
        if self == theirs {
            return Ok(());
        }
        let fault = format!("versions differ: {whose} is {theirs}, and {ours} is {self}");
        Err(Fault::new(fault).help("copy the same binary to all machines"))
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(|(name, version)| format!("{name} {version}")).collect();
        f.write_str(&words.join(", "))
    }
}

/// Why there is nobody at the other end any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    Closed,
    /// For so long.
    Silent(Duration),
    /// So long behind the end of the load it has not said what came of it.
    Late(Duration),
    Broken(String),
}

impl Lost {
    /// It speaks, and not as is its turn.
    pub(super) fn out_of_turn() -> Lost {
        Lost::Broken("it says what it should not".to_owned())
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::Closed => f.write_str("it closed the connection"),
            Lost::Silent(time) => write!(f, "it said nothing for {} s", time.as_secs()),
            Lost::Late(time) => {
                write!(f, "{} s behind the end it had not said what came of it", time.as_secs())
            }
            Lost::Broken(words) => f.write_str(words),
        }
    }
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Lost {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Lost::Closed,
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Lost::Silent(SILENCE_MAX),
            _ => Lost::Broken(error.to_string()),
        }
    }
}

/// Both directions of a connection.
pub(super) trait Duplex: Read + Write + Send {}

impl<T: Read + Write + Send> Duplex for T {}

/// A connection, frame by frame.
pub(super) struct Link {
    stream: Box<dyn Duplex>,
    /// The same, for its timeouts.
    socket: TcpStream,
    /// What came and is no whole frame yet.
    come: Vec<u8>,
    frame_bytes_max: usize,
    heard: Instant,
    told: Instant,
}

impl Link {
    /// Takes frames of so many bytes.
    pub(super) fn new(
        stream: Box<dyn Duplex>,
        socket: TcpStream,
        frame_bytes_max: usize,
    ) -> io::Result<Link> {
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(SILENCE_MAX))?;
        let now = Instant::now();
        Ok(Link { stream, socket, come: Vec::new(), frame_bytes_max, heard: now, told: now })
    }

    /// Frames may be longer from now on.
    pub(super) fn trust(&mut self, frame_bytes_max: usize) {
        self.frame_bytes_max = frame_bytes_max;
    }

    /// From now on the other side speaks at least once a second.
    pub(super) fn listen(&mut self) {
        self.heard = Instant::now();
    }

    pub(super) fn send(&mut self, message: &Message) -> Result<(), Lost> {
        let json = serde_json::to_vec(message).map_err(|error| Lost::Broken(error.to_string()))?;
        let most = if let Message::Errand(_) = message { ERRAND_BYTES_MAX } else { FRAME_BYTES_MAX };
        let length = u32::try_from(json.len()).ok().filter(|length| *length as usize <= most);
        let length = length.ok_or_else(|| Lost::Broken(too_long(json.len())))?;
        self.stream.write_all(&length.to_be_bytes())?;
        self.stream.write_all(&json)?;
        self.stream.flush()?;
        self.told = Instant::now();
        Ok(())
    }

    /// The next frame, if it is whole within that time, however little of it comes at once.
    pub(super) fn receive(&mut self, within: Duration) -> Result<Option<Message>, Lost> {
        const LEAST: Duration = Duration::from_millis(1);
        let until = Instant::now() + within.max(LEAST);
        let mut piece = [0; PIECE_BYTES];
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left.max(LEAST)))?;
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(Lost::Closed),
                Ok(count) => {
                    self.heard = Instant::now();
                    self.come.extend_from_slice(&piece[..count]);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next frame, which has to be whole within that time.
    pub(super) fn expect(&mut self, within: Duration) -> Result<Message, Lost> {
        self.receive(within)?.ok_or(Lost::Silent(within))
    }

    /// The next frame, of which something has to come within that time, again and again until it is whole.
    pub(super) fn wait(&mut self, within: Duration) -> Result<Message, Lost> {
        self.listen();
        loop {
            match self.receive(within)? {
                Some(message) => return Ok(message),
                None if self.heard.elapsed() >= within => return Err(Lost::Silent(within)),
                None => {}
            }
        }
    }

    /// The same while there is load: it keeps the other side from thinking that we are gone, and notices when that is.
    pub(super) fn attend(&mut self, within: Duration) -> Result<Option<Message>, Lost> {
        if self.told.elapsed() >= BEAT {
            self.send(&Message::Beat)?;
        }
        match self.receive(within)? {
            Some(Message::Beat) => Ok(None),
            None if self.heard.elapsed() >= SILENCE_MAX => Err(Lost::Silent(SILENCE_MAX)),
            message => Ok(message),
        }
    }

    /// A frame that is whole.
    fn take(&mut self) -> Result<Option<Message>, Lost> {
        let Some((length, rest)) = self.come.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.frame_bytes_max {
            return Err(Lost::Broken(too_long(length)));
        }
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(frame)
            .map_err(|error| Lost::Broken(format!("what it said cannot be read: {error}")))?;
        self.come.drain(..4 + length);
        Ok(Some(message))
    }
}

fn too_long(length: usize) -> String {
    format!("a frame of {length} bytes is too long")
}

/// Reads what still comes, a little: the alert would go with a reset of a connection that is closed before that.
fn drain(socket: &mut TcpStream, until: Instant) -> io::Result<()> {
    socket.shutdown(Shutdown::Write)?;
    let mut piece = [0; PIECE_BYTES];
    for _ in 0..16 {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(left))?;
        if !matches!(socket.read(&mut piece), Ok(count) if count > 0) {
            break;
        }
    }
    Ok(())
}

/// Does a handshake, which is over by then, however slowly the other side speaks.
pub(super) fn shake<S: SideData>(
    connection: &mut impl DerefMut<Target = ConnectionCommon<S>>,
    socket: &mut TcpStream,
    until: Instant,
) -> io::Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, "it did not answer the TLS handshake in time"));
        }
        socket.set_read_timeout(Some(left))?;
        socket.set_write_timeout(Some(left))?;
        while connection.wants_write() {
            connection.write_tls(socket)?;
        }
        if !connection.is_handshaking() {
            return Ok(());
        }
        let read = match connection.read_tls(socket) {
            // Linux calls the end of a socket's patience by a name that says nothing of it.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            read => read?,
        };
        if read == 0 {
            return Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                "the connection was closed in the handshake",
            ));
        }
        if let Err(error) = connection.process_new_packets() {
            // The alert, which says why.
            while connection.wants_write() {
                connection.write_tls(socket)?;
            }
            drain(socket, until)?;
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
    }
}
