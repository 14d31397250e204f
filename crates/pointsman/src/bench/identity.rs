//! A certificate that nobody knows, for servers that are measured with.

use pointsman_bench::{Fault, NullTls};

/// For `localhost` and 127.0.0.1.
pub(super) fn identity() -> Result<NullTls, Fault> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let pair = rcgen::generate_simple_self_signed(names)
        .map_err(|error| Fault::new(format!("cannot make a certificate: {error}")))?;
    let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
    Ok(NullTls { certificate, key, resumes: true })
}
