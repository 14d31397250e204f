//! The refusing rules: what each forbids, the plainest request that it meets, and what a reader must not have read.

use super::dice::Dice;
use super::draft::{Content, Draft, Multipart, Param, Place, Xml};
use super::mutations::Area;
use super::reading::Reading;

/// A rule, in a set of its own.
pub(super) struct Rule {
    pub(super) name: &'static str,
    /// Condition under which the set refuses; for `strip` the effect stands in `text`.
    pub(super) condition: &'static str,
    pub(super) forbids: Forbids,
    /// Writes the value into a draft, in one of its plain forms.
    pub(super) plain: fn(&mut Draft, &mut Dice),
    /// Mutations that fit.
    pub(super) areas: &'static [Area],
}

/// Values that no reader may have read of a request that passed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Forbids {
    Equal {
        fields: &'static [&'static str],
        value: &'static str,
    },
    Above {
        field: &'static str,
        limit: f64,
    },
    Under {
        fields: &'static [&'static str],
        prefix: &'static str,
    },
    /// Guards: a reader that reads the field must read this.
    Other {
        field: &'static str,
        than: &'static str,
    },
    Outside {
        field: &'static str,
        prefix: &'static str,
    },
    /// All of the other rules that are no guards.
    All,
}

impl Forbids {
    /// The first value in a reading that should have been met, as `field = value`.
    pub(super) fn found(self, reading: &Reading) -> Option<String> {
        let is_under = |value: &str, prefix: &str| {
            value.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let first = |fields: &[&'static str], is_forbidden: &dyn Fn(&str) -> bool| {
            let values =
                fields.iter().flat_map(|field| reading.values(field).map(move |value| (field, value)));
            let mut values = values.filter(|(_, value)| is_forbidden(value));
            values.next().map(|(field, value)| format!("{field} = {value:?}"))
        };
        match self {
            Self::Equal { fields, value } => first(fields, &|read| read == value),
            Self::Above { field, limit } => {
                first(&[field], &|read| read.trim().parse::<f64>().is_ok_and(|number| number > limit))
            }
            Self::Under { fields, prefix } => first(fields, &|read| is_under(read, prefix)),
            // Blanks at the edges make no other user of a value.
            Self::Other { field, than } => first(&[field], &|read| read.trim() != than),
            Self::Outside { field, prefix } => first(&[field], &|read| !is_under(read, prefix)),
            Self::All => {
                let plain = RULES.iter().filter(|rule| rule.is_positive());
                plain.map(|rule| rule.forbids).find_map(|forbids| forbids.found(reading))
            }
        }
    }
}

impl Rule {
    /// Whether the plainest request is what it refuses; a guard refuses its absence.
    pub(super) fn is_positive(&self) -> bool {
        matches!(self.forbids, Forbids::Equal { .. } | Forbids::Above { .. } | Forbids::Under { .. })
    }

    /// The set of rules that a listener runs.
    pub(super) fn text(&self) -> String {
        if self.name == "strip" {
            return "S: { setHeader(\"x-user\", \"anon\"); }\nelse: routeTo(readers);\n".to_owned();
        }
        let refusing: Vec<&str> = match self.forbids {
            Forbids::All => {
                RULES.iter().filter(|rule| rule.is_positive()).map(|rule| rule.condition).collect()
            }
            _ => vec![self.condition],
        };
        let rules: Vec<String> = (1..)
            .zip(refusing)
            .map(|(at, condition)| format!("R{at}: if ({condition}) {{ reject(403); }}\n"))
            .collect();
        format!("{}else: routeTo(readers);\n", rules.concat())
    }

