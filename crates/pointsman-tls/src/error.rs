//! What can be wrong with the files behind TLS, for people.

use std::fmt;
use std::path::{Path, PathBuf};

/// Something that keeps the TLS of a listener or a pool from being built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    file: Option<PathBuf>,
    problem: Problem,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be read.
    Unreadable {
        /// What the system says.
        reason: String,
    },
    /// The file is larger than any certificate file should be.
    TooLarge {
        /// The limit.
        file_bytes_max: u64,
    },
    /// The file's PEM is broken.
    BrokenPem {
        /// In what way.
        reason: String,
    },
    /// No certificate in a file that should hold some.
    NoCertificate {
        /// What it holds instead, if anything was recognised.
        found: Option<String>,
    },
    /// No private key in a file that should hold one.
    NoKey {
        /// What it holds instead, if anything was recognised.
        found: Option<String>,
    },
    /// The private key is encrypted, and there is no passphrase.
    EncryptedKey,
    /// The private key is encrypted in OpenSSL's own old form.
    OldEncryptedKey,
    /// The private key is encrypted in a way that is not supported.
    UnknownEncryption,
    /// To decrypt the private key would take too much time or memory.
    CostlyKey,
    /// The passphrase does not open the private key.
    WrongPassphrase,
    /// The file of a passphrase begins with an empty line.
    NoPassphrase,
    /// A certificate cannot be used.
    BadCertificate {
        /// Which one of the file, from 1.
        position: usize,
        /// Why not.
        reason: String,
    },
    /// The private key is of a kind or size that is not supported.
    BadKey {
        /// The kind, if it is known.
        kind: Option<String>,
    },
    /// A certificate that is to be put in the place of another is of no use.
    Unfit {
        /// Why not.
        reason: String,
    },
    /// The key is not that of the leaf certificate.
    KeyMismatch {
        /// The file of the certificate; absent where it is none, but was sent.
        certificate: Option<PathBuf>,
    },
    /// No certificate was configured.
    NoCertificateConfigured,
    /// Client certificates are asked for, but no authority was configured.
    NoClientCa,
    /// A file of ticket keys is not what it should be.
    BadTicketKeys {
        /// In what way.
        reason: String,
    },
    /// The system's trusted authorities are wanted, and it has none.
    NoSystemAuthorities,
    /// The cryptographic library refuses the settings.
    Refused {
        /// What it says.
        reason: String,
    },
}

impl TlsError {
    pub(crate) fn new(file: &Path, problem: Problem) -> TlsError {
        TlsError { file: Some(file.to_owned()), problem }
    }

    pub(crate) fn without_file(problem: Problem) -> TlsError {
        TlsError { file: None, problem }
    }

    /// The same of a certificate that was sent to take the place of what stands in files, and of its key where that was
    /// sent with it.
    pub(crate) fn of_what_was_sent(mut self, is_key_sent: bool) -> TlsError {
        if let Problem::KeyMismatch { certificate, .. } = &mut self.problem {
            *certificate = None;
        }
        let is_of_key = matches!(
            self.problem,
            Problem::NoKey { .. }
                | Problem::EncryptedKey
                | Problem::OldEncryptedKey
                | Problem::UnknownEncryption
                | Problem::CostlyKey
                | Problem::WrongPassphrase
                | Problem::BadKey { .. }
                | Problem::KeyMismatch { .. }
        );
        TlsError { file: self.file.filter(|_| is_of_key && !is_key_sent), ..self }
    }

