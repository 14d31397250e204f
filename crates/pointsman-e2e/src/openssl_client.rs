//! `openssl s_client`: a client of TLS that nobody here wrote, with its session in a file.

use std::path::Path;

use crate::{installed, tool};

/// Asks one switch, always with the same options; from another address of the loopback each time, if wanted.
pub struct OpensslClient<'a> {
    folder: &'a Path,
    connect: String,
    options: String,
    request: &'static str,
    field: &'static str,
}

/// What it saw.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    /// What the field says that names the server.
    pub server: String,
    /// The version whose session was resumed, as it calls it: `TLSv1.2`.
    pub resumed: Option<String>,
}

impl<'a> OpensslClient<'a> {
    /// One that keeps its session in `folder`, asks at `address` with these options of s_client(1ssl), says `request` (as
    /// printf(1) takes it) and finds its server's name behind `field`. Nothing when it is not installed, which is said.
    #[must_use]
    pub fn new(
        folder: &'a Path,
        address: std::net::SocketAddr,
        options: &str,
        request: &'static str,
        field: &'static str,
    ) -> Option<Self> {
        let connect = address.to_string();
        installed("openssl").then(|| Self { folder, connect, options: options.to_owned(), request, field })
    }

    /// Asks from 127.0.0.`source` without a session, and keeps the one that it gets.
    ///
    /// # Panics
    /// When there is no answer that names a server.
    #[must_use]
    pub fn begin(&self, source: u8) -> Seen {
        self.ask(source, "")
    }

    /// Asks from 127.0.0.`source` with the session that it kept.
    ///
    /// # Panics
    /// When there is no answer that names a server.
    #[must_use]
    pub fn resume(&self, source: u8) -> Seen {
        self.ask(source, "-sess_in session.pem")
    }

    fn ask(&self, source: u8, session: &str) -> Seen {
        let Self { folder, connect, options, request, field } = self;
        let line = format!(
            "printf '{request}' | openssl s_client -ign_eof {options} -bind 127.0.0.{source}:0 -connect {connect} \
             -servername shop.example {session} -sess_out session.pem"
        );
        let finished = tool(folder, "sh", &["-c", &line]).expect("a shell");
        let mut lines = finished.stdout.lines();
        let server = lines.find_map(|line| line.strip_prefix(field)).map(str::to_owned);
        let reused = finished.stdout.lines().find_map(|line| line.trim().strip_prefix("Reused, "));
        let resumed = reused.map(|rest| rest.split(',').next().unwrap_or(rest).to_owned());
        Seen { server: server.unwrap_or_else(|| panic!("{}", finished.output())), resumed }
    }
}
