//! A witness for people, and for `pointsman explain`.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv4Addr;

use pointsman_http::{HeadLimits, RequestHead};
use pointsman_rules::ProxyValue;
use pointsman_view::{Connection, Proxied, ProxyFacts, TlsFacts};

use super::connection::{server_name, usual_client};
use super::sender::{CLIENT_PORT, usual_destination};
use super::{AgreedTls, HttpVersion, Padding, Setting, Witness};

/// What `pointsman explain` is to be told besides the request, to see what the rules saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExplainOptions {
    /// Its options, as words of a command line.
    pub words: Vec<String>,
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
        if let Some(listener) = &setting.listener {
            options.add_unless(false, "--listener", listener);
        }
        let Connection { src, dst, proxied, tls } = &self.connection;
        if src.is_none() && setting.takes_addresses {
            options.add_unless(false, "--srcip", "unix:");
        }
        if let Some(src) = src {
            options.add_unless(src.ip() == Ipv4Addr::LOCALHOST, "--srcip", src.ip());
            options.add_unless(src.port() == CLIENT_PORT, "--srcport", src.port());
        }
        if let Some(ProxyFacts { client, values }) = proxied.as_deref() {
            if let Proxied::Client(client) = client {
                options.add_unless(false, "--proxied", client.ip());
            }
            for (value, name) in ProxyValue::ALL {
                if let Some(text) = values.text(value) {
                    options.add_unless(
                        false,
                        "--proxy-value",
                        format!("{name}={}", String::from_utf8_lossy(&text)),
                    );
                }
            }
        }
        if let Some(dst) = dst {
            let bind = setting.binds.first().copied();
            let usual = usual_destination(bind, Ipv4Addr::LOCALHOST.into(), tls.is_some());
            options.add_unless(dst.ip() == usual.ip(), "--dstip", dst.ip());
            options.add_unless(dst.port() == usual.port(), "--dstport", dst.port());
        }
        if let Some(tls) = tls.as_deref() {
            self.add_handshake(tls, setting, &mut options);
        }
        if let Some(proxy) = self.proxy {
            options.add_unless(false, "--trusted-proxy", proxy);
        }
        options
    }

    /// What a handshake comes to, as far as it is not what `explain` takes for it where nothing is said.
    fn add_handshake(&self, tls: &TlsFacts, setting: &Setting, options: &mut ExplainOptions) {
        let is_usual = setting.speaks_tls == Some(true) && tls.version == "1.3";
        options.add_unless(is_usual, "--tls", tls.version);
        let is_of_version = |usual: &AgreedTls| usual.version == tls.version;
        let http2 = |http| (http == HttpVersion::Http2) == self.is_of_http2;
        let agreements = setting.agreements().filter(|agreed| http2(agreed.http));
        let usual = agreements.filter_map(|agreed| agreed.tls).find(is_of_version);
        let name = self.host_name();
        options.add_unless(tls.sni == name, "--sni", tls.sni.as_deref().unwrap_or_default());
        let usual_cipher = usual.map(|usual| usual.cipher);
        options.add_unless(usual_cipher == Some(tls.cipher), "--cipher", tls.cipher);
        let usual_alpn = usual.and_then(|usual| usual.alpn).unwrap_or_default();
        let alpn = String::from_utf8_lossy(tls.alpn.as_deref().unwrap_or_default());
        options.add_unless(alpn == usual_alpn, "--alpn", alpn);
        if tls.resumed {
            options.words.push("--resumed".to_owned());
        }
        if let Some(client) = &tls.client {
            let (usual, is_usual) = (usual_client(), usual.is_some_and(|usual| usual.has_client));
            let says_more = client.fingerprint != usual.fingerprint
                || client.certificate != usual.certificate
                || !client.sans.is_empty();
            let is_said = client.subject == usual.subject && (is_usual || says_more);
            options.add_unless(is_said, "--client-subject", &client.subject);
            for name in &client.sans {
                options.add_unless(false, "--client-san", name);
            }
            options.add_unless(
                client.fingerprint == usual.fingerprint,
                "--client-fingerprint",
                &client.fingerprint,
            );
            options.add_unless(
                client.certificate == usual.certificate,
                "--client-certificate",
                &client.certificate,
            );
        }
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
        server_name(head.authority(&self.bytes))
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
    /// As they are typed in a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, word) in self.words.iter().enumerate() {
            let separator = if at > 0 { " " } else { "" };
            write!(f, "{separator}{}", typed(word))?;
        }
        Ok(())
    }
}

/// A word as POSIX shells read it: `$'…'` (POSIX.1-2024, section 2.2.4) where something in it cannot be typed.
fn typed(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,:/=@+%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.into();
    }
    if !word.chars().any(char::is_control) {
        return format!("'{}'", word.replace('\'', r"'\''")).into();
    }
    let mut text = String::from("$'");
    for character in word.chars() {
        match character {
            '\\' | '\'' => text.extend(['\\', character]),
            character if character.is_control() => {
                let mut bytes = [0; 4];
                let bytes = character.encode_utf8(&mut bytes).bytes();
                text.extend(bytes.map(|byte| format!("\\{byte:03o}")));
            }
            character => text.push(character),
        }
    }
    text.push('\'');
    text.into()
}

impl fmt::Display for Padding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Padding { byte, bytes } = self;
        match byte {
            b' ' => write!(f, "… and {bytes} spaces more"),
            byte => write!(f, "… and {bytes} times `{}` more", byte.escape_ascii()),
        }
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
