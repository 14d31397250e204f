//! What values a field can have in any request. A little too much is allowed: the view decides in the end.

mod hosts;
#[cfg(test)]
mod tests;

use pointsman_rules::{Field, Place, ProxyValue};
use pointsman_view::is_list;

pub use self::hosts::is_server_name;

use super::texts::Language;

/// What one value can be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// One of these texts.
    Choice(&'static [&'static str]),
    Text(Language),
    /// A whole number from one to another.
    Integer {
        min: u64,
        max: u64,
    },
    /// An address; no IPv4-mapped one.
    Address,
    Boolean,
}

/// Whether a request can be without the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    Never,
    /// It can, and no usual one is.
    Odd,
    Usual,
}

/// What the values of a field can be, all together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Domain {
    pub(super) kind: Kind,
    pub(super) absence: Absence,
    /// Whether there can be several.
    pub(super) is_many: bool,
    /// Whether something may be wrong behind the values that are known: it stands in a body.
    pub(super) may_be_at_fault: bool,
    /// Whether a value may be too long to be known.
    pub(super) may_be_too_long: bool,
    /// Whether a value may be a truth value, or nothing that compares.
    pub(super) is_json: bool,
}

const UTF8: &str = r"(?:[\x00-\x7F]|[\xC2-\xDF][\x80-\xBF]|\xE0[\xA0-\xBF][\x80-\xBF]|[\xE1-\xEC\xEE\xEF][\x80-\xBF]{2}|\xED[\x80-\x9F][\x80-\xBF]|\xF0[\x90-\xBF][\x80-\xBF]{2}|[\xF1-\xF3][\x80-\xBF]{3}|\xF4[\x80-\x8F][\x80-\xBF]{2})*";
const ANY: &str = r"(?s-u:.)*";
const METHOD: &str = r"[!#$%&'*+.^_`|~0-9A-Z-]{1,32}";
/// Codes in a path are whole, and none is that of NUL.
const TARGET: &str = r#"(?x: (?: (?i:https?)://[A-Za-z0-9_~.:\[\]-]+ )?
    / (?: [!"$&->@-\[\]-~] | %(?:0[1-9A-Fa-f]|[1-9A-Fa-f][0-9A-Fa-f]) )* (?: \?[!"$-~]* )?
  | (?i:https?)://[A-Za-z0-9_~.:\[\]-]+ (?: \?[!"$-~]* )?
  | \* )"#;
