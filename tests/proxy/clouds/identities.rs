//! Credentials that are not a stored key: of a person, of another account, of another system, and of a
//! certificate.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{KeyPair as _, RSA_PSS_2048_8192_SHA256, UnparsedPublicKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};
use tollgate::domain::clock::Timestamp;
use tollgate::domain::provider::Provider;
use tollgate::domain::provider_auth::ProviderAuth;
use tollgate::domain::secret::Secret;
use tollgate::upstream::tokens;

use super::newest;
use super::tokens::{account, field, forms, source};
use crate::support::upstream::Upstream;

const NOW: Timestamp = Timestamp(1_800_000_000_000);
pub(super) const SUBJECT: &str = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln";
const CLOUD: &str = "https%3A%2F%2Fwww%2Egoogleapis%2Ecom%2Fauth%2Fcloud%2Dplatform";
const IAM: &str = "https%3A%2F%2Fwww%2Egoogleapis%2Ecom%2Fauth%2Fiam";

fn impersonation(upstream: &Upstream) -> String {
    format!("{}/v1/projects/-/serviceAccounts/a@p.iam.example:generateAccessToken", upstream.url)
}

fn federation(upstream: &Upstream, from: Value) -> Value {
    json!({"type": "external_account", "audience": "//iam.googleapis.com/pool", "token_url":
        format!("{}/sts/token", upstream.url), "credential_source": from,
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt"})
}

async fn token(auth: ProviderAuth, key: &Value) -> Result<String, String> {
    let token = source(auth, key.to_string()).token(NOW).await?;
    Ok(token.header().unwrap().to_str().unwrap().to_owned())
}

const GOOGLE: ProviderAuth = ProviderAuth::GcpServiceAccount;
const ENTRA: ProviderAuth = ProviderAuth::AzureEntra;

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_and_an_impersonated_account() {
    let upstream = Upstream::start().await;
    let user = json!({"type": "authorized_user", "client_id": "id-1", "client_secret": "s-1",
        "refresh_token": "r/1", "token_uri": format!("{}/google/token", upstream.url)});
    assert!(token(GOOGLE, &user).await.unwrap().starts_with("Bearer mock-token-"));
    let form = forms(&upstream).await[0]["body"].as_str().unwrap().to_owned();
    let fields = ["grant%5Ftype", "client%5Fid", "client%5Fsecret", "refresh%5Ftoken"];
    assert_eq!(
        fields.map(|name| field(&form, name)),
        ["refresh%5Ftoken", "id%2D1", "s%2D1", "r%2F1"]
    );
    // The source asks for a token that may only ask for others.
    let source: Value = serde_json::from_str(&account(&upstream)).unwrap();
    for (source, scope) in [(user, None), (source, Some("https://www.googleapis.com/auth/iam"))] {
        let other = json!({"type": "impersonated_service_account", "source_credentials": source,
            "service_account_impersonation_url": impersonation(&upstream), "delegates": ["d@p"]});
        assert!(token(GOOGLE, &other).await.unwrap().starts_with("Bearer mock-token-"));
        let requests = upstream.requests().await;
        let [first, second] = &requests[requests.len() - 2..] else { panic!("{requests:?}") };
        let asked = second["body"].clone();
        let scopes = json!(["https://www.googleapis.com/auth/cloud-platform"]);
        assert_eq!(asked, json!({"delegates": ["d@p"], "scope": scopes, "lifetime": "3600s"}));
        let bearer = second["headers"]["authorization"].as_str().unwrap();
        assert!(bearer.starts_with("Bearer mock-token-"), "{bearer}");
        if let Some(scope) = scope {
            let assertion = field(first["body"].as_str().unwrap(), "assertion").to_owned();
            let assertion = assertion.replace("%2E", ".").replace("%2D", "-").replace("%5F", "_");
            let claims = URL_SAFE_NO_PAD.decode(assertion.split('.').nth(1).unwrap()).unwrap();
            let claims: Value = serde_json::from_slice(&claims).unwrap();
            assert_eq!(claims["scope"], scope);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_another_system_is_exchanged() {
    let upstream = Upstream::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("subject").display().to_string();
    std::fs::write(&path, format!("{SUBJECT}\n")).unwrap();
    let mut key = federation(&upstream, json!({"file": path}));
    assert!(token(GOOGLE, &key).await.is_ok());
    let request = forms(&upstream).await.pop().unwrap();
    let form = request["body"].as_str().unwrap();
    for (name, value) in [
        ("grant%5Ftype", "urn%3Aietf%3Aparams%3Aoauth%3Agrant%2Dtype%3Atoken%2Dexchange"),
        ("audience", "%2F%2Fiam%2Egoogleapis%2Ecom%2Fpool"),
        ("requested%5Ftoken%5Ftype", "urn%3Aietf%3Aparams%3Aoauth%3Atoken%2Dtype%3Aaccess%5Ftoken"),
        ("subject%5Ftoken%5Ftype", "urn%3Aietf%3Aparams%3Aoauth%3Atoken%2Dtype%3Ajwt"),
        ("subject%5Ftoken", &SUBJECT.replace('.', "%2E")),
        ("scope", CLOUD),
    ] {
        assert_eq!(field(form, name), value, "{form}");
    }
    assert!(request["headers"]["authorization"].is_null());
    // With an account behind it, and the login of a client.
    key["service_account_impersonation_url"] = impersonation(&upstream).into();
    key["service_account_impersonation"] = json!({"token_lifetime_seconds": 600});
    key["client_id"] = "id".into();
    key["client_secret"] = "secret".into();
    assert!(token(GOOGLE, &key).await.is_ok());
    let request = forms(&upstream).await.pop().unwrap();
    assert_eq!(field(request["body"].as_str().unwrap(), "scope"), IAM);
    assert_eq!(request["headers"]["authorization"], "Basic aWQ6c2VjcmV0");
    let last = newest(&upstream).await;
    assert_eq!(last["body"]["lifetime"], "600s", "{last}");
    // From an address, in JSON.
    let answer = json!({"status": 200, "body": {"value": SUBJECT}});
    let from = Upstream::start().await;
    from.script(json!([answer])).await;
    let source = json!({"url": format!("{}/google/token", from.url), "headers": {"x-of": "me"},
        "format": {"type": "json", "subject_token_field_name": "value"}});
    let mut asked = federation(&upstream, source);
    asked["credential_source"]["url"] = format!("{}/msi/token", from.url).into();
    assert!(token(GOOGLE, &asked).await.is_ok());
    let got = newest(&from).await;
    assert_eq!((&got["method"], &got["headers"]["x-of"]), (&json!("GET"), &json!("me")));
}

/// An administrator names files and addresses: nothing but a token leaves the machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_holds_no_token_stays_on_the_machine() {
    let upstream = Upstream::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("secret"), "the-secret-key-of-the-gateway").unwrap();
    std::fs::write(path("large"), "a".repeat(70_000)).unwrap();
    for (name, why) in [
        ("secret", "holds no JSON Web Token"),
        ("large", "is larger than 65536 bytes"),
        ("none", "cannot be read"),
        ("", "is not a file"),
    ] {
        let entra = json!({"source": "workload_identity", "tenant_id": "t", "client_id": "c",
            "token_file": path(name), "authority": upstream.url});
        for (auth, key) in
            [(GOOGLE, federation(&upstream, json!({"file": path(name)}))), (ENTRA, entra)]
        {
            let error = token(auth, &key).await.unwrap_err();
            assert!(error.contains(why) && !error.contains("secret-key"), "{error}");
        }
    }
    assert!(upstream.requests().await.is_empty());
}

fn check(auth: ProviderAuth, key: Value) -> Result<(), String> {
    let provider = Provider { auth, ..Provider::blank(NOW) };
    tokens::check(&provider, &Secret::new(key.to_string()))
}

#[test]
fn credentials_are_checked_when_they_are_entered() {
    let external = |from: Value| {
        json!({"type": "external_account", "audience": "a", "token_url": "https://sts.example",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "credential_source": from})
    };
    let mut saml = external(json!({"file": "/t"}));
    saml["subject_token_type"] = "urn:ietf:params:oauth:token-type:saml2".into();
    let mut plain = external(json!({"file": "/t"}));
    plain["token_url"] = "http://sts.example".into();
    let nested = json!({"type": "impersonated_service_account", "service_account_impersonation_url":
        "https://iam.example", "source_credentials": {"type": "impersonated_service_account",
        "service_account_impersonation_url": "https://iam.example", "source_credentials":
        {"type": "metadata"}}});
    for (auth, key, why) in [
        (GOOGLE, json!({"type": "other"}), "type must be"),
        (GOOGLE, external(json!({"file": "relative"})), "must be absolute"),
        (GOOGLE, external(json!({"environment_id": "aws1"})), "either file or url"),
        (GOOGLE, external(json!({"executable": {"command": "x"}})), "either file or url"),
        (GOOGLE, external(json!({"url": "http://10.0.0.1/t"})), "one of this machine or its link"),
        (GOOGLE, saml, "subject_token_type must be"),
        (GOOGLE, plain, "must begin with https://"),
        (GOOGLE, nested, "must not be an impersonated account"),
        (GOOGLE, json!({"type": "metadata", "account": "../x"}), "account must be"),
        (ENTRA, json!({"source": "other"}), "source must be"),
        (ENTRA, json!({"source": "workload_identity"}), "the variable AZURE_TENANT_ID"),
        (ENTRA, json!({"tenant_id": "t", "client_id": "c"}), "either client_secret"),
        (
            ENTRA,
            json!({"tenant_id": "t", "client_id": "c", "certificate": "x", "private_key": "y"}),
            "must be",
        ),
    ] {
        let error = check(auth, key.clone()).unwrap_err();
        assert!(error.contains(why), "{key}: {error}");
    }
    assert_eq!(check(GOOGLE, external(json!({"file": "/t"}))), Ok(()));
    assert_eq!(check(GOOGLE, external(json!({"url": "http://169.254.169.254/t"}))), Ok(()));
    assert_eq!(check(ENTRA, json!({"source": "managed_identity"})), Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_signs_for_a_token() {
    let upstream = Upstream::start().await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proxy/clouds");
    let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
    let key = json!({"tenant_id": "tenant-1", "client_id": "client-1", "certificate":
        read("certificate.pem"), "private_key": read("key.pem"), "authority": upstream.url});
    assert!(token(ENTRA, &key).await.is_ok());
    let form = forms(&upstream).await[0]["body"].as_str().unwrap().to_owned();
    assert!(field(&form, "client%5Fassertion%5Ftype").ends_with("jwt%2Dbearer"), "{form}");
    let assertion = field(&form, "client%5Fassertion");
    let assertion = assertion.replace("%2E", ".").replace("%2D", "-").replace("%5F", "_");
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let der = PrivatePkcs8KeyDer::from_pem_slice(read("key.pem").as_bytes()).unwrap();
    let pair = ring::rsa::KeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, pair.public_key().as_ref());
    public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    let part = |text: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    };
    let (header, claims) = signed.split_once('.').unwrap();
    let (header, claims) = (part(header), part(claims));
    assert_eq!(header["alg"], "PS256");
    let url = format!("{}/tenant-1/oauth2/v2.0/token", upstream.url);
    assert_eq!(
        (&claims["aud"], &claims["iss"], &claims["sub"]),
        (&json!(url), &json!("client-1"), &json!("client-1"))
    );
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["nbf"].as_i64().unwrap(), 600);
    // The key of another certificate.
    let mut other = key.clone();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nodes/tls");
    other["certificate"] = std::fs::read_to_string(format!("{folder}/client.pem")).unwrap().into();
    let error = check(ENTRA, other).unwrap_err();
    assert!(error.contains("is not the key of the certificate"), "{error}");
}
