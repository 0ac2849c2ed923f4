//! Builds the OpenAPI 3.1.0 document from the table of operations.
//!
//! Schemas come from the types of the bodies that the actions take, and of the results that they
//! return: only the frame is written by hand. Examples are built from both
//! (`example`).

mod example;
mod failures;
pub(super) mod proxy;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::envelope::Code;
use super::operation::{Operation, Permission, Verb};
use super::reasons::Reason;

const FAILURE: &str = "#/components/schemas/Failure";
const EXAMPLES: &str = "#/components/examples/";

/// The document of these operations; `app_url` names the server that clients should call.
pub(super) fn document<O>(operations: O, app_url: Option<&str>) -> Value
where
    O: Iterator<Item = &'static Operation> + Clone,
{
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for operation in operations.clone() {
        let verb = operation.verb.as_str().to_ascii_lowercase();
        paths.insert(
            format!("/api/{}", operation.path),
            json!({ verb: describe(operation, &mut schemas) }),
        );
    }
    let mut components = schemas.take_definitions(true);
    components.insert("Failure".to_owned(), failure());
    let components = Value::from(components);
    paths.values_mut().for_each(|path| show_answer(path, &components));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "tollgate administration API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Users, keys, providers, prices and usage of a tollgate gateway. Every \
                operation answers `{ok: true, data}` or `{ok: false, error, errorCode, \
                errorParams}`.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": app_url.map_or("/", |url| url.trim_end_matches('/')) }],
        "x-reasons": reasons(),
        "tags": tags(operations.clone()),
        "paths": paths,
        "components": { "schemas": components, "examples": refused(operations), "securitySchemes": security_schemes() },
    })
}

fn security_schemes() -> Value {
    json!({
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "The administrator token, or an API key. Wins over the cookie.",
        },
        "cookie": {
            "type": "apiKey",
            "in": "cookie",
            "name": crate::crypto::carried::COOKIE_NAME,
            "description": "The session that a login opens; the administrator token or an API key \
                is taken too.",
        },
    })
}

fn failure() -> Value {
    let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    json!({
        "type": "object",
        "description": "What was refused, and why.",
        "properties": {
            "ok": { "const": false },
            "error": { "type": "string", "description": "For people." },
            "errorCode": { "type": "string", "description": "For programs." },
            "errorParams": {
                "type": "object",
                "description": "The values that the message speaks of, such as `field`. Where a \
                    code has several reasons, `reason` names the one. Where several fields are at \
                    fault, `faults` lists all of them, each with `errorCode`, `error` and its own \
                    values.",
                "properties": { "reason": { "type": "string", "enum": reasons } },
            },
        },
        "required": ["ok", "error", "errorCode"],
    })
}

/// The English text of every reason.
fn reasons() -> Value {
    Reason::ALL.iter().map(|reason| (reason.as_str(), reason.text())).collect()
}

/// `keys/addKey` of `actions/keys/addKey`; other operations keep their full path.
fn short(operation: &Operation) -> &str {
    operation.path.strip_prefix("actions/").unwrap_or(operation.path)
}

fn tag(operation: &Operation) -> &str {
    short(operation).split_once('/').map_or("service", |(module, _)| module)
}

fn tags(operations: impl Iterator<Item = &'static Operation>) -> Vec<Value> {
    let names: BTreeSet<&str> = operations.map(tag).collect();
    names.into_iter().map(|name| json!({ "name": name })).collect()
}

fn operation_id(operation: &Operation) -> String {
    short(operation).replace(['/', '-', '.'], "_")
}

fn describe(operation: &Operation, schemas: &mut SchemaGenerator) -> Value {
    let security = match operation.permission {
        Permission::Open => json!([]),
        _ => json!([{ "bearer": [] }, { "cookie": [] }]),
    };
    let mut described = json!({
        "operationId": operation_id(operation),
        "tags": [tag(operation)],
        "summary": title(operation),
        "description": format!("{} {}", operation.doc, permission_text(operation.permission)),
        "x-permission": operation.permission.as_str(),
        "security": security,
        "responses": responses(operation, schemas),
    });
    if operation.verb == Verb::Post {
        let schema = operation.body.schema();
        let example = example::of_body(&schema, tag(operation));
        described["requestBody"] = json!({
            "required": operation.body.is_required(),
            "content": { "application/json": { "schema": schema, "example": example } },
        });
    }
    described
}

