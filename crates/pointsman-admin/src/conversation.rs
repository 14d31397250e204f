//! One request and its answer; then the connection closes.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use pointsman_http::{
    AnswerTo, BodyReader, Framing, HeadLimits, Method, REQUEST_START_BYTES_MAX, RequestHead, Unfinished,
    Version, begins_request,
};
use pointsman_net::{BufferPool, Clock, PooledBuffer, Tcp, Timers, write_all};
use pointsman_telemetry::DateLine;
use pointsman_tls::{Acceptor, ClientChain};
use tokio::io::AsyncWriteExt;

use crate::access::{Asked, Credentials, access_page, admit, check_page, identity, may_read};
use crate::audit::Audit;
use crate::page::Page;
use crate::places::Place;
use crate::route::Call;
use crate::stream::Stream;
use crate::{Pages, Request, console, openapi};

/// How long a client may take for its request, and for its answer.
const CLIENT_MS_MAX: u32 = 10_000;
/// How long the switch may take in between.
const WORK_MS_MAX: u32 = 120_000;
/// How long what a refused client still sends is read, so that it gets to read its answer.
const LINGER_MS_MAX: u32 = 1000;
/// What a web page may see of an answer besides its body.
const EXPOSED: &str = "Access-Control-Expose-Headers: ETag";
/// What may frame a short body in chunks.
const FRAMES_BYTES_MAX: u64 = 64 * 1024;

/// A request that was read, with what is known of who asks.
struct Heard {
    method: String,
    target: String,
    who: Option<String>,
    /// What is to be done, or the answer that it is not.
    asked: Result<Request, Page>,
    body_bytes_max: u64,
    /// A web page that may read the answer.
    origin: Option<String>,
    to: AnswerTo,
    /// Whether its body was left unread.
    is_left: bool,
}

/// A connection that was accepted.
pub(crate) struct Incoming {
    pub(crate) tcp: Tcp,
    pub(crate) peer: SocketAddr,
    /// Does its handshake, where TLS is spoken.
    pub(crate) tls: Option<Acceptor>,
}

/// The audit line of a request, which is due: where the switch ends before there is an answer it says that.
struct Due<'a> {
    pages: &'a dyn Pages,
    who: Option<&'a str>,
    from: SocketAddr,
    method: &'a str,
    target: &'a str,
    is_kept: bool,
}

impl Due<'_> {
    fn keep(&mut self, status: u16, refusal: Option<&str>) {
        self.is_kept = true;
        let Due { pages, who, from, method, target, .. } = *self;
        pages.audit(&Audit { who, from, method, target, status, refusal });
    }
}

impl Drop for Due<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.keep(503, Some("the switch ended before it was done"));
        }
    }
}

/// Who is there.
struct Client {
    peer: SocketAddr,
    /// What was shown to it; plain HTTP when absent.
    tls: Option<Acceptor>,
    /// The holder of its certificate.
    holder: Option<String>,
    /// That certificate, with those that lead to it.
    chain: Option<ClientChain>,
}

