//! What is taken for a server's certificate.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};

use crate::certificate::parse;
use crate::error::{Problem, TlsError};

/// Takes certificates that come from known authorities, and those that the operator has listed.
///
/// The library takes no certificate from a server that says it is an authority's. Most that sign themselves say so,
/// and to list one is to trust it: its name and its time are left to check.
#[derive(Debug)]
pub(crate) struct Checked {
    authorities: Arc<WebPkiServerVerifier>,
    listed: Vec<CertificateDer<'static>>,
}

impl Checked {
    pub(crate) fn new(
        roots: RootCertStore,
        listed: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Checked, Vec<TlsError>> {
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| vec![TlsError::without_file(Problem::Refused { reason: error.to_string() })])?;
        Ok(Checked { authorities, listed })
    }
}

impl ServerCertVerifier for Checked {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let of_authorities =
            self.authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        if of_authorities.is_err() && self.listed.iter().any(|listed| listed == end_entity) {
            verify_time(end_entity, now)?;
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        // What the library minds about the others is not what is wrong with them.
        match of_authorities {
            Err(_) if is_self_signed(end_entity) => {
                Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
            }
            of_authorities => of_authorities,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.authorities.root_hint_subjects()
    }
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    parse(certificate).is_ok_and(|parsed| parsed.issuer().as_raw() == parsed.subject().as_raw())
}

fn verify_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let wrong = |why| Err(Error::InvalidCertificate(why));
    let Ok(parsed) = parse(certificate) else { return wrong(CertificateError::BadEncoding) };
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let times = parsed.validity();
    match () {
        () if now < times.not_before.timestamp() => wrong(CertificateError::NotValidYet),
        () if now > times.not_after.timestamp() => wrong(CertificateError::Expired),
        () => Ok(()),
    }
}

/// Takes any certificate, as long as the server has its key.
pub(crate) struct Unchecked {
    algorithms: WebPkiSupportedAlgorithms,
}

impl Unchecked {
    pub(crate) fn new(provider: &CryptoProvider) -> Unchecked {
        Unchecked { algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl fmt::Debug for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unchecked").finish_non_exhaustive()
    }
}
