//! What readers hold, counted by the heap: never more than they say, whatever they are fed.

use pointsman_content::{
    Coding, ContentDecoder, FormNames, FormOptions, FormReading, Limits, MultipartReader, PathId, Sink,
    TextKind, TextReader, UrlencodedReader, Value,
};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Hears of nothing.
struct Nobody;

impl Sink for Nobody {
    fn begins(&mut self, _: PathId, _: u32) {}
    fn value(&mut self, _: PathId, _: u32, _: Value<'_>) {}
    fn ends_unknown(&mut self, _: PathId, _: pointsman_content::Cause) {}

    fn ends(&mut self, _: PathId) {}
}

/// Bits as Brotli has them: the first is the lowest of its byte.
#[derive(Default)]
struct Bits(Vec<u8>, usize);

impl Bits {
    fn put(&mut self, value: usize, bits: usize) {
        for bit in 0..bits {
            if self.1.is_multiple_of(8) {
                self.0.push(0);
            }
            if let Some(last) = self.0.last_mut() {
                *last |= ((value >> bit & 1) as u8) << (self.1 % 8);
            }
            self.1 += 1;
        }
    }
}

/// A stream with the largest window, and more content than that, in blocks that are not compressed (RFC 7932 section 9).
fn brotli(content_bytes: usize) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut header = Bits::default();
    header.put(0b1111, 4);
    for start in (0..content_bytes).step_by(MIB) {
        // Not the last; five nibbles of length; not compressed.
        header.put(0, 1);
        header.put(1, 2);
        header.put(MIB - 1, 20);
        header.put(1, 1);
        stream.append(&mut header.0);
        header.1 = 0;
        stream.extend((start..start + MIB).map(|at| (at * 7 / 3) as u8));
    }
    header.put(0b11, 2);
    stream.append(&mut header.0);
    stream
}

/// A frame with the largest window, and more content than that, in blocks that are not compressed (RFC 8878 section 3.1.1).
fn zstd(content_bytes: usize) -> Vec<u8> {
    let mut stream = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3];
    for at in (0..content_bytes).step_by(128 * KIB) {
        let header = (128 * KIB as u32) << 3 | u32::from(at + 128 * KIB >= content_bytes);
        stream.extend(&header.to_le_bytes()[..3]);
        stream.extend((at..at + 128 * KIB).map(|at| (at * 7 / 3) as u8));
    }
    stream
}

fn gzip(content_bytes: usize) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let content: Vec<u8> = (0..content_bytes).map(|at| (at * at / 97) as u8).collect();
    encoder.write_all(&content).expect("room");
    encoder.finish().expect("room")
}

/// One test, for all of a process is counted.
#[test]
fn no_reader_holds_more_than_it_says() {
    let bodies = [
        ("gzip", Coding::Gzip, gzip(MIB), MIB),
        ("br", Coding::Brotli, brotli(20 * MIB), 20 * MIB),
        ("zstd", Coding::Zstd, zstd(20 * MIB).repeat(2), 40 * MIB),
    ];
    for (list, coding, body, content_bytes) in &bodies {
        let most = peak(|| {
            let mut decoder = ContentDecoder::new([list.as_bytes()], u64::MAX).expect("a known coding");
            let mut given = 0;
            let mut each = |piece: &[u8]| {
                given += piece.len();
                Ok(())
            };
            for piece in body.chunks(16 * KIB) {
                decoder.feed(piece, &mut each).expect("well-formed");
                let (held, so_far) =
                    (dhat::HeapStats::get().max_bytes as u64, decoder.held_bytes_max_after());
                assert!(held <= so_far, "{list} holds {held} and says {so_far}");
                assert!(so_far <= decoder.held_bytes_max() as u64, "{list} says {so_far}");
            }
            decoder.finish().expect("whole");
            assert_eq!(given, *content_bytes);
        });
        assert!(most <= coding.held_bytes_max(), "{list}: {most}, {}", coding.held_bytes_max());
        assert!(most > coding.held_bytes_max() / 8, "{list} says far too much: {most}");
    }
    drop(bodies);

    let names = FormNames::new(["a"]);
    let limits = Limits::default();
    let options = FormOptions { charset: None, reading: FormReading::Literal, limits: &limits };
    let body = format!("a={0}&b={0}&a=%c3%a9", "x".repeat(MIB));
    let most = peak(|| {
        let mut reader = UrlencodedReader::new(&names, &options).expect("no charset");
        reader.feed(&names, body.as_bytes(), &mut Nobody).expect("well-formed");
        reader.finish(&names, &mut Nobody).expect("whole");
    });
    assert!(most <= 2 * limits.value_bytes_max as usize, "{most}");
    let most = peak(|| {
        let mut reader = UrlencodedReader::new(&names, &options).expect("no charset");
        reader.feed(&names, "x".repeat(MIB).as_bytes(), &mut Nobody).expect_err("a long name");
    });
    assert!(most <= MIB + 2 * limits.name_bytes_max as usize, "{most}");

    let part = |more: &str| {
        format!("--B\r\nContent-Disposition: form-data; name=\"a\"{more}\r\n\r\n{}\r\n", "\r\nx".repeat(MIB))
    };
    let body = format!("{}{}--B--", part(""), part(&format!("; filename=\"{}\"", "f".repeat(7000))));
    let most = peak(|| {
        let mut reader = MultipartReader::new(&names, b"B", &options).expect("a boundary");
        reader.feed(&names, body.as_bytes(), &mut Nobody).expect("well-formed");
        reader.finish(&mut Nobody).expect("whole");
    });
    assert!(most <= 2 * (8192 + limits.value_bytes_max as usize), "{most}");

    for (charset, body) in [
        (None, format!("<?xml {}", " ".repeat(MIB)).into_bytes()),
        (Some(&b"utf-16le"[..]), b"<\0".repeat(MIB)),
        (Some(b"iso-8859-1"), b"<\xe9".repeat(MIB)),
        (None, b"<".repeat(MIB)),
    ] {
        let most = peak(|| {
            let mut reader = TextReader::new(TextKind::Xml, charset).expect("a known charset");
            let fed = reader.feed(&body, &mut |_| Ok(()));
            assert!(fed.is_ok() || charset.is_none());
        });
        assert!(most <= 2 * TextReader::HELD_BYTES_MAX, "{charset:?}: {most}");
    }
}

/// The most that was taken from the heap at a time while `work` ran, by it.
fn peak(work: impl FnOnce()) -> usize {
    let profiler = dhat::Profiler::builder().testing().build();
    work();
    let most = dhat::HeapStats::get().max_bytes;
    drop(profiler);
    most
}
