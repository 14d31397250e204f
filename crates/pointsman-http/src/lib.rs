//! What an HTTP message is and is not: the HTTP/1 codec, which refuses ambiguity.
