//! One request before the run: whether the server answers at all, and a session to resume.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::bell::Bell;
use crate::clock::now_ns;
use crate::connection::{Job, Turn};
use crate::negotiated::Negotiated;
use crate::request::{Origin, Requests};
use crate::speech::{Speech, Unspoken};
use crate::{Fault, Plan};

/// How soon the bell is heard.
const LOOK: Duration = Duration::from_millis(100);

/// A socket on which all has to be over within the plan's timeout, however much comes, and that is given up when the bell
/// rings.
struct Patient<'b> {
    socket: TcpStream,
    since: Instant,
    timeout: Duration,
    bell: &'b Bell,
    /// Bytes that came.
    come: u64,
}

impl Patient<'_> {
    fn again<T>(&self, mut act: impl FnMut(&TcpStream) -> io::Result<T>) -> io::Result<T> {
        loop {
            // Before each of them: what comes without an end never lets anybody wait.
            if self.bell.is_over() {
                return Err(io::Error::other("it was ended before its time"));
            }
            if self.since.elapsed() >= self.timeout {
                return Err(io::Error::new(ErrorKind::TimedOut, self.late()));
            }
            match act(&self.socket) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn late(&self) -> String {
        match self.come {
            0 => format!("nothing came for {:?}", self.timeout),
            come => format!("after {:?} and {come} bytes the answer had come to no end", self.timeout),
        }
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.again(|mut socket| socket.read(into))?;
        self.come += count as u64;
        Ok(count)
    }
}

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.again(|mut socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// Asks the `index`th request once, under this number, and waits for the answer, or until the bell rings. How many bytes came, head and all,
/// without what TLS adds.
pub(crate) fn probe(
    plan: &Plan,
    requests: &Arc<Requests>,
    (index, number): (usize, u64),
    (tls, bell): (Option<&Arc<ClientConfig>>, &Bell),
) -> Result<u64, Fault> {
    let request = requests.get(index);
    let origin = &requests.origins[request.origin];
    let what = format!("cannot ask {}", plan.targets[index].url);
    let since = Instant::now();
    let socket = connect(plan, origin).map_err(|error| Fault::io(&what, &error))?;
    let mut socket = Patient { socket, since, timeout: plan.timeout, bell, come: 0 };
    let mut turn = Turn::new(requests.clone(), fastrand::Rng::with_seed(plan.seed));
    let mut speech = Speech::new(plan.protocol);
    speech.reset(1, now_ns());
    speech.ask(Job { number, ..Job::new(index as u32) });
    let answered = match (&origin.tls, tls) {
        (Some(name), Some(config)) => {
            let connection = ClientConnection::new(config.clone(), name.clone());
            let connection = connection.map_err(|error| Fault::new(format!("{what}: {error}")))?;
            let mut stream = StreamOwned::new(connection, socket);
            let outcome = agree(&mut stream, plan).and_then(|()| {
                // What is said of bytes is said of the answer's.
                stream.sock.come = 0;
                ask(&mut stream, &mut speech, &mut turn)
            });
            stream.conn.send_close_notify();
            let (Ok(()) | Err(_)) = stream.flush();
            outcome
        }
        _ => ask(&mut socket, &mut speech, &mut turn),
    };
    answered.map_err(|error| advised(Fault::io(&what, &error), &error))
}

fn connect(plan: &Plan, origin: &Origin) -> io::Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&origin.address, plan.timeout)?;
    socket.set_read_timeout(Some(LOOK))?;
    socket.set_write_timeout(Some(LOOK))?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// Does the handshake, and looks whether what is to be spoken was agreed on.
fn agree(stream: &mut StreamOwned<ClientConnection, Patient<'_>>, plan: &Plan) -> io::Result<()> {
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    let agreed = Negotiated::of(&stream.conn, false).protocol;
    if plan.protocol.is_agreed_by(agreed) {
        return Ok(());
    }
    let agreed = if agreed.is_empty() { "nothing".to_owned() } else { format!("`{agreed}`") };
    Err(io::Error::other(format!("the server agreed on {agreed} by ALPN, not on `{}`", plan.protocol.alpn())))
}

fn ask(stream: &mut (impl Read + Write), speech: &mut Speech, turn: &mut Turn) -> io::Result<u64> {
    let mut come = 0;
    speech.write(now_ns(), turn);
    let mut piece = vec![0; 16 * 1024];
    loop {
        stream.write_all(&turn.out)?;
        stream.flush()?;
        turn.out.clear();
        let count = match stream.read(&mut piece) {
            Ok(count) => count,
            // Many servers end a connection without the word that TLS has for it.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => 0,
            Err(error) => return Err(error),
        };
        come += count as u64;
        if count == 0 {
            speech.end(turn);
        } else {
            let fed = speech.feed(&piece[..count], now_ns(), turn);
            if turn.failed.iter().any(|(_, kind)| *kind == crate::ErrorKind::Malformed) {
                return Err(io::Error::other("the answer is not as long as it says"));
            }
            fed.map_err(|unspoken| {
                io::Error::other(match unspoken {
                    Unspoken::Malformed => format!("what comes is no {}", speech.protocol().name()),
                    Unspoken::Flooded => "frames come without end, and no answer with them".to_owned(),
                })
            })?;
        }
        if !turn.done.is_empty() {
            return Ok(come);
        }
        if count == 0 {
            return Err(io::Error::other("the connection ends before the answer does"));
        }
        if !(turn.failed.is_empty() && turn.refused.is_empty()) {
            return Err(io::Error::other("the server does not answer the request: it resets its stream"));
        }
    }
}

fn advised(fault: Fault, error: &io::Error) -> Fault {
    match advice(&error.to_string()) {
        Some(advice) => fault.help(advice),
        None => fault,
    }
}

/// What can be done where a handshake has failed for this reason: what people most often stumble over.
pub fn advice(why: &str) -> Option<&'static str> {
    if why.contains("alert `protocol_version`") || why.contains("alert `handshake_failure`") {
        return Some(
            "the server takes nothing of what is offered: what `--tls-version`, `--suites` and `--groups` name is offered alone. \
             Suites whose names begin with TLS_AES and TLS_CHACHA20 are of TLS 1.3; in TLS 1.2 a server whose key is ECDSA wants \
             the curve of its key, such as P-256, among `--groups`",
        );
    }
    let is_untrusted = why.contains("certificate") && !why.contains("required");
    is_untrusted.then_some("name the authority's certificate with `--ca FILE`, or say `--insecure`")
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;
    use crate::{Body, Load, Target, Url};

    /// A server that takes connections and says nothing.
    #[test]
    fn who_says_nothing_is_waited_for_until_the_time_is_up_or_the_bell_rings() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let url = format!("http://{}/", server.local_addr().expect("it listens"));
        let url = Url::parse(&url).expect("a URL");
        let target = Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Body::None };
        let mut plan = Plan::new(vec![target], Load::Closed { clients: 1 });
        let requests = Arc::new(Requests::new(&plan).expect("one"));
        let bell = Bell::default();
        plan.timeout = Duration::from_millis(150);
        let late = probe(&plan, &requests, (0, 1), (None, &bell)).expect_err("nothing comes");
        assert!(late.to_string().ends_with("nothing came for 150ms"), "{late}");
        plan.timeout = Duration::from_secs(3600);
        let since = Instant::now();
        std::thread::scope(|scope| {
            let asks = scope.spawn(|| probe(&plan, &requests, (0, 1), (None, &bell)));
            bell.ring();
            let ended = asks.join().expect("it ends").expect_err("nothing comes");
            assert!(ended.to_string().ends_with("it was ended before its time"), "{ended}");
        });
        assert!(since.elapsed() < Duration::from_secs(60));
    }

    /// A server whose answer goes on and on: interim ones, or events.
    #[test]
    fn an_answer_without_an_end_is_given_up_when_the_time_is_up_or_the_bell_rings() {
        use std::io::Write as _;
        for (first, again) in [
            ("", "HTTP/1.1 102 Processing\r\n\r\n"),
            ("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", "data: x\n\n"),
        ] {
            let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
            let url = format!("http://{}/", server.local_addr().expect("it listens"));
            let url = Url::parse(&url).expect("a URL");
            // Until whoever listens has gone.
            let goes_on = move || {
                for socket in server.incoming().take(2) {
                    let mut socket = socket.expect("a connection");
                    let mut sent = socket.write_all(first.as_bytes());
                    while sent.is_ok() {
                        sent = socket.write_all(again.as_bytes());
                    }
                }
            };
            let target =
                Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Body::None };
            let mut plan = Plan::new(vec![target], Load::Closed { clients: 1 });
            let requests = Arc::new(Requests::new(&plan).expect("one"));
            let bell = Bell::default();
            std::thread::scope(|scope| {
                scope.spawn(goes_on);
                plan.timeout = Duration::from_millis(150);
                let late =
                    probe(&plan, &requests, (0, 1), (None, &bell)).expect_err("it has no end").to_string();
                assert!(late.contains("after 150ms and ") && late.ends_with("had come to no end"), "{late}");
                plan.timeout = Duration::from_secs(3600);
                let asks = scope.spawn(|| probe(&plan, &requests, (0, 1), (None, &bell)));
                bell.ring();
                let ended = asks.join().expect("it ends").expect_err("it has no end").to_string();
                assert!(ended.ends_with("it was ended before its time"), "{ended}");
            });
        }
    }
}
