//! Models that a request names beside its own: each must be on the lists of the user and of the
//! provider.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};

/// The member that names `dear`, in each format that has it, with what the refusal calls it.
fn cases(format: &str) -> Vec<(&'static str, Value)> {
    let common = [
        ("models", json!({"models": ["m", "dear"]})),
        ("models", json!({"models": "dear"})),
        ("models", json!({"Models": ["dear"]})),
        ("plugins[].model", json!({"plugins": [{"id": "p", "model": "dear"}]})),
        ("plugins[].model", json!({"plugins": [{"id": "p", "analysis_models": ["dear"]}]})),
        ("fallbacks", json!({"fallbacks": [{"model": "m"}, {"model": "dear"}]})),
        ("fallbacks", json!({"fallbacks": ["dear"]})),
        ("fallbacks", json!({"fallbacks": [{"Model": "dear"}]})),
        ("fallbacks", json!({"fallbacks": [{"model": "m", "m\u{6f}del": "dear"}]})),
    ];
    common.into_iter().chain(cases_of_one(format)).collect()
}

fn cases_of_one(format: &str) -> Vec<(&'static str, Value)> {
    let tool = |kind: &str| json!({"tools": [{"type": kind, "name": "t", "model": "dear"}]});
    let deep = json!({"tools": [{"type": "namespace", "name": "n", "tools": [
        {"type": "image_generation", "model": "dear"}]}]});
    match format {
        "native" => native(),
        "responses" => vec![
            ("tools[].model", tool("image_generation")),
            ("tools[].model", deep),
            (
                "tools[].model",
                json!({"tools": [{"type": "image_generation", "model": "m",
                    "output_format": "svg", "svg": {"model": "dear"}}]}),
            ),
            (
                "tools[].model",
                json!({"input": [{"type": "additional_tools", "tools": [
                {"type": "image_generation", "model": "dear"}]}, {"role": "user", "content": "hi"}]}),
            ),
            ("moderation.model", json!({"moderation": {"model": "dear"}})),
        ],
        "chat-compatible" => vec![
            (
                "tools[].model",
                json!({"tools": [
                {"type": "openrouter:image_generation", "parameters": {"model": "dear"}}]}),
            ),
            (
                "tools[].model",
                json!({"tools": [
                {"type": "openrouter:fusion", "parameters": {"models": ["m", "dear"]}}]}),
            ),
        ],
        _ => vec![
            ("model", json!({"model": "dear"})),
            ("model", json!({"model": "models/dear"})),
            (
                "generationConfig.routingConfig",
                json!({"generationConfig": {
                "routingConfig": {"manualMode": {"modelName": "dear"}}}}),
            ),
            (
                "generationConfig.routingConfig",
                json!({"generation_config": {
                "routing_config": {"manual_mode": {"model_name": "dear"}}}}),
            ),
        ],
    }
}

fn native() -> Vec<(&'static str, Value)> {
    let tool = |kind: &str| json!({"tools": [{"type": kind, "name": "t", "model": "dear"}]});
    let advisor = json!({"type": "advisor_20260301", "name": "a", "model": "dear"});
    let added = |part: Value| {
        json!({"messages": [{"role": "user",
        "content": [part, {"type": "text", "text": "hi"}]}]})
    };
    vec![
        ("tools[].model", tool("advisor_20260301")),
        ("tools[].model", tool("advisor_20270101")),
        ("tools[].model", added(json!({"type": "tool_addition", "tool": advisor}))),
        ("tools[].model", added(json!({"type": "tool_addition", "tools": [advisor]}))),
        (
            "tools[].model",
            added(json!({"type": "tool_addition",
                    "tool": {"type": "tool_definition", "definition": advisor}})),
        ),
        ("compaction.model", json!({"compaction": {"type": "summarize", "model": "dear"}})),
        (
            "context_management.edits[].model",
            json!({"context_management": {"edits": [{"type": "compact_20260112", "model": "dear"}]}}),
        ),
    ]
}