    pub(super) fn draft(&self, dice: &mut Dice) -> Draft {
        let mut draft = Draft::new();
        (self.plain)(&mut draft, dice);
        draft
    }
}

const PARAMS: &[Area] = &[Area::Params, Area::Params, Area::Target, Area::Any];

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "path",
        condition: "path under \"/admin\"",
        forbids: Forbids::Under { fields: &["path", "mount"], prefix: "/admin" },
        plain: |draft, dice| draft.path = dice.pick(&["/admin", "/admin/users"]).as_bytes().to_vec(),
        areas: &[Area::Path, Area::Path, Area::Target],
    },
    Rule {
        name: "host",
        condition: "host == \"internal.example\"",
        forbids: Forbids::Equal { fields: &["host"], value: "internal.example" },
        plain: |draft, _| draft.host = b"internal.example".to_vec(),
        areas: &[Area::Host, Area::Host, Area::Target],
    },
    Rule {
        name: "query",
        condition: "query[\"my_plan\"] == \"gold\"",
        forbids: Forbids::Equal { fields: &["query.my_plan"], value: "gold" },
        plain: |draft, _| {
            draft.place = Some(Place::Query);
            param(draft, "my_plan", "gold");
        },
        areas: PARAMS,
    },
    Rule {
        name: "cookie",
        condition: "cookie[\"my_plan\"] == \"gold\"",
        forbids: Forbids::Equal { fields: &["cookie.my_plan"], value: "gold" },
        plain: |draft, _| {
            draft.place = Some(Place::Cookie);
            param(draft, "my_plan", "gold");
        },
        areas: &[Area::Params, Area::Cookie, Area::Cookie, Area::Field],
    },
    Rule {
        name: "header",
        condition: "header[\"x-role\"] == \"root\"",
        forbids: Forbids::Equal { fields: &["header.x-role"], value: "root" },
        plain: |draft, _| header(draft, "x-role", "root"),
        areas: &[Area::Field, Area::Field, Area::Framing],
    },
    Rule {
        name: "header-list",
        condition: "header[\"x-scope\"] == \"read, write\"",
        forbids: Forbids::Equal { fields: &["header.x-scope"], value: "read, write" },
        plain: |draft, _| header(draft, "x-scope", "read, write"),
        areas: &[Area::Field, Area::Field, Area::Framing],
    },
    Rule {
        name: "form",
        condition: "form[\"my_plan\"] == \"gold\"",
        forbids: Forbids::Equal { fields: &["form.my_plan"], value: "gold" },
        plain: |draft, _| {
            form(draft);
            param(draft, "my_plan", "gold");
        },
        areas: &[Area::Params, Area::Params, Area::Label, Area::Framing],
    },
    Rule {
        name: "form-multipart",
        condition: "form[\"my_plan\"] == \"gold\"",
        forbids: Forbids::Equal { fields: &["form.my_plan"], value: "gold" },
        plain: |draft, _| multipart(draft, "my_plan", "gold"),
        areas: &[Area::Multipart, Area::Multipart, Area::Multipart, Area::Label, Area::Framing],
    },
    Rule {
        name: "json-number",
        condition: "json.total > 52000",
        forbids: Forbids::Above { field: "json.total", limit: 52_000.0 },
        plain: |draft, _| json(draft, "\"total\"", "60000"),
        areas: &[Area::Json, Area::Json, Area::Label, Area::Framing],
    },
    Rule {
        name: "json-text",
        condition: "json.status == \"paid\"",
        forbids: Forbids::Equal { fields: &["json.status"], value: "paid" },
        plain: |draft, _| json(draft, "\"status\"", "\"paid\""),
        areas: &[Area::Json, Area::Json, Area::Label, Area::Framing],
    },
    Rule {
        name: "xml-number",
        condition: "xml.order/total > 52000",
        forbids: Forbids::Above { field: "xml.total", limit: 52_000.0 },
        plain: |draft, _| xml(draft, "total", "60000"),
        areas: &[Area::Xml, Area::Xml, Area::Label, Area::Framing],
    },
    Rule {
        name: "xml-text",
        condition: "xml.order/status == \"paid\"",
        forbids: Forbids::Equal { fields: &["xml.status"], value: "paid" },
        plain: |draft, _| xml(draft, "status", "paid"),
        areas: &[Area::Xml, Area::Xml, Area::Label, Area::Framing],
    },
    Rule {
        name: "size",
        condition: "body.size > 64",
        forbids: Forbids::Above { field: "size", limit: 64.0 },
        plain: long_body,
        areas: &[Area::Framing, Area::Label, Area::Any],
    },
    Rule {
        name: "length",
        condition: "content_length > 64",
        forbids: Forbids::Above { field: "size", limit: 64.0 },
        plain: long_body,
        areas: &[Area::Framing, Area::Label, Area::Any],
    },
    Rule {
        name: "strip",
        condition: "",
        forbids: Forbids::Other { field: "header.x-user", than: "anon" },
        plain: |draft, _| header(draft, "x-user", "admin"),
        areas: &[Area::Field, Area::Framing],
    },
    Rule {
        name: "guard-path",
        condition: "!(path under \"/public\")",
        forbids: Forbids::Outside { field: "path", prefix: "/public" },
        plain: |draft, _| draft.path = b"/public/a".to_vec(),
        areas: &[Area::Path, Area::Target],
    },
    Rule {
        name: "guard-query",
        condition: "!(query[\"auth\"] == \"s3cret\")",
        forbids: Forbids::Other { field: "query.auth", than: "s3cret" },
        plain: |draft, _| {
            draft.place = Some(Place::Query);
            param(draft, "auth", "s3cret");
        },
        areas: PARAMS,
    },
    Rule {
        name: "guard-cookie",
        condition: "!(cookie[\"auth\"] == \"s3cret\")",
        forbids: Forbids::Other { field: "cookie.auth", than: "s3cret" },
        plain: |draft, _| {
            draft.place = Some(Place::Cookie);
            param(draft, "auth", "s3cret");
        },
        areas: &[Area::Params, Area::Cookie],
    },
    Rule {
        name: "guard-header",
        condition: "!(header[\"x-key\"] == \"s3cret\")",
        forbids: Forbids::Other { field: "header.x-key", than: "s3cret" },
        plain: |draft, _| header(draft, "x-key", "s3cret"),
        areas: &[Area::Field, Area::Framing],
    },
    Rule {
        name: "guard-form",
        condition: "!(form[\"auth\"] == \"s3cret\")",
        forbids: Forbids::Other { field: "form.auth", than: "s3cret" },
        plain: |draft, dice| {
            if dice.one_in(2) {
                multipart(draft, "auth", "s3cret");
            } else {
                form(draft);
                param(draft, "auth", "s3cret");
            }
        },
        areas: &[Area::Params, Area::Multipart, Area::Label],
    },
    Rule {
        name: "guard-json",
        condition: "!(json.status == \"paid\")",
        forbids: Forbids::Other { field: "json.status", than: "paid" },
        plain: |draft, _| json(draft, "\"status\"", "\"paid\""),
        areas: &[Area::Json, Area::Json, Area::Label],
    },
    Rule {
        name: "all",
        condition: "",
        forbids: Forbids::All,
        plain: |draft, dice| {
            let positive: Vec<&Rule> = RULES.iter().filter(|rule| rule.is_positive()).collect();
            (dice.pick(&positive).plain)(draft, dice);
        },
        areas: &[Area::Any],
    },
];

