//! What the documents show is true: the commands of their pages are run, the examples are started.

use std::os::unix::fs::symlink;
use std::path::Path;

use pointsman_e2e::{
    Authority, Client, Finished, H2Origin, Origin, Switch, TlsClient, pointsman, program, tool, until,
    workspace,
};
use tempfile::TempDir;

/// A block of a page between fences.
struct Block {
    line: usize,
    language: String,
    text: String,
    /// Whether it stands directly below the block before: then it shows what that one prints.
    follows: bool,
}

fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut open, mut follows): (Vec<Block>, bool, bool) = (Vec::new(), false, false);
    for (index, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(language), false) => {
                let (language, text) = (language.to_owned(), String::new());
                blocks.push(Block { line: index + 1, language, text, follows });
                open = true;
            }
            (Some(_), true) => (open, follows) = (false, true),
            (None, true) => {
                let block = blocks.last_mut().expect("one is open");
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) => follows &= line.is_empty(),
        }
    }
    blocks
}

fn read(path: &str) -> String {
    let path = workspace().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A copy of the files of a folder and of the folders in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a writable folder");
    for entry in std::fs::read_dir(from).expect("a readable folder").flatten() {
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &copied);
        } else {
            std::fs::copy(path, copied).expect("a writable folder");
        }
    }
}

/// Runs a block as somebody would who pastes it, with the binary under test on the path.
fn run(folder: &Path, block: &Block) -> Finished {
    let script = format!("PATH=\"$PWD/bin:$PATH\"\n{}", block.text);
    tool(folder, "sh", &["-e", "-c", &script]).expect("every machine has a shell")
}

#[test]
fn commands_of_the_reference() {
    assert!(commands("docs/reference/commands.md") >= 10);
}

#[test]
fn commands_of_the_guide_to_bodies() {
    assert!(commands("docs/guide/bodies.md") >= 5);
}

#[test]
fn commands_of_the_guide_to_trust() {
    assert!(commands("docs/guide/trust-your-rules.md") >= 8);
}

/// Every command of the page ends well and prints what stands below it. How many there are.
fn commands(page: &str) -> usize {
    let folder = tempfile::tempdir().expect("a temporary folder");
    copy(&workspace().join("examples"), &folder.path().join("examples"));
    std::fs::create_dir(folder.path().join("bin")).expect("a writable folder");
    symlink(program(), folder.path().join("bin/pointsman")).expect("a writable folder");
    let (mut ran, mut last) = (0, None);
    for block in blocks(&read(page)) {
        let line = block.line;
        if block.language == "sh" {
            let finished = run(folder.path(), &block);
            assert_eq!(finished.code, 0, "{page}:{line}: {}\n{}", block.text, finished.output());
            ran += block.text.lines().count();
            last = Some(finished);
        } else if block.follows {
            let printed = last.take().expect("a command above").stdout;
            assert_eq!(printed.trim_end(), block.text.trim_end(), "{page}:{line} is not what is printed");
        }
    }
    ran
}

/// What `check` says of the rules on the page of a finding stands below them, and the finding is among what it says of the
/// first; others show how it is mended, or what is no such finding.
#[test]
fn pages_of_findings() {
    let table = read("docs/reference/findings/README.md");
    let codes: Vec<_> = table.lines().filter_map(|line| line.strip_prefix("| [`")?.split_once('`')).collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rules = folder.path().join("example.rules");
    for (code, _) in &codes {
        let page = format!("docs/reference/findings/{}.md", code.replace(' ', "-"));
        let mut shown = None;
        let blocks = blocks(&read(&page));
        let mut blocks = blocks.iter().peekable();
        while let Some(block) = blocks.next() {
            assert_eq!(block.language, "rules", "{page}:{}", block.line);
            std::fs::write(&rules, &block.text).expect("a writable folder");
            let printed = pointsman(folder.path(), &["check", "example.rules"]).stdout;
            let expected = blocks.next_if(|next| next.follows && next.language == "text");
            let expected = expected.map_or("", |block| block.text.trim_end());
            assert_eq!(printed.trim_end(), expected, "{page}:{} is not what is printed", block.line);
            let found = pointsman(folder.path(), &["check", "--json", "example.rules"]).stdout;
            shown.get_or_insert(found.contains(&format!("\"code\": \"{code}\"")));
        }
        assert_eq!(shown, Some(true), "the first rules of {page} show {code}");
    }
    let listed = read("docs/reference/commands.md");
    let listed = listed.lines().filter(|line| line.contains("](findings/") && line.starts_with("| [`"));
    assert_eq!(listed.count(), codes.len(), "commands.md lists the same codes");
    let pages = std::fs::read_dir(workspace().join("docs/reference/findings")).expect("a readable folder");
    assert_eq!(pages.count(), codes.len() + 1, "each page is a code's");
}

