//! The description of the API, made from the table of routes.

use serde_json::{Map, Value, json};

use crate::route::{Needs, ParameterKind, Route};
use crate::routes::ROUTES;

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
            "description": "Changes need a token. Reading is free on the loopback, and needs a token from elsewhere.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": { "problem": problem() },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut answers = Map::new();
    let media_type = route.media_type;
    answers.insert("200".to_owned(), json!({ "description": "Done.", "content": { media_type: {} } }));
    for (status, what) in usual_refusals(route).into_iter().chain(route.refusals.iter().copied()) {
        let content =
            json!({ "application/problem+json": { "schema": { "$ref": "#/components/schemas/problem" } } });
        answers.insert(status.to_string(), json!({ "description": what, "content": content }));
    }
    // An empty requirement beside that of a token: either will do.
    let security = match route.needs {
        Needs::Read => json!([{}, { "token": [] }]),
        Needs::Change => json!([{ "token": [] }]),
    };
    let mut operation = json!({
        "summary": route.summary,
        "operationId": format!("{:?}", route.call),
        "parameters": parameters(route),
        "security": security,
        "responses": answers,
    });
    if let Some(body) = route.body {
        let kind = if body.media_type == "text/plain" { "string" } else { "object" };
        let content = json!({ body.media_type: { "schema": { "type": kind } } });
        operation["requestBody"] = json!({ "description": body.doc, "required": true, "content": content });
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let query = route.query.iter().map(|parameter| {
        let schema = match parameter.kind {
            ParameterKind::Flag => json!({ "type": "boolean", "default": false }),
            ParameterKind::Text => json!({ "type": "string" }),
        };
        json!({ "name": parameter.name, "in": "query", "description": parameter.doc, "schema": schema })
    });
    let text = json!({ "type": "string" });
    let names = route.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let names = names.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": text }));
    let if_match = route
        .if_match
        .map(|what| json!({ "name": "If-Match", "in": "header", "description": what, "schema": text }));
    names.chain(query).chain(if_match).collect()
}

fn usual_refusals(route: &Route) -> Vec<(u16, &'static str)> {
    let mut usual = vec![
        (400, "The request is malformed, or a parameter is not known."),
        (401, "A token is needed, and none was shown that is known."),
        (
            403,
            "The request names another host, comes from a web page that may not ask, or nobody has a token.",
        ),
    ];
    if route.needs == Needs::Change {
        usual.push((413, "The body is too large."));
    }
    usual
}

fn problem() -> Value {
    let text = |what: &str| json!({ "type": "string", "description": what });
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": text("Always `about:blank`: the status says what it is."),
            "title": text("The name of the status."),
            "status": { "type": "integer" },
            "detail": text("What is wrong, in a sentence."),
        },
    })
}
