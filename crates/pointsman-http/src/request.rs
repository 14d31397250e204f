//! A request head: parsed where it lies, kept as offsets.

use std::ops::Range;

use crate::announced::Announced;
use crate::connection::{self, ConnectionOptions};
use crate::first_line::{self, RequestLine};
use crate::header::HeaderLine;
use crate::lines;
use crate::target::{self, TargetForm};
use crate::trailer;
use crate::{Framing, HEADERS_MAX, HeadLimits, HeaderKind, Method, Refusal};

/// The HTTP version of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
    /// HTTP/2, its message written as HTTP/1.1 writes it.
    Http2,
}

/// A request head. One value is used again and again: parsing allocates nothing once warm.
///
/// All offsets are into the buffer that was parsed; every method that reads takes that buffer.
#[derive(Debug, Default)]
pub struct RequestHead {
    pub(crate) method: Method,
    pub(crate) start: u32,
    pub(crate) method_bytes: u16,
    pub(crate) target: Range<usize>,
    pub(crate) form: TargetForm,
    pub(crate) origin: Range<usize>,
    pub(crate) authority: Range<usize>,
    pub(crate) version: Version,
    pub(crate) lines: Vec<HeaderLine>,
    pub(crate) first_line: usize,
    pub(crate) head_bytes: usize,
    pub(crate) framing: Framing,
    pub(crate) options: ConnectionOptions,
    pub(crate) expects_continue: bool,
}

impl RequestHead {
    /// Parses the head at the start of `buffer`. `Ok(false)` asks for more bytes.
    ///
    /// A few empty lines before the request line are skipped (RFC 9112 section 2.2). What is said of a
    /// head does not depend on how its bytes arrive: nothing behind a limit is looked at.
    pub fn parse(&mut self, buffer: &[u8], limits: &HeadLimits) -> Result<bool, Refusal> {
        let window = &buffer[..buffer.len().min(limits.head_bytes_max)];
        let start = empty_lines(window);
        let message = &window[start..];
        let is_full = buffer.len() >= limits.head_bytes_max;
        let more = || if is_full { Err(Refusal::HeadTooLarge) } else { Ok(false) };
        match message {
            b"\r" => return more(),
            [b'\r', b'\n', ..] => return Err(Refusal::EmptyLines),
            [b'\r' | b'\n', ..] => return Err(Refusal::BareLineFeed),
            _ => {}
        }
        let Some(line) = first_line::request(window, start, limits)? else { return more() };
        self.start = start as u32;
        self.version = line.version;
        self.first_line(buffer, &line)?;
        let limit = (lines::Head::Request, limits.headers_max.min(HEADERS_MAX));
        let Some(end) = lines::read(&mut self.lines, window, line.end, limit)? else {
            return more();
        };
        self.head_bytes = end;
        self.fields(buffer)?;
        Ok(true)
    }

    /// Cuts the request line's target into its parts.
    fn first_line(&mut self, buffer: &[u8], line: &RequestLine) -> Result<(), Refusal> {
        let method = &buffer[self.start as usize..line.method_end];
        self.method = Method::parse(method);
        if self.method == Method::Connect {
            return Err(Refusal::Connect);
        }
        if method.iter().any(u8::is_ascii_lowercase) {
            return Err(Refusal::Method);
        }
        self.method_bytes = method.len() as u16;
        self.first_line = line.end;
        let parts = target::split(self.method, &buffer[line.target.clone()])?;
        self.form = parts.form;
        self.origin = shift(parts.origin, line.target.start);
        self.authority = shift(parts.authority, line.target.start);
        self.target = line.target.clone();
        Ok(())
    }

