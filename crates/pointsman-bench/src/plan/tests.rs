//! What a plan must not say.

use super::*;
use crate::{Body, Url};

fn plan(urls: &[&str]) -> Plan {
    let target = |url: &&str| Target {
        url: Url::parse(url).expect(url),
        weight: 1,
        method: "GET".into(),
        headers: Vec::new(),
        body: Body::None,
    };
    Plan::new(urls.iter().map(target).collect(), Load::Closed { clients: 1 })
}

/// Changes to a plan, by the option that makes them.
type Said = (&'static str, fn(&mut Plan));

#[test]
fn nothing_is_said_of_tls_where_there_is_none() {
    let said: [Said; 7] = [
        ("--tls-version", |plan| plan.offer.version = Some(pointsman_tls::OneVersion::Tls13)),
        ("--suites", |plan| plan.offer.suites = vec!["TLS_AES_128_GCM_SHA256".into()]),
        ("--groups", |plan| plan.offer.groups = vec!["X25519".into()]),
        ("--alpn", |plan| plan.alpn = Some(Vec::new())),
        ("--ca", |plan| plan.ca = Some("ca.pem".into())),
        ("--sni", |plan| plan.server_name = Some("a".into())),
        ("--cert", |plan| {
            plan.certificate = Some(CertificateFiles::new("a", "a"));
        }),
    ];
    for (option, say) in said {
        let mut plain = plan(&["http://a/", "http://b/"]);
        say(&mut plain);
        let fault = plain.check().expect_err(option);
        let sentence = format!("no URL is `https`, so there is no TLS for `{option}` to say something of");
        assert_eq!(fault.to_string(), sentence);
        let plain = plain.with_tls_where_it_is();
        assert_eq!(plain.check(), Ok(()));
        assert!(!plain.settings().keys().any(|name| name.starts_with("tls")), "{:?}", plain.settings());
        let mut mixed = plan(&["http://a/", "https://b/"]);
        say(&mut mixed);
        let mixed = mixed.with_tls_where_it_is();
        assert_eq!(mixed.check(), Ok(()), "{option}");
        assert!(mixed.settings().contains_key("tls.verify"), "{:?}", mixed.settings());
    }
}
