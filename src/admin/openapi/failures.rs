//! An example of each refusal, as the components that the responses refer to.

use serde_json::{Map, Value, json};

use crate::admin::envelope::Code;

/// The name of the component for a code at a status.
pub(super) fn name(status: u16, code: Code) -> String {
    match status {
        500.. => format!("{}_{status}", code.0),
        _ => code.0.to_owned(),
    }
}

/// The component; `None` for an unknown code, which a test detects.
pub(super) fn component(status: u16, code: Code) -> Option<Value> {
    let (error, params) = match status {
        500 => ("internal error", json!({ "requestId": "019aa51c-7a00-7000-8000-000000000001" })),
        503 => (
            "the database cannot be reached since 2026-11-21T04:00:00.000Z",
            json!({
                "reason": "database_unreachable",
                "since": "2026-11-21T04:00:00.000Z",
                "requestId": "019aa51c-7a00-7000-8000-000000000001",
            }),
        ),
        _ => example(code)?,
    };
    let mut value = Map::from_iter([
        ("ok".to_owned(), json!(false)),
        ("error".to_owned(), json!(error)),
        ("errorCode".to_owned(), json!(code.0)),
    ]);
    if params.as_object().is_some_and(|params| !params.is_empty()) {
        value.insert("errorParams".to_owned(), params);
    }
    Some(json!({ "value": value }))
}

/// Message and parameters of a refusal with this code.
fn example(code: Code) -> Option<(&'static str, Value)> {
    let none = || json!({});
    let above = || json!({ "keyLimit": "10", "userLimit": "5" });
    Some(match code {
        Code::UNAUTHORIZED => ("not logged in", none()),
        Code::PERMISSION_DENIED => ("this needs an administrator", none()),
        Code::NOT_FOUND => ("there is no such key", json!({ "id": 7 })),
        Code::EMPTY_UPDATE => {
            ("nothing to change: send at least one of the fields that can change", none())
        }
        Code::PAYLOAD_TOO_LARGE => {
            ("the body is larger than 1048576 bytes", json!({ "max": 1_048_576 }))
        }
        Code::TOO_MANY_ATTEMPTS => {
            ("too many failed attempts from this address", json!({ "retryAfter": 900 }))
        }
        Code::DUPLICATE_NAME => {
            ("this user already has a key named \"cli\"", json!({ "name": "cli" }))
        }
        Code::DUPLICATE_WORD => ("this word is there already", none()),
        Code::DUPLICATE_RULE => {
            ("there is a rule with this pattern already, with the id 7", json!({ "id": 7 }))
        }
        Code::CANNOT_DELETE_LAST_KEY => ("a user's last usable key cannot be deleted", none()),
        Code::CANNOT_DISABLE_LAST_KEY => ("a user's last usable key cannot be disabled", none()),
        Code::CANNOT_DELETE_LAST_GROUP_KEY => {
            ("deleting this key would leave you without any provider group", none())
        }
        Code::NO_DEFAULT_GROUP_PERMISSION => (
            "you hold no key of the default provider group, so you cannot create one in it",
            none(),
        ),
        Code::NO_GROUP_PERMISSION => {
            ("you hold no key of these provider groups: team", json!({ "groups": ["team"] }))
        }
        Code::KEY_LIMITS_LOCKED => {
            ("only an administrator changes the limits of this user's keys", none())
        }
        Code::OPERATION_FAILED => ("this cannot be done as things are", none()),
        Code::CREATE_FAILED => ("it could not be created", none()),
        Code::UPDATE_FAILED => ("it could not be changed", none()),
        Code::DELETE_FAILED => ("it could not be removed", none()),
        Code(name) if name.ends_with("_EXCEEDS_USER_LIMIT") => {
            ("the daily limit (10) of the key is above the user's (5)", above())
        }
        _ => return of_a_field(code),
    })
}

/// Those that name a field.
fn of_a_field(code: Code) -> Option<(&'static str, Value)> {
    let of = |field: &str| json!({ "field": field });
    Some(match code {
        Code::INVALID_FORMAT => {
            ("expiresAt: must be YYYY-MM-DD or an ISO 8601 time", of("expiresAt"))
        }
        Code::REQUIRED_FIELD => ("name: is required", of("name")),
        Code::INVALID_TYPE => ("isEnabled: must be true or false", of("isEnabled")),
        Code::MIN_VALUE => {
            ("pageSize: must be at least 1", json!({ "field": "pageSize", "min": 1 }))
        }
        Code::MAX_VALUE => {
            ("pageSize: must be at most 100", json!({ "field": "pageSize", "max": 100 }))
        }
        Code::MIN_LENGTH => ("name: must not be empty", json!({ "field": "name", "min": 1 })),
        Code::MAX_LENGTH => {
            ("name: must have at most 64 characters", json!({ "field": "name", "max": 64 }))
        }
        Code::BATCH_SIZE_EXCEEDED => {
            ("keyIds: must have at most 500 entries", json!({ "field": "keyIds", "max": 500 }))
        }
        _ => return None,
    })
}
