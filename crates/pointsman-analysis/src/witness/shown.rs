//! A witness for people, and for `pointsman explain`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use pointsman_http::{HeadLimits, RequestHead};
use pointsman_rules::Field;
use pointsman_view::{Connection, HOST_BYTES_MAX, Proxied, normal_host};

use super::connection::{CLIENT_PORT, usual_destination, usual_protocol};
use super::{Setting, Witness};

/// What `pointsman explain` is to be told besides the request, to see what the rules saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExplainOptions {
    /// Its options, as words of a command line.
    pub words: Vec<String>,
    /// Fields whose values no option says.
    pub unsaid: Vec<Field>,
}

impl Witness {
    /// The request as bytes, as `pointsman explain` reads it: as HTTP/1.1 writes it, and of HTTP/2 where its first line ends
    /// in `HTTP/2`.
    #[must_use]
    pub fn request(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let line_end = bytes.iter().position(|byte| *byte == b'\r').unwrap_or_default();
        if let Some(start) = line_end.checked_sub(b"1.1".len()).filter(|_| self.is_of_http2) {
            bytes.splice(start..line_end, *b"2");
        }
        bytes
    }

    /// What is to be said of its connection where a listener is as `setting` says.
    #[must_use]
    pub fn explain_options(&self, setting: &Setting) -> ExplainOptions {
        let mut options = ExplainOptions::default();
        let Connection { src, dst, proxied, tls } = &self.connection;
        let usual_port = if tls.is_some() { 443 } else { 80 };
        if let Some(src) = src {
            options.add_unless(src.ip() == Ipv4Addr::LOCALHOST, "--srcip", src.ip());
            options.add_unless(src.port() == CLIENT_PORT, "--srcport", src.port());
        }
        if let Some(Proxied::Client(client)) = proxied.as_deref() {
            options.add_unless(false, "--proxied", client.ip());
        }
        if let Some(dst) = dst {
            let bound = setting.bind.filter(|bind| bind.port() != 0);
            let usual_ip = usual_destination(Ipv4Addr::LOCALHOST.into(), setting);
            options.add_unless(dst.ip() == usual_ip, "--dstip", dst.ip());
            let usual_port = bound.map_or(usual_port, |bound| bound.port());
            options.add_unless(dst.port() == usual_port, "--dstport", dst.port());
        }
        if let Some(tls) = tls.as_deref() {
            options.add_unless(
                setting.speaks_tls == Some(true) && tls.version == "1.3",
                "--tls",
                tls.version,
            );
            let name = self.host_name();
            options.add_unless(tls.sni == name, "--sni", tls.sni.as_deref().unwrap_or_default());
            let usual_suite = match tls.version {
                "1.2" => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
                _ => "TLS_AES_256_GCM_SHA384",
            };
            let unsaid = [
                (Field::TlsCipher, tls.cipher != usual_suite),
                (Field::TlsAlpn, tls.alpn.as_deref() != Some(usual_protocol(self.is_of_http2))),
                (Field::TlsResumed, tls.resumed),
                (Field::TlsClientSubject, tls.client.is_some()),
                (Field::TlsClientSan, tls.client.as_ref().is_some_and(|client| !client.sans.is_empty())),
                (Field::TlsClientFingerprint, tls.client.is_some()),
            ];
            options.unsaid =
                unsaid.into_iter().filter(|(_, is_unsaid)| *is_unsaid).map(|(field, _)| field).collect();
        }
        if let Some(proxy) = self.proxy {
            options.add_unless(false, "--trusted-proxy", proxy);
        }
        options
    }

    /// The host as `explain` takes it for the name in a handshake.
    fn host_name(&self) -> Option<String> {
        let mut head = RequestHead::default();
        let limits = HeadLimits {
            head_bytes_max: self.bytes.len() + 1,
            target_bytes_max: self.bytes.len(),
            ..HeadLimits::default()
        };
        head.parse(&self.bytes, &limits).ok()?;
        let mut scratch = [0; HOST_BYTES_MAX];
        let host = normal_host(head.authority(&self.bytes), &mut scratch)?;
        let host = std::str::from_utf8(host).ok()?;
        let is_address = host.starts_with('[') || host.parse::<IpAddr>().is_ok();
        (!is_address).then(|| host.to_owned())
    }
}

impl ExplainOptions {
    fn add_unless(&mut self, is_usual: bool, option: &str, value: impl ToString) {
        if !is_usual {
            self.words.extend([option.to_owned(), value.to_string()]);
        }
    }
}

impl fmt::Display for ExplainOptions {
    /// As they are typed: no value needs quotes but one that is empty.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, word) in self.words.iter().enumerate() {
            let separator = if at > 0 { " " } else { "" };
            let word = if word.is_empty() { "''" } else { word };
            write!(f, "{separator}{word}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Witness {
    /// The request, line by line. What is no text is escaped as in a Rust string: it cannot be typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = self.request();
        for chunk in request.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    '\r' => {}
                    '\n' | '\t' => write!(f, "{character}")?,
                    character if character.is_control() => write!(f, "{}", character.escape_default())?,
                    character => write!(f, "{character}")?,
                }
            }
            write!(f, "{}", chunk.invalid().escape_ascii())?;
        }
        Ok(())
    }
}
