//! Every operation × every kind of caller.

use serde_json::{Map, Value, json};
use tollgate::admin::openapi;
use tollgate::admin::operation::{Operation, Permission, Verb};
use tollgate::admin::table::operations;
use tollgate::domain::ids::{KeyId, SessionId, UserId};
use tollgate::domain::record::Record;
use tollgate::policy::builtin_rules::BUILTIN_RULES;
use tollgate::state::builtin;

use super::bodies::{self, sample};
use super::gate::{Gate, NOON, Person, Reply, TOKEN};
use super::schema;
use crate::store::make::bare_record;

/// A session of the user, with one request.
const SESSION: &str = "the users session";

/// The test's population: a user with two keys, one of them read-only, another user, and an
/// administrator who is a user.
struct People {
    user: Person,
    read_only: String,
    other: Person,
    admin: Person,
    provider: i64,
    word: i64,
    rule: i64,
    /// A built-in rule.
    shipped: i64,
    /// In the usage log, of the user.
    request: String,
}

/// A provider with a credential to search for in replies, and a price to delete.
async fn provider(gate: &Gate) -> i64 {
    let price = json!({ "modelName": PRICED, "priceData": { "input_cost_per_token": 3e-6 } });
    gate.admin("model-prices/upsertModelPrice", price).await.data();
    gate.provider("upstream").await
}

const PRICED: &str = "sample-text";

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
    let provider = provider(gate).await;
    let source = json!({
        "providerId": provider, "kind": "openai", "url": gate.receiver.url, "adminKey": "sk-admin",
    });
    gate.admin("reconciliation/saveInvoiceSource", source).await.data();
    People {
        read_only,
        other: gate.person("other", json!({})).await,
        admin: gate.person("admin", json!({ "role": "admin" })).await,
        provider,
        word: word(gate).await,
        rule: rule(gate).await,
        shipped: shipped(gate).await,
        request: request.request_id.to_string(),
        user,
    }
}

async fn rule(gate: &Gate) -> i64 {
    let rule = json!({ "pattern": "a pattern", "matchType": "exact", "category": "prompt_limit" });
    let made = Reply::of(gate.post("ui/error-rules/create").bearer_auth(TOKEN).json(&rule)).await;
    made.data()["id"].as_i64().unwrap()
}

async fn shipped(gate: &Gate) -> i64 {
    builtin::install(&gate.store, &BUILTIN_RULES[..1], NOON).await.unwrap();
    gate.state.publish().await.unwrap();
    gate.state
        .snapshot()
        .error_rules
        .all()
        .iter()
        .find(|rule| rule.builtin_code.is_some())
        .unwrap()
        .id
        .0
}

async fn word(gate: &Gate) -> i64 {
    let word = json!({ "word": "a word", "matchType": "exact" });
    gate.admin("sensitive-words/createSensitiveWordAction", word).await.data()["id"]
        .as_i64()
        .unwrap()
}

