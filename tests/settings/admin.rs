//! Settings of the administration: its TLS, its address, its cookies, its webhooks.

use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::gateway::{ADMIN_TOKEN, Gateway, client};

#[tokio::test(flavor = "multi_thread")]
async fn the_administration_speaks_tls_where_that_is_set() {
    let file = |name: &str| format!("{}/tests/admin/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let env =
        [("TOLLGATE_ADMIN_TLS_CERT", cert.as_str()), ("TOLLGATE_ADMIN_TLS_KEY", key.as_str())];
    let gateway = Gateway::with(&env).await;
    drop(client());
    let authority =
        reqwest::Certificate::from_pem(&std::fs::read(file("cert.pem")).unwrap()).unwrap();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([authority]).build().unwrap();
    let port = gateway.admin.rsplit_once(':').unwrap().1;
    let url = format!("https://localhost:{port}/api/actions/users/getUsers");
    // The certificate names this host, and only the holder of its key can present it.
    let answer = client.post(url).bearer_auth(ADMIN_TOKEN).json(&json!({})).send().await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(e) => panic!("{e:?}: {}", gateway.log()),
    };
    assert_eq!(answer.status(), 200);
}

/// A page of another origin may not write on behalf of a logged-in user; the web UI's own may.
#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_the_web_ui_is_an_origin_that_may_write() {
    for (env, status) in [(&[("APP_URL", "https://gate.example")][..], 200), (&[], 403)] {
        let gateway = Gateway::with(env).await;
        let login = gateway
            .client
            .post(format!("{}/api/auth/login", gateway.admin))
            .json(&json!({"key": ADMIN_TOKEN}));
        let answer = login.header("origin", "https://gate.example").send().await.unwrap();
        assert_eq!(answer.status(), status, "{}", answer.text().await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cookies_are_secure_where_that_is_set() {
    for (flag, secure) in [("true", true), ("false", false)] {
        let gateway = Gateway::with(&[("ENABLE_SECURE_COOKIES", flag)]).await;
        let login = gateway
            .client
            .post(format!("{}/api/auth/login", gateway.admin))
            .json(&json!({"key": ADMIN_TOKEN}));
        let answer = login.send().await.unwrap();
        let cookie = answer.headers()["set-cookie"].to_str().unwrap();
        assert_eq!(cookie.contains("Secure"), secure, "{flag}: {cookie}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_go_to_private_networks_that_are_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            while crate::resilience::raw::read_message(&mut tcp).await.is_some() {
                crate::resilience::raw::write(&mut tcp, b"HTTP/1.1 204 No Content\r\n\r\n").await;
            }
        }
    });
    for (env, allowed) in
        [(&[("TOLLGATE_WEBHOOKS_ALLOW_PRIVATE", "127.0.0.0/8")][..], true), (&[], false)]
    {
        let gateway = Gateway::with(env).await;
        let (_, answer): (u16, Value) =
            gateway.call("notifications/testWebhookAction", json!({"webhookUrl": url})).await;
        assert_eq!(answer["ok"], json!(allowed), "{answer}");
        assert_eq!(answer.to_string().contains("webhooks.allow_private"), !allowed, "{answer}");
    }
}
