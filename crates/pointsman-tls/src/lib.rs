//! Certificates, peers, versions and tickets; the only crate that names rustls.
