//! Names of trailers that never pass, although their syntax is right.

use crate::odd_name::reads_like;

/// Whether a request's trailer of this name is never forwarded to a server. A server that merges trailers into the
/// header would read another route, client, credential, condition or format than the switch did (RFC 9110
/// section 6.5.1).
pub fn is_kept_from_servers(name: &[u8]) -> bool {
    const NAMES: [&str; 17] = [
        "baggage",
        "cf-connecting-ip",
        "date",
        "dnt",
        "early-data",
        "from",
        "origin",
        "pragma",
        "prefer",
        "priority",
        "range",
        "referer",
        "te",
        "true-client-ip",
        "user-agent",
        "via",
        "x-mirrored",
    ];
    const PREFIXES: [&str; 17] = [
        "accept",
        "access-control-",
        "auth",
        "client-cert",
        "cookie",
        "if-",
        "proxy-",
        "sec-",
        "trace",
        "x-amzn-",
        "x-client-",
        "x-forwarded",
        "x-http-method",
        "x-method-override",
        "x-original-",
        "x-rewrite-",
        "x-ssl-",
    ];
    is_of(name, &NAMES, &PREFIXES)
}

/// Whether a response's trailer of this name is never forwarded to a client. A cache or a client that merges
/// trailers into the header would take a policy, a login or a redirect from behind the body, where no rule and no
/// filter in between has seen it.
pub fn is_kept_from_clients(name: &[u8]) -> bool {
    const NAMES: [&str; 18] = [
        "alt-svc",
        "clear-site-data",
        "expires",
        "link",
        "nel",
        "permissions-policy",
        "pragma",
        "proxy-authenticate",
        "referrer-policy",
        "refresh",
        "report-to",
        "reporting-endpoints",
        "retry-after",
        "service-worker-allowed",
        "sourcemap",
        "strict-transport-security",
        "vary",
        "www-authenticate",
    ];
    const PREFIXES: [&str; 5] = ["access-control-", "cross-origin-", "x-accel-", "x-frame-", "x-sendfile"];
    is_of(name, &NAMES, &PREFIXES)
}

/// Whether two field names are the same one to a server that maps both to one variable (RFC 3875 section 4.1.18).
pub fn names_read_alike(name: &[u8], other: &[u8]) -> bool {
    reads_like(name, other)
}

fn is_of(name: &[u8], names: &[&str], prefixes: &[&str]) -> bool {
    names.iter().any(|known| reads_like(name, known.as_bytes()))
        || prefixes
            .iter()
            .any(|prefix| name.get(..prefix.len()).is_some_and(|start| reads_like(start, prefix.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_prefixes_are_compared_without_case() {
        for name in [
            "X-Mirrored",
            "x-http-method-override",
            "If-Match",
            "x_original_url",
            "TraceParent",
            "X-SSL-Cert",
        ] {
            assert!(is_kept_from_servers(name.as_bytes()), "{name}");
        }
        for name in
            ["x-checksum", "grpc-status", "content-digest", "x-amz-trailer-signature", "server-timing", ""]
        {
            assert!(!is_kept_from_servers(name.as_bytes()), "{name}");
        }
        for name in ["Strict-Transport-Security", "Access-Control-Allow-Origin", "refresh"] {
            assert!(is_kept_from_clients(name.as_bytes()), "{name}");
        }
        for name in ["grpc-status", "grpc_message.x", "server-timing", "etag", "authentication-info"] {
            assert!(!is_kept_from_clients(name.as_bytes()), "{name}");
        }
    }
}
