//! Where inputs start from: the vectors and examples of the project.

use std::fs;
use std::path::{Path, PathBuf};

const REQUESTS: &str = include_str!("../../../testdata/http1/requests.txt");
const ANSWERS: &str = include_str!("../../../testdata/http1/answers.txt");
const PATHS: &str = include_str!("../../../testdata/normal-forms/paths.txt");
const QUERIES: &str = include_str!("../../../testdata/normal-forms/queries.txt");
const COOKIES: &str = include_str!("../../../testdata/normal-forms/cookies.txt");
const HOSTS: &str = include_str!("../../../testdata/normal-forms/hosts.txt");
const HEADERS: &str = include_str!("../../../testdata/normal-forms/headers.txt");
const BODIES: &str = include_str!("../../../testdata/bodies/fields.txt");
const DNS_ANSWERS: &str = include_str!("../../../testdata/dns/answers.txt");

const PROXY_HEADERS: &str = include_str!("../../../testdata/proxy-protocol/headers.txt");

/// What most clients send. Vectors show above all what is refused, and from there no change leads far.
const ORDINARY: &[&str] = &[
    "GET /a/b?c=d HTTP/1.1\r\nHost: a.example\r\nUser-Agent: x/1\r\nAccept: */*\r\nCookie: a=1; b=2\r\n\r\n",
    "POST /form HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nX-A: 1\r\n\r\nhello",
    "PUT /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n0\r\n\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive, x-a\r\nX-A: 1\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n",
    "GET http://a.example:80/x HTTP/1.1\r\nHost: a.example:80\r\nConnection: close\r\nTE: trailers\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: [::1]:8080\r\nUpgrade: h2c\r\nForwarded: for=1.2.3.4;by=_x\r\n\r\n",
];

/// Configurations with nothing wrong, short enough for a change to leave most of it alone.
const SOUND: &[&str] = &[
    "[[listener]]\nname = \"a\"\nbind = \"127.0.0.1:0\"\npool = \"a\"\nrules = \"r\"\nlimits.idle_ms_max = 3\n[pool.a]\n\
     servers = [\"127.0.0.1:1\", { name = \"b\", address = \"127.0.0.1:2\", weight = 2 }]\n\0\
     R1: if (path under \"/b\") { routeTo(a.b); }\n",
    "threads = 2\n[[listener]]\nname = \"a\"\nbind = \"127.0.0.1:0\"\nrules = \"r\"\n\
     [pool.a]\nservers = [\"127.0.0.1:1\"]\n\0else: tag(\"x\"); routeTo(a);\n",
];

/// How often they stand among the seeds.
const ORDINARY_TIMES: usize = 20;

pub(crate) fn requests() -> Vec<Vec<u8>> {
    let ordinary = ORDINARY.repeat(ORDINARY_TIMES).into_iter().map(|request| request.as_bytes().to_vec());
    messages(REQUESTS).into_iter().chain(ordinary).collect()
}

pub(crate) fn answers() -> Vec<Vec<u8>> {
    messages(ANSWERS)
}

pub(crate) fn bodies() -> Vec<Vec<u8>> {
    [
        "0\r\n\r\n",
        "5\r\nhello\r\n0\r\n\r\nnext",
        "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        "5;a=b;c=\"d\"\r\nhello\r\n0;e\r\n\r\n",
        "00000000000000a\r\n0123456789\r\n0\r\nX-Sum: 1\r\nY:\r\n\r\n",
        "4\r\n\r\n\r\n\r\nF\r\n0123456789abcde\r\n0\r\n\r\n",
    ]
    .map(|body| body.as_bytes().to_vec())
    .to_vec()
}

/// Lines of a head, and content of that kind.
pub(crate) fn asked_bodies() -> Vec<Vec<u8>> {
    [
        ("application/xml", "<order><total>6</total></order>"),
        ("application/xml", "<order total=\"7\"><p:item xmlns:p=\"urn:p\">6</p:item><item>1<item>2</item></item></order>"),
        ("text/xml", "<?xml version=\"1.0\"?><order><total>5</total><item>6</item><!--x--><item><![CDATA[7]]></item></order>"),
        ("application/soap+xml", "<order><total>5</total></orde>"),
        ("text/xml; charset=iso-8859-1", "<order><item>&lt;&#54;</item></order>"),
        ("application/json", "{\"order\":{\"total\":5.0,\"total\":6}}"),
        ("application/json", "{\"order\":{\"items\":[{\"price\":1},{\"price\":5e0}],\"name\":\"a\"}}"),
        ("application/problem+json", "[true, null, \"\\u0036\"]"),
        ("application/json", "{\"items\":[6,6],\"order\":{\"note\":\"6\"}}"),
        ("application/x-www-form-urlencoded", "item=a&total=%36&item=b+c"),
        ("multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"total\"\r\n\r\n6\r\n--b--\r\n"),
        ("text/plain", " <order/>"),
    ]
    .map(|(media_type, content)| format!("Content-Type: {media_type}\r\n\r\n{content}").into_bytes())
    .into_iter()
    .chain(BODIES.split("\n\n").filter(|case| case.starts_with("== ")).map(asked_body))
    .collect()
}