/// The options of a command are those that its page lists.
#[test]
fn options_of_the_reference() {
    let page = read("docs/reference/commands.md");
    let commands = [
        "run", "check", "fmt", "explain", "ask", "test", "replay", "diff", "reload", "dry-run", "top", "demo",
    ];
    for command in commands {
        let help = pointsman(Path::new("."), &[command, "--help"]).stdout;
        let words = help.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
        for option in words.filter(|word| word.starts_with("--")) {
            assert!(page.contains(option), "`{command} {option}` is missing in commands.md");
        }
    }
}

/// What the help of the bench's commands lists they take, and none of it is said twice in different words.
#[test]
fn options_of_the_bench() {
    let (here, mut taken) = (Path::new("."), 0);
    for command in
        ["crypto", "handshake", "load", "bulk", "find", "compare", "workload", "report", "agent", "null"]
    {
        let help = pointsman(here, &["bench", command, "--help"]).stdout;
        let listed = help.lines().filter_map(|line| line.strip_prefix("    --"));
        let end = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '-');
        let listed: Vec<_> = listed.filter_map(|line| line.split(end).next()).collect();
        for (at, name) in listed.iter().enumerate() {
            assert!(!listed[..at].contains(name), "`bench {command}` lists `--{name}` twice");
            // Where it takes a value, the first `--help` is that.
            let finished = pointsman(here, &["bench", command, &format!("--{name}"), "--help", "--help"]);
            assert!(!finished.stderr.contains("no option"), "bench {command}: {}", finished.output());
            taken += 1;
        }
    }
    assert!(taken > 100, "there are {taken}");
}

/// Each piece of a configuration on a page is taken, beside a listener and a pool where it has none. Files that it names are
/// not there.
#[test]
fn configurations_of_the_pages() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut pages, mut pieces) = (vec!["README.md".to_owned()], 0);
    for of in ["docs/guide", "docs/reference"] {
        let entries = std::fs::read_dir(workspace().join(of)).expect("a readable folder").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        pages.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("{of}/{name}")));
    }
    for page in pages {
        for Block { line, language, mut text, .. } in blocks(&read(&page)) {
            if language != "toml" {
                continue;
            }
            pieces += 1;
            if !text.contains("[[listener]]") {
                text.push_str("[[listener]]\nname = \"spare\"\nbind = \"127.0.0.1:0\"\npool = \"spare\"\n");
            }
            if !text.contains("[pool") {
                text.push_str("[pool.standard]\nservers = [\"127.0.0.1:9\"]\n");
            }
            text.push_str("[pool.spare]\nservers = [\"127.0.0.1:9\"]\n");
            std::fs::write(folder.path().join("piece.toml"), text).expect("a writable folder");
            let said = pointsman(folder.path(), &["check", "--json", "piece.toml"]).stdout;
            let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
            for finding in said["findings"].as_array().expect("a list") {
                let message = finding["message"].as_str().expect("a text");
                let is_fine = finding["severity"] != "error" || message.starts_with("cannot read");
                assert!(is_fine, "{page}:{line}: {message}");
            }
        }
    }
    assert!(pieces > 20, "there are {pieces}");
}

