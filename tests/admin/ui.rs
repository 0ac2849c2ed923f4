//! The web UI's files and views, with a build in `admin/dist` and without, and who is logged in.

use reqwest::StatusCode;
use serde_json::json;

use super::gate::{Gate, NOON, Reply, TOKEN};

#[tokio::test]
async fn every_view_is_the_same_page_and_a_missing_file_is_none() {
    let gate = Gate::start().await;
    let get = |path: &str| gate.http.get(format!("{}{path}", gate.url)).send();
    let start = get("/").await.unwrap();
    assert_eq!(start.status(), StatusCode::OK);
    assert_eq!(start.headers()["cache-control"], "no-cache");
    assert!(start.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    let policy = start.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe"), "{policy}");
    let page = start.text().await.unwrap();
    for view in ["/dashboard", "/my-usage", "/people?user=1"] {
        assert_eq!(get(view).await.unwrap().text().await.unwrap(), page, "{view}");
    }
    for file in
        ["/assets/index-00000000.js", "/nothing.png", "/../Cargo.toml", "/%2e%2e/Cargo.toml"]
    {
        assert_eq!(get(file).await.unwrap().status(), StatusCode::NOT_FOUND, "{file}");
    }
    let written =
        Reply::of(gate.http.post(format!("{}/dashboard", gate.url)).bearer_auth(TOKEN)).await;
    assert_eq!(written.failure(), (404, "NOT_FOUND"));
    assert_eq!(
        Reply::of(gate.http.get(format!("{}/api", gate.url))).await.failure(),
        (404, "NOT_FOUND")
    );
    match script(&page) {
        Some(script) => a_named_file_is_kept(&gate, script).await,
        None => assert!(page.contains("npm run build"), "{page}"),
    }
}

/// The address of the page's module.
fn script(page: &str) -> Option<&str> {
    let start = page.find("\"/assets/")? + 1;
    page[start..].split('"').next()
}

async fn a_named_file_is_kept(gate: &Gate, path: &str) {
    let get = || gate.http.get(format!("{}{path}", gate.url));
    let plain = get().send().await.unwrap();
    assert_eq!(plain.headers()["cache-control"], "public, max-age=31536000, immutable");
    assert_eq!(plain.headers()["vary"], "accept-encoding");
    let tag = plain.headers()["etag"].clone();
    let whole = plain.bytes().await.unwrap();
    for coding in ["br", "gzip"] {
        let reply = get()
            .header("accept-encoding", format!("deflate, {coding};q=0.5"))
            .send()
            .await
            .unwrap();
        assert_eq!(reply.headers()["content-encoding"], coding);
        assert!(reply.bytes().await.unwrap().len() < whole.len());
    }
    let refused = get().header("accept-encoding", "br;q=0, identity").send().await.unwrap();
    assert!(!refused.headers().contains_key("content-encoding"));
    let known = get().header("if-none-match", tag).send().await.unwrap();
    assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn anyone_logged_in_learns_who_they_are() {
    let gate = Gate::start().await;
    let site = async || Reply::of(gate.http.get(format!("{}/api/auth/site", gate.url))).await.body;
    assert_eq!(site().await, json!({ "siteTitle": "tollgate" }));
    let named = json!({ "siteTitle": "Our <gate>", "currencyDisplay": "€" });
    gate.admin("system-config/saveSystemSettings", named).await.data();
    assert_eq!(site().await, json!({ "siteTitle": "Our <gate>" }));
    let user = gate.person("ann", json!({})).await;
    let (key_id, read_only) = gate.key(user.id, "cli", json!({ "canLoginWebUi": false })).await;
    let whoami =
        async |credential: &str| Reply::of(gate.post("auth/whoami").bearer_auth(credential)).await;
    let gateway = json!({ "timeZone": "Asia/Shanghai", "now": NOON.to_iso(), "version": "1.2.3", "proxyPort": 8080, "proxyTls": false,
        "siteTitle": "Our <gate>", "currencyDisplay": "€" });
    let record = gate.user_record(user.id).await;
    assert_eq!(record["keys"].as_array().unwrap().len(), 2);
    let cases = [
        (
            TOKEN,
            json!({ "role": "admin", "userId": null, "userName": "admin", "keyId": null, "keyName": null, "readOnly": false,
                "user": null }),
        ),
        (
            &user.key,
            json!({ "role": "user", "userId": user.id, "userName": "ann", "keyId": user.key_id, "keyName": "default",
                "readOnly": false, "user": record }),
        ),
        (
            &read_only,
            json!({ "role": "user", "userId": user.id, "userName": "ann", "keyId": key_id, "keyName": "cli", "readOnly": true,
                "user": null }),
        ),
    ];
    for (credential, mut expected) in cases {
        expected.as_object_mut().unwrap().extend(gateway.as_object().unwrap().clone());
        assert_eq!(whoami(credential).await.data(), expected);
    }
    assert_eq!(
        whoami("sk-00000000000000000000000000000000").await.failure(),
        (401, "UNAUTHORIZED")
    );
}

#[tokio::test]
async fn the_pages_of_the_api_reference_load_from_here_alone() {
    let gate = Gate::start().await;
    let get = |path: &str| gate.http.get(format!("{}{path}", gate.url)).send();
    for path in ["/api/actions/scalar", "/api/actions/docs"] {
        let reply = get(path).await.unwrap();
        assert_eq!(reply.status(), StatusCode::OK, "{path}");
        assert!(
            reply.headers()["content-type"].to_str().unwrap().starts_with("text/html"),
            "{path}"
        );
        let policy = reply.headers()["content-security-policy"].to_str().unwrap().to_owned();
        let page = reply.text().await.unwrap();
        let Some(files) = page.contains("id=\"reference\"").then(|| files(&page)) else {
            assert!(page.contains("npm run build"), "{path}: {page}");
            continue;
        };
        assert!(
            !policy.contains("eval") && !policy.contains("http") && !policy.contains('*'),
            "{path}: {policy}"
        );
        assert!(policy.contains("script-src 'self';"), "{path}: {policy}");
        assert!(files.len() > 2, "{path}: {page}");
        for file in files {
            assert_eq!(get(file).await.unwrap().status(), StatusCode::OK, "{path}: {file}");
        }
    }
}

/// What a page loads.
fn files(page: &str) -> Vec<&str> {
    let named =
        ["href=\"", "src=\""].into_iter().flat_map(|attribute| page.split(attribute).skip(1));
    named.filter_map(|rest| rest.split('"').next()).filter(|file| file.starts_with('/')).collect()
}