    /// Reads the fields that decide where the message ends and who is meant.
    fn fields(&mut self, buffer: &[u8]) -> Result<(), Refusal> {
        self.options = ConnectionOptions::default();
        self.expects_continue = false;
        let mut announced = Announced::default();
        let mut host: Option<Range<usize>> = None;
        let (mut connection, mut max_forwards) = (false, false);
        let counts_hops = self.counts_hops();
        for line in &mut self.lines {
            match line.kind {
                HeaderKind::Plain => continue,
                HeaderKind::Host => {
                    let start = line.value_start as usize;
                    if host.replace(start..start + line.value_bytes as usize).is_some() {
                        return Err(Refusal::Hosts);
                    }
                }
                HeaderKind::ContentLength => announced.length(line.value(buffer))?,
                HeaderKind::TransferEncoding => announced.coding(line.value(buffer), self.version)?,
                HeaderKind::Lookalike => return Err(Refusal::Lookalike),
                HeaderKind::Connection => connection = true,
                HeaderKind::MaxForwards if counts_hops => {
                    let value = line.value(buffer);
                    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
                    if std::mem::replace(&mut max_forwards, true) || !is_number {
                        return Err(Refusal::MaxForwards);
                    }
                }
                HeaderKind::Trailer if !trailer::may_announce(line.value(buffer)) => {
                    return Err(Refusal::Trailer);
                }
                HeaderKind::Expect if self.expects_continue => return Err(Refusal::Expectation),
                HeaderKind::Expect => self.expects_continue = expects_continue(line.value(buffer))?,
                _ => {}
            }
            line.dropped = line.kind.ends_at_hop();
        }
        self.framing = announced.framing()?.unwrap_or(Framing::None);
        if self.method == Method::Trace && self.framing != Framing::None {
            return Err(Refusal::TraceContent);
        }
        self.expects_continue &= self.version == Version::Http11 && self.framing != Framing::None;
        if !self.expects_continue {
            // Nobody waits for 100 (RFC 9110 section 10.1.1).
            let lines = self.lines.iter_mut().filter(|line| line.kind == HeaderKind::Expect);
            lines.for_each(|line| line.dropped = true);
        }
        if connection {
            self.options = connection::apply(&mut self.lines, buffer)?;
        }
        self.settle_authority(buffer, host)
    }

    /// Whether Max-Forwards is more than a field that goes by.
    fn counts_hops(&self) -> bool {
        matches!(self.method, Method::Trace | Method::Options)
    }

    fn settle_authority(&mut self, buffer: &[u8], host: Option<Range<usize>>) -> Result<(), Refusal> {
        match host {
            None if self.version == Version::Http11 => Err(Refusal::NoHost),
            None => Ok(()),
            Some(host) => {
                let host = self.without_empty_port(buffer, host);
                if !target::is_authority(&buffer[host.clone()]) {
                    return Err(Refusal::Host);
                }
                if self.form == TargetForm::Absolute
                    && !buffer[self.authority.clone()].eq_ignore_ascii_case(&buffer[host.clone()])
                {
                    return Err(Refusal::HostConflict);
                }
                self.authority = host;
                Ok(())
            }
        }
    }

    /// Takes an empty port off the Host line (RFC 3986 section 6.2.3), for the rules and the server.
    fn without_empty_port(&mut self, buffer: &[u8], host: Range<usize>) -> Range<usize> {
        let end = host.start + target::without_empty_port(&buffer[host.clone()]).len();
        if end < host.end {
            for line in self.lines.iter_mut().filter(|line| line.kind == HeaderKind::Host) {
                line.value_bytes = (end - host.start) as u32;
                line.respelled = true;
            }
        }
        host.start..end
    }

