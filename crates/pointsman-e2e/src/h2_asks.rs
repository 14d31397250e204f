//! What tests ask over HTTP/2 when nothing is wrong with it.

use std::io::Result;

use crate::h2_wire::{fields, flag};
use crate::{Frame, H2Answer, H2Client, Outcome};

impl H2Client {
    /// Sends a GET for `shop.example` and waits for what becomes of it.
    ///
    /// # Errors
    /// When nothing comes in time, or what comes is no HTTP/2.
    pub fn get(&mut self, stream: u32, scheme: &str, target: &str) -> Result<Outcome> {
        let pairs =
            [(":method", "GET"), (":scheme", scheme), (":authority", "shop.example"), (":path", target)];
        // A connection that was closed shows itself when it is read.
        drop(self.send_fields(stream, flag::END_STREAM, &fields(&pairs)));
        self.outcome(stream)
    }

    /// Sends a request without content for `shop.example`, with further fields.
    pub fn ask(&mut self, stream: u32, method: &str, target: &str, more: &[(&str, &str)]) {
        self.head(stream, flag::END_STREAM, (method, target), more);
    }

    /// Sends the head of a request whose content follows.
    pub fn post(&mut self, stream: u32, target: &str, more: &[(&str, &str)]) {
        self.head(stream, 0, ("POST", target), more);
    }

    /// Asks for a WebSocket on a stream, which stays open (RFC 8441 section 5). Fields of `more` come on top; those
    /// of pseudo-header fields take the place of what there is.
    pub fn connect(&mut self, stream: u32, target: &str, more: &[(&str, &str)]) {
        let protocol = [(":protocol", "websocket")];
        self.head(stream, 0, ("CONNECT", target), &[&protocol, more].concat());
    }

    /// Sends a GET and waits for its answer.
    ///
    /// # Panics
    /// When there is none.
    pub fn fetch(&mut self, stream: u32, target: &str) -> H2Answer {
        self.ask(stream, "GET", target, &[]);
        self.answer(stream)
    }

    /// Waits for the whole answer of a stream.
    ///
    /// # Panics
    /// When there is none.
    pub fn answer(&mut self, stream: u32) -> H2Answer {
        match self.outcome(stream) {
            Ok(Outcome::Answer(answer)) => answer,
            other => panic!("stream {stream}: {other:?}"),
        }
    }

    /// Waits until a stream is reset. Returns the code.
    ///
    /// # Panics
    /// When something else becomes of it.
    pub fn reset(&mut self, stream: u32) -> u32 {
        match self.outcome(stream) {
            Ok(Outcome::Reset(code)) => code,
            other => panic!("stream {stream}: {other:?}"),
        }
    }

    /// Takes frames until this holds.
    ///
    /// # Panics
    /// When it does not in time, or the connection ends.
    pub fn wait(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            match self.frame() {
                Ok(Some(frame)) => self.take(frame).expect("HTTP/2"),
                other => panic!("waited for {what}: {other:?}"),
            }
        }
    }

    /// Takes frames until all that was sent up to now has been read.
    ///
    /// # Panics
    /// When the switch does not answer a PING.
    pub fn turn(&mut self) {
        let bytes = *b"are you?";
        self.send(&Frame::ping(bytes)).expect("it is open");
        loop {
            match self.frame() {
                Ok(Some(frame)) if frame == Frame { flags: flag::ACK, ..Frame::ping(bytes) } => return,
                Ok(Some(frame)) => self.take(frame).expect("HTTP/2"),
                other => panic!("waited for the answer to a PING: {other:?}"),
            }
        }
    }

    /// Takes frames to the end of the connection. Returns the code of its last GOAWAY.
    ///
    /// # Panics
    /// When it goes on.
    pub fn ending(&mut self) -> Option<u32> {
        loop {
            match self.frame() {
                Ok(Some(frame)) => self.take(frame).expect("HTTP/2"),
                Ok(None) => return self.goaway().map(|(_, code)| code),
                Err(error) => panic!("waited for the end of the connection: {error}"),
            }
        }
    }

    fn head(&mut self, stream: u32, flags: u8, (method, target): (&str, &str), more: &[(&str, &str)]) {
        let scheme = self.scheme();
        let mut pairs =
            vec![(":method", method), (":scheme", scheme), (":authority", "shop.example"), (":path", target)];
        for (name, value) in more {
            match pairs.iter_mut().find(|(other, _)| other == name && name.starts_with(':')) {
                Some(pair) => pair.1 = value,
                None => pairs.push((name, value)),
            }
        }
        // A connection that was closed shows itself when it is read.
        drop(self.send_fields(stream, flags, &fields(&pairs)));
    }
}
