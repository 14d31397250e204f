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
use crate::{Listener, Plan, PoolIndex, Problems, ServerIndex, Target, WatchedFile};

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

/// Rules, and what they were made of: where that is as it was they are those of before, and whoever has them in hand goes on.
#[derive(Clone, Debug)]
pub(crate) struct ReadRules {
    /// Programs of two files are told apart, whatever stands in them.
    path: PathBuf,
    source: Arc<str>,
    scope: Scope,
    program: Arc<Program>,
    body_paths: Option<Arc<BodyPaths>>,
}

impl ReadRules {
    /// Whether this text comes to `program`. The compiler makes the same of the same text, but for what the names in it stand
    /// for.
    fn are(&self, path: &Path, source: &str, scope: Scope, program: &Program) -> bool {
        let lists = |program: &'_ Program| program.lists().into_iter().map(Arc::as_ptr).collect::<Vec<_>>();
        self.path == path
            && self.scope == scope
            && *self.source == *source
            && self.program.targets == program.targets
            && lists(&self.program) == lists(program)
    }
}

impl Plan {
    /// The listeners whose rules stand in a file.
    pub fn users_of<'p>(&'p self, path: &'p Path) -> impl Iterator<Item = &'p Listener> {
        let stands_there = move |program: &Arc<Program>| {
            self.rules.iter().any(|read| read.path == path && Arc::ptr_eq(&read.program, program))
        };
        self.listeners.iter().filter(move |listener| listener.program.as_ref().is_some_and(stands_there))
    }
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
    names: Arc<Targets>,
    /// What became of each file, for each use of it; several listeners may share one.
    compiled: HashMap<(PathBuf, Scope), Option<Compiled>>,
    /// Those that compiled, in the order in which they were read.
    sets: Vec<RuleSet>,
    /// The same, for a plan after this one.
    read: Vec<ReadRules>,
    /// Those of the plan before.
    before: &'a [ReadRules],
    problems: Problems,
}

impl<'a> RulesFiles<'a> {
    /// For these pools, classes and lists; what is wrong with lists is among the problems. Rules of the plan `before` are taken
    /// over where nothing about them has changed.
    pub(crate) fn new(
        spec: &'a Spec,
        lists: &[ReadList],
        before: Option<&'a Plan>,
        problems: Problems,
    ) -> Self {
        let pools = &spec.pools;
        let names =
            pools.iter().map(|pool| (pool.name.value.as_str(), server_names(pool).flatten().collect()));
        Self {
            pools,
            positions: pools.iter().map(|pool| pool.name.value.as_str()).zip(0..).collect(),
            names: Targets::known::<_, &str>(names)
                .with_limits(spec.limits.iter().map(|limit| limit.name.value.as_str()))
                .with_bandwidths(spec.bandwidth.iter().map(|class| class.name.value.as_str()))
                .with_lists(lists.iter().map(|read| read.list.clone()))
                .into(),
            compiled: HashMap::new(),
            sets: Vec::new(),
            read: Vec::new(),
            before: before.map_or(&[], |plan| &plan.rules),
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
            Outside::System { instead: Some(instead) } if is_one_file(instead.path, path) => {
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

    /// Those that compiled, for a plan after this one.
    pub(crate) fn take_read(&mut self) -> Arc<[ReadRules]> {
        std::mem::take(&mut self.read).into()
    }

    /// The targets that they can name.
    pub(crate) fn names(&self) -> Arc<Targets> {
        self.names.clone()
    }

    /// What is wrong with the files, and those that compiled.
    pub(crate) fn into_parts(self) -> (Problems, Vec<RuleSet>) {
        (self.problems, self.sets)
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
        let before = self.before.iter().find(|before| before.are(path, &source, scope, &program));
        let read = before.cloned().unwrap_or_else(|| ReadRules {
            body_paths: (!program.payloads.is_empty()).then(|| Arc::new(BodyPaths::new(&program))),
            path: path.to_owned(),
            source: source.clone(),
            scope,
            program: Arc::new(program),
        });
        let ReadRules { program, body_paths, .. } = read.clone();
        self.read.push(read);
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

/// Whether two paths lead to the same file, by links or otherwise.
fn is_one_file(one: &Path, other: &Path) -> bool {
    let leads_to = |path: &Path| path.canonicalize().ok();
    one == other || leads_to(one).is_some_and(|file| leads_to(other) == Some(file))
}
