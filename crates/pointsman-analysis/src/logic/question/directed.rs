//! Hosts that HTTP/2 asks for on connections which are not for them. For each name that a handshake may have it is looked which
//! hosts may be asked for; what no name leaves is proved to be in no request.

use std::sync::{Arc, LazyLock};

use pointsman_rules::Field;

use super::exclusions::{Forced, Part};
use super::joined::Case;
use super::related::{Mattering, asked, numbers};
use super::solving::Facts;
use super::{Trial, Try};
use crate::Effort;
use crate::logic::lemmas::Lemma;
use crate::space::{Solved, of_fixed, solve, solve_present};
use crate::wanted::{Asked, Values};
use crate::witness::{Directed, Named, Setting};

/// A name with its hosts, and what holds of both.
pub(super) struct Directing {
    way: Directed,
    holds: Facts,
}

/// All names of a listener. Nothing where that is not known.
fn directing(setting: &Setting) -> Option<Arc<[Directing]>> {
    let of = |way: Directed| {
        let name = match &way.name {
            Named::Among(name) => name.as_slice(),
            Named::Nobody | Named::Host => &[],
        };
        let holds = Facts::read(&[name, &way.host].concat())?;
        Some(Directing { way, holds })
    };
    setting.hosts.directed()?.into_iter().map(of).collect()
}

impl<'p> Trial<'_, 'p> {
    /// The sketch with a name and a host that go together, or that none do. Nothing where that leads no further.
    pub(super) fn direct(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        static CONNECTION: LazyLock<Option<[Part; 2]>> = LazyLock::new(|| {
            Some([Part::read(&(r#"version == "2""#, true))?, Part::read(&(r#"proto == "https""#, true))?])
        });
        let is_of_it = |field: &Field| matches!(field, Field::TlsSni | Field::Host);
        if !self.analyst.setting.believes_nobody() || !case.why.fields.iter().any(is_of_it) {
            return None;
        }
        let ways = self.analyst.directing.take().or_else(|| directing(self.analyst.setting))?;
        self.analyst.directing = Some(ways.clone());
        let names = self.wanted_of(case.matters, |field| *field == Field::TlsSni);
        let hosts = self.wanted_of(case.matters, |field| *field == Field::Host);
        let of: Vec<&Field> = names.iter().chain(&hosts).map(|(test, _)| &test.field).collect();
        let (mut lemma, mut is_open) = (Lemma::new(), false);
        for way in ways.iter() {
            match self.directed(way, &names, &hosts, effort) {
                Some(Ok(values)) => {
                    is_open = true;
                    if let Some(tried) = self.with_other_values(case.sketch, &of, values, effort) {
                        return Some(tried);
                    }
                }
                Some(Err(failed)) => lemma.extend(failed),
                None => is_open = true,
            }
        }
        for part in CONNECTION.as_ref()? {
            match self.forced(part.test()?, true, case.matters, effort)? {
                Forced::Yes(because) => lemma.extend(because),
                Forced::No(values) => {
                    let (field, values) = values?;
                    return self.with_other_values(case.sketch, &[field], vec![(field, values)], effort);
                }
            }
        }
        if is_open {
            return None;
        }
        self.never(lemma);
        Some(Try::Again)
    }

    /// Values of the name and of the host, as far as something is asked of them, or the tests of one of them that fail.
    fn directed(
        &mut self,
        Directing { way, holds }: &Directing,
        names: &[Mattering<'p>],
        hosts: &[Mattering<'p>],
        effort: &mut Effort,
    ) -> Option<Result<Vec<(&'p Field, Values)>, Lemma>> {
        if way.name == Named::Host {
            let both = [names, hosts].concat();
            let found = self.directed_field(&Field::TlsSni, &both, holds, effort)?;
            return Some(found.map(|values| with(names, &values).chain(with(hosts, &values)).collect()));
        }
        let name = match way.name {
            Named::Nobody => {
                let all: Vec<Asked<'_>> = asked(names).collect();
                match of_fixed(Values::default(), &all) {
                    Solved::Nothing { because } => Err(numbers(because, names)),
                    _ => Ok(Values::default()),
                }
            }
            _ => self.directed_field(&Field::TlsSni, names, holds, effort)?,
        };
        let name = match name {
            Ok(values) => values,
            Err(failed) => return Some(Err(failed)),
        };
        let host = self.directed_field(&Field::Host, hosts, holds, effort)?;
        Some(host.map(|host| with(names, &name).chain(with(hosts, &host)).collect()))
    }

    fn directed_field(
        &mut self,
        field: &Field,
        tests: &[Mattering<'p>],
        holds: &Facts,
        effort: &mut Effort,
    ) -> Option<Result<Values, Lemma>> {
        let mut all: Vec<Asked<'_>> = asked(tests).collect();
        all.extend(holds.of_field(field));
        if !effort.take(1 + all.len() as u64) {
            return None;
        }
        let solve = if *field == Field::TlsSni { solve_present } else { solve };
        match solve(field, &all, &mut self.analyst.automata, effort) {
            Solved::Values(values) => Some(Ok(values)),
            Solved::Nothing { because } => Some(Err(numbers(because, tests))),
            Solved::Unknown => None,
        }
    }
}

/// The field of some tests with its values; nothing where there are no tests.
fn with<'p>(tests: &[Mattering<'p>], values: &Values) -> impl Iterator<Item = (&'p Field, Values)> {
    tests.first().map(|(test, _)| (&test.field, values.clone())).into_iter()
}
