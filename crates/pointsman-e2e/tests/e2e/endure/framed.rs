//! Long bodies as they go over a connection: with a length or in chunks, plain or over TLS, through pipes or not.

use std::io::{ErrorKind, Result};

use pointsman_e2e::{Authority, Client, Pattern, Setup, Switch, TlsClient};

/// The ways that a long body may take through the switch.
pub(super) const WAYS: [Way; 5] = [
    Way { name: "with a length", is_chunked: false, is_tls: false, top: "" },
    Way { name: "with a length, no pipes", is_chunked: false, is_tls: false, top: "splice_pipes_max = 0" },
    Way { name: "in chunks", is_chunked: true, is_tls: false, top: "" },
    Way { name: "with a length, TLS", is_chunked: false, is_tls: true, top: "" },
    Way { name: "in chunks, TLS", is_chunked: true, is_tls: true, top: "" },
];

/// One of them.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) name: &'static str,
    is_chunked: bool,
    is_tls: bool,
    /// Keys of the whole process.
    top: &'static str,
}

/// A switch that bodies go through in one way, and how clients reach it.
pub(super) struct Site {
    pub(super) switch: Switch,
    trust: Option<TlsClient>,
}

impl Way {
    /// Starts the switch; `with` adds the pools.
    pub(super) fn start(self, threads: usize, with: impl FnOnce(Setup) -> Setup) -> Site {
        let setup = Setup::new(threads).top(self.top);
        if !self.is_tls {
            return Site { switch: with(setup).start(), trust: None };
        }
        let authority = Authority::new("test CA");
        let setup = setup.tls(&authority.server(&["shop.example"]), "");
        Site { switch: with(setup).start(), trust: Some(TlsClient::new(&authority)) }
    }

    pub(super) fn body(self, length: u64) -> Body {
        Body {
            length,
            is_chunked: self.is_chunked,
            is_over: false,
            pattern: Pattern::default(),
            made: Vec::new(),
        }
    }
}

impl Site {
    pub(super) fn client(&self) -> Client {
        match &self.trust {
            None => self.switch.client(),
            Some(trust) => self.switch.tls_client(trust, "shop.example").expect("a handshake"),
        }
    }
}

/// So much of the pattern, framed.
pub(super) struct Body {
    length: u64,
    is_chunked: bool,
    is_over: bool,
    pattern: Pattern,
    /// What was made and is not taken yet.
    made: Vec<u8>,
}

impl Body {
    /// The header field that goes with it.
    pub(super) fn field(&self) -> String {
        match self.is_chunked {
            true => "Transfer-Encoding: chunked".to_owned(),
            false => format!("Content-Length: {}", self.length),
        }
    }

    /// How many bytes of the pattern were taken, give or take a piece.
    pub(super) fn sent(&self) -> u64 {
        self.pattern.position().saturating_sub(self.made.len() as u64)
    }

    /// Sends to the end of the body; false where nothing more is taken before that.
    pub(super) fn send(&mut self, mut write: impl FnMut(&[u8]) -> Result<usize>) -> Result<bool> {
        loop {
            if self.made.is_empty() && !self.make() {
                return Ok(true);
            }
            match write(&self.made) {
                Ok(taken) => drop(self.made.drain(..taken)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes the next piece; false at the end.
    fn make(&mut self) -> bool {
        let left = self.length - self.pattern.position();
        if left == 0 {
            let has_end = self.is_chunked && !self.is_over;
            self.is_over = true;
            self.made.extend_from_slice(if has_end { b"0\r\n\r\n" } else { b"" });
            return has_end;
        }
        let piece = self.pattern.next(left);
        if self.is_chunked {
            self.made.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        }
        self.made.extend_from_slice(piece);
        self.made.extend_from_slice(if self.is_chunked { b"\r\n" } else { b"" });
        true
    }
}

/// Takes pieces of a body to its end: how many bytes came. They must be the pattern's.
pub(super) fn expect(mut piece: impl FnMut() -> Result<Option<Vec<u8>>>) -> Result<u64> {
    let mut pattern = Pattern::default();
    while let Some(came) = piece()? {
        pattern.expect(&came);
    }
    Ok(pattern.position())
}
