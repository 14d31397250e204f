//! The names of the tests of a group, read from their sources: nothing has to be compiled to know them.

use std::path::Path;

use crate::failure::{Because, Failure, Result};
use crate::project::Project;

/// Where the groups' folders stand, each with the modules of its tests.
const GROUPS: &str = "crates/pointsman-e2e/tests/e2e";

/// What the test binary is asked for: everything, or the tests whose names, as `module::test`, hold this one.
pub(super) fn filters(project: &Project, group: &str, name: Option<&str>) -> Result<Vec<String>> {
    let Some(name) = name else { return Ok(vec![format!("{group}::")]) };
    let known = known(&project.root().join(GROUPS).join(group))?;
    let chosen: Vec<_> = known.iter().filter(|known| known.contains(name)).collect();
    if chosen.is_empty() {
        let names = known.join("\n    ");
        return Err(Failure::usage(format!(
            "no test of {group} is called `{name}`\nhelp: a module, a test, or a part of one of these names:\n    {names}"
        )));
    }
    Ok(chosen.into_iter().map(|name| format!("{group}::{name}")).collect())
}

/// All names, sorted, as `module::test`.
fn known(folder: &Path) -> Result<Vec<String>> {
    let doing = || format!("cannot read `{}`", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).because(doing)? {
        let path = entry.because(doing)?.path();
        let (Some(module), Some("rs")) =
            (path.file_stem(), path.extension().and_then(|extension| extension.to_str()))
        else {
            continue;
        };
        let text = std::fs::read_to_string(&path).because(|| format!("cannot read `{}`", path.display()))?;
        let module = module.to_string_lossy();
        names.extend(tests(&text).into_iter().map(|test| format!("{module}::{test}")));
    }
    names.sort();
    Ok(names)
}

/// The tests of one source: what `for_threads!` names, and functions behind `#[test]`.
fn tests(text: &str) -> Vec<&str> {
    let for_threads = text.split("for_threads!(").skip(1).filter_map(|rest| rest.split(')').next());
    let named = for_threads.flat_map(|names| names.split(',')).map(str::trim).filter(|name| !name.is_empty());
    let marked = text.split("#[test]").skip(1).filter_map(|rest| {
        let (_, rest) = rest.split_once("fn ")?;
        rest.split('(').next()
    });
    named.chain(marked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_sources() {
        let text = "\
pointsman_e2e::for_threads!(
    idle,
    slow_heads,
);
fn idle(threads: usize) {}
#[test]
fn alone() {}
#[test]
#[ignore = \"not today\"]
fn marked_twice() {}
fn helper() {}
pointsman_e2e::for_threads!(down, up);
";
        assert_eq!(tests(text), ["idle", "slow_heads", "down", "up", "alone", "marked_twice"]);
    }

    #[test]
    fn no_module_is_left_out() -> Result<()> {
        let project = Project::find()?;
        let tools: [(&str, &[&str]); 2] =
            [("endure", &["framed"]), ("storm", &["server", "traffic", "weather"])];
        for (group, tools) in tools {
            let folder = project.root().join(GROUPS).join(group);
            let names = known(&folder)?;
            let declared = std::fs::read_to_string(folder.with_extension("rs")).because(|| group.into())?;
            let has_none = |module: &&str| !names.iter().any(|name| name.starts_with(&format!("{module}::")));
            let modules = declared.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
            assert_eq!(
                modules.filter(has_none).collect::<Vec<_>>(),
                tools,
                "what is only a tool of the others"
            );
        }
        Ok(())
    }

    #[test]
    fn a_name_chooses_and_an_unknown_one_is_answered_with_all() -> Result<()> {
        let project = Project::find()?;
        assert_eq!(filters(&project, "endure", None)?, ["endure::"]);
        assert_eq!(
            filters(&project, "endure", Some("reloads::"))?,
            ["endure::reloads::certificates", "endure::reloads::rules"]
        );
        assert_eq!(filters(&project, "endure", Some("slow_readers"))?, ["endure::crowds::slow_readers"]);
        let said = filters(&project, "endure", Some("slow_raeders")).err().map(|failure| failure.to_string());
        assert!(
            said.is_some_and(|said| said.contains("`slow_raeders`") && said.contains("crowds::slow_readers"))
        );
        Ok(())
    }
}
