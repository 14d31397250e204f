//! What `explain` is told of a TLS handshake, and what it comes to at a listener.

use std::str::FromStr;

use lexopt::{Parser, ValueExt};
use pointsman_analysis::{
    HttpVersion, NeverAgreed, Setting, is_certificate, is_fingerprint, is_server_name, usual_client,
};
use pointsman_http::Version;
use pointsman_rules::{Field, OwnedValue};
use pointsman_tls::{HELLO_PROTOCOLS_BYTES_MAX, HELLO_PROTOCOLS_MAX, is_dns_name, without_last_dot};
use pointsman_view::{HelloFacts, TlsClient, TlsFacts};

use super::options::value;

/// What is said of a handshake; nothing of what is not said.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    /// `1.2` or `1.3`; of a connection without a request from `1.0` on.
    version: Option<&'static str>,
    cipher: Option<String>,
    /// Empty: the client named no server.
    sni: Option<String>,
    /// What a ClientHello offers, best first; with a request what was agreed on, empty where nothing was.
    alpn: Vec<Vec<u8>>,
    resumed: bool,
    subject: Option<String>,
    sans: Vec<String>,
    fingerprint: Option<String>,
    certificate: Option<String>,
}

/// Whether a word is the name of an option of these.
pub(super) fn is_option(name: &str) -> bool {
    matches!(
        name,
        "tls"
            | "cipher"
            | "sni"
            | "alpn"
            | "resumed"
            | "client-subject"
            | "client-san"
            | "client-fingerprint"
            | "client-certificate"
    )
}

impl Handshake {
    /// Reads the value of an option.
    pub(super) fn read(&mut self, name: &str, parser: &mut Parser) -> Result<(), lexopt::Error> {
        match name {
            "tls" => self.version = Some(value::<TlsVersion>(parser, "--tls", "`1.2` or `1.3`")?.0),
            "cipher" => self.cipher = Some(parser.value()?.string()?),
            "sni" => {
                let name = parser.value()?.string()?.to_ascii_lowercase();
                self.sni = Some(without_last_dot(&name).to_owned());
            }
            "alpn" => self.alpn.push(value::<AlpnName>(parser, "--alpn", ALPN_NAME)?.0),
            "client-subject" => self.subject = Some(parser.value()?.string()?),
            "client-san" => self.sans.push(parser.value()?.string()?),
            "client-fingerprint" => {
                self.fingerprint = Some(value::<Fingerprint>(parser, "--client-fingerprint", FINGERPRINT)?.0);
            }
            "client-certificate" => {
                self.certificate = Some(value::<Certificate>(parser, "--client-certificate", CERTIFICATE)?.0);
            }
            _ => self.resumed = true,
        }
        Ok(())
    }

