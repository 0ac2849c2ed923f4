//! Features that a request uses: hosted tools, tiers and places, and who pays. Records of keys,
//! users, groups and providers allow or deny them.

use serde_json::{Value, json};
use tollgate::domain::feature::FEATURES;

use super::fixture::{FORMATS, Fixture, path, request};

type Case = (&'static str, &'static str, Value);

/// The feature, what the refusal calls the member that asks for it, and the member.
fn cases(format: &str) -> Vec<Case> {
    let tier = |tier: &str| json!({"service_tier": tier});
    let mut all = vec![
        ("service_tier", "service_tier", tier("priority")),
        ("service_tier", "service_tier", json!({"Service_Tier": "flex"})),
        ("speed", "speed", json!({"speed": "fast"})),
        ("inference_geo", "inference_geo", json!({"inference_geo": "us"})),
        ("routing", "provider", json!({"provider": {"only": ["x"]}})),
        ("routing", "route", json!({"route": "fallback"})),
        ("thread", "thread", json!({"thread": {"type": "create"}})),
        ("background", "background", json!({"background": true})),
        ("web_search", "plugins[].id", json!({"plugins": [{"id": "web"}]})),
        ("other_tools", "plugins[].id", json!({"plugins": [{"id": "fusion"}]})),
        ("web_search", "model", json!({"models": ["m", "other/model:online"]})),
    ];
    all.extend(cases_of_one(format));
    all
}

fn tool(kind: &str) -> Value {
    json!({"tools": [{"type": kind, "name": "a"}]})
}

fn cases_of_one(format: &str) -> Vec<Case> {
    match format {
        "native" => native(),
        "responses" => responses(),
        "chat-compatible" => chat(),
        _ => alt_cli(),
    }
}

fn of_type(feature: &'static str, kind: &str) -> Case {
    (feature, "tools[].type", tool(kind))
}

fn native() -> Vec<Case> {
    vec![
        of_type("web_search", "web_search_20260318"),
        of_type("web_fetch", "web_fetch_20260318"),
        of_type("code_interpreter", "code_execution_20260521"),
        of_type("computer", "computer_20251124"),
        of_type("computer", "browser_toolset_20260801"),
        of_type("mcp", "mcp_toolset"),
        of_type("adviser", "advisor_20260301"),
        of_type("other_tools", "oracle_20270101"),
        ("mcp", "mcp_servers", json!({"mcp_servers": [{"type": "url", "name": "s"}]})),
        ("speed", "fallbacks[].speed", json!({"fallbacks": [{"model": "m", "speed": "fast"}]})),
        (
            "adviser",
            "tools[].type",
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"},
                {"type": "tool_addition", "tool": {"type": "tool_definition", "definition":
                    {"type": "advisor_20260301", "name": "a"}}}]}]}),
        ),
    ]
}

