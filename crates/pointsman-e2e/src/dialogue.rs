//! Dialogues in text files: what the client sends, what the server sees, what it answers, and what
//! the client sees. This file runs them; `script.rs` reads them and describes how they are written.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::client::is_closed;
use crate::{Framing, PATIENCE, Reader, Setup, Switch, testdata};

mod script;

use script::{Act, Expected, Party, Script, Step};

/// Plays every dialogue of a folder in `testdata/dialogues`.
///
/// # Panics
/// When one of them went otherwise; shows all that did.
pub fn play_all(folder: &str, threads: usize) {
    let folder = testdata("dialogues").join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no dialogues in {}", folder.display());
    let failures: Vec<String> = paths.iter().filter_map(|path| play(path, threads).err()).collect();
    assert!(failures.is_empty(), "{} of {} dialogues:\n{}", failures.len(), paths.len(), failures.join("\n"));
}

/// Plays one dialogue. The error names the line that went otherwise.
fn play(path: &Path, threads: usize) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    let script = Script::read(&text).map_err(|error| format!("{name}:{error}"))?;
    let mut stage = Stage::new(&script, threads);
    for step in &script.steps {
        stage.take(step).map_err(|error| {
            let said = stage.switch.said();
            format!("{name}:{}: {error}\n  the switch said:\n{said}", step.line)
        })?;
    }
    Ok(())
}

/// The switch with both its sides in our hands.
struct Stage {
    switch: Switch,
    client: Option<Reader<TcpStream>>,
    servers: [Server; 2],
}

struct Server {
    address: SocketAddr,
    arrivals: Receiver<TcpStream>,
    current: Option<Reader<TcpStream>>,
}

impl Stage {
    fn new(script: &Script, threads: usize) -> Self {
        let servers = [Server::new(), Server::new()];
        let mut setup = Setup::new(threads)
            .top(&script.top)
            .listener(&script.listener)
            .limits(&script.limits)
            .pool_at("standard", &script.pool, &[("s", servers[0].address)])
            .pool_at("other", "", &[("t", servers[1].address)]);
        if !script.rules.is_empty() {
            setup = setup.rules(&script.rules);
        }
        Self { switch: setup.start(), client: None, servers }
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        match &step.act {
            Act::Open => {
                self.client = None;
                self.client()?;
            }
            Act::Accept => {
                self.server(step.party).current = None;
                self.peer(step.party)?;
            }
            Act::Send(bytes) => {
                let sent = self.peer(step.party)?.stream().write_all(bytes);
                sent.map_err(|error| format!("cannot send: {error}"))?;
            }
            Act::Expect(expected) => {
                let begins = !expected.start.is_empty();
                if begins && step.party != Party::Client {
                    self.server(step.party).follow()?;
                }
                expect(self.peer(step.party)?, expected)?;
            }
            Act::FinishSending => {
                let finished = self.peer(step.party)?.stream().shutdown(Shutdown::Write);
                finished.map_err(|error| format!("cannot finish sending: {error}"))?;
            }
            Act::Close => self.close(step.party),
            Act::Reset => {
                let socket = SockRef::from(&*self.peer(step.party)?.stream());
                socket.set_linger(Some(Duration::ZERO)).expect("an open socket");
                self.close(step.party);
            }
            Act::SeeEnd => see_end(self.peer(step.party)?)?,
            Act::SeeNothing => self.server(step.party).see_nothing()?,
        }
        Ok(())
    }

    /// Dropping the last descriptor closes the connection.
    fn close(&mut self, party: Party) {
        match party {
            Party::Client => self.client = None,
            _ => self.server(party).current = None,
        }
    }

    fn peer(&mut self, party: Party) -> Result<&mut Reader<TcpStream>, String> {
        match party {
            Party::Client => self.client(),
            _ => self.server(party).peer(),
        }
    }

    fn server(&mut self, party: Party) -> &mut Server {
        &mut self.servers[usize::from(party == Party::OtherServer)]
    }

    fn client(&mut self) -> Result<&mut Reader<TcpStream>, String> {
        if self.client.is_none() {
            let socket = TcpStream::connect_timeout(&self.switch.address("shop"), PATIENCE);
            let socket = socket.map_err(|error| format!("cannot connect: {error}"))?;
            self.client = Some(Reader::new(patient(socket)));
        }
        Ok(self.client.as_mut().expect("just connected"))
    }
}

