//! Lists by name: `clientip in @blocked`.

use std::sync::Arc;

use crate::ast::Name;
use crate::format::spell;
use crate::parser::shorten;
use crate::{FieldType, List, Members, Over};

use super::Compiler;
use super::conditions::{Left, type_name};

impl Compiler<'_> {
    /// The list that a name means, if what is in it goes with the field.
    pub(super) fn named_list(&mut self, left: &Left<'_>, name: &Name) -> Option<Arc<List>> {
        let shown = shorten(&name.text);
        let Some(known) = self.targets.lists() else {
            self.error(
                name.span,
                format!("what is in the list `@{shown}` is not known here"),
                format!("give the configuration that has it in `[list.{shown}]`, not the rules alone"),
            );
            return None;
        };
        let Some(list) = known.get(&name.text) else {
            let help = match self.nearest(&name.text, known.keys().map(|known| &**known)) {
                Some(known) => format!("did you mean `@{known}`?"),
                None => format!("the configuration says what is in it, in `[list.{shown}]`"),
            };
            self.error(name.span, format!("unknown list `@{shown}`"), help);
            return None;
        };
        let value_type = left.value_type();
        match (&list.members, value_type) {
            (Members::Networks(_), FieldType::Ip) => Some(list.clone()),
            (Members::Texts(texts), FieldType::Text) => {
                let has_capital = |text: &&[u8]| text.iter().any(u8::is_ascii_uppercase);
                if left.is_lower_case()
                    && let Some(text) = texts.iter().filter(has_capital).min()
                {
                    let field = shorten(&spell(left.operand, self.source));
                    let text = shorten(&String::from_utf8_lossy(text));
                    let message = format!("`{field}` is always in lower case, so it is never `{text}`");
                    self.warn(name.span, message, format!("write what is in `@{shown}` in small letters"));
                }
                Some(list.clone())
            }
            (members, _) => {
                let field = shorten(&spell(left.operand, self.source));
                let is = match left.operand.over {
                    Over::Count => "a whole number",
                    _ => type_name(value_type),
                };
                let holds = match members {
                    Members::Networks(_) => "networks",
                    Members::Texts(_) => "texts",
                };
                let message = format!("`{field}` is {is}, and `@{shown}` holds {holds}");
                let help = match (members, value_type) {
                    (Members::Networks(_), FieldType::Text) => {
                        "networks are for addresses, such as `clientip`"
                    }
                    (Members::Texts(_), FieldType::Ip) => {
                        "a list for addresses has `kind = \"networks\"`, which is the default"
                    }
                    _ => "lists hold networks or texts",
                };
                self.error(name.span, message, help);
                None
            }
        }
    }
}
