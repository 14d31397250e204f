//! How many bytes a second the text layer, forms and codings read, each beside a peer in the same process.

use std::hint::black_box;
use std::time::Instant;

use pointsman_content::{
    ContentDecoder, FormNames, FormOptions, FormReading, Limits, MultipartReader, PathId, Sink, TextKind,
    TextReader,
};
use pointsman_content::{UrlencodedReader, Value};

const ROUNDS: usize = 31;
const BODY_BYTES: usize = 256 * 1024;
/// As bodies come from a connection.
const PIECE_BYTES: usize = 16 * 1024;

struct Nobody;

impl Sink for Nobody {
    fn begins(&mut self, _: PathId, _: u32) {}
    fn value(&mut self, _: PathId, _: u32, value: Value<'_>) {
        black_box(value);
    }
    fn ends_unknown(&mut self, _: PathId, _: pointsman_content::Cause) {}

    fn ends(&mut self, _: PathId) {}
}

fn main() {
    let ascii = "{\"a\": [1, 2, 3], \"b\": \"plain words\"}\n".repeat(BODY_BYTES / 37);
    row(
        "text, ASCII, beside from_utf8",
        ascii.len(),
        || text(&ascii),
        || {
            black_box(std::str::from_utf8(ascii.as_bytes()).is_ok());
        },
    );
    let mixed = "{\"a\": \"Grüße, мир, 世界\"}\n".repeat(BODY_BYTES / 37);
    row(
        "text, many letters, beside from_utf8",
        mixed.len(),
        || text(&mixed),
        || {
            black_box(std::str::from_utf8(mixed.as_bytes()).is_ok());
        },
    );
    let form = "name=some+value&other=caf%C3%A9&comment=plain-words-that-go-on&n=12345".to_owned() + "&";
    let form = form.repeat(BODY_BYTES / form.len());
    row(
        "urlencoded, beside form_urlencoded",
        form.len(),
        || urlencoded(&form),
        || {
            for (name, value) in form_urlencoded::parse(form.as_bytes()) {
                black_box((&name, name == "comment", &value));
            }
        },
    );
    let file = "binary\r\n\n\0\u{1}".repeat(BODY_BYTES / 11);
    let parts = format!(
        "--B0und4ry\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n{file}\r\n--B0und4ry--\r\n"
    );
    row(
        "multipart, a file of short lines, beside memmem",
        parts.len(),
        || multipart(&parts),
        || {
            black_box(memchr::memmem::find_iter(parts.as_bytes(), b"\r\n--B0und4ry").count());
        },
    );
    let gzip = gzip(form.as_bytes());
    row(
        "gzip of a form, beside flate2 alone",
        form.len(),
        || decoded("gzip", &gzip),
        || {
            let mut plain = flate2::Decompress::new(false);
            let mut content = vec![0; BODY_BYTES * 2];
            black_box(plain.decompress(&gzip[10..], &mut content, flate2::FlushDecompress::None).is_ok());
        },
    );
}

/// Both in turn, and the medians of what they take.
fn row(what: &str, bytes: usize, ours: impl Fn(), peer: impl Fn()) {
    let (mut of_ours, mut of_peer) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_ours.push(nanoseconds(&ours));
        of_peer.push(nanoseconds(&peer));
    }
    let (ours, peer) = (median(of_ours), median(of_peer));
    let megabytes_a_second = |nanoseconds: f64| bytes as f64 / nanoseconds * 1000.0;
    let line = format!(
        "{what}: {:.0} MB/s, {:.0} MB/s, ratio of times {:.2}\n",
        megabytes_a_second(ours),
        megabytes_a_second(peer),
        ours / peer
    );
    std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes()).expect("somebody reads");
}

fn nanoseconds(act: impl Fn()) -> f64 {
    let start = Instant::now();
    act();
    start.elapsed().as_nanos() as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn text(text: &str) {
    let mut reader = TextReader::new(TextKind::Json, None).expect("no charset");
    for piece in text.as_bytes().chunks(PIECE_BYTES) {
        let fed = reader.feed(piece, &mut |text| {
            black_box(text);
            Ok(())
        });
        fed.expect("UTF-8");
    }
}

fn urlencoded(form: &str) {
    let names = FormNames::new(["comment"]);
    let limits = Limits { parameters_max: u32::MAX, ..Limits::default() };
    let options = FormOptions { charset: None, reading: FormReading::Literal, limits: &limits };
    let mut reader = UrlencodedReader::new(&names, &options).expect("no charset");
    for piece in form.as_bytes().chunks(PIECE_BYTES) {
        reader.feed(&names, piece, &mut Nobody).expect("a form");
    }
    reader.finish(&names, &mut Nobody).expect("a form");
}

fn multipart(form: &str) {
    let names = FormNames::new(["comment"]);
    let limits = Limits::default();
    let options = FormOptions { charset: None, reading: FormReading::Literal, limits: &limits };
    let mut reader = MultipartReader::new(&names, b"B0und4ry", &options).expect("a boundary");
    for piece in form.as_bytes().chunks(PIECE_BYTES) {
        reader.feed(&names, piece, &mut Nobody).expect("a form");
    }
    reader.finish(&mut Nobody).expect("a form");
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, content).expect("room");
    encoder.finish().expect("room")
}

fn decoded(list: &str, body: &[u8]) {
    let mut decoder = ContentDecoder::new([list.as_bytes()], u64::MAX).expect("a known coding");
    for piece in body.chunks(PIECE_BYTES) {
        let fed = decoder.feed(piece, &mut |content| {
            black_box(content);
            Ok(())
        });
        fed.expect("gzip");
    }
    decoder.finish().expect("whole");
}
