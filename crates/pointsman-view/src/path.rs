//! The normal form of a path: what rules compare, and what the server is sent.

use crate::percent::{code_at_start, is_unreserved};

/// What a listener makes of paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathOptions {
    /// What becomes of `%2F` and `%5C`.
    pub encoded_slash: EncodedSlash,
    /// Whether runs of slashes count as one.
    pub merge_slashes: bool,
}

/// What becomes of a path with an encoded slash or backslash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EncodedSlash {
    /// It stays encoded, and is no segment border.
    #[default]
    Keep,
    /// The request is refused.
    Refuse,
}

/// Why a path has no normal form. The answer is always 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathRefusal {
    /// It does not start with a slash.
    Relative,
    /// A byte that may not stand in a request target.
    Byte,
    /// `%` without two hex digits after it.
    Escape,
    /// `%00`: where it ends a path differs from server to server.
    Nul,
    /// A raw backslash: some servers take it for a slash.
    Backslash,
    /// `%2F` or `%5C` where the listener refuses them.
    EncodedSlash,
    /// A segment that further decoding would turn into a dot segment.
    HiddenDots,
}

impl PathRefusal {
    /// The status a refused request is answered with.
    pub fn status(self) -> u16 {
        400
    }

    /// What was wrong, for the answer's body and the access log.
    pub fn sentence(self) -> &'static str {
        match self {
            PathRefusal::Relative => "path does not start with a slash",
            PathRefusal::Byte => "path holds a byte that must be encoded",
            PathRefusal::Escape => "path holds a malformed percent-code",
            PathRefusal::Nul => "path holds an encoded NUL",
            PathRefusal::Backslash => "path holds a backslash",
            PathRefusal::EncodedSlash => "path holds an encoded slash",
            PathRefusal::HiddenDots => "path hides a dot segment",
        }
    }
}

/// A path in normal form, with the query it came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormalPath<'a> {
    target: &'a [u8],
    path_bytes: usize,
    is_rewritten: bool,
}

impl<'a> NormalPath<'a> {
    /// The path, without the query.
    pub fn path(&self) -> &'a [u8] {
        &self.target[..self.path_bytes]
    }

    /// The query as received, without its question mark. `Some` and empty where nothing follows it.
    pub fn query(&self) -> Option<&'a [u8]> {
        self.target.get(self.path_bytes + 1..)
    }

    /// Path and query: the target that a server is sent.
    pub fn target(&self) -> &'a [u8] {
        self.target
    }

    /// Whether it differs from what was received: [`Self::target`] must take its place.
    pub fn is_rewritten(&self) -> bool {
        self.is_rewritten
    }
}

/// Brings the path in `raw`, a path with or without a query, into its normal form.
///
/// Percent-codes of unreserved characters are decoded once, the hex digits of the others become
/// upper case, dot segments are removed, and what a server could read in two ways is refused. The
/// form is stable: the normal form of a normal form is itself. `*` (OPTIONS) stays `*`, and an
/// empty path (`http://host`, `http://host?query`) is `/`. The query is left as it is.
///
/// A path that is in normal form already is found so by one scan and borrowed; otherwise `scratch`
/// holds the new path and query.
pub fn normal_form<'a>(
    raw: &'a [u8],
    options: PathOptions,
    scratch: &'a mut Vec<u8>,
) -> Result<NormalPath<'a>, PathRefusal> {
    match raw {
        b"*" => return Ok(NormalPath { target: raw, path_bytes: raw.len(), is_rewritten: false }),
        b"" => return Ok(NormalPath { target: b"/", path_bytes: 1, is_rewritten: true }),
        [b'?', ..] => {
            scratch.clear();
            scratch.push(b'/');
            scratch.extend_from_slice(raw);
            return Ok(NormalPath { target: scratch, path_bytes: 1, is_rewritten: true });
        }
        [b'/', ..] => {}
        _ => return Err(PathRefusal::Relative),
    }
    let plain = plain_bytes(raw, options);
    if matches!(raw.get(plain), None | Some(b'?')) {
        return Ok(NormalPath { target: raw, path_bytes: plain, is_rewritten: false });
    }
    let path_end = memchr::memchr(b'?', raw).unwrap_or(raw.len());
    let (path, query) = raw.split_at(path_end);
    scratch.clear();
    decode_unreserved(path, options, scratch)?;
    refuse_hidden_dots(scratch)?;
    remove_dot_segments(scratch, options);
    let path_bytes = scratch.len();
    if scratch == path {
        return Ok(NormalPath { target: raw, path_bytes, is_rewritten: false });
    }
    scratch.extend_from_slice(query);
    Ok(NormalPath { target: scratch, path_bytes, is_rewritten: true })
}

/// How many bytes pass as they are: up to the query, the end, or something that needs a closer look.
fn plain_bytes(raw: &[u8], options: PathOptions) -> usize {
    let mut after_slash = false;
    for (at, &byte) in raw.iter().enumerate() {
        let passes = match byte {
            b'/' => !(after_slash && options.merge_slashes),
            b'.' => !after_slash,
            b'?' | b'%' => false,
            _ => may_stand(byte),
        };
        if !passes {
            return at;
        }
        after_slash = byte == b'/';
    }
    raw.len()
}

