//! Content codings: what a body is before it was compressed, piece by piece and within a bound.

mod brotli;
mod deflate;
mod gzip;
mod zstd;

use crate::text::is_charset;
use crate::{Cause, Fault};

/// Codings that a body may have on top of each other.
const CODINGS_MAX: usize = 2;

/// Bytes of a piece of decoded content.
const PIECE_BYTES_MAX: usize = 32 * 1024;

/// Bytes that may come out for each byte that went in. Text that people or programs write comes to thirty or sixty times
/// what it is compressed to; only what repeats itself comes to more, and a body of a hundred bytes may mean 16 MiB.
const OUT_OF_EACH_BYTE: u64 = 100;

/// Bytes that may come out in any case, so that little that repeats itself is no bomb.
const OUT_ANYWAY: u64 = 256 * 1024;

/// What may come out grows whenever so many bytes went in, counted from the body's start: that is what makes it the same
/// however the body was cut.
const COUNTED_BYTES: u64 = 256;

/// Undoes the codings of a body (RFC 9110 section 8.4).
///
/// It knows `gzip` and `x-gzip` (RFC 1952, of any number of members), `deflate` (zlib, RFC 1950, or the raw deflate of
/// RFC 1951 where the first two bytes are no header of zlib), `br` (RFC 7932, windows up to 16 MiB) and `zstd` (RFC 8878, windows up to 8 MiB as RFC 9659
/// asks, no dictionaries); `identity` means nothing, and so do names that are of no coding but that clients write here by mistake: of an encoding of
/// characters (`utf-8`) or a transfer encoding without effect (`8bit`). Servers pass over them, or refuse the request.
/// Another name is [`Cause::Encoding`]: `aws-chunked` among them, which S3 undoes and other servers do not. At most two
/// stand on top of each other.
///
/// What is not whole, or has anything behind its end, is [`Cause::Malformed`], and so is a body of no bytes. Of more than
/// the decoded bytes that are allowed, just so many are handed on, and then it is [`Cause::Limit`]; so many may also come
/// out of the first of two codings. Neither may more come out of any coding than 256 KiB and a hundred times the bytes of the
/// body up to there, rounded up to 256 of them: that is [`Cause::Limit`] too, found before it is decoded, or with one window
/// of `zstd` at most. What a meta-block of `br` announces is decoded when as many bytes of the body have come as
/// that asks for, and they wait in here. All that does not depend on how the body was cut. Faults stand behind the bytes that were handed on; how many of those come before a
/// malformed place may depend on how the body was cut.
#[derive(Debug)]
pub struct ContentDecoder {
    /// In the order in which they are undone: the last that was applied comes first.
    stages: Vec<Stage>,
    /// Bytes of the body.
    fed: u64,
    given: u64,
    fault: Option<Fault>,
}

/// The codings that are undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `gzip`
    Gzip,
    /// `deflate`
    Deflate,
    /// `br`
    Brotli,
    /// `zstd`
    Zstd,
}

impl Coding {
    /// Bytes that a decoder of this coding holds, at most, whatever it is fed.
    pub const fn held_bytes_max(self) -> usize {
        const KIB: usize = 1024;
        PIECE_BYTES_MAX
            + match self {
                // The window of 32 KiB, and tables.
                Coding::Gzip | Coding::Deflate => 64 * KIB,
                // The window, grown by copying half of it; Huffman tables for 256 types of each kind of block; what
                // waits for a meta-block, a hundredth of 16 MiB.
                Coding::Brotli => 24 * KIB * KIB + 4 * KIB * KIB,
                // The window in a ring twice as long, grown by copying half of it; a block, its literals and sequences.
                Coding::Zstd => 24 * KIB * KIB + 4 * KIB * KIB,
            }
    }

    /// The coding of this name (RFC 9110 section 8.4.1), in whatever case.
    fn of(name: &[u8]) -> Option<Coding> {
        const NAMES: &[(&[u8], Coding)] = &[
            (b"gzip", Coding::Gzip),
            (b"x-gzip", Coding::Gzip),
            (b"deflate", Coding::Deflate),
            (b"br", Coding::Brotli),
            (b"zstd", Coding::Zstd),
        ];
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, coding)| coding)
    }
}

