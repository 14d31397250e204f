//! Certificates for a controller and its agents, made without any other program.

use std::fmt::{Display, Write as _};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// Certificates are good for so many years, from the first day of this one.
const YEARS: u64 = 10;

/// Makes what is missing in the folder, and says what that is.
pub(super) fn init(folder: &Path, hosts: &[String]) -> Result<String, String> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| format!("cannot make `{}`: {error}", folder.display()))?;
    let mut said = String::new();
    let authority = authority(folder, &mut said)?;
    let controller = ("controller", "controller".to_owned(), ExtendedKeyUsagePurpose::ClientAuth);
    let agents = hosts.iter().map(|host| {
        // Of an address of IPv6 without what is no name of a file everywhere.
        let stem = format!("agent-{}", host.replace(':', "-"));
        (host.as_str(), stem, ExtendedKeyUsagePurpose::ServerAuth)
    });
    for (name, stem, purpose) in [controller].into_iter().chain(agents) {
        if folder.join(format!("{stem}.crt")).exists() {
            continue;
        }
        let pair = issue(&authority, name, purpose).map_err(|error| cannot(&error))?;
        keep(folder, &stem, &pair, &mut said)?;
    }
    Ok(if said.is_empty() { "all of them are there already\n".to_owned() } else { said })
}

/// A certificate and its key, as PEM.
struct Pair {
    certificate: String,
    key: String,
}

/// The one of the folder, or a new one.
fn authority(folder: &Path, said: &mut String) -> Result<Issuer<'static, KeyPair>, String> {
    if !folder.join("ca.crt").exists() {
        let pair = root().map_err(|error| cannot(&error))?;
        keep(folder, "ca", &pair, said)?;
    }
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
    };
    let (certificate, key) = (read("ca.crt")?, read("ca.key")?);
    let known = KeyPair::from_pem(&key).and_then(|key| Issuer::from_ca_cert_pem(&certificate, key));
    known.map_err(|error| format!("`{}` holds no authority: {error}", folder.display()))
}

fn root() -> Result<Pair, rcgen::Error> {
    let mut params = params("pointsman bench", Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// An agent's certificate is for its name or address; neither is of any use in the other's place.
fn issue(
    authority: &Issuer<'static, KeyPair>,
    name: &str,
    purpose: ExtendedKeyUsagePurpose,
) -> Result<Pair, rcgen::Error> {
    let is_agent = purpose == ExtendedKeyUsagePurpose::ServerAuth;
    let mut params = params(name, if is_agent { vec![name.to_owned()] } else { Vec::new() })?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn params(common_name: &str, names: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    let year = this_year();
    params.not_before = date_time_ymd(year, 1, 1);
    params.not_after = date_time_ymd(year + YEARS as i32, 12, 31);
    Ok(params)
}

/// Of the Gregorian calendar; within a day of New Year it may be the other one.
fn this_year() -> i32 {
    const YEAR_S: f64 = 365.2425 * 86_400.0;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    1970 + (since_1970.as_secs_f64() / YEAR_S) as i32
}

/// Writes both files, which must not be there: the key for its owner alone.
fn keep(folder: &Path, stem: &str, pair: &Pair, said: &mut String) -> Result<(), String> {
    for (ending, mode, text) in [("key", 0o600, &pair.key), ("crt", 0o644, &pair.certificate)] {
        let path = folder.join(format!("{stem}.{ending}"));
        let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                format!("`{}` is there, and what belongs to it is not", path.display())
            }
            _ => format!("cannot write `{}`: {error}", path.display()),
        })?;
        let (Ok(()) | Err(_)) = writeln!(said, "{}", path.display());
    }
    Ok(())
}

fn cannot(error: &impl Display) -> String {
    format!("cannot make a certificate: {error}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_missing_is_made_and_nothing_else_is_touched() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("certs");
        let hosts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let said = init(&path, &hosts(&["load1.example", "::1"])).expect("made");
        assert_eq!(said.lines().count(), 8, "{said}");
        let read = |name: &str| fs::read_to_string(path.join(name)).expect(name);
        let before = [read("ca.crt"), read("controller.crt"), read("agent---1.crt")];
        let said = init(&path, &hosts(&["::1", "load2.example"])).expect("made");
        assert_eq!(said.lines().count(), 2, "{said}");
        assert_eq!(before, [read("ca.crt"), read("controller.crt"), read("agent---1.crt")]);
        assert!(init(&path, &hosts(&["::1"])).expect("made").contains("there already"));
        let mode = |name: &str| fs::metadata(path.join(name)).expect(name).permissions().mode() & 0o777;
        assert_eq!((mode("ca.key"), mode("agent-load2.example.key")), (0o600, 0o600));
        fs::remove_file(path.join("controller.crt")).expect("it is there");
        let words = init(&path, &hosts(&["::1"])).expect_err("half a pair");
        assert!(words.contains("controller.key") && words.contains("is there"), "{words}");
    }
}
