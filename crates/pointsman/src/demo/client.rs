//! The demo's own client: one request after the other on a connection that it keeps.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use pointsman_http::{AnswerTo, BodyReader, HeadLimits, ResponseHead};
use pointsman_tls::{Client as TlsClient, ClientStream};

use super::event::PATIENCE;

/// A connection to the switch.
pub(super) enum Client {
    Plain(TcpStream),
    Tls(Box<ClientStream>),
}

/// An answer of the switch or of a server behind it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// `name=value` of each cookie that is to be set.
    pub(super) cookies: Vec<String>,
    pub(super) body: String,
}

impl Client {
    pub(super) fn plain(address: SocketAddr) -> io::Result<Client> {
        tcp(address).map(Client::Plain)
    }

    pub(super) fn tls(address: SocketAddr, client: &TlsClient, name: &str) -> io::Result<Client> {
        client.connect(tcp(address)?, name).map(|stream| Client::Tls(Box::new(stream)))
    }

    /// Where it comes from, as the switch sees it.
    pub(super) fn local_address(&self) -> io::Result<SocketAddr> {
        match self {
            Client::Plain(stream) => stream.local_addr(),
            Client::Tls(stream) => stream.local_address(),
        }
    }

    /// What was agreed on: `TLS 1.3, X25519MLKEM768`.
    pub(super) fn agreed(&self) -> String {
        match self {
            Client::Plain(_) => "plain".to_owned(),
            Client::Tls(stream) => match stream.key_exchange() {
                Some(group) => format!("TLS {}, {group}", stream.version()),
                None => format!("TLS {}", stream.version()),
            },
        }
    }

    /// Sends a whole request and reads its whole answer.
    pub(super) fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.write_all(request)?;
        self.flush()?;
        read_answer(self)
    }
}

fn tcp(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn read_answer(stream: &mut impl Read) -> io::Result<Answer> {
    let mut head = ResponseHead::default();
    let mut received = Vec::new();
    let malformed = |fault: &str| io::Error::new(io::ErrorKind::InvalidData, fault.to_owned());
    while !head
        .parse(&received, AnswerTo::Other, &HeadLimits::default())
        .map_err(|refusal| malformed(refusal.sentence()))?
    {
        read_more(stream, &mut received)?;
    }
    let mut body = BodyReader::new(head.framing());
    let mut fed = head.head_bytes();
    while !body.is_done() {
        if fed == received.len() {
            read_more(stream, &mut received)?;
        }
        fed += body.feed(&received[fed..]).map_err(|fault| malformed(fault.sentence()))?.used;
    }
    let lines = head.lines().iter();
    let set_cookie = lines.filter(|line| line.name(&received).eq_ignore_ascii_case(b"set-cookie"));
    let cookies = set_cookie.map(|line| {
        let value = String::from_utf8_lossy(line.value(&received)).into_owned();
        value.split(';').next().unwrap_or_default().to_owned()
    });
    Ok(Answer {
        status: head.status(),
        cookies: cookies.collect(),
        body: String::from_utf8_lossy(&received[head.head_bytes()..fed]).into_owned(),
    })
}

fn read_more(stream: &mut impl Read, received: &mut Vec<u8>) -> io::Result<()> {
    let mut piece = [0; 16 * 1024];
    match stream.read(&mut piece)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        bytes => {
            received.extend_from_slice(&piece[..bytes]);
            Ok(())
        }
    }
}

impl Read for Client {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Client::Plain(stream) => stream.read(buffer),
            Client::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Client::Plain(stream) => stream.write(bytes),
            Client::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Client::Plain(stream) => stream.flush(),
            Client::Tls(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_to_their_end_and_no_further() {
        let text = "HTTP/1.1 200 OK\r\nSet-Cookie: pm_route=abc; HttpOnly\r\nContent-Length: 2\r\n\r\nok\
                    HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
        let answer = read_answer(&mut text.as_bytes()).expect("an answer");
        assert_eq!(answer, Answer { status: 200, cookies: vec!["pm_route=abc".into()], body: "ok".into() });
        assert!(read_answer(&mut &text.as_bytes()[..40]).is_err(), "it is cut off");
        assert!(read_answer(&mut &b"what?\r\n\r\n"[..]).is_err());
    }
}
