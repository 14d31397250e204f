//! Heads of requests as field blocks (RFC 7541), prepared before they are sent: what never changes is put into the
//! connection's table with its first request, as browsers do, and is one byte in those behind it.

use super::hpack::{ENTRY_BYTES, STATIC_NAMES, TABLE_BYTES, write_integer};
use crate::request::Text;
use crate::{Fault, Scheme, Target};

/// Fields that go into the table of a connection, by number: all requests of a run share them.
#[derive(Debug, Default)]
pub(crate) struct Kept(Vec<(String, String)>);

/// The head of one kind of request.
#[derive(Debug)]
pub(crate) struct Head {
    fields: Vec<Field>,
    /// Whether `content-length` is told in each.
    has_length: bool,
}

/// One field, as its connection needs it.
#[derive(Debug)]
enum Field {
    /// The same whatever the table holds.
    Same(Vec<u8>),
    /// In the table once it was sent.
    Kept {
        number: usize,
        /// How it is put there (section 6.2.1), …
        added: Vec<u8>,
        /// … and how it is written where the table has no room (section 6.2.2).
        plain: Vec<u8>,
        table_bytes: usize,
    },
    /// Filled in anew for each request.
    Filled { name: Vec<u8>, value: Text },
}

impl Head {
    /// The head of what asks for a target. `body_bytes`: the length of what it carries, where that is always the same.
    pub(crate) fn new(
        target: &Target,
        kept: &mut Kept,
        body_bytes: Option<usize>,
        has_length: bool,
    ) -> Result<Head, Fault> {
        let scheme = match target.url.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        let host = target.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let authority = host.map_or_else(|| target.url.authority(), |(_, value)| value.clone());
        let mut fields = vec![
            Field::new(":method", &target.method, kept)?,
            Field::new(":scheme", scheme, kept)?,
            Field::new(":authority", &authority, kept)?,
            Field::new(":path", &target.url.target, kept)?,
        ];
        for (name, value) in &target.headers {
            let name = name.to_ascii_lowercase();
            match name.as_str() {
                "host" => continue,
                "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade" => {
                    return Err(Fault::new(format!("HTTP/2 has no `{name}`"))
                        .help("leave that `--header` out: HTTP/2 sees to it by itself"));
                }
                "te" if !value.eq_ignore_ascii_case("trailers") => {
                    return Err(Fault::new(format!("in HTTP/2 `te` is `trailers`, not `{value}`")));
                }
                _ => fields.push(Field::new(&name, value, kept)?),
            }
        }
        if let Some(bytes) = body_bytes.filter(|_| has_length) {
            fields.push(Field::new("content-length", &bytes.to_string(), kept)?);
        }
        Ok(Head { fields, has_length: has_length && body_bytes.is_none() })
    }

    /// Appends the block of a request whose body has so many bytes.
    pub(crate) fn write(
        &self,
        out: &mut Vec<u8>,
        table: &mut Table,
        body_bytes: usize,
        (number, random): (u64, &mut fastrand::Rng),
    ) {
        table.begin(out);
        for field in &self.fields {
            match field {
                Field::Same(bytes) => out.extend_from_slice(bytes),
                Field::Kept { number, added, plain, table_bytes } => match table.entry(*number) {
                    Some(index) => write_integer(out, 7, 0x80, index),
                    None if table.add(*number, *table_bytes) => out.extend_from_slice(added),
                    None => out.extend_from_slice(plain),
                },
                Field::Filled { name, value } => {
                    out.extend_from_slice(name);
                    write_value(out, |out| value.write(out, number, random));
                }
            }
        }
        if self.has_length {
            literal_name(out, 0, "content-length");
            write_value(out, |out| {
                use std::io::Write;
                // Memory takes all that is written to it.
                let (Ok(()) | Err(_)) = write!(out, "{body_bytes}");
            });
        }
    }
}

