//! What a request takes from the heap once the switch is warm: nothing, and under TLS nothing but what
//! rustls takes.
//!
//! One program with one test, because the count is of the whole process: the switch, the server behind it
//! and the client, of which the last two are written so that they take nothing. When the count is not what
//! it should be, the test shows where in the code the memory was taken.

mod bare;
mod client;
mod counted;
mod origin;
mod site;

use std::fmt::Write;

use client::Client;
use counted::Count;
use origin::Origin;
use site::Site;

/// Counts, and knows the place of each allocation. Outside of a count it is the system's.
#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Buffers have found their sizes and connections their places after so many.
const WARM_UP_REQUESTS: usize = 200;
const REQUESTS: usize = 1000;

/// One kind of request.
struct Case {
    name: &'static str,
    /// A listener of the site; each stands there once more under TLS.
    listener: &'static str,
    request: Vec<u8>,
}

#[test]
fn a_request_takes_nothing_from_the_heap() {
    let origin = Origin::start();
    let site = Site::start(origin.port);
    let mut wrong = String::new();
    for case in cases() {
        let mut client = Client::plain(site.address(case.listener));
        let answer = client.learn(&case.request);
        let plain = count(&mut client, &case.request, answer);
        check(&mut wrong, case.name, &plain, None);

        let mut client = Client::tls(&site, site.address(&format!("{}-tls", case.listener)));
        let answer = client.learn(&case.request);
        let tls = count(&mut client, &case.request, answer);
        let bare = bare::Server::start(&site, case.request.len(), answer);
        let bare = count(&mut Client::tls(&site, bare.address), &case.request, answer);
        assert!(bare.blocks > 0, "rustls takes memory for each record; the count sees nothing");
        check(&mut wrong, &format!("{} under TLS", case.name), &tls, Some(&bare));
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn cases() -> [Case; 4] {
    let browser = "Host: shop.example\r\n\
        User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
        Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
        Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\n\
        Referer: https://shop.example/catalogue?page=3\r\n\
        Cookie: session=8f14e45fceea167a5a36dedd4bea2543; theme=dark; consent=yes\r\n\
        Upgrade-Insecure-Requests: 1\r\nCache-Control: max-age=0\r\n";
    let case = |name, listener, request: String| Case { name, listener, request: request.into_bytes() };
    [
        case("a bare request", "three", "GET /img/1k HTTP/1.1\r\nHost: shop.example\r\n\r\n".to_owned()),
        case("a browser's request", "three", format!("GET /img/1k HTTP/1.1\r\n{browser}\r\n")),
        case("a hundred rules", "hundred", format!("GET /app9/1k HTTP/1.1\r\n{browser}X-Tenant: t9\r\n\r\n")),
        case(
            "a small body",
            "three",
            format!("POST /api/order HTTP/1.1\r\n{browser}Content-Length: 11\r\n\r\nitem=1&no=2"),
        ),
    ]
}

fn count(client: &mut Client, request: &[u8], answer_bytes: usize) -> Count {
    (0..WARM_UP_REQUESTS).for_each(|_| client.exchange(request, answer_bytes));
    Count::of(|| (0..REQUESTS).for_each(|_| client.exchange(request, answer_bytes)))
}

/// No more than `allowed`, which without TLS is nothing.
fn check(wrong: &mut String, name: &str, seen: &Count, allowed: Option<&Count>) {
    let (blocks, bytes) = allowed.map_or((0, 0), |allowed| (allowed.blocks, allowed.bytes));
    report(name, seen, allowed);
    assert!(seen.wheel_blocks < REQUESTS as u64 / 10, "{name}: the wheel of deadlines serves each request");
    if seen.blocks > blocks || seen.bytes > bytes {
        let whose = if allowed.is_some() { " in bare rustls, client and server" } else { " allowed" };
        write!(
            wrong,
            "\n{name}: {} blocks of {} bytes in {REQUESTS} requests, {blocks} of {bytes}{whose}\n{}",
            seen.blocks, seen.bytes, seen.places
        )
        .expect("a string takes all");
    }
}

#[expect(clippy::print_stdout, reason = "the figures are worth reading when they are as they should be, too")]
fn report(name: &str, seen: &Count, allowed: Option<&Count>) {
    let Count { blocks, bytes, wheel_blocks, .. } = seen;
    println!("{name}: {blocks} blocks, {bytes} bytes in {REQUESTS} requests; the wheel's: {wheel_blocks}");
    if let Some(allowed) = allowed {
        println!("    bare rustls, client and server: {} blocks, {} bytes", allowed.blocks, allowed.bytes);
    }
}
