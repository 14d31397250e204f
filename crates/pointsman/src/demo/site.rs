//! The folder of the demo: a configuration, rules, and a certificate that is thrown away with it.

use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

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

/// How long the certificate is good for.
const CERTIFICATE_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

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
pub(super) struct Site {
    folder: TempDir,
    token: String,
}

impl Site {
    /// Writes everything that the switch and its visitors need.
    pub(super) fn create(origins: &Origins) -> Result<Site, Stop> {
        // Key and token are nobody else's business, thrown away or not.
        let owner_only = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("pointsman-demo-").permissions(owner_only).tempdir();
        let site =
            Site { folder: folder.map_err(Stop::because("no temporary folder"))?, token: drawn_token()? };
        let certificates =
            Certificates::issue().map_err(|error| Stop::Failed(format!("no certificate: {error}")))?;
        site.write(&site.config(), &configuration(origins))?;
        site.write(&site.rules(), RULES)?;
        site.write(&site.authority(), &certificates.authority)?;
        site.write(&site.path("shop.crt"), &certificates.server)?;
        site.write(&site.path("shop.key"), &certificates.key)?;
        site.write(&site.path("admin.token"), &format!("demo {}\n", site.token))?;
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

    /// What signs in to the console.
    pub(super) fn token(&self) -> &str {
        &self.token
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
        self.folder.path().join(name)
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), Stop> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(Stop::because("cannot write the demo's files"))
    }
}

/// Nobody else on this machine can guess it.
fn drawn_token() -> Result<String, Stop> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Stop::Failed(format!("no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
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

[bandwidth.link]
ceiling_bytes_per_second = 10_000_000

[bandwidth.pictures]              # what is over its guarantee borrows, up to its ceiling
parent = \"link\"
guaranteed_bytes_per_second = 100_000
ceiling_bytes_per_second = 300_000

[pool.standard]
health = {{ path = \"/health\" }}
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
token_file = \"admin.token\"
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
        params.distinguished_name = named("pointsman demo (throw it away)");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let names = [HOST].into_iter().chain(OTHER_NAMES).map(str::to_owned);
        let mut params = CertificateParams::new(names.collect::<Vec<_>>())?;
        params.distinguished_name = named(HOST);
        params.not_before = SystemTime::now().into();
        params.not_after = (SystemTime::now() + CERTIFICATE_FOR).into();
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
