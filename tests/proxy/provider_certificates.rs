//! A provider's own certificates: authorities in place of the system's, and a client certificate.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tollgate::domain::clock::{Clock as _, SystemClock};

use super::fixture::Fixture;
use crate::resilience::http2_provider::trusted;

fn pem(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nodes/tls");
    std::fs::read_to_string(format!("{folder}/{name}")).unwrap()
}

/// A service whose certificate the system does not trust; with `wants`, it wants one too. Returns
/// its address.
async fn service(upstream: &str, wants: bool) -> String {
    let chain = vec![CertificateDer::from_pem_slice(pem("server.pem").as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(pem("server.key").as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem("ca.pem").as_bytes()).unwrap()).unwrap();
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
    let builder = rustls::ServerConfig::builder();
    let builder = match wants {
        true => builder.with_client_cert_verifier(verifier),
        false => builder.with_no_client_auth(),
    };
    let acceptor = TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let upstream = upstream.trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, upstream) = (acceptor.clone(), upstream.clone());
            tokio::spawn(async move {
                let mut tls = acceptor.accept(tcp).await.ok()?;
                let mut upstream = TcpStream::connect(upstream).await.ok()?;
                copy_bidirectional(&mut tls, &mut upstream).await.ok()
            });
        }
    });
    url
}

async fn fixture() -> Fixture {
    let trusted = trusted();
    let env: Vec<_> = trusted.iter().map(|(name, value)| (*name, &**value)).collect();
    Fixture::bare(&env).await
}

/// The status of a request, and the code of a test.
async fn asked(fixture: &Fixture, id: i64) -> (u16, String) {
    let status = fixture.ask().send().await.unwrap().status().as_u16();
    let body = json!({"providerId": id, "model": "m"});
    let result = fixture.gateway.admin("providers/testProvider", body).await;
    (status, result["code"].as_str().unwrap().to_owned())
}

fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_with_a_private_authority_and_a_client_certificate_is_reached() {
    let fixture = fixture().await;
    let url = service(&fixture.upstream.url, true).await;
    let fields = json!({"max_retry_attempts": 1, "circuit_breaker_failure_threshold": 0});
    let id = fixture.gateway.provider("native", &url, fields).await;
    let edit = async |mut fields: Value| {
        fields["providerId"] = id.into();
        fixture.gateway.admin("providers/editProvider", fields).await
    };
    assert_eq!(asked(&fixture, id).await, is(502, "tls_failed"));
    // Other authorities need the key again.
    edit(json!({"tls_ca": pem("ca.pem"), "key": "the-key"})).await;
    let (status, code) = asked(&fixture, id).await;
    assert!(status == 502 && code != "ok", "it wants a certificate: {status} {code}");
    edit(json!({"tls_client_certificate": pem("client.pem"), "tls_client_key": pem("client.key")}))
        .await;
    assert_eq!(asked(&fixture, id).await, is(200, "ok"));
    // Shown: what they say, and no key.
    let record = fixture.gateway.admin("providers/getProviders", json!({})).await[0].clone();
    assert_eq!(record["tlsClientKey"], "***");
    let said: Vec<_> = record["certificates"].as_array().unwrap().iter().collect();
    assert_eq!(
        (said[0]["field"].as_str(), said[0]["subject"].as_str()),
        (Some("tls_ca"), Some("CN=tests"))
    );
    assert_eq!(said[1]["subject"], "CN=client", "{record}");
    assert!(said[1]["expiresAt"].as_str().unwrap().starts_with("2126-10-29"), "{record}");
    // The mask keeps the key; other authorities end it, also for connections that are open.
    edit(json!({"tls_client_key": "***", "weight": 2})).await;
    assert_eq!(asked(&fixture, id).await, is(200, "ok"));
    edit(json!({"tls_ca": pem("other-ca.pem"), "key": "the-key"})).await;
    assert_eq!(asked(&fixture, id).await, is(502, "tls_failed"));
    edit(json!({"tls_ca": pem("ca.pem"), "tls_client_certificate": null, "key": "the-key"})).await;
    assert_ne!(asked(&fixture, id).await.0, 200);
    let record = fixture.gateway.admin("providers/getProviders", json!({})).await[0].clone();
    assert!(record["tlsClientKey"].is_null(), "the key goes with its certificate: {record}");
    let key = pem("client.key");
    let audits = fixture.gateway.admin("audit/getAuditLog", json!({})).await.to_string();
    let line = key.lines().nth(1).unwrap();
    assert!(!format!("{audits}{record}{}", fixture.gateway.log()).contains(line));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_connection_could_use_is_refused() {
    let fixture = fixture().await;
    let (certificate, key) = (pem("client.pem"), pem("client.key"));
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let expired = &ending("20250101000000Z");
    for (url, fields, field, reason) in [
        ("https://p.example", json!({"tls_ca": "no PEM"}), "tls_ca", "must_be_pem"),
        ("https://p.example", json!({"tls_ca": broken}), "tls_ca", "certificate_unreadable"),
        ("https://p.example", json!({"tls_ca": key}), "tls_ca", "certificate_unreadable"),
        ("https://p.example", json!({"tls_ca": expired}), "tls_ca", "certificate_expired"),
        ("http://p.example", json!({"tls_ca": pem("ca.pem")}), "tls_ca", "certificate_needs_https"),
        (
            "https://p.example",
            json!({"tls_client_certificate": certificate}),
            "tls_client_key",
            "certificate_key_missing",
        ),
        (
            "https://p.example",
            json!({"tls_client_certificate": certificate, "tls_client_key": pem("server.key")}),
            "tls_client_key",
            "certificate_key_other",
        ),
        (
            "https://p.example",
            json!({"tls_client_certificate": certificate, "tls_client_key": certificate}),
            "tls_client_key",
            "certificate_key_unreadable",
        ),
        (
            "https://p.example",
            json!({"tls_client_key": key}),
            "tls_client_key",
            "certificate_missing",
        ),
        ("https://p.example", json!({"tls_client_key": "***"}), "tls_client_key", "is_masked"),
    ] {
        let mut body = json!({"name": "n", "url": url, "key": "k"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        for operation in ["providers/addProvider", "providers/testProvider"] {
            // A test has no name.
            if operation == "providers/testProvider" {
                body.as_object_mut().unwrap().remove("name");
            }
            let (status, answer) = fixture.gateway.call(operation, body.clone()).await;
            let params = &answer["errorParams"];
            let said = (status, &params["field"], &params["reason"]);
            assert_eq!(said, (400, &json!(field), &json!(reason)), "{fields}: {answer}");
            let line = key.lines().nth(1).unwrap();
            assert!(!answer.to_string().contains(line), "{answer}");
        }
    }
    // At another origin the stored key is asked for again.
    let fields = json!({"tls_client_certificate": certificate, "tls_client_key": key});
    let id = fixture.gateway.provider("native", "https://p.example", fields).await;
    let body = json!({"providerId": id, "url": "https://other.example", "key": "another"});
    let (_, answer) = fixture.gateway.call("providers/editProvider", body).await;
    let params = &answer["errorParams"];
    let said = (&params["field"], &params["reason"]);
    assert_eq!(said, (&json!("tls_client_key"), &json!("other_destination")), "{answer}");
    // An address without TLS, while certificates are there.
    let body = json!({"providerId": id, "url": "http://p.example", "key": "another", "tls_client_key": key});
    let (_, answer) = fixture.gateway.call("providers/editProvider", body).await;
    assert_eq!(answer["errorParams"]["reason"], "certificate_needs_https", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_ends_soon_is_a_problem() {
    let fixture = fixture().await;
    let problems = async || {
        let overview = fixture.gateway.admin("overview/getOverviewData", json!({})).await;
        overview["attention"]["problems"].as_array().unwrap().clone()
    };
    let fields = json!({"name": "with-authority", "tls_ca": pem("ca.pem")});
    let id = fixture.gateway.provider("native", "https://p.example", fields).await;
    let is_it = |one: &Value| one["kind"] == "provider_certificate_expires";
    assert!(!problems().await.iter().any(is_it));
    let end = SystemClock.now().plus_ms(10 * 86_400_000);
    let end = chrono::DateTime::from_timestamp_millis(end.0).unwrap();
    let soon = ending(&end.format("%Y%m%d%H%M%SZ").to_string());
    let edit = json!({"providerId": id, "tls_ca": soon, "key": "the-key"});
    fixture.gateway.admin("providers/editProvider", edit).await;
    let found = problems().await;
    let found = found.iter().find(|one| is_it(one)).unwrap_or_else(|| panic!("{found:?}"));
    assert_eq!(found["severity"], "warning", "{found}");
    assert_eq!(found["params"]["providerName"], "with-authority", "{found}");
    assert_eq!(found["params"]["subject"], "CN=somebody else", "{found}");
}

/// The authority with another end, `YYYYMMDDHHMMSSZ`. Nothing checks its own signature.
fn ending(end: &str) -> String {
    let text = pem("other-ca.pem");
    let mut der = CertificateDer::from_pem_slice(text.as_bytes()).unwrap().to_vec();
    let place = der.windows(end.len()).position(|part| part.starts_with(b"21261029"));
    let place = place.expect("the end of the certificate");
    der[place..place + end.len()].copy_from_slice(end.as_bytes());
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(der))
}
