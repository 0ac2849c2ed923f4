//! Signatures of AWS: at every endpoint, for each attempt, with a clock that differs, and with a
//! credential that cannot sign.

use serde_json::{Value, json};

use super::super::fixture::Fixture;
use super::bedrock::{SECRET, fields, is_signed, keys, newest_chain, with_spare};
use super::{ask, newest};
use crate::support::upstream::Upstream;

#[tokio::test(flavor = "multi_thread")]
async fn the_other_endpoints_of_aws_are_signed_as_they_are() {
    let fixture = Fixture::bare(&[]).await;
    let key = |service: &str| {
        let mut key: Value = serde_json::from_str(&keys()).unwrap();
        key["service"] = json!(service);
        key.to_string()
    };
    for (kind, base, service, path) in [
        ("native", "/anthropic", "bedrock", "/anthropic/v1/messages"),
        ("native", "/anthropic", "bedrock-mantle", "/anthropic/v1/messages"),
        ("native", "", "aws-external-anthropic", "/v1/messages"),
        ("chat-compatible", "/openai/v1", "bedrock", "/openai/v1/chat/completions"),
        ("responses", "/v1", "bedrock-mantle", "/v1/responses"),
    ] {
        let mut fields = json!({"auth": "aws-sigv4", "key": key(service)});
        if service == "aws-external-anthropic" {
            fields["custom_headers"] = json!({"anthropic-workspace-id": "wrkspc_1"});
        }
        let url = format!("{}{base}", fixture.upstream.url);
        let id = fixture.gateway.provider(kind, &url, fields).await;
        for stream in [false, true] {
            assert_eq!(ask(&fixture, kind, stream).await.0, 200, "{kind} {base}");
            let seen = newest(&fixture.upstream).await;
            assert_eq!(seen["path"], path);
            is_signed(&seen, service);
            let version = &seen["headers"]["anthropic-version"];
            assert_eq!(version.is_null(), kind != "native", "{seen}");
            let workspace = &seen["headers"]["anthropic-workspace-id"];
            assert_eq!(workspace.is_null(), service != "aws-external-anthropic", "{seen}");
        }
        fixture.gateway.admin("providers/removeProvider", json!({"providerId": id})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_attempt_has_its_own_signature() {
    let (fixture, issuer) = (Fixture::bare(&[]).await, Upstream::start().await);
    let key = json!({"access_key_id": "AKIDEXAMPLE", "secret_access_key": SECRET, "region": "us-east-1",
        "role_arn": "arn:aws:iam::1:role/r", "sts_endpoint": format!("{}/sts", issuer.url)});
    let mut fields = fields();
    fields["key"] = json!(key.to_string());
    let url = format!("{}/model", fixture.upstream.url);
    fixture.gateway.provider("native", &url, fields).await;
    let error =
        json!({"type": "ExpiredTokenException", "message": "The security token is expired"});
    fixture.upstream.script(json!([{"status": 403, "error": error}])).await;
    let mut tokens = Vec::new();
    for _ in 0..3 {
        ask(&fixture, "native", false).await;
        let seen = newest(&fixture.upstream).await;
        tokens.push(seen["headers"]["x-amz-security-token"].clone());
        assert!(seen["headers"]["authorization"].as_str().unwrap().contains("ASIAMOCK"), "{seen}");
    }
    // Keys that AWS calls expired are not used again.
    assert!(tokens[0] != tokens[1] && tokens[1] == tokens[2], "{tokens:?}");
    assert_eq!(issuer.requests().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_cannot_sign_is_refused_when_it_is_entered() {
    let fixture = Fixture::bare(&[]).await;
    let runtime = "https://bedrock-runtime.us-east-1.amazonaws.com";
    for (url, key, says) in [
        (runtime, json!("AKID"), "must be a JSON object"),
        (runtime, json!({}), "either access_key_id and secret_access_key are needed, or source"),
        (runtime, json!({"access_key_id": "A"}), "either access_key_id"),
        (runtime, json!({"source": "imds", "access_key_id": "A"}), "either access_key_id"),
        (runtime, json!({"source": "moon"}), "must be a JSON object"),
        (runtime, json!({"source": "default", "role-arn": "r"}), "has a member that is none of"),
        (
            runtime,
            json!({"source": "default", "sts_endpoint": "http://sts.example"}),
            "sts_endpoint",
        ),
        (runtime, json!({"source": "default", "region": "a/b"}), "region must have letters"),
        ("https://relay.example/model", json!({"source": "default"}), "region is needed"),
    ] {
        let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
        let body = json!({"name": "p", "url": url, "auth": "aws-sigv4", "key": key});
        let (status, answer) = fixture.gateway.call("providers/addProvider", body).await;
        let params = &answer["errorParams"];
        let said = (status, &params["field"], &params["reason"]);
        assert_eq!(said, (400, &json!("key"), &json!("credential_unfit")), "{key}: {answer}");
        assert!(params["detail"].as_str().unwrap().contains(says), "{key}: {answer}");
    }
    let body = json!({"name": "p", "url": runtime, "auth": "aws-sigv4", "key": "{\"source\":\"default\"}"});
    assert_eq!(fixture.gateway.call("providers/addProvider", body).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_differs_is_named_and_not_blamed_on_the_request() {
    let (fixture, spare) = with_spare().await;
    let message = "Signature expired: 20200101T000000Z is now earlier than 20200101T001000Z";
    let error = json!({"type": "InvalidSignatureException", "message": message});
    let headers = json!({"date": "Wed, 01 Jan 2020 00:10:00 GMT"});
    fixture.upstream.script(json!([{"status": 403, "error": error, "headers": headers}])).await;
    assert_eq!(ask(&fixture, "native", false).await.0, 200);
    assert_eq!(spare.requests().await.len(), 1);
    let chain = newest_chain(&fixture, 1).await;
    assert!(
        chain.contains("the clock of the gateway is") && chain.contains("s ahead of AWS's"),
        "{chain}"
    );
    assert!(!chain.contains("request_refused"), "{chain}");
    let health = fixture.gateway.admin("providers/getProvidersHealthStatus", json!({})).await;
    assert!(health.to_string().contains("the clock of the gateway is"), "{health}");
    assert!(fixture.gateway.log().contains("AWS refused a signature"));
}
