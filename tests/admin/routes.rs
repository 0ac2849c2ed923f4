//! Every operation × every kind of caller.

use serde_json::{Map, Value, json};
use tollgate::admin::fields::{Field, Form, Kind, Need};
use tollgate::admin::openapi;
use tollgate::admin::table::{Operation, Permission, Verb, operations};
use tollgate::domain::ids::{KeyId, SessionId, UserId};
use tollgate::domain::record::Record;

use super::gate::{Gate, Person, Reply, TOKEN};
use super::schema;
use crate::store::make::bare_record;

/// A session of the user, with one request.
const SESSION: &str = "the users session";

/// Who is in the gateway: a user with two keys, one of them read-only, another user, and an administrator who is a user.
struct People {
    user: Person,
    read_only: String,
    other: Person,
    admin: Person,
    provider: i64,
    word: i64,
    rule: i64,
    /// In the usage log, of the user.
    request: String,
}

async fn people(gate: &Gate) -> People {
    let user = gate.person("user", json!({})).await;
    let request = super::logs::record(&user, 0);
    gate.store.append_records(std::slice::from_ref(&request)).await.unwrap();
    let (_, read_only) = gate.key(user.id, "read-only", json!({ "canLoginWebUi": false })).await;
    let record = Record {
        user_id: Some(UserId(user.id)),
        key_id: Some(KeyId(user.key_id)),
        session_id: Some(SessionId::from(SESSION)),
        ..bare_record()
    };
    gate.store.append_records(&[record]).await.unwrap();
    People {
        read_only,
        other: gate.person("other", json!({})).await,
        admin: gate.person("admin", json!({ "role": "admin" })).await,
        provider: gate.provider("upstream").await,
        word: word(gate).await,
        rule: rule(gate).await,
        request: request.request_id.to_string(),
        user,
    }
}

async fn rule(gate: &Gate) -> i64 {
    let rule = json!({ "pattern": "a pattern", "matchType": "exact", "category": "prompt_limit" });
    let made = Reply::of(gate.post("ui/error-rules/create").bearer_auth(TOKEN).json(&rule)).await;
    made.data()["id"].as_i64().unwrap()
}

async fn word(gate: &Gate) -> i64 {
    let word = json!({ "word": "a word", "matchType": "exact" });
    gate.admin("sensitive-words/createSensitiveWordAction", word).await.data()["id"].as_i64().unwrap()
}

/// A value that the field takes.
pub fn sample(field: &Field) -> Value {
    match field.kind {
        Kind::Integer { min, max } => json!(if (min..=max).contains(&1) { 1 } else { min }),
        Kind::Decimal { .. } => json!(1.25),
        Kind::Text { form: Form::TimeOfDay, .. } => json!("08:30"),
        Kind::Text { form: Form::BaseUrl, .. } => json!("https://up.example/v1"),
        Kind::Text { form: Form::ProxyUrl, .. } => json!("http://proxy.example:3128"),
        Kind::Text { .. } if field.name == "jsonContent" => json!("{\"m\": {\"input_cost_per_token\": 1e-6}}"),
        Kind::Text { min, .. } => json!("sample-text".repeat(min.div_ceil(11).max(1))),
        Kind::Boolean => json!(true),
        Kind::Moment(_) => json!("2027-01-31"),
        Kind::Choice(words) => json!(words[words.len() - 1]),
        Kind::List { item, .. } => json!([sample(&Field::new(field.name, *item, ""))]),
        Kind::Map { .. } => json!({ "a": "b" }),
        Kind::Object(fields) => json!({ fields[0].name: sample(&fields[0]) }),
    }
}

/// The smallest body that the operation takes, about the user's things.
fn body(operation: &Operation, people: &People) -> Value {
    let mut body = Map::new();
    for field in operation.body.fields().filter(|f| matches!(f.need, Need::Required)) {
        let value = match field.name {
            "userId" => json!(people.user.id),
            "keyId" => json!(people.user.key_id),
            "keyIds" => json!([people.user.key_id]),
            "providerId" => json!(people.provider),
            "id" if operation.path.contains("error-rules") => json!(people.rule),
            "id" if operation.path.contains("sensitive-words") => json!(people.word),
            "sessionId" => json!(SESSION),
            "key" if operation.path == "auth/login" => json!(people.user.key),
            "requestId" => json!(people.request),
            _ => sample(&field),
        };
        body.insert(field.name.to_owned(), value);
    }
    if operation.body.partial {
        let field = &operation.body.data[0];
        body.insert(field.name.to_owned(), sample(field));
    }
    body.into()
}