pub(crate) async fn converse(
    incoming: Incoming,
    place: Place,
    timers: Timers,
    pages: Rc<dyn Pages>,
    buffers: BufferPool,
) {
    let mut deadline = timers.deadline();
    let peer = incoming.peer;
    let reading = async {
        if incoming.tls.is_some() && begins_plain_request(&incoming.tcp, &place).await? {
            let page = Page::problem(400, "a plain HTTP request was sent to a TLS port: use https");
            return Ok((Stream::Plain(incoming.tcp), Some(Heard { is_left: true, ..Heard::refused(page) })));
        }
        let greeted = greet(incoming, &place).await;
        let (mut stream, client) = greeted.inspect_err(|error| {
            pages.note(&|| format!("admin handshake failed from={peer} error={:?}", error.to_string()));
        })?;
        let heard = hear(&mut stream, &client, &place, &*pages, &buffers).await?;
        io::Result::Ok((stream, heard))
    };
    // Who is gone, was too slow or gave way has no answer.
    let Ok(Ok((mut stream, Some(heard)))) = deadline.within(CLIENT_MS_MAX, Box::pin(reading)).await else {
        return;
    };
    place.is_answered();
    let Heard { method, target, who, asked, origin, to, is_left, .. } = heard;
    let is_typed = asked.as_ref().is_ok_and(|request| request.call.is_typed());
    let is_audited = !matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS") && !is_typed;
    let mut due = is_audited.then(|| Due {
        pages: &*pages,
        who: who.as_deref(),
        from: peer,
        method: &method,
        target: &target,
        is_kept: false,
    });
    let mut page = match asked {
        Ok(Request { call: Call::OpenApi, .. }) => Page::json(&openapi::document()),
        Ok(Request { call: Call::Access, who, .. }) => {
            access_page(who.as_deref(), pages.settings().as_deref())
        }
        Ok(request) => {
            let work = pages.clone().answer(request);
            let late = |_| Page::problem(504, format!("it takes longer than {} s", WORK_MS_MAX / 1000));
            deadline.within(WORK_MS_MAX, work).await.unwrap_or_else(late)
        }
        Err(page) => page,
    };
    if let Some(due) = &mut due {
        due.keep(page.status(), page.detail());
    }
    if let Some(origin) = origin {
        let allowed = format!("Access-Control-Allow-Origin: {origin}");
        page = page.with_line(&allowed).with_line(EXPOSED).with_line("Vary: Origin");
    }
    let answer = page.write(to, &DateLine::at(Clock::start().unix_us()));
    let written = deadline.within(CLIENT_MS_MAX, stream.write_last(&answer)).await;
    if is_left && matches!(written, Ok(Ok(()))) {
        let mut rest = buffers.take_later();
        // However that ends, nothing more is done for it.
        let (Ok(_) | Err(_)) = deadline.within(LINGER_MS_MAX, linger(&mut stream, &place, &mut rest)).await;
    }
}

/// Whether a connection on which TLS is expected begins with a plain HTTP request.
async fn begins_plain_request(tcp: &Tcp, place: &Place) -> io::Result<bool> {
    let peek = tcp.peek::<REQUEST_START_BYTES_MAX, _>(begins_request);
    place.wait(async { Ok(peek.await.unwrap_or(false)) }).await
}

/// Does the handshake, where TLS is spoken.
async fn greet(incoming: Incoming, place: &Place) -> io::Result<(Stream, Client)> {
    let Incoming { tcp, peer, tls } = incoming;
    let stream = match &tls {
        None => Stream::Plain(tcp),
        Some(acceptor) => Stream::Tls(Box::new(place.shake(acceptor.accept(tcp)).await?)),
    };
    let (holder, chain) = (stream.holder(), stream.chain());
    Ok((stream, Client { peer, tls, holder, chain }))
}

/// Reads a request as far as it is allowed; nothing where the client says nothing.
async fn hear(
    stream: &mut Stream,
    client: &Client,
    place: &Place,
    pages: &dyn Pages,
    buffers: &BufferPool,
) -> io::Result<Option<Heard>> {
    let mut received = buffers.take_later();
    let mut head = RequestHead::default();
    let mut unfinished = Unfinished::default();
    loop {
        match head.parse_on(&received, &mut unfinished, &HeadLimits::default()) {
            Ok(true) => break,
            Ok(false) => {}
            Err(refusal) => {
                let page = Page::problem(refusal.status(), refusal.sentence());
                return Ok(Some(Heard::refused(page)));
            }
        }
        if place.read(stream, &mut received).await? == 0 {
            return Ok(None);
        }
    }
    let mut heard = judge(&head, &received, client, pages);
    if let Ok(request) = &mut heard.asked {
        if head.expects_continue() {
            write_all(stream, b"HTTP/1.1 100 Continue\r\n\r\n", &mut 0).await?;
            stream.flush().await?;
        }
        match read_body(stream, place, &head, &mut received, heard.body_bytes_max).await? {
            Ok(body) => request.body = body,
            Err(page) => heard.asked = Err(page),
        }
    }
    heard.is_left = heard.asked.is_err() && head.framing() != Framing::None;
    Ok(Some(heard))
}

