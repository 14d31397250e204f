//! A request head: parsed where it lies, kept as offsets.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::announced::Announced;
use crate::connection::{self, ConnectionOptions};
use crate::header::{self, HeaderLine, is_token};
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
        if matches!(message.first(), Some(b'\r' | b'\n')) && message != b"\r" {
            let is_one_more = message.starts_with(b"\r\n");
            return Err(if is_one_more { Refusal::EmptyLines } else { Refusal::BareLineFeed });
        }
        let mut slots = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let slots = &mut slots[..limits.headers_max.min(HEADERS_MAX)];
        let mut request = httparse::Request::new(&mut []);
        let parsed =
            httparse::ParserConfig::default().parse_request_with_uninit_headers(&mut request, message, slots);
        let head_bytes = match parsed {
            Ok(httparse::Status::Complete(bytes)) => start + bytes,
            Ok(httparse::Status::Partial) => {
                first_line_fits(message, limits)?;
                let is_full = buffer.len() >= limits.head_bytes_max;
                return if is_full { Err(Refusal::HeadTooLarge) } else { Ok(false) };
            }
            Err(error) => {
                first_line_fits(message, limits)?;
                let is_full = buffer.len() >= limits.head_bytes_max;
                return match refusal_of(error, message) {
                    None if is_full => Err(Refusal::HeadTooLarge),
                    None => Ok(false),
                    Some(refusal) => Err(refusal),
                };
            }
        };
        let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version)
        else {
            return Err(Refusal::Syntax);
        };
        if method.len() > METHOD_BYTES_MAX {
            return Err(Refusal::MethodTooLong);
        }
        if target.len() > limits.target_bytes_max {
            return Err(Refusal::TargetTooLong);
        }
        self.start = start as u32;
        self.head_bytes = head_bytes;
        self.version = if version == 0 { Version::Http10 } else { Version::Http11 };
        self.first_line(buffer, method.as_bytes(), target.as_bytes())?;
        let end = header::remember(&mut self.lines, request.headers, buffer, self.first_line)?;
        if buffer.get(end..head_bytes) != Some(b"\r\n") {
            return Err(Refusal::BareLineFeed);
        }
        self.fields(buffer)?;
        Ok(true)
    }

    /// Holds the request line to its exact form: one space, one space, CRLF.
    fn first_line(&mut self, buffer: &[u8], method: &[u8], target: &[u8]) -> Result<(), Refusal> {
        let start = self.start as usize;
        let target_start = start + method.len() + 1;
        let target_end = target_start + target.len();
        let version: &[u8] =
            if self.version == Version::Http10 { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" };
        self.first_line = target_end + version.len();
        if buffer.get(target_start..target_end) != Some(target)
            || buffer.get(target_end..self.first_line) != Some(version)
        {
            return Err(Refusal::BareLineFeed);
        }
        self.method = Method::parse(method);
        if self.method == Method::Connect {
            return Err(Refusal::Connect);
        }
        if method.iter().any(u8::is_ascii_lowercase) {
            return Err(Refusal::Method);
        }
        self.method_bytes = u16::try_from(method.len()).map_err(|_| Refusal::Syntax)?;
        let parts = target::split(self.method, target)?;
        self.target = target_start..target_end;
        self.form = parts.form;
        self.origin = shift(parts.origin, target_start);
        self.authority = shift(parts.authority, target_start);
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
                        return Err(Refusal::Host);
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
            None if self.version == Version::Http11 => Err(Refusal::Host),
            None => Ok(()),
            Some(host) => {
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
            Version::Http11 => !self.options.close,
            Version::Http10 => self.options.keep_alive && !self.options.close,
        }
    }

    /// Whether the client waits for 100 before it sends the body.
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
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

/// Nearly twice the longest method that is registered, `UPDATEREDIRECTREF`.
const METHOD_BYTES_MAX: usize = 32;

/// Whether the first line of a head that is not finished, or will never be, has kept within its limits: it
/// is refused where it leaves them, whatever comes behind.
fn first_line_fits(message: &[u8], limits: &HeadLimits) -> Result<(), Refusal> {
    const SPACES_VERSION_AND_RETURN: usize = " ".len() + " HTTP/1.1\r".len();
    let line_bytes_max = METHOD_BYTES_MAX + limits.target_bytes_max + SPACES_VERSION_AND_RETURN;
    if message.get(..=METHOD_BYTES_MAX).is_some_and(is_token) {
        return Err(Refusal::MethodTooLong);
    }
    match message.get(..=line_bytes_max) {
        Some(line) if memchr::memchr(b'\n', line).is_none() && is_unfinished(line) => {
            Err(Refusal::TargetTooLong)
        }
        _ => Ok(()),
    }
}

/// Whether nothing is wrong with the start of a request line.
fn is_unfinished(line: &[u8]) -> bool {
    httparse::Request::new(&mut []).parse(line) == Ok(httparse::Status::Partial)
}

/// Why the parser does not go on; `None` where it takes more bytes to say so.
fn refusal_of(error: httparse::Error, message: &[u8]) -> Option<Refusal> {
    match error {
        httparse::Error::TooManyHeaders => Some(Refusal::TooManyHeaders),
        httparse::Error::Version => match other_version(message) {
            Some(true) => Some(Refusal::Version),
            Some(false) => Some(Refusal::Syntax),
            None => None,
        },
        _ => Some(Refusal::Syntax),
    }
}

/// Whether the request line ends in a version, only not one of ours: one digit, a dot, one digit (RFC 9112
/// section 2.3). `None` where it goes like one as far as it has come.
fn other_version(message: &[u8]) -> Option<bool> {
    let version = message.splitn(3, |&byte| byte == b' ').nth(2).unwrap_or_default();
    let form: [fn(&u8) -> bool; 9] = [
        |&byte| byte == b'H',
        |&byte| byte == b'T',
        |&byte| byte == b'T',
        |&byte| byte == b'P',
        |&byte| byte == b'/',
        u8::is_ascii_digit,
        |&byte| byte == b'.',
        u8::is_ascii_digit,
        |&byte| matches!(byte, b'\r' | b'\n'),
    ];
    let fits = version.iter().zip(form).all(|(byte, fits)| fits(byte));
    if fits && version.len() < form.len() { None } else { Some(fits) }
}

fn expects_continue(value: &[u8]) -> Result<bool, Refusal> {
    match value.eq_ignore_ascii_case(b"100-continue") {
        true => Ok(true),
        false => Err(Refusal::Expectation),
    }
}