/// The same of a case among the vectors.
fn asked_body(case: &str) -> Vec<u8> {
    let (mut head, mut content) = (String::new(), Vec::new());
    for line in case.lines() {
        match line.split_at(line.len().min(2)) {
            ("> ", field)
                if field.starts_with("Transfer-Encoding") || field.starts_with("Content-Length") => {}
            ("> ", field) => head.extend([field, "\r\n"]),
            ("| ", text) => content.extend(unescaped(text)),
            ("x ", hex) => {
                content.extend(hex.split(' ').filter_map(|byte| u8::from_str_radix(byte, 16).ok()));
            }
            _ => {}
        }
    }
    [head.as_bytes(), b"\r\n", &content].concat()
}

pub(crate) fn paths() -> Vec<Vec<u8>> {
    first_columns(PATHS)
}

pub(crate) fn proxy_headers() -> Vec<Vec<u8>> {
    let lines = PROXY_HEADERS.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.splitn(3, " | ").nth(2)).map(unescaped).collect()
}

/// Messages of name servers.
pub(crate) fn dns_answers() -> Vec<Vec<u8>> {
    let hex = DNS_ANSWERS.lines().filter_map(|line| line.splitn(3, " | ").nth(2));
    let byte = |at: usize, hex: &str| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    hex.map(|hex| (0..hex.len()).step_by(2).filter_map(|at| byte(at, hex)).collect()).collect()
}

/// Hellos of clients, whole and in pieces.
pub(crate) fn hellos() -> Vec<Vec<u8>> {
    let extensions: [&[u8]; 6] = [
        b"",
        b"\0\x00\0\x0e\0\x0c\0\0\x09a.example",
        b"\0\x10\0\x0e\0\x0c\x02h2\x08http/1.1",
        b"\0\x2b\0\x05\x04\x03\x04\x03\x03",
        b"\x0a\x0a\0\0\0\0\0\x0e\0\x0c\0\0\x09a.example\0\x17\0\0",
        b"\0\x15\0\x04\0\0\0\0",
    ];
    let start = [&b"\x03\x03"[..], &[7; 32], b"\0\0\x02\x13\x01\x01\0"].concat();
    let hello = |extensions: &&[u8]| {
        let body = [&start[..], &(extensions.len() as u16).to_be_bytes(), extensions].concat();
        [b"\x01\0", &(body.len() as u16).to_be_bytes()[..], &body].concat()
    };
    let messages: Vec<Vec<u8>> = extensions.iter().map(hello).collect();
    let recorded = |bytes| messages.iter().map(move |message| crate::tls_hello::records(message, bytes));
    recorded(20).chain(recorded(4096)).collect()
}

/// Frames of both sides, one behind the other.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let long = |length: &[u8], bytes| [&[0x82], length, &vec![b'x'; bytes]].concat();
    vec![
        b"\x81\x05hello\x89\x00\x8a\x02ab\x88\x02\x03\xe9".to_vec(),
        b"\x81\x85abcdHELLO\x88\x82abcd\x03\xe8".to_vec(),
        b"\x01\x03Hel\x80\x02lo\x82\x00".to_vec(),
        long(b"\x7e\x01\x00", 256),
        long(b"\x7f\x00\x00\x00\x00\x00\x00\x01\x2c", 300),
        b"\x82\xfe\x00\x7eabcd".to_vec(),
        b"\x09\x01x\x81\x05hello".to_vec(),
        b"\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00\x81\x00".to_vec(),
    ]
}