/// `Add key` of `actions/keys/addKey`.
fn title(operation: &Operation) -> String {
    let name = operation.path.rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix("Action").unwrap_or(name).replace('.', " ");
    let mut title = String::new();
    let mut letters = name.chars().peekable();
    let mut last_lower = false;
    while let Some(letter) = letters.next() {
        let next_lower = letters.peek().is_some_and(char::is_ascii_lowercase);
        if title.is_empty() {
            title.push(letter.to_ascii_uppercase());
        } else if letter.is_ascii_uppercase() && (last_lower || next_lower) {
            title.push(' ');
            title.push(if next_lower { letter.to_ascii_lowercase() } else { letter });
        } else {
            title.push(letter);
        }
        last_lower = letter.is_ascii_lowercase();
    }
    title
}

/// Adds an example to the schema of the answer, if the answer is JSON.
fn show_answer(path: &mut Value, components: &Value) {
    for operation in path.as_object_mut().into_iter().flat_map(|verbs| verbs.values_mut()) {
        let module = operation["tags"][0].as_str().unwrap_or_default().to_owned();
        if let Some(content) = operation.pointer_mut("/responses/200/content/application~1json") {
            let example = example::of_answer(&content["schema"], &module, components);
            content["example"] = example;
        }
    }
}

/// An example of each refusal of any operation, by the name of its component.
fn refused(operations: impl Iterator<Item = &'static Operation>) -> Value {
    let all = operations
        .flat_map(refusals)
        .flat_map(|(status, codes)| codes.into_iter().map(move |code| (status, code)));
    let reported = all.filter_map(|(status, code)| {
        let component = failures::component(status, code)?;
        Some((failures::name(status, code), component))
    });
    Value::Object(reported.collect())
}

const fn permission_text(permission: Permission) -> &'static str {
    match permission {
        Permission::Admin => "Permission: administrators.",
        Permission::Own => "Permission: administrators; users for what is their own.",
        Permission::User => "Permission: anyone logged in; users see their own data only.",
        Permission::Any => "Permission: any valid credential.",
        Permission::Open => "Permission: no credential is needed.",
    }
}

fn responses(operation: &Operation, schemas: &mut SchemaGenerator) -> Value {
    let result = (operation.result)(schemas).map(serde_json::Value::from);
    let schema = match (operation.enveloped, result) {
        (false, result) => result.unwrap_or(json!({})),
        (true, Some(data)) => json!({
            "type": "object",
            "properties": { "ok": { "const": true }, "data": data },
            "required": ["ok", "data"],
        }),
        (true, None) => json!({
            "type": "object",
            "properties": { "ok": { "const": true } },
            "required": ["ok"],
        }),
    };
    let done =
        json!({ "description": "Done.", "content": { operation.media: { "schema": schema } } });
    let mut all = Map::from_iter([("200".to_owned(), done)]);
    for (status, codes) in refusals(operation) {
        let names: Vec<&str> = codes.iter().map(|code| code.0).collect();
        let examples: Map<String, Value> = codes
            .iter()
            .map(|code| {
                (
                    code.0.to_owned(),
                    json!({ "$ref": format!("{EXAMPLES}{}", failures::name(status, *code)) }),
                )
            })
            .collect();
        all.insert(
            status.to_string(),
            json!({
                "description": names.join(", "),
                "content": { "application/json": { "schema": { "$ref": FAILURE }, "examples": examples } },
                "x-error-codes": names,
            }),
        );
    }
    all.into()
}

/// The operation's error codes, by status.
fn refusals(operation: &Operation) -> BTreeMap<u16, Vec<Code>> {
    let mut codes = operation.errors.clone();
    match operation.permission {
        Permission::Open => {}
        _ => codes.extend([Code::UNAUTHORIZED, Code::TOO_MANY_ATTEMPTS]),
    }
    if operation.verb == Verb::Post {
        codes.extend([Code::PERMISSION_DENIED, Code::PAYLOAD_TOO_LARGE]);
        codes.extend(Code::VALIDATION);
    }
    if !operation.body.may_be_empty_update() {
        codes.retain(|code| *code != Code::EMPTY_UPDATE);
    }
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes {
        let codes = by_status.entry(code.status().as_u16()).or_default();
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    // 500: an internal error; 503: the database is unreachable, or does not answer.
    by_status.insert(500, vec![operation.effect.failure()]);
    by_status.insert(503, vec![operation.effect.failure()]);
    by_status
}
