//! What a head says of its body: media type and length.

/// The media type in a Content-Type value, without its parameters; `None` where it is empty.
/// Case is as received.
pub(crate) fn media_type(value: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    Some(value[..end].trim_ascii()).filter(|name| !name.is_empty())
}

/// The length in a Content-Length value that the codec has let through.
pub(crate) fn announced_length(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
