//! Secrets of connections in the format of NSS, which Wireshark reads (`SSLKEYLOGFILE`; RFC 9850).

use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::work::Trouble;

/// A file of secrets. Nobody else may read it.
#[derive(Debug)]
pub(crate) struct SecretsFile(Mutex<BufWriter<File>>);

impl SecretsFile {
    pub(crate) fn create(path: &Path) -> Result<SecretsFile, Trouble> {
        let made = || {
            let mut options = OpenOptions::new();
            options.write(true).create(true).mode(0o600);
            // Nothing of a file is lost whose rights cannot be set, and nothing is written before they are.
            let file = options.open(path)?;
            if file.metadata()?.is_file() {
                file.set_permissions(Permissions::from_mode(0o600))?;
                file.set_len(0)?;
            }
            Ok(file)
        };
        let file = made().map_err(|error: std::io::Error| {
            Trouble::new(format!("cannot write `{}`: {error}", path.display()))
        })?;
        Ok(SecretsFile(Mutex::new(BufWriter::new(file))))
    }

    /// What the file has not taken is an error now.
    pub(crate) fn finish(&self) -> Result<(), Trouble> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.flush().map_err(|error| Trouble::new(format!("cannot write the key log: {error}")))
    }
}

impl rustls::KeyLog for SecretsFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What fails is kept, and fails again when it is finished.
        let (Ok(()) | Err(_)) = writeln!(file, "{label} {} {}", hex(client_random), hex(secret));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use rustls::KeyLog as _;

    use super::*;

    #[test]
    fn lines_are_those_of_nss_and_only_for_us() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("keys");
        let file = SecretsFile::create(&path).expect("writable");
        file.log("CLIENT_RANDOM", &[1, 0xab], &[0xff]);
        file.finish().expect("writable");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "CLIENT_RANDOM 01ab ff\n");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        // What was there before, and could be read by all, is neither kept nor read by them.
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("ours");
        drop(SecretsFile::create(&path).expect("writable"));
        let known = std::fs::metadata(&path).expect("there");
        assert_eq!((known.permissions().mode() & 0o777, known.len()), (0o600, 0));
        assert!(SecretsFile::create(folder.path()).is_err());
    }
}