/// The smallest valid body of the operation, about the user's records.
fn body(gate: &Gate, operation: &Operation, people: &People) -> Value {
    let mut body = Map::new();
    for field in bodies::required(operation.body) {
        let value = match field.name.as_str() {
            "userId" => json!(people.user.id),
            "keyId" => json!(people.user.key_id),
            "keyIds" => json!([people.user.key_id]),
            "providerId" => json!(people.provider),
            "id" if operation.path == "ui/error-rules/restore" => json!(people.shipped),
            "id" if operation.path.contains("error-rules") => json!(people.rule),
            "id" if operation.path.contains("sensitive-words") => json!(people.word),
            "sessionId" => json!(SESSION),
            "key" if operation.path == "auth/login" => json!(people.user.key),
            "requestId" => json!(people.request),
            "webhookUrl" => json!(gate.receiver.url),
            _ => sample(&field),
        };
        body.insert(field.name.clone(), value);
    }
    if bodies::is_partial(operation.body) {
        let field = &bodies::data(operation.body)[0];
        body.insert(field.name.clone(), sample(field));
    }
    if operation.path == "actions/reconciliation/saveInvoiceSource" {
        return json!({ "providerId": people.provider, "isDaily": true });
    }
    if operation.path == "actions/providers/testProvider" {
        return json!({ "providerId": people.provider, "model": "m" });
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
async fn each_operation_admits_exactly_the_intended_callers() {
    for operation in operations() {
        let gate = Gate::start().await;
        let people = people(&gate).await;
        let body = body(&gate, operation, &people);
        let before = gate.store.config_version().await.unwrap();
        let cases: [(&str, Option<&str>, &[Permission]); 5] = [
            ("no credential", None, &[Permission::Open]),
            (
                "a wrong credential",
                Some("sk-00000000000000000000000000000000"),
                &[Permission::Open],
            ),
            ("a read-only key", Some(&people.read_only), &[Permission::Open, Permission::Any]),
            (
                "another user",
                Some(&people.other.key),
                &[Permission::Open, Permission::Any, Permission::User],
            ),
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
                assert!(
                    ![401, 403].contains(&reply.status.as_u16()),
                    "{} by {who}: {:?}",
                    operation.path,
                    reply.body
                );
            } else {
                assert_eq!(reply.failure(), refused, "{} by {who}", operation.path);
                assert_eq!(
                    gate.store.config_version().await.unwrap(),
                    before,
                    "{} by {who}",
                    operation.path
                );
            }
        }
    }
}

#[tokio::test]
async fn administrators_may_do_everything_and_get_what_the_document_promises() {
    let document = openapi(None);
    for operation in operations() {
        // The token is not a key, and so has no usage.
        let whose =
            if operation.path.contains("/my-usage/") { &[false][..] } else { &[true, false][..] };
        for token in whose.iter().copied() {
            let gate = Gate::start().await;
            let people = people(&gate).await;
            gate.key(people.user.id, "spare", json!({})).await;
            let body = body(&gate, operation, &people);
            let credential = if token { TOKEN } else { &people.admin.key };
            let reply = send(&gate, operation, Some(credential), &body).await;
            assert_eq!(reply.status, 200, "{}: {:?} to {body}", operation.path, reply.body);
            assert_no_secret(&people, &reply.body, operation.path);
            let verb = operation.verb.as_str().to_lowercase();
            if !operation.published {
                continue;
            }
            let described = &document["paths"][format!("/api/{}", operation.path)][verb];
            let json = |part: &Value| part["content"]["application/json"]["schema"].clone();
            if operation.media != "application/json" {
                assert!(
                    described["responses"]["200"]["content"][operation.media]["schema"].is_object()
                );
                continue;
            }
            let faults =
                schema::faults(&document, &json(&described["responses"]["200"]), &reply.body);
            assert_eq!(faults, Vec::<String>::new(), "{}: reply {}", operation.path, reply.body);
            if operation.verb == Verb::Post {
                let faults = schema::faults(&document, &json(&described["requestBody"]), &body);
                assert_eq!(faults, Vec::<String>::new(), "{}: body {body}", operation.path);
            }
        }
    }
}

/// No answer contains the upstream's credential, the administrator's token or people's keys.
fn assert_no_secret(people: &People, body: &Value, path: &str) {
    let text = body.to_string();
    let keys = [&people.user.key, &people.read_only, &people.other.key, &people.admin.key];
    for secret in
        keys.into_iter().map(String::as_str).chain([TOKEN, "upstream-credential-0123456789"])
    {
        assert!(!text.contains(secret), "{path} shows a secret: {text}");
    }
}

/// Whether an operation writes, by the prefix of its name. One that fits neither list must be added
/// to one.
fn writes(path: &str) -> bool {
    const READS: [&str; 13] = [
        "explain", "get", "fetch", "has", "list", "health", "openapi", "events", "test", "whoami",
        "site", "scalar", "docs",
    ];
    const WRITES: [&str; 18] = [
        "add", "edit", "remove", "toggle", "renew", "batch", "upload", "sync", "upsert", "delete",
        "save", "run", "update", "create", "reset", "restore", "send", "apply",
    ];
    // Logins change no configuration; refreshing a cache changes nothing at all.
    const NEITHER: [&str; 3] =
        ["auth/login", "auth/logout", "actions/sensitive-words/refreshCacheAction"];
    // A test sends a credential, and a call about a batch is made as somebody else's key: both are
    // recorded though nothing is changed here.
    if ["actions/providers/testProvider", "actions/playground/callBatch"].contains(&path) {
        return true;
    }
    let verb = path.rsplit('/').next().unwrap();
    let begins = |words: &[&str]| words.iter().any(|word| verb.starts_with(word));
    if NEITHER.contains(&path) || begins(&READS) {
        return false;
    }
    assert!(begins(&WRITES), "{path}: does it write? say so in this test");
    true
}

#[tokio::test]
async fn each_write_leaves_an_audit_record_without_secrets_and_no_read_does() {
    for operation in operations() {
        let gate = Gate::start().await;
        let people = people(&gate).await;
        gate.key(people.user.id, "spare", json!({})).await;
        let newest = async || {
            let page = gate.admin("audit/getAuditLog", json!({ "pageSize": 1 })).await.data();
            page["entries"][0].clone()
        };
        let before = newest().await;
        // The token has no usage.
        let credential =
            if operation.path.contains("my-usage/") { &people.admin.key } else { TOKEN };
        let mut body = body(&gate, operation, &people);
        // An edit that changes nothing is not a write.
        if operation.path == "actions/keys/toggleKeyEnabled" {
            body["enabled"] = json!(false);
        }
        let reply = send(&gate, operation, Some(credential), &body).await;
        assert_eq!(reply.status, 200, "{}: {:?}", operation.path, reply.body);
        let after = newest().await;
        if writes(operation.path) {
            let action = operation
                .path
                .trim_start_matches("actions/")
                .trim_start_matches("ui/")
                .replace('/', ".");
            assert_ne!(after["id"], before["id"], "{} leaves no audit record", operation.path);
            assert_eq!(
                (&after["action"], &after["actor"]),
                (&json!(action), &json!("admin token")),
                "{}",
                operation.path
            );
            assert_no_secret(&people, &after, operation.path);
            if let Some(made) = reply.body.pointer("/data/generatedKey").and_then(Value::as_str) {
                assert!(
                    !after.to_string().contains(made),
                    "{} audits a key in full",
                    operation.path
                );
            }
        } else {
            assert_eq!(after, before, "{} is audited", operation.path);
        }
    }
}

#[tokio::test]
async fn an_administrators_read_only_key_is_no_administrator() {
    let gate = Gate::start().await;
    let admin = gate.person("admin", json!({ "role": "admin" })).await;
    let (_, key) = gate.key(admin.id, "for a script", json!({ "canLoginWebUi": false })).await;
    assert_eq!(
        gate.call("users/getUsers", &key, json!({})).await.failure(),
        (403, "PERMISSION_DENIED")
    );
    assert_eq!(
        gate.call("keys/getKeys", &key, json!({ "userId": admin.id })).await.failure().0,
        403
    );
}

#[tokio::test]
async fn users_see_themselves_only_and_the_list_is_for_administrators() {
    let gate = Gate::start().await;
    let people = people(&gate).await;
    let refused = gate.call("users/getUsers", &people.user.key, json!({})).await;
    assert_eq!(refused.failure(), (403, "PERMISSION_DENIED"));
    let who = Reply::of(gate.post("auth/whoami").bearer_auth(&people.user.key).json(&json!({})))
        .await
        .data();
    let seen = &who["user"];
    assert_eq!((&seen["id"], seen["keys"].as_array().unwrap().len()), (&json!(people.user.id), 2));
    let whole = gate.call("users/getUsers", &people.admin.key, json!({})).await.data();
    assert_eq!(whole.as_array().unwrap().len(), 3);
    let text = format!("{whole}{who}");
    for secret in [&people.user.key, &people.other.key, &people.read_only] {
        assert!(!text.contains(secret.as_str()), "a key is shown in full");
    }
}
