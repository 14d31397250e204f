//! A plan on its way to an agent, with the files that it names.

use std::fs;
use std::path::Path;

use pointsman_tls::CertificateFiles;
use serde::{Deserialize, Serialize};

use super::AGENTS_MAX;
use crate::run::Place;
use crate::{Fault, Plan};

/// What an agent is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Errand {
    plan: Plan,
    place: Place,
    /// What the plan's files hold, as PEM.
    ca: Option<String>,
    certificate: Option<(String, String)>,
}

impl Errand {
    /// For the first of so many agents.
    pub(super) fn pack(plan: &Plan, agents: usize) -> Result<Errand, Fault> {
        let read = |path: &Path| {
            fs::read_to_string(path)
                .map_err(|error| Fault::io(&format!("cannot read `{}`", path.display()), &error))
        };
        let certificate = plan.certificate.as_ref();
        let certificate = certificate.map(|files| Ok((read(&files.certificate)?, read(&files.key)?)));
        Ok(Errand {
            ca: plan.ca.as_deref().map(read).transpose()?,
            certificate: certificate.transpose()?,
            // The server's process is looked at from here, if it is here at all.
            plan: Plan { server_process: None, ..plan.clone() },
            place: Place { index: 0, of: agents },
        })
    }

    /// The same for another of them.
    pub(super) fn at(&self, index: usize) -> Errand {
        Errand { place: Place { index, ..self.place }, ..self.clone() }
    }

    /// The plan, whose files are in this folder now.
    pub(super) fn unpack(self, folder: &Path) -> Result<(Plan, Place), Fault> {
        let Place { index, of } = self.place;
        if index >= of || of > AGENTS_MAX {
            return Err(Fault::new(format!("there is no agent {} of {of}", index + 1)));
        }
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|error| Fault::io("cannot keep a file of the plan", &error))?;
            Ok(path)
        };
        let ca = self.ca.map(|text| write("ca.pem", &text)).transpose()?;
        let certificate = self.certificate.map(|(certificate, key)| {
            let files = CertificateFiles {
                certificate: write("certificate.pem", &certificate)?,
                key: write("key.pem", &key)?,
            };
            Ok::<_, Fault>(files)
        });
        Ok((Plan { ca, certificate: certificate.transpose()?, ..self.plan }, self.place))
    }
}
