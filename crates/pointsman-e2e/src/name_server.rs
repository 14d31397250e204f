//! A small name server that answers as it is told, over UDP and TCP, and counts what it is asked.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// A name server on a free port of loopback. It stops when it is dropped.
pub struct NameServer {
    address: SocketAddr,
    udp: UdpSocket,
    shared: Arc<Mutex<State>>,
}

/// How it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As its records say.
    Well,
    /// Not at all.
    Silent,
    /// When it answers otherwise again.
    Late,
    /// That it failed.
    Failing,
    /// Over UDP that the answer has no room there.
    Truncating,
    /// Behind what somebody would send who wants another answer to be believed.
    BehindForgeries,
}

#[derive(Default)]
struct State {
    names: HashMap<String, Vec<String>>,
    manner: Option<Manner>,
    /// Questions that are to be answered late, and who asked.
    late: Vec<(SocketAddr, Vec<u8>)>,
    udp: usize,
    tcp: usize,
    is_over: bool,
}

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const SRV: u16 = 33;

impl NameServer {
    /// A name server that knows no name.
    ///
    /// # Panics
    /// When no port is free.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it listens")]
    pub fn new() -> NameServer {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = tcp.local_addr().expect("bound");
        // Whoever has the same number for UDP has it by chance.
        let Ok(udp) = UdpSocket::bind(address) else { return NameServer::new() };
        let shared = Arc::new(Mutex::new(State::default()));
        let (theirs, others) = (shared.clone(), shared.clone());
        let serving = udp.try_clone().expect("descriptors");
        thread::spawn(move || serve_udp(&serving, &theirs));
        thread::spawn(move || serve_tcp(&tcp, &others));
        NameServer { address, udp, shared }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The `[dns]` of a configuration that asks it, with an answer holding 100 ms at least and these other keys.
    #[must_use]
    pub fn table(&self, keys: &str) -> String {
        format!("\n[dns]\nservers = [\"{}\"]\nttl_ms_min = 100\n{keys}\n", self.address)
    }

    /// What a name has: `TTL ADDRESS`, `TTL NAME` for an alias, `TTL PRIORITY WEIGHT PORT NAME` for a service. A name
    /// without any is there all the same.
    pub fn set(&self, name: &str, records: &[&str]) {
        let records = records.iter().map(|&record| record.to_owned()).collect();
        lock(&self.shared).names.insert(name.to_owned(), records);
    }

    /// There is no such name any more.
    pub fn forget(&self, name: &str) {
        lock(&self.shared).names.remove(name);
    }

    /// Answers so from now on, and whom it owes an answer.
    pub fn answers(&self, manner: Manner) {
        let mut state = lock(&self.shared);
        state.manner = Some(manner);
        for (from, question) in std::mem::take(&mut state.late) {
            drop(self.udp.send_to(&state.answer(&question, false), from));
        }
    }

    /// How often it was asked over UDP and over TCP.
    #[must_use]
    pub fn asked(&self) -> (usize, usize) {
        let state = lock(&self.shared);
        (state.udp, state.tcp)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        lock(&self.shared).is_over = true;
        // Who waits looks up.
        let told = UdpSocket::bind("127.0.0.1:0").and_then(|ours| ours.send_to(&[], self.address));
        drop((told, std::net::TcpStream::connect(self.address)));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("nobody panics with it")
}

fn serve_udp(socket: &UdpSocket, shared: &Mutex<State>) {
    let mut room = [0; 1024];
    while let Ok((length, from)) = socket.recv_from(&mut room) {
        let mut state = lock(shared);
        if state.is_over {
            return;
        }
        let question = &room[..length];
        state.udp += 1;
        let manner = state.manner.unwrap_or(Manner::Well);
        let answer = match manner {
            Manner::Silent => continue,
            Manner::Late => {
                state.late.push((from, question.to_vec()));
                continue;
            }
            Manner::Failing => failure(question),
            Manner::Truncating => state.answer(question, true),
            Manner::Well | Manner::BehindForgeries => state.answer(question, false),
        };
        drop(state);
        if manner == Manner::BehindForgeries {
            for forged in forgeries(question) {
                drop(socket.send_to(&forged, from));
            }
            // From elsewhere, and good in all else.
            let other = UdpSocket::bind("127.0.0.1:0").expect("a free port");
            drop(other.send_to(&forged_answer(question), from));
        }
        drop(socket.send_to(&answer, from));
    }
}

fn serve_tcp(listener: &TcpListener, shared: &Mutex<State>) {
    for stream in listener.incoming().map_while(Result::ok) {
        if lock(shared).is_over {
            return;
        }
        let mut stream = stream;
        let mut length = [0; 2];
        let mut question = Vec::new();
        let read = stream.read_exact(&mut length).and_then(|()| {
            question.resize(usize::from(u16::from_be_bytes(length)), 0);
            stream.read_exact(&mut question)
        });
        if read.is_err() {
            continue;
        }
        let mut state = lock(shared);
        state.tcp += 1;
        let answer = state.answer(&question, false);
        drop(state);
        // In two pieces, as it may come.
        let (first, rest) = answer.split_at(5);
        let framed = [&(answer.len() as u16).to_be_bytes(), first].concat();
        drop(stream.write_all(&framed).and_then(|()| stream.write_all(rest)));
    }
}

impl State {
    /// Follows aliases as far as it knows them.
    fn answer(&self, question: &[u8], is_truncated: bool) -> Vec<u8> {
        let (mut name, kind, end) = asked(question);
        let mut records = Vec::new();
        let mut code = 0;
        while let Some(known) = self.names.get(&name) {
            let found: Vec<_> = known.iter().map(|record| parsed(record)).collect();
            let own = found.iter().filter(|(_, its, _)| *its == kind || *its == CNAME);
            records.extend(own.map(|(ttl, its, data)| record(&name, *ttl, *its, data)));
            let alias = known.iter().find(|record| parsed(record).1 == CNAME);
            match alias.and_then(|record| record.split(' ').nth(1)) {
                Some(alias) if records.len() < 50 => name = alias.to_owned(),
                _ => break,
            }
        }
        if records.is_empty() && !self.names.contains_key(&name) {
            code = 3;
        }
        let flags = if is_truncated { 0x8380 } else { 0x8180 };
        if is_truncated {
            records.clear();
        }
        message(question, end, flags | code, &records)
    }
}

/// The name and the kind that are asked for, and where the question ends.
fn asked(question: &[u8]) -> (String, u16, usize) {
    let mut at = 12;
    let mut labels = Vec::new();
    while question[at] > 0 {
        let next = at + 1 + usize::from(question[at]);
        labels.push(String::from_utf8_lossy(&question[at + 1..next]).into_owned());
        at = next;
    }
    let kind = u16::from_be_bytes([question[at + 1], question[at + 2]]);
    (labels.join("."), kind, at + 5)
}

/// `TTL …` as its time, its kind and its data.
fn parsed(record: &str) -> (u32, u16, Vec<u8>) {
    let words: Vec<_> = record.split(' ').collect();
    let ttl = words[0].parse().expect("a TTL");
    match (&words[1..], words[1].parse()) {
        (_, Ok(IpAddr::V4(address))) => (ttl, A, address.octets().to_vec()),
        (_, Ok(IpAddr::V6(address))) => (ttl, AAAA, address.octets().to_vec()),
        ([alias], _) => (ttl, CNAME, written(alias)),
        ([numbers @ .., target], _) => {
            let numbers = numbers.iter().map(|number| number.parse::<u16>().expect("a number").to_be_bytes());
            (ttl, SRV, numbers.flatten().chain(written(target)).collect())
        }
        ([], _) => panic!("{record}"),
    }
}

fn written(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty());
    let labels = labels.flat_map(|label| [&[label.len() as u8][..], label.as_bytes()].concat());
    labels.chain([0]).collect()
}

fn record(name: &str, ttl: u32, kind: u16, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16).to_be_bytes();
    [&written(name)[..], &kind.to_be_bytes(), &[0, 1], &ttl.to_be_bytes(), &length, data].concat()
}

fn message(question: &[u8], end: usize, flags: u16, records: &[Vec<u8>]) -> Vec<u8> {
    let count = (records.len() as u16).to_be_bytes();
    let header = [&question[..2], &flags.to_be_bytes(), &[0, 1], &count, &[0; 4]].concat();
    [&header[..], &question[12..end], &records.concat()].concat()
}

fn failure(question: &[u8]) -> Vec<u8> {
    message(question, asked(question).2, 0x8182, &[])
}

/// An address that nobody is to get.
fn forged_answer(question: &[u8]) -> Vec<u8> {
    let (name, _, end) = asked(question);
    message(question, end, 0x8180, &[record(&name, 300, A, &[127, 6, 6, 6])])
}

/// The same with another id, with another question, cut off, and what is no message.
fn forgeries(question: &[u8]) -> [Vec<u8>; 4] {
    let mut other_id = forged_answer(question);
    other_id[0] ^= 0x55;
    let mut other_name = forged_answer(question);
    other_name[13] ^= 1;
    let mut cut = forged_answer(question);
    cut.truncate(cut.len() - 2);
    [other_id, other_name, cut, b"nonsense".to_vec()]
}
