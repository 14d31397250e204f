//! The folder of the demo: a configuration, rules, and a certificate that is thrown away with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};
use tempfile::TempDir;

use super::Stop;
use super::origin::Origin;

/// The name that the demo's requests ask for.
pub(super) const HOST: &str = "localhost";

/// Other names that the certificate is for.
const OTHER_NAMES: [&str; 2] = ["shop.example", "127.0.0.1"];

const RULES: &str = include_str!("shop.rules");

/// A purchase order. What follows its total changes nothing any more.
const ORDER: &str = "\
<purchase>
  <customerName>CCL</customerName>
  <totalAmount>60000</totalAmount>
  <item quantity=\"300\">birch</item>
  <item quantity=\"500\">oak</item>
</purchase>
";

/// The servers of the demo.
pub(super) type Origins = [Origin; 5];

/// Starts them all.
pub(super) fn start_origins() -> Result<Origins, Stop> {
    Ok([
        Origin::start("server1")?,
        Origin::start("server2")?,
        Origin::start("server3")?,
        Origin::start("server4")?,
        Origin::start("server5")?,
    ])
}

/// A folder that is removed when it is dropped.
pub(super) struct Site(TempDir);

impl Site {
    /// Writes everything that the switch and its visitors need.
    pub(super) fn create(origins: &Origins) -> Result<Site, Stop> {
        // The key is nobody else's business, thrown away or not.
        let owner_only = fs::Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("pointsman-demo-").permissions(owner_only).tempdir();
        let site = Site(folder.map_err(Stop::because("no temporary folder"))?);
        let certificates =
            Certificates::issue().map_err(|error| Stop::Failed(format!("no certificate: {error}")))?;
        site.write(&site.config(), &configuration(origins))?;
        site.write(&site.rules(), RULES)?;
        site.write(&site.authority(), &certificates.authority)?;
        site.write(&site.path("shop.crt"), &certificates.server)?;
        site.write(&site.path("shop.key"), &certificates.key)?;
        let lines = "Host: localhost\nUser-Agent: an-editor\nContent-Type: text/xml";
        let length = ORDER.len();
        let order = format!("POST /orders HTTP/1.1\n{lines}\nContent-Length: {length}\n\n{ORDER}");
        site.write(&site.request(), &order)?;
        Ok(site)
    }

    pub(super) fn config(&self) -> PathBuf {
        self.path("pointsman.toml")
    }

    pub(super) fn rules(&self) -> PathBuf {
        self.path("shop.rules")
    }

    /// The certificate of the authority that clients must trust.
    pub(super) fn authority(&self) -> PathBuf {
        self.path("ca.crt")
    }

    /// A raw request, to have it explained.
    pub(super) fn request(&self) -> PathBuf {
        self.path("order.txt")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), Stop> {
        fs::write(path, text).map_err(Stop::because("cannot write the demo's files"))
    }
}

fn configuration([one, two, three, four, five]: &Origins) -> String {
    let server =
        |origin: &Origin| format!("{{ name = \"{}\", address = \"{}\" }}", origin.name, origin.address);
    let [one, two, three, four, five] = [one, two, three, four, five].map(server);
    format!(
        "# The configuration of the demo. Port 0 is a free one.

watch_ms = 500                    # the files are looked at for changes twice a second

[access_log]
path = \"-\"

[[listener]]
name = \"shop\"
bind = \"127.0.0.1:0\"
rules = \"shop.rules\"
pool = \"standard\"
tls = {{ certificate = \"shop.crt\", key = \"shop.key\" }}

[[listener]]
name = \"plain\"
bind = \"127.0.0.1:0\"
rules = \"shop.rules\"
pool = \"standard\"

[pool.standard]
servers = [
    {one},
    {two},
]

[pool.fast]
servers = [{three}]

[pool.images]
servers = [{two}]

[pool.llama]
servers = [{four}]

[pool.mistral]
servers = [{five}]

[admin]
bind = \"127.0.0.1:0\"
"
    )
}

/// PEM texts.
struct Certificates {
    authority: String,
    server: String,
    key: String,
}

impl Certificates {
    fn issue() -> Result<Certificates, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = named("pointsman demo, throw it away");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let names = [HOST].into_iter().chain(OTHER_NAMES).map(str::to_owned);
        let mut params = CertificateParams::new(names.collect::<Vec<_>>())?;
        params.distinguished_name = named(HOST);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let server = params.signed_by(&key, &authority)?;
        Ok(Certificates { authority: authority.pem(), server: server.pem(), key: key.serialize_pem() })
    }
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

#[cfg(test)]
mod tests {
    use pointsman_config::Plan;

    use super::*;

    /// What is shown to newcomers is without fault, and in its one form.
    #[test]
    fn the_site_is_an_example_to_follow() {
        let origins = start_origins().expect("free ports");
        let site = Site::create(&origins).expect("a writable folder");
        let loaded = Plan::check_only(&site.config()).unwrap_or_else(|problems| {
            let messages: Vec<_> =
                problems.diagnostics().map(|(_, finding)| finding.message.clone()).collect();
            panic!("{messages:?}")
        });
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        assert_eq!(pointsman_rules::format(RULES).as_deref(), Ok(RULES));
    }
}
