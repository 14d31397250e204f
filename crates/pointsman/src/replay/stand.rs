//! The rules that a log is replayed against, and the listeners that they stand at.

use std::path::Path;
use std::sync::Arc;

use pointsman_config::{Listener, Loaded, Plan, Protocol, Settings};
use pointsman_rules::{Colour, Diagnostic, Program, Severity, Targets, draw};

use super::Options;
use crate::check::input;
use crate::explain::place::Place;

/// A rule set by itself, or the listeners of a configuration.
pub(crate) struct Rules {
    pub(crate) stands: Vec<Stand>,
    /// Whether no configuration says where they stand.
    pub(crate) are_alone: bool,
    /// What their configuration sets; absent where there is none.
    pub(crate) settings: Option<Arc<Settings>>,
}

/// A listener with its rules, as far as it is asked for.
pub(crate) struct Stand {
    pub(crate) place: Place,
}

/// The rules that are to come, and those before where they are given.
pub(super) struct Sides {
    pub(super) new: Rules,
    pub(super) old: Option<Rules>,
}

impl Sides {
    /// Reads them; the error is a text for people. A rule set beside a configuration takes the place of the rules of
    /// one of its listeners.
    pub(super) fn load(options: &Options, colour: Colour) -> Result<Sides, String> {
        let wanted = options.listener.as_deref();
        let Some(old) = &options.old else {
            let new = match input::is_configuration(&options.new) {
                true => configured(&options.new, wanted, colour)?.0,
                false => alone(&options.new, colour)?,
            };
            return Ok(Sides { new, old: None });
        };
        let (old, new) = both(old, &options.new, wanted, colour)?;
        Ok(Sides { new, old: Some(old) })
    }
}

/// Old rules and new ones, of one listener where one is wanted; the error is a text for people. A rule set beside a
/// configuration takes the place of the rules of one of its listeners.
pub(crate) fn both(
    old: &Path,
    new: &Path,
    wanted: Option<&str>,
    colour: Colour,
) -> Result<(Rules, Rules), String> {
    Ok(match (input::is_configuration(old), input::is_configuration(new)) {
        (false, false) => {
            let new = alone(new, colour)?;
            (alone(old, colour)?, new)
        }
        (true, true) => {
            let new = configured(new, wanted, colour)?.0;
            (configured(old, wanted, colour)?.0, new)
        }
        (false, true) => {
            let (new, loaded) = configured(new, wanted, colour)?;
            (instead(old, &new, wanted, &loaded, colour)?, new)
        }
        (true, false) => {
            let (old, loaded) = configured(old, wanted, colour)?;
            let new = instead(new, &old, wanted, &loaded, colour)?;
            (old, new)
        }
    })
}

impl Rules {
    /// The listeners of a plan.
    pub(crate) fn of(plan: &Plan) -> Rules {
        let stands = plan.listeners.iter().map(|listener| Stand::of(listener, plan));
        Rules { stands: stands.collect(), are_alone: false, settings: Some(plan.settings.clone()) }
    }

    /// The listener of this name, or the only one that reads requests; of rules by themselves the only place there is.
    pub(super) fn stand(&self, listener: Option<&str>) -> Option<&Stand> {
        let mut stands = self.stands.iter();
        match listener {
            _ if self.are_alone => stands.next(),
            Some(name) => stands.find(|stand| &*stand.place.listener == name),
            None => {
                let mut requests = stands.filter(|stand| stand.place.protocol == Protocol::Http);
                let first = requests.next();
                first.filter(|_| requests.next().is_none())
            }
        }
    }
}

impl Stand {
    fn alone(program: Program) -> Stand {
        let place = Place::of_no_listener(Arc::new(program), Vec::new());
        Stand { place }
    }

    fn of(listener: &Listener, plan: &Plan) -> Stand {
        Stand { place: Place::of_listener(listener, plan, &[]) }
    }
}

/// A rule set whose targets are taken as given.
fn alone(path: &Path, colour: Colour) -> Result<Rules, String> {
    let stands = vec![Stand::alone(compiled(path, &Targets::Any, colour)?)];
    Ok(Rules { stands, are_alone: true, settings: None })
}

fn compiled(path: &Path, targets: &Targets, colour: Colour) -> Result<Program, String> {
    let source = input::text(path).map_err(|message| format!("error: {message}\n"))?;
    let compiled = pointsman_rules::compile(&source, targets);
    compiled.map(|compiled| compiled.program).map_err(|findings| {
        let errors = findings.iter().filter(|finding: &&Diagnostic| finding.severity == Severity::Error);
        draw(errors, &input::name(path), &source, colour)
    })
}

/// The listeners of a configuration, or the one that is wanted.
fn configured(path: &Path, wanted: Option<&str>, colour: Colour) -> Result<(Rules, Loaded), String> {
    let loaded = Plan::check_only(path).map_err(|problems| problems.render(colour))?;
    let plan = &loaded.plan;
    let is_wanted = |listener: &&Listener| wanted.is_none_or(|wanted| wanted == &*listener.name);
    let stands: Vec<_> =
        plan.listeners.iter().filter(is_wanted).map(|listener| Stand::of(listener, plan)).collect();
    if let (true, Some(name)) = (stands.is_empty(), wanted) {
        let names: Vec<_> = plan.listeners.iter().map(|listener| format!("`{}`", listener.name)).collect();
        return Err(format!(
            "error: there is no listener `{name}` in `{}`\nhelp: the listeners are {}\n",
            path.display(),
            names.join(", ")
        ));
    }
    Ok((Rules { stands, are_alone: false, settings: Some(plan.settings.clone()) }, loaded))
}

/// A rule set in the place of that of a listener of a configuration.
fn instead(
    path: &Path,
    beside: &Rules,
    wanted: Option<&str>,
    loaded: &Loaded,
    colour: Colour,
) -> Result<Rules, String> {
    let requests = beside.stands.iter().filter(|stand| stand.place.protocol == Protocol::Http);
    let requests: Vec<_> = requests.collect();
    let name = input::name(path);
    let only = match (requests.as_slice(), wanted) {
        ([only], _) => only,
        ([], Some(listener)) => {
            return Err(format!(
                "error: `{name}` cannot take the place of the rules of the listener `{listener}`\n\
                 help: it reads no requests, and rules that stand alone are about requests\n"
            ));
        }
        ([], None) => {
            return Err(format!(
                "error: there is no listener whose rules `{name}` could take the place of\n\
                 help: rules that stand alone are about requests, and none of the configuration reads any\n"
            ));
        }
        (several, _) => {
            let names: Vec<_> = several.iter().map(|stand| format!("`{}`", stand.place.listener)).collect();
            return Err(format!(
                "error: it is not said which listener's rules `{name}` takes the place of\n\
                 help: `--listener NAME` says it; there are {}\n",
                names.join(", ")
            ));
        }
    };
    let listener = loaded.plan.listener_named(&only.place.listener);
    let Some(listener) = listener else { return Err("error: the listener is gone\n".to_owned()) };
    let mut stand = Stand::of(listener, &loaded.plan);
    stand.place.program = Some(Arc::new(compiled(path, &loaded.plan.targets, colour)?));
    Ok(Rules { stands: vec![stand], are_alone: false, settings: Some(loaded.plan.settings.clone()) })
}