impl Server {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (sender, arrivals) = channel();
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if sender.send(socket).is_err() {
                    return;
                }
            }
        });
        Self { address, arrivals, current: None }
    }

    fn peer(&mut self) -> Result<&mut Reader<TcpStream>, String> {
        if self.current.is_none() {
            let socket = self.arrivals.recv_timeout(PATIENCE);
            let socket = socket.map_err(|_| "the switch opens no connection".to_owned())?;
            self.current = Some(Reader::new(patient(socket)));
        }
        Ok(self.current.as_mut().expect("just accepted"))
    }

    /// The next message may come on the connection that is open, or on a new one (a client that
    /// connects again may be another thread's): whichever speaks first is the current one.
    fn follow(&mut self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while self.current.as_mut().is_some_and(is_silent) {
            if let Ok(socket) = self.arrivals.try_recv() {
                self.current = Some(Reader::new(patient(socket)));
            }
            if Instant::now() > until {
                return Err("nothing came in time".to_owned());
            }
        }
        Ok(())
    }

    fn see_nothing(&mut self) -> Result<(), String> {
        if self.arrivals.try_recv().is_ok() {
            return Err("the switch opened a connection".to_owned());
        }
        let Some(reader) = &mut self.current else { return Ok(()) };
        let socket = reader.stream();
        socket.set_nonblocking(true).expect("an open socket");
        let mut space = [0; 1024];
        let came = socket.read(&mut space);
        socket.set_nonblocking(false).expect("an open socket");
        match came {
            Ok(0) => Ok(()),
            Ok(count) => Err(format!("the switch sent {:?}", String::from_utf8_lossy(&space[..count]))),
            Err(error) if error.kind() == ErrorKind::WouldBlock || is_closed(&error) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Wakes the accepting thread, which then finds nobody to hand connections to.
        let (_, nobody) = channel();
        self.arrivals = nobody;
        drop(TcpStream::connect(self.address));
    }
}

/// Whether nothing comes for a moment: neither a byte nor the end.
fn is_silent(reader: &mut Reader<TcpStream>) -> bool {
    if !reader.buffered().is_empty() {
        return false;
    }
    let socket = reader.stream();
    socket.set_read_timeout(Some(Duration::from_millis(5))).expect("an open socket");
    let peeked = socket.peek(&mut [0]);
    socket.set_read_timeout(Some(PATIENCE)).expect("an open socket");
    peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

fn patient(socket: TcpStream) -> TcpStream {
    socket.set_read_timeout(Some(PATIENCE)).expect("an open socket");
    socket.set_write_timeout(Some(PATIENCE)).expect("an open socket");
    socket.set_nodelay(true).expect("an open socket");
    socket
}

fn expect(reader: &mut Reader<TcpStream>, expected: &Expected) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read: {error}");
    if !expected.start.is_empty() {
        let head = reader.head().map_err(failed)?.ok_or("the connection ends before a message")?;
        let is_answer = head.start.starts_with("HTTP/");
        expected.check_head(&head)?;
        if is_answer && !expected.names("date") {
            head.check_date()?;
        }
        let framing = match is_answer {
            true => head.response_framing(expected.bodiless),
            false => head.request_framing(),
        };
        expected.check_framing(framing)?;
        reader.begin_body(framing);
    }
    let mut bytes = Vec::new();
    if expected.more {
        let wanted = expected.body.as_deref().unwrap_or_default();
        while bytes.len() < wanted.len() {
            bytes.extend(reader.piece().map_err(failed)?.ok_or("the body ends early")?);
        }
        return expected.check_body(&bytes);
    }
    let body = reader.rest();
    if expected.cut {
        return match body {
            Ok(_) => Err("the body came whole".to_owned()),
            Err(error) if is_closed(&error) => Ok(()),
            Err(error) => Err(failed(error)),
        };
    }
    let body = body.map_err(failed)?;
    expected.check_body(&body.bytes)?;
    expected.check_trailers(&body.trailers)
}

fn see_end(reader: &mut Reader<TcpStream>) -> Result<(), String> {
    match reader.at_end() {
        Ok(true) => Ok(()),
        Err(error) if is_closed(&error) => Ok(()),
        Err(error) => Err(format!("the connection does not end: {error}")),
        Ok(false) => {
            reader.begin_body(Framing::Close);
            let rest = reader.piece().ok().flatten().unwrap_or_default();
            Err(format!("there comes {:?}", String::from_utf8_lossy(&rest)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dialogue with a slip of the pen should not need a switch to be found.
    #[test]
    fn every_dialogue_reads() {
        let folders = std::fs::read_dir(testdata("dialogues")).expect("a folder").flatten();
        for file in folders.flat_map(|folder| std::fs::read_dir(folder.path()).expect("a folder")).flatten() {
            let text = std::fs::read_to_string(file.path()).expect("a text");
            let script = Script::read(&text).unwrap_or_else(|error| panic!("{:?}:{error}", file.path()));
            assert!(script.steps.len() >= 2, "{:?}", file.path());
        }
    }
}