    /// The file that is wrong, if it is a file.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        Some(match &self.problem {
            Problem::Unreadable { .. } => {
                "paths are relative to the configuration file; the user that runs pointsman must be able to read it"
            }
            Problem::TooLarge { .. } => "name a PEM file with certificates or a key, nothing else",
            Problem::BrokenPem { .. } => {
                "each section is base64 between a line `-----BEGIN …-----` and a line `-----END …-----`"
            }
            Problem::NoCertificate { .. } => {
                "a certificate in PEM form starts with the line `-----BEGIN CERTIFICATE-----`"
            }
            Problem::NoKey { .. } => "a key in PEM form starts with the line `-----BEGIN PRIVATE KEY-----`",
            Problem::EncryptedKey | Problem::WrongPassphrase => {
                "set `key_passphrase_file` to a file whose first line is the passphrase, or decrypt the key with \
                 `openssl pkey -in KEY -out PLAIN` and protect the file by its permissions"
            }
            Problem::OldEncryptedKey | Problem::UnknownEncryption | Problem::CostlyKey => {
                "encrypt it anew with `openssl pkcs8 -topk8 -in KEY -out NEW`, or decrypt it with `openssl pkey -in KEY -out PLAIN`"
            }
            Problem::NoPassphrase => "write the passphrase on the first line of the file",
            Problem::BadCertificate { .. } => {
                "certificates must be of X.509 version 3; ask the authority for a new one"
            }
            Problem::Unfit { .. } => {
                "put the server's own certificate first, then the one that signed it, and so on, all of them valid now"
            }
            Problem::BadKey { kind: Some(kind) } if kind == "RSA-PSS" => {
                "make an ordinary RSA key (`openssl genpkey -algorithm RSA`) and have a certificate issued for it: TLS 1.3 signs with PSS all the same"
            }
            Problem::BadKey { .. } => {
                "keys may be ECDSA (P-256, P-384, P-521), Ed25519, or RSA of 2048 to 8192 bits"
            }
            Problem::KeyMismatch { .. } => {
                "compare `openssl pkey -in KEY -pubout` with `openssl x509 -in CERTIFICATE -noout -pubkey`"
            }
            Problem::NoCertificateConfigured => "set `certificate` and `key`",
            Problem::NoClientCa => "set `client_ca` to a PEM file of authorities, or `client_auth = \"off\"`",
            Problem::BadTicketKeys { .. } => {
                "each line is a key of 64 hex digits, as `openssl rand -hex 32` makes one; the first seals new tickets"
            }
            Problem::NoSystemAuthorities => {
                "install the system's certificates (`ca-certificates`), or set `ca` to a PEM file of authorities"
            }
            Problem::Refused { .. } => return None,
        })
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = Named(self.file.as_deref());
        match &self.problem {
            Problem::Unreadable { reason } => write!(f, "cannot read {file}: {reason}"),
            Problem::TooLarge { file_bytes_max } => {
                write!(f, "{file} is larger than {file_bytes_max} bytes")
            }
            Problem::BrokenPem { reason } => write!(f, "{file} is not valid PEM: {reason}"),
            Problem::NoCertificate { found } => {
                write!(f, "{file} holds no certificate{}", Found(found))
            }
            Problem::NoKey { found } => write!(f, "{file} holds no private key{}", Found(found)),
            Problem::EncryptedKey => write!(f, "the private key in {file} is encrypted"),
            Problem::OldEncryptedKey => {
                write!(
                    f,
                    "the private key in {file} is encrypted in the old form of OpenSSL (`Proc-Type`), which is not supported"
                )
            }
            Problem::UnknownEncryption => {
                write!(
                    f,
                    "the private key in {file} is encrypted by a scheme that is not supported: PBES2 with AES is"
                )
            }
            Problem::CostlyKey => {
                write!(f, "the private key in {file} takes too much time or memory to decrypt")
            }
            Problem::WrongPassphrase => {
                write!(f, "the passphrase does not open the private key in {file}")
            }
            Problem::NoPassphrase => {
                write!(f, "{file} begins with an empty line, and a passphrase is expected")
            }
            Problem::BadCertificate { position, reason } => {
                write!(f, "certificate {position} in {file} cannot be used: {reason}")
            }
            Problem::Unfit { reason } => f.write_str(reason),
            Problem::BadKey { kind: Some(kind) } => {
                write!(
                    f,
                    "the private key in {file} is of the kind {kind}, which the TLS library does not support"
                )
            }
            Problem::BadKey { kind: None } => {
                write!(f, "the private key in {file} is broken, or of a kind that is not supported")
            }
            Problem::KeyMismatch { certificate } => {
                let certificate = Part("certificate", certificate.as_deref());
                write!(f, "{} does not belong to {certificate}", Part("key", self.file.as_deref()))
            }
            Problem::NoCertificateConfigured => f.write_str("no certificate is configured"),
            Problem::NoClientCa => {
                f.write_str("client certificates are asked for, but no authority is configured")
            }
            Problem::BadTicketKeys { reason } => write!(f, "{file} holds no good ticket keys: {reason}"),
            Problem::NoSystemAuthorities => f.write_str("this system has no trusted authorities"),
            Problem::Refused { reason } => write!(f, "these settings cannot be used: {reason}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// A file, or what has come instead of one.
struct Named<'a>(Option<&'a Path>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(file) => write!(f, "`{}`", file.display()),
            None => f.write_str("what was sent"),
        }
    }
}

/// A certificate or a key that is all that its file is about, or that was sent.
struct Part<'a>(&'static str, Option<&'a Path>);

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(file) => write!(f, "the {} `{}`", self.0, file.display()),
            None => write!(f, "the {} that was sent", self.0),
        }
    }
}

/// What a file holds instead, in parentheses.
struct Found<'a>(&'a Option<String>);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(found) => write!(f, " (found {found})"),
            None => Ok(()),
        }
    }
}