/// What the README shows first is a whole configuration, beside a certificate, and decides as it says.
#[test]
fn readme_example() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shown = blocks(&read("README.md"));
    for (name, head) in [("pointsman.toml", "# pointsman.toml"), ("shop.rules", "# shop.rules")] {
        let block = shown.iter().find(|block| block.text.starts_with(head)).expect("the README shows it");
        std::fs::write(folder.path().join(name), &block.text).expect("a writable folder");
    }
    if !certificate(folder.path()) {
        return;
    }
    let checked = pointsman(folder.path(), &["check", "pointsman.toml"]);
    assert_eq!(checked.code, 0, "{}", checked.output());
    for (path, decision) in [
        ("/admin", "R1: reject(403, \"inside only\")"),
        ("/a.png", "R2: routeTo(images)"),
        ("/", "else: routeTo(standard"),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        std::fs::write(folder.path().join("request.txt"), request).expect("a writable folder");
        let said = pointsman(folder.path(), &["explain", "pointsman.toml", "request.txt"]).stdout;
        assert!(said.contains(decision), "{said}");
    }
}

/// Makes a certificate and its key in a folder as the README of the examples says. False: nothing is there to make it with.
fn certificate(folder: &Path) -> bool {
    let readme = blocks(&read("examples/README.md"));
    let makes = readme.iter().find(|block| block.text.starts_with("openssl req"));
    let words = ["-e", "-c", &makes.expect("the README says how").text];
    if !pointsman_e2e::installed("openssl") {
        return false;
    }
    let made = tool(folder, "sh", &words).expect("every machine has a shell");
    assert_eq!(made.code, 0, "{}", made.output());
    true
}

/// A folder of `examples` as its README says: with a certificate beside the configuration, which is called
/// `pointsman.toml`. Ports that are written down become free ones, servers the tests' own.
fn example(name: &str) -> Option<(TempDir, Vec<Origin>)> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    copy(&workspace().join("examples").join(name), folder.path());
    let path = folder.path().join("pointsman.toml");
    let mut text = std::fs::read_to_string(&path).expect("each example has one");
    if text.contains("tls = ") && !certificate(folder.path()) {
        return None;
    }
    check(folder.path());
    let mut origins = Vec::new();
    for port in 9001..9090 {
        let written = format!("127.0.0.1:{port}\"");
        if text.contains(&written) {
            let origin = Origin::new(&port.to_string());
            text = text.replace(&written, &format!("{}\"", origin.address()));
            origins.push(origin);
        }
    }
    let bound = |line: &str| match line.strip_prefix("bind = ") {
        Some(_) => "bind = \"127.0.0.1:0\"\n".to_owned(),
        None => format!("{line}\n"),
    };
    std::fs::write(path, text.lines().map(bound).collect::<String>()).expect("a writable folder");
    Some((folder, origins))
}

/// As it stands the configuration has no errors, and its rules are in their form and pass their tests.
fn check(folder: &Path) {
    let entries = std::fs::read_dir(folder).expect("a readable folder").flatten();
    for name in entries.map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        let words = match name.rsplit_once('.') {
            Some((_, "toml")) => vec!["check", "--fail-on", "error", &name],
            Some((_, "rules")) => vec!["fmt", "--check", &name],
            _ => continue,
        };
        let finished = pointsman(folder, &words);
        assert_eq!(finished.code, 0, "{words:?}\n{}", finished.output());
        if let Some(set) = name.strip_suffix(".test.rules") {
            let words = ["test", &format!("{set}.rules"), &name, "--fail-under", "100"];
            let finished = pointsman(folder, &words);
            assert_eq!(finished.code, 0, "{words:?}\n{}", finished.output());
        }
    }
}

/// Nobody adds an example that is not started here.
#[test]
fn every_example_is_known() {
    let entries = std::fs::read_dir(workspace().join("examples")).expect("a readable folder").flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, ["grafana", "grpc", "models", "orders", "passthrough", "plain", "shop"]);
}