/// Printable ASCII but `#` and `\`: what the codec lets into a target, without the backslash.
fn may_stand(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'#' && byte != b'\\'
}

/// Appends `path` with each percent-code either decoded, because its character is unreserved, or
/// in upper case.
fn decode_unreserved(path: &[u8], options: PathOptions, out: &mut Vec<u8>) -> Result<(), PathRefusal> {
    let mut rest = path;
    while let Some(&byte) = rest.first() {
        if byte != b'%' {
            match byte {
                b'\\' => return Err(PathRefusal::Backslash),
                _ if !may_stand(byte) => return Err(PathRefusal::Byte),
                _ => out.push(byte),
            }
            rest = &rest[1..];
            continue;
        }
        match code_at_start(rest).ok_or(PathRefusal::Escape)? {
            0 => return Err(PathRefusal::Nul),
            b'/' | b'\\' if options.encoded_slash == EncodedSlash::Refuse => {
                return Err(PathRefusal::EncodedSlash);
            }
            meant if is_unreserved(meant) => out.push(meant),
            _ => out.extend(rest[..3].iter().map(u8::to_ascii_uppercase)),
        }
        rest = &rest[3..];
    }
    Ok(())
}

/// Refuses a segment that a server which decodes once more, or any number of times, could take for
/// a dot segment or for several segments with one among them.
fn refuse_hidden_dots(path: &mut Vec<u8>) -> Result<(), PathRefusal> {
    let path_bytes = path.len();
    let mut start = 0;
    while start < path_bytes {
        let end = memchr::memchr(b'/', &path[start..path_bytes]).map_or(path_bytes, |at| start + at);
        if memchr::memchr2(b'%', b';', &path[start..end]).is_some() {
            // The decoded segment stands for a moment behind the path it comes from.
            decode_fully(path, start..end);
            let hides = has_dot_piece(&path[path_bytes..]);
            path.truncate(path_bytes);
            if hides {
                return Err(PathRefusal::HiddenDots);
            }
        }
        start = end + 1;
    }
    Ok(())
}

/// Appends `path[segment]`, decoded until no percent-code is left.
///
/// One pass does it: a code is decoded as soon as its last digit stands, and what it decodes to may
/// complete another. Codes cannot overlap, so their order does not matter.
fn decode_fully(path: &mut Vec<u8>, segment: std::ops::Range<usize>) {
    let decoded_start = path.len();
    for at in segment {
        path.push(path[at]);
        while let Some(code_start) = path.len().checked_sub(3).filter(|&start| start >= decoded_start)
            && let Some(meant) = code_at_start(&path[code_start..])
        {
            path.truncate(code_start);
            path.push(meant);
        }
    }
}

/// Whether a fully decoded segment holds `.` or `..` between borders that some server knows: slash,
/// backslash, the NUL that ends a C string, the semicolon before path parameters (servlet engines
/// cut `/..;x/` down to `/../`). The overlong UTF-8 forms of dot, slash and backslash
/// count too, since lenient decoders take them.
fn has_dot_piece(decoded: &[u8]) -> bool {
    const OTHER: u8 = b'x';
    let mut dots = 0;
    let mut others = 0;
    let mut rest = decoded;
    while let Some((meant, after)) = match rest {
        [] => None,
        [0xc0, 0xae, after @ ..] => Some((b'.', after)),
        [0xc0, 0xaf, after @ ..] | [0xc1, 0x9c, after @ ..] => Some((b'/', after)),
        [b'\\' | 0, after @ ..] => Some((b'/', after)),
        [byte @ (b'.' | b'/' | b';'), after @ ..] => Some((*byte, after)),
        [_, after @ ..] => Some((OTHER, after)),
    } {
        rest = after;
        match meant {
            b'/' | b';' if others == 0 && matches!(dots, 1 | 2) => return true,
            b'/' => (dots, others) = (0, 0),
            b'.' => dots += 1,
            _ => others += 1,
        }
    }
    others == 0 && matches!(dots, 1 | 2)
}

/// Removes `.` and `..` segments (RFC 3986 section 5.2.4), and empty ones where slashes are merged.
/// `..` above the root stays at the root.
fn remove_dot_segments(path: &mut Vec<u8>, options: PathOptions) {
    let mut written = 0;
    let mut start = 0;
    // `path[start]` is the slash before a segment; what is written never overtakes what is read.
    while start < path.len() {
        let segment = start + 1;
        let end = memchr::memchr(b'/', &path[segment..]).map_or(path.len(), |at| segment + at);
        let stays = match &path[segment..end] {
            b"." => false,
            b".." => {
                written = memchr::memrchr(b'/', &path[..written]).unwrap_or(0);
                false
            }
            b"" => !options.merge_slashes,
            _ => true,
        };
        if stays {
            path.copy_within(start..end, written);
            written += end - start;
        } else if end == path.len() {
            path[written] = b'/';
            written += 1;
        }
        start = end;
    }
    path.truncate(written);
}
