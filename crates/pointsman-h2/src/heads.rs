//! Heads from one version to the other, without a connection: for whoever checks what holds for any of them.

use h2::ext::Protocol;
use http::header::{CONNECTION, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, uri};
use pointsman_http::Framing as Http1Framing;

use crate::incoming::Framing;
use crate::{Oddity, answer, request, server_stream};

/// Names and values.
pub type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A request's head as its frames say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `:method`
    pub method: Vec<u8>,
    /// `:path`
    pub path: Option<Vec<u8>>,
    /// `:authority`
    pub authority: Option<Vec<u8>>,
    /// `:protocol`
    pub protocol: Option<String>,
    /// What is no pseudo-header.
    pub fields: Fields,
}

/// The head of the request that a stream's reads as, how its body is framed, and what is odd about it. `None`: the
/// frame reader refuses it.
pub fn request_as_http1(asked: &Asked, has_body: bool) -> Option<(Vec<u8>, Http1Framing, Option<Oddity>)> {
    let mut parts = uri::Parts::default();
    if let Some(authority) = &asked.authority {
        parts.authority = Some(Authority::try_from(&authority[..]).ok()?);
        parts.scheme = asked.path.is_some().then_some(Scheme::HTTPS);
    }
    if let Some(path) = &asked.path {
        parts.path_and_query = Some(PathAndQuery::try_from(&path[..]).ok()?);
    }
    let mut asks = Request::new(());
    *asks.method_mut() = Method::from_bytes(&asked.method).ok()?;
    *asks.uri_mut() = Uri::from_parts(parts).ok()?;
    *asks.headers_mut() = read_fields(&asked.fields)?;
    if let Some(protocol) = &asked.protocol {
        asks.extensions_mut().insert(Protocol::from(&**protocol));
    }
    let (parts, ()) = asks.into_parts();
    let mut head = Vec::new();
    let (framing, oddity) = request::write_head(&parts, has_body, &mut head);
    debug_assert!(head.len() <= request::bytes_max(&parts), "{} bytes", head.len());
    let framing = match framing {
        Framing::Not | Framing::Raw => Http1Framing::None,
        Framing::Length(bytes) => Http1Framing::Length(bytes),
        Framing::Chunks => Http1Framing::Chunked,
    };
    Some((head, framing, oddity))
}

/// A request of HTTP/1.1 as it goes to a server of HTTP/2, and how its body is framed. `None`: it cannot.
pub fn request_as_http2(head: &[u8]) -> Option<(Asked, Http1Framing)> {
    let (asks, framing, _) = server_stream::read_head(head, true)?;
    let (parts, ()) = asks.into_parts();
    let text = |text: &str| text.as_bytes().to_vec();
    let asked = Asked {
        method: text(parts.method.as_str()),
        path: parts.uri.path_and_query().map(|path| text(path.as_str())),
        authority: parts.uri.authority().map(|authority| text(authority.as_str())),
        protocol: None,
        fields: as_read(&parts.headers),
    };
    Some((asked, framing))
}

/// The head of an answer that a server's stream reads as. `None`: it is refused before.
pub fn answer_as_http1(status: u16, fields: &Fields, has_length: bool) -> Option<Vec<u8>> {
    let (status, fields) = (StatusCode::from_u16(status).ok()?, read_fields(fields)?);
    let framing = if has_length { Framing::Not } else { Framing::Chunks };
    let mut head = Vec::new();
    server_stream::write_head(status, &fields, framing, &mut head).ok()?;
    Some(head)
}

/// An answer of HTTP/1.1 as it goes to a client of HTTP/2: its status, its fields, and how many bytes it was. `None`:
/// it cannot.
pub fn answer_as_http2(head: &[u8]) -> Option<(u16, Fields, usize)> {
    let (answer, used) = answer::read_head(head)?;
    Some((answer.status().as_u16(), as_read(answer.headers()), used))
}

/// As the frame reader takes fields: it refuses what is about a connection (RFC 9113 section 8.2.2).
fn read_fields(fields: &Fields) -> Option<HeaderMap> {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_lowercase(name).ok()?;
        let is_of_connection = [CONNECTION, TRANSFER_ENCODING, UPGRADE].contains(&name)
            || matches!(name.as_str(), "keep-alive" | "proxy-connection");
        if is_of_connection || name == TE && value != b"trailers" {
            return None;
        }
        map.append(name, HeaderValue::from_bytes(value).ok()?);
    }
    Some(map)
}

fn as_read(fields: &HeaderMap) -> Fields {
    fields
        .iter()
        .map(|(name, value)| (name.as_str().as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect()
}
