//! One question, put to one name server after the other until one of them answers.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use pointsman_net::{Timers, connect, connect_udp, write_all};
use tokio::io::AsyncReadExt;

use crate::message::{Heard, Question, Record};

/// How often each name server is asked.
const ROUNDS: usize = 2;
/// Bytes of a datagram that are looked at: what was not asked for may not be longer (RFC 1035 section 4.2.1), and some
/// send more all the same.
const DATAGRAM_BYTES_MAX: usize = 4096;
/// Datagrams that are looked at while one is waited for: more come from nobody who means well.
const DATAGRAMS_MAX: usize = 64;

/// Why nothing is known of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is no such name.
    NoName,
    /// It has no such record.
    Empty,
    /// Nobody answered in time.
    Timeout,
    /// Who was asked does not say.
    Refused(&'static str),
    /// What came is no answer.
    Malformed,
    /// The name server cannot be reached.
    Io(io::ErrorKind),
    /// It stands for a name that stands for a name, and so on.
    Aliases,
    /// It cannot be asked for.
    NotAName,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoName => f.write_str("there is no such name"),
            Fault::Empty => f.write_str("it has no such record"),
            Fault::Timeout => f.write_str("no name server answered in time"),
            Fault::Refused(why) => f.write_str(why),
            Fault::Malformed => f.write_str("the answer of the name server is malformed"),
            Fault::Io(kind) => write!(f, "the name server cannot be reached: {kind}"),
            Fault::Aliases => f.write_str("it leads through too many other names"),
            Fault::NotAName => f.write_str("it cannot be asked for"),
        }
    }
}

/// Asks one after the other, each for `answer_ms` at most. What comes is an answer to the question, whatever it says.
pub(crate) async fn ask(
    timers: &Timers,
    servers: &[SocketAddr],
    (name, record): (&str, Record),
    answer_ms: u32,
) -> Result<Heard, Fault> {
    let mut last = Fault::Timeout;
    for server in (0..ROUNDS).flat_map(|_| servers) {
        let question = Question::new(random_id()?, name, record).ok_or(Fault::NotAName)?;
        let mut deadline = timers.deadline();
        let heard = deadline.within(answer_ms, exchange(*server, &question)).await;
        match heard.unwrap_or(Err(Fault::Timeout)) {
            Ok(Heard::Refused(why)) => last = Fault::Refused(why),
            Ok(heard) => return Ok(heard),
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

/// By datagram, and over TCP where the answer does not fit (RFC 7766).
async fn exchange(server: SocketAddr, question: &Question) -> Result<Heard, Fault> {
    match over_udp(server, question).await? {
        Heard::Truncated => over_tcp(server, question).await,
        heard => Ok(heard),
    }
}

/// Each question has a socket of its own, so that whoever forges an answer has to guess its port as well as its id (RFC
/// 5452 section 4). What answers another question is not heard.
async fn over_udp(server: SocketAddr, question: &Question) -> Result<Heard, Fault> {
    let socket = connect_udp(server).map_err(unreachable)?;
    socket.send(&question.to_bytes()).map_err(unreachable)?;
    let mut room = [0; DATAGRAM_BYTES_MAX];
    for _ in 0..DATAGRAMS_MAX {
        let length = socket.receive(&mut room).await.map_err(unreachable)?;
        match question.read(&room[..length.min(room.len())]) {
            Heard::Nothing => {}
            heard => return Ok(heard),
        }
    }
    Err(Fault::Malformed)
}

async fn over_tcp(server: SocketAddr, question: &Question) -> Result<Heard, Fault> {
    let mut stream = connect(server).await.map_err(unreachable)?;
    let message = question.to_bytes();
    let mut framed = (message.len() as u16).to_be_bytes().to_vec();
    framed.extend(message);
    write_all(&mut stream, &framed, &mut 0).await.map_err(unreachable)?;
    let length = stream.read_u16().await.map_err(unreachable)?;
    let mut answer = vec![0; usize::from(length)];
    stream.read_exact(&mut answer).await.map_err(unreachable)?;
    match question.read(&answer) {
        Heard::Nothing | Heard::Truncated => Err(Fault::Malformed),
        heard => Ok(heard),
    }
}

fn unreachable(error: io::Error) -> Fault {
    Fault::Io(error.kind())
}

fn random_id() -> Result<u16, Fault> {
    let number = getrandom::u32().map_err(|_| Fault::Io(io::ErrorKind::Other))?;
    Ok(number as u16)
}
