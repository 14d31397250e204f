//! The XML reader beside quick-xml's event loop, on purchase orders: three paths against none.
//!
//! Both read the same bytes in turns in one process, and what counts is the ratio of their medians. quick-xml gets the
//! whole document at once; the reader gets it whole, and in pieces as they come from a socket. Arguments are the sizes
//! in MiB and the rounds: `cargo bench -p pointsman-content --bench xml -- 1,10 100`.

#![expect(clippy::print_stdout, reason = "what it has measured")]

#[path = "../tests/xml/order.rs"]
mod order;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_content::{
    Limits, PathId, Sink, Value, XmlAxis, XmlName, XmlPath, XmlPaths, XmlReader, XmlStep,
};
use quick_xml::events::Event;

const PIECE_BYTES: usize = 16 * 1024;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let sizes = arguments.first().map_or("1,10", String::as_str);
    let rounds = arguments.get(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(40);
    let paths = Arc::new(XmlPaths::new(&[
        path(&["purchase", "customer", "name"]),
        path(&["purchase", "items", "item", "price"]),
        path(&["purchase", "totalAmount"]),
    ]));
    for mebibytes in sizes.split(',').filter_map(|size| size.parse::<usize>().ok()) {
        let document = order::of_bytes(mebibytes << 20);
        let (mut whole, mut pieces, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..(rounds / mebibytes).max(5) {
            theirs.push(timed(|| events(&document)));
            whole.push(timed(|| values(&paths, &document, document.len())));
            pieces.push(timed(|| values(&paths, &document, PIECE_BYTES)));
        }
        let theirs = median(theirs);
        println!("{mebibytes} MiB: quick-xml {}", rate(document.len(), theirs));
        for (name, times) in [("whole", whole), ("in pieces", pieces)] {
            let ours = median(times);
            let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
            println!("{mebibytes} MiB: {name} {}, {ratio:.2} of quick-xml", rate(document.len(), ours));
        }
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
    assert!(count.0 > 0, "an order has values");
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