    /// The first option of these that is given.
    pub(super) fn first_said(&self) -> Option<&'static str> {
        let of_hellos = [
            ("--tls", self.version.is_some()),
            ("--sni", self.sni.is_some()),
            ("--alpn", !self.alpn.is_empty()),
        ];
        let said = of_hellos.into_iter().find(|(_, is_said)| *is_said).map(|(option, _)| option);
        said.or_else(|| self.first_of_requests())
    }

    /// The first that says what only comes of a whole handshake, as a listener of requests has it.
    pub(super) fn first_of_requests(&self) -> Option<&'static str> {
        match () {
            () if self.cipher.is_some() => Some("--cipher"),
            () if self.resumed => Some("--resumed"),
            () => self.first_of_client(),
        }
    }

    pub(super) fn is_unsaid(&self) -> bool {
        self.first_said().is_none()
    }

    /// Whether a ClientHello can be as it is said.
    pub(super) fn check_hello(&self) -> Result<(), lexopt::Error> {
        if self.alpn.iter().any(Vec::is_empty) {
            return Err(format!("`--alpn` takes {ALPN_NAME}, not ``").into());
        }
        let list_bytes: usize = self.alpn.iter().map(|name| name.len() + 1).sum();
        if self.alpn.len() > HELLO_PROTOCOLS_MAX || list_bytes > HELLO_PROTOCOLS_BYTES_MAX {
            let most = format!("{HELLO_PROTOCOLS_MAX} protocols in {HELLO_PROTOCOLS_BYTES_MAX} bytes");
            return Err(format!("a hello offers at most {most}, and `--alpn` says more").into());
        }
        self.check_sni(|name| is_dns_name(name.as_bytes()))
    }

    fn check_sni(&self, is_name: impl Fn(&str) -> bool) -> Result<(), lexopt::Error> {
        match self.sni.as_deref() {
            Some(name) if !name.is_empty() && !is_name(name) => {
                Err(format!("`--sni` takes a name such as `shop.example`, not `{name}`").into())
            }
            _ => Ok(()),
        }
    }

    /// Whether a request can come over what is said.
    pub(super) fn check_agreed(&self) -> Result<(), lexopt::Error> {
        if self.alpn.len() > 1 {
            return Err("over TLS one protocol is agreed on, and `--alpn` is given several times".into());
        }
        match self.version {
            Some(version @ ("1.0" | "1.1")) => {
                Err(format!("`--tls` takes `1.2` or `1.3`, not `{version}`").into())
            }
            _ => self.check_sni(is_server_name),
        }
    }

    /// The hello of a connection whose requests nobody reads.
    pub(super) fn hello(&self) -> HelloFacts {
        HelloFacts {
            sni: self.sni.clone().filter(|name| !name.is_empty()),
            alpn: self.alpn.clone(),
            version: self.version.or(Some("1.3")),
        }
    }

    /// What is agreed on with whoever sends a request of this version, as far as it is said, and as is usual; nothing on a
    /// plain connection. The error is a text for people: it never comes to that.
    pub(super) fn agreed(
        &self,
        setting: &Setting,
        version: Version,
        host_name: impl FnOnce() -> Option<String>,
    ) -> Result<Option<TlsFacts>, String> {
        if setting.speaks_tls != Some(true) && self.is_unsaid() {
            return Ok(None);
        }
        let http = match version {
            Version::Http10 => HttpVersion::Http10,
            Version::Http11 => HttpVersion::Http11,
            Version::Http2 => HttpVersion::Http2,
        };
        let text = |text: &str| vec![OwnedValue::Text(text.as_bytes().into())];
        let mut said = vec![(Field::Scheme, text("https")), (Field::Version, text(http.word()))];
        let before = said.len();
        let wishes = self.wishes();
        said.extend(wishes.iter().map(|wish| (wish.field.clone(), wish.values.clone())));
        let agreed = setting.agreed(&said).map_err(|never| {
            let wish = never.at.checked_sub(before).and_then(|place| wishes.get(place));
            wish.map_or_else(
                || {
                    let http = http.word();
                    format!(
                        "error: no request of HTTP/{http} comes over TLS to the listener{}\n",
                        named(setting)
                    )
                },
                |wish| wish.never(&never, setting),
            )
        })?;
        let sni = self.sni.clone().or_else(host_name).filter(|name| !name.is_empty());
        Ok(agreed.tls.map(|tls| tls.facts(sni, || self.client())))
    }

    /// What is said, option by option, as what it asks of what is agreed on.
    fn wishes(&self) -> Vec<Wish> {
        let texts = |texts: &[&[u8]]| texts.iter().map(|text| OwnedValue::Text((*text).into())).collect();
        let mut wishes = Vec::new();
        if let Some(version) = self.version {
            wishes.push(Wish::new("--tls", version, Field::TlsVersion, texts(&[version.as_bytes()])));
        }
        if let Some(cipher) = &self.cipher {
            wishes.push(Wish::new("--cipher", cipher, Field::TlsCipher, texts(&[cipher.as_bytes()])));
        }
        if let Some(alpn) = self.alpn.first() {
            let values = if alpn.is_empty() { Vec::new() } else { texts(&[alpn]) };
            wishes.push(Wish::new("--alpn", &String::from_utf8_lossy(alpn), Field::TlsAlpn, values));
        }
        if self.resumed {
            wishes.push(Wish::new("--resumed", "", Field::TlsResumed, vec![OwnedValue::Boolean(true)]));
        }
        if let Some(option) = self.first_of_client() {
            let client = self.client();
            wishes.push(Wish::new(option, "", Field::TlsClientSubject, texts(&[client.subject.as_bytes()])));
        }
        wishes
    }

    fn first_of_client(&self) -> Option<&'static str> {
        let said = [
            ("--client-subject", self.subject.is_some()),
            ("--client-san", !self.sans.is_empty()),
            ("--client-fingerprint", self.fingerprint.is_some()),
            ("--client-certificate", self.certificate.is_some()),
        ];
        said.into_iter().find(|(_, is_said)| *is_said).map(|(option, _)| option)
    }

    /// The holder of the certificate that is shown.
    fn client(&self) -> TlsClient {
        let usual = usual_client();
        TlsClient {
            subject: self.subject.clone().unwrap_or(usual.subject),
            sans: self.sans.clone(),
            fingerprint: self.fingerprint.clone().unwrap_or(usual.fingerprint),
            certificate: self.certificate.clone().unwrap_or(usual.certificate),
        }
    }
}