/// Segments that are no dots, with codes of what is not unreserved (RFC 3986 section 2.3).
const PATH: &str = r#"(?x: \* | (?: / (?:
    (?: [!"$&-\-0->@-\[\]-~]         | %(?:0[1-9A-F]|1[0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF]|[89A-F][0-9A-F]) )
    (?: [!"$&-\-0->@-\[\]-~.]        | %(?:0[1-9A-F]|1[0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF]|[89A-F][0-9A-F]) )*
  | \. (?: [!"$&-\-0->@-\[\]-~]      | %(?:0[1-9A-F]|1[0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF]|[89A-F][0-9A-F]) )
    (?: [!"$&-\-0->@-\[\]-~.]        | %(?:0[1-9A-F]|1[0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF]|[89A-F][0-9A-F]) )*
  | \.\. (?: [!"$&-\-0->@-\[\]-~.]   | %(?:0[1-9A-F]|1[0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF]|[89A-F][0-9A-F]) )+
  )? )+ )"#;
const QUERY: &str = r#"[!"$-~]*"#;
const VISIBLE: &str = r"[!-~]+";
const FINGERPRINT: &str = r"[0-9a-f]{64}";
const ALPN: &str = r"(?s-u:.)+";
const HOST_NAME: &str = r"[a-z0-9._-]+";
const HEX: &str = r"(?:[0-9a-f]{2})+";
const NUMBER: &str = r"0|[1-9][0-9]{0,9}";
const BASE64: &str = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)";
/// No control but tab, and no blanks at the ends (RFC 9110 section 5.5).
const HEADER: &str = r"(?:[!-~\x80-\xFF](?:[\t -~\x80-\xFF]*[!-~\x80-\xFF])?)?";
/// A member of a list (RFC 9110 section 5.6.1): no comma but in quotes, which may be open at its end.
const MEMBER: &str = r#"(?x:
    (?: [!\#-+\--~\x80-\xFF] | "(?: [\t\x20!\#-\[\]-~\x80-\xFF] | \\[\t\x20-~\x80-\xFF] )*" )
    (?: [\t\x20!\#-+\--~\x80-\xFF] | "(?: [\t\x20!\#-\[\]-~\x80-\xFF] | \\[\t\x20-~\x80-\xFF] )*" )*
    (?: "(?: [\t\x20!\#-\[\]-~\x80-\xFF] | \\[\t\x20-~\x80-\xFF] )* \\? )?
  | "(?: [\t\x20!\#-\[\]-~\x80-\xFF] | \\[\t\x20-~\x80-\xFF] )* \\? )"#;
const COOKIE: &str = r"(?:[!-:<-~\x80-\xFF](?:[\t -:<-~\x80-\xFF]*[!-:<-~\x80-\xFF])?)?";
const MEDIA_TYPE: &str = r"[!-:<-@\[-~\x80-\xFF](?:[\t -:<-@\[-~\x80-\xFF]*[!-:<-@\[-~\x80-\xFF])?";
const PROTOCOL: &str = r"[!-+\--@\[-~\x80-\xFF](?:[\t -+\--@\[-~\x80-\xFF]*[!-+\--@\[-~\x80-\xFF])?";

impl Domain {
    /// Of a field of requests; what connections have that carry none is not among it.
    pub(super) fn of(field: &Field) -> Domain {
        use Absence::{Never, Odd, Usual};
        let whole = |min, max| Kind::Integer { min, max };
        let text = |pattern, nice| Kind::Text(Language::of(pattern, nice));
        match field {
            // A Unix socket has neither.
            Field::SrcIp | Field::DstIp | Field::ClientIp => Domain::one(Kind::Address, Odd),
            Field::SrcPort | Field::DstPort => Domain::one(whole(0, 0xffff), Odd),
            Field::Proto | Field::Scheme => Domain::one(Kind::Choice(&["http", "https"]), Never),
            Field::Version => Domain::one(Kind::Choice(&["1.1", "1.0", "2"]), Never),
            Field::Method => {
                let nice = &["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"];
                Domain::one(Kind::Text(Language { never: &["CONNECT"], ..Language::of(METHOD, nice) }), Never)
            }
            Field::Host => Domain::one(Kind::Text(hosts::HOST), Odd),
            Field::Url => Domain::one(text(TARGET, &["/", "/a", "/b"]), Never),
            // Few methods ask for `*`.
            Field::Path => Domain::one(text(PATH, &["/", "/a", "/b"]), Never),
            Field::Query => Domain::one(text(QUERY, &["a=1"]), Usual),
            Field::QueryParam(_) => Domain::many(text(ANY, &["a", "1"])),
            // There is one line at most.
            Field::Header(name) if &**name == "host" => Domain::one(Kind::Text(hosts::LINE), Odd),
            Field::Header(name) if is_list(name) => Domain::many(text(MEMBER, &["a", "1"])),
            Field::Header(_) => Domain::many(text(HEADER, &["a", "1"])),
            Field::Cookie(_) => Domain::many(text(COOKIE, &["a", "1"])),
            // A request may repeat the line.
            Field::ContentType => {
                Domain::many(text(MEDIA_TYPE, &["text/plain", "application/json", "application/xml"]))
            }
            Field::ContentLength => Domain::one(whole(0, u64::MAX), Usual),
            Field::Upgrade => Domain::many(text(PROTOCOL, &["websocket", "h2c"])),
            Field::TlsSni => Domain::one(Kind::Text(hosts::SERVER_NAME), Usual),
            Field::TlsVersion => Domain::one(Kind::Choice(&["1.3", "1.2"]), Usual),
            Field::TlsCipher => {
                let nice = &["TLS13_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"];
                Domain::one(text(VISIBLE, nice), Usual)
            }
            Field::TlsAlpn => Domain::one(text(ANY, &["http/1.1", "h2"]), Usual),
            Field::TlsResumed => Domain::one(Kind::Boolean, Usual),
            Field::TlsClientSubject => Domain::one(text(UTF8, &["CN=client"]), Usual),
            Field::TlsClientSan => Domain::many(text(UTF8, &["client.example"])),
            Field::TlsClientFingerprint => Domain::one(text(FINGERPRINT, &[]), Usual),
            Field::TlsClientCertificate => Domain::one(text(BASE64, &["MAA="]), Usual),
            Field::Proxy(value) => {
                let (pattern, nice) = match value {
                    ProxyValue::Alpn => (ALPN, &["h2"]),
                    ProxyValue::Authority => (HOST_NAME, &["a.example"]),
                    ProxyValue::UniqueId => (HEX, &["01"]),
                    ProxyValue::AwsVpceId => (VISIBLE, &["vpce-1"]),
                    ProxyValue::AzureLinkId => (NUMBER, &["1"]),
                };
                Domain::one(text(pattern, nice), Usual)
            }
            Field::Payload(payload) => {
                let is_size = payload.place == Place::Size;
                // One without a byte is no body.
                let kind = if is_size { whole(1, u64::MAX) } else { text(UTF8, &["a", "1"]) };
                Domain {
                    kind,
                    absence: Usual,
                    is_many: field.is_many_valued(),
                    may_be_at_fault: true,
                    may_be_too_long: !is_size,
                    is_json: field.may_be_boolean(),
                }
            }
        }
    }

    fn one(kind: Kind, absence: Absence) -> Domain {
        let is_many = false;
        Domain { kind, absence, is_many, may_be_at_fault: false, may_be_too_long: false, is_json: false }
    }

    fn many(kind: Kind) -> Domain {
        Domain { is_many: true, ..Domain::one(kind, Absence::Usual) }
    }
}