/// Heads of HTTP/2, each with a request of HTTP/1.1 that goes the other way.
pub(crate) fn requests_of_both_versions() -> Vec<Vec<u8>> {
    const HEADS: &[&str] = &[
        "GET\0/a?b=c\0a.example:8443\0\0x-a:1\ncookie:a=1\nte:trailers\ncookie:b=2",
        "POST\0/\0a\0\0content-length:5\nhost:a\ncontent-type:application/grpc",
        "GET\0/\0\0\0host:b\nx: padded\naccept:*/*",
        "CONNECT\0/chat\0a.example\0websocket\0sec-websocket-version:13\nsec-websocket-key:x\norigin:https://a",
        "CONNECT\0/\0a\0foo/2\0x:1",
        "CONNECT\0\0a.example:443\0\0",
        "OPTIONS\0*\0a\0\0x:1",
    ];
    let requests = requests();
    let head = |number: usize| HEADS[number % HEADS.len()].as_bytes();
    let beside = |(number, request): (usize, &Vec<u8>)| [head(number), b"\0", request].concat();
    requests.iter().enumerate().map(beside).collect()
}

/// Answers of HTTP/1.1, and statuses with fields.
pub(crate) fn answers_of_both_versions() -> Vec<Vec<u8>> {
    let fields = [
        "200content-length:5\nset-cookie:a=1\nserver:x\nset-cookie:b=2",
        "204date:now\nvary:a\nvary:b",
        "103link:</a>\nlink:</b>",
        "304etag:\"x\"\nx-a:\ncache-control:no-cache",
    ];
    let fields = fields.repeat(ORDINARY_TIMES).into_iter().map(|text| text.as_bytes().to_vec());
    answers().into_iter().chain(fields).collect()
}

pub(crate) fn fields() -> Vec<Vec<u8>> {
    [QUERIES, COOKIES, HOSTS].into_iter().flat_map(first_columns).collect()
}

/// Requests with the header lines of the vectors, and those of the codec.
pub(crate) fn forwarded_requests() -> Vec<Vec<u8>> {
    let around = |lines: Vec<u8>| {
        let head = b"GET /a/../b?a=1 HTTP/1.1\r\nHost: A.example:80\r\n";
        [head, &lines[..], b"\r\nX-A: 1\r\n\r\n"].concat()
    };
    let lines = first_columns(HEADERS).into_iter().map(around);
    lines.chain(requests()).collect()
}

pub(crate) fn rules() -> Vec<Vec<u8>> {
    files("rules").into_iter().map(|(_, text)| text.into_bytes()).collect()
}

/// Configurations, each with the rules that stand beside it; a host name would be refused at once.
pub(crate) fn configurations() -> Vec<Vec<u8>> {
    let rules = files("rules");
    let with_rules = |(path, text): (PathBuf, String)| {
        let beside =
            rules.iter().find(|(rules, _)| rules.parent() == path.parent() && text.contains("rules = "));
        let rules = beside.map_or("", |(_, rules)| rules.as_str());
        format!("{}\0{rules}", text.replace("localhost", "127.0.0.1")).into_bytes()
    };
    let there: Vec<Vec<u8>> = files("toml").into_iter().map(with_rules).collect();
    let sound = SOUND.repeat(ORDINARY_TIMES).into_iter().map(|text| text.as_bytes().to_vec());
    there.into_iter().chain(sound).collect()
}

/// Workloads and documents of reports, short ones.
pub(crate) fn bench_files() -> Vec<Vec<u8>> {
    let there = files("wl").into_iter().chain(files("json"));
    let of_bench =
        there.filter(|(path, text)| path.to_string_lossy().contains("bench") && text.len() < 4_096);
    let short = [
        "DEFINE_CLASSES\nA: 100\nDEFINE_REQUESTS\nA:\nGET /a\nHEAD /b#c\n",
        "# a\r\nDEFINE_CLASSES\r\nA: 0.5%\r\nCLASS_404: 99.5 # b\r\nDEFINE_REQUESTS\r\nA:\r\nPOST /a\r\nCLASS_404:\r\nGET /b\r\n",
        "{\"schema\":\"pointsman-bench/1\",\"title\":\"a\",\"runs\":[]}",
        "{\"schema\":\"pointsman-bench/1\",\"title\":\"\",\"runs\":[{\"name\":\"<a>\",\"verdict\":{\"colour\":\"red\"}}]}",
    ];
    let short = short.into_iter().map(|text| text.as_bytes().to_vec());
    of_bench.map(|(_, text)| text.into_bytes()).chain(short).collect()
}

