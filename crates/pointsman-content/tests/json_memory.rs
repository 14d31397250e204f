//! What a JSON reader takes from the heap does not grow with what it is fed.

use pointsman_content::{JsonPath, JsonPaths, JsonReader, JsonStep, Limits, PathId, Sink, Value};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Hears nothing.
struct Deaf;

impl Sink for Deaf {
    fn begins(&mut self, _: PathId, _: u32) {}

    fn value(&mut self, _: PathId, _: u32, _: Value<'_>) {}

    fn ends_unknown(&mut self, _: PathId, _: pointsman_content::Cause) {}

    fn ends(&mut self, _: PathId) {}
}

const DEPTH_MAX: u32 = 1_000_000;

/// The most bytes that a reader holds so, of several goes: what the tests' own thread takes meanwhile is in one of them at most.
fn held(beginning: &str, repeated: &str, times: usize) -> usize {
    (0..3).map(|_| held_in_one_go(beginning, repeated, times)).min().expect("three")
}

/// The most bytes that are held while a reader is fed the beginning and then a piece so many times.
fn held_in_one_go(beginning: &str, repeated: &str, times: usize) -> usize {
    let member = |name: &str| JsonStep::Member(name.into());
    let paths = JsonPaths::new(&[
        JsonPath { steps: vec![member("a"), JsonStep::Every] },
        JsonPath { steps: vec![member("a"), JsonStep::Every, member("b")] },
        JsonPath { steps: vec![member("a"), JsonStep::Index(0), JsonStep::Index(0)] },
    ]);
    let profiler = dhat::Profiler::builder().testing().build();
    let mut reader = JsonReader::new(Limits { depth_max: DEPTH_MAX, ..Limits::default() });
    reader.feed(&paths, beginning, &mut Deaf).expect("a beginning");
    for _ in 0..times {
        reader.feed(&paths, repeated, &mut Deaf).expect("more of it");
    }
    drop(reader);
    let bytes = dhat::HeapStats::get().max_bytes;
    drop(profiler);
    bytes
}

#[test]
fn memory_does_not_grow_with_what_is_fed() {
    // A value may be carried whole, and a text's room doubles as it grows. The rest is the trie's.
    let bytes_max = 2 * Limits::default().value_bytes_max as usize + 1024;
    for (beginning, repeated) in [
        ("{\"a\":[0", ",{\"b\":\"x\",\"c\":1.5}"),
        ("{\"a\":[0", ",[1,2,[3]]"),
        ("{\"a\":[0", ",{\"\\u0062\":\"\\u0062\"}"),
        ("{\"a\":[\"", "a long text that never ends, "),
        ("{\"a\":[\"", "\\u00e4"),
        ("{\"a\":[1.", "123456789"),
        ("{\"", "a long name that never ends, "),
        ("{\"z\":0", ",\"name\":[{},[],true]"),
        ("[", "   \n"),
    ] {
        let (short, long) = (held(beginning, repeated, 10_000), held(beginning, repeated, 100_000));
        assert_eq!(short, long, "{beginning}{repeated}…");
        assert!(long <= bytes_max, "{long} bytes for {beginning}{repeated}…");
    }
    // A bit for each level, in room that doubles.
    let deep = held("{\"a\":[", "[", 999_998);
    assert!(deep <= 2 * DEPTH_MAX as usize / 8 + 1024, "{deep} bytes");
}