/// What an option asks: values of a field.
struct Wish {
    option: &'static str,
    said: String,
    field: Field,
    values: Vec<OwnedValue>,
}

impl Wish {
    fn new(option: &'static str, value: &str, field: Field, values: Vec<OwnedValue>) -> Wish {
        let said = if value.is_empty() { option.to_owned() } else { format!("{option} {value}") };
        Wish { option, said, field, values }
    }

    /// Why it does not come to that.
    fn never(&self, never: &NeverAgreed, setting: &Setting) -> String {
        let instead = never.instead.iter().map(|values| match values.as_slice() {
            [OwnedValue::Text(text)] => format!("`{}`", String::from_utf8_lossy(text)),
            _ => "''".to_owned(),
        });
        let instead = instead.collect::<Vec<_>>().join(", ");
        let why = match self.option {
            "--tls" => "its `min_version` is `1.3`".to_owned(),
            "--cipher" => format!("it agrees on {instead}"),
            "--alpn" => format!("for such a request it agrees on {instead}"),
            "--resumed" => "its `tickets` is `false`".to_owned(),
            _ => "its `client_auth` is `off`".to_owned(),
        };
        let at = named(setting);
        format!(
            "error: `{}` says what never comes to the listener{at}: {why}\nhelp: leave it out\n",
            self.said
        )
    }
}

/// ` `shop``, where the setting is that of a listener.
fn named(setting: &Setting) -> String {
    let name = setting.listener.as_ref().filter(|name| !name.is_empty());
    name.map(|name| format!(" `{name}`")).unwrap_or_default()
}

const ALPN_NAME: &str = "a protocol such as `h2`, of 1 to 255 bytes";
const FINGERPRINT: &str = "a SHA-256 of 64 digits in lower-case hex";
const CERTIFICATE: &str = "a certificate in base64 of its DER";

struct TlsVersion(&'static str);

impl FromStr for TlsVersion {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "1.0" => Ok(TlsVersion("1.0")),
            "1.1" => Ok(TlsVersion("1.1")),
            "1.2" => Ok(TlsVersion("1.2")),
            "1.3" => Ok(TlsVersion("1.3")),
            _ => Err(()),
        }
    }
}

/// A protocol as ALPN names it (RFC 7301 section 3.1); empty for none.
struct AlpnName(Vec<u8>);

impl FromStr for AlpnName {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        (name.len() <= 255).then(|| AlpnName(name.into())).ok_or(())
    }
}

/// As `tls.client.fingerprint` has it.
struct Fingerprint(String);

impl FromStr for Fingerprint {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        is_fingerprint(text).then(|| Fingerprint(text.to_owned())).ok_or(())
    }
}

/// As `tls.client.certificate` has it.
struct Certificate(String);

impl FromStr for Certificate {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        is_certificate(text).then(|| Certificate(text.to_owned())).ok_or(())
    }
}
