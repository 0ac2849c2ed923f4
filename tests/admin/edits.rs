//! Edits are partial: omitted fields stay, `null` clears, and nothing else changes. Generated from
//! the schemas of the bodies.

use serde_json::{Value, json};
use tollgate::admin::table::find;

use super::bodies::{Field, Form, Kind, data, pem, sample};
use super::gate::Gate;

/// The record's name of a body's field.
fn recorded_as(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |camel, part| {
        let mut letters = part.chars();
        camel
            + &letters
                .next()
                .map(|c| c.to_ascii_uppercase())
                .into_iter()
                .chain(letters)
                .collect::<String>()
    })
}

/// Fields that have two names, or follow from others.
fn moves_with(name: &str) -> &'static [&'static str] {
    match name {
        "dailyQuota" | "limitDailyUsd" => &["dailyQuota", "limitDailyUsd"],
        "tls_ca" => &["certificates"],
        "tls_client_certificate" => &["certificates", "tlsClientKey"],
        // A user's status is also that of their usable keys.
        "isEnabled" | "expiresAt" => &["status", "effectiveStatus", "keys"],
        _ => &[],
    }
}

/// Further credentials of a provider. A new one needs its text, and the record shows it masked.
fn further(name: &str) -> Value {
    json!([{ "name": name, "key": "a-further-credential-9876543210" }])
}

/// A value of the field. A group that nothing is said of is not kept.
fn first(field: &Field) -> Value {
    match field.name.as_str() {
        "groupFeatures" => json!([{ "group": "g", "denied": ["maps"] }]),
        "credentials" => further("b"),
        _ => sample(field),
    }
}

/// A value different from that of a record to which [`first`] was applied.
fn another(field: &Field) -> Value {
    match &field.kind {
        _ if field.name == "groupFeatures" => json!([{ "group": "g", "denied": ["mcp"] }]),
        _ if field.name == "credentials" => further("c"),
        Kind::Integer { min, max } => json!((*max).min((*min).max(1) + 6)),
        Kind::Decimal { max: 1, .. } => json!(0.25),
        Kind::Decimal { .. } => json!(2.5),
        Kind::Boolean => json!(false),
        Kind::Choice(words) => json!(words[0]),
        Kind::Moment => json!("2028-02-29T10:00:00Z"),
        _ if field.name == "key" => json!("another-credential-9876543210"),
        Kind::Text { .. } if field.name.ends_with("url") => json!("http://other.example:8080"),
        Kind::Text { form: Form::Path, .. } => json!("/other/{path}"),
        _ if field.name == "tls_ca" => json!(pem("other-ca.pem")),
        _ if field.name == "tls_client_certificate" => json!(pem("server.pem")),
        Kind::Text { form: Form::TimeOfDay, .. } => json!("21:15"),
        Kind::Text { form: Form::Webhook, .. } => json!("http://127.0.0.1:9/other"),
        Kind::Text { .. } => json!("other"),
        Kind::List { item, .. } => match &**item {
            Kind::Choice(words) => json!([words[0]]),
            _ => json!(["x", "y"]),
        },
        Kind::Map { .. } => json!({ "x": "y" }),
        Kind::Document => json!({ "input_cost_per_token": 2e-6 }),
        Kind::Object(_) => Value::Null,
    }
}

/// The record's fields that differ between two reads, apart from the time of the change.
fn changed(before: &Value, after: &Value) -> Vec<String> {
    let (before, after) = (before.as_object().unwrap(), after.as_object().unwrap());
    // The tightest limit follows from the limits, and is not a field of the record.
    let derived = ["updatedAt", "tightestLimit"];
    let names = after
        .keys()
        .filter(|name| !derived.contains(&name.as_str()) && before.get(*name) != after.get(*name));
    names.cloned().collect()
}

