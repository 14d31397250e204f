//! The description of the API, made from the table of routes.

use serde_json::{Map, Value, json};

use crate::answers::REFUSED;
use crate::route::{Answer, ID_CHARACTERS_MAX, Needs, PARAMETER_CHARACTERS_MAX, ParameterKind, Route};
use crate::routes::ROUTES;
use crate::shape::Shape;

/// An OpenAPI document.
pub(crate) fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "The admin API of pointsman",
            "version": "1",
            "description": "Changes need a token, or a client certificate where `client_ca` of `[admin.tls]` names its authority. Reading is free on the loopback, and needs one of the two from elsewhere.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "certificate": { "type": "mutualTLS" },
            },
            "schemas": { "problem": problem() },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut answers = Map::new();
    let (media_type, schema) = match &route.answer {
        Answer::Text => ("text/plain", Shape::Text.schema()),
        Answer::Json(shape) => ("application/json", shape.schema()),
    };
    let content = json!({ media_type: { "schema": schema } });
    answers.insert("200".to_owned(), json!({ "description": "Done.", "content": content }));
    for (status, what) in usual_refusals().into_iter().chain(route.refusals.iter().copied()) {
        let content = match (&route.answer, status) {
            // Who asks whether it serves reads a word, whatever that is.
            (Answer::Text, 503) => json!({ "text/plain": { "schema": Shape::Text.schema() } }),
            _ => {
                json!({ "application/problem+json": { "schema": { "$ref": "#/components/schemas/problem" } } })
            }
        };
        answers.insert(status.to_string(), json!({ "description": what, "content": content }));
    }
    // Any of them will do, and an empty requirement is none.
    let security = match route.needs {
        Needs::Read => json!([{}, { "token": [] }, { "certificate": [] }]),
        Needs::Change => json!([{ "token": [] }, { "certificate": [] }]),
    };
    let mut operation = json!({
        "summary": route.summary,
        "operationId": format!("{:?}", route.call),
        "parameters": parameters(route),
        "security": security,
        "responses": answers,
    });
    if let Some(body) = route.body {
        let (media_type, schema) = match body.shape {
            None => ("text/plain", Shape::Text.schema()),
            Some(shape) => ("application/json", shape.schema()),
        };
        let content = json!({ media_type: { "schema": schema } });
        // No text is an empty one.
        let is_required = body.shape.is_some();
        operation["requestBody"] =
            json!({ "description": body.doc, "required": is_required, "content": content });
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let query = route.query.iter().map(|parameter| {
        let schema = match parameter.kind {
            ParameterKind::Flag => json!({ "type": "boolean", "default": false }),
            ParameterKind::Text => json!({ "type": "string", "maxLength": PARAMETER_CHARACTERS_MAX }),
            ParameterKind::Id => {
                json!({ "type": "string", "pattern": format!("^[A-Za-z0-9._-]{{1,{ID_CHARACTERS_MAX}}}$") })
            }
            ParameterKind::Word(words) => Shape::Word(words).schema(),
            ParameterKind::Number { min, max } => Shape::Within(min.into(), max.into()).schema(),
        };
        json!({ "name": parameter.name, "in": "query", "description": parameter.doc, "schema": schema })
    });
    let text = json!({ "type": "string" });
    let names = route.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let name = json!({ "type": "string", "minLength": 1 });
    let names = names.map(|named| json!({ "name": named, "in": "path", "required": true, "schema": name }));
    let if_match = route
        .if_match
        .map(|what| json!({ "name": "If-Match", "in": "header", "description": what, "schema": text }));
    names.chain(query).chain(if_match).collect()
}

fn usual_refusals() -> [(u16, &'static str); 6] {
    [
        (400, "The request is malformed, or a parameter is not known."),
        (401, "A token or a client certificate is needed, and none was shown that is known."),
        (
            403,
            "The request names another host, comes from a web page that may not ask, or nobody has a token.",
        ),
        (413, "The body is too large."),
        (431, "The head is too large."),
        (504, "The switch did not get it done in time."),
    ]
}

fn problem() -> Value {
    let text = |what: &str| json!({ "type": "string", "description": what });
    let usual = json!({
        "type": text("Always `about:blank`: the status says what it is."),
        "title": text("The name of the status."),
        "status": { "type": "integer" },
        "detail": text("What is wrong, in a sentence."),
    });
    let mut members = usual.as_object().cloned().unwrap_or_default();
    members.extend(REFUSED.iter().map(|(name, shape)| ((*name).to_owned(), shape.schema())));
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": members,
    })
}