impl Field {
    fn new(name: &str, value: &str, kept: &mut Kept) -> Result<Field, Fault> {
        const WHOLE: [(&str, &str, u8); 6] = [
            (":method", "GET", 2),
            (":method", "POST", 3),
            (":path", "/", 4),
            (":path", "/index.html", 5),
            (":scheme", "http", 6),
            (":scheme", "https", 7),
        ];
        if let Some((.., index)) = WHOLE.iter().find(|(n, v, _)| *n == name && *v == value) {
            return Ok(Field::Same(vec![0x80 | index]));
        }
        let mut plain = Vec::new();
        literal_name(&mut plain, 0, name);
        let text = Text::template(value)?;
        if text.varies() {
            return Ok(Field::Filled { name: plain, value: text });
        }
        string(&mut plain, text.bytes());
        // These are seldom the same twice; others leave them out of their tables, too.
        if matches!(name, ":path" | "content-length") {
            return Ok(Field::Same(plain));
        }
        let mut added = Vec::new();
        literal_name(&mut added, 0x40, name);
        string(&mut added, text.bytes());
        let table_bytes = name.len() + text.bytes().len() + ENTRY_BYTES;
        Ok(Field::Kept { number: kept.number(name, value), added, plain, table_bytes })
    }
}

impl Kept {
    fn number(&mut self, name: &str, value: &str) -> usize {
        let known = self.0.iter().position(|(n, v)| n == name && v == value);
        known.unwrap_or_else(|| {
            self.0.push((name.to_owned(), value.to_owned()));
            self.0.len() - 1
        })
    }
}

/// What the server's end of a connection has in its table. Nothing is put there that would push out something else.
#[derive(Debug)]
pub(crate) struct Table {
    /// By field: which of all that were put there it is, from 1; 0: it is not there.
    places: Vec<usize>,
    count: usize,
    bytes: usize,
    bytes_max: usize,
    /// The server has said that it may be no larger, and is not told yet that it is not.
    is_cut: bool,
}

impl Default for Table {
    fn default() -> Self {
        Table { places: Vec::new(), count: 0, bytes: 0, bytes_max: TABLE_BYTES, is_cut: false }
    }
}

impl Table {
    /// Ready for another connection.
    pub(crate) fn reset(&mut self) {
        self.places.clear();
        (self.count, self.bytes, self.bytes_max, self.is_cut) = (0, 0, TABLE_BYTES, false);
    }

    /// The server says how large it may be (RFC 9113 section 6.5.2). A larger one than the usual has no use.
    pub(crate) fn limit(&mut self, bytes_max: u32) {
        let bytes_max = (bytes_max as usize).min(TABLE_BYTES);
        if bytes_max != self.bytes_max {
            self.reset();
            (self.bytes_max, self.is_cut) = (bytes_max, true);
        }
    }

    /// A block begins: where the table was cut that is said first (RFC 7541 section 4.2).
    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_cut) {
            write_integer(out, 5, 0x20, 0);
            write_integer(out, 5, 0x20, self.bytes_max);
        }
    }

    /// The number of a field in the table.
    fn entry(&self, field: usize) -> Option<usize> {
        let place = self.places.get(field).copied().filter(|place| *place > 0)?;
        Some(STATIC_NAMES.len() + 1 + self.count - place)
    }

    /// Puts a field there, if there is room.
    fn add(&mut self, field: usize, bytes: usize) -> bool {
        if self.bytes + bytes > self.bytes_max {
            return false;
        }
        if field >= self.places.len() {
            self.places.resize(field + 1, 0);
        }
        self.count += 1;
        self.bytes += bytes;
        self.places[field] = self.count;
        true
    }
}

