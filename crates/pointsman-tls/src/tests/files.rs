//! Errors and warnings about files, in the words an operator reads.

use std::time::{Duration, SystemTime};

use super::*;
use crate::Concern;

impl Site {
    /// The errors of settings, with the folder left out of paths.
    fn errors(&self, settings: &ServerTls) -> Vec<String> {
        let errors = Acceptor::build(settings, None).expect_err("the settings should be refused");
        let folder = format!("{}/", self.folder.path().display());
        errors.iter().map(|error| error.to_string().replace(&folder, "")).collect()
    }

    fn errors_of(&self, certificate: &str, key: &str) -> Vec<String> {
        let path = |name: &str| self.folder.path().join(name);
        let files = CertificateFiles::new(path(certificate), path(key));
        self.errors(&ServerTls { certificates: vec![files], ..settings(&[]) })
    }
}

#[test]
fn wrong_files_are_named_with_what_is_wrong() {
    let site = Site::new();
    let a = site.issue("a", &["a.example"]);
    site.issue("b", &["b.example"]);
    let a_pem = fs::read(&a.files.certificate).unwrap();
    site.write("empty.pem", "");
    site.write("text.pem", "hello\n");
    site.write("binary.pem", &a.der);
    site.write("cut.pem", &a_pem[..a_pem.len() / 2]);
    site.write("noise.pem", "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n");
    site.write("other.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    site.write("strange.pem", "-----BEGIN DH PARAMETERS-----\nAAAA\n-----END DH PARAMETERS-----\n");
    site.write("junk.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    site.write(
        "pkcs8.key",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    site.write(
        "old.key",
        "-----BEGIN RSA PRIVATE KEY-----\r\nProc-Type: 4,ENCRYPTED\r\nDEK-Info: AES-256-CBC,00\r\n\r\nAAAA\r\n\
         -----END RSA PRIVATE KEY-----\r\n",
    );
    let utf16: Vec<_> = String::from_utf8(a_pem).unwrap().encode_utf16().flat_map(u16::to_le_bytes).collect();
    site.write("wide.crt", [&b"\xff\xfe"[..], &utf16].concat());
    site.write("huge.pem", vec![b'a'; 5 * 1024 * 1024]);
    for (certificate, key, expected) in [
        ("none.crt", "a.key", &["cannot read `none.crt`: no such file or directory"][..]),
        ("a.crt", "none.key", &["cannot read `none.key`: no such file or directory"]),
        ("empty.pem", "a.key", &["`empty.pem` holds no certificate"]),
        ("text.pem", "text.pem", &["`text.pem` holds no certificate", "`text.pem` holds no private key"]),
        ("binary.pem", "a.key", &["`binary.pem` holds no certificate"]),
        (
            "cut.pem",
            "a.key",
            &["`cut.pem` is not valid PEM: a section has no line `-----END CERTIFICATE-----`"],
        ),
        ("noise.pem", "a.key", &["`noise.pem` is not valid PEM: a section is not base64"]),
        (
            "other.pem",
            "a.key",
            &["certificate 1 in `other.pem` cannot be used: it is not an X.509 certificate"],
        ),
        ("strange.pem", "a.key", &["`strange.pem` holds no certificate (found `DH PARAMETERS`)"]),
        ("a.key", "a.key", &["`a.key` holds no certificate (found a private key)"]),
        ("a.crt", "a.crt", &["`a.crt` holds no private key (found a certificate)"]),
        (
            "a.crt",
            "junk.key",
            &["the private key in `junk.key` is broken, or of a kind that is not supported"],
        ),
        ("a.crt", "pkcs8.key", &["the private key in `pkcs8.key` is encrypted"]),
        (
            "a.crt",
            "old.key",
            &[
                "the private key in `old.key` is encrypted in the old form of OpenSSL (`Proc-Type`), which is not supported",
            ],
        ),
        ("a.crt", "b.key", &["the key `b.key` does not belong to the certificate `a.crt`"]),
        ("wide.crt", "a.key", &["`wide.crt` is not valid PEM: it is UTF-16 text; save it as ASCII or UTF-8"]),
        ("huge.pem", "a.key", &["`huge.pem` is larger than 4194304 bytes"]),
    ] {
        assert_eq!(site.errors_of(certificate, key), expected, "{certificate} {key}");
    }
}

#[test]
fn all_errors_come_at_once() {
    let site = Site::new();
    let a = site.issue("a", &["a.example"]);
    let missing = CertificateFiles::new(site.folder.path().join("x.crt"), site.folder.path().join("x.key"));
    let settings = ServerTls {
        certificates: vec![a.files.clone(), missing],
        client_auth: ClientAuth::Require,
        ..settings(&[])
    };
    assert_eq!(
        site.errors(&settings),
        [
            "cannot read `x.crt`: no such file or directory",
            "cannot read `x.key`: no such file or directory",
            "client certificates are asked for, but no authority is configured",
        ]
    );
    assert_eq!(site.errors(&super::settings(&[])), ["no certificate is configured"]);
}

#[test]
fn broken_authorities_are_errors_in_every_mode() {
    let site = Site::new();
    let a = site.issue("a", &["a.example"]);
    for (text, expected) in [
        (fs::read_to_string(&a.files.key).unwrap(), "`ca.pem` holds no certificate (found a private key)"),
        (
            site.authority.pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "certificate 2 in `ca.pem` cannot be used: it is not an authority's X.509 certificate",
        ),
    ] {
        let path = site.write("ca.pem", text);
        for client_auth in [ClientAuth::Off, ClientAuth::Request, ClientAuth::Require] {
            let settings = ServerTls { client_ca: Some(path.clone()), client_auth, ..settings(&[&a]) };
            assert_eq!(site.errors(&settings), [expected]);
        }
    }
}

#[test]
fn every_error_has_a_help_line() {
    let site = Site::new();
    let a = site.issue("a", &["a.example"]);
    let files = CertificateFiles::new(&a.files.key, &a.files.certificate);
    let settings = ServerTls { certificates: vec![files], ..settings(&[]) };
    let errors = Acceptor::build(&settings, None).unwrap_err();
    assert_eq!(errors.len(), 2);
    assert!(errors.iter().all(|error| error.help().is_some() && error.file().is_some()));
}

#[test]
fn one_file_may_hold_certificate_and_key() {
    let site = Site::new();
    let a = site.issue("a", &["a.example"]);
    let both = [fs::read(&a.files.key).unwrap(), fs::read(&a.files.certificate).unwrap()].concat();
    let both = site.write("both.pem", both);
    let files = CertificateFiles::new(&both, &both);
    let settings = ServerTls { certificates: vec![files], ..settings(&[]) };
    assert!(Acceptor::build(&settings, None).is_ok());
}

/// So a pair can be replaced one file after the other, and is a good one in between.
#[test]
fn of_several_keys_that_of_the_certificate_is_taken() {
    let site = Site::new();
    let (a, b) = (site.issue("a", &["a.example"]), site.issue("b", &["a.example"]));
    let read = |path: &std::path::Path| fs::read(path).unwrap();
    let keys = [read(&a.files.key), read(&b.files.key)].concat();
    let both = site.write("both.key", keys.clone());
    for issued in [&a, &b] {
        let files = CertificateFiles::new(&issued.files.certificate, &both);
        assert!(Acceptor::build(&ServerTls { certificates: vec![files], ..settings(&[]) }, None).is_ok());
    }
    let text = [b"# ours\n", &read(&a.files.certificate)[..], b"\r\n", &keys].concat();
    assert_eq!(crate::split_pem(&text), (read(&a.files.certificate), keys));
    assert_eq!(
        crate::split_pem(b"-----BEGIN PRIVATE KEY-----"),
        (vec![], b"-----BEGIN PRIVATE KEY-----\n".to_vec())
    );
    assert_eq!(crate::split_pem(b"no -----BEGIN CERTIFICATE-----\nx"), (vec![], vec![]));
}

#[test]
fn certificates_near_their_end_are_worth_a_warning() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let site = Site::new();
    let mut params = params(&["a.example"]);
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2026, 3, 1);
    let issued = site.issue_for("a", KeyPair::generate().unwrap(), params);
    let acceptor = Acceptor::build(&settings(&[&issued]), None).unwrap();
    let facts = &acceptor.certificates()[0];
    assert_eq!(facts.names, ["a.example"]);
    let (from, to) = (facts.not_before, facts.not_after);
    let second = Duration::from_secs(1);
    for (now, expected) in [
        (from - second, Some(Concern::NotYetValid { days_to_go: 1 })),
        (from, None),
        (to - 7 * DAY - second, None),
        (to - 7 * DAY, Some(Concern::ExpiresSoon { days_left: 7 })),
        (to, Some(Concern::ExpiresSoon { days_left: 0 })),
        (to + second, Some(Concern::Expired { days_ago: 0 })),
        (to + 3 * DAY, Some(Concern::Expired { days_ago: 3 })),
    ] {
        let concerns: Vec<_> = acceptor.warnings(now).into_iter().map(|warning| warning.concern).collect();
        assert_eq!(concerns, Vec::from_iter(expected));
    }
}