impl ContentDecoder {
    /// A decoder for a body with these values of Content-Encoding, in the order of their lines, that may have as many
    /// bytes as `decoded_bytes_max` when decoded.
    pub fn new<'a>(
        content_encoding: impl IntoIterator<Item = &'a [u8]>,
        decoded_bytes_max: u64,
    ) -> Result<ContentDecoder, Fault> {
        let mut codings = Vec::new();
        let names = content_encoding.into_iter().flat_map(|line| line.split(|&byte| byte == b','));
        for name in names.map(<[u8]>::trim_ascii) {
            // Nothing between commas is nothing (RFC 9110 section 5.6.1.2).
            if name.is_empty() || is_no_coding(name) {
                continue;
            }
            let coding = Coding::of(name).ok_or(Wrong(Cause::Encoding, unknown(name)).at(0))?;
            if codings.len() == CODINGS_MAX {
                return Err(Wrong(Cause::Limit, "many content codings").at(0));
            }
            codings.push(coding);
        }
        let stages = codings.into_iter().rev().map(|coding| Stage::new(coding, decoded_bytes_max)).collect();
        Ok(ContentDecoder { stages, fed: 0, given: 0, fault: None })
    }

    /// The codings that are undone, the last that was applied first. If there are none, a body is handed on as it comes,
    /// without a bound.
    pub fn codings(&self) -> impl Iterator<Item = Coding> {
        self.stages.iter().map(|stage| stage.coding)
    }

    /// Bytes that this decoder holds, at most, whatever it is fed.
    pub fn held_bytes_max(&self) -> usize {
        self.codings().map(Coding::held_bytes_max).sum()
    }

    /// The same, so far. It does not grow with what was decoded: a frame of `zstd` takes the whole window that its header
    /// announces, be it 8 MiB and nothing else has come, and `br` what the end of the present meta-block asks for, zeroed,
    /// up to its window. Small bodies announce little. What `gzip` and `deflate` hold they take at once.
    pub fn held_bytes_max_after(&self) -> u64 {
        self.stages.iter().map(|stage| stage.held_bytes() as u64).sum()
    }

    /// Bytes that were handed on.
    pub fn decoded_bytes(&self) -> u64 {
        self.given
    }

    /// Takes more bytes of the body; `each` hears of what they mean, in pieces of at most 32 KiB if anything is decoded.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(&[u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = match self.stages.is_empty() {
                true => u64::MAX,
                false => COUNTED_BYTES - self.fed % COUNTED_BYTES,
            };
            let some = rest.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let (now, behind) = rest.split_at(some);
            self.feed_counted(now, each).map_err(|stop| {
                *self.fault.insert(match stop {
                    Stop::Found(wrong) => wrong.at(self.given),
                    Stop::Heard(found) => found,
                })
            })?;
            rest = behind;
        }
        Ok(())
    }

    /// Takes bytes up to where they are counted next.
    fn feed_counted(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(&[u8]) -> Result<(), Fault>,
    ) -> Result<(), Stop> {
        let ContentDecoder { stages, given, fed, .. } = self;
        let counted = (*fed / COUNTED_BYTES + 1).saturating_mul(COUNTED_BYTES);
        let most = counted.saturating_mul(OUT_OF_EACH_BYTE).saturating_add(OUT_ANYWAY);
        *fed += bytes.len() as u64;
        let mut hand_on = |piece: &[u8]| {
            each(piece).map_err(Stop::Heard)?;
            *given += piece.len() as u64;
            Ok(())
        };
        match &mut stages[..] {
            [] => hand_on(bytes),
            [only] => only.feed(bytes, most, &mut hand_on),
            [first, second] => {
                first.feed(bytes, most, &mut |piece| second.feed(piece, most, &mut hand_on))?;
                // More may come out than when it began to wait.
                if second.decoder.is_waiting() { second.feed(&[], most, &mut hand_on) } else { Ok(()) }
            }
            _ => Err(Stop::Found(Wrong(Cause::Limit, "many content codings"))),
        }
    }

    /// The body has ended. All that it means was handed on before.
    pub fn finish(&mut self) -> Result<(), Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.stages.iter().all(|stage| stage.decoder.is_at_end()) {
            return Ok(());
        }
        let wrong = match self.stages.iter().any(|stage| stage.decoder.is_waiting()) {
            true => OUT_OF_LITTLE,
            false => Wrong(Cause::Malformed, "compressed content without its end"),
        };
        Err(*self.fault.insert(wrong.at(self.given)))
    }
}

/// Whether a name in Content-Encoding changes no byte.
fn is_no_coding(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 5] = [b"identity", b"none", b"7bit", b"8bit", b"binary"];
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name)) || is_charset(name)
}

fn unknown(name: &[u8]) -> &'static str {
    match name.eq_ignore_ascii_case(b"aws-chunked") {
        true => "`aws-chunked`, which only S3 undoes",
        false => "an unknown content coding",
    }
}

/// What is wrong, while nobody says where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wrong(Cause, &'static str);

impl Wrong {
    fn at(self, at: u64) -> Fault {
        Fault { cause: self.0, at, what: self.1 }
    }
}

