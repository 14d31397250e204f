//! The client that a chain of hops names: X-Forwarded-For and `clientip`, of which no request was found.

use pointsman_rules::{Field, OwnedValue};

use super::joined::{Case, Sought};
use super::{Trial, Try};
use crate::Effort;
use crate::space::Solved;

const LINE: &str = r#"header["x-forwarded-for"]"#;

impl<'p> Trial<'_, 'p> {
    /// With the client as the last hop of the last line: a proxy writes there who has come to it.
    pub(super) fn chain(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        let is_line = |field: &Field| matches!(field, Field::Header(name) if &**name == "x-forwarded-for");
        let has = |is_it: &dyn Fn(&Field) -> bool| case.why.fields.iter().any(is_it);
        if !has(&is_line) || !has(&|field| *field == Field::ClientIp) {
            return None;
        }
        let (line, _) = *case.sketch.fields.iter().find(|(field, _)| is_line(field))?;
        let (_, client) = case.sketch.fields.iter().find(|(field, _)| **field == Field::ClientIp)?;
        let [OwnedValue::Ip(client)] = client.known[..] else { return None };
        let address = client.to_canonical().to_string();
        let mut sought = Sought::new(line, LINE, case.matters);
        sought.narrow(format!("{LINE} matches \"(?:^|,)[ ]*{}$\"", address.replace('.', "[.]")));
        let Solved::Values(mut values) = self.solve_within(&sought, effort)? else { return None };
        let names_client = |value: &OwnedValue| match value {
            OwnedValue::Text(text) => {
                text.rsplit(|byte| *byte == b',').next().map(<[u8]>::trim_ascii) == Some(address.as_bytes())
            }
            _ => false,
        };
        let place = values.known.iter().rposition(names_client)?;
        let last = values.known.remove(place);
        values.known.push(last);
        self.with_other_values(case.sketch, &[line], vec![(line, values)], effort)
    }
}
