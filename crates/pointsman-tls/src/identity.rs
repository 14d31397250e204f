//! Who a client certificate says its holder is.

use std::fmt::Write;
use std::net::IpAddr;

use aws_lc_rs::digest;
use base64::prelude::{BASE64_STANDARD, Engine};
use rustls::pki_types::CertificateDer;
use x509_parser::asn1_rs::{Any, Tag, ToDer};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate, X509Name};
use x509_parser::x509::AttributeTypeAndValue;

/// A verified client certificate's holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The subject as RFC 4514 writes it: most specific part first, as in `CN=shop,O=Example`.
    pub subject: String,
    /// The alternative names: DNS names in lower case, addresses, mail addresses and URIs.
    ///
    /// The kinds cannot be mistaken for one another by their text: a name that does not have the shape of
    /// its kind (a "DNS name" with a colon, a "URI" that reads as an address) is left out.
    pub sans: Vec<String>,
    /// SHA-256 of the certificate's DER form, in lower-case hex.
    pub fingerprint: String,
    /// The certificate in base64 of its DER.
    pub certificate: String,
}

impl ClientIdentity {
    /// Reads a certificate. `None` when it cannot be read, although it verified: then nobody can say who it
    /// is, and the connection must not go on.
    pub(crate) fn of(der: &CertificateDer<'_>) -> Option<ClientIdentity> {
        let (rest, certificate) = X509Certificate::from_der(der).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let names = certificate.subject_alternative_name().ok()?;
        let sans = names
            .iter()
            .flat_map(|extension| &extension.value.general_names)
            .filter_map(alternative_name)
            .collect();
        Some(ClientIdentity {
            subject: rfc4514(certificate.subject()),
            sans,
            fingerprint: fingerprint(der),
            certificate: BASE64_STANDARD.encode(der),
        })
    }
}

fn alternative_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => dns_name(name),
        GeneralName::IPAddress(octets) => match octets.len() {
            4 => Some(IpAddr::from(<[u8; 4]>::try_from(*octets).ok()?).to_string()),
            16 => Some(IpAddr::from(<[u8; 16]>::try_from(*octets).ok()?).to_string()),
            _ => None,
        },
        GeneralName::RFC822Name(mail) => {
            (mail.contains('@') && !mail.contains(':') && printable(mail)).then(|| (*mail).to_owned())
        }
        GeneralName::URI(uri) => {
            let (scheme, _) = uri.split_once(':')?;
            let is_uri = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
                && uri.parse::<IpAddr>().is_err();
            (is_uri && printable(uri)).then(|| (*uri).to_owned())
        }
        _ => None,
    }
}

/// A DNS name of a certificate in lower case, wildcards included, if it has the shape of one.
pub(crate) fn dns_name(name: &str) -> Option<String> {
    let well_formed = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.*".contains(&byte))
        && name.parse::<IpAddr>().is_err();
    well_formed.then(|| name.to_ascii_lowercase())
}

fn printable(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A name as RFC 4514 writes it: parts in reverse order, joined by commas.
pub(crate) fn rfc4514(name: &X509Name<'_>) -> String {
    let parts: Vec<_> = name.iter_rdn().collect();
    let mut out = String::new();
    for (index, part) in parts.iter().rev().enumerate() {
        if index > 0 {
            out.push(',');
        }
        for (index, attribute) in part.iter().enumerate() {
            if index > 0 {
                out.push('+');
            }
            push_attribute(&mut out, attribute);
        }
    }
    out
}

fn push_attribute(out: &mut String, attribute: &AttributeTypeAndValue<'_>) {
    let oid = attribute.attr_type().to_id_string();
    let value = attribute.attr_value();
    match (short_name(&oid), text(value)) {
        (Some(name), Some(text)) => {
            out.push_str(name);
            out.push('=');
            push_escaped(out, &text);
        }
        // RFC 4514, section 2.4: a type without a name, or a value that is no string, is written as
        // numbers, with the value's encoding in hex.
        (name, _) => {
            out.push_str(name.unwrap_or(&oid));
            out.push_str("=#");
            out.push_str(&hex(&value.to_der_vec().unwrap_or_default()));
        }
    }
}

/// RFC 4514's own names, and the two that certificates use beyond them.
fn short_name(oid: &str) -> Option<&'static str> {
    Some(match oid {
        "2.5.4.3" => "CN",
        "2.5.4.5" => "serialNumber",
        "2.5.4.6" => "C",
        "2.5.4.7" => "L",
        "2.5.4.8" => "ST",
        "2.5.4.9" => "STREET",
        "2.5.4.10" => "O",
        "2.5.4.11" => "OU",
        "0.9.2342.19200300.100.1.1" => "UID",
        "0.9.2342.19200300.100.1.25" => "DC",
        "1.2.840.113549.1.9.1" => "emailAddress",
        _ => return None,
    })
}

/// The characters of any of ASN.1's string types that X.509 allows in names.
fn text(value: &Any<'_>) -> Option<String> {
    let bytes = value.data;
    match value.tag() {
        Tag::Utf8String | Tag::NumericString | Tag::PrintableString | Tag::Ia5String => {
            String::from_utf8(bytes.to_vec()).ok()
        }
        // Defined as T.61, used as Latin-1 by everyone.
        Tag::TeletexString => Some(bytes.iter().map(|&byte| char::from(byte)).collect()),
        Tag::BmpString => {
            let (units, rest) = bytes.as_chunks::<2>();
            let units: Vec<u16> = units.iter().map(|&unit| u16::from_be_bytes(unit)).collect();
            String::from_utf16(&units).ok().filter(|_| rest.is_empty())
        }
        Tag::UniversalString => {
            let (units, rest) = bytes.as_chunks::<4>();
            let text: Option<String> =
                units.iter().map(|&unit| char::from_u32(u32::from_be_bytes(unit))).collect();
            text.filter(|_| rest.is_empty())
        }
        _ => None,
    }
}

/// A value with RFC 4514's escapes. Control characters are escaped too, which the RFC allows: a subject
/// goes into rules and logs.
fn push_escaped(out: &mut String, text: &str) {
    let last = text.chars().count().saturating_sub(1);
    for (index, character) in text.chars().enumerate() {
        match character {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            '#' if index == 0 => out.push_str("\\#"),
            ' ' if index == 0 || index == last => out.push_str("\\ "),
            control if control.is_control() => {
                let mut bytes = [0; 4];
                for byte in control.encode_utf8(&mut bytes).bytes() {
                    write!(out, "\\{byte:02x}").expect("a string takes all text");
                }
            }
            other => out.push(other),
        }
    }
}

/// SHA-256 of a certificate, in lower-case hex: no other one has it.
pub(crate) fn fingerprint(der: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, der).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out
}
