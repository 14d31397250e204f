//! Findings about what is agreed on before a request, against a look at all that a listener agrees on.

use std::collections::BTreeSet;

use pointsman_rules::{Field, OwnedValue, Program};
use proptest::prelude::*;
use proptest::sample::select;

use super::super::states::States;
use super::{MadeUp, lists, name, program, says_all_that_is_so, sources_of};
use crate::witness::{Says, usual_client};
use crate::{ClientCertificates, Handshakes, ProxyHeader, Setting};

const TESTS: &[&str] = &[
    r#"version == "2""#,
    r#"version != "1.1""#,
    r#"version > 1.1"#,
    r#"scheme == "https""#,
    r#"proto != "https""#,
    r#"tls.version == "1.3""#,
    r#"tls.version <= 1.2"#,
    "tls.version exists",
    r#"tls.cipher contains "_RSA_""#,
    r#"tls.cipher startsWith "TLS_AES""#,
    r#"tls.cipher endsWith "SHA256""#,
    r#"tls.alpn == "h2""#,
    r#"tls.alpn in ["http/1.1", "h3"]"#,
    "tls.alpn exists",
    "tls.resumed",
    "!tls.resumed",
    "tls.sni exists",
    "tls.client.subject exists",
    r#"tls.client.subject == "CN=client""#,
    "tls.client.fingerprint exists",
    "tls.client.certificate exists",
    "count(tls.client.san) > 0",
    r#"method == "GET""#,
];

const FIELDS: [Field; 11] = [
    Field::Version,
    Field::Scheme,
    Field::Proto,
    Field::TlsVersion,
    Field::TlsCipher,
    Field::TlsAlpn,
    Field::TlsResumed,
    Field::TlsClientSubject,
    Field::TlsClientFingerprint,
    Field::TlsClientCertificate,
    Field::TlsClientSan,
];

fn settings() -> impl Strategy<Value = Setting> {
    let clients = vec![ClientCertificates::Never, ClientCertificates::Perhaps, ClientCertificates::Always];
    let keys = select(vec![(true, true), (true, false), (false, true)]);
    let http = select(vec![(true, true), (true, false), (false, true)]);
    let speaks_tls = select(vec![None, Some(false), Some(true), Some(true)]);
    let names = (any::<bool>(), any::<bool>());
    let flags = (any::<bool>(), any::<bool>());
    (speaks_tls, http, keys, names, flags, select(clients)).prop_map(
        |(speaks_tls, http, keys, names, (takes_tls12, resumes), clients)| Setting {
            speaks_tls,
            takes_http1: http.0,
            takes_http2: http.1,
            proxy_header: ProxyHeader::Off,
            tls: Handshakes {
                takes_tls12,
                signs_by_rsa: keys.0,
                signs_by_ecdsa: keys.1,
                names_http1: names.0,
                names_http2: names.1,
                resumes,
                clients,
            },
            ..Setting::default()
        },
    )
}

/// One subject for each way in which the tests of a program can come out, of all kinds of connections with and without what
/// they may have besides.
fn connections(program: &Program, setting: &Setting) -> Vec<MadeUp> {
    let text = |text: &str| OwnedValue::Text(text.as_bytes().into());
    let (mut all, mut known) = (Vec::new(), BTreeSet::new());
    for agreed in setting.agreements() {
        let values = |field: &Field| match agreed.says(field) {
            Says::These(values) => values.known,
            Says::Some if *field == Field::TlsClientSubject => vec![text(&usual_client().subject)],
            Says::Some | Says::Any => vec![text("a")],
        };
        let fields = FIELDS.iter().map(|field| (name(field), (values(field), Vec::new())));
        let subject = MadeUp(fields.collect());
        for (names_server, has_names, is_other, method) in all_of() {
            let mut subject = subject.clone();
            let mut set = |field: &Field, values| subject.0.insert(name(field), (values, Vec::new()));
            let sni = if agreed.tls.is_some() && names_server { vec![text("a")] } else { Vec::new() };
            set(&Field::TlsSni, sni);
            if !has_names {
                set(&Field::TlsClientSan, Vec::new());
            }
            if is_other && agreed.tls.is_some_and(|tls| tls.has_client) {
                set(&Field::TlsClientSubject, vec![text("CN=other")]);
            }
            set(&Field::Method, method);
            let mut truths = Vec::new();
            for rule in &program.rules {
                rule.condition.each_test(&mut |test| truths.push(States::of(test.eval(&subject))));
            }
            if known.insert(truths) {
                all.push(subject);
            }
        }
    }
    all
}

/// Whether there is a server name, whether a certificate has further names, whether it is another one, and a method.
fn all_of() -> impl Iterator<Item = (bool, bool, bool, Vec<OwnedValue>)> {
    let methods = lists("method").into_iter().take(2);
    methods.flat_map(|method| {
        (0..8).map(move |bits| (bits & 1 == 0, bits & 2 == 0, bits & 4 == 0, method.clone()))
    })
}

proptest! {
    #[test]
    fn findings_of_handshakes_are_all_that_is_so(source in sources_of(TESTS), setting in settings()) {
        let program = program(&source);
        let subjects = connections(&program, &setting);
        says_all_that_is_so(&source, &program, &setting, &subjects)?;
    }
}
