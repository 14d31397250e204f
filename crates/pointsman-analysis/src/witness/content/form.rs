//! A form that has values in fields.

use pointsman_rules::{Cause, OwnedValue, Place};
use pointsman_view::ContentLimits;

use super::{Content, free_name};
use crate::witness::sought::{Wish, written};
use crate::witness::target::encode;

/// More fields than any limit that is tried.
const PARAMETERS_MAX: u32 = 10_000;

pub(super) fn urlencoded(
    wishes: &[&Wish<'_>],
    cause: Option<Cause>,
    limits: &ContentLimits,
) -> Option<Content> {
    let mut before = Vec::new();
    for (name, value) in fields(wishes) {
        if !before.is_empty() {
            before.push(b'&');
        }
        encode(name.as_bytes(), &mut before);
        before.push(b'=');
        encode(&written(value, limits.value_bytes_max)?, &mut before);
    }
    let behind: Vec<u8> = match cause {
        None => Vec::new(),
        Some(Cause::Malformed) => b"&%".to_vec(),
        Some(Cause::Encoding) if before.is_empty() => b"&".to_vec(),
        Some(Cause::Encoding) => b"&%FF".to_vec(),
        Some(Cause::Limit) if limits.parameters_max < PARAMETERS_MAX => {
            ["&", free_name(wishes)].concat().repeat(limits.parameters_max as usize + 1).into_bytes()
        }
        Some(_) => return None,
    };
    Some(Content { before, padding: b'&', behind, cause })
}

/// `boundary` is that of the head.
pub(super) fn multipart(
    wishes: &[&Wish<'_>],
    cause: Option<Cause>,
    boundary: &[u8],
    limits: &ContentLimits,
) -> Option<Content> {
    let mut before = Vec::new();
    let part = |name: &[u8], value: &[u8]| {
        let disposition = b"\r\nContent-Disposition: form-data; name=\"";
        [b"--", boundary, disposition, name, b"\"\r\n\r\n", value, b"\r\n"].concat()
    };
    for (name, value) in fields(wishes) {
        before.extend(part(name.as_bytes(), &written(value, limits.value_bytes_max)?));
    }
    let end = [b"--", boundary, b"--\r\n"].concat();
    let behind = match cause {
        None => {
            before.extend(end);
            Vec::new()
        }
        // A delimiter ends what stands before it, and its part has no end.
        Some(Cause::Malformed) => [b"--", boundary, b"\r\n"].concat(),
        Some(Cause::Encoding) if before.is_empty() => end,
        Some(Cause::Encoding) => [part(b"\xff", b"").as_slice(), &end].concat(),
        Some(Cause::Limit) if limits.parameters_max < PARAMETERS_MAX => {
            let one = part(free_name(wishes).as_bytes(), b"");
            [one.repeat(limits.parameters_max as usize + 1), end].concat()
        }
        Some(_) => return None,
    };
    Some(Content { before, padding: b' ', behind, cause })
}

fn fields<'w>(wishes: &[&'w Wish<'w>]) -> impl Iterator<Item = (&'w str, &'w OwnedValue)> {
    let named = wishes.iter().filter_map(|wish| match wish.place() {
        Some(Place::Form(name)) => Some((&**name, wish.values.known.iter())),
        _ => None,
    });
    named.flat_map(|(name, values)| values.map(move |value| (name, value))).collect::<Vec<_>>().into_iter()
}
