//! What makes connectors equal, and what is said of a pool's files.

use super::*;
use crate::{ClientTls, Connector, Connectors, SystemAuthorities};

impl Site {
    fn client_settings(&self) -> ClientTls {
        ClientTls {
            ca: Some(self.write("ca.crt", self.authority.pem())),
            certificate: None,
            verify: true,
            min_version: TlsVersion::Tls12,
            protocol: "http/1.1",
        }
    }
}

fn connectors(settings: &ClientTls) -> Connectors {
    Connectors::build(settings, &SystemAuthorities::default()).unwrap()
}

fn to(settings: &ClientTls, name: &str) -> Connector {
    connectors(settings).to(name, None).unwrap()
}

#[test]
fn what_makes_a_difference_makes_another_connector() {
    let site = Site::new();
    let settings = site.client_settings();
    let first = to(&settings, "shop.example");
    for name in ["shop.example", "SHOP.example", "shop.example."] {
        assert_eq!(to(&settings, name), first, "{name}");
    }
    assert_ne!(to(&settings, "other.example"), first);
    assert_ne!(to(&settings, "192.0.2.1"), first);
    let issued = site.issue("us", &["us.example"]);
    for changed in [
        ClientTls { verify: false, ..settings.clone() },
        ClientTls { min_version: TlsVersion::Tls13, ..settings.clone() },
        ClientTls { certificate: Some(issued.files), ..settings.clone() },
        ClientTls { ca: Some(site.write("other.crt", Site::new().authority.pem())), ..settings.clone() },
    ] {
        assert_ne!(to(&changed, "shop.example"), first, "{changed:?}");
    }
    assert!(connectors(&settings).to("a..b", None).is_none());
}

#[test]
fn all_that_is_wrong_with_the_files_comes_at_once() {
    let site = Site::new();
    let missing = |name: &str| site.folder.path().join(name);
    let settings = ClientTls {
        ca: Some(missing("no.ca")),
        certificate: Some(CertificateFiles::new(missing("no.crt"), missing("no.key"))),
        ..site.client_settings()
    };
    let errors = Connectors::build(&settings, &SystemAuthorities::default()).unwrap_err();
    let files: Vec<_> = errors.iter().filter_map(|error| error.file()?.file_name()?.to_str()).collect();
    assert_eq!(files, ["no.ca", "no.crt", "no.key"]);
    assert!(errors.iter().all(|error| error.help().is_some()));
}
