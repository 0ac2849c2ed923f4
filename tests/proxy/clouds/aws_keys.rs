//! Where the keys of AWS come from: each source, as its vendor serves it, and roles on top of them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tollgate::domain::clock::Timestamp;
use tollgate::domain::provider::Provider;
use tollgate::domain::provider_auth::ProviderAuth;
use tollgate::domain::secret::Secret;
use tollgate::upstream::aws::Environment;
use tollgate::upstream::tokens::{AccessToken, TokenSource};

use crate::support::upstream::Upstream;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

/// A source of keys for this credential, within these variables.
fn source(key: Value, variables: &[(&str, String)]) -> TokenSource {
    let variables: HashMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let environment: Environment = Arc::new(move |name| variables.get(name).cloned());
    let mut provider = Provider::blank(Timestamp(0));
    provider.url = "https://bedrock-runtime.eu-west-1.amazonaws.com".to_owned();
    (provider.auth, provider.key) = (ProviderAuth::AwsSigv4, Secret::new(key.to_string()));
    TokenSource::within(&provider, &environment).unwrap().unwrap()
}

/// The secrets of the keys, which tell where they are from.
async fn keys(key: Value, variables: &[(&str, String)]) -> Result<Vec<String>, String> {
    let token = source(key, variables).token(NOW).await?;
    Ok(token.secrets().iter().map(|secret| secret.expose().to_owned()).collect())
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn from_mock(secrets: &Result<Vec<String>, String>) -> bool {
    secrets.as_ref().is_ok_and(|all| {
        all.len() == 2
            && all[0].starts_with("mock-secret-key-")
            && all[1].starts_with("mock-session-token-")
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_and_a_profile_have_keys() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[default]\naws_access_key_id = A\naws_secret_access_key = of-default\n\
                [team]\naws_access_key_id = T\naws_secret_access_key = of-team\naws_session_token = s\n";
    let files = ("AWS_SHARED_CREDENTIALS_FILE", file(folder.path(), "credentials", text));
    let own = [
        ("AWS_ACCESS_KEY_ID", "E".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "of-environment".to_owned()),
        files.clone(),
    ];
    let one = |text: &str| Ok(vec![text.to_owned()]);
    assert_eq!(keys(json!({"source": "environment"}), &own).await, one("of-environment"));
    assert_eq!(keys(json!({"source": "default"}), &own).await, one("of-environment"));
    let files = [files];
    assert_eq!(keys(json!({"source": "default"}), &files).await, one("of-default"));
    let team = json!({"source": "profile", "profile": "team"});
    assert_eq!(keys(team, &files).await, Ok(vec!["of-team".to_owned(), "s".to_owned()]));
    let home = [("HOME", folder.path().to_str().unwrap().to_owned())];
    file(folder.path(), ".aws/credentials", text);
    assert_eq!(keys(json!({"source": "profile"}), &home).await, one("of-default"));
    for (key, why) in [
        (json!({"source": "environment"}), "AWS_ACCESS_KEY_ID is not set"),
        (json!({"source": "profile", "profile": "none"}), "there is no profile “none”"),
        (json!({"source": "sso"}), "the profile “default” has no sso_account_id"),
        (json!({"source": "container"}), "AWS_CONTAINER_CREDENTIALS_FULL_URI is not set"),
        (json!({"source": "web_identity"}), "AWS_ROLE_ARN is not set"),
    ] {
        assert_eq!(keys(key, &home).await, Err(format!("no access token: {why}")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_and_a_container_have_keys() {
    let (upstream, folder) = (Upstream::start().await, tempfile::tempdir().unwrap());
    let instance = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", upstream.url.clone())];
    for name in ["imds", "default"] {
        let got = keys(json!({"source": name}), &instance).await;
        assert!(from_mock(&got), "{got:?}");
    }
    let seen = upstream.requests().await;
    let calls: Vec<_> = seen[..3].iter().map(|one| (&one["method"], &one["path"])).collect();
    let place = "/latest/meta-data/iam/security-credentials/";
    assert_eq!(
        json!(calls),
        json!([["PUT", "/latest/api/token"], ["GET", place], ["GET", format!("{place}mock-role")]])
    );
    assert_eq!(seen[0]["headers"]["x-aws-ec2-metadata-token-ttl-seconds"], "21600");
    assert_eq!(seen[1]["headers"]["x-aws-ec2-metadata-token"], "mock-imds-token");
    let token = file(folder.path(), "token", "token-of-the-container\n");
    let container = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{}/container/credentials", upstream.url)),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token),
    ];
    for name in ["container", "default"] {
        let got = keys(json!({"source": name}), &container).await;
        assert!(from_mock(&got), "{got:?}");
    }
    let seen = upstream.requests().await.pop().unwrap();
    assert_eq!(seen["headers"]["authorization"], "token-of-the-container");
    // The token goes to no other host.
    let far = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/credentials".to_owned())];
    let refused = keys(json!({"source": "container"}), &far).await.unwrap_err();
    assert!(refused.contains("or be one of this machine or its link"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_file_is_exchanged_for_the_keys_of_a_role() {
    let (upstream, folder) = (Upstream::start().await, tempfile::tempdir().unwrap());
    let variables = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", file(folder.path(), "token", "token.of.the-service")),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/pod".to_owned()),
        ("AWS_ENDPOINT_URL_STS", format!("{}/sts", upstream.url)),
    ];
    for name in ["web_identity", "default"] {
        let got = keys(json!({"source": name}), &variables).await;
        assert!(from_mock(&got), "{got:?}");
    }
    let seen = upstream.requests().await.pop().unwrap();
    let form = seen["body"].as_str().unwrap();
    let wanted = "Action=AssumeRoleWithWebIdentity&Version=2011%2D06%2D15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fpod\
        &RoleSessionName=tollgate&WebIdentityToken=token%2Eof%2Ethe%2Dservice";
    assert_eq!(form, wanted);
    assert!(seen["headers"]["authorization"].is_null(), "{seen}");
    let xml = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized</Message></Error></ErrorResponse>";
    upstream.script(json!([{"status": 403, "body": xml}])).await;
    let why = keys(json!({"source": "web_identity"}), &variables).await.unwrap_err();
    assert_eq!(why, "no access token: STS answered 403 AccessDenied Not authorized");
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_are_assumed_in_turn() {
    let (upstream, folder) = (Upstream::start().await, tempfile::tempdir().unwrap());
    let text = "[base]\naws_access_key_id = AKIDBASE\naws_secret_access_key = s\n\
                [profile middle]\nrole_arn = arn:middle\nsource_profile = base\nexternal_id = of-middle\n";
    let variables = [
        ("AWS_CONFIG_FILE", file(folder.path(), "config", text)),
        ("AWS_ENDPOINT_URL_STS", format!("{}/sts", upstream.url)),
    ];
    let key = json!({"source": "profile", "profile": "middle", "role_arn": "arn:last", "external_id": "of-last",
        "session_name": "own"});
    let got = keys(key, &variables).await;
    assert!(from_mock(&got), "{got:?}");
    let seen = upstream.requests().await;
    let [first, second] = seen.as_slice() else { panic!("{seen:?}") };
    let has = |one: &Value, part: &str| one["body"].as_str().unwrap().contains(part);
    assert!(has(first, "RoleArn=arn%3Amiddle") && has(first, "ExternalId=of%2Dmiddle"), "{first}");
    assert!(has(second, "RoleArn=arn%3Alast") && has(second, "ExternalId=of%2Dlast"), "{second}");
    assert!(has(second, "RoleSessionName=own"), "{second}");
    // The first is signed with the profile's keys, the second with those that the first gave.
    let signed = |one: &Value| one["headers"]["authorization"].as_str().unwrap().to_owned();
    assert!(signed(first).contains("Credential=AKIDBASE/20270115/eu-west-1/sts/aws4_request"));
    assert!(signed(second).contains("Credential=ASIAMOCK"), "{second}");
    let token = second["headers"]["x-amz-security-token"].as_str().unwrap();
    assert!(token.starts_with("mock-session-token-"), "{token}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cache_of_single_sign_on_is_read() {
    let (upstream, folder) = (Upstream::start().await, tempfile::tempdir().unwrap());
    let config = "[profile sso]\nsso_session = corp\nsso_account_id = 123\nsso_role_name = Dev\n\
                  [sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp.example/start\n";
    file(folder.path(), ".aws/config", config);
    // SHA-1 of “corp”.
    let cache = ".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json";
    let variables = [
        ("HOME", folder.path().to_str().unwrap().to_owned()),
        ("AWS_ENDPOINT_URL_SSO", upstream.url.clone()),
    ];
    let key = || json!({"source": "sso", "profile": "sso"});
    let why = keys(key(), &variables).await.unwrap_err();
    assert!(why.contains("run `aws sso login` again"), "{why}");
    for (expires, works) in [("2027-01-15T09:00:00Z", true), ("2027-01-15T08:00:00Z", false)] {
        let token = json!({"accessToken": "token-of-sso", "expiresAt": expires});
        file(folder.path(), cache, &token.to_string());
        let got = keys(key(), &variables).await;
        assert_eq!(from_mock(&got), works, "{got:?}");
        assert!(works || got.unwrap_err().contains("has expired; run `aws sso login` again"));
    }
    let [seen] = upstream.requests().await.try_into().unwrap();
    assert_eq!(seen["query"], "role_name=Dev&account_id=123");
    assert_eq!(seen["headers"]["x-amz-sso_bearer_token"], "token-of-sso");
}

#[tokio::test(flavor = "multi_thread")]
async fn temporary_keys_are_fetched_once_and_renewed_early() {
    let upstream = Upstream::start().await;
    let variables = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", upstream.url.clone())];
    let source = source(json!({"source": "imds"}), &variables);
    let answer = |secret: &str, expires: &str| json!({"body": {"AccessKeyId": "A", "SecretAccessKey": secret, "Token": secret, "Expiration": expires}});
    let own = json!({});
    let script = json!([{"delay_ms": 200}, own, answer("first", "2027-01-15T09:00:00Z")]);
    upstream.script(script).await;
    let first = join_all((0..20).map(|_| source.token(NOW))).await;
    assert!(first.iter().all(|token| token == &first[0]), "{first:?}");
    let first = first[0].clone().unwrap();
    assert_eq!(upstream.requests().await.len(), 3);
    let at = |seconds: i64| Timestamp(NOW.0 + seconds * 1000);
    assert!(source.token(at(3299)).await.unwrap() == first);
    assert_eq!(upstream.requests().await.len(), 3);
    // Five minutes before the end; as long as that fails, the present ones are used to their end.
    upstream.script(json!([{"status": 500}])).await;
    assert!(source.token(at(3301)).await.unwrap() == first);
    assert!(source.token(at(3302)).await.unwrap() == first);
    assert_eq!(upstream.requests().await.len(), 4);
    assert!(source.token(at(3340)).await.unwrap() != first);
    let secret = |token: AccessToken| token.secrets()[0].expose().to_owned();
    assert!(secret(source.token(at(3600)).await.unwrap()).starts_with("mock-secret-key-"));
}