/// What is asked and by whom; nothing of the body is looked at before that.
fn judge(head: &RequestHead, received: &[u8], client: &Client, pages: &dyn Pages) -> Heard {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let field = |name: &str| {
        let mut lines =
            head.lines().iter().filter(|line| line.name(received).eq_ignore_ascii_case(name.as_bytes()));
        let value = lines.next().map(|line| text(line.value(received)));
        if lines.next().is_some() {
            Err(Page::problem(400, format!("`{name}` is there twice")))
        } else {
            Ok(value)
        }
    };
    let method = text(head.method_name(received));
    let target = text(head.path_and_query(received));
    let admin = pages.settings();
    let to = if head.method() == Method::Head { AnswerTo::Head } else { AnswerTo::Other };
    let mut heard = Heard { method, target, to, ..Heard::refused(Page::problem(400, "")) };
    let fields = ["origin", "sec-fetch-site", "authorization", "if-match"].map(field);
    let (origin, site, authorization, if_match) = match fields {
        [Ok(origin), Ok(site), Ok(authorization), Ok(if_match)] => (origin, site, authorization, if_match),
        twice => {
            let refusal = twice.into_iter().find_map(Result::err);
            return Heard { asked: refusal.map_or(heard.asked, Err), ..heard };
        }
    };
    let authority = text(head.authority(received));
    let (path, query) = heard.target.split_once('?').unwrap_or((&heard.target, ""));
    let asked = Asked {
        method: &heard.method,
        path,
        host: Some(&*authority).filter(|_| head.version() != Version::Http10 || !authority.is_empty()),
        origin: origin.as_deref(),
        site: site.as_deref(),
        authorization: authorization.as_deref(),
        certificate: client.holder.as_deref(),
        shown: client.tls.as_ref().map(Acceptor::certificates),
        is_local: client.peer.ip().is_loopback(),
    };
    let who = identity(&asked, admin.as_deref()).map(str::to_owned);
    if console::has(path) {
        let accepted = field("accept-encoding").ok().flatten();
        let shown = |()| {
            let page = console::file(asked.method, path, accepted.as_deref());
            if asked.shown.is_some() { page.with_line(console::OVER_TLS) } else { page }
        };
        heard.asked = Err(check_page(&asked, admin.as_deref()).map_or_else(|refusal| refusal, shown));
        return heard;
    }
    let route = admit(&asked, admin.as_deref());
    heard.body_bytes_max = route.as_ref().map_or(0, |route| route.body_bytes_max());
    heard.asked = route.and_then(|route| {
        let query = route.query(query).map_err(|fault| Page::problem(400, fault))?;
        let names = route.names_in(path).unwrap_or_default();
        let credentials = Credentials::of(&asked, client.chain.as_ref(), route.needs);
        let (call, body, who) = (route.call, Vec::new(), who.clone());
        Ok(Request { call, names, query, if_match, body, who, credentials })
    });
    heard.who = who;
    heard.origin = origin.filter(|origin| may_read(origin, admin.as_deref()));
    heard
}

/// Reads the body to its end.
async fn read_body(
    stream: &mut Stream,
    place: &Place,
    head: &RequestHead,
    received: &mut PooledBuffer,
    bytes_max: u64,
) -> io::Result<Result<Vec<u8>, Page>> {
    let mut reader = BodyReader::new(head.framing());
    let (mut body, mut trailers) = (Vec::new(), Vec::new());
    let (mut at, mut read_bytes) = (head.head_bytes(), 0);
    let too_large = || Ok(Err(Page::problem(413, format!("a body has up to {bytes_max} bytes"))));
    if matches!(head.framing(), Framing::Length(bytes) if bytes > bytes_max) {
        return too_large();
    }
    while !reader.is_done() {
        if at == received.len() {
            received.clear();
            at = 0;
            if place.read(stream, received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        match reader.feed_unchunked(&received[at..], &mut body, &mut trailers) {
            Ok(fed) => {
                at += fed.used;
                // With what frames it: chunks of a byte count, too.
                read_bytes += fed.used as u64;
            }
            Err(fault) => return Ok(Err(Page::problem(400, fault.sentence()))),
        }
        if body.len() as u64 > bytes_max || read_bytes > 2 * bytes_max + FRAMES_BYTES_MAX {
            return too_large();
        }
    }
    Ok(Ok(body))
}

/// Reads on until the client closes: closed before that, the connection would be reset, and the answer with it.
async fn linger(stream: &mut Stream, place: &Place, rest: &mut PooledBuffer) -> io::Result<()> {
    stream.shut_down().await?;
    while place.read(stream, rest).await? > 0 {
        rest.clear();
    }
    Ok(())
}

impl Heard {
    /// What could not even be read.
    fn refused(page: Page) -> Heard {
        let (method, target) = ("GET".to_owned(), String::new());
        Heard {
            method,
            target,
            who: None,
            asked: Err(page),
            body_bytes_max: 0,
            origin: None,
            to: AnswerTo::Other,
            is_left: false,
        }
    }
}