async fn send(gate: &Gate, operation: &Operation, credential: Option<&str>, body: &Value) -> Reply {
    let url = format!("{}/api/{}", gate.url, operation.path);
    let request = match operation.verb {
        Verb::Get => gate.http.get(url),
        Verb::Post => gate.http.post(url).json(body),
    };
    Reply::of(match credential {
        Some(credential) => request.bearer_auth(credential),
        None => request,
    })
    .await
}

#[tokio::test]
async fn each_operation_lets_in_whom_it_should_and_nobody_else() {
    for operation in operations() {
        let gate = Gate::start().await;
        let people = people(&gate).await;
        let body = body(operation, &people);
        let before = gate.store.config_version().await.unwrap();
        let cases: [(&str, Option<&str>, &[Permission]); 5] = [
            ("no credential", None, &[Permission::Open]),
            ("a wrong credential", Some("sk-00000000000000000000000000000000"), &[Permission::Open]),
            ("a read-only key", Some(&people.read_only), &[Permission::Open, Permission::Any]),
            ("another user", Some(&people.other.key), &[Permission::Open, Permission::Any, Permission::User]),
            (
                "the user",
                Some(&people.user.key),
                &[Permission::Open, Permission::Any, Permission::User, Permission::Own],
            ),
        ];
        for (who, credential, allowed) in cases {
            let reply = send(&gate, operation, credential, &body).await;
            let refused = match who {
                "no credential" | "a wrong credential" => (401, "UNAUTHORIZED"),
                _ => (403, "PERMISSION_DENIED"),
            };
            if allowed.contains(&operation.permission) {
                assert!(![401, 403].contains(&reply.status.as_u16()), "{} by {who}: {:?}", operation.path, reply.body);
            } else {
                assert_eq!(reply.failure(), refused, "{} by {who}", operation.path);
                assert_eq!(gate.store.config_version().await.unwrap(), before, "{} by {who}", operation.path);
            }
        }
    }
}

#[tokio::test]
async fn administrators_may_do_everything_and_get_what_the_document_promises() {
    let document = openapi(None);
    for operation in operations() {
        // The token is no key, and so has no usage of its own.
        let whose = if operation.path.contains("/my-usage/") { &[false][..] } else { &[true, false][..] };
        for token in whose.iter().copied() {
            let gate = Gate::start().await;
            let people = people(&gate).await;
            gate.key(people.user.id, "spare", json!({})).await;
            let body = body(operation, &people);
            let credential = if token { TOKEN } else { &people.admin.key };
            let reply = send(&gate, operation, Some(credential), &body).await;
            assert_eq!(reply.status, 200, "{}: {:?} to {body}", operation.path, reply.body);
            let verb = operation.verb.as_str().to_lowercase();
            if !operation.published {
                continue;
            }
            let described = &document["paths"][format!("/api/{}", operation.path)][verb];
            let json = |part: &Value| part["content"]["application/json"]["schema"].clone();
            if operation.media != "application/json" {
                assert!(described["responses"]["200"]["content"][operation.media]["schema"].is_object());
                continue;
            }
            let faults = schema::faults(&document, &json(&described["responses"]["200"]), &reply.body);
            assert_eq!(faults, Vec::<String>::new(), "{}: reply {}", operation.path, reply.body);
            if operation.verb == Verb::Post {
                let faults = schema::faults(&document, &json(&described["requestBody"]), &body);
                assert_eq!(faults, Vec::<String>::new(), "{}: body {body}", operation.path);
            }
        }
    }
}

#[tokio::test]
async fn an_administrators_read_only_key_is_no_administrator() {
    let gate = Gate::start().await;
    let admin = gate.person("admin", json!({ "role": "admin" })).await;
    let (_, key) = gate.key(admin.id, "for a script", json!({ "canLoginWebUi": false })).await;
    assert_eq!(gate.call("users/getUsers", &key, json!({})).await.failure(), (403, "PERMISSION_DENIED"));
    assert_eq!(gate.call("keys/getKeys", &key, json!({ "userId": admin.id })).await.failure().0, 403);
}

#[tokio::test]
async fn users_see_themselves_only() {
    let gate = Gate::start().await;
    let people = people(&gate).await;
    let seen = gate.call("users/getUsers", &people.user.key, json!({})).await.data();
    assert_eq!(seen.as_array().unwrap().len(), 1);
    assert_eq!((&seen[0]["id"], seen[0]["keys"].as_array().unwrap().len()), (&json!(people.user.id), 2));
    let whole = gate.call("users/getUsers", &people.admin.key, json!({})).await.data();
    assert_eq!(whole.as_array().unwrap().len(), 3);
    let text = whole.to_string();
    for secret in [&people.user.key, &people.other.key, &people.read_only] {
        assert!(!text.contains(secret.as_str()), "a key is shown in full");
    }
}
