//! curl as a client that nobody here wrote.

use std::path::Path;

use pointsman_e2e::{Authority, Origin, Setup, Switch, ok, tool};

pointsman_e2e::for_threads!(plain, over_tls, uploads, keep_alive);

/// Runs curl silently; what it prints, or nothing where it is not installed.
fn curl(folder: &Path, words: &[&str]) -> Option<String> {
    let words = [&["--silent", "--show-error", "--max-time", "10"], words].concat();
    let finished = tool(folder, "curl", &words)?;
    assert_eq!(finished.code, 0, "{words:?}\n{}", finished.output());
    Some(finished.stdout)
}

fn url(switch: &Switch, path: &str) -> String {
    format!("http://{}{path}", switch.address("shop"))
}

fn plain(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let rules = "if (header[\"user-agent\"] startsWith \"curl/\" && path == \"/teapot\") { respond(418, \"short\"); }";
    let switch = Setup::new(threads).rules(rules).pool("standard", &[&origin]).start();
    let folder = switch.folder();
    let Some(answer) = curl(folder, &[&url(&switch, "/")]) else { return };
    assert_eq!(answer, "origin");
    assert_eq!(curl(folder, &["--http1.0", &url(&switch, "/")]).as_deref(), Some("origin"));
    let with_status = curl(folder, &["--write-out", " %{http_code}", &url(&switch, "/teapot")]);
    assert_eq!(with_status.as_deref(), Some("short 418"));
    let head = curl(folder, &["--head", &url(&switch, "/")]).expect("installed");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
}

fn over_tls(threads: usize) {
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("origin", ok));
    let setup = Setup::new(threads).tls(&authority.server(&["shop.example"]), "");
    let switch = setup.file("ca.pem", &authority.pem()).pool("standard", &[&origin]).start();
    let address = switch.address("shop");
    let resolve = format!("shop.example:{}:{}", address.port(), address.ip());
    let url = format!("https://shop.example:{}/", address.port());
    for version in ["1.2", "1.3"] {
        let words = ["--cacert", "ca.pem", "--resolve", &resolve, "--tls-max", version, &url];
        match curl(switch.folder(), &words) {
            Some(answer) => assert_eq!(answer, "origin"),
            None => return,
        }
    }
    let finished = tool(switch.folder(), "curl", &["--silent", "--resolve", &resolve, &url]);
    // 60: the peer's certificate cannot be verified.
    assert_eq!(finished.expect("installed").code, 60);
}

/// By length, by chunks, and asking first.
fn uploads(threads: usize) {
    let origin = Origin::answering("origin", |exchange| {
        if exchange.head.field("expect").is_some() {
            exchange.send("HTTP/1.1 100 Continue\r\n\r\n");
        }
        ok(exchange)
    });
    let body = "0123456789".repeat(200_000);
    let switch = Setup::new(threads).file("body", &body).pool("standard", &[&origin]).start();
    let url = url(&switch, "/");
    for more in [&[][..], &["--header", "Transfer-Encoding: chunked"], &["--header", "Expect: 100-continue"]]
    {
        let words = [&["--upload-file", "body"], more, &[url.as_str()]].concat();
        let Some(answer) = curl(switch.folder(), &words) else { return };
        assert_eq!(answer, "origin", "{more:?}");
        let request = origin.last();
        assert_eq!(request.head.word(0), "PUT");
        assert!(request.body.bytes == body.as_bytes(), "{more:?}: the body changed on its way");
    }
}

/// Several addresses at once go over one connection.
fn keep_alive(threads: usize) {
    let origin = Origin::answering("origin", ok);
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let (one, two) = (url(&switch, "/1"), url(&switch, "/2"));
    let words = ["--write-out", " %{num_connects};", one.as_str(), two.as_str()];
    let Some(answer) = curl(switch.folder(), &words) else { return };
    assert_eq!(answer, "origin 1;origin 0;");
}
