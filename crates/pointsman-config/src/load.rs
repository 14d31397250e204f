//! From a file to a plan, or to everything that is wrong with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pointsman_rules::Span;

use crate::findings::Findings;
use crate::lower::{Instead, Lowered, Lowering, Outside};
use crate::reading::text;
use crate::spec::Spec;
use crate::{Lookup, Plan, Problems, RuleSet, Settings, WatchedFile, syntax};

/// A plan, and what is worth knowing about how it was made.
#[derive(Debug)]
pub struct Loaded {
    /// What the configuration means.
    pub plan: Plan,
    /// The text of the configuration itself.
    pub source: Arc<str>,
    /// What is odd about it; no errors.
    pub warnings: Problems,
    /// Every file that was read. When one of them has [changed](crate::changed), the plan is out of date.
    pub files: Vec<WatchedFile>,
    /// The rules files that listeners name, each once for each use of it.
    pub rule_sets: Vec<RuleSet>,
    /// What has to be known of names before it can serve, and where they stand.
    names: Vec<(Lookup, Span)>,
    /// The configuration's own.
    path: PathBuf,
}

impl Loaded {
    /// What is wrong where nothing is known of some name: `why` says it of each of which that is so.
    pub fn unanswered(&self, why: impl Fn(&Lookup) -> Option<String>) -> Option<Problems> {
        let findings = Findings::around(&self.source, Vec::new());
        for (lookup, span) in &self.names {
            let Some(why) = why(lookup) else { continue };
            let help = "set `at_start = \"wait\"` in `[dns]` to serve without it until it has an answer";
            findings.error(*span, format!("cannot look up `{}`: {why}", lookup.name()), help);
        }
        if !findings.has_errors() {
            return None;
        }
        let mut problems = Problems::default();
        problems.add(&self.path, self.source.clone(), findings.into_sorted());
        Some(problems.watching(self.files.clone()))
    }
}

impl Plan {
    /// Reads a configuration and every file that it names.
    ///
    /// `previous` is the plan that is to be replaced: a listener that keeps its name keeps the keys of its
    /// TLS sessions.
    pub fn load(path: &Path, previous: Option<&Plan>) -> Result<Loaded, Problems> {
        Self::load_from(path, previous, None)
    }

    /// The same, as if a file had another text: the configuration, or rules that it names.
    pub fn load_instead(
        path: &Path,
        previous: Option<&Plan>,
        instead: Instead<'_>,
    ) -> Result<Loaded, Problems> {
        Self::load_from(path, previous, Some(instead))
    }

    fn load_from(
        path: &Path,
        previous: Option<&Plan>,
        instead: Option<Instead<'_>>,
    ) -> Result<Loaded, Problems> {
        let (file, content) = match instead {
            Some(instead) if instead.path == path => {
                (WatchedFile::holding(path, instead.text), Ok(instead.text.as_bytes().to_vec()))
            }
            _ => WatchedFile::read(path),
        };
        let files = vec![file];
        let source = match content.and_then(text) {
            Ok(source) => source,
            Err(error) => {
                return Err(Problems::cannot_read(path, &error).watching(files));
            }
        };
        Self::read(path, &source, Outside::System { instead }, previous, files)
    }

    /// The plan that two texts alone make: a configuration, and what every rules file that it names has in it.
    ///
    /// Nothing is read or looked for, so what needs that is an error here: TLS. For generated inputs, which must not make a machine open whatever they happen to name.
    pub fn from_texts(source: &str, rules: &str) -> Result<Loaded, Problems> {
        Self::read(Path::new("pointsman.toml"), source, Outside::Texts { rules }, None, Vec::new())
    }

    fn read(
        path: &Path,
        source: &str,
        outside: Outside<'_>,
        previous: Option<&Plan>,
        mut files: Vec<WatchedFile>,
    ) -> Result<Loaded, Problems> {
        let (table, errors) = syntax::parse(source);
        let findings = Findings::around(source, errors);
        let spec = Spec::read(table.get_ref(), &findings);
        // What a torn text names may stand in what could not be read of it.
        let folder = path.parent().unwrap_or(Path::new(""));
        let lowered =
            (!findings.is_torn()).then(|| Lowering::new(&spec, folder, outside, previous, &findings).lower());
        let mut problems = Problems::default();
        let findings = findings.into_sorted();
        let source: Arc<str> = Arc::from(source);
        problems.add(path, source.clone(), findings);
        let Some(Lowered { mut plan, problems: of_rules, rule_sets, files: named, lookups: names }) = lowered
        else {
            return Err(problems.watching(files));
        };
        problems.append(of_rules);
        files.extend(named);
        if problems.has_errors() {
            return Err(problems.watching(files));
        }
        plan.settings = Arc::new(Settings::read(table.get_ref(), &plan, folder, &files));
        let path = path.to_owned();
        Ok(Loaded { plan, source, warnings: problems, files, rule_sets, names, path })
    }

    /// The same for a plan that will not be used: what `pointsman check` does.
    pub fn check_only(path: &Path) -> Result<Loaded, Problems> {
        Self::load(path, None)
    }
}
