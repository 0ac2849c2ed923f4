//! Hosted tools without a rate passed every money limit: they were found in the reply only.

use serde_json::{Value, json};

use crate::proxy::fixture::{FORMATS, Fixture, path, request};

/// Each fee that a list can name; `drawn` makes images.
fn rates() -> Value {
    let tokens = json!({"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-5});
    let with = |fees: Value| {
        let mut entry = tokens.clone();
        entry.as_object_mut().unwrap().extend(fees.as_object().unwrap().clone());
        entry
    };
    let session = json!({"code_interpreter_cost_per_session": 0.03});
    json!({
        "m": with(json!({"search_context_cost_per_query": 0.01, "file_search_cost_per_1k_calls": 2.5,
            "google_maps_grounding_cost_per_query": 0.025, "code_interpreter_cost_per_session": 0.03})),
        "drawn": tokens, "openai/container-4g": session,
    })
}

/// How a tool is priced: at tokens alone, by a field of the list, or not.
#[derive(Clone, Copy, PartialEq)]
enum Priced {
    Free,
    By(&'static str),
    Never,
}
use Priced::{By, Free, Never};

type Case = (&'static str, &'static str, Value, Priced);

const SEARCH: Priced = By("search_context_cost_per_query");
const CONTAINER: Priced = By("code_interpreter_cost_per_session");

fn tool(kind: &str) -> Value {
    json!({"type": kind, "name": "a"})
}

/// Format, feature, what the request adds, and how it is priced.
fn cases() -> Vec<Case> {
    let tools = |tool: Value| json!({ "tools": [tool] });
    let of_type = |kind: &str| tools(tool(kind));
    let code =
        |container: Value| tools(json!({"type": "code_interpreter", "container": container}));
    let image = |model: Value| tools(json!({"type": "image_generation", "model": model}));
    let of_member = |name: &str| tools(json!({ name: {} }));
    let images = json!({"googleSearch": {"searchTypes": {"imageSearch": {}}}});
    vec![
        ("native", "web_search", of_type("web_search_20260318"), SEARCH),
        ("native", "web_fetch", of_type("web_fetch_20260318"), Free),
        ("native", "code_interpreter", of_type("code_execution_20260521"), Never),
        ("native", "computer", of_type("computer_20251124"), Free),
        ("native", "mcp", json!({"mcp_servers": [{"type": "url", "name": "s"}]}), Free),
        ("native", "other_tools", of_type("oracle_20270101"), Never),
        ("responses", "web_search", of_type("web_search"), SEARCH),
        ("responses", "web_search", of_type("x_search"), Never),
        ("responses", "code_interpreter", code(json!({"type": "auto"})), CONTAINER),
        (
            "responses",
            "code_interpreter",
            code(json!({"memory_limit": "4g"})),
            By("openai/container-4g"),
        ),
        ("responses", "code_interpreter", code(json!({"memory_limit": "64g"})), Never),
        ("responses", "code_interpreter", code(json!("cntr_1")), Never),
        ("responses", "file_search", of_type("file_search"), By("file_search_cost_per_1k_calls")),
        // The shipped table has a price for the usual model.
        ("responses", "image_generation", image(Value::Null), Free),
        ("responses", "image_generation", image(json!("drawn")), By("drawn")),
        ("chat-compatible", "web_search", json!({"web_search_options": {}}), SEARCH),
        ("chat-compatible", "other_tools", json!({"plugins": [{"id": "fusion"}]}), Never),
        ("alt-cli", "web_search", of_member("googleSearch"), SEARCH),
        ("alt-cli", "maps", of_member("googleMaps"), By("google_maps_grounding_cost_per_query")),
        ("alt-cli", "image_search", tools(images), Never),
        ("alt-cli", "partner_search", of_member("exaAiSearch"), Never),
        ("alt-cli", "code_interpreter", of_member("codeExecution"), Free),
        ("alt-cli", "file_search", of_member("fileSearch"), Free),
        ("alt-cli", "web_fetch", of_member("urlContext"), Free),
    ]
}

async fn ask(fixture: &Fixture, (format, _, members, _): &Case, stream: bool) -> (u16, String) {
    let mut body = request(format, stream);
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let answer = fixture.post(path(format, stream), &body).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn fixture(env: &[(&str, &str)], format: &str) -> Fixture {
    let fixture = Fixture::bare(env).await;
    fixture.upstream.default(json!({"strict": false})).await;
    fixture.gateway.provider(format, &fixture.upstream.url, json!({})).await;
    let limit = json!({"keyId": fixture.key_id, "limitTotalUsd": 5});
    fixture.gateway.admin("keys/editKey", limit).await;
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hosted_tool_without_a_rate_is_refused_before_it_is_sent() {
    for format in FORMATS {
        let fixture = fixture(&[], format).await;
        let of_format: Vec<Case> = cases().into_iter().filter(|case| case.0 == format).collect();
        for case in &of_format {
            let (_, feature, members, priced) = case;
            for stream in [false, true] {
                let (status, said) = ask(&fixture, case, stream).await;
                let expected = if *priced == Free { 200 } else { 403 };
                assert_eq!(status, expected, "{format} {members}: {said}");
                if status == 200 {
                    continue;
                }
                let said = said.replace("TOOL_NOT_PRICED", "tool_not_priced");
                // A model that the tool names is refused as such.
                let named = match priced {
                    By("drawn") => ["model_not_priced", "drawn"],
                    _ => [*feature, "`unpriced_tools`"],
                };
                for word in named.into_iter().chain(["_not_priced", "`prices.unpriced` to `serve`"])
                {
                    assert!(said.contains(word), "{format} {members}: {word} in {said}");
                }
                if let By(field) = priced {
                    assert!(said.contains(field), "{format} {members}: {field} in {said}");
                }
            }
        }
        let free = of_format.iter().filter(|case| case.3 == Free).count();
        assert_eq!(fixture.upstream.requests().await.len(), 2 * free, "{format}");
        // The price list gets every rate that it can have.
        fixture.gateway.prices(rates()).await;
        for case in &of_format {
            let (status, said) = ask(&fixture, case, true).await;
            assert_eq!(status, if case.3 == Never { 403 } else { 200 }, "{}: {said}", case.2);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_setting_a_record_or_no_limit_allows_it() {
    let search = ("native", "web_search", json!({"tools": [tool("web_search_20260318")]}), SEARCH);
    let fixture = fixture(&[], "native").await;
    let status = async |expected: u16| {
        let (status, said) = ask(&fixture, &search, false).await;
        assert_eq!(status, expected, "{said}");
    };
    let edit = async |fields: Value| {
        let mut body = fields;
        body["keyId"] = fixture.key_id.into();
        fixture.gateway.admin("keys/editKey", body).await;
    };
    status(403).await;
    // The tool itself is allowed: that says nothing of its price.
    edit(json!({"allowedFeatures": ["web_search"]})).await;
    status(403).await;
    edit(json!({"allowedFeatures": ["unpriced_tools"]})).await;
    status(200).await;
    edit(json!({"allowedFeatures": [], "limitTotalUsd": null})).await;
    status(200).await;
    edit(json!({"deniedFeatures": ["unpriced_tools"]})).await;
    status(403).await;
    fixture.gateway.prices(json!({"m": rates()["m"]})).await;
    status(200).await;
    let counted = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}],
        "tools": [tool("code_execution_20260521")]});
    let counted = fixture.post("/v1/messages/count_tokens", &counted).send().await.unwrap();
    assert_eq!(counted.status(), 200, "a token count costs nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_with_a_price_for_the_tool_serves_it_and_refuse_needs_no_limit() {
    let fixture = Fixture::bare(&[("TOLLGATE_PRICES_UNPRICED", "refuse")]).await;
    let url = &fixture.upstream.url;
    fixture.gateway.prices(json!({"searched": rates()["m"], "m": rates()["drawn"]})).await;
    for (name, model, priority) in [("without", "m", 0), ("with", "searched", 1)] {
        let fields =
            json!({"name": name, "priority": priority, "model_redirects": {"alias": model}});
        fixture.gateway.provider("native", url, fields).await;
    }
    let ask = async |tool_kind: &str| {
        let mut body = request("native", false);
        (body["model"], body["tools"]) = (json!("alias"), json!([tool(tool_kind)]));
        fixture.post("/v1/messages", &body).send().await.unwrap().status()
    };
    assert_eq!(ask("web_search_20260318").await, 200);
    assert_eq!(ask("oracle_1").await, 403);
    let rows = fixture.gateway.logs(2).await;
    assert_eq!(rows[1]["providerName"], "with", "{}", rows[1]);
    let chain = rows[1]["decisionChain"].to_string();
    assert!(chain.contains("no price"), "{chain}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_serve_it_is_served_and_shown_as_unpriced() {
    let fixture = fixture(&[("TOLLGATE_PRICES_UNPRICED", "serve")], "native").await;
    let usage = json!({"input_tokens": 100, "output_tokens": 10, "server_tool_use": {"web_search_requests": 2}});
    let [body, _] = super::parts::native("m", "end_turn", &usage);
    fixture.upstream.default(json!({"body": body, "strict": false})).await;
    let search = ("native", "web_search", json!({"tools": [tool("web_search_20260318")]}), SEARCH);
    let (status, said) = ask(&fixture, &search, false).await;
    assert_eq!(status, 200, "{said}");
    let row = &fixture.gateway.logs(1).await[0];
    let part = &row["parts"][0];
    assert_eq!((&part["kind"], &part["costUsd"]), (&json!("web_search"), &Value::Null), "{row}");
}
