//! TLS handshakes that do not end: of a provider, and of a client.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::proxy::fixture::Fixture;

/// A client over TLS that offers only HTTP/2.
pub async fn client_tls(address: &str, authority: &str) -> TlsStream<TcpStream> {
    use rustls_pki_types::pem::PemObject as _;
    drop(crate::support::gateway::client());
    let mut roots = RootCertStore::empty();
    roots.add(rustls_pki_types::CertificateDer::from_pem_file(authority).unwrap()).unwrap();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tcp = TcpStream::connect(address).await.unwrap();
    let name = "localhost".to_owned().try_into().unwrap();
    TlsConnector::from(std::sync::Arc::new(config)).connect(name, tcp).await.unwrap()
}

/// It accepts the connection, and sends nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_never_answers_the_tls_handshake_is_given_up_after_timeouts_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((tcp, _)) = listener.accept().await {
            held.push(tcp);
        }
    });
    let env = [
        ("TOLLGATE_TIMEOUTS_CONNECT", "45s"),
        ("TOLLGATE_TIMEOUTS_TLS", "700ms"),
        ("TOLLGATE_RETRY_DEADLINE", "5m"),
    ];
    let fixture = Fixture::bare(&env).await;
    fixture.gateway.provider("native", &url, json!({"max_retry_attempts": 1})).await;
    let began = Instant::now();
    let answer = fixture.ask().send().await.unwrap();
    let took = began.elapsed();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert!(status == 502 && text.contains("in time"), "{status}: {text}");
    assert!(took >= Duration::from_millis(600) && took < Duration::from_secs(30), "{took:?}");
    let row = &fixture.gateway.logs(1).await[0];
    let chain = row["decisionChain"].to_string();
    assert!(chain.contains("no TLS handshake in time: nothing within 700 ms"), "{row}");
}
