//! The OpenAPI 3.1.0 document of the proxy: the paths that clients call, with what their bodies
//! are. It describes no members: these are the vendors', and pass unchanged.

use serde_json::{Map, Value, json};

use crate::domain::endpoint::{ApiEndpoint, ENDPOINTS, EndpointBody, Unit};
use crate::domain::format::WireFormat;

use WireFormat::{AltCli, Chat, Native, Responses};

/// Method, path, the clients' format and summary of the calls that are not in [`ENDPOINTS`].
const CALLS: [(&str, &str, WireFormat, &str); 36] = [
    ("post", "/v1/messages", Native, "A reply, streamed or not"),
    ("post", "/v1/messages/count_tokens", Native, "The tokens of a request"),
    ("post", "/v1/responses", Responses, "A reply, streamed or not"),
    ("post", "/v1/responses/input_tokens", Responses, "The tokens of a request"),
    ("get", "/v1/responses/{id}", Responses, "A stored reply"),
    ("delete", "/v1/responses/{id}", Responses, "Deletes a stored reply"),
    ("post", "/v1/responses/{id}/cancel", Responses, "Cancels a reply in the background"),
    ("get", "/v1/responses/{id}/input_items", Responses, "The input of a stored reply"),
    ("get", "/v1/messages/batches", Native, "The key's batches"),
    ("get", "/v1/messages/batches/{id}", Native, "A batch"),
    ("delete", "/v1/messages/batches/{id}", Native, "Deletes a batch"),
    ("post", "/v1/messages/batches/{id}/cancel", Native, "Cancels a batch"),
    ("get", "/v1/messages/batches/{id}/results", Native, "The results of a batch, in lines"),
    ("get", "/v1/batches", Chat, "The key's batches"),
    ("get", "/v1/batches/{id}", Chat, "A batch"),
    ("post", "/v1/batches/{id}/cancel", Chat, "Cancels a batch"),
    ("get", "/v1/files", Chat, "The key's files"),
    ("get", "/v1/files/{id}", Chat, "A file"),
    ("delete", "/v1/files/{id}", Chat, "Deletes a file"),
    ("get", "/v1/files/{id}/content", Chat, "The content of a file"),
    ("post", "/v1/chat/completions", Chat, "A reply, streamed or not"),
    ("post", "/v1beta/models/{model}:generateContent", AltCli, "A reply"),
    ("post", "/v1beta/models/{model}:streamGenerateContent", AltCli, "A streamed reply"),
    ("post", "/v1beta/models/{model}:countTokens", AltCli, "The tokens of a request"),
    ("get", "/v1beta/batches", AltCli, "The key's batches"),
    ("get", "/v1beta/batches/{id}", AltCli, "A batch"),
    ("delete", "/v1beta/batches/{id}", AltCli, "Deletes a batch"),
    ("post", "/v1beta/batches/{id}:cancel", AltCli, "Cancels a batch"),
    ("get", "/v1beta/files", AltCli, "The key's files"),
    ("get", "/v1beta/files/{id}", AltCli, "A file"),
    ("delete", "/v1beta/files/{id}", AltCli, "Deletes a file"),
    ("get", "/v1beta/files/{id}:download", AltCli, "The content of a file"),
    ("get", "/v1/models", Chat, "The models that the key may use"),
    ("get", "/v1/models/{model}", Chat, "One of them"),
    ("get", "/v1beta/models", AltCli, "The models that the key may use"),
    ("get", "/v1beta/models/{model}", AltCli, "One of them"),
];

/// The document.
pub(in crate::admin) fn document() -> Value {
    let mut paths = Map::new();
    let mut add = |path: &str, verb: &str, call: Value| {
        let path = paths.entry(path).or_insert_with(|| json!({}));
        path[verb] = call;
    };
    for (verb, path, format, summary) in CALLS {
        let body = (verb == "post").then(json_body);
        add(path, verb, described(path, format, summary, body, &["application/json"]));
    }
    for endpoint in &ENDPOINTS {
        add(&path_of(endpoint), "post", endpoint_call(endpoint));
    }
    let tags = [Native, Responses, Chat, AltCli].map(|format| json!({ "name": format.as_str() }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "tollgate proxy",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What clients call. Requests and replies are those of the vendors' own \
                APIs, in four formats; errors have the client's format.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "tags": tags,
        "paths": paths,
        "components": { "securitySchemes": {
            "bearer": { "type": "http", "scheme": "bearer" },
            "anthropic": { "type": "apiKey", "in": "header", "name": "x-api-key" },
            "google": { "type": "apiKey", "in": "header", "name": "x-goog-api-key" },
        } },
        "security": [{ "bearer": [] }, { "anthropic": [] }, { "google": [] }],
    })
}

fn path_of(endpoint: &ApiEndpoint) -> String {
    match endpoint.is_action() {
        true => format!("/v1beta/models/{{model}}:{}", endpoint.path),
        false => endpoint.path.to_owned(),
    }
}

fn endpoint_call(endpoint: &ApiEndpoint) -> Value {
    let body = match endpoint.body {
        EndpointBody::Json => json_body(),
        EndpointBody::Any => json!({ "required": true, "content": { "*/*": {} } }),
        EndpointBody::Form => json!({ "required": true, "content": { "multipart/form-data": {
            "schema": { "type": "object" },
        } } }),
    };
    let replies: &[&str] = match endpoint.unit {
        Unit::Characters => &["audio/*", "text/event-stream"],
        _ => &["application/json"],
    };
    let path = path_of(endpoint);
    let mut call = described(&path, endpoint.format, endpoint.doc, Some(body), replies);
    call["operationId"] = endpoint.name.into();
    call["x-feature"] = endpoint.feature.as_str().into();
    call
}

fn json_body() -> Value {
    json!({ "required": true, "content": { "application/json": { "schema": { "type": "object" } } } })
}

fn described(
    path: &str,
    format: WireFormat,
    summary: &str,
    body: Option<Value>,
    replies: &[&str],
) -> Value {
    let names = path.split(['{', '}']).skip(1).step_by(2);
    let parameters: Vec<Value> = names
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    let content: Map<String, Value> =
        replies.iter().map(|kind| ((*kind).to_owned(), json!({}))).collect();
    let mut call = json!({
        "tags": [format.as_str()],
        "summary": summary,
        "parameters": parameters,
        "responses": {
            "200": { "description": "The provider's reply", "content": content },
            "default": { "description": "An error in the client's format" },
        },
    });
    if let Some(body) = body {
        call["requestBody"] = body;
    }
    call
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::formats::route::match_path;

    #[test]
    fn each_path_is_routed_to_the_format_that_it_names() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        let calls: usize = paths.values().map(|calls| calls.as_object().unwrap().len()).sum();
        assert_eq!(calls, CALLS.len() + ENDPOINTS.len());
        for (path, calls) in paths {
            let real = path.replace("{id}", "resp_1").replace("{model}", "m");
            for (verb, call) in calls.as_object().unwrap() {
                let method = Method::from_bytes(verb.to_uppercase().as_bytes()).unwrap();
                let route = match_path(&method, &real).unwrap_or_else(|| panic!("{verb} {path}"));
                assert_eq!(call["tags"][0], route.format.as_str(), "{verb} {path}");
                let names = call["parameters"].as_array().unwrap().len();
                assert_eq!(names, path.matches('{').count(), "{path}");
            }
        }
    }
}