#[test]
fn odd_certificates_are_worth_a_warning() {
    let site = Site::new();
    let a = site.issue("a", &["a.example", "b.example"]);
    let again = site.issue("again", &["A.example"]);
    let nameless = site.issue("nameless", &[]);
    let chain =
        [fs::read(&again.files.certificate).unwrap(), fs::read(&a.files.certificate).unwrap()].concat();
    site.write("again.crt", chain);
    let acceptor = Acceptor::build(&settings(&[&a, &again, &nameless]), None).unwrap();
    let warnings: Vec<_> = acceptor
        .warnings(SystemTime::now())
        .into_iter()
        .map(|warning| (warning.file.file_name().unwrap().to_str().unwrap().to_owned(), warning.concern))
        .collect();
    assert_eq!(
        warnings,
        [
            ("again.crt".to_owned(), Concern::BrokenChain { position: 1 }),
            ("again.crt".to_owned(), Concern::NeverChosen),
            ("nameless.crt".to_owned(), Concern::NoName),
        ]
    );
}

#[test]
fn broken_ticket_keys_are_errors() {
    let site = Site::new();
    let a = site.issue("a", &["a.example"]);
    let good = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    let check = |text: &str, expected: &[&str]| {
        let settings = ServerTls { ticket_keys: Some(site.write("keys", text)), ..settings(&[&a]) };
        let expected: Vec<_> =
            expected.iter().map(|reason| format!("`keys` holds no good ticket keys: {reason}")).collect();
        assert_eq!(site.errors(&settings), expected, "{text}");
    };
    check("", &["there is no key in it"]);
    check("# none\n\n", &["there is no key in it"]);
    check(&good[1..], &["line 1 is not 64 hex digits"]);
    check(
        &format!("{good}0\nx{}\n", &good[1..]),
        &["line 1 is not 64 hex digits", "line 2 is not 64 hex digits"],
    );
    check(&"0".repeat(64), &["the key on line 1 is not random"]);
    check(&format!("# a\n{good}\r\n{}", good.to_uppercase()), &["the key on line 3 stands there before"]);
    let many: String = (0..17).map(|first| format!("{first:02x}{}\n", &good[2..])).collect();
    check(&many, &["there are 17 keys, and 16 are enough"]);
    let gone = ServerTls { ticket_keys: Some(site.folder.path().join("gone")), ..settings(&[&a]) };
    assert_eq!(site.errors(&gone), ["cannot read `gone`: no such file or directory"]);
}