fn with(format: &str, stream: bool, members: &Value) -> Value {
    let mut body = request(format, stream);
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

/// The upstream accepts any body.
async fn fixture() -> Fixture {
    let fixture = Fixture::bare(&[]).await;
    fixture.upstream.default(json!({"strict": false})).await;
    fixture
}

async fn answer(fixture: &Fixture, format: &str, stream: bool, members: &Value) -> (u16, Value) {
    let body = with(format, stream, members);
    let answer = fixture.post(path(format, stream), &body).send().await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

async fn allow(fixture: &Fixture, models: &[&str]) {
    let edit = json!({"userId": fixture.user_id, "allowedModels": models});
    fixture.gateway.admin("users/editUser", edit).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_list_holds_for_every_member_that_names_a_model() {
    let fixture = fixture().await;
    for kind in FORMATS {
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
    }
    for format in FORMATS {
        for (member, members) in cases(format) {
            for stream in [false, true] {
                allow(&fixture, &["m"]).await;
                let before = fixture.upstream.requests().await.len();
                let (status, body) = answer(&fixture, format, stream, &members).await;
                let said = body.to_string();
                assert_eq!(status, 403, "{format} {members}: {said}");
                assert!(said.contains("dear") && said.contains(member), "{members}: {said}");
                assert_eq!(fixture.upstream.requests().await.len(), before, "{format} {members}");
            }
            // Both are allowed by name; a list of none allows all.
            for models in [&["m", "dea*"][..], &[]] {
                allow(&fixture, models).await;
                let (status, body) = answer(&fixture, format, false, &members).await;
                assert_eq!(status, 200, "{format} {members}: {body}");
            }
        }
        allow(&fixture, &["m"]).await;
        let (status, body) = answer(&fixture, format, false, &json!({})).await;
        assert_eq!(status, 200, "{format}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_whose_list_lacks_a_named_model_is_not_asked() {
    let fixture = fixture().await;
    let url = &fixture.upstream.url;
    for kind in FORMATS {
        // The redirect is for the request's own model: it makes no other one a model of the
        // provider.
        let fields = json!({"name": format!("narrow {kind}"), "allowed_models": ["m"],
            "model_redirects": {"dear": "m"}});
        fixture.gateway.provider(kind, url, fields).await;
    }
    for format in FORMATS {
        for (member, members) in cases(format) {
            let (status, body) = answer(&fixture, format, false, &members).await;
            let said = body.to_string();
            // Where no provider of the client's own format is left, another one may serve it: the
            // conversion leaves the member out.
            match status {
                403 => assert!(said.contains("dear") && said.contains(member), "{members}: {said}"),
                _ => {
                    let last = fixture.upstream.requests().await.pop().unwrap();
                    assert!(!last["body"].to_string().contains("dear"), "{format}: {last}");
                }
            }
        }
    }
    for kind in FORMATS {
        let fields = json!({"name": format!("wide {kind}"), "allowed_models": ["m", "dear"]});
        fixture.gateway.provider(kind, url, fields).await;
    }
    for format in FORMATS {
        for (_, members) in cases(format) {
            let (status, body) = answer(&fixture, format, false, &members).await;
            assert_eq!(status, 200, "{format} {members}: {body}");
        }
    }
    let logs = fixture.gateway.admin("usage-logs/getUsageLogs", json!({"pageSize": 100})).await;
    for row in logs["logs"].as_array().unwrap().iter().filter(|row| row["statusCode"] == 200) {
        let name = row["providerName"].as_str().unwrap();
        let own = row["clientFormat"] == row["providerFormat"];
        assert!(!own || name.starts_with("wide"), "{row}");
    }
}

/// A key has a list of its own; its user's holds as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_keys_list_holds_beside_its_users() {
    let fixture = fixture().await;
    for kind in FORMATS {
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
    }
    for (key, user, expected) in [
        (&["m", "dear"][..], &["m"][..], 403),
        (&["m"], &["m", "dear"], 403),
        (&["m"], &[], 403),
        (&["m", "d*"], &["m", "dear"], 200),
        (&[], &[], 200),
    ] {
        allow(&fixture, user).await;
        let edit = json!({"keyId": fixture.key_id, "allowedModels": key});
        fixture.gateway.admin("keys/editKey", edit).await;
        for format in FORMATS {
            for (member, members) in cases(format) {
                let (status, body) = answer(&fixture, format, false, &members).await;
                let said = body.to_string();
                assert_eq!(status, expected, "{key:?} {user:?} {format} {members}: {said}");
                assert!(status == 200 || said.contains(member), "{members}: {said}");
            }
        }
    }
    let edit = json!({"keyId": fixture.key_id, "allowedModels": ["other"]});
    fixture.gateway.admin("keys/editKey", edit).await;
    for format in FORMATS {
        let (status, body) = answer(&fixture, format, true, &json!({})).await;
        assert_eq!(status, 403, "{format}: {body}");
    }
    let listed = fixture.gateway.client.get(format!("{}/v1/models", fixture.gateway.proxy));
    let listed = listed.header("x-api-key", &fixture.key).send().await.unwrap().text().await;
    assert!(!listed.unwrap().contains("\"m\""));
}

/// `fallbacks: "default"` lets the provider choose: a user's list has to say so.
#[tokio::test(flavor = "multi_thread")]
async fn the_providers_own_choice_is_a_word_of_the_users_list() {
    let fixture = fixture().await;
    let fields = json!({"allowed_models": ["m"]});
    fixture.gateway.provider("native", &fixture.upstream.url, fields).await;
    let members = json!({"fallbacks": "default"});
    for (models, expected) in [(&[][..], 200), (&["m"][..], 403), (&["m", "default"][..], 200)] {
        allow(&fixture, models).await;
        let (status, body) = answer(&fixture, "native", false, &members).await;
        assert_eq!(status, expected, "{models:?}: {body}");
    }
    // Elsewhere it is a name like any other.
    let tool = json!({"tools": [{"type": "advisor_20260301", "name": "a", "model": "default"}]});
    assert_eq!(answer(&fixture, "native", false, &tool).await.0, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_name_of_a_model_changes_nothing() {
    let fixture = fixture().await;
    for kind in FORMATS {
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
    }
    allow(&fixture, &["m"]).await;
    let schema = json!({"type": "object", "properties": {"model": {"type": "string"}},
        "default": {"model": "dear"}});
    let cases = [
        ("native", json!({"tools": [{"name": "t", "input_schema": schema}]})),
        (
            "chat-compatible",
            json!({"tools": [
            {"type": "function", "function": {"name": "t", "parameters": schema}}]}),
        ),
        ("responses", json!({"tools": [{"type": "function", "name": "t", "parameters": schema}]})),
        (
            "alt-cli",
            json!({"tools": [{"functionDeclarations": [{"name": "t", "parameters": schema}]}]}),
        ),
        ("native", json!({"fallbacks": null, "models": [null, 7, "", {}]})),
        ("native", json!({"metadata": {"user_id": "u"}, "model_name": "dear"})),
    ];
    for (format, members) in cases {
        let (status, body) = answer(&fixture, format, false, &members).await;
        assert_eq!(status, 200, "{format} {members}: {body}");
    }
    let long = json!({"models": ["d".repeat(513)]});
    let (status, body) = answer(&fixture, "chat-compatible", false, &long).await;
    assert_eq!(status, 400, "{body}");
    let many: Vec<String> = (0..65).map(|n| format!("m{n}")).collect();
    let (status, body) = answer(&fixture, "chat-compatible", false, &json!({"models": many})).await;
    assert_eq!(status, 400, "{body}");
}