fn responses() -> Vec<Case> {
    vec![
        of_type("web_search", "web_search_preview"),
        of_type("image_generation", "image_generation"),
        of_type("code_interpreter", "code_interpreter"),
        of_type("file_search", "file_search"),
        of_type("computer", "computer_use_preview"),
        of_type("mcp", "mcp"),
        of_type("other_tools", "oracle"),
        (
            "code_interpreter",
            "tools[].environment",
            json!({"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]}),
        ),
        (
            "image_generation",
            "tools[].type",
            json!({"tools": [{"type": "namespace", "name": "n",
                    "tools": [{"type": "image_generation"}]}]}),
        ),
        (
            "maps",
            "tools[].googleMaps",
            json!({"input": [{"type": "additional_tools", "tools": [{"google_maps": {}}]},
                    {"role": "user", "content": "hi"}]}),
        ),
    ]
}

fn chat() -> Vec<Case> {
    vec![
        of_type("image_generation", "openrouter:image_generation"),
        of_type("web_search", "builtin_function"),
        of_type("mcp", "mcp"),
        ("web_search", "web_search_options", json!({"web_search_options": {}})),
        ("web_search", "search_parameters", json!({"search_parameters": {"mode": "on"}})),
        ("web_search", "enable_search", json!({"enable_search": true})),
    ]
}

fn alt_cli() -> Vec<Case> {
    let tool = |name: &str| json!({"tools": [{"functionDeclarations": []}, {name: {}}]});
    let images = json!({"searchTypes": {"imageSearch": {}}});
    vec![
        ("web_search", "tools[].googleSearch", tool("googleSearch")),
        ("web_search", "tools[].googleSearch", tool("google_search_retrieval")),
        ("maps", "tools[].googleMaps", tool("googleMaps")),
        ("code_interpreter", "tools[].codeExecution", tool("code_execution")),
        ("web_fetch", "tools[].urlContext", tool("urlContext")),
        ("file_search", "tools[].fileSearch", tool("fileSearch")),
        ("computer", "tools[].computerUse", tool("computerUse")),
        ("mcp", "tools[].mcpServers", tool("mcpServers")),
        ("partner_search", "tools[]", tool("exaAiSearch")),
        (
            "image_search",
            "tools[].googleSearch.searchTypes",
            json!({"tools": [{"googleSearch": images}]}),
        ),
        ("service_tier", "service_tier", json!({"serviceTier": "FLEX"})),
    ]
}

fn with(format: &str, stream: bool, members: &Value) -> Value {
    let mut body = request(format, stream);
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

async fn fixture() -> Fixture {
    let fixture = Fixture::bare(&[]).await;
    fixture.upstream.default(json!({"strict": false})).await;
    fixture
}

async fn full() -> Fixture {
    let fixture = fixture().await;
    for kind in FORMATS {
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
    }
    fixture
}

async fn answer(fixture: &Fixture, format: &str, stream: bool, members: &Value) -> (u16, String) {
    let body = with(format, stream, members);
    // A session of its own: one would stay with the provider that answered first.
    let session = fastrand::u64(..).to_string();
    let asked = fixture.post(path(format, stream), &body).header("x-session-id", session);
    let answer = asked.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// What the record of a key, a user or a group says.
async fn say(fixture: &Fixture, level: &str, allowed: &[&str], denied: &[&str]) {
    let lists = json!({"allowedFeatures": allowed, "deniedFeatures": denied});
    let of = |id: &str, value: i64| {
        let mut body = lists.clone();
        body[id] = value.into();
        body
    };
    let admin = |action: &'static str, body| fixture.gateway.admin(action, body);
    match level {
        "key" => admin("keys/editKey", of("keyId", fixture.key_id)).await,
        "user" => admin("users/editUser", of("userId", fixture.user_id)).await,
        _ => {
            let groups = json!([{"group": "default", "allowed": allowed, "denied": denied}]);
            admin("system-config/saveSystemSettings", json!({"groupFeatures": groups})).await
        }
    };
}

/// The newest of `n` records.
async fn newest(fixture: &Fixture, n: usize) -> Value {
    fixture.gateway.logs(n).await.swap_remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_feature_is_refused_in_every_format() {
    let fixture = full().await;
    for format in FORMATS {
        for (feature, member, members) in cases(format) {
            say(&fixture, "key", &[], &[]).await;
            let (status, body) = answer(&fixture, format, false, &members).await;
            // Responses in the background need a record that allows them.
            let usual = if feature == "background" && format == "responses" { 403 } else { 200 };
            assert_eq!(status, usual, "{format} {members}: {body}");
            say(&fixture, "key", &[], &[feature]).await;
            for stream in [false, true] {
                let before = fixture.upstream.requests().await.len();
                let (status, said) = answer(&fixture, format, stream, &members).await;
                assert_eq!(status, 403, "{format} {members}: {said}");
                let said = said.replace("FEATURE_NOT_ALLOWED", "feature_not_allowed");
                for word in ["feature_not_allowed", feature, member] {
                    assert!(said.contains(word), "{format} {members}: {word} in {said}");
                }
                assert_eq!(fixture.upstream.requests().await.len(), before, "{format} {members}");
            }
            // The denial is of this feature alone.
            let (status, body) = answer(&fixture, format, true, &json!({})).await;
            assert_eq!(status, 200, "{format}: {body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn usual_values_and_tools_of_the_client_are_no_features() {
    let fixture = full().await;
    let every: Vec<&str> = vec![
        "hosted_tools",
        "service_tier",
        "speed",
        "inference_geo",
        "routing",
        "background",
        "thread",
    ];
    say(&fixture, "key", &[], &every).await;
    let schema = json!({"type": "object", "properties": {"googleMaps": {"type": "web_search"}}});
    for (format, members) in [
        ("native", json!({"service_tier": "auto", "speed": "standard", "thread": null})),
        ("native", json!({"service_tier": "standard_only", "mcp_servers": []})),
        ("native", json!({"tools": [{"name": "web_search", "input_schema": schema}]})),
        ("native", tool("bash_20250124")),
        ("native", tool("text_editor_20250728")),
        ("native", tool("tool_search_tool_bm25")),
        ("responses", json!({"service_tier": "default", "background": false})),
        ("responses", tool("local_shell")),
        ("responses", json!({"tools": [{"type": "shell", "environment": {"type": "local"}}]})),
        (
            "responses",
            json!({"tools": [{"type": "function", "name": "mcp", "parameters": schema}]}),
        ),
        ("chat-compatible", json!({"service_tier": null, "enable_search": false})),
        (
            "chat-compatible",
            json!({"tools": [{"type": "function", "function": {"name": "t", "parameters": schema}}]}),
        ),
        (
            "alt-cli",
            json!({"tools": [{"functionDeclarations": [{"name": "googleMaps", "parameters": schema}]}]}),
        ),
    ] {
        let (status, body) = answer(&fixture, format, false, &members).await;
        assert_eq!(status, 200, "{format} {members}: {body}");
    }
}

/// A denial holds unless the same or a more specific record allows the feature.
#[tokio::test(flavor = "multi_thread")]
async fn the_most_specific_record_that_speaks_decides() {
    let fixture = full().await;
    let search = json!({"tools": [{"googleSearch": {}}]});
    let (yes, no, none) = ("+", "-", "");
    let mut sent = 0;
    for (key, user, group, expected) in [
        (none, none, none, 200),
        (none, none, no, 403),
        (none, no, none, 403),
        (no, none, none, 403),
        (no, yes, yes, 403),
        (none, no, yes, 403),
        (none, yes, no, 200),
        (yes, no, no, 200),
        ("+-", no, no, 200),
        (none, "+-", no, 200),
        (none, none, "+-", 200),
        // The class of the tool, and the tool itself before it.
        ("-*", yes, none, 403),
        ("+-*", no, none, 200),
    ] {
        for (level, says) in [("key", key), ("user", user), ("group", group)] {
            let list = |sign| if says.contains(sign) { vec!["web_search"] } else { vec![] };
            let denied = if says.contains('*') { vec!["hosted_tools"] } else { list('-') };
            say(&fixture, level, &list('+'), &denied).await;
        }
        let (status, body) = answer(&fixture, "alt-cli", false, &search).await;
        sent += 1;
        assert_eq!(status, expected, "key {key} user {user} group {group}: {body}");
        if status == 403 {
            let chain = newest(&fixture, sent).await["decisionChain"].to_string();
            let by = if key.contains('-') { "the key denies" } else { "denies it" };
            assert!(chain.contains(by) && chain.contains("web_search"), "{chain}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_denies_a_feature_is_not_asked() {
    let fixture = fixture().await;
    let url = &fixture.upstream.url;
    for kind in FORMATS {
        let denied: Vec<String> = cases(kind).into_iter().map(|(name, ..)| name.into()).collect();
        let fields = json!({"name": format!("narrow {kind}"), "denied_features": denied});
        fixture.gateway.provider(kind, url, fields).await;
    }
    let mut sent = 0;
    for format in FORMATS {
        for (feature, member, members) in cases(format) {
            if feature == "background" && format == "responses" {
                continue;
            }
            let (status, said) = answer(&fixture, format, false, &members).await;
            sent += 1;
            // A provider of another format may serve it if the conversion leaves the member out.
            if status == 403 {
                // A search for images is a search too, which is denied as well.
                let named = match feature {
                    "image_search" => ["web_search", "tools[].googleSearch"],
                    _ => [feature, member],
                };
                assert!(named.iter().all(|name| said.contains(name)), "{members}: {said}");
                let chain = newest(&fixture, sent).await["decisionChain"].to_string();
                assert!(chain.contains("does not allow a feature"), "{members}: {chain}");
            } else {
                // The added tool of this case has no name.
                let is_nameless = members.to_string().contains("additional_tools");
                let expected = if is_nameless { 400 } else { 200 };
                assert_eq!(status, expected, "{format} {members}: {said}");
                assert_ne!(feature, "web_search", "{format} {members}");
            }
        }
    }
    for kind in FORMATS {
        fixture.gateway.provider(kind, url, json!({"name": format!("wide {kind}")})).await;
    }
    // A denial of a provider holds for those that the key allows everything.
    say(&fixture, "key", &["hosted_tools", "service_tier", "speed"], &[]).await;
    for format in FORMATS {
        for (feature, _, members) in cases(format) {
            if feature == "background" && format == "responses" {
                continue;
            }
            let (status, body) = answer(&fixture, format, true, &members).await;
            sent += 1;
            assert_eq!(status, 200, "{format} {members}: {body}");
            let row = newest(&fixture, sent).await;
            let own = row["clientFormat"] == row["providerFormat"];
            let is_wide = row["providerName"].as_str().unwrap().starts_with("wide");
            assert!(own && is_wide, "{feature}: {row}");
        }
    }
}

/// A search is converted, so a provider of another format that denies it is not asked either.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_conversion_carries_over_is_denied_there_too() {
    let fixture = fixture().await;
    let fields = json!({"denied_features": ["web_search", "service_tier"]});
    fixture.gateway.provider("responses", &fixture.upstream.url, fields).await;
    let search = tool("web_search_20260318");
    assert_eq!(answer(&fixture, "native", false, &search).await.0, 403);
    let definition = json!({"type": "web_search_20260318", "name": "web_search"});
    let block = json!({"type": "tool_addition",
        "tool": {"type": "tool_definition", "definition": definition}});
    let added = json!({"messages": [{"role": "user", "content": "x"},
        {"role": "system", "content": [block]}]});
    assert_eq!(answer(&fixture, "native", false, &added).await.0, 403);
    // The tier is left out.
    let tier = json!({"service_tier": "priority"});
    assert_eq!(answer(&fixture, "chat-compatible", false, &tier).await.0, 200);
    // What the caller may not use is refused, also where the conversion would leave it out.
    say(&fixture, "user", &[], &["service_tier"]).await;
    assert_eq!(answer(&fixture, "chat-compatible", true, &tier).await.0, 403);
}

const PAYERS: [(&str, &str); 3] = [
    ("billing_policy", "body"),
    ("anthropic-user-profile-id", "head"),
    ("anthropic-workspace-id", "head"),
];

async fn pay(fixture: &Fixture, format: &str, (payer, place): (&str, &str)) -> (u16, String) {
    let policy = json!({"billing_policy": {"type": "billing_policy", "bill_to": "user_profile"}});
    let members = if place == "body" { policy } else { json!({}) };
    let asked = fixture.post(path(format, false), &with(format, false, &members));
    let asked = if place == "head" { asked.header(payer, "other") } else { asked };
    let answer = asked.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_pays_is_refused_unless_it_is_allowed() {
    let fixture = full().await;
    for payer in PAYERS {
        for format in FORMATS {
            let before = fixture.upstream.requests().await.len();
            let (status, said) = pay(&fixture, format, payer).await;
            assert_eq!(status, 403, "{format} {payer:?}: {said}");
            let has_code = said.to_lowercase().contains("feature_not_allowed");
            assert!(has_code && said.contains(payer.0), "{said}");
            assert_eq!(fixture.upstream.requests().await.len(), before, "{format} {payer:?}");
        }
        for level in ["key", "user", "group"] {
            say(&fixture, level, &[payer.0], &[]).await;
            let (status, said) = pay(&fixture, "native", payer).await;
            assert_eq!(status, 200, "{level} {payer:?}: {said}");
            let sent = fixture.upstream.requests().await.pop().unwrap().to_string();
            assert!(sent.contains(payer.0), "{sent}");
            say(&fixture, level, &[], &[]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_provider_that_allows_it_is_asked_to_bill_another() {
    let fixture = fixture().await;
    let url = &fixture.upstream.url;
    fixture.gateway.provider("native", url, json!({"name": "usual"})).await;
    let every: Vec<&str> = PAYERS.iter().map(|(name, _)| *name).collect();
    let fields = json!({"name": "of customers", "priority": 5, "allowed_features": every});
    fixture.gateway.provider("native", url, fields).await;
    for (at, payer) in PAYERS.into_iter().enumerate() {
        let (status, said) = pay(&fixture, "native", payer).await;
        assert_eq!(status, 200, "{payer:?}: {said}");
        let row = newest(&fixture, at + 1).await;
        assert_eq!(row["providerName"], "of customers", "{payer:?}");
    }
    say(&fixture, "key", &[], &["billing_policy"]).await;
    assert_eq!(pay(&fixture, "native", PAYERS[0]).await.0, 403);
}

/// A header that the operator passes on for all is allowed.
#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_is_passed_on_for_all_is_allowed() {
    let env = [("TOLLGATE_HEADERS_PASS_REQUEST", "anthropic-workspace-id")];
    let fixture = Fixture::native_with(&env).await;
    assert_eq!(pay(&fixture, "native", PAYERS[2]).await.0, 200);
    assert_eq!(pay(&fixture, "native", PAYERS[1]).await.0, 403);
    say(&fixture, "user", &[], &["anthropic-workspace-id"]).await;
    assert_eq!(pay(&fixture, "native", PAYERS[2]).await.0, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_do_not_change_what_their_keys_may_use() {
    let fixture = full().await;
    let call = |operation: &'static str, body: Value| {
        let url = format!("{}/api/actions/{operation}", fixture.gateway.admin);
        let request = fixture.gateway.client.post(url).bearer_auth(&fixture.key).json(&body);
        async move { request.send().await.unwrap() }
    };
    for (field, value) in [
        ("allowedModels", json!(["m"])),
        ("allowedFeatures", json!(["maps"])),
        ("deniedFeatures", json!(["maps"])),
    ] {
        let edit = call("keys/editKey", json!({"keyId": fixture.key_id, field: value})).await;
        assert_eq!(edit.status(), 403, "{field}");
        let new = json!({"userId": fixture.user_id, "name": "second", field: value});
        let added = call("keys/addKey", new).await;
        assert_eq!(added.status(), 403, "{field}");
        assert!(added.text().await.unwrap().contains("lists_by_administrator"), "{field}");
    }
    // A key that must not get around the limits of the others gets their denials.
    say(&fixture, "key", &["maps"], &["web_search"]).await;
    let lock = json!({"userId": fixture.user_id, "lockKeyLimits": true, "maxKeys": 9});
    fixture.gateway.admin("users/editUser", lock).await;
    let added = call("keys/addKey", json!({"userId": fixture.user_id, "name": "third"})).await;
    assert_eq!(added.status(), 200);
    let users = fixture.gateway.admin("users/getUsers", json!({})).await.to_string();
    assert_eq!(users.matches(r#""deniedFeatures":["web_search"]"#).count(), 2, "{users}");
    assert_eq!(users.matches(r#""allowedFeatures":["maps"]"#).count(), 1, "{users}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_known_features_are_stored() {
    let fixture = fixture().await;
    for field in ["allowedFeatures", "deniedFeatures"] {
        let edit = json!({"keyId": fixture.key_id, field: ["teleport"]});
        let (status, body) = fixture.gateway.call("keys/editKey", edit).await;
        assert_eq!(status, 400, "{body}");
    }
    let groups = json!({"groupFeatures": [
        {"group": "b", "denied": ["maps"]}, {"group": "a", "denied": ["mcp"]},
        {"group": "b", "allowed": ["speed"]}, {"group": "c"}, {"group": "d", "strategy": "fastest"}]});
    let saved = fixture.gateway.admin("system-config/saveSystemSettings", groups).await;
    let expected = json!([
        {"group": "a", "allowed": [], "denied": ["mcp"], "strategy": "weighted", "aliases": [], "hedgeAfterMs": null},
        {"group": "b", "allowed": ["speed"], "denied": ["maps"], "strategy": "weighted", "aliases": [], "hedgeAfterMs": null},
        {"group": "d", "allowed": [], "denied": [], "strategy": "fastest", "aliases": [], "hedgeAfterMs": null}]);
    assert_eq!(saved["groupFeatures"], expected);
    for wrong in [
        json!([{"group": "a", "deny": []}]),
        json!([{"group": "a", "denied": ["x"]}]),
        json!([{"group": "a", "strategy": "dearest"}]),
    ] {
        let edit = json!({"groupFeatures": wrong});
        let (status, body) = fixture.gateway.call("system-config/saveSystemSettings", edit).await;
        assert_eq!(status, 400, "{body}");
    }
}

/// The page describes every row of the table.
#[test]
fn every_feature_is_documented() {
    let page = include_str!("../../docs/features.md");
    for row in &FEATURES {
        let line = format!("| `{}` | {} |", row.name, row.doc.trim_end_matches('.'));
        assert!(page.contains(&line), "{line}");
        for word in row.types.iter().chain(row.members) {
            assert!(page.contains(&format!("`{word}`")), "{}: {word}", row.name);
        }
    }
}
