//! What the figures were measured on and with.

use std::process::Command;

use serde_json::{Value, json};

use super::scenario::OURS;
use super::{LOAD_CORE, PROXY_CORE};
use crate::failure::{Because, Failure, Result};
use crate::packages::located;
use crate::project::{Project, written};

/// The cores there are for us: enough of them, or there is nothing to measure.
pub(crate) fn cores() -> Result<usize> {
    let cores = std::thread::available_parallelism().because(|| "cannot count the cores".into())?;
    enough(cores.get())
}

fn enough(cores: usize) -> Result<usize> {
    // Cores are counted from 0.
    let needed = LOAD_CORE + 1;
    const { assert!(PROXY_CORE < LOAD_CORE) }
    if cores >= needed {
        return Ok(cores);
    }
    Err(Failure::new(format!(
        "bench-peers needs {needed} cores, one for the proxy and one for the load, and this machine gives it {cores}: \
         on a shared core the figures would mean nothing"
    )))
}

/// The machine and the programs.
pub(crate) struct Machine {
    cpu: String,
    cores: usize,
    kernel: String,
    versions: Vec<(&'static str, String)>,
}

impl Machine {
    pub(crate) fn look(
        project: &Project,
        has_switch: bool,
        programs: &[(&'static str, &str)],
    ) -> Result<Self> {
        let cores = cores()?;
        let cpuinfo =
            std::fs::read_to_string("/proc/cpuinfo").because(|| "cannot read `/proc/cpuinfo`".into())?;
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let first_line = |program: &str, word: &str| {
            // nginx -v and wrk -v end with other statuses than 0 in some versions.
            let output = Command::new(located(program)?).arg(word).output();
            let output = output.because(|| format!("cannot run {program}"))?;
            let text = [output.stdout, output.stderr].concat();
            Ok::<_, Failure>(String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned())
        };
        let mut versions = Vec::new();
        for (program, word) in programs {
            versions.push((*program, first_line(program, word)?));
        }
        if has_switch {
            let mut git = Command::new("git");
            git.args(["describe", "--always", "--dirty"]).current_dir(project.root());
            // A source archive has no history; the figures are good all the same.
            let commit = written(&mut git).unwrap_or_else(|_| "unknown".to_owned());
            versions.insert(0, (OURS, commit.trim().to_owned()));
        }
        let cpu = model.map_or_else(|| "unknown".to_owned(), |(_, model)| model.to_owned());
        Ok(Self { cpu, cores, kernel: written(Command::new("uname").arg("-r"))?.trim().to_owned(), versions })
    }

    pub(crate) fn print(&self) {
        println!("{}, {} cores, Linux {}", self.cpu, self.cores, self.kernel);
        for (name, version) in &self.versions {
            println!("{name}: {version}");
        }
    }

    pub(crate) fn json(&self) -> Value {
        let versions: serde_json::Map<_, _> =
            self.versions.iter().map(|(name, version)| ((*name).to_owned(), json!(version))).collect();
        json!({"cpu": self.cpu, "cores": self.cores, "kernel": self.kernel, "versions": versions})
    }
}

#[cfg(test)]
mod tests {
    use super::enough;

    #[test]
    fn one_core_is_too_few() {
        let refused = enough(1).expect_err("one is not two").to_string();
        assert!(refused.contains("needs 2 cores") && refused.contains("gives it 1"), "{refused}");
        assert_eq!(enough(2).ok(), Some(2));
        assert_eq!(enough(64).ok(), Some(64));
    }
}