/// Edits each field of a record in turn, and reads it back.
async fn each_field<F>(gate: &Gate, operation: &'static str, target: Value, look: F)
where
    F: AsyncFn() -> Value,
{
    let table = data(find(&format!("actions/{operation}")).unwrap().body);
    let with = |field: &Field, value: Value| {
        let mut body = target.clone();
        body[&field.name] = value;
        // Another destination requires the credentials again (`kept_credentials.rs`).
        if operation == "providers/editProvider"
            && ["url", "proxy_url"].contains(&field.name.as_str())
        {
            body["key"] = json!("upstream-credential-0123456789");
            body["credentials"] = json!([]);
        }
        // Certificates are for an address with TLS, and each has its key.
        if field.name.starts_with("tls_") {
            body["url"] = json!("https://up.example");
            body["key"] = json!("upstream-credential-0123456789");
            body["credentials"] = json!([]);
        }
        if field.name == "tls_client_certificate" && !body[&field.name].is_null() {
            let is_client = body[&field.name] == json!(pem("client.pem"));
            body["tls_client_key"] =
                json!(pem(if is_client { "client.key" } else { "server.key" }));
        }
        // Probes need a model.
        if field.name == "probe_interval" {
            body["probe_model"] = json!("m");
        }
        // The only credential cannot be disabled.
        if field.name == "key_is_enabled" {
            body["credentials"] = further("b");
        }
        body
    };
    // A field that is written and never read cannot be checked.
    let unread = ["webhookSecret", "tls_client_key"];
    for field in table.iter().filter(|field| !unread.contains(&field.name.as_str())) {
        gate.admin(operation, with(field, first(field))).await.data();
        let before = look().await;
        gate.admin(operation, with(field, another(field))).await.data();
        let after = look().await;
        let name = recorded_as(&field.name);
        let moved = changed(&before, &after);
        assert!(moved.contains(&name), "{operation} {}: {moved:?}", field.name);
        let others: Vec<_> = moved
            .iter()
            .filter(|m| **m != name && !moves_with(&field.name).contains(&m.as_str()))
            .collect();
        assert!(others.is_empty(), "{operation} {} moved {others:?}", field.name);
        if field.nullable {
            gate.admin(operation, with(field, Value::Null)).await.data();
            let cleared = look().await[&name].clone();
            let empty = [json!(null), json!(""), json!(0), json!([]), json!({}), json!("default")];
            assert!(empty.contains(&cleared), "{operation} {} cleared to {cleared}", field.name);
        }
    }
}

#[tokio::test]
async fn editing_one_field_of_a_key_leaves_the_others() {
    let gate = Gate::start().await;
    let user = gate.person("user", json!({})).await;
    let (id, _) = gate.key(user.id, "k", json!({})).await;
    each_field(&gate, "keys/editKey", json!({ "keyId": id }), async || {
        gate.key_record(user.id, id).await
    })
    .await;
}

#[tokio::test]
async fn editing_one_field_of_a_user_leaves_the_others() {
    let gate = Gate::start().await;
    let user = gate.person("user", json!({})).await;
    each_field(&gate, "users/editUser", json!({ "userId": user.id }), async || {
        gate.user_record(user.id).await
    })
    .await;
}

#[tokio::test]
async fn editing_one_field_of_a_provider_leaves_the_others() {
    let gate = Gate::start().await;
    let id = gate.provider("up").await;
    let look = async || gate.admin("providers/getProviders", json!({})).await.data()[0].clone();
    each_field(&gate, "providers/editProvider", json!({ "providerId": id }), look).await;
}

#[tokio::test]
async fn editing_one_setting_leaves_the_others() {
    let gate = Gate::start().await;
    for (save, read) in [
        ("system-config/saveSystemSettings", "system-config/fetchSystemSettings"),
        (
            "notifications/updateNotificationSettingsAction",
            "notifications/getNotificationSettingsAction",
        ),
    ] {
        each_field(&gate, save, json!({}), async || gate.admin(read, json!({})).await.data()).await;
    }
}

#[tokio::test]
async fn what_is_set_at_creation_is_what_is_read_back() {
    let gate = Gate::start().await;
    let user = gate.person("owner", json!({})).await;
    for (operation, target) in [
        ("keys/addKey", json!({ "userId": user.id })),
        ("users/addUser", json!({})),
        ("providers/addProvider", json!({})),
    ] {
        let table = data(find(&format!("actions/{operation}")).unwrap().body);
        let mut body = target;
        for field in &table {
            body[&field.name] = first(field);
        }
        let data = gate.admin(operation, body.clone()).await.data();
        let record = match operation {
            "keys/addKey" => gate.key_record(user.id, data["id"].as_i64().unwrap()).await,
            "users/addUser" => gate.user_record(data["user"]["id"].as_i64().unwrap()).await,
            _ => gate.admin("providers/getProviders", json!({})).await.data()[0].clone(),
        };
        for field in table.iter().filter(|field| field.name != "key") {
            let shown = &record[recorded_as(&field.name)];
            match &field.kind {
                // The end of that day in the gateway's time zone.
                _ if field.name == "credentials" => assert_eq!(shown[0]["name"], "b"),
                // A secret is never shown.
                _ if field.name == "tls_client_key" => assert_eq!(shown, "***"),
                Kind::Moment => assert_eq!(shown, "2027-01-31T15:59:59.999Z"),
                _ => assert_eq!(shown, &body[&field.name], "{operation} {}", field.name),
            }
        }
    }
}
