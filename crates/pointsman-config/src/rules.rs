//! The rules files that listeners name: read once each, compiled against the pools of the configuration.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pointsman_rules::{Program, Scope, TargetName, Targets, Tests};
use pointsman_view::BodyPaths;

use crate::lists::ReadList;
use crate::lower::Outside;
use crate::reading::{reason, text, version};
use crate::spec::{PoolSpec, Spec};
use crate::{PoolIndex, Problems, ServerIndex, Target, WatchedFile};

/// A compiled rules file, with what its targets stand for.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub(crate) program: Arc<Program>,
    pub(crate) body_paths: Option<Arc<BodyPaths>>,
    pub(crate) targets: Vec<Target>,
}

/// A rules file as it was read, with the tests in it.
#[derive(Clone, Debug)]
pub struct RuleSet {
    /// What people call it: its path as the operator would write it.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its text.
    pub source: Arc<str>,
    /// What it means; the same that listeners have.
    pub program: Arc<Program>,
    /// What stands beside the rules.
    pub tests: Tests,
}

impl RuleSet {
    /// A word for its text, which no other text has.
    pub fn version(&self) -> String {
        version(&self.source)
    }
}

/// The rules files of one configuration.
pub(crate) struct RulesFiles<'a> {
    pools: &'a [PoolSpec],
    positions: HashMap<&'a str, usize>,
    /// The same pools, as the compiler asks for them.
    names: Targets,
    /// What became of each file, for each use of it; several listeners may share one.
    compiled: HashMap<(PathBuf, Scope), Option<Compiled>>,
    /// Those that compiled, in the order in which they were read.
    sets: Vec<RuleSet>,
    problems: Problems,
}

impl<'a> RulesFiles<'a> {
    /// For these pools, classes and lists; what is wrong with lists is among the problems.
    pub(crate) fn new(spec: &'a Spec, lists: &[ReadList], problems: Problems) -> Self {
        let pools = &spec.pools;
        let names =
            pools.iter().map(|pool| (pool.name.value.as_str(), server_names(pool).flatten().collect()));
        Self {
            pools,
            positions: pools.iter().map(|pool| pool.name.value.as_str()).zip(0..).collect(),
            names: Targets::known::<_, &str>(names)
                .with_limits(spec.limits.iter().map(|limit| limit.name.value.as_str()))
                .with_bandwidths(spec.bandwidth.iter().map(|class| class.name.value.as_str()))
                .with_lists(lists.iter().map(|read| read.list.clone())),
            compiled: HashMap::new(),
            sets: Vec::new(),
            problems,
        }
    }

    /// Reads and compiles a file for listeners that ask it about what `scope` says. Nothing where something is wrong inside it, which is among the problems;
    /// the reason where it cannot be read at all.
    pub(crate) fn compile(
        &mut self,
        path: &Path,
        scope: Scope,
        outside: Outside<'_>,
        files: &mut Vec<WatchedFile>,
    ) -> Result<Option<Compiled>, String> {
        let key = (path.to_owned(), scope);
        if let Some(compiled) = self.compiled.get(&key) {
            return Ok(compiled.clone());
        }
        let source = match outside {
            Outside::Texts { rules } => rules.to_owned(),
            Outside::System { instead: Some(instead) } if instead.path == path => {
                files.push(WatchedFile::holding(path, instead.text));
                instead.text.to_owned()
            }
            Outside::System { .. } => {
                let (file, content) = WatchedFile::read(path);
                files.push(file);
                content.and_then(text).map_err(|error: io::Error| reason(&error))?
            }
        };
        let compiled = self.compile_text(path, &source, scope);
        self.compiled.insert(key, compiled.clone());
        Ok(compiled)
    }

    /// What is wrong with the files so far.
    pub(crate) fn problems(&self) -> &Problems {
        &self.problems
    }

    /// What is wrong with the files, those that compiled, and the targets that they could name.
    pub(crate) fn into_parts(self) -> (Problems, Vec<RuleSet>, Targets) {
        (self.problems, self.sets, self.names)
    }

    fn compile_text(&mut self, path: &Path, source: &str, scope: Scope) -> Option<Compiled> {
        let (compiled, findings) = match pointsman_rules::compile_for(source, &self.names, scope) {
            Ok(compiled) => (Some((compiled.program, compiled.tests)), compiled.warnings),
            Err(findings) => (None, findings),
        };
        let source: Arc<str> = Arc::from(source);
        self.problems.add(path, source.clone(), findings);
        let (program, tests) = compiled?;
        let targets: Option<Vec<Target>> = program.targets.iter().map(|name| self.target(name)).collect();
        debug_assert!(targets.is_some(), "the compiler names only what it was told of");
        let body_paths = (!program.payloads.is_empty()).then(|| Arc::new(BodyPaths::new(&program)));
        let program = Arc::new(program);
        self.sets.push(RuleSet {
            name: path.display().to_string(),
            path: path.to_owned(),
            source,
            program: program.clone(),
            tests,
        });
        Some(Compiled { program, body_paths, targets: targets? })
    }

    /// What a target of a program stands for.
    fn target(&self, name: &TargetName) -> Option<Target> {
        let pool = *self.positions.get(&*name.pool)?;
        let server = match &name.server {
            Some(server) => {
                let position = server_names(&self.pools[pool]).position(|name| name == Some(&**server))?;
                Some(ServerIndex(u32::try_from(position).ok()?))
            }
            None => None,
        };
        Some(Target { pool: PoolIndex(u32::try_from(pool).ok()?), server })
    }
}

/// The names of a pool's servers, by position: nobody knows which ones services have.
fn server_names(pool: &PoolSpec) -> impl Iterator<Item = Option<&str>> {
    pool.written_servers().map(|server| server.name.as_ref().map(|name| name.value.as_str()))
}
