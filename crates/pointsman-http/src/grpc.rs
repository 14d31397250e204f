//! Responses of the switch to gRPC calls: a status of gRPC in the place of one of HTTP.

/// Appends the field lines of a response without a body and trailers that says what `status`, of HTTP, says.
/// `message` is for people.
pub fn push_grpc_lines(status: u16, message: &[u8], lines: &mut Vec<u8>) {
    lines.extend_from_slice(b"Content-Type: application/grpc\r\nGrpc-Status: ");
    lines.extend_from_slice(itoa::Buffer::new().format(grpc_status(status)).as_bytes());
    lines.extend_from_slice(b"\r\nGrpc-Message: ");
    for &byte in message {
        match byte {
            b' '..=b'~' if byte != b'%' => lines.push(byte),
            _ => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                lines.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]]);
            }
        }
    }
    lines.extend_from_slice(b"\r\n");
}

/// The status of gRPC that clients make of one of HTTP (grpc/doc/http-grpc-status-mapping.md).
fn grpc_status(status: u16) -> u8 {
    const UNKNOWN: u8 = 2;
    const PERMISSION_DENIED: u8 = 7;
    const UNIMPLEMENTED: u8 = 12;
    const INTERNAL: u8 = 13;
    const UNAVAILABLE: u8 = 14;
    const UNAUTHENTICATED: u8 = 16;
    match status {
        400 => INTERNAL,
        401 => UNAUTHENTICATED,
        403 => PERMISSION_DENIED,
        404 => UNIMPLEMENTED,
        429 | 502 | 503 | 504 => UNAVAILABLE,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_mapped_as_clients_map_them() {
        for (status, expected) in [
            (400, 13),
            (401, 16),
            (403, 7),
            (404, 12),
            (429, 14),
            (502, 14),
            (503, 14),
            (504, 14),
            (413, 2),
            (500, 2),
            (302, 2),
        ] {
            let mut lines = Vec::new();
            push_grpc_lines(status, "50 % \u{e9}\n".as_bytes(), &mut lines);
            let expected = format!(
                "Content-Type: application/grpc\r\nGrpc-Status: {expected}\r\nGrpc-Message: 50 %25 %C3%A9%0A\r\n"
            );
            assert_eq!(String::from_utf8_lossy(&lines), expected, "{status}");
        }
    }
}
