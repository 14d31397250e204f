//! The JSON reader beside `serde_json`, which only checks the same bytes: how fast it is, as a ratio of medians.
//!
//! Both take turns in one process, so that what else the machine does hits both. Words behind `--` choose among the
//! documents by their names.
#![expect(clippy::print_stdout, reason = "what a benchmark finds is told there")]

use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use pointsman_content::{JsonPath, JsonPaths, JsonReader, JsonStep, Limits, PathId, Sink, Value};
use serde::de::IgnoredAny;

const MIB: usize = 1024 * 1024;
/// What a switch reads at once.
const PIECE_BYTES: usize = 64 * 1024;
/// For each document and each of the two.
const TIME: Duration = Duration::from_millis(1000);
const ROUNDS_MIN: usize = 5;

/// Name, what generates it, bytes, paths.
type Row<'a> = (&'a str, fn(usize) -> String, usize, &'a [&'a str]);

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let order = ["order.id", "order.customer.name", "order.items.*.price"];
    let documents: [Row<'_>; 9] = [
        ("order, 1 MiB", order_of, MIB, &order),
        ("order, 10 MiB", order_of, 10 * MIB, &order),
        ("order, 100 MiB", order_of, 100 * MIB, &order),
        ("indented order, 1 MiB", indented_order_of, MIB, &order),
        ("numbers, 1 MiB", numbers_of, MIB, &["numbers.0", "sum"]),
        ("every number, 1 MiB", numbers_of, MIB, &["numbers.*", "sum"]),
        ("long strings, 1 MiB", strings_of, MIB, &["texts.7", "sum"]),
        ("escapes, 1 MiB", escapes_of, MIB, &["texts.7", "sum"]),
        ("deep small objects, 1 MiB", deep_of, MIB, &["objects.0.a.b", "sum"]),
    ];
    println!("{:<28} {:>10} {:>12} {:>8}", "", "ours MiB/s", "theirs MiB/s", "ratio");
    for (name, generate, bytes, paths) in documents {
        if chosen.is_empty() || chosen.iter().any(|word| name.contains(word.as_str())) {
            compare(name, &generate(bytes), paths);
        }
    }
}

fn compare(name: &str, document: &str, paths: &[&str]) {
    let paths = JsonPaths::new(&paths.iter().map(|path| path_of(path)).collect::<Vec<_>>());
    let pieces = pieces_of(document);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    while ours.len() < ROUNDS_MIN || begin.elapsed() < 2 * TIME {
        ours.push(timed(|| {
            let mut found = Found::default();
            let mut reader = JsonReader::new(Limits::default());
            for piece in &pieces {
                reader.feed(&paths, piece, &mut found).expect("a document");
            }
            reader.finish(&paths, &mut found).expect("a whole document");
            assert!(found.values > 0);
            black_box(found);
        }));
        theirs.push(timed(|| {
            black_box(serde_json::from_slice::<IgnoredAny>(document.as_bytes()).expect("a document"));
        }));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let speed = |time: Duration| document.len() as f64 / MIB as f64 / time.as_secs_f64();
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    println!("{name:<28} {:>10.0} {:>12.0} {ratio:>8.2}", speed(ours), speed(theirs));
}

fn timed(act: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    act();
    begin.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[derive(Default)]
struct Found {
    values: u64,
    bytes: usize,
}

impl Sink for Found {
    fn begins(&mut self, _: PathId, _: u32) {
        self.values += 1;
    }

    fn value(&mut self, _: PathId, _: u32, value: Value<'_>) {
        if let Value::Text(text) | Value::Number(text) = value {
            self.bytes += text.len();
        }
    }

    fn ends_unknown(&mut self, _: PathId, _: pointsman_content::Cause) {}

    fn ends(&mut self, _: PathId) {}
}

fn path_of(path: &str) -> JsonPath {
    let step = |step: &str| match step.parse() {
        Ok(index) => JsonStep::Index(index),
        Err(_) if step == "*" => JsonStep::Every,
        Err(_) => JsonStep::Member(step.into()),
    };
    path.split('.').map(step).collect()
}

fn pieces_of(document: &str) -> Vec<&str> {
    let mut rest = document;
    std::iter::from_fn(|| {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
    .collect()
}

/// Numbers that look drawn, and are the same each time.
fn drawn() -> impl FnMut(u64) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

fn filled(
    bytes: usize,
    before: &str,
    between: &str,
    behind: &str,
    mut item: impl FnMut(&mut String),
) -> String {
    let mut document = before.to_owned();
    item(&mut document);
    while document.len() < bytes {
        document.push_str(between);
        item(&mut document);
    }
    document.push_str(behind);
    document
}

fn order_of(bytes: usize) -> String {
    let mut draw = drawn();
    let before = r#"{"order":{"id":"A-17","customer":{"name":"Müller & Söhne","vip":true},"items":["#;
    filled(bytes, before, ",", r#"],"total":52000.01}}"#, |document| {
        let (sku, quantity, price) = (draw(1_000_000), draw(99), draw(1_000_000));
        let cents = price % 100;
        let written = write!(
            document,
            r#"{{"sku":"{sku:08}","name":"Widget of type {quantity}, blue","quantity":{quantity},"price":{}.{cents:02},"tags":["new","sale"],"size":{{"w":{},"h":{}}},"gift":false,"note":null}}"#,
            price / 100,
            draw(300),
            draw(300),
        );
        written.expect("memory");
    })
}

fn indented_order_of(bytes: usize) -> String {
    let order: serde_json::Value = serde_json::from_str(&order_of(bytes * 2 / 5)).expect("a document");
    serde_json::to_string_pretty(&order).expect("a document")
}

fn numbers_of(bytes: usize) -> String {
    let mut draw = drawn();
    filled(bytes, r#"{"numbers":["#, ",", r#"],"sum":0}"#, |document| {
        let number = draw(1 << 30) >> draw(30);
        let written = match draw(4) {
            0 => write!(document, "{number}"),
            1 => write!(document, "-{number}.{}", draw(1000)),
            2 => write!(document, "{}.{number}", draw(10)),
            _ => write!(document, "{number}e-{}", draw(20)),
        };
        written.expect("memory");
    })
}

fn strings_of(bytes: usize) -> String {
    let mut draw = drawn();
    filled(bytes, r#"{"texts":["#, ",", r#"],"sum":0}"#, |document| {
        let words =
            (0..20 + draw(200)).map(|_| ["lorem ", "ipsum ", "dolor ", "größe ", "sit "][draw(5) as usize]);
        let words: String = words.collect();
        document.push('"');
        document.push_str(&words);
        document.push('"');
    })
}

fn escapes_of(bytes: usize) -> String {
    let mut draw = drawn();
    filled(bytes, r#"{"texts":["#, ",", r#"],"sum":0}"#, |document| {
        document.push('"');
        for _ in 0..20 + draw(100) {
            document
                .push_str([r"line\n", r"\u00e4\u00f6", r#"\"quoted\""#, r"\ud83d\ude00"][draw(4) as usize]);
        }
        document.push('"');
    })
}

fn deep_of(bytes: usize) -> String {
    let mut draw = drawn();
    filled(bytes, r#"{"objects":["#, ",", r#"],"sum":0}"#, |document| {
        let depth = 1 + draw(30) as usize;
        for _ in 0..depth {
            document.push_str([r#"{"a":"#, r#"{"id":1,"b":"#, r#"{"c":[],"d":"#][draw(3) as usize]);
        }
        document.push_str("{}");
        document.push_str(&"}".repeat(depth));
    })
}
