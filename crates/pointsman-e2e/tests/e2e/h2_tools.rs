//! curl and h2load as clients of HTTP/2 that nobody here wrote, before the switch and before nginx in its place.

use std::path::Path;
use std::process::Command;

use pointsman_e2e::{FRONT_NAME, Front, Origin, SPEAKS_HTTP2, Setup, echo, installed, ok, tool};

pointsman_e2e::for_threads!(curl, load);

/// Requests of h2load: some rounds of all of its streams.
const REQUESTS: &str = "3000";

/// Does something before nginx, to see that it can be done, and then before the switch.
fn each(threads: usize, server: &Origin, act: impl Fn(&Front)) {
    if installed("nginx") && threads == 1 {
        act(&Front::nginx(server.address()));
    }
    if SPEAKS_HTTP2 {
        act(&Front::switch(Setup::new(threads), server.address()));
    }
}

/// curl's words for both ways to speak HTTP/2, each with the start of its URLs.
fn ways(front: &Front) -> [(Vec<String>, String); 2] {
    let (tls, authority) = (front.tls(), front.authority_file());
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let resolve = format!("{FRONT_NAME}:{}:{}", tls.port(), tls.ip());
    let authority = authority.to_str().expect("a path of ours");
    [
        (words(&["--http2-prior-knowledge"]), format!("http://{}", front.http2())),
        (
            words(&["--http2", "--cacert", authority, "--resolve", &resolve]),
            format!("https://{FRONT_NAME}:{}", tls.port()),
        ),
    ]
}

/// Runs curl silently; what it prints, or nothing where it is not installed.
fn curl_says(way: &[String], words: &[&str], urls: &[String]) -> Option<String> {
    let all = ["--silent", "--show-error", "--max-time", "20"].into_iter();
    let all: Vec<_> = all
        .chain(way.iter().map(String::as_str))
        .chain(words.iter().copied())
        .chain(urls.iter().map(String::as_str))
        .collect();
    let finished = tool(Path::new("/"), "curl", &all)?;
    assert_eq!(finished.code, 0, "{all:?}\n{}", finished.output());
    Some(finished.stdout)
}

fn curl(threads: usize) {
    let origin = Origin::answering("origin", |exchange| match exchange.target() {
        "/trailers" => {
            exchange.body();
            exchange.send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
                 3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n",
            );
            pointsman_e2e::Then::KeepAlive
        }
        "/seen" => echo(exchange),
        _ => ok(exchange),
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("upload");
    std::fs::write(&file, "0123456789".repeat(100_000)).expect("a writable folder");
    let upload = format!("@{}", file.display());
    each(threads, &origin, |front| {
        for (way, start) in ways(front) {
            let one = |words: &[&str], path: &str| curl_says(&way, words, &[format!("{start}{path}")]);
            let Some(plain) = one(&["--write-out", " %{http_version}"], "/a") else { return };
            assert_eq!(plain, "origin 2");
            let head = one(&["--head"], "/a").expect("installed");
            assert!(head.starts_with("HTTP/2 200"), "{head}");
            let seen = one(&["--data-binary", &upload], "/seen").expect("installed");
            assert!(seen.contains("\"body_bytes\":1000000") && seen.contains("\"POST\""), "{seen}");
            let chunked = ["--header", "Transfer-Encoding: chunked", "--upload-file", &upload[1..]];
            let seen = one(&chunked, "/seen").expect("installed");
            assert!(seen.contains("\"body_bytes\":1000000") && seen.contains("\"PUT\""), "{seen}");
            let body = one(&[], "/trailers").expect("installed");
            assert_eq!(body, "abc");
            // curl 7.88 loses its way when it takes a connection of prior knowledge for a second request.
            if start.starts_with("http:") {
                continue;
            }
            // A hundred on one connection, many of them at once.
            let urls: Vec<_> = (0..100).map(|number| format!("{start}/{number}")).collect();
            let words = ["--parallel", "--write-out", " %{http_code} %{num_connects};"];
            let all = curl_says(&way, &words, &urls).expect("installed");
            // What is printed of one stands between what is printed of others.
            let count = |word: &str| all.matches(word).count();
            assert_eq!((count("origin"), count(" 200 ")), (100, 100), "{all}");
            let opened = count(" 200 1;");
            assert!(opened <= 2, "{opened} connections");
        }
    });
}

/// Many streams at once, on many connections: none fails, none is refused.
fn load(threads: usize) {
    if !h2load_installed() {
        return;
    }
    let origin = Origin::answering("origin", ok);
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("upload"), "x".repeat(1024)).expect("a writable folder");
    each(threads, &origin, |front| {
        let (plain, tls) = (format!("http://{}/", front.http2()), format!("https://{}/", front.tls()));
        for url in [&plain, &tls] {
            for upload in [&[][..], &["--data", "upload"]] {
                let words = ["-n", REQUESTS, "-c", "8", "-m", "20"];
                let words = [&words[..], upload, &[url.as_str()]].concat();
                let mut command = Command::new("h2load");
                let output =
                    command.args(&words).current_dir(folder.path()).output().expect("it is installed");
                let said = String::from_utf8_lossy(&output.stdout);
                let good = format!("{REQUESTS} done, {REQUESTS} succeeded, 0 failed, 0 errored, 0 timeout");
                let statuses = format!("status codes: {REQUESTS} 2xx, 0 3xx, 0 4xx, 0 5xx");
                assert!(
                    said.contains(&good) && said.contains(&statuses),
                    "{words:?}\n{said}{}",
                    front.said()
                );
            }
        }
    });
}

/// It knows no `-V`.
fn h2load_installed() -> bool {
    let found = Command::new("h2load").arg("--version").output().is_ok();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "h2load is not installed, and CI skips nothing");
        pointsman_e2e::skipped("h2load is not installed");
    }
    found
}
