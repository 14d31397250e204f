//! What rules of a listener are written with.

use pointsman_admin::Page;
use pointsman_config::Colour;
use pointsman_rules::vocabulary::{
    self, Action, ActionKind, FieldEntry, FieldKey, Known, Parameter, ParameterKind, Word,
};
use pointsman_rules::{Scope, Targets};
use serde_json::{Value, json};

use super::SwitchPages;
use crate::run::publishing::Unfit;

impl SwitchPages {
    /// Fields, operators and actions, and what the configuration has for them.
    pub(super) fn vocabulary(&self, listener: &str) -> Page {
        let found = self.switch.borrow().with_plan(|plan| {
            let listener = plan.listener_named(listener)?;
            Some((listener.protocol.scope(), plan.targets.clone()))
        });
        match found {
            Some((scope, targets)) => Page::dense_json(&said(listener, scope, &targets)),
            None => self.unfit(Unfit::NoListener, Colour::Never),
        }
    }
}

fn said(listener: &str, scope: Scope, targets: &Targets) -> Value {
    let fields: Vec<_> = vocabulary::fields(scope).iter().map(field_to_json).collect();
    let operators = vocabulary::OPERATORS.iter().map(|(word, types)| {
        let mut operator = word_to_json(word);
        operator["types"] = json!(types);
        operator
    });
    let words = |words: &[Word]| words.iter().map(word_to_json).collect::<Vec<_>>();
    let mut said = json!({
        "version": 1,
        "listener": listener,
        "fields": fields,
        "operators": operators.collect::<Vec<_>>(),
        "functions": words(vocabulary::FUNCTIONS),
        "actions": vocabulary::actions(scope).iter().map(action_to_json).collect::<Vec<_>>(),
        "stickinesses": words(&vocabulary::stickinesses(scope)),
        "settings": words(vocabulary::SETTINGS),
        "keywords": words(vocabulary::KEYWORDS),
        "pools": [], "bandwidths": [], "limits": [], "lists": [],
    });
    if let Targets::Known { pools, limits, bandwidths, lists } = targets {
        let pools = pools.iter().map(|(name, servers)| json!({ "name": name, "servers": servers }));
        said["pools"] = pools.collect();
        said["bandwidths"] = json!(bandwidths);
        said["limits"] = json!(limits);
        said["lists"] = lists.keys().map(|name| json!(name)).collect();
    }
    said
}

fn word_to_json(Word { name, spelling, doc }: &Word) -> Value {
    json!({ "name": name, "spelling": spelling, "doc": doc })
}

fn field_to_json(field: &FieldEntry) -> Value {
    let FieldEntry { name, spelling, key, value_type, is_many_valued, known, doc } = field;
    let key = match key {
        FieldKey::None => "none",
        FieldKey::Optional => "optional",
        FieldKey::Required => "required",
        FieldKey::Path => "path",
    };
    let known = match known {
        Known::Connection => "connection",
        Known::Head => "head",
        Known::Body => "body",
    };
    json!({
        "name": name, "spelling": spelling, "key": key, "type": value_type,
        "is_many_valued": is_many_valued, "known": known, "doc": doc,
    })
}

fn action_to_json(action: &Action) -> Value {
    let kind = match action.kind {
        ActionKind::Terminal => "terminal",
        ActionKind::Effect => "effect",
        ActionKind::Jump => "jump",
        ActionKind::Remark => "remark",
    };
    let parameters = action.parameters.iter().map(|Parameter { name, of, is_required }| {
        json!({ "name": name, "of": parameter_word(*of), "is_required": is_required })
    });
    json!({
        "name": action.name, "spelling": action.spelling, "kind": kind,
        "parameters": parameters.collect::<Vec<_>>(), "doc": action.doc,
    })
}

fn parameter_word(of: ParameterKind) -> &'static str {
    match of {
        ParameterKind::Target => "target",
        ParameterKind::Pool => "pool",
        ParameterKind::Stickiness => "stickiness",
        ParameterKind::Status => "status",
        ParameterKind::Text => "text",
        ParameterKind::Template => "template",
        ParameterKind::Regex => "regex",
        ParameterKind::Header => "header",
        ParameterKind::Bandwidth => "bandwidth",
        ParameterKind::Limit => "limit",
        ParameterKind::Word => "word",
        ParameterKind::Label => "label",
        ParameterKind::Labels => "labels",
    }
}