const TRAILING: Wrong = Wrong(Cause::Malformed, "bytes behind the end of compressed content");

const OUT_OF_LITTLE: Wrong =
    Wrong(Cause::Limit, "compressed content that comes to more than a hundred times its bytes");

/// What decoding stops at: its own finding, or what who hears of the content has returned.
#[derive(Debug)]
enum Stop {
    Found(Wrong),
    Heard(Fault),
}

/// One coding of a body.
#[derive(Debug)]
struct Stage {
    coding: Coding,
    decoder: Decoder,
    piece: Vec<u8>,
    /// Bytes that came out.
    out: u64,
    out_max: u64,
}

impl Stage {
    fn new(coding: Coding, decoded_bytes_max: u64) -> Stage {
        let decoder = match coding {
            Coding::Gzip => Decoder::Gzip(gzip::Gzip::default()),
            Coding::Deflate => Decoder::Deflate(deflate::Deflate::default()),
            Coding::Brotli => Decoder::Brotli(brotli::Brotli::default()),
            Coding::Zstd => Decoder::Zstd(Box::default()),
        };
        Stage { coding, decoder, piece: Vec::new(), out: 0, out_max: decoded_bytes_max }
    }

    fn held_bytes(&self) -> usize {
        let decoder = match &self.decoder {
            Decoder::Gzip(_) | Decoder::Deflate(_) => usize::MAX,
            Decoder::Brotli(decoder) => decoder.held_bytes(),
            Decoder::Zstd(decoder) => decoder.held_bytes(),
        };
        PIECE_BYTES_MAX.saturating_add(decoder).min(self.coding.held_bytes_max())
    }

    /// Takes bytes; as many as `most` may have come out behind them.
    fn feed(
        &mut self,
        mut bytes: &[u8],
        most: u64,
        each: &mut impl FnMut(&[u8]) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.piece.resize(PIECE_BYTES_MAX, 0);
        loop {
            let before = bytes.len();
            let written = self.decoder.step(&mut bytes, &mut self.piece, most).map_err(Stop::Found)?;
            let room = usize::try_from(self.out_max.min(most).saturating_sub(self.out));
            let allowed = written.min(room.unwrap_or(usize::MAX));
            if allowed > 0 {
                each(&self.piece[..allowed])?;
            }
            self.out += allowed as u64;
            if allowed < written {
                return Err(Stop::Found(if self.out_max <= most {
                    Wrong(Cause::Limit, "more decoded bytes than are allowed")
                } else {
                    OUT_OF_LITTLE
                }));
            }
            if written == 0 {
                match bytes.len() {
                    0 => return Ok(()),
                    left if left == before => {
                        return Err(Stop::Found(Wrong(
                            Cause::Malformed,
                            "compressed content that does not go on",
                        )));
                    }
                    _ => {}
                }
            }
        }
    }
}

#[derive(Debug)]
enum Decoder {
    Gzip(gzip::Gzip),
    Deflate(deflate::Deflate),
    Brotli(brotli::Brotli),
    Zstd(Box<zstd::Zstd>),
}

impl Decoder {
    /// Takes some of the input and writes output: how much. It has no more to write, and waits for input, if it writes
    /// nothing and leaves none. `most` bytes may come out in all.
    fn step(&mut self, input: &mut &[u8], output: &mut [u8], most: u64) -> Result<usize, Wrong> {
        match self {
            Decoder::Gzip(decoder) => decoder.step(input, output),
            Decoder::Deflate(decoder) => decoder.step(input, output),
            Decoder::Brotli(decoder) => decoder.step(input, output, most),
            Decoder::Zstd(decoder) => decoder.step(input, output),
        }
    }

    /// Whether there is input that waits until more may come out.
    fn is_waiting(&self) -> bool {
        matches!(self, Decoder::Brotli(decoder) if decoder.is_waiting())
    }

    /// Whether the content may end here.
    fn is_at_end(&self) -> bool {
        match self {
            Decoder::Gzip(decoder) => decoder.is_at_end(),
            Decoder::Deflate(decoder) => decoder.is_at_end(),
            Decoder::Brotli(decoder) => decoder.is_at_end(),
            Decoder::Zstd(decoder) => decoder.is_at_end(),
        }
    }
}

/// Moves bytes over until `collected` has as many as `bytes`: whether it has.
fn collect(collected: &mut Vec<u8>, bytes: usize, input: &mut &[u8]) -> bool {
    let wanted = bytes.saturating_sub(collected.len()).min(input.len());
    let (taken, rest) = input.split_at(wanted);
    collected.extend_from_slice(taken);
    *input = rest;
    collected.len() >= bytes
}
