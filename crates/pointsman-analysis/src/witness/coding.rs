//! Content codings of a body (RFC 9110 section 8.4.1). Nothing becomes shorter by them, so that people can read it.

use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use pointsman_rules::OwnedValue;

use super::sought::text;

/// A body may have been coded so often.
const CODINGS_MAX: usize = 3;
/// Bytes of the longest content that is one block in all of them.
const BLOCK_BYTES_MAX: usize = 1 << 16;

/// Content in all codings that some lines name, the first of them first. Nothing where they name none, or one that nobody
/// reads.
pub(super) fn coded(content: &[u8], lines: &[OwnedValue]) -> Option<Vec<u8>> {
    let lines: Vec<&[u8]> = lines.iter().map(text).collect::<Option<_>>()?;
    let names = lines.iter().flat_map(|line| line.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    let named = |name: &&[u8]| !name.is_empty() && !name.eq_ignore_ascii_case(b"identity");
    let names: Vec<&[u8]> = names.filter(named).take(CODINGS_MAX + 1).collect();
    if names.is_empty() || names.len() > CODINGS_MAX {
        return None;
    }
    names.into_iter().try_fold(content.to_vec(), |content, name| in_coding(&content, name))
}

fn in_coding(content: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    match name.to_ascii_lowercase().as_slice() {
        b"gzip" | b"x-gzip" => gzip(content),
        b"deflate" => zlib(content),
        b"br" => brotli(content),
        b"zstd" => zstd(content),
        _ => None,
    }
}

/// One member (RFC 1952 section 2.3).
fn gzip(content: &[u8]) -> Option<Vec<u8>> {
    /// By deflate; no flags, no time, and an unknown system.
    const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let mut sum = Crc::new();
    sum.update(content);
    let length = u32::try_from(content.len()).ok()?;
    let body = deflated(content, Compress::new(Compression::none(), false))?;
    Some([&HEAD[..], &body, &sum.sum().to_le_bytes(), &length.to_le_bytes()].concat())
}

fn zlib(content: &[u8]) -> Option<Vec<u8>> {
    deflated(content, Compress::new(Compression::none(), true))
}

fn deflated(content: &[u8], mut compress: Compress) -> Option<Vec<u8>> {
    // Each block takes a few bytes more than it holds.
    let mut out = Vec::with_capacity(content.len() + content.len() / 64 + 64);
    let status = compress.compress_vec(content, &mut out, FlushCompress::Finish).ok()?;
    (status == Status::StreamEnd).then_some(out)
}

/// One uncompressed meta-block, and an empty one (RFC 7932 section 9.2): a window of 64 KiB, no last block, four nibbles of
/// length; then the last, which is empty.
fn brotli(content: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    if content.len() > BLOCK_BYTES_MAX {
        return None;
    }
    if let Some(length) = content.len().checked_sub(1) {
        const UNCOMPRESSED: usize = 1 << 20;
        out.extend((UNCOMPRESSED | length << 4).to_le_bytes().into_iter().take(3));
        out.extend_from_slice(content);
        out.push(0b11);
    } else {
        out.push(0b110);
    }
    Some(out)
}

/// One raw block, which is the last (RFC 8878 section 3.1.1), in a frame that says how long it is.
fn zstd(content: &[u8]) -> Option<Vec<u8>> {
    const MAGIC: u32 = 0xFD2F_B528;
    /// The length is said in four bytes, and is that of the window.
    const DESCRIPTOR: u8 = 0b1010_0000;
    const LAST: u32 = 1;
    let length = u32::try_from(content.len()).ok().filter(|_| content.len() <= BLOCK_BYTES_MAX)?;
    let mut out = MAGIC.to_le_bytes().to_vec();
    out.push(DESCRIPTOR);
    out.extend(length.to_le_bytes());
    out.extend((LAST | length << 3).to_le_bytes().into_iter().take(3));
    out.extend_from_slice(content);
    Some(out)
}

#[cfg(test)]
mod tests {
    use pointsman_content::ContentDecoder;

    use super::*;

    /// What comes of content that is coded and decoded again; nothing where it is not coded.
    fn decoded(content: &[u8], lines: &[&str]) -> Option<Vec<u8>> {
        let values: Vec<_> = lines.iter().map(|line| OwnedValue::Text(line.as_bytes().into())).collect();
        let coded = coded(content, &values)?;
        let mut decoder =
            ContentDecoder::new(lines.iter().map(|line| line.as_bytes()), 1 << 20).expect("codings");
        let mut out = Vec::new();
        let mut each = |piece: &[u8]| {
            out.extend_from_slice(piece);
            Ok(())
        };
        decoder.feed(&coded, &mut each).expect("a body");
        decoder.finish().expect("a whole body");
        Some(out)
    }

    #[test]
    fn what_is_coded_is_decoded() {
        let long = vec![b'x'; 65_000];
        for content in [&b""[..], b"x", br#"{"a":1}"#, &long] {
            for lines in [
                &["gzip"][..],
                &["x-GZIP"],
                &["deflate"],
                &["br"],
                &["zstd"],
                &["identity, gzip", "br"],
                &["deflate,,zstd"],
            ] {
                assert_eq!(decoded(content, lines).as_deref(), Some(content), "{lines:?}");
            }
        }
        for lines in [&[][..], &["identity"], &["compress"], &["gzip, x"], &["gzip, gzip, gzip, gzip"]] {
            assert_eq!(decoded(b"x", lines), None, "{lines:?}");
        }
    }
}