#[test]
fn plain_example() {
    let Some((folder, _origins)) = example("plain") else { return };
    let switch = Switch::run(folder);
    let mut client = Client::plain(switch.address("web"));
    assert!(["9001", "9002"].contains(&client.get("/").server()));
    assert_eq!(client.get("/static/a").server(), "9003");
    assert_eq!(client.ask("TRACE", "/", "").status(), 501);
}

/// The status of the answer to a body, and the server that gave it.
fn post(mut client: Client, target: &str, media_type: &str, body: &str) -> (u16, String) {
    let content = format!("Content-Type: {media_type}\r\nContent-Length: {}", body.len());
    client.send(format!("POST {target} HTTP/1.1\r\nHost: a.example\r\n{content}\r\n\r\n{body}"));
    let answer = client.response();
    (answer.status(), answer.head.field("x-server").unwrap_or_default().to_owned())
}

#[test]
fn orders_example() {
    let Some((folder, _origins)) = example("orders") else { return };
    let switch = Switch::run(folder);
    let client = || Client::plain(switch.address("orders"));
    let order = |media_type: &str, customer: &str, total: &str| {
        let body = match media_type {
            "application/json" => {
                format!(r#"{{"purchase":{{"customerName":"{customer}","totalAmount":{total}}}}}"#)
            }
            _ => {
                let name = format!("<customerName>{customer}</customerName>");
                format!("<purchase>{name}<totalAmount>{total}</totalAmount></purchase>")
            }
        };
        post(client(), "/orders", media_type, &body)
    };
    for media_type in ["application/json", "application/xml"] {
        assert_eq!(order(media_type, "Ann", "52000.01"), (200, "9003".to_owned()));
        assert_eq!(order(media_type, "CCL", "52000.00"), (200, "9002".to_owned()));
        assert_eq!(order(media_type, "Acme", "52000.01").0, 403);
    }
    assert_eq!(order("text/xml", "Nobody &amp; Sons", "1").0, 403);
    assert_eq!(order("text/xml", "Ann", "much").0, 400);
    assert_eq!(post(client(), "/orders", "text/plain", "<purchase/>").0, 415);
    assert_eq!(post(client(), "/hello", "text/plain", "<purchase/>").0, 200);
    assert_eq!(client().get("/").status(), 200);
}

#[test]
fn models_example() {
    let Some((folder, _origins)) = example("models") else { return };
    let switch = Switch::run(folder);
    let client = || Client::plain(switch.address("gateway"));
    let ask = |body: &str| {
        let (status, server) = post(client(), "/v1/chat/completions", "text/plain", body);
        (status, server.parse().unwrap_or(0))
    };
    assert!([9001, 9002].contains(&ask(r#"{"model":"qwen-2.5-7b"}"#).1));
    assert!([9003, 9004].contains(&ask(r#"{"model":"llama-3.3-70b"}"#).1));
    assert_eq!(ask(r#"{"model":"llama-3.3-70b","messages":[],"stream":true}"#), (200, 9005));
    assert_eq!(ask(r#"{"messages":[],"model":"mistral-small"}"#), (200, 9006));
    assert_eq!(ask(r#"{"model":"gpt-1"}"#), (404, 0));
    assert_eq!(ask(r#"{"model":"mistral-small","model":"llama-3.3-70b"}"#).0, 400);
    assert_eq!(client().get("/health").status(), 200);
    assert_eq!(client().get("/v1/models").status(), 404);
}

/// The servers of the example speak HTTP here and take no hello: that they are reached is what there is to see.
#[test]
fn passthrough_example() {
    let Some((folder, origins)) = example("passthrough") else { return };
    let switch = Switch::run(folder);
    let trust = TlsClient::new(&Authority::new("test CA"));
    let mut blog = Client::plain(switch.address("sites"));
    blog.send(trust.hello("a.blogs.example"));
    let blogs = origins.iter().find(|origin| origin.name() == "9003").expect("it is written down");
    until("the blogs are reached", || (blogs.connections() == 1).then_some(()));
    let mut nameless = Client::plain(switch.address("sites"));
    nameless.send(trust.without_sni().hello("shop.example"));
    switch.log_entry("the refusal", |line| line["rule"] == "NAMELESS");
    let mail = Client::plain(switch.address("mail"));
    let reached = |name: &&Origin| ["9005", "9006"].contains(&name.name()) && name.connections() == 1;
    until("the mail is reached", || origins.iter().find(reached));
    drop(mail);
    switch.log_entry("the mail", |line| line["listener"] == "mail" && line["pool"] == "mail");
}

/// Pages and the chat by rules over either version, and the services over HTTP/2 from end to end.
#[test]
fn grpc_example() {
    let Some((folder, _origins)) = example("grpc") else { return };
    let services = H2Origin::echoing(&[]);
    let path = folder.path().join("pointsman.toml");
    let text = std::fs::read_to_string(&path).expect("it was written");
    let text = text.replace("127.0.0.1:9101", &services.address().to_string());
    std::fs::write(path, text).expect("a writable folder");
    let switch = Switch::run(folder);
    let ask = |listener: &str, path: &str, words: &[&str]| {
        let address = switch.address(listener);
        let resolve = format!("shop.example:{}:{}", address.port(), address.ip());
        let url = format!("https://shop.example:{}{path}", address.port());
        let usual = ["-sSi", "--max-time", "10", "--cacert", "shop.crt", "--resolve", &resolve, &url];
        let finished = tool(switch.folder(), "curl", &[&usual, words].concat())?;
        assert_eq!(finished.code, 0, "{}", finished.output());
        Some(finished.stdout)
    };
    let Some(page) = ask("web", "/", &[]) else { return };
    assert!(page.contains("HTTP/2 200") && page.contains("x-server: 900"), "{page}");
    let handshake = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let fields: Vec<_> = handshake.split("\r\n").flat_map(|field| ["-H", field]).collect();
    let chat = ask("web", "/chat", &[&["--http1.1"], &fields[..]].concat()).expect("curl is there");
    let chat = chat.to_ascii_lowercase();
    assert!(["x-server: 9003", "x-server: 9004"].iter().any(|server| chat.contains(server)), "{chat}");
    assert!(ask("web", "/chat", &[]).is_some_and(|answer| answer.starts_with("HTTP/2 404")));
    let call = ["-H", "content-type: application/grpc", "-H", "te: trailers", "--data-binary", "call"];
    let answer = ask("services", "/shop.Cart/Add", &call).expect("curl is there");
    assert!(answer.starts_with("HTTP/2 200"), "{answer}");
    assert_eq!((services.last().path().as_str(), services.connections()), ("/shop.Cart/Add", 1));
    // Without content: this curl takes it for a failure that its stream ends before it has sent any.
    assert!(ask("services", "/other", &[]).is_some_and(|answer| answer.starts_with("HTTP/2 404")));
}

#[test]
fn shop_example() {
    let Some((folder, _origins)) = example("shop") else { return };
    let switch = Switch::run(folder);
    let answer = Client::plain(switch.address("redirect")).get("/a");
    assert_eq!(answer.head.field("location"), Some("https://shop.example/a"));
    // A certificate that signs itself is nothing for the tests' own TLS client.
    let address = switch.address("shop");
    let resolve = format!("shop.example:{}:{}", address.port(), address.ip());
    let ask = |path: &str| {
        let url = format!("https://shop.example:{}{path}", address.port());
        let words = ["-sSi", "--max-time", "10", "--cacert", "shop.crt", "--resolve", &resolve, &url];
        let finished = tool(switch.folder(), "curl", &words)?;
        assert_eq!(finished.code, 0, "{}", finished.output());
        Some(finished.stdout)
    };
    for (path, words) in [
        ("/", &["HTTP/2 200", "x-server: 900", "strict-transport-security: max-age"][..]),
        ("/cart", &["HTTP/2 200", "x-server: 901", "pm_route="]),
        ("/a.png", &["HTTP/2 200", "x-server: 9021"]),
        ("/office", &["HTTP/2 403"]),
    ] {
        let Some(answer) = ask(path) else { return };
        assert!(words.iter().all(|word| answer.contains(word)), "{path}: {words:?} in:\n{answer}");
    }
}
