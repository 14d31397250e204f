//! The options that say which machines make the load, where it is not this one.

use std::path::PathBuf;

use lexopt::{Parser, ValueExt};
use pointsman_bench::{Agents, AgentsSettings, Fault};

use super::plan_options::{certificate_files, names};

pub(super) const HELP: &str = "
agents: other machines make the load, each of them `--threads`; docs/guide/bench.md#several-machines
    --agents HOST:PORT,...   where `pointsman bench agent` runs; port 8481 without one
    --agent-cert FILE --agent-key FILE
                             our own certificate, which agents ask for
    --agent-ca FILE          the authority of the agents' certificates
";

/// What was read of them.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentOptions {
    names: Vec<String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    ca: Option<PathBuf>,
}

impl AgentOptions {
    /// Reads the value of an option. False: it is none of these.
    pub(super) fn take(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "agents" => {
                self.names = names(&parser.value()?.string()?);
                if self.names.is_empty() {
                    return Err("`--agents` takes hosts, such as `load1.example,load2.example:8481`".into());
                }
            }
            "agent-cert" => self.certificate = Some(parser.value()?.into()),
            "agent-key" => self.key = Some(parser.value()?.into()),
            "agent-ca" => self.ca = Some(parser.value()?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The agents, if there are to be some; with so many threads each, where that was said.
    pub(super) fn agents(self, threads: Option<usize>) -> Result<Option<Agents>, String> {
        if self.names.is_empty() {
            let is_alone = self.certificate.is_none() && self.key.is_none() && self.ca.is_none();
            return if is_alone {
                Ok(None)
            } else {
                Err("`--agent-cert`, `--agent-key` and `--agent-ca` are for `--agents`".to_owned())
            };
        }
        let certificate = certificate_files(self.certificate, self.key)?;
        let (Some(certificate), Some(ca)) = (certificate, self.ca) else {
            return Err("`--agents` needs `--agent-cert FILE`, `--agent-key FILE` and `--agent-ca FILE`; \
                        `pointsman bench agent --init` makes them"
                .to_owned());
        };
        let settings = AgentsSettings { names: self.names, certificate, ca, threads };
        Agents::new(settings).map(Some).map_err(|fault: Fault| fault.to_string())
    }
}