/// What users do, in all its forms.
pub(crate) fn session_scripts() -> Vec<Vec<u8>> {
    [
        "GET /\n",
        "think exp:5s # in the mean\n\nGET /list?page={random 1 20}\n  Accept: text/html\n  name the list\n",
        "POST /order\n  Content-Type: application/json\n  body {\"item\": {random 1 1000}}\n  think 20s\n  expect 201\n",
        "PUT /a\r\n\ttemplate order\r\n\tthink 0\r\n",
        "DELETE https://b.example:8443/x\n  body-file order\nGET /y\n",
        "get /\n  what\nGET /{letters 9}\n  template none\n  expect 99\n",
    ]
    .map(|script| script.as_bytes().to_vec())
    .to_vec()
}

/// Field blocks of connections, each behind its length: those of RFC 7541 appendix C.5 and C.6 begin two of them.
pub(crate) fn field_blocks() -> Vec<Vec<u8>> {
    let of_connection = |blocks: &[&[u8]]| -> Vec<u8> {
        blocks.iter().flat_map(|block| [&[block.len() as u8], *block].concat()).collect()
    };
    vec![
        of_connection(&[
            b"\x48\x03302\x58\x07private\x61\x1dMon, 21 Oct 2013 20:13:21 GMT\x6e\x17https://www.example.com",
            b"\x48\x03307\xc1\xc0\xbf",
        ]),
        of_connection(&[
            b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x6e\x91\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3",
            b"\x48\x83\x64\x0e\xff\xc0\xbf",
        ]),
        of_connection(&[b"\x88\x0f\x0d\x03128", b"\x8d", b"\x8e\x61\x03now", b"\x88\xbe"]),
        of_connection(&[b"\x40\x01a\x01b\x40\x01c\x01d", b"\x3f\x1f\xbe", b"\x20\x88", b"\x3f\xe1\x1f\x88"]),
        of_connection(&[b"\x00\x07:status\x03503", b"\x10\x07:status\x03404", b"\x40\x07:status\x03201", b"\xbe"]),
        of_connection(&[b"\x08\x0320x"]),
        of_connection(&[b"\x88\x88"]),
    ]
}

/// The files with an extension below `testdata` and `examples`, in order.
fn files(extension: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("testdata"), root.join("examples")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|there| there == extension) {
                found.extend(fs::read_to_string(&path).ok().map(|text| (path, text)));
            }
        }
    }
    found.sort();
    found
}

/// What arrives in the cases of a vector file: the lines between a title and `--`.
fn messages(file: &str) -> Vec<Vec<u8>> {
    let cases = file.split("\n== ").skip(1);
    let raw = cases.map(|case| case.split("\n-- ").next().unwrap_or_default());
    raw.map(|case| case.lines().skip(1).flat_map(unescaped).collect()).collect()
}

/// What stands before the first tab, in lines that are no comments.
fn first_columns(file: &str) -> Vec<Vec<u8>> {
    let lines = file.lines().filter(|line| !line.starts_with('#') && line.contains('\t'));
    lines.map(|line| unescaped(line.split('\t').next().unwrap_or_default())).collect()
}

/// Resolves the escapes of vector files; what is none stays, since this is only where inputs start.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let code = after.get(1..3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (byte, length) = match (after.bytes().next(), code) {
            (Some(b'r'), _) => (b'\r', 1),
            (Some(b'n'), _) => (b'\n', 1),
            (Some(b't'), _) => (b'\t', 1),
            (Some(b'0'), _) => (0, 1),
            (Some(b'x'), Some(code)) => (code, 3),
            (Some(_), _) => (b'\\', 1),
            (None, _) => (b'\\', 0),
        };
        bytes.push(byte);
        rest = after.get(length..).unwrap_or_default();
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use crate::TARGETS;

    /// A vector file that moved, or has another form, must not leave a target without its seeds.
    #[test]
    fn every_target_has_seeds() {
        for target in TARGETS {
            let seeds = (target.seeds)();
            assert!(seeds.len() >= 6 && seeds.iter().any(|seed| seed.len() > 12), "{}", target.name);
        }
        assert!(
            super::requests().len() > 90
                && super::requests().contains(&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec())
        );
        assert!(super::dns_answers().iter().any(|seed| seed.starts_with(b"\0\x07\x81\x80\0\x01\0\x02")));
        assert!(super::configurations().iter().any(|seed| seed.windows(7).any(|piece| piece == b"routeTo")));
    }
}