/// The name of a field that is written out (section 6.2).
fn literal_name(out: &mut Vec<u8>, flags: u8, name: &str) {
    let prefix_bits = if flags == 0x40 { 6 } else { 4 };
    match STATIC_NAMES.iter().position(|known| *known == name) {
        Some(at) => write_integer(out, prefix_bits, flags, at + 1),
        None => {
            out.push(flags);
            string(out, name.as_bytes());
        }
    }
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    write_integer(out, 7, 0, text.len());
    out.extend_from_slice(text);
}

/// A string whose length is known when it is written.
fn write_value(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    // Short ones say their length in a byte.
    out.push(0);
    write(out);
    let length = out.len() - at - 1;
    if length < 127 {
        out[at] = length as u8;
        return;
    }
    let mut prefix = Vec::with_capacity(4);
    write_integer(&mut prefix, 7, 0, length);
    out.splice(at..=at, prefix);
}

#[cfg(test)]
mod tests {
    use pointsman_e2e::Decoder;

    use super::*;
    use crate::Url;

    fn target(url: &str, headers: &[(&str, &str)]) -> Target {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let url = Url::parse(url).expect("a URL");
        Target { url, weight: 1, method: "GET".into(), headers, body: Default::default() }
    }

    fn read(decoder: &mut Decoder, block: &[u8]) -> String {
        let fields = decoder.read(block).expect("a block");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        fields.iter().map(|(name, value)| format!("{}={} ", text(name), text(value))).collect()
    }

    #[test]
    fn a_server_reads_what_was_meant() {
        let long = "{letters 300}";
        let mut kept = Kept::default();
        let first = target("http://127.0.0.1:81/a/{n}", &[("X-A", "b"), ("User-Agent", "x"), ("x-l", long)]);
        let second = target("http://127.0.0.1:81/", &[("Host", "c"), ("X-A", "b")]);
        let heads = [
            Head::new(&first, &mut kept, None, true).expect("good"),
            Head::new(&second, &mut kept, Some(7), true).expect("good"),
        ];
        let (mut table, mut decoder, mut random) =
            (Table::default(), Decoder::default(), fastrand::Rng::with_seed(1));
        let mut sizes = Vec::new();
        for (number, head) in [&heads[0], &heads[1], &heads[0], &heads[1]].into_iter().enumerate() {
            let mut out = Vec::new();
            head.write(&mut out, &mut table, 1000, (number as u64, &mut random));
            sizes.push(out.len());
            let text = read(&mut decoder, &out);
            if number % 2 == 1 {
                let whole = ":method=GET :scheme=http :authority=c :path=/ x-a=b content-length=7 ";
                assert_eq!(text, whole);
                continue;
            }
            let begin = ":method=GET :scheme=http :authority=127.0.0.1:81 ";
            let rest = text.strip_prefix(begin).expect("the same");
            assert!(rest.starts_with(&format!(":path=/a/{number} x-a=b user-agent=x x-l=")), "{text}");
            assert!(rest.ends_with(" content-length=1000 ") && rest.len() > 340, "{text}");
        }
        assert!(sizes[2] + 15 < sizes[0] && sizes[3] < sizes[1], "they are in the table: {sizes:?}");
        // A smaller table, and none at all.
        for limit in [80, 0, 9000] {
            table.limit(limit);
            for _ in 0..2 {
                let mut out = Vec::new();
                heads[1].write(&mut out, &mut table, 0, (0, &mut random));
                assert!(read(&mut decoder, &out).contains(":authority=c :path=/ x-a=b"), "{limit}");
            }
        }
    }

    #[test]
    fn what_http2_does_not_have_is_refused() {
        for (name, value) in [("Connection", "close"), ("TE", "gzip"), ("Upgrade", "x")] {
            let target = target("http://127.0.0.1/", &[(name, value)]);
            assert!(Head::new(&target, &mut Kept::default(), None, false).is_err(), "{name}");
        }
        let fine = target("http://127.0.0.1/", &[("TE", "trailers")]);
        assert!(Head::new(&fine, &mut Kept::default(), None, false).is_ok());
    }
}
