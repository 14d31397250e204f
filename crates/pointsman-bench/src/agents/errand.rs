//! A plan on its way to an agent, with the files that it names.

use std::fs;
use std::path::Path;

use pointsman_tls::CertificateFiles;
use serde::{Deserialize, Serialize};

use super::AGENTS_MAX;
use super::link::ERRAND_BYTES_MAX;
use crate::ceiling::BeforeNull;
use crate::run::Place;
use crate::{Fault, Plan};

/// Bytes of a plan's bodies, which are a third more on their way.
const BODIES_BYTES_MAX: usize = ERRAND_BYTES_MAX / 8 * 5;

/// What an agent is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Errand {
    plan: Plan,
    place: Place,
    /// Not the plan itself, but what the machine reaches with it before servers that do nothing.
    pub(super) ceiling: Option<BeforeNull>,
    /// What the plan's files hold, as PEM.
    ca: Option<String>,
    certificate: Option<(String, String)>,
}

impl Errand {
    /// For the first of so many agents.
    pub(super) fn pack(plan: &Plan, agents: usize) -> Result<Errand, Fault> {
        let bodies: usize = plan.targets.iter().map(|target| target.body.carried_bytes()).sum();
        if bodies > BODIES_BYTES_MAX {
            return Err(Fault::new(format!(
                "the bodies of all requests together have {bodies} bytes: agents take {BODIES_BYTES_MAX}"
            ))
            .help("a body that nobody reads need not be sent there: `pointsman bench bulk --upload`"));
        }
        let read = |path: &Path| {
            fs::read_to_string(path)
                .map_err(|error| Fault::io(&format!("cannot read `{}`", path.display()), &error))
        };
        let certificate = plan.certificate.as_ref();
        let certificate = certificate.map(|files| Ok((read(&files.certificate)?, read(&files.key)?)));
        Ok(Errand {
            ceiling: None,
            ca: plan.ca.as_deref().map(read).transpose()?,
            certificate: certificate.transpose()?,
            // The server's process is looked at from here, if it is here at all.
            plan: Plan { server_process: None, numbers: plan.numbers.apart(), ..plan.clone() },
            place: Place { index: 0, of: agents },
        })
    }

    /// The same, but to be measured before servers that do nothing.
    pub(super) fn before(self, null: BeforeNull) -> Errand {
        Errand { ceiling: Some(null), ..self }
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
            let certificate = write("certificate.pem", &certificate)?;
            Ok::<_, Fault>(CertificateFiles::new(certificate, write("key.pem", &key)?))
        });
        Ok((Plan { ca, certificate: certificate.transpose()?, ..self.plan }, self.place))
    }
}
