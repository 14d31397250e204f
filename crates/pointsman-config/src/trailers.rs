//! Request trailers that a listener passes to servers.

use pointsman_http::names_read_alike;
use pointsman_rules::Program;

use crate::candidate;
use crate::lower::Lowering;
use crate::spec::ListenerSpec;

impl Lowering<'_> {
    /// The trailers that pass: those that the rules do not use. A rule has decided by the header.
    pub(crate) fn trailers(&self, spec: &ListenerSpec, program: Option<&Program>) -> Vec<Box<str>> {
        let limits = self.spec.limits.iter().map(|spec| &spec.limit);
        let used = program.map(|program| candidate::named_fields(program, limits)).unwrap_or_default();
        let mut passing = Vec::new();
        for name in &spec.trailers {
            let reads_alike = |field: &str| names_read_alike(field.as_bytes(), name.value.as_bytes());
            match used.iter().find(|field| reads_alike(field)) {
                None => passing.push(name.value.clone()),
                Some(field) => {
                    let message =
                        format!("the trailer `{}` never passes: the rules use `{field}`", name.value);
                    self.findings.warning(name.span, message, "leave it out");
                }
            }
        }
        passing
    }
}