    /// The method, for what may be done with it.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The method as it was written.
    pub fn method_name<'b>(&self, buffer: &'b [u8]) -> &'b [u8] {
        &buffer[self.start as usize..][..usize::from(self.method_bytes)]
    }

    /// The request target as it was written.
    pub fn target<'b>(&self, buffer: &'b [u8]) -> &'b [u8] {
        &buffer[self.target.clone()]
    }

    /// The form of the target.
    pub fn form(&self) -> TargetForm {
        self.form
    }

    /// Path and query of the target. An absolute target may leave the path out, which means `/`, or with OPTIONS
    /// and without a query `*` (RFC 9112 section 3.2.4).
    pub fn path_and_query<'b>(&self, buffer: &'b [u8]) -> &'b [u8] {
        match self.method == Method::Options && self.origin.is_empty() {
            true => b"*",
            false => &buffer[self.origin.clone()],
        }
    }

    /// Refuses an absolute target that names another scheme than `scheme`, `http` or `https`.
    pub fn check_scheme(&self, buffer: &[u8], scheme: &str) -> Result<(), Refusal> {
        let names_https = matches!(self.target(buffer).get("http".len()), Some(b's' | b'S'));
        match self.form == TargetForm::Absolute && names_https != (scheme == "https") {
            true => Err(Refusal::Scheme),
            false => Ok(()),
        }
    }

    /// Takes the head for that of an HTTP/2 request, which was written as HTTP/1.1 writes it.
    ///
    /// # Errors
    /// `:path` was neither a path nor `*` (RFC 9113 section 8.3.1).
    pub fn is_of_http2(&mut self) -> Result<(), Refusal> {
        self.version = Version::Http2;
        match self.form {
            TargetForm::Absolute => Err(Refusal::Target),
            _ => Ok(()),
        }
    }

    /// How many hops may still follow, of a TRACE or OPTIONS that says so (RFC 9110 section 7.6.2). A number
    /// that is beyond counting is cut to the largest one.
    pub fn max_forwards(&self, buffer: &[u8]) -> Option<u32> {
        let mut lines = self.lines.iter().filter(|_| self.counts_hops());
        let line = lines.find(|line| line.kind == HeaderKind::MaxForwards)?;
        let digits = line.value(buffer).iter().map(|digit| u32::from(digit.wrapping_sub(b'0')));
        Some(digits.fold(0, |sum: u32, digit| sum.saturating_mul(10).saturating_add(digit)))
    }

    /// Host and port as they were written; empty only in HTTP/1.0.
    pub fn authority<'b>(&self, buffer: &'b [u8]) -> &'b [u8] {
        &buffer[self.authority.clone()]
    }

    /// The HTTP version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// How the body is delimited.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Bytes of the head, empty lines before it included: the body starts there.
    pub fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    /// Whether the client wants its connection kept (RFC 9112 section 9.3).
    pub fn keeps_alive(&self) -> bool {
        match self.version {
            Version::Http11 | Version::Http2 => !self.options.close,
            Version::Http10 => self.options.keep_alive && !self.options.close,
        }
    }

    /// Whether the client waits for 100 before it sends the body.
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// Whether the request is a gRPC call, as its media type says. gRPC-Web is another protocol.
    pub fn is_grpc(&self, buffer: &[u8]) -> bool {
        const MEDIA_TYPE: &[u8] = b"application/grpc";
        let of_type = |line: &&HeaderLine| line.kind == HeaderKind::ContentType && !line.hidden;
        let is_grpc = |line: &HeaderLine| {
            line.value(buffer).split_at_checked(MEDIA_TYPE.len()).is_some_and(|(start, rest)| {
                start.eq_ignore_ascii_case(MEDIA_TYPE) && matches!(rest, [] | [b'+' | b';' | b' ', ..])
            })
        };
        self.lines.iter().find(of_type).is_some_and(is_grpc)
    }

    /// All header lines in order.
    pub fn lines(&self) -> &[HeaderLine] {
        &self.lines
    }

    /// The header lines, to take some out of what is forwarded.
    pub fn lines_mut(&mut self) -> &mut [HeaderLine] {
        &mut self.lines
    }
}

fn shift(range: Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

/// More empty lines before a request line than anybody sends.
const EMPTY_LINES_MAX: usize = 4;

/// Bytes of the empty lines at the start that may be skipped.
pub(crate) fn empty_lines(buffer: &[u8]) -> usize {
    let mut bytes = 0;
    while bytes < EMPTY_LINES_MAX * b"\r\n".len() && buffer[bytes..].starts_with(b"\r\n") {
        bytes += b"\r\n".len();
    }
    bytes
}

fn expects_continue(value: &[u8]) -> Result<bool, Refusal> {
    match value.eq_ignore_ascii_case(b"100-continue") {
        true => Ok(true),
        false => Err(Refusal::Expectation),
    }
}
