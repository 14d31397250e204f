//! What a request takes from the heap once the switch is warm: nothing. Under TLS rustls takes what it takes
//! for the same records without the switch; whose doing a block is, its place in the code says.
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
use counted::{Count, Taken};
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
    counted::names_are_read();
    let origin = Origin::start();
    let site = Site::start(origin.port);
    let mut wrong = String::new();
    for case in cases() {
        let mut client = Client::plain(site.address(case.listener));
        let answer = client.learn(&case.request);
        let plain = count(&mut client, &case.request, answer);
        assert_eq!(plain.rustls.blocks, 0, "{}: who spoke TLS?\n{}", case.name, plain.rustls.places);
        check(&mut wrong, case.name, &plain.ours, None);

        let mut client = Client::tls(&site, site.address(&format!("{}-tls", case.listener)));
        let answer = client.learn(&case.request);
        let tls = count(&mut client, &case.request, answer);
        let bare = bare::Server::start(&site, case.request.len(), answer);
        let bare = count(&mut Client::tls(&site, bare.address), &case.request, answer);
        let name = format!("{} under TLS", case.name);
        // The bare server and its client are this program's own, and take nothing either.
        check(&mut wrong, &format!("{}, bare", case.name), &bare.ours, None);
        assert!(bare.rustls.blocks > 0, "rustls takes memory for each record; the count sees nothing");
        check(&mut wrong, &name, &tls.ours, None);
        check(&mut wrong, &format!("{name}, rustls"), &tls.rustls, Some(&bare.rustls));
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn cases() -> [Case; 8] {
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
        case(
            "a chunked body",
            "three",
            format!(
                "POST /api/order HTTP/1.1\r\n{browser}Transfer-Encoding: chunked\r\n\r\n\
                 6\r\nitem=1\r\n5\r\n&no=2\r\n0\r\n\r\n"
            ),
        ),
        case(
            "a body beside bodies that decide",
            "orders",
            format!("POST /api/order HTTP/1.1\r\n{browser}Content-Length: 11\r\n\r\nitem=1&no=2"),
        ),
        case("none beside bodies that decide", "orders", format!("GET /img/1k HTTP/1.1\r\n{browser}\r\n")),
        case("a chunked answer", "three", format!("GET /img/chunked HTTP/1.1\r\n{browser}\r\n")),
    ]
}

fn count(client: &mut Client, request: &[u8], answer_bytes: usize) -> Count {
    (0..WARM_UP_REQUESTS).for_each(|_| client.exchange(request, answer_bytes));
    Count::of(|| (0..REQUESTS).for_each(|_| client.exchange(request, answer_bytes)))
}

/// No more than `allowed`, which is nothing unless it is rustls'.
fn check(wrong: &mut String, name: &str, seen: &Taken, allowed: Option<&Taken>) {
    let (blocks, bytes) = allowed.map_or((0, 0), |allowed| (allowed.blocks, allowed.bytes));
    report(name, seen, allowed);
    if seen.blocks > blocks || seen.bytes > bytes {
        let whose = if allowed.is_some() { " without the switch" } else { " allowed" };
        write!(
            wrong,
            "\n{name}: {} blocks of {} bytes in {REQUESTS} requests, {blocks} of {bytes}{whose}\n{}",
            seen.blocks, seen.bytes, seen.places
        )
        .expect("a string takes all");
    }
}

#[expect(clippy::print_stdout, reason = "the figures are worth reading when they are as they should be, too")]
fn report(name: &str, seen: &Taken, allowed: Option<&Taken>) {
    println!("{name}: {} blocks, {} bytes in {REQUESTS} requests", seen.blocks, seen.bytes);
    if let Some(allowed) = allowed {
        println!("    without the switch: {} blocks, {} bytes", allowed.blocks, allowed.bytes);
    }
}
