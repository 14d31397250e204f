//! The XML reader beside quick-xml's event loop, on purchase orders: three paths against none.
//!
//! Both read the same bytes in turns in one process, and what counts is the ratio of their medians. quick-xml gets the
//! whole document at once; the reader gets it whole, and in pieces as they come from a socket. Arguments are the sizes
//! in MiB and the rounds: `cargo bench -p pointsman-content --bench xml -- 1,10,100 40`.

#![expect(clippy::print_stdout, reason = "what it has measured")]

mod order;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_content::{
    Limits, PathId, Sink, Value, XmlAxis, XmlName, XmlPath, XmlPaths, XmlReader, XmlStep,
};
use quick_xml::events::Event;

const PIECE_BYTES: usize = 16 * 1024;
const MANY: usize = 10_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let sizes = arguments.first().map_or("1,10", String::as_str);
    let rounds = arguments.get(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(40);
    let three = vec![
        path(&["purchase", "customer", "name"]),
        path(&["purchase", "items", "item", "price"]),
        path(&["purchase", "totalAmount"]),
    ];
    let more = (0..MANY).map(|number| path(&["purchase", "items", "item", &format!("field{number}")]));
    let many = Arc::new(XmlPaths::new(&three.iter().cloned().chain(more).collect::<Vec<_>>()));
    let three = Arc::new(XmlPaths::new(&three));
    for mebibytes in sizes.split(',').filter_map(|size| size.parse::<usize>().ok()) {
        let document = order::of_bytes(mebibytes << 20);
        let name = format!("order of {mebibytes} MiB");
        compare(
            &name,
            &document,
            (rounds / mebibytes).max(5),
            &[
                ("whole", &three, document.len()),
                ("in pieces", &three, PIECE_BYTES),
                ("with 10,000 more paths", &many, PIECE_BYTES),
            ],
        );
    }
    let line = "Nothing but prose, as long as it takes, and hardly a tag in it.\n";
    let document =
        format!("<purchase><items>{}</items></purchase>", format!("<p>{}</p>", line.repeat(30)).repeat(500));
    compare("prose of 1 MiB", &document, rounds, &[("in pieces", &three, PIECE_BYTES)]);
}

/// Reads a document by quick-xml and by readers with these paths and pieces of so many bytes, in turns.
fn compare(name: &str, document: &str, rounds: usize, readers: &[(&str, &Arc<XmlPaths>, usize)]) {
    let mut theirs = Vec::new();
    let mut ours = vec![Vec::new(); readers.len()];
    for _ in 0..rounds {
        theirs.push(timed(|| events(document)));
        for (times, (_, paths, piece_bytes)) in ours.iter_mut().zip(readers) {
            times.push(timed(|| values(paths, document, *piece_bytes)));
        }
    }
    let theirs = median(theirs);
    println!("{name}: quick-xml {}", rate(document.len(), theirs));
    for (times, (reader, ..)) in ours.into_iter().zip(readers) {
        let ours = median(times);
        let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
        println!("{name}: {reader} {}, {ratio:.2} of quick-xml", rate(document.len(), ours));
    }
}

fn path(steps: &[&str]) -> XmlPath {
    let step = |local: &&str| XmlStep {
        axis: XmlAxis::Child,
        name: XmlName { namespace: None, local: (*local).to_owned() },
        position: None,
    };
    XmlPath { steps: steps.iter().map(step).collect(), attribute: None }
}

struct Count(usize);

impl Sink for Count {
    fn begins(&mut self, _: PathId, _: u32) {}

    fn value(&mut self, _: PathId, _: u32, value: Value<'_>) {
        if let Value::Text(text) = value {
            self.0 += text.len();
        }
    }

    fn ends_unknown(&mut self, _: PathId, _: pointsman_content::Cause) {}

    fn ends(&mut self, _: PathId) {}
}

fn values(paths: &Arc<XmlPaths>, document: &str, piece_bytes: usize) -> usize {
    let mut count = Count(0);
    let mut reader = XmlReader::new(Arc::clone(paths), Limits::default());
    let mut rest = document;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(piece_bytes));
        reader.feed(piece, &mut count).expect("an order is well-formed");
        rest = behind;
    }
    reader.finish(&mut count).expect("an order is well-formed");
    count.0
}

fn events(document: &str) -> usize {
    let mut reader = quick_xml::Reader::from_reader(document.as_bytes());
    let mut count = 0;
    loop {
        match black_box(reader.read_event().expect("an order is well-formed")) {
            Event::Eof => return count,
            _ => count += 1,
        }
    }
}

fn timed(work: impl Fn() -> usize) -> Duration {
    let started = Instant::now();
    black_box(work());
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn rate(bytes: usize, time: Duration) -> String {
    format!("{:.0} MB/s", bytes as f64 / time.as_secs_f64() / 1e6)
}