fn named(draft: &mut Draft, name: &'static str, value: &'static str) {
    (draft.name, draft.value) = (name, value);
}

fn param(draft: &mut Draft, name: &'static str, value: &'static str) {
    named(draft, name, value);
    if let Some(params) = draft.params() {
        params.push(Param::new(name, value));
    }
}

fn header(draft: &mut Draft, name: &'static str, value: &'static str) {
    named(draft, name, value);
    draft.field(&format!("{name}: {value}"));
}

fn form(draft: &mut Draft) {
    draft.place = Some(Place::Form);
    draft.method = b"POST".to_vec();
    draft.content = Content::Form(Vec::new());
    draft.media_type = Some(b"application/x-www-form-urlencoded".to_vec());
}

fn multipart(draft: &mut Draft, name: &'static str, value: &'static str) {
    named(draft, name, value);
    draft.method = b"POST".to_vec();
    let multipart = Multipart::of(&[("note", "x"), (name, value)]);
    draft.media_type = Some([b"multipart/form-data; boundary=", &multipart.parameter[..]].concat());
    draft.content = Content::Multipart(multipart);
}

fn json(draft: &mut Draft, name: &'static str, value: &'static str) {
    named(draft, name.trim_matches('"'), value.trim_matches('"'));
    draft.method = b"POST".to_vec();
    draft.media_type = Some(b"application/json".to_vec());
    draft.content = Content::Json(vec![(name.into(), value.into())]);
}

fn xml(draft: &mut Draft, name: &'static str, value: &'static str) {
    named(draft, name, value);
    draft.method = b"POST".to_vec();
    draft.media_type = Some(b"application/xml".to_vec());
    draft.content = Content::Xml(Xml::of(&format!("<{name}>{value}</{name}>")));
}

fn long_body(draft: &mut Draft, dice: &mut Dice) {
    draft.method = b"POST".to_vec();
    draft.media_type = Some(b"text/plain".to_vec());
    draft.content = Content::Bytes(vec![b'a'; 65 + dice.below(100)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rule: &str, reading: &str) -> Option<String> {
        let rule = RULES.iter().find(|known| known.name == rule).expect("a known rule");
        rule.forbids.found(&Reading::of_json(reading.as_bytes()).expect("a reading"))
    }

    #[test]
    fn forbidden_values_are_found() {
        assert_eq!(found("path", r#"{"path":["/x","/admin/a"]}"#).as_deref(), Some("path = \"/admin/a\""));
        assert_eq!(found("path", r#"{"path":["/administrator"]}"#), None);
        assert_eq!(
            found("json-number", r#"{"json.total":["6e4"]}"#).as_deref(),
            Some("json.total = \"6e4\"")
        );
        assert_eq!(found("json-number", r#"{"json.total":["52000"]}"#), None);
        assert_eq!(found("guard-cookie", r#"{"cookie.auth":["s3cret"]}"#), None);
        assert!(found("guard-cookie", r#"{"cookie.auth":["evil"]}"#).is_some());
        assert!(found("guard-path", r#"{"path":["/admin"]}"#).is_some());
        assert!(found("all", r#"{"query.my_plan":["gold"]}"#).is_some());
    }

    #[test]
    fn names_of_rules_are_different() {
        let names: std::collections::BTreeSet<_> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), RULES.len());
    }
}
