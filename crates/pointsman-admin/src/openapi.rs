//! The description of the API, made from the table of routes.

use serde_json::{Map, Value, json};

use crate::route::{Needs, ROUTES, Route};

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
    let parameter = |(name, what): &(&str, &str)| json!({ "name": name, "in": "query", "description": what, "schema": { "type": "boolean", "default": false } });
    // An empty requirement beside that of a token: either will do.
    let security = match route.needs {
        Needs::Read => json!([{}, { "token": [] }]),
        Needs::Change => json!([{ "token": [] }]),
    };
    json!({
        "summary": route.summary,
        "operationId": format!("{:?}", route.call),
        "parameters": route.query.iter().map(parameter).collect::<Vec<_>>(),
        "security": security,
        "responses": answers,
    })
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
