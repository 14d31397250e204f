//! What a rule sees is what the server sees, by the table in `testdata/normal-forms.txt`.

use pointsman_e2e::{Origin, Request, Setup, Switch, read_lines, testdata, unescape};

pointsman_e2e::for_threads!(table);

fn table(threads: usize) {
    let vectors: Vec<Vector> = read_lines(&testdata("normal-forms.txt")).iter().map(Vector::read).collect();
    assert!(vectors.len() >= 40, "a table of {} vectors", vectors.len());
    // The rules refuse, which changes defaults.
    let keys = [
        ("", "encoded_slash = \"keep\"\nmerge_slashes = false\nreadings = \"literal\""),
        ("merge", "encoded_slash = \"keep\"\nmerge_slashes = true\nreadings = \"literal\""),
        ("refuse-slash", "encoded_slash = \"refuse\"\nmerge_slashes = false\nreadings = \"literal\""),
    ];
    let mut failures = Vec::new();
    for (listener, keys) in keys {
        let of_listener: Vec<&Vector> = vectors.iter().filter(|vector| vector.listener == listener).collect();
        let origin = Origin::new("origin");
        let rules: String = of_listener.iter().map(|vector| vector.rule()).collect();
        let setup = Setup::new(threads).listener(keys).rules(&rules).pool("standard", &[&origin]);
        let switch = setup.start();
        failures.extend(of_listener.iter().filter_map(|vector| vector.play(&switch, &origin).err()));
    }
    assert!(failures.is_empty(), "normal-forms.txt\n{}", failures.join("\n"));
}

/// One line of the table.
struct Vector {
    line: usize,
    listener: String,
    kind: Kind,
    sent: Vec<u8>,
    expected: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Path,
    Target,
    Host,
    Query,
    Header,
    RefusedTarget,
    RefusedHost,
}

impl Vector {
    fn read((line, text): &(usize, String)) -> Self {
        let listeners = ["merge", "refuse-slash"];
        let (first, rest) = text.split_once(' ').expect("a kind and a value");
        let (listener, text) = if listeners.contains(&first) { (first, rest) } else { ("", text.as_str()) };
        let (kind, rest) = text.split_once(' ').expect("a kind and a value");
        let kind = match kind {
            "path" => Kind::Path,
            "target" => Kind::Target,
            "host" => Kind::Host,
            "query" => Kind::Query,
            "header" => Kind::Header,
            "refuse" => Kind::RefusedTarget,
            "refuse-host" => Kind::RefusedHost,
            other => panic!("normal-forms.txt:{line}: `{other}`"),
        };
        let (sent, expected) = rest.split_once("=>").unwrap_or((rest, ""));
        let expected = String::from_utf8(unescape(expected.trim())).expect("rules are UTF-8");
        let (listener, sent) = (listener.to_owned(), unescape(sent.trim()));
        Self { line: *line, listener, kind, sent, expected }
    }

    /// A rule that leaves its mark on this vector's request when it sees what is expected.
    fn rule(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let expected = &self.expected;
        let condition = match self.kind {
            Kind::RefusedTarget | Kind::RefusedHost => return String::new(),
            Kind::Path => format!("path == {}", quoted(expected)),
            Kind::Target => format!("path == {}", quoted(expected.split('?').next().unwrap_or_default())),
            Kind::Host => format!("host == {}", quoted(expected)),
            Kind::Header => format!("header[\"x-v\"] == {}", quoted(expected)),
            Kind::Query => {
                let (key, value) = expected.split_once('=').expect("KEY=VALUE");
                format!("first(query[{}]) == {}", quoted(key), quoted(value))
            }
        };
        let line = self.line;
        format!(
            "if (header[\"x-line\"] == \"{line}\" && {condition}) {{ setHeader(\"x-seen\", \"{line}\"); }}\n"
        )
    }

    fn play(&self, switch: &Switch, origin: &Origin) -> Result<(), String> {
        let (before, line) = (origin.count(), self.line);
        let sent = String::from_utf8_lossy(&self.sent);
        let mut client = switch.client();
        client.send(self.request());
        let answer = client.try_response().map_err(|error| format!("{line}: {sent}: {error}"))?;
        let status = answer.status();
        if matches!(self.kind, Kind::RefusedTarget | Kind::RefusedHost) {
            return match (status, origin.count() - before) {
                (400, 0) => Ok(()),
                (_, 0) => Err(format!("{line}: {sent}: {status} instead of 400")),
                _ => Err(format!("{line}: {sent}: reached the server as {}", origin.last().head.start)),
            };
        }
        if origin.count() != before + 1 {
            return Err(format!("{line}: {sent}: {status}, and nothing reached the server"));
        }
        let request = origin.last();
        let seen = self.server_sees(&request);
        if seen != self.expected {
            return Err(format!("{line}: {sent}: the server sees `{seen}` instead of `{}`", self.expected));
        }
        match request.head.field("x-seen") {
            Some(mark) if mark == line.to_string() => Ok(()),
            _ => Err(format!("{line}: {sent}: the rule does not see `{}`", self.expected)),
        }
    }

    fn request(&self) -> Vec<u8> {
        let (mut target, mut host, mut value) = (b"/".to_vec(), b"shop.example".to_vec(), b"".to_vec());
        match self.kind {
            Kind::Path | Kind::Target | Kind::RefusedTarget => target.clone_from(&self.sent),
            Kind::Host | Kind::RefusedHost => host.clone_from(&self.sent),
            Kind::Header => value.clone_from(&self.sent),
            Kind::Query => target = [b"/?", self.sent.as_slice()].concat(),
        }
        let line = self.line.to_string();
        let parts: [&[u8]; 9] = [
            b"GET ",
            &target,
            b" HTTP/1.1\r\nHost: ",
            &host,
            b"\r\nX-Line: ",
            line.as_bytes(),
            b"\r\nX-V: ",
            &value,
            b"\r\n\r\n",
        ];
        parts.concat()
    }

    /// How a plain server, which decodes once and compares hosts as RFC 9110 says, reads the request.
    fn server_sees(&self, request: &Request) -> String {
        let target = request.target();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match self.kind {
            Kind::Path => path.to_owned(),
            Kind::Target | Kind::RefusedTarget | Kind::RefusedHost => target.to_owned(),
            Kind::Host => host_of(request.head.field("host").unwrap_or_default()),
            Kind::Header => utf8(request.head.field("x-v").unwrap_or_default()),
            Kind::Query => {
                let key = self.expected.split('=').next().unwrap_or_default();
                let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
                let mut decoded = pairs.map(|(key, value)| (decode(key), decode(value)));
                let found = decoded.find(|(other, _)| other == key);
                found.map_or("absent".to_owned(), |(key, value)| format!("{key}={value}"))
            }
        }
    }
}

fn host_of(field: &str) -> String {
    let end = field.rfind(':').filter(|colon| field.rfind(']').is_none_or(|bracket| *colon > bracket));
    field[..end.unwrap_or(field.len())].trim_end_matches('.').to_ascii_lowercase()
}

/// The harness reads heads as Latin-1; these bytes were UTF-8.
fn utf8(latin: &str) -> String {
    let bytes: Vec<u8> =
        latin.chars().map(|letter| u8::try_from(u32::from(letter)).expect("a byte")).collect();
    String::from_utf8(bytes).expect("UTF-8")
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits: String = rest.by_ref().take(2).map(char::from).collect();
                u8::from_str_radix(&digits, 16).expect("two digits")
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).expect("UTF-8")
}
