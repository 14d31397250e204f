//! Shows the running switch: metrics and health, on a listener of its own.
//!
//! It runs on the control thread: a scrape never stands between a request and its server. Nothing
//! can be changed here yet; reading is free on loopback, and nobody else is listened to.

mod page;
mod places;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use pointsman_http::{AnswerTo, HeadLimits, Method, RequestHead, Unfinished, Version};
use pointsman_net::{
    Acceptor, Account, BufferPool, Clock, Ipv6, Tcp, Timers, bind, is_free, spawn, write_all,
};
use pointsman_telemetry::DateLine;

use crate::places::{Place, Places};

pub use page::{Page, Pages};

/// How long a client may take for its request and the answer together.
const CLIENT_MS_MAX: u32 = 10_000;
/// Connections served at a time. For one more, that which has been silent longest is closed.
const CONNECTIONS_MAX: usize = 64;

/// Serves `pages` on `address` from now on. Returns the address with its port resolved.
///
/// # Errors
/// What the system says where the address cannot be listened on.
pub fn serve(address: SocketAddr, timers: &Timers, pages: Rc<dyn Pages>) -> io::Result<SocketAddr> {
    if address.port() != 0 {
        is_free(address, Ipv6::Dual)?;
    }
    let bound = bind(address, Ipv6::Dual, 1)?;
    let address = bound.address;
    for socket in bound.sockets {
        let acceptor = Acceptor::new(socket)?;
        spawn(accept_all(acceptor, timers.clone(), pages.clone()));
    }
    Ok(address)
}

async fn accept_all(acceptor: Acceptor, timers: Timers, pages: Rc<dyn Pages>) {
    let buffers = BufferPool::new(16 * 1024, 4, &Account::unlimited());
    let places = Places::new(CONNECTIONS_MAX);
    let mut pause = timers.deadline();
    loop {
        let Ok(tcp) = acceptor.accept().await else {
            let elapsed = pause.within(100, std::future::pending::<()>()).await;
            debug_assert!(elapsed.is_err());
            continue;
        };
        // A stranger is not even listened to: it could hold the places of those who may read.
        if !matches!(tcp.peer(), Ok(Some(peer)) if peer.ip().is_loopback()) {
            continue;
        }
        let place = places.take().await;
        let (mut deadline, pages, buffers) = (timers.deadline(), pages.clone(), buffers.clone());
        spawn(async move {
            let conversation = converse(tcp, &place, &*pages, &buffers);
            // Whoever asked has what it asked for, is gone, was too slow or gave way: the connection ends.
            let (Ok(_) | Err(_)) = deadline.within(CLIENT_MS_MAX, conversation).await;
        });
    }
}

/// One request and its answer; then the connection closes.
async fn converse(mut tcp: Tcp, place: &Place, pages: &dyn Pages, buffers: &BufferPool) -> io::Result<()> {
    let mut received = buffers.take_later();
    let mut head = RequestHead::default();
    let mut unfinished = Unfinished::default();
    let page = loop {
        match head.parse_on(&received, &mut unfinished, &HeadLimits::default()) {
            Ok(true) => break page_for(&head, &received, pages),
            Ok(false) => {}
            Err(refusal) => break Page::plain(refusal.status(), refusal.sentence()),
        }
        if place.read(&mut tcp, &mut received).await? == 0 {
            return Ok(());
        }
    };
    place.is_answered();
    let date = DateLine::at(Clock::start().unix_us());
    let to = if head.method() == Method::Head { AnswerTo::Head } else { AnswerTo::Other };
    write_all(&mut tcp, &page.write(to, &date), &mut 0).await
}

fn page_for(head: &RequestHead, received: &[u8], pages: &dyn Pages) -> Page {
    // A web page in a browser on this host could ask under a name of its own (DNS rebinding).
    if head.version() == Version::Http11 && !names_this_host(head.authority(received)) {
        return Page::plain(403, "Host must be `localhost` or an address");
    }
    let named = |name: &str| {
        let mut lines = head.lines().iter();
        lines.any(|line| line.name(received).eq_ignore_ascii_case(name.as_bytes()))
    };
    if named("origin") {
        return Page::plain(403, "requests from web pages are refused");
    }
    if !matches!(head.method(), Method::Get | Method::Head) {
        return Page::plain(405, "only GET and HEAD").with_line("Allow: GET, HEAD");
    }
    let path = head.path_and_query(received).split(|&byte| byte == b'?').next().unwrap_or_default();
    pages.page(path).unwrap_or_else(|| Page::plain(404, "no such page: try /metrics or /health"))
}

fn names_this_host(authority: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(authority) else { return false };
    let host = match text.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => text,
    };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Only(&'static str);

    impl Pages for Only {
        fn page(&self, path: &[u8]) -> Option<Page> {
            (path == self.0.as_bytes()).then(|| Page::metrics("up 1\n".to_owned()))
        }
    }

    fn check(request: &str, status: u16) {
        let mut head = RequestHead::default();
        let whole = head.parse(request.as_bytes(), &HeadLimits::default());
        assert_eq!(whole, Ok(true), "{request}");
        let page = page_for(&head, request.as_bytes(), &Only("/metrics"));
        assert_eq!(page.status(), status, "{request}");
    }

    #[test]
    fn pages_are_read_under_the_hosts_own_name() {
        check("GET /metrics HTTP/1.1\r\nHost: localhost:9090\r\n\r\n", 200);
        check("GET /metrics?x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 200);
        check("GET /metrics HTTP/1.1\r\nHost: [::1]:9090\r\n\r\n", 200);
        check("GET /metrics HTTP/1.0\r\n\r\n", 200);
        check("GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n", 404);
        check("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 405);
        check("GET /metrics HTTP/1.1\r\nHost: rebound.example\r\n\r\n", 403);
        check("GET /metrics HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a\r\n\r\n", 403);
    }
}
