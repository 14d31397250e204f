//! The switch before the readers: a listener for each pair of a rule and a reader.

use std::collections::HashMap;
use std::path::Path;

use super::readers::{Kind, Reader};
use super::rules::RULES;
use crate::failure::{Because, Result};
use crate::process::{Process, Start};

/// Everything that runs.
pub(super) struct Site {
    pub(super) switch: Process,
    pub(super) readers: Vec<Reader>,
    ports: HashMap<(usize, Kind), u16>,
}

impl Site {
    pub(super) fn start(binary: &Path, readers: Vec<Reader>, folder: &Path) -> Result<Self> {
        for rule in RULES {
            let file = folder.join(format!("{}.rules", rule.name));
            // Each listener has a pool of its own: the text names the same one in all of them.
            for reader in &readers {
                let pool = reader.kind.name();
                let file = file.with_file_name(format!("{}-{pool}.rules", rule.name));
                let text = rule.text().replace("readers", pool);
                std::fs::write(&file, text).because(|| format!("cannot write `{}`", file.display()))?;
            }
        }
        let file = folder.join("differential.toml");
        std::fs::write(&file, configuration(&readers)).because(|| "cannot write the configuration".into())?;
        let arguments = ["run".into(), "--config".into(), file.into()];
        let log = folder.join("switch.log");
        let start = Start { name: "the switch", program: binary, arguments: &arguments, log: &log };
        let mut switch = Process::start(&start)?;
        let ports = switch.wait_for(|said| ports(said, &readers))?;
        Ok(Self { switch, readers, ports })
    }

    /// The listener that runs a rule before a reader.
    pub(super) fn port(&self, rule: usize, kind: Kind) -> Option<u16> {
        self.ports.get(&(rule, kind)).copied()
    }
}

/// Pairs of which the reader reads what the rule is about.
pub(super) fn pairs(kinds: impl Iterator<Item = Kind> + Clone) -> impl Iterator<Item = (usize, Kind)> {
    (0..RULES.len()).flat_map(move |rule| {
        kinds.clone().filter(move |kind| kind.reads(RULES[rule].name)).map(move |kind| (rule, kind))
    })
}

fn configuration(readers: &[Reader]) -> String {
    let mut text = String::from("threads = 2\n\n");
    for (rule, kind) in pairs(readers.iter().map(|reader| reader.kind)) {
        let (rule, pool) = (RULES[rule].name, kind.name());
        text += &format!(
            "[[listener]]\nname = \"{rule}-{pool}\"\nbind = \"127.0.0.1:0\"\nrules = \"{rule}-{pool}.rules\"\n\n"
        );
    }
    for reader in readers {
        text += &format!("[pool.{}]\nservers = [\"127.0.0.1:{}\"]\n\n", reader.kind.name(), reader.port);
    }
    text
}

/// Where the listeners are, once the switch says that it is ready.
fn ports(said: &str, readers: &[Reader]) -> Option<HashMap<(usize, Kind), u16>> {
    said.lines().find(|line| line.starts_with("ready "))?;
    let mut ports = HashMap::new();
    for (rule, kind) in pairs(readers.iter().map(|reader| reader.kind)) {
        let start = format!("listening name={}-{} address=127.0.0.1:", RULES[rule].name, kind.name());
        let line = said.lines().find_map(|line| line.strip_prefix(&start))?;
        ports.insert((rule, kind), line.split(' ').next()?.parse().ok()?);
    }
    Some(ports)
}
